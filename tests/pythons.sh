#!/bin/sh
# Run the fast tests on every supported Python of this machine, except the one they ran on already.
# usage: pythons.sh PYTHON [VERSION...]
set -eu
print_release='import ensurepip, venv, platform; print(platform.python_version())'
done_already=$("$1" -c "$print_release")
shift

# Print a Python of this version that can make virtual environments, or nothing.
# That of the system comes first: Debian 12 has 3.11.2, with faults that 3.11.5 mended.
# pyenv puts a python3.x on PATH that fails unless that version is selected.
find_python() {
    for candidate in "/usr/bin/python$1" "python$1" "${PYENV_ROOT:-$HOME/.pyenv}"/versions/"$1".*/bin/python; do
        release=$("$candidate" -c "$print_release" 2>/dev/null) || continue
        if [ "$release" != "$done_already" ]; then
            echo "$candidate"
            return
        fi
    done
}

for version in ${*:-3.11 3.12 3.13 3.14}; do
    python=$(find_python "$version")
    [ -n "$python" ] || continue # silently, so that the log ends with pytest's summary
    "$python" --version
    work=$(mktemp -d)
    trap 'rm -rf "$work"' EXIT
    "$python" -m venv "$work"
    "$work/bin/python" -m pip install --quiet '.[dev]'
    "$work/bin/python" -m pytest -q -n 2 -m 'not slow' --hypothesis-profile quick
    rm -rf "$work"
done

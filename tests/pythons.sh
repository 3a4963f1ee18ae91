#!/bin/sh
# Run the fast tests on every supported Python of this machine, except the one they ran on already.
# usage: pythons.sh PYTHON [VERSION...]
set -eu
done_already=$("$1" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
shift

# Print a Python of this version that can make virtual environments, or nothing.
# pyenv puts a python3.x on PATH that fails unless that version is selected.
find_python() {
    for candidate in "python$1" "${PYENV_ROOT:-$HOME/.pyenv}"/versions/"$1".*/bin/python; do
        if "$candidate" -c 'import ensurepip, venv' 2>/dev/null; then
            echo "$candidate"
            return
        fi
    done
}

for version in ${*:-3.11 3.12 3.13}; do
    [ "$version" = "$done_already" ] && continue
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

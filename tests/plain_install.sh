#!/bin/sh
# Check that an installation without development tools, as users have it, works.
# usage: plain_install.sh PYTHON
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$1" -m venv "$work/venv"
"$work/venv/bin/python" -m pip install --quiet .
cd "$work"
"$work/venv/bin/nbspam" --help >/dev/null
"$work/venv/bin/nbspam" --version
# Type checkers read this package's annotations only if it says so.
"$work/venv/bin/python" -I -c '
import nbspam, pathlib
assert pathlib.Path(nbspam.__file__).with_name("py.typed").exists(), "py.typed is not installed"'

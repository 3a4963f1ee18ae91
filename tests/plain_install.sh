#!/bin/sh
# An installation without development tools works: what users get.
# usage: plain_install.sh PYTHON
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$1" -m venv "$work/venv"
"$work/venv/bin/python" -m pip install --quiet .
cd "$work"
"$work/venv/bin/nbspam" --help >/dev/null
"$work/venv/bin/nbspam" --version

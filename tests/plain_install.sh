#!/bin/sh
# Check that an installation without development tools, as users have it, works: on the lowest
# supported Python with the lowest versions that pyproject.toml promises.
# usage: plain_install.sh PYTHON
set -eu
work=$(mktemp -d)
mails=$PWD/corpora/mail
trap 'rm -rf "$work"' EXIT
"$1" -m venv "$work/venv"
if "$1" -c 'import sys; sys.exit(sys.version_info[:2] != (3, 11))'; then
    sed -n '/^dependencies/,/^]/s/^ *"\(.*\)>=\(.*\)",.*/\1==\2/p' pyproject.toml
fi >"$work/lowest"
"$work/venv/bin/python" -m pip install --quiet --constraint "$work/lowest" .
cd "$work"
"$work/venv/bin/nbspam" --help >/dev/null
"$work/venv/bin/nbspam" --version
site=$(echo "$work"/venv/lib/python*/site-packages)
# Type checkers read this package's annotations only if it says so.
[ -e "$site/nbspam/py.typed" ] || { echo "py.typed is not installed" >&2; exit 1; }
# The templates of pages are installed, too, and found in a zip file of the package.
(cd "$site" && "$work/venv/bin/python" -m zipfile -c "$work/zip" nbspam)
PYTHONPATH="$work/zip" "$work/venv/bin/nbspam" eval "$mails" --cv 2 --report "$work/page.html" >/dev/null
grep -q "How good is this spam filter" "$work/page.html"
"$work/venv/bin/nbspam" vectorize "$mails" -o "$work/mails.npz" >/dev/null
# Man pages and completions are where man and the shells of this environment look for them.
for file in man/man1/nbspam.1 man/man1/nbspam-train.1 bash-completion/completions/nbspam \
    zsh/site-functions/_nbspam fish/vendor_completions.d/nbspam.fish; do
    [ -s "$work/venv/share/$file" ] || { echo "$file is not installed" >&2; exit 1; }
done
if command -v man >/dev/null; then
    PATH="$work/venv/bin:$PATH" man -w nbspam-train | grep -q "$work/venv"
fi
if command -v bash >/dev/null; then
    bash -c ". $work/venv/share/bash-completion/completions/nbspam && complete -p nbspam" |
        grep -q _nbspam
fi

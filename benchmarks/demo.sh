#!/bin/sh
# Train on most of the embedded mail, evaluate on the rest, classify some, explain one.
# usage: demo.sh NBSPAM MAILS
set -eu
nbspam=$(cd "$(dirname "$1")" && pwd)/$(basename "$1")
mails=$(cd "$2" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
export NBSPAM_MODEL=demo.nbspam XDG_CONFIG_HOME="$work"

# Every fifth message is held out.
for class in ham spam; do
    mkdir -p train/$class test/$class
    n=0
    for message in "$mails/$class"/*.eml; do
        n=$((n + 1))
        if [ $((n % 5)) -eq 0 ]; then part=test; else part=train; fi
        cp "$message" $part/$class/
    done
done
cp -r "$mails" mails

nbspam() { "$nbspam" "$@"; }
run() { printf '\n$ %s\n' "$1"; eval "$1"; }
run "nbspam train train"
run "nbspam eval test | head -n 15"
run "nbspam eval mails --cv 10 | head -n 2"
run "nbspam classify test/spam/1[45]4-*.eml test/ham/1[26]0-*.eml"
run "nbspam explain -n 12 < test/spam/144-loan-guaranteed-approval.eml"

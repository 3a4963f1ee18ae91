#!/bin/sh
# Train on most of the embedded mail, evaluate on the rest, classify one message.
# usage: demo.sh NBSPAM MAILS
set -eu
nbspam=$1
mails=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# Every fifth message is held out.
for class in ham spam; do
    mkdir -p "$work/train/$class" "$work/test/$class"
    n=0
    for message in "$mails/$class"/*.eml; do
        n=$((n + 1))
        if [ $((n % 5)) -eq 0 ]; then part=test; else part=train; fi
        cp "$message" "$work/$part/$class/"
    done
done

say() { printf '\n$ %s\n' "$*"; }
say nbspam train "train/"
"$nbspam" train -m "$work/demo.nbspam" "$work/train"
say nbspam eval "test/"
"$nbspam" eval -m "$work/demo.nbspam" "$work/test"
message=$(ls "$work/test/spam"/*.eml | head -n 1)
say "nbspam classify < $(basename "$message")"
"$nbspam" classify -m "$work/demo.nbspam" < "$message"

"""nbspam load: a model from text."""

import click

from nbspam.cli.options import json_option, model_option
from nbspam.cli.output import echo_json, echo_rows


@click.command("load")
@click.argument("file")
@model_option
@json_option
def command(file: str, model_path: str, as_json: bool) -> None:
    """Make a model of what `nbspam dump` or `bogoutil -d` wrote.

    FILE may be -, standard input.  A model that is there is replaced.  bogofilter's
    tags become ours (subj: subject:, rtrn: return-path:, rcvd: received: and so on);
    such a model knows counts, but no messages: learning one that bogofilter had
    learned counts it again.  Teach it ham and spam alike: tokens that bogofilter does
    not have are known from new messages alone.

    \b
    nbspam load model.jsonl -m mail.nbspam
    bogoutil -d ~/.bogofilter/wordlist.db | nbspam load -
    """
    from nbspam.store.open import read_text_model as load_file
    from nbspam.store.open import save

    classifier = load_file(file)
    save(model_path, classifier)
    table = classifier.table
    n_docs = {c: int(n) for c, n in zip(table.classes, table.class_count, strict=True)}
    if as_json:
        echo_json({"model": model_path, "read": n_docs, "tokens": len(table.vocabulary)})
        return
    counts = ", ".join(f"{n:,} {name}" for name, n in n_docs.items())
    tokens = f"loaded {len(table.vocabulary):,} tokens of {table.n_docs:,} messages ({counts})"
    echo_rows([(f"{tokens}; model in {model_path}",)])

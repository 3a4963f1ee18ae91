"""nbspam import: a model from text."""

import click

from nbspam.cli.command import Command
from nbspam.cli.options import json_option, model_option
from nbspam.cli.output import counts_of, counts_text, echo_json, echo_summary, report_lack, save


@click.command("import", cls=Command)
@click.argument("file")
@model_option
@json_option
def command(file: str, model_path: str, as_json: bool) -> None:
    """Make a model from the output of `nbspam export` or `bogoutil -d`.

    FILE may be -, for standard input.  If the import would lose anything of a model that is
    there, that model is kept beside the new one, with ~ after its name.

    The tags of bogofilter are translated (rtrn to return-path:, subj to subject:, rcvd to
    received: and so on).  A model from bogofilter has counts but no messages, so a message
    that bogofilter had learned is counted again if it is learned again.  Teach such a model
    ham and spam alike: it knows the tokens that bogofilter does not have from new messages
    only.  A backup of sa-learn or an export of spamprobe cannot become a model; train from the
    mail.

    \b
    nbspam import model.jsonl -m mail.nbspam
    bogoutil -d ~/.bogofilter/wordlist.db | nbspam import -
    """
    from nbspam.store.open import read_text_model

    classifier = read_text_model(file)
    kept = save(classifier, model_path)
    report_lack(classifier)
    table = classifier.table
    n_docs, n_tokens = counts_of(table.classes, table.class_count), len(table.vocabulary)
    if as_json:
        echo_json({"model": model_path, "kept": kept, "read": n_docs, "tokens": n_tokens})
        return
    n_read = f"{table.n_docs:,} {classifier.noun} ({counts_text(n_docs)})"
    echo_summary([(f"imported {n_tokens:,} tokens of {n_read}; model in {model_path}",)])

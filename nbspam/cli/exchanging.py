"""nbspam export, import, vectorize and merge: models as text, mail as vectors, models as one."""

import sys
from typing import TYPE_CHECKING, cast

import click

from nbspam.arrays import today
from nbspam.cli import inputs, options, output, training_options
from nbspam.cli.frame import Command
from nbspam.errors import UsageError
from nbspam.printing import amount_text
from nbspam.settings import SettingsChoices

if TYPE_CHECKING:
    from nbspam.classifier.classifier import Classifier
    from nbspam.store.merging import Merged


@click.command("export", cls=Command, first=("--format", "--model-file"))
@options.model_option
@click.option(
    "--format",
    "form",
    type=click.Choice(["jsonl", "bogoutil"]),
    default="jsonl",
    show_default=True,
    help="JSON lines, or counts for `bogoutil -l`.",
)
def export_command(model_path: str, form: str) -> None:
    """Print a whole model as text.

    There is one line per token.  JSON lines have the settings and classes first, then the
    tokens, then the digests of the messages that were learned.  `nbspam import` turns them
    back into the same model file, byte for byte.  The format of bogoutil has the counts only,
    and is for models of ham and spam.

    \b
    nbspam export > model.jsonl
    nbspam export -m mail.nbspam --format bogoutil | bogoutil -l wordlist.db
    """
    inputs.loaded_model(model_path)  # which is refused if it is the model of a table
    from nbspam.store import text
    from nbspam.store.model import StoredModel

    whole = StoredModel(model_path).whole()
    if form == "bogoutil":
        sys.stdout.buffer.writelines(text.bogofilter_lines(whole))
    else:
        sys.stdout.buffer.writelines(text.model_lines(whole))


@click.command("import", cls=Command, first=("--model-file", "--json"))
@click.argument("file")
@options.model_option
@options.json_option
def import_command(file: str, model_path: str, as_json: bool) -> None:
    """Make a model from the output of `nbspam export` or `bogoutil -d`.

    FILE may be -, for standard input.  If the import would lose any part of an existing
    model, that model is kept beside the new one, with ~ after its name.

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

    output.tell_waiting([file])
    classifier = read_text_model(file)
    kept = output.save_model(classifier, model_path)
    output.report_lack(classifier)
    table = classifier.table
    n_docs = output.class_counts_of(table.classes, table.class_count)
    n_tokens = len(table.vocabulary)
    if as_json:
        output.echo_json({"model": model_path, "kept": kept, "read": n_docs, "tokens": n_tokens})
        return
    n_read = output.total_text(table.n_docs, classifier.noun, n_docs)
    output.echo_summary(
        f"imported {amount_text(n_tokens, 'tokens')} of {n_read}; model in {model_path}"
    )


@click.command(
    "vectorize", cls=Command, first=("--output", "--binary", "--vocabulary", "--min-df")
)
@inputs.corpus_options
@options.output_option("The .npz file to write.")
@click.option("--binary", is_flag=True, help="Whether a token occurs, and not how often.")
@training_options.vocabulary_option
@training_options.min_df_option
@options.filling(
    SettingsChoices,
    "choices",
    training_options.preset_option,
    training_options.pairs_option,
    training_options.characters_option,
)
@options.jobs_option
@options.strict_option
def vectorize_command(
    corpus: inputs.LabelledSources,
    output_path: str,
    binary: bool,
    vocabulary: list[str] | None,
    min_df: int | None,
    choices: SettingsChoices,
    jobs: int,
    strict: bool,
) -> None:
    """Write messages as vectors of token counts, and print the token of each column.

    The file holds a sparse matrix for `scipy.sparse.load_npz`, with a row for each message and a
    column for each token, and the array `labels` for `numpy.load`.

    \b
    nbspam vectorize mails/ -o mails.npz > vocabulary.txt
    nbspam vectorize more/ -o more.npz --vocabulary vocabulary.txt > /dev/null
    """
    from nbspam.store.library import vectors_of, write_vectors

    output.check_place("--output", output_path)
    items = inputs.items_of_sources(*corpus)
    found = vectors_of(items, choices, binary, vocabulary, min_df or 1, jobs)
    output.report_skipped(found.skipped, strict)
    write_vectors(found, output_path)
    output.echo_rows((token,) for token in found.vocabulary)


@click.command("merge", cls=Command, first=("--output", "--day", "--json"))
@click.argument("models", nargs=-1, required=True, metavar="MODEL MODEL...")
@options.output_option("The model file to write.")
@click.option(
    "--day",
    type=options.DAY,
    metavar="YYYY-MM-DD",
    help="The day on which the messages of parts are learned.  [default: today]",
)
@options.json_option
def merge_command(
    models: tuple[str, ...], output_path: str, day: int | None, as_json: bool
) -> None:
    """Add models: the result is the model of all their messages.

    A message that several models know counts once.  If they know it as different classes,
    the last model decides.  All models must have the same settings for tokens; other
    settings are those of the first model.

    The parts of one training, from `nbspam shard`, add up to the model that training on
    everything at once would make.  All of them must be named.

    Locks, journals and FILE~ that a shell's pattern also matches are ignored.

    \b
    nbspam merge home.nbspam office.nbspam -o both.nbspam
    nbspam merge part.* -o model.nbspam
    """
    merged = inputs.merged_models(models, today() if day is None else day)
    if day is not None and not merged.is_training:
        raise UsageError("--day: for parts of a training; models know the days of their messages")
    kept = output.save_model(merged.classifier, output_path)
    _show_merged(merged, output_path, kept, as_json)


def _show_merged(merged: "Merged", path: str, kept: str | None, as_json: bool) -> None:
    """Print the number of models and messages added, and of messages that several models knew."""
    classifier = cast("Classifier", merged.classifier)
    if classifier.memory and not classifier.memory.has_ledger:
        output.warn("a model without a ledger: messages that it shares with others count again")
    n_docs = output.class_counts_of(classifier.classes, classifier.table.class_count)
    loss, n_tokens = classifier.table.loss, len(classifier.table.vocabulary)
    if as_json:
        facts: dict[str, object] = {"tokens": n_tokens, "forgotten": output.loss_json(loss)}
        if merged.is_training:
            facts |= {"parts": merged.n_added, "repeated": merged.repeated}
        else:
            facts |= {"in_both": merged.repeated, "disputed": merged.disputed}
        output.echo_json({"model": path, "kept": kept, "read": n_docs, **facts})
        return
    read = output.total_text(sum(n_docs.values()), classifier.noun, n_docs)
    if not merged.is_training:
        both = f"{merged.repeated:,} known to several, {merged.disputed:,} as different classes"
        lines = [f"added {merged.n_added} models: {read}", both]
    else:
        again = f", {merged.repeated:,} more than once" if merged.repeated else ""
        lines = [f"added {merged.n_added} parts: {read}{again}"]
    if loss:
        lines.append(f"forgot {output.loss_text(loss)}")
    output.echo_summary(*lines, f"learned {amount_text(n_tokens, 'tokens')}; model in {path}")

"""nbspam train, shard, vectorize and lazy: from labelled mail to models, parts and vectors."""

from collections.abc import Iterable, Iterator
from dataclasses import asdict, replace
from importlib import import_module
from typing import TYPE_CHECKING

import click

from nbspam.arrays import today
from nbspam.cli import inputs, options, output, training_options
from nbspam.cli.frame import is_quiet, subcommand
from nbspam.cli.judging import print_answers
from nbspam.errors import InputError, NotTrainedError, UsageError
from nbspam.printing import amount_text
from nbspam.settings import (
    FEATURES,
    UNBOUNDED,
    Bounds,
    Settings,
    SettingsChoices,
    check_dirichlet,
    check_unbounded,
    first_is_text,
)
from nbspam.sources.files import listed
from nbspam.sources.items import Item, SourceOptions

if TYPE_CHECKING:
    from nbspam.classifier.training import TrainingResult
    from nbspam.counts.shards import CountedShard
    from nbspam.counts.table import CountTable
    from nbspam.models.em import EMReport, Step
    from nbspam.verdicts import Skipped
    from nbspam.workers import Workers


@subcommand("train", "--spam", "--ham", "--label", "--model-file")
@inputs.corpus_and_sent_options
@options.model_option
@training_options.training_options
@training_options.unlabelled_options
@training_options.bounds_options
@options.workers_options
@options.strict_option
@options.json_option
def train_command(
    corpus: inputs.LabelledSources,
    model_path: str,
    training: SettingsChoices,
    unlabelled: training_options.UnlabelledSources,
    bounds: Bounds,
    jobs: "Workers",
    strict: bool,
    as_json: bool,
) -> None:
    """Learn from a folder per class, and write a new model.

    \b
    nbspam train mails/
    nbspam train --spam ~/Maildir/.Junk --ham ~/Maildir/cur
    """
    if unlabelled == training_options.UnlabelledSources():
        learned = learn_sources(corpus, training, jobs, strict, bounds)
        kept = output.save_model(learned.classifier, model_path)
        _show(learned, model_path, kept, as_json)
        return
    check_unbounded(bounds, "EM")
    if corpus.sent:
        raise UsageError("--sent: not for EM; leave out --unlabelled or --sent")
    report = _learn_unlabelled(corpus, training, unlabelled, jobs)
    output.report_skipped(report.skipped, strict)
    kept = output.save_model(report.classifier, model_path)
    _show_rounds(report, model_path, kept, as_json)


def learn_sources(
    corpus: inputs.LabelledSources,
    training: SettingsChoices,
    jobs: "Workers",
    strict: bool = False,
    bounds: Bounds = UNBOUNDED,
) -> "TrainingResult":
    """Return the classifier of labelled sources; report skipped items on standard error."""
    # Import numpy from here and not from deep inside our own imports: Python 3.11 extends its
    # stack chunk by chunk, and at that depth a thousand calls of numpy's each allocate and free
    # a chunk (E-015).
    import_module("numpy")
    from nbspam.classifier import training as library

    settings, items = corpus.settings_and_items(training)
    try:
        learned = library.learn_items(items, settings, jobs, today(), bounds)
    except NotTrainedError:
        if not corpus.labels.paths:
            check_label_column(corpus.reading)
        raise
    output.report_skipped(learned.skipped, strict)
    return learned


def check_label_column(reading: SourceOptions) -> None:
    """Raise InputError if a table of texts was read whose column of classes is unknown."""
    heard, columns = reading.listener, reading.listener.columns
    if isinstance(heard, inputs.TableListener) and columns.text and columns.label is None:
        raise InputError(
            "train: no column that is known to hold classes; name one by --label-column, of:"
            f" {listed(heard.names)}"
        )


def _learn_unlabelled(
    corpus: inputs.LabelledSources,
    training: SettingsChoices,
    unlabelled: training_options.UnlabelledSources,
    jobs: "Workers",
) -> "EMReport":
    """Return the model that EM makes of labelled and unlabelled sources; raises UsageError."""
    if not unlabelled.paths:
        raise UsageError(
            "--unlabelled-weight, --hard, --rounds, --epsilon: for --unlabelled PATH; give it too"
        )
    from nbspam.classifier.unlabelled import BEFORE_OVERFITTING, train_with_unlabelled
    from nbspam.models.em import stopping

    settings, items = items_for_em(corpus.items(), corpus.reading, training)
    # The classes of the others do not matter, and so need no column.
    reading = corpus.reading._replace(label_column=None, learned=settings.columns)
    others = inputs.items_of_sources(unlabelled.paths, reading)
    weight = unlabelled.weight if isinstance(unlabelled.weight, float) else None
    when = stopping(unlabelled.rounds, unlabelled.epsilon, BEFORE_OVERFITTING)
    return train_with_unlabelled(
        items, others, settings, weight, unlabelled.hard, jobs, stopping=when
    )


def items_for_em(
    items: Iterable[Item], reading: SourceOptions, choices: SettingsChoices
) -> tuple[Settings, Iterator[Item]]:
    """Return the settings of a model trained by EM, and the items."""
    from nbspam.classifier.unlabelled import em_chosen

    is_text, items = first_is_text(items)
    check_dirichlet(choices, reading.listener.columns)
    settings = em_chosen(choices, is_text)
    return replace(settings, columns=reading.listener.columns), items


def _show(learned: "TrainingResult", model_path: str, kept: str | None, as_json: bool) -> None:
    """Print how many messages were read and how many tokens were learned."""
    table = learned.classifier.table
    n_docs = output.class_counts_of(table.classes, table.class_count)
    _warn_of_reports(table)
    facts = {
        "model": model_path,
        "kept": kept,
        "read": n_docs,
        "tokens": len(table.vocabulary),
        "forgotten": output.loss_json(table.loss),
        **output.columns_read_json(learned.classifier.settings.columns),
        "skipped": output.skipped_json(learned.skipped),
        "repeated": learned.repeated,
    }
    noun, sent = learned.classifier.noun, learned.classifier.settings.sent_mail
    again = f", {learned.repeated:,} more than once" if learned.repeated else ""
    failed = f", skipped {len(learned.skipped):,}" if learned.skipped else ""
    output.echo_result(
        as_json,
        facts,
        f"read {output.total_text(n_docs, noun)}{again}{failed}",
        *output.columns_read_lines(learned.classifier.settings.columns),
        *([f"forgot {output.loss_text(table.loss, noun)}"] if table.loss else []),
        *([f"learned {sent.in_words}"] if sent else []),
        f"learned {amount_text(len(table.vocabulary), 'tokens')}; model in {model_path}",
    )


def _warn_of_reports(table: "CountTable") -> None:
    """Warn if much of the mail stands in reports of SpamAssassin: they are learned, not it."""
    from nbspam.tokens.definition import Token, reference_key

    wrapped = reference_key(Token("mime", b"x-spam-type"))
    n_wrapped = int(table.document_frequency[table.vocabulary.keys == wrapped].sum())
    if 10 * n_wrapped > min(table.class_count):
        output.warn(
            f"train: reports of SpamAssassin around {amount_text(n_wrapped, 'messages')}, so that"
            " spam without one is missed; take them off by `spamassassin -d`, and train again"
        )


def rounds_json(steps: "Iterable[Step]") -> dict[str, object]:
    """Return the rounds of EM, for JSON."""
    return {"rounds": [asdict(step) for step in steps]}


def show_rounds(steps: "Iterable[Step]", is_asked_for: bool = False) -> None:
    """Print the rounds of EM under a row of headings; with -q only if they are asked for."""
    if is_quiet() and not is_asked_for:
        return
    rows = [("round", "log-likelihood", "log-posterior", "gain of Q", "largest change")]
    for number, step in enumerate(steps):
        likelihoods = f"{step.log_likelihood:#.7g}", f"{step.log_posterior:#.7g}"
        rows.append((str(number), *likelihoods, f"{step.gain:z.4f}", f"{step.change:.6f}"))
    output.echo_rows(rows)


def _show_rounds(report: "EMReport", model_path: str, kept: str | None, as_json: bool) -> None:
    """Print the numbers of documents, how the weight was chosen, and each round of EM."""
    n_tokens, steps = len(report.classifier.table.vocabulary), report.fit.steps
    facts = {
        "model": model_path,
        "kept": kept,
        "labelled": report.n_labelled,
        "unlabelled": report.n_unlabelled,
        "weight": report.weight,
        "held_out_accuracy": {f"{w:g}": a for w, a in report.accuracy.items()},
        **rounds_json(steps),
        "tokens": n_tokens,
        **output.columns_read_json(report.classifier.settings.columns),
        "skipped": output.skipped_json(report.skipped),
    }
    tried = ", ".join(f"{w:g}: {100 * a:.1f} %" for w, a in report.accuracy.items())
    chosen = f" (held-out accuracy by weight {tried})" if tried else ""
    if not as_json:
        show_rounds(steps)
    output.echo_result(
        as_json,
        facts,
        f"read {report.n_labelled:,} labelled, {report.n_unlabelled:,} unlabelled",
        *output.columns_read_lines(report.classifier.settings.columns),
        f"an unlabelled document counts {report.weight:g}{chosen}",
        f"learned {amount_text(n_tokens, 'tokens')}; model in {model_path}",
    )


@subcommand("shard", "--output", "--spam", "--ham", "--label")
@click.argument("shard", type=options.SHARD, metavar="I/N")
@inputs.corpus_and_sent_options
@options.output_option("The file of the part to write.")
@training_options.part_options
@options.workers_options
@options.strict_option
@options.json_option
def shard_command(
    shard: tuple[int, int],
    corpus: inputs.LabelledSources,
    output_path: str,
    training: SettingsChoices,
    jobs: "Workers",
    strict: bool,
    as_json: bool,
) -> None:
    """Count one of N shards of labelled mail, and write a part of a model.

    The I-th of N jobs counts each N-th item, beginning with the I-th.  All jobs are given the
    same sources and options.  `nbspam merge` makes from all parts the model that `nbspam
    train` would make from everything.

    \b
    nbspam shard 3/8 mails/ -o part.3
    nbspam merge part.* -o model.nbspam
    """
    import_module("numpy")  # as in `learn_sources`
    from nbspam.counts.shards import Shard, count_shard
    from nbspam.store.merging import save_part

    settings, items = corpus.settings_and_items(training)
    if settings.model in FEATURES:
        raise UsageError(
            f"shard: --model {settings.model} needs all documents at once; use: nbspam train"
        )
    counted, skipped = count_shard(items, settings, Shard(*shard), jobs)
    output.report_skipped(skipped, strict)
    kept = output.report_kept(save_part(output_path, counted, settings))
    _show_part(counted, settings, skipped, output_path, kept, as_json)


def _show_part(
    counted: "CountedShard",
    settings: Settings,
    skipped: "tuple[Skipped, ...]",
    path: str,
    kept: str | None,
    as_json: bool,
) -> None:
    """Print the number of messages read, and describe the part."""
    table, n_items = counted.table, counted.census.n_items
    n_docs = output.class_counts_of(table.classes, table.class_count)
    facts = {
        "model": path,
        "kept": kept,
        "shard": list(counted.shard),
        "items": n_items,
        "read": n_docs,
        "tokens": len(table.vocabulary),
        **output.columns_read_json(settings.columns),
        "skipped": output.skipped_json(skipped),
    }
    failed = f", skipped {len(skipped):,}" if skipped else ""
    classes = f" ({output.counts_text(n_docs)})" if n_docs else ""
    output.echo_result(
        as_json,
        facts,
        f"read {table.n_docs:,} of {amount_text(n_items, settings.noun)}{classes}{failed}",
        *output.columns_read_lines(settings.columns),
        f"counted {amount_text(len(table.vocabulary), 'tokens')}; part {counted.shard} in {path}",
    )


@subcommand("vectorize", "--output", "--binary", "--vocabulary", "--min-df")
@inputs.corpus_options
@options.output_option("The .npz or .csv file to write.")
@click.option("--binary", is_flag=True, help="Write whether a token occurs, and not how often.")
@training_options.vocabulary_option
@training_options.min_df_option
@options.filling(
    SettingsChoices,
    "choices",
    training_options.preset_option,
    training_options.pairs_option,
    training_options.characters_option,
    training_options.attachments_option,
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
    column for each token, and the array `labels` for `numpy.load`; or, if its name ends in .csv,
    a table for `nbspam table`, with a last column `label`.

    \b
    nbspam vectorize mails/ -o mails.npz > words.txt
    nbspam vectorize more/ -o more.npz --vocabulary words.txt > /dev/null
    """
    from nbspam.counts.corpus import vectors_of, write_vectors

    output.check_place("--output", output_path)
    if not output_path.endswith((".npz", ".csv")):
        raise UsageError(f"--output {output_path}: neither .npz nor .csv; give such a name")
    items = corpus.items()
    found = vectors_of(items, choices, binary, vocabulary, min_df or 1, jobs)
    output.report_skipped(found.skipped, strict)
    write_vectors(found, output_path)
    output.echo_rows((token,) for token in found.vocabulary)


@subcommand("lazy", "--fp-cost", "--unsure-cost", "--model", "--json")
@click.argument("corpus")
@inputs.sources_argument
@options.decision_options
@inputs.reading_options
@training_options.training_options
@training_options.vocabulary_option
@options.jobs_option
@options.json_option
def lazy_command(
    corpus: str,
    sources: tuple[str, ...],
    decision: options.Decision,
    reading: SourceOptions,
    training: SettingsChoices,
    vocabulary: list[str] | None,
    jobs: int,
    as_json: bool,
) -> int:
    """Classify by a labelled CORPUS, without a model file.

    This is lazy learning: every call counts the corpus again, so messages that were added or
    removed since need no training.  The answers are, bit by bit, those of `nbspam train
    CORPUS` and `nbspam classify`.

    \b
    nbspam lazy mails/ message.eml
    """
    learned = inputs.LabelledSources((corpus,), reading, inputs.NO_LABELS)
    bounds = Bounds(vocabulary=vocabulary)
    classifier = learn_sources(learned, training, jobs, bounds=bounds).classifier
    reading = reading._replace(label_column=None)  # judged rows need no classes
    return print_answers(inputs.asked_of(classifier, sources, reading, decision), jobs, as_json)

"""nbspam lazy: answers from a labelled corpus, counted when the question comes."""

from typing import Any

import click

from nbspam.commands.shared import (
    cores,
    decision_options,
    decision_rule,
    echo_rows,
    format_options,
    jobs_option,
    json_line,
    json_option,
    peek,
    read_sources,
    report_skipped,
    settings_for,
    training_options,
    verdict_json,
)


@click.command("lazy")
@click.argument("corpus")
@click.argument("sources", nargs=-1, metavar="[SOURCE]...")
@decision_options
@format_options
@training_options
@jobs_option
@json_option
def command(
    corpus: str, sources: tuple[str, ...], jobs: int | None, as_json: bool, **options: Any
) -> None:
    """Classify messages by a labelled CORPUS, without a model file.

    Lazy learning: the corpus is counted anew when the question comes, so that what was
    added or taken away since needs no training.  The answers are, to the bit, those of
    `nbspam train CORPUS` and `nbspam classify`.

    \b
    nbspam lazy mails/ message.eml
    nbspam lazy tickets.csv new.csv --json
    """
    from nbspam.sources import Skipped
    from nbspam.training import count_items, train

    reading = {name: options[name] for name in ("format_", "text_column", "label_column")}
    decisions = {name: options.pop(name) for name in ("fp_cost", "unsure_cost", "loss_path")}
    is_text, items = peek(read_sources([corpus], options))
    settings = settings_for(is_text, options)
    training = count_items(items, settings, cores(jobs))
    report_skipped(training.skipped)
    classifier = train(training, settings)
    rule = decision_rule(classifier, decisions)
    skipped = []
    for answer in classifier.classify(read_sources(sources, reading), cores(jobs), rule):
        if isinstance(answer, Skipped):
            skipped.append(answer)
        elif as_json:
            click.echo(json_line(verdict_json(answer)))
        else:
            echo_rows([(answer.label, f"{answer.probability:.6f}", answer.name)])
    report_skipped(skipped)

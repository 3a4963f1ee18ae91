"""nbspam tune: cutoffs for the costs of mistakes, found on the user's own mail."""

from typing import TYPE_CHECKING

import click

from nbspam.cli.arguments import items_of, loaded_tokens
from nbspam.cli.command import Command, titled
from nbspam.cli.options import (
    JUDGING,
    Labels,
    engine_option,
    folds_option,
    fp_cost_option,
    jobs_option,
    json_option,
    label_options,
    model_option,
    reading_options,
    seed_option,
    sources_argument,
    strict_option,
    unsure_cost_option,
)
from nbspam.cli.output import echo_json, report_skipped, save_cutoffs
from nbspam.sources.items import SourceOptions

if TYPE_CHECKING:
    from nbspam.evaluation.tuning import TradeOff, Tuning
    from nbspam.parallel import Workers


@click.command("tune", cls=Command)
@sources_argument
@model_option
@fp_cost_option
@unsure_cost_option
@titled(JUDGING, folds_option, seed_option("the folds"))
@click.option(
    "--save",
    "is_kept",
    is_flag=True,
    help="Keep the cutoffs in the model file, for `nbspam classify`.",
)
@label_options
@reading_options
@jobs_option
@engine_option
@strict_option
@json_option
def command(
    sources: tuple[str, ...],
    model_path: str,
    fp_cost: float | None,
    unsure_cost: float | None,
    cv: int | str,
    seed: int,
    is_kept: bool,
    labels: Labels,
    reading: SourceOptions,
    jobs: "Workers",
    strict: bool,
    as_json: bool,
) -> None:
    """Find the cutoffs with the least cost on labelled mail, and show the trade-off.

    The mail may be what the model was trained on: it is judged by cross-validation with the
    settings of the model.  The cutoffs that follow from the costs are chosen, unless others
    are cheaper on held-out mail: those found on all folds but one, applied to that fold.
    With --save the model keeps the chosen cutoffs and their costs until it is tuned again.

    \b
    nbspam tune mails/ --fp-cost 20
    nbspam tune mails/ --fp-cost 20 --unsure-cost 0.2 --save
    """
    from nbspam.evaluation.tuning import tune_classifier

    classifier = loaded_tokens(model_path)
    items = items_of(sources, reading, labels)
    tuned = tune_classifier(classifier, items, fp_cost, unsure_cost, cv, seed, jobs)
    report_skipped(tuned.skipped, strict)
    if is_kept:
        save_cutoffs(tuned.tuning.chosen.cutoffs, model_path)
    if as_json:
        echo_json(_values(tuned.tuning))
        return
    click.echo(_text(tuned.tuning, classifier.noun))
    click.echo(f"kept in {model_path}" if is_kept else "--save keeps them in the model")


def _text(tuning: "Tuning", noun: str) -> str:
    """Return a tuning as text; noun: what was judged, in the plural."""
    costs = tuning.derived.cutoffs
    priced = "" if costs.unsure_cost is None else f", unsure {costs.unsure_cost:g}"
    lines = [
        f"{tuning.n_docs:,} {noun}; a miss costs 1, ham called spam {costs.fp_cost:g}{priced}",
        "",
        f"{'spam from':>10}{'ham up to':>11}{'fp':>8}{'fn':>8}{'unsure':>8}{'cost':>12}",
    ]
    lines += [_row(row) + _mark(row, tuning) for row in tuning.table]
    lines += [
        "",
        f"by the costs  {_cutoffs(tuning.derived)}   cost {tuning.derived.cost:,.1f}",
        f"found         {_cutoffs(tuning.found)}   cost {tuning.found.cost:,.1f};"
        f" on mail it was not found on {tuning.held_out_cost:,.1f}",
        f"chosen        {_cutoffs(tuning.chosen)}",
    ]
    return "\n".join(lines)


def _row(row: "TradeOff") -> str:
    cutoffs, false_positives, false_negatives, unsure, cost = row
    return (
        f"{cutoffs.spam:>10.4f}{cutoffs.ham:>11.4f}{false_positives:>8,}{false_negatives:>8,}"
        f"{unsure:>8,}{cost:>12,.1f}"
    )


def _mark(row: "TradeOff", tuning: "Tuning") -> str:
    """Return a remark if a row has the spam cutoff of the costs, or the one found."""
    names = {"by the costs": tuning.derived, "found": tuning.found}
    marks = [name for name, each in names.items() if each.cutoffs.spam == row.cutoffs.spam]
    return "  " + ", ".join(marks) if marks else ""


def _cutoffs(row: "TradeOff") -> str:
    spam, ham = row.cutoffs.spam, row.cutoffs.ham
    return f"spam from {spam:.4f}" + (f", ham up to {ham:.4f}" if ham < spam else "")


def _values(tuning: "Tuning") -> dict[str, object]:
    """Return a tuning for JSON."""

    def values(row: "TradeOff") -> dict[str, object]:
        return {**row._asdict(), "cutoffs": row.cutoffs._asdict()}

    return {
        "n_docs": tuning.n_docs,
        "by_costs": values(tuning.derived),
        "found": values(tuning.found),
        "held_out_cost": tuning.held_out_cost,
        "chosen": values(tuning.chosen),
        "table": [values(row) for row in tuning.table],
    }

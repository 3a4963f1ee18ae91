"""nbspam tune: cutoffs for the costs of mistakes, on the user's own mail."""

from typing import Any

import click

from nbspam.cli.arguments import cores, read_sources
from nbspam.cli.options import (
    format_options,
    jobs_option,
    json_option,
    label_options,
    model_option,
    sources_argument,
    strict_option,
)
from nbspam.cli.output import echo_json, report_skipped


@click.command("tune")
@sources_argument
@model_option
@click.option(
    "--fp-cost",
    type=float,
    metavar="NUMBER",
    help="Of ham called spam; a miss costs 1.  [default: 2]",
)
@click.option(
    "--unsure-cost",
    type=float,
    metavar="NUMBER",
    help="Of the answer unsure, then given too.",
)
@click.option("--cv", type=int, default=10, show_default=True, metavar="K", help="In K folds.")
@click.option(
    "--seed",
    type=click.IntRange(min=0),
    metavar="N",
    default=0,
    show_default=True,
    help="Of folds.",
)
@click.option("--save", is_flag=True, help="Keep the cutoffs in the model, for `classify`.")
@label_options
@format_options
@jobs_option
@strict_option
@json_option
def command(
    sources: tuple[str, ...],
    model_path: str,
    fp_cost: float | None,
    unsure_cost: float | None,
    cv: int,
    seed: int,
    save: bool,
    jobs: int | None,
    strict: bool,
    as_json: bool,
    **options: Any,
) -> None:
    """Find the cutoffs that cost least on labelled mail, and show the trade-off.

    The mail, say that the model was trained on, is judged by cross-validation with the
    model's settings.  The costs mean cutoffs by themselves; others are chosen if such
    ones, found on the rest, cost less on every fold together.  With --save the model
    keeps the chosen ones, with their costs, until it is tuned again.

    \b
    nbspam tune mails/ --fp-cost 20
    nbspam tune mails/ --fp-cost 20 --unsure-cost 0.2 --save
    """
    from nbspam.decision import FP_COST, cutoffs
    from nbspam.evaluation.judging import judge_folds
    from nbspam.evaluation.tuning import tune
    from nbspam.store.model import keep_cutoffs
    from nbspam.store.open import load_tokens as load

    derived = cutoffs(FP_COST if fp_cost is None else fp_cost, unsure_cost)
    classifier = load(model_path)
    trial = judge_folds(read_sources(sources, options), classifier.settings, cv, seed, cores(jobs))
    report_skipped(trial.skipped, strict)
    tuning = tune(trial, derived)
    if save:
        keep_cutoffs(model_path, tuning.chosen.cutoffs)
    if as_json:
        echo_json(_values(tuning), indent=2)
        return
    click.echo(_text(tuning))
    click.echo(f"kept in {model_path}" if save else "--save keeps them in the model")


def _text(tuning: Any) -> str:
    """Return a tuning for people."""
    costs = tuning.derived.cutoffs
    priced = "" if costs.unsure_cost is None else f", unsure {costs.unsure_cost:g}"
    lines = [
        f"{tuning.n_docs:,} messages; a miss costs 1, ham called spam {costs.fp_cost:g}{priced}",
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


def _row(row: Any) -> str:
    cutoffs, false_positives, false_negatives, unsure, cost = row
    return (
        f"{cutoffs.spam:>10.4f}{cutoffs.ham:>11.4f}{false_positives:>8,}{false_negatives:>8,}"
        f"{unsure:>8,}{cost:>12,.1f}"
    )


def _mark(row: Any, tuning: Any) -> str:
    """Return what is to be said of a row: whose spam cutoff it has."""
    names = {"by the costs": tuning.derived, "found": tuning.found}
    marks = [name for name, each in names.items() if each.cutoffs.spam == row.cutoffs.spam]
    return "  " + ", ".join(marks) if marks else ""


def _cutoffs(row: Any) -> str:
    spam, ham = row.cutoffs.spam, row.cutoffs.ham
    return f"spam from {spam:.4f}" + (f", ham up to {ham:.4f}" if ham < spam else "")


def _values(tuning: Any) -> dict[str, Any]:
    def values(row: Any) -> dict[str, Any]:
        return {**row._asdict(), "cutoffs": row.cutoffs._asdict()}

    return {
        "n_docs": tuning.n_docs,
        "by_costs": values(tuning.derived),
        "found": values(tuning.found),
        "held_out_cost": tuning.held_out_cost,
        "chosen": values(tuning.chosen),
        "table": [values(row) for row in tuning.table],
    }

"""What `nbspam train --unlabelled` adds to training: options, and its own report.

Secret: which of training's options EM can have.
"""

from typing import Any

import click

from nbspam.cli.arguments import peek, read_sources, settings_for
from nbspam.cli.options import options_in_order
from nbspam.cli.output import echo_json, echo_rows
from nbspam.errors import UsageError

NAMES = ("unlabelled", "unlabelled_weight", "hard")


unlabelled_options = options_in_order(
    click.option(
        "--unlabelled",
        multiple=True,
        metavar="PATH",
        help="Learn from these too, by EM; labels in there play no part.",
    ),
    click.option(
        "--unlabelled-weight",
        metavar="NUMBER|auto",
        help="Documents that one of them counts as  [default: auto, by cross-validation]",
    ),
    click.option("--hard", is_flag=True, help="EM gives each of them to one class whole."),
)


def train_unlabelled(sources: tuple[str, ...], options: dict[str, Any], jobs: int) -> Any:
    """Return the report of training with the options given, or None without --unlabelled.

    Takes its own options out of `options`, and all of them if it trains.
    """
    paths, weight, hard = (options.pop(name) for name in NAMES)
    if not paths:
        if weight is not None or hard:
            raise UsageError("--unlabelled-weight, --hard: for --unlabelled PATH; give it too")
        return None
    from nbspam.classifier.unlabelled import em_settings, train_with_unlabelled

    reading = {name: options[name] for name in ("format_", "text_column", "label_column")}
    is_text, items = peek(read_sources(sources, options))
    choices = {name: value for name, value in options.items() if value is not None}
    # A model that is named is a plain one, of the tokens that plain models have.
    plain = {**options, "model": options["model"] or "multinomial"}
    settings = em_settings(settings_for(is_text, plain), choices)
    others = read_sources(paths, reading)
    return train_with_unlabelled(items, others, settings, _weight(weight), hard, jobs)


def _weight(text: str | None) -> float | None:
    if text is None or text == "auto":
        return None
    try:
        weight = float(text)
    except ValueError:
        weight = -1.0
    if not 0 <= weight < float("inf"):
        raise UsageError(f"--unlabelled-weight {text}: not a number from 0 up; give one, or auto")
    return weight


def show_report(report: Any, model_path: str, as_json: bool) -> None:
    """Print what was read, how the weight was chosen, and each round."""
    table = report.classifier.table
    steps = report.fit.steps
    if as_json:
        rows = [
            {"log_likelihood": s.log_likelihood, "gain": s.gain, "change": s.change} for s in steps
        ]
        echo_json(
            {
                "model": model_path,
                "labelled": report.n_labelled,
                "unlabelled": report.n_unlabelled,
                "weight": report.weight,
                "held_out_accuracy": {f"{w:g}": a for w, a in report.accuracy.items()},
                "rounds": rows,
                "tokens": len(table.vocabulary),
                "skipped": [{"name": s.name, "reason": s.reason} for s in report.skipped],
            }
        )
        return
    tried = ", ".join(f"{w:g}: {a:.1%}" for w, a in report.accuracy.items())
    chosen = f" (held-out accuracy by weight {tried})" if tried else ""
    echo_rows([("round", "log-likelihood", "gain of Q", "largest change")])
    echo_rows(
        (str(n), f"{s.log_likelihood:.1f}", f"{s.gain:.1f}", f"{s.change:.6f}")
        for n, s in enumerate(steps)
    )
    echo_rows(
        [
            (f"read {report.n_labelled:,} labelled, {report.n_unlabelled:,} unlabelled",),
            (f"an unlabelled document counts {report.weight:g}{chosen}",),
            (f"learned {len(table.vocabulary):,} tokens; model in {model_path}",),
        ]
    )

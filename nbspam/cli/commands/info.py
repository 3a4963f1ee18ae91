"""nbspam info: the contents of a model file."""

import os
import sys
from typing import TYPE_CHECKING, cast

import click

from nbspam.cli.arguments import loaded, schema_of
from nbspam.cli.command import Command
from nbspam.cli.options import json_option, model_option
from nbspam.cli.output import counts_of, counts_text, echo_json, echo_rows, loss_json, loss_text
from nbspam.cli.tables import columns_read_json

if TYPE_CHECKING:
    from nbspam.classifier.classifier import Classifier
    from nbspam.tables.classifier import TableClassifier


@click.command("info", cls=Command)
@model_option
@json_option
def command(model_path: str, as_json: bool) -> None:
    """Verify a model file, and show its training data and settings.

    Of the model of a table, also what it has estimated: class priors, tables of categories with
    their counts, means and standard deviations, and which columns depend on which.

    \b
    nbspam info
    nbspam info -m mail.nbspam --json
    """
    classifier = loaded(model_path)
    n_bytes = os.path.getsize(model_path)
    if schema_of(classifier) is not None:
        _show_table(cast("TableClassifier", classifier), model_path, n_bytes, as_json)
    else:
        _show(cast("Classifier", classifier), model_path, n_bytes, as_json)


def _show(classifier: "Classifier", model_path: str, n_bytes: int, as_json: bool) -> None:
    """Print what a model of mail or text was trained on and with."""
    table, settings = classifier.table, classifier.settings.to_dict()
    n_docs, n_tokens = counts_of(table.classes, table.class_count), len(table.vocabulary)
    if as_json:
        facts = {"model": model_path, "bytes": n_bytes, "read": n_docs, "tokens": n_tokens}
        facts["forgotten"] = loss_json(table.loss)
        cutoffs = getattr(classifier, "cutoffs", None)
        echo_json({**facts, "settings": settings, "cutoffs": cutoffs and cutoffs._asdict()})
        return
    settings |= settings.pop("parameters", {})
    settings |= settings.pop("tokens")
    if settings.pop("columns", None):
        settings |= columns_read_json(classifier.settings.columns)
    echo_rows(
        [
            ("file", f"{model_path} ({n_bytes:,} bytes, verified)"),
            ("trained", f"{table.n_docs:,} {classifier.noun} ({counts_text(n_docs)})"),
            ("tokens", f"{n_tokens:,}"),
            *([("forgotten", loss_text(table.loss))] if table.loss else []),
            ("decision", _decision(classifier)),
            *((name, _shown(value)) for name, value in settings.items()),
        ]
    )


def _show_table(
    classifier: "TableClassifier", model_path: str, n_bytes: int, as_json: bool
) -> None:
    """Print what the model of a table was trained on, and what it has estimated."""
    from nbspam.cli.estimates import info_lines, json_pieces
    from nbspam.printing import write_lines

    if as_json:
        first = {"model": model_path, "bytes": n_bytes}
        sys.stdout.writelines(json_pieces(classifier, whole=False, first=first))
    else:
        file = f"{model_path} ({n_bytes:,} bytes, verified)"
        write_lines(info_lines(classifier, file), sys.stdout)


def _shown(value: object) -> str:
    """Return a setting in words."""
    if isinstance(value, (list, tuple)):
        return ", ".join(map(str, value)) or "no"
    if value is None or isinstance(value, bool):
        return "yes" if value else "no"
    return str(value)


def _decision(classifier: "Classifier") -> str:
    """Return how the model decides by default."""
    from nbspam.decision import Cutoffs

    if classifier.lack is not None:
        return classifier.lack
    rule = classifier.rule
    if not isinstance(rule, Cutoffs):
        return "the most probable class"
    is_tuned = getattr(classifier, "cutoffs", None) is not None
    origin = "kept by `nbspam tune`" if is_tuned else "by the costs"
    unsure = "" if rule.unsure_cost is None else f", ham up to {rule.ham:.4f}, unsure between"
    return f"spam from {rule.spam:.4f}{unsure}; {origin}"

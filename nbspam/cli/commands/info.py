"""nbspam info: what is in a model file."""

import os
from typing import Any

import click

from nbspam.cli import tables
from nbspam.cli.options import json_option, model_option
from nbspam.cli.output import echo_json, echo_rows


@click.command("info")
@model_option
@json_option
def command(model_path: str, as_json: bool) -> None:
    """Show what a model was trained on and with, having verified the file.

    \b
    nbspam info
    nbspam info -m mail.nbspam --json
    """
    from nbspam.store.open import load
    from nbspam.tables.classifier import TableClassifier

    classifier: Any = load(model_path)
    if isinstance(classifier, TableClassifier):
        tables.info(classifier, model_path, os.path.getsize(model_path), as_json)
        return
    table = classifier.table
    settings = classifier.settings.to_dict()
    n_docs = {c: int(n) for c, n in zip(table.classes, table.class_count, strict=True)}
    facts = {
        "model": model_path,
        "bytes": os.path.getsize(model_path),
        "read": n_docs,
        "tokens": len(table.vocabulary),
        "settings": settings,
    }
    if as_json:
        cutoffs = getattr(classifier, "cutoffs", None)
        echo_json({**facts, "cutoffs": cutoffs and cutoffs._asdict()}, indent=2)
        return
    counts = ", ".join(f"{n:,} {name}" for name, n in n_docs.items())
    settings |= settings.pop("parameters", {})
    settings |= settings.pop("tokens")
    echo_rows(
        [
            ("file", f"{model_path} ({facts['bytes']:,} bytes, verified)"),
            ("trained", f"{table.n_docs:,} messages ({counts})"),
            ("tokens", f"{facts['tokens']:,}"),
            ("decision", _decision(classifier)),
            *((name, _shown(value)) for name, value in settings.items()),
        ]
    )


def _shown(value: Any) -> str:
    """Return a setting as people read it."""
    if isinstance(value, (list, tuple)):
        return ", ".join(map(str, value)) or "no"
    if value is None or isinstance(value, bool):
        return "yes" if value else "no"
    return str(value)


def _decision(classifier: Any) -> str:
    """Return how the model decides unless told otherwise."""
    rule = classifier.rule
    if not hasattr(rule, "spam"):
        return "the most probable class"
    whence = (
        "by the costs" if getattr(classifier, "cutoffs", None) is None else "kept by `nbspam tune`"
    )
    unsure = "" if rule.unsure_cost is None else f", ham up to {rule.ham:.4f}, unsure between"
    return f"spam from {rule.spam:.4f}{unsure}; {whence}"

"""The options and arguments that several commands have.

Secret: what they are called, and what help says of them.
"""

import os
import sys
from collections.abc import Callable
from functools import reduce
from typing import Any

import click

from nbspam.models.registry import ESTIMATORS

Command = Callable[..., Any]


def default_model_path() -> str:
    """Return where the model lives unless told otherwise: the user's data folder."""
    if sys.platform == "win32":
        base = os.environ.get("LOCALAPPDATA") or os.path.expanduser("~")
    elif sys.platform == "darwin":
        base = os.path.expanduser("~/Library/Application Support")
    else:
        base = os.environ.get("XDG_DATA_HOME") or os.path.expanduser("~/.local/share")
    return os.path.join(base, "nbspam", "model.nbspam")


model_option = click.option(
    "-m",
    "--model-file",
    "model_path",
    envvar="NBSPAM_MODEL",
    default=default_model_path,
    metavar="FILE",
    show_default="in the user's data folder",
    help="The model; also $NBSPAM_MODEL.",
)
json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
strict_option = click.option(
    "--strict", is_flag=True, help="Fail at the first item that cannot be read."
)
jobs_option = click.option(
    "-j",
    "--jobs",
    type=click.IntRange(min=1),
    default=None,
    metavar="N",
    help="Processes at work  [default: one a core]",
)
sources_argument = click.argument("sources", nargs=-1, metavar="[SOURCE]...")


def options_in_order(*options: Callable[[Command], Command]) -> Callable[[Command], Command]:
    """Return a decorator that adds several options, shown in this order."""
    return lambda command: reduce(lambda made, option: option(made), reversed(options), command)


format_options = options_in_order(
    click.option("--format", "format_", metavar="NAME", help="What SOURCE is: eml, mbox, csv, …"),
    click.option("--text-column", metavar="NAME", help="A table's column of texts."),
    click.option("--label-column", metavar="NAME", help="A table's column of classes."),
)
label_options = options_in_order(
    click.option("--spam", multiple=True, metavar="PATH", help="All of PATH is spam."),
    click.option("--ham", multiple=True, metavar="PATH", help="All of PATH is ham."),
    click.option("--label", multiple=True, metavar="NAME=PATH", help="All of PATH is NAME."),
)
decision_options = options_in_order(
    click.option("--fp-cost", metavar="NUMBER", help="Of ham called spam; a miss costs 1."),
    click.option("--unsure-cost", metavar="NUMBER", help="Of the answer unsure, then given too."),
    click.option("--loss", "loss_path", metavar="FILE", help="Answers and their costs, as JSON."),
)
prior_option = click.option(
    "--prior",
    "stated",
    multiple=True,
    metavar="NAME=P",
    help="How common a class is where you are, as spam=0.8; classify and eval also take"
    " `estimated`: by the mail itself.  [default: as in training]",
)
training_options = options_in_order(
    click.option(
        "--preset",
        type=click.Choice(["mail", "text", "tutorial"]),
        help="Settings as a whole  [default: mail, or text for tables]",
    ),
    click.option(
        "--model",
        type=click.Choice(list(ESTIMATORS)),
        metavar="NAME",
        help="Sums all evidence: bernoulli, multinomial, complement.  Lets few tokens depend on"
        " each other: spode, tan, aode, a2de, network.  Tables: these, categorical, gaussian,"
        " mixed.",
    ),
    click.option("--alpha", metavar="NUMBER|auto", help="Lidstone smoothing; 1 is Laplace's."),
    click.option(
        "--class-prior",
        metavar="estimated|uniform|smoothed|P,P,…",
        help="Prior probabilities, in the order of the class names.",
    ),
    click.option(
        "--weighting",
        type=click.Choice(["presence", "counts", "unit-length", "log-length", "tf-idf"]),
        help="What a repeated token counts.",
    ),
    click.option("--pairs/--no-pairs", default=None, help="Pairs of neighbouring words too."),
    click.option(
        "--characters/--no-characters", default=None, help="Runs of 1 to 5 characters too."
    ),
    click.option(
        "--strip",
        metavar="PART,PART,…",
        help="Read texts without their headers, footers or quotes.",
    ),
    click.option(
        "--min-df",
        type=click.IntRange(min=1),
        metavar="N",
        help="Drop tokens in fewer than N documents.",
    ),
    click.option(
        "--max-features",
        "--features",
        "max_features",
        type=click.IntRange(min=1),
        metavar="N",
        help="Keep the N tokens that tell most about the class.",
    ),
    click.option(
        "--estimate",
        type=click.Choice(["mle", "map", "mean"]),
        help="Tables, spode to network: how counts become probabilities; --alpha is the prior's."
        "  [default: mean]",
    ),
    click.option(
        "--min-support",
        type=click.FloatRange(min=0, min_open=True),
        metavar="N",
        help="aode, a2de: values in fewer than N documents are no parents.  [default: 1]",
    ),
    click.option(
        "--parent", metavar="COLUMN", help="spode of a table: the column all others depend on."
    ),
    click.option(
        "--criterion",
        type=click.Choice(["bic", "aic", "mdl", "likelihood"]),
        help="network: what its graph is chosen by.  [default: bic]",
    ),
    click.option(
        "--start",
        type=click.Choice(["tree", "naive", "empty"]),
        help="network: the graph to start from.  [default: tree]",
    ),
    click.option("--climb/--no-climb", default=None, help="network: change the graph from there."),
    click.option(
        "--max-parents",
        type=click.IntRange(min=1),
        metavar="N",
        help="network: of a variable at most N.  [default: 3, where tables stay small]",
    ),
)

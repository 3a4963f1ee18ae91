"""Options and arguments that several commands share, and the values that they fill.

`@reading_options` adds --format, --text-column and --label-column to a command, which gets
all three as one value `reading`.  Such values are NamedTuples, of this module or of the
library: a dataclass takes 1.6 ms or more to define, at every start.

Secret: the names of options, and their help.
"""

import os
import sys
from collections.abc import Callable
from functools import wraps
from inspect import signature
from typing import Any, NamedTuple

import click

from nbspam.cli.values import (
    ALPHA,
    CLASS_PRIOR,
    COST,
    NAMED_PATH,
    PARTS,
    SHARE,
    SHARE_OR_ESTIMATED,
    WEIGHT,
    shares,
)
from nbspam.models.registry import ESTIMATORS
from nbspam.settings import (
    PRESETS,
    WEIGHTINGS,
    Choices,
    TableChoices,
)
from nbspam.sources.items import SourceOptions

Command = Callable[..., Any]
Decorator = Callable[[Command], Command]


class Labels(NamedTuple):
    """Paths whose class is stated on the command line."""

    spam: tuple[str, ...] = ()
    ham: tuple[str, ...] = ()
    named: tuple[tuple[str, str], ...] = ()  # class and path

    @property
    def paths(self) -> list[tuple[str, str]]:
        """Every class and path."""
        spam, ham = (("spam", path) for path in self.spam), (("ham", path) for path in self.ham)
        return [*spam, *ham, *self.named]


class Decision(NamedTuple):
    """What decisions cost, as far as it is stated; a miss costs 1."""

    fp_cost: float | None = None
    unsure_cost: float | None = None
    loss: str | None = None  # the path of a file with all costs


class Unlabelled(NamedTuple):
    """Documents without labels to train on by EM."""

    paths: tuple[str, ...] = ()
    weight: float | str | None = None  # None and "auto": by cross-validation
    hard: bool = False


def default_model_path() -> str:
    """Return the default path of the model, in the user's data folder."""
    if sys.platform == "win32":
        base = os.environ.get("LOCALAPPDATA") or os.path.expanduser("~")
    elif sys.platform == "darwin":
        base = os.path.expanduser("~/Library/Application Support")
    else:
        base = os.environ.get("XDG_DATA_HOME") or os.path.expanduser("~/.local/share")
    return os.path.join(base, "nbspam", "model.nbspam")


def filling(kind: Callable[..., Any], name: str, *declared: Decorator) -> Decorator:
    """Return a decorator that adds options, whose values the command gets as one.

    kind: a type with a field for every option.  name: the command's parameter.
    """

    def decorated(command: Command) -> Command:
        @wraps(command)
        def filled(**values: Any) -> Any:
            own = kind(**{each: values.pop(each) for each in signature(kind).parameters})
            return command(**values, **{name: own})

        made: Command = filled
        for option in reversed(declared):  # click lists the last one first
            made = option(made)
        return made

    return decorated


def cores(_: click.Context, __: click.Parameter, jobs: int | None) -> int:
    """Return the number of processes that --jobs says, or else one for each core."""
    from nbspam.parallel import available_cores

    return jobs or available_cores()


sources_argument = click.argument("sources", nargs=-1, metavar="[SOURCE]...")
model_option = click.option(
    "-m",
    "--model-file",
    "model_path",
    envvar="NBSPAM_MODEL",
    default=default_model_path,
    metavar="FILE",
    show_default="in the user's data folder",
    help="The model file; the environment variable NBSPAM_MODEL sets it too.",
)
json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
strict_option = click.option(
    "--strict", is_flag=True, help="Fail if an item cannot be read, instead of skipping it."
)
jobs_option = click.option(
    "-j",
    "--jobs",
    type=click.IntRange(min=1),
    callback=cores,
    metavar="N",
    help="Number of processes.  [default: one for each core]",
)
prior_option = click.option(
    "--prior",
    type=SHARE,
    multiple=True,
    callback=shares,
    metavar="NAME=P",
    help="Share of a class in the mail to be judged, as in spam=0.8.  [default: as in training]",
)
prior_or_estimated_option = click.option(
    "--prior",
    type=SHARE_OR_ESTIMATED,
    multiple=True,
    callback=shares,
    metavar="NAME=P|estimated",
    help="Share of a class in the mail to be judged, as in spam=0.8; `estimated` finds the"
    " shares from that mail.  [default: as in training]",
)


def number_option(default: int, thing: str) -> Decorator:
    """Return the option that says how many tokens are shown."""
    return click.option(
        "-n",
        "--number",
        type=click.IntRange(min=1),
        metavar="N",
        default=default,
        show_default=True,
        help=f"Number of tokens to show per {thing}.",
    )


def seed_option(thing: str) -> Decorator:
    """Return the option that makes another run draw the same random numbers."""
    return click.option(
        "--seed",
        type=click.IntRange(min=0),
        metavar="N",
        default=0,
        show_default=True,
        help=f"Seed of the random numbers that draw {thing}.",
    )


folds_option = click.option(
    "--cv", type=int, default=10, show_default=True, metavar="K", help="Number of folds."
)
reading_options = filling(
    SourceOptions,
    "reading",
    click.option(
        "--format",
        metavar="NAME",
        help="Format of SOURCE: eml, mbox, maildir, mh, classes, trec, csv, tsv, jsonl or"
        " fasttext.  [default: found by looking]",
    ),
    click.option("--text-column", metavar="NAME", help="Column of a table that holds the texts."),
    click.option(
        "--label-column", metavar="NAME", help="Column of a table that holds the classes."
    ),
)
label_options = filling(
    Labels,
    "labels",
    click.option("--spam", multiple=True, metavar="PATH", help="Read PATH as spam."),
    click.option("--ham", multiple=True, metavar="PATH", help="Read PATH as ham."),
    click.option(
        "--label",
        "named",
        type=NAMED_PATH,
        multiple=True,
        metavar="NAME=PATH",
        help="Read PATH as class NAME.",
    ),
)
fp_cost_option = click.option(
    "--fp-cost",
    type=COST,
    metavar="NUMBER",
    help="Cost of calling ham spam, where a miss costs 1.  [default: 2]",
)
unsure_cost_option = click.option(
    "--unsure-cost",
    type=COST,
    metavar="NUMBER",
    help="Cost of the answer unsure, where a miss costs 1.  [default: never answer unsure]",
)
decision_options = filling(
    Decision,
    "decision",
    fp_cost_option,
    unsure_cost_option,
    click.option("--loss", metavar="FILE", help="JSON file of the answers and their costs."),
)
preset_option = click.option(
    "--preset",
    type=click.Choice(list(PRESETS)),
    help="A set of defaults.  [default: mail, or text if SOURCE is a table]",
)
weighting_option = click.option(
    "--weighting",
    type=click.Choice(list(WEIGHTINGS)),
    help="Weight of a token that occurs several times in a document.",
)
pairs_option = click.option(
    "--pairs/--no-pairs", default=None, help="Make a token of every pair of neighbouring words."
)
training_options = filling(
    Choices,
    "training",
    preset_option,
    click.option(
        "--model",
        type=click.Choice(list(ESTIMATORS)),
        metavar="NAME",
        help="The model.  bernoulli, multinomial and complement sum the evidence of all tokens."
        "  spode, tan, aode, a2de and network let a few tokens depend on each other.  These five,"
        " categorical, gaussian and mixed are for tables with --target.",
    ),
    click.option(
        "--alpha",
        type=ALPHA,
        metavar="NUMBER|auto",
        help="Lidstone smoothing; 1 is Laplace's rule.",
    ),
    click.option(
        "--class-prior",
        type=CLASS_PRIOR,
        metavar="estimated|uniform|smoothed|P,P,…",
        help="Prior probabilities, in the order of the class names.",
    ),
    weighting_option,
    pairs_option,
    click.option(
        "--characters/--no-characters",
        default=None,
        help="Make a token of every run of 1 to 5 characters.",
    ),
    click.option(
        "--strip",
        type=PARTS,
        metavar="PART,PART,…",
        help="Leave out these parts of a text: headers, footers, quotes.",
    ),
    click.option(
        "--min-df",
        type=click.IntRange(min=1),
        metavar="N",
        help="Drop tokens that occur in fewer than N documents.",
    ),
    click.option(
        "--max-features",
        "--features",
        "max_features",
        type=click.IntRange(min=1),
        metavar="N",
        help="Keep only the N tokens that tell most about the class.",
    ),
    click.option(
        "--estimate",
        type=click.Choice(["mle", "map", "mean"]),
        help="For tables and spode to network: how counts become probabilities, where --alpha"
        " sets the Dirichlet prior.  [default: mean]",
    ),
    click.option(
        "--min-support",
        type=click.FloatRange(min=0, min_open=True),
        metavar="N",
        help="For aode and a2de: only values found in N documents or more are parents."
        "  [default: 1]",
    ),
    click.option(
        "--criterion",
        type=click.Choice(["bic", "aic", "mdl", "likelihood"]),
        help="For network: the score that its graph is chosen by.  [default: bic]",
    ),
    click.option(
        "--start",
        type=click.Choice(["tree", "naive", "empty"]),
        help="For network: the graph that the search starts from.  [default: tree]",
    ),
    click.option(
        "--climb/--no-climb",
        default=None,
        help="For network: improve the first graph by hill climbing, or keep it.",
    ),
    click.option(
        "--max-parents",
        type=click.IntRange(min=1),
        metavar="N",
        help="For network: the most parents a variable may have.  [default: 3, where tables"
        " stay small]",
    ),
)
table_options = filling(
    TableChoices,
    "columns",
    click.option(
        "--target",
        metavar="COLUMN",
        help="Read SOURCE as a table of columns; COLUMN holds the class.",
    ),
    click.option(
        "--categorical", multiple=True, metavar="COLUMN", help="Read COLUMN as categories."
    ),
    click.option("--numeric", multiple=True, metavar="COLUMN", help="Read COLUMN as numbers."),
    click.option(
        "--discretise",
        type=click.Choice(["width", "frequency", "mdl"]),
        help="Cut numbers into intervals of equal width, of equal frequency, or where the"
        " classes change.",
    ),
    click.option(
        "--bins",
        type=click.IntRange(min=2),
        metavar="K",
        help="Cut numbers into at most K intervals.",
    ),
    click.option("--parent", metavar="COLUMN", help="For spode: the column all others depend on."),
)
unlabelled_options = filling(
    Unlabelled,
    "unlabelled",
    click.option(
        "--unlabelled",
        "paths",
        multiple=True,
        metavar="PATH",
        help="Learn from PATH too, by EM; labels found there are ignored.",
    ),
    click.option(
        "--unlabelled-weight",
        "weight",
        type=WEIGHT,
        metavar="NUMBER|auto",
        help="Weight of an unlabelled document; a labelled one has 1.  [default: auto, by"
        " cross-validation]",
    ),
    click.option(
        "--hard", is_flag=True, help="Let EM assign every document to one class entirely."
    ),
)

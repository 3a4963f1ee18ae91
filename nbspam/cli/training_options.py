"""The options of training, and the values that they fill: what `nbspam train` can choose."""

from typing import NamedTuple

import click

from nbspam.bounds import Bounds, check_unbounded
from nbspam.cli.command import titled
from nbspam.cli.options import filling
from nbspam.cli.values import ALPHA, CLASS_PRIOR, DECLARED, DIRICHLET, PARTS, SHARD, WEIGHT
from nbspam.models.registry import ESTIMATORS
from nbspam.settings import PRESETS, WEIGHTINGS, Choices, TableChoices


class Unlabelled(NamedTuple):
    """Documents without labels to train on by EM."""

    paths: tuple[str, ...] = ()
    weight: float | str | None = None  # None and "auto": by cross-validation
    hard: bool = False
    em: bool = False  # rows of a table without a class take part


LARGE = "More mail than memory, or than one machine"  # a title in help
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
    "Which model is trained",
    preset_option,
    click.option(
        "--model",
        type=click.Choice(list(ESTIMATORS)),
        metavar="NAME",
        help="The model.  bernoulli, multinomial and complement sum the evidence of all tokens,"
        " or of a table of counts.  spode, tan, aode, a2de and network let a few tokens, or the"
        " columns of a table, depend on each other.  categorical, gaussian and mixed are for"
        " tables with --target.",
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
    "What counts as a token, and how much",
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
    "Models of tables, and of tokens that depend on each other",
    click.option(
        "--estimate",
        type=click.Choice(["mle", "map", "mean"]),
        help="For tables, and for spode, tan, aode, a2de and network: how counts become"
        " probabilities.  --alpha sets the Dirichlet prior.  [default: mean]",
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
bounds_options = filling(
    Bounds,
    "bounds",
    LARGE,
    click.option(
        "--max-tokens",
        type=click.IntRange(min=1),
        metavar="N",
        help="Count at most N tokens, and forget the rarest; nbspam info says how much the counts"
        " may lack.  [default: all, of which a model of 160 MB keeps the most frequent]",
    ),
    click.option(
        "--ledger/--no-ledger",
        default=True,
        help="Whether the model knows its messages.  Without, a message that comes again counts"
        " again, and unlearn, relabel and sort refuse the model.",
    ),
)
shard_option = titled(
    LARGE,
    click.option(
        "--shard",
        type=SHARD,
        metavar="I/N",
        help="Count only the I-th of N shares of the items, and write a part of a model; I counts"
        " from 1.  nbspam merge makes the model of all parts.",
    ),
)
table_options = filling(
    TableChoices,
    "columns",
    "Tables of columns",
    click.option(
        "--target",
        metavar="COLUMN",
        help="Read SOURCE as a table of columns; COLUMN holds the class.",
    ),
    click.option(
        "--categorical", multiple=True, metavar="COLUMN", help="Read COLUMN as categories."
    ),
    click.option("--numeric", multiple=True, metavar="COLUMN", help="Read COLUMN as numbers."),
    click.option("--drop", multiple=True, metavar="COLUMN", help="Leave COLUMN out."),
    click.option(
        "--values",
        type=DECLARED,
        multiple=True,
        metavar="COLUMN=VALUE,VALUE,…",
        help="All values that COLUMN, or the target, may have: one that does not occur counts"
        " in the estimates too.",
    ),
    click.option(
        "--dirichlet",
        type=DIRICHLET,
        multiple=True,
        metavar="[COLUMN=]A,A,…",
        help="Dirichlet (Beta) prior of COLUMN's values, or of the target's classes, with a"
        " parameter for each in order; without COLUMN for all columns of as many values."
        "  [default: --alpha for each]",
    ),
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
    click.option(
        "--structure",
        metavar="FILE",
        help="For network: the graph, instead of a search.  A JSON file of parents, of arrows,"
        " or as `nbspam query --json` prints it.",
    ),
)
unlabelled_options = filling(
    Unlabelled,
    "unlabelled",
    "Documents without labels",
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
        " cross-validation; for a table 1]",
    ),
    click.option(
        "--em",
        is_flag=True,
        help="With --target: learn from the rows without a class too, by EM; for network, also"
        " from empty cells.  --unlabelled implies it.",
    ),
    click.option(
        "--hard", is_flag=True, help="Let EM assign every document to one class entirely."
    ),
)


def check_bounds(bounds: Bounds, is_table: bool, unlabelled: Unlabelled) -> None:
    """Raise UsageError for bounds where everything is needed at once."""
    if is_table or unlabelled != Unlabelled():
        check_unbounded(bounds, "a table of columns" if is_table else "EM")

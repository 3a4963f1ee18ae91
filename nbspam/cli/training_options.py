"""The options of training, and the values that they fill: for mail and texts, and for tables."""

from typing import NamedTuple

import click

from nbspam.cli import options
from nbspam.cli.frame import Decorator
from nbspam.models import ESTIMATORS
from nbspam.settings import MODELS, PRESETS, WEIGHTINGS, Bounds, SettingsChoices, TableChoices
from nbspam.sources.files import read_tokens


class UnlabelledSources(NamedTuple):
    """Documents or rows without labels to train on by EM."""

    paths: tuple[str, ...] = ()
    weight: float | str | None = None  # None and "auto": by cross-validation; of a table 1
    hard: bool = False
    rounds: int | None = None
    epsilon: float | None = None
    em: bool = False  # the rows of a table that lack a class take part
    restarts: int | None = None
    seed: int = 0


# Titles under which help lists options.
MODEL = "Which model is trained"
TOKENS = "What counts as a token, and how much"
DEPENDENT = "For spode, tan, aode, a2de and network"
UNLABELLED = "Documents without labels"
COLUMNS = "What the columns hold"

# --- which model -----------------------------------------------------------------------------


preset_option = click.option(
    "--preset",
    type=click.Choice(list(PRESETS)),
    metavar="NAME",
    help="A set of defaults: mail, text or tutorial.  [default: mail, or text if SOURCE is a"
    " table]",
)
pairs_option = click.option(
    "--pairs/--no-pairs", default=None, help="Make a token of every two neighbouring words."
)
_class_prior_option = click.option(
    "--class-prior",
    type=options.CLASS_PRIOR,
    metavar="NAME|P,P,…",
    help="Prior: estimated, smoothed, uniform, or P,P,….  The probabilities follow the order of"
    " the class names; smoothed adds --alpha to every class.",
)
_estimate_option = click.option(
    "--estimate",
    type=click.Choice(["mle", "map", "mean"]),
    metavar="NAME",
    help="From counts to probabilities: mle, map or mean.  [default: mean]  --alpha sets the"
    " Dirichlet prior.",
)
_dependent_options = (
    click.option(
        "--min-support",
        type=click.FloatRange(min=0, min_open=True),
        metavar="N",
        help="Let only values of N documents be parents.  [default: 1]  For aode, a2de and akde.",
    ),
    click.option(
        "--criterion",
        type=click.Choice(["bic", "aic", "mdl", "likelihood"]),
        metavar="NAME",
        help="Score of a network: bic, aic, mdl, likelihood.  [default: bic]",
    ),
    click.option(
        "--start",
        type=click.Choice(["tree", "naive", "empty"]),
        metavar="NAME",
        help="Search the network from a tree, naive or empty.  [default: tree]",
    ),
    click.option(
        "--climb/--no-climb",
        default=None,
        help="Improve the first network by hill climbing.",
    ),
    click.option(
        "--max-parents",
        type=click.IntRange(min=1),
        metavar="N",
        help="Parents of a variable in a network.  [default: 3, where tables stay small]",
    ),
)
vocabulary_option = click.option(
    "--vocabulary",
    type=options.Value("tokens", read_tokens, ""),
    metavar="FILE",
    help="Count only the tokens in FILE.  It has one a line, written as nbspam"
    " tokens prints them.  A model of these does not learn on.",
)
characters_option = click.option(
    "--characters/--no-characters",
    default=None,
    help="Make a token of every 1 to 5 characters.",
)
min_df_option = click.option(
    "--min-df",
    type=click.IntRange(min=1),
    metavar="N",
    help="Drop tokens of fewer than N documents.",
)
training_options = options.filling(
    SettingsChoices,
    "training",
    MODEL,
    preset_option,
    click.option(
        "--model",
        type=click.Choice(MODELS),
        metavar="NAME",
        help="A model by name: bernoulli, tan, network, ….  bernoulli, multinomial and"
        " complement sum the evidence of all tokens; with spode, tan, aode, a2de and network a few"
        " tokens depend on each other.",
    ),
    click.option(
        "--alpha",
        type=options.ALPHA,
        metavar="NUMBER|auto",
        help="Lidstone smoothing; 1 is Laplace's rule.",
    ),
    _class_prior_option,
    _estimate_option,
    click.option(
        "--beta",
        type=options.BETA,
        metavar="A,B",
        help="For bernoulli: Beta prior of a token.  Of its presence and of its absence."
        "  [default: --alpha for each]",
    ),
    click.option(
        "--dirichlet",
        type=options.DIRICHLET,
        multiple=True,
        metavar="A,A,…",
        help="Dirichlet (Beta) prior of the classes.",
    ),
    TOKENS,
    click.option(
        "--weighting",
        type=click.Choice(list(WEIGHTINGS)),
        metavar="NAME",
        help="counts, presence, tf-idf, unit- or log-length.  It is the weight of a token that"
        " occurs several times in a document.",
    ),
    pairs_option,
    characters_option,
    click.option(
        "--attachments/--no-attachments",
        default=None,
        help="Read the text of attached documents.  It needs the extra nbspam[attachments].",
    ),
    click.option(
        "--strip",
        type=options.PARTS,
        metavar="PART,…",
        help="Leave out of texts: headers, footers, quotes.",
    ),
    min_df_option,
    click.option(
        "--max-features",
        "--features",
        "max_features",
        type=click.IntRange(min=1),
        metavar="N",
        help="Keep the N most informative tokens.",
    ),
    click.option(
        "--authserv-id",
        metavar="NAME",
        help="Believe server NAME on SPF, DKIM, DMARC, ARC.  It says so in"
        " the topmost header Authentication-Results that begins with NAME, and must remove those"
        " that others wrote in its name.",
    ),
    DEPENDENT,
    *_dependent_options,
)

bounds_options = options.filling(
    Bounds,
    "bounds",
    TOKENS,
    click.option(
        "--max-tokens",
        type=click.IntRange(min=1),
        metavar="N",
        help="Count at most N tokens, and forget the rarest.  nbspam info says how much the"
        " counts may lack.  [default: all, of which a model of 160 MB keeps the most frequent]",
    ),
    click.option(
        "--ledger/--no-ledger",
        default=True,
        help="Whether the model knows its messages.  Without, a message that comes again counts"
        " again, and unlearn, relabel and sort refuse the model.",
    ),
    vocabulary_option,
)

# --- without labels --------------------------------------------------------------------------

_unlabelled_option = click.option(
    "--unlabelled",
    "paths",
    multiple=True,
    metavar="PATH",
    help="Learn from PATH too, by EM.  Labels found there are ignored.",
)
_hard_option = click.option(
    "--hard", is_flag=True, help="Let EM give each document to one class entirely."
)


rounds_options = (
    click.option(
        "--rounds",
        type=click.IntRange(min=1),
        metavar="N",
        help="Stop EM after N rounds.  [default: when it converges]",
    ),
    click.option(
        "--epsilon",
        type=click.FloatRange(min=0, min_open=True),
        metavar="X",
        help="Stop EM when no probability changes by X.  [default: .0001, or when Q gains little]",
    ),
)


unlabelled_options = options.filling(
    UnlabelledSources,
    "unlabelled",
    MODEL,
    _unlabelled_option,
    click.option(
        "--unlabelled-weight",
        "weight",
        type=options.WEIGHT,
        metavar="N|auto",
        help="Weight of an unlabelled document.  [default: auto, by cross-validation]  A labelled"
        " one has 1.",
    ),
    _hard_option,
    *rounds_options,
)


# --- tables ----------------------------------------------------------------------------------


table_training_options = options.filling(
    SettingsChoices,
    "training",
    MODEL,
    click.option(
        "--model",
        type=click.Choice(list(ESTIMATORS)),
        metavar="NAME",
        help="categorical, gaussian, mixed, bernoulli, multinomial, complement, spode, tan, aode,"
        " a2de, akde or network.  bernoulli, multinomial and complement are for tables of counts;"
        " in the last six, columns depend on each other.",
    ),
    click.option(
        "--alpha",
        type=options.PLAIN_ALPHA,
        metavar="NUMBER",
        help="Lidstone smoothing; 1 is Laplace's rule.",
    ),
    _class_prior_option,
    _estimate_option,
    click.option(
        "--dirichlet",
        type=options.DIRICHLET,
        multiple=True,
        metavar="[COLUMN=]A,A,…",
        help="Dirichlet (Beta) prior of COLUMN's values.  Or of the target's classes, with a"
        " parameter for each in order; without COLUMN for all columns of as many values."
        "  [default: --alpha for each]",
    ),
    *_dependent_options,
)
_categorical_option = click.option(
    "--categorical", multiple=True, metavar="COLUMN", help="Read COLUMN as categories."
)
_numeric_option = click.option(
    "--numeric", multiple=True, metavar="COLUMN", help="Read COLUMN as numbers."
)
_drop_option = click.option("--drop", multiple=True, metavar="COLUMN", help="Leave COLUMN out.")
_column_options: tuple[Decorator, ...] = (
    _categorical_option,
    _numeric_option,
    _drop_option,
    click.option(
        "--values",
        type=options.DECLARED,
        multiple=True,
        metavar="COLUMN=V,V,…",
        help="All values that COLUMN, or the target, may have.  One that does not occur counts"
        " in the estimates too.",
    ),
    click.option(
        "--discretise",
        type=click.Choice(["width", "frequency", "mdl", "none"]),
        metavar="NAME",
        help="Cut numbers by width, frequency or mdl, or for spode, tan and aode: none.  The"
        " intervals have equal width, equal frequency, or end where the classes change; numbers"
        " that are not cut are normal, given the class and a category.",
    ),
    click.option(
        "--bins",
        type=click.IntRange(min=2),
        metavar="K",
        help="Cut numbers into at most K intervals.",
    ),
    click.option("--parent", metavar="COLUMN", help="For spode: the column all others depend on."),
    click.option(
        "--root",
        metavar="COLUMN|all",
        help="For tan: the tree's root, or a mean over all.  [default: the column that"
        " tells most about the class]",
    ),
    click.option(
        "--order",
        type=click.IntRange(1, 100),
        metavar="K",
        help="For akde: how many parents a column has.  [default: 3]",
    ),
    click.option(
        "--structure",
        metavar="FILE",
        help="For network: its graph, or --climb's start.  A JSON file of parents, of"
        " arrows, or as `nbspam table query --json` prints it.",
    ),
    click.option(
        "--class-parents",
        is_flag=True,
        default=None,
        help="For network: the class is a node like any other.  The graph is then searched"
        " without regard to which column is the target.",
    ),
)


def columns_options(is_required: bool) -> Decorator:
    """Return the options of columns; is_required: whether one must name the target."""
    target = click.option(
        "--target",
        required=is_required,
        metavar="COLUMN",
        help="The column that holds the class.",
    )
    return options.filling(TableChoices, "columns", COLUMNS, target, *_column_options)


table_unlabelled_options = options.filling(
    UnlabelledSources,
    "unlabelled",
    UNLABELLED,
    click.option(
        "--em",
        is_flag=True,
        help="Learn from the rows without a class too, by EM.  For network, also from empty"
        " cells.  --unlabelled implies it.",
    ),
    _unlabelled_option,
    click.option(
        "--unlabelled-weight",
        "weight",
        type=options.PLAIN_ALPHA,
        metavar="NUMBER",
        help="Weight of a row without a class.  [default: 1]",
    ),
    _hard_option,
    *rounds_options,
    click.option(
        "--restarts",
        type=click.IntRange(0, options.MAX_RESTARTS),
        metavar="N",
        help="Random starts of EM beside the known values.  The most likely result is kept."
        "  [default: 5 for a network with a column that is never known, else 0]",
    ),
    options.seed_option("the starts"),
)


class ClusterColumns(NamedTuple):
    """The kinds of the columns of a table that is sorted into clusters."""

    categorical: tuple[str, ...] = ()
    numeric: tuple[str, ...] = ()
    drop: tuple[str, ...] = ()


cluster_columns_options = options.filling(
    ClusterColumns, "columns", COLUMNS, _categorical_option, _numeric_option, _drop_option
)

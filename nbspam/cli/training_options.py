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
_MODEL = "Which model is trained"
_TOKENS = "What counts as a token, and how much"
_COLUMNS = "What the columns hold"

# --- which model -----------------------------------------------------------------------------


preset_option = click.option(
    "--preset",
    type=click.Choice(list(PRESETS)),
    metavar="NAME",
    help="Choose defaults: mail, text or tutorial.  [default: mail, or text if SOURCE is a table]",
)
pairs_option = click.option(
    "--pairs/--no-pairs", default=None, help="Make a token of every two neighbouring words."
)
_class_prior_option = click.option(
    "--class-prior",
    type=options.CLASS_PRIOR,
    metavar="NAME|P,P,…",
    help="Set prior: estimated, smoothed, uniform, P,P,….  [default: estimated; smoothed"
    " for categories]  smoothed adds --alpha to every class; P,P,… follow the classes' order.",
)
_estimate_option = click.option(
    "--estimate",
    type=click.Choice(["mle", "map", "mean"]),
    metavar="NAME",
    help="Estimate probabilities by mle, map or mean.  [default: mean]  --alpha sets the"
    " Dirichlet prior.",
)
_dependent_options = (
    click.option(
        "--min-support",
        type=options.FiniteRange(min=0, min_open=True),
        metavar="N",
        help="Let only values of N documents be parents.  [default: 1]  For aode, a2de and akde.",
    ),
    click.option(
        "--criterion",
        type=click.Choice(["bic", "aic", "mdl", "likelihood"]),
        metavar="NAME",
        help="Score networks by bic, aic, mdl or likelihood.  [default: bic]",
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
        help="Improve the first network by hill climbing.  [default: climb, except from"
        " --structure]",
    ),
    options.count_option(
        "--max-parents",
        help="Give a variable at most N parents.  [default: 3, where tables stay small]",
    ),
)
vocabulary_option = click.option(
    "--vocabulary",
    type=options.Value(read_tokens, ""),
    metavar="FILE",
    help="Count only the tokens in FILE.  Each has a line, as nbspam tokens prints it.  A model"
    " of these does not learn on.",
)
characters_option = click.option(
    "--characters/--no-characters", default=None, help="Make a token of every 1 to 5 characters."
)
attachments_option = click.option(
    "--attachments/--no-attachments",
    default=None,
    help="Read the text of attached documents.  It needs the extra nbspam[attachments].",
)
min_df_option = options.count_option("--min-df", help="Drop tokens of fewer than N documents.")
_counted_options = (
    _MODEL,
    preset_option,
    click.option(
        "--model",
        type=click.Choice(MODELS),
        metavar="NAME",
        help="Train this model: bernoulli, tan, network, ….  [default: combine evidence]"
        "  bernoulli, multinomial and complement sum the evidence of all tokens; in spode, tan,"
        " aode, a2de and network a few tokens depend on each other.",
    ),
    click.option(
        "--alpha",
        type=options.FROM_ZERO_OR_AUTO,
        metavar="NUMBER|auto",
        help="Add NUMBER to every count; 1 is Laplace's rule.",
    ),
    _class_prior_option,
    _estimate_option,
    click.option(
        "--beta",
        type=options.BETA,
        metavar="A,B",
        help="For bernoulli: take this Beta prior of a token.  A is for its presence, B for its"
        " absence.  [default: --alpha for each]",
    ),
    click.option(
        "--dirichlet",
        type=options.DIRICHLET,
        multiple=True,
        metavar="A,A,…",
        help="Take this Dirichlet (Beta) prior of the classes.",
    ),
    _TOKENS,
    click.option(
        "--weighting",
        type=click.Choice(list(WEIGHTINGS)),
        metavar="NAME",
        help="Weigh tokens by counts, presence, tf-idf, ….  The others are unit-length and"
        " log-length.  They differ for a token that occurs several times in a document.",
    ),
    pairs_option,
    characters_option,
    attachments_option,
    click.option(
        "--strip",
        type=options.PARTS,
        metavar="PART,…",
        help="Leave headers, footers or quotes out of texts.",
    ),
    min_df_option,
    options.count_option(
        "--max-features", "--features", "max_features", help="Keep the N most informative tokens."
    ),
    click.option(
        "--authserv-id",
        metavar="NAME",
        help="Believe server NAME on SPF, DKIM, DMARC, ARC.  It says so in"
        " the topmost header Authentication-Results that begins with NAME, and must remove those"
        " that others wrote in its name.",
    ),
)
part_options = options.filling(SettingsChoices, "training", *_counted_options)
training_options = options.filling(
    SettingsChoices,
    "training",
    *_counted_options,
    "For spode, tan, aode, a2de and network",
    *_dependent_options,
)

bounds_options = options.filling(
    Bounds,
    "bounds",
    _TOKENS,
    options.count_option(
        "--max-tokens",
        help="Count at most N tokens, and forget the rarest.  nbspam info says how much the"
        " counts may lack.  [default: all, of which a model of 160 MB keeps the most frequent]",
    ),
    click.option(
        "--ledger/--no-ledger",
        default=True,
        help="Let the model know its messages.  [default: --ledger]  Without, a message that comes"
        " again counts again, and unlearn, relabel and sort refuse the model.",
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
    options.count_option("--rounds", help="Stop EM after N rounds.  [default: when it converges]"),
    click.option(
        "--epsilon",
        type=options.FiniteRange(min=0, min_open=True),
        metavar="X",
        help="Stop EM when no probability changes by X.  With texts, only those of tokens count."
        "  [default: .0001, or when Q gains little]",
    ),
)


unlabelled_options = options.filling(
    UnlabelledSources,
    "unlabelled",
    _MODEL,
    _unlabelled_option,
    click.option(
        "--unlabelled-weight",
        "weight",
        type=options.FROM_ZERO_OR_AUTO,
        metavar="N|auto",
        help="Give an unlabelled document this weight.  [default: auto, by cross-validation]  A"
        " labelled one has 1.",
    ),
    _hard_option,
    *rounds_options,
)


# --- tables ----------------------------------------------------------------------------------


table_training_options = options.filling(
    SettingsChoices,
    "training",
    _MODEL,
    click.option(
        "--model",
        type=click.Choice(list(ESTIMATORS)),
        metavar="NAME",
        help="Train this model: categorical, gaussian, mixed, bernoulli, multinomial, complement,"
        " spode, tan, aode, a2de, akde or network.  [default: one of the first three, by the"
        " columns]  bernoulli, multinomial and complement are for tables of counts; in the last"
        " six, columns depend on each other.",
    ),
    click.option(
        "--alpha",
        type=options.FROM_ZERO,
        metavar="NUMBER",
        help="Add NUMBER to every count.  [default: 1, Laplace's rule]",
    ),
    _class_prior_option,
    _estimate_option,
    click.option(
        "--dirichlet",
        type=options.DIRICHLET,
        multiple=True,
        metavar="[COLUMN=]A,A,…",
        help="Set a Dirichlet (Beta) prior of COLUMN's values.  Or of the target's classes,"
        " with a parameter for each in order; without COLUMN for all columns of as many values."
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
        help="Declare all values of COLUMN, or of the target.  One that does not occur counts in"
        " the estimates too.",
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
    click.option(
        "--parent",
        metavar="COLUMN",
        help="For spode: let all columns depend on COLUMN.  [default: the best by leave-one-out]",
    ),
    click.option(
        "--root",
        metavar="COLUMN|all",
        help="For tan: root the tree in COLUMN, or in all.  The answers of all trees are averaged."
        "  [default: the column that tells most about the class]",
    ),
    click.option(
        "--order",
        type=click.IntRange(1, 100),
        metavar="K",
        help="For akde: give each column K parents.  [default: 3]",
    ),
    click.option(
        "--structure",
        metavar="FILE",
        help="For network: take, or --climb from, this graph.  It is JSON: parents,"
        " arrows, or what `nbspam table query --json` prints.",
    ),
    click.option(
        "--class-parents",
        is_flag=True,
        default=None,
        help="For network: let the class have parents.  The graph is then searched without"
        " regard to which column is the target.",
    ),
)


def columns_options(is_required: bool) -> Decorator:
    """Return the options of columns; is_required: whether one must name the target."""
    target = click.option(
        "--target", required=is_required, metavar="COLUMN", help="Learn the classes in COLUMN."
    )
    return options.filling(TableChoices, "columns", _COLUMNS, target, *_column_options)


table_unlabelled_options = options.filling(
    UnlabelledSources,
    "unlabelled",
    "Documents without labels",
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
        type=options.FROM_ZERO,
        metavar="NUMBER",
        help="Give a row without a class this weight.  [default: 1]",
    ),
    _hard_option,
    *rounds_options,
    click.option(
        "--restarts",
        type=click.IntRange(0, options.MAX_RESTARTS),
        metavar="N",
        help="Start EM at N random points, too.  The most likely result is kept.  [default: 5 for"
        " a network with a column that is never known, else 0]",
    ),
    options.seed_option("the starts"),
)


cluster_columns_options = options.filling(
    TableChoices, "columns", _COLUMNS, _categorical_option, _numeric_option, _drop_option
)

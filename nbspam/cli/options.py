"""Options and arguments that several commands share, and the values that they fill.

`@reading_options` adds --format, --text-column and so on to a command, which gets them all
as one value `reading`.  Such values are NamedTuples, of this module or of the
library: a dataclass takes 1.6 ms or more to define, at every start.

Secret: the names of options, and their help.
"""

import os
from collections.abc import Callable
from functools import wraps
from inspect import signature
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from nbspam.cli.command import COMMON, Decorator, Function, titled
from nbspam.cli.frame.config import user_folder
from nbspam.cli.tables import reading_of
from nbspam.cli.values import (
    COST,
    FOLDS,
    NAMED_PATH,
    SHARE,
    SHARE_OR_ESTIMATED,
    shares,
)

if TYPE_CHECKING:
    from nbspam.parallel import Workers

# Titles under which help lists options.
SOURCES = "What is read"
COSTS = "Costs of mistakes, and shares of the classes"
JUDGING = "How it is judged, and what is shown"


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


def default_model_path() -> str:
    """Return the default path of the model, in the user's data folder."""
    folder = user_folder("LOCALAPPDATA", "XDG_DATA_HOME", "~/.local/share")
    return os.path.join(folder, "model.nbspam")


def filling(kind: Callable[..., Any], name: str, *declared: Decorator | str) -> Decorator:
    """Return a decorator that adds options, whose values the command gets as one.

    kind: a type with a field for every option.  name: the command's parameter.  A string among
    the options is the title of those after it, in help.
    """

    def decorated(command: Function) -> Function:
        @wraps(command)
        def filled(**values: Any) -> Any:
            own = kind(**{each: values.pop(each) for each in signature(kind).parameters})
            return command(**values, **{name: own})

        made: Function = filled
        title = ""
        titles: list[tuple[str, Decorator]] = []
        for each in declared:
            if isinstance(each, str):
                title = each
            else:
                titles.append((title, each))
        for title, option in reversed(titles):  # click lists the last one first
            made = titled(title, option)(made)
        return made

    return decorated


def workers(context: click.Context, _: click.Parameter, jobs: int | None) -> "Workers":
    """Return how many processes --jobs says, or one for each core; or the workers of --engine."""
    from nbspam.parallel import available_cores

    jobs = jobs or available_cores()
    engine = context.meta.get("engine")
    if engine is None:
        return jobs
    from nbspam.engines import workers_of

    return context.with_resource(workers_of(engine, jobs))  # ended with the command


def _keep_engine(context: click.Context, _: click.Parameter, engine: str | None) -> None:
    """Keep the name of an engine for --jobs."""
    context.meta["engine"] = engine


class Listed(tuple[str, ...]):
    """Sources that were listed in a file.

    Though there may be none, it is true: then nothing is read, and not standard input.
    """

    def __bool__(self) -> bool:
        return True


def _keep_listed(context: click.Context, _: click.Parameter, path: str | None) -> None:
    """Keep the names in the file of --files0-from for the argument SOURCE."""
    from nbspam.sources.files import names_in

    if path is not None:
        context.meta["listed"] = names_in(path)


def _with_listed(
    context: click.Context, _: click.Parameter, sources: tuple[str, ...]
) -> tuple[str, ...]:
    """Return the sources of the command line, and those of --files0-from."""
    listed = context.meta.get("listed")
    return sources if listed is None else Listed([*sources, *listed])


def sources_argument(command: Function) -> Function:
    """Add the argument SOURCE, and the option that reads more of them from a list."""
    argument = click.argument("sources", nargs=-1, metavar="[SOURCE]...", callback=_with_listed)
    option = click.option(
        "--files0-from",
        is_eager=True,  # before the argument
        expose_value=False,
        callback=_keep_listed,
        metavar="FILE",
        help="Read the names of more SOURCEs from FILE, each ending in NUL, as `find -print0`"
        " writes them; - is standard input.",
    )
    return argument(titled(SOURCES, option)(command))


null_option = click.option(
    "-0",
    "--null",
    is_flag=True,
    help="End each answer in NUL, with the name as it is: for `xargs -0` and --files0-from.",
)
model_option = titled(
    COMMON,
    click.option(
        "-m",
        "--model-file",
        "model_path",
        envvar="NBSPAM_MODEL",
        default=default_model_path,
        metavar="FILE",
        show_default="in the user's data folder",
        help="The model file; the environment variable NBSPAM_MODEL sets it too.",
    ),
)
json_option = titled(
    COMMON,
    click.option("--json", "as_json", is_flag=True, help="Print JSON instead of text."),
)
strict_option = titled(
    COMMON,
    click.option(
        "--strict", is_flag=True, help="Fail if an item cannot be read, instead of skipping it."
    ),
)
jobs_option = titled(
    COMMON,
    click.option(
        "-j",
        "--jobs",
        type=click.IntRange(min=1),
        callback=workers,
        metavar="N",
        help="Number of processes to work in.  [default: one for each core]",
    ),
)
engine_option = titled(
    COMMON,
    click.option(
        "--engine",
        is_eager=True,  # before --jobs
        expose_value=False,
        callback=_keep_engine,
        metavar="NAME[:ADDRESS]",
        help="Workers that read and count: fork, dask, dask:ADDRESS of a scheduler, loky or ray."
        "  [default: fork]",
    ),
)
prior_option = titled(
    COSTS,
    click.option(
        "--prior",
        type=SHARE,
        multiple=True,
        callback=shares,
        metavar="NAME=P",
        help="Share of a class in the mail to be judged, as in spam=0.8.  [default: as in"
        " training]",
    ),
)
prior_or_estimated_option = titled(
    COSTS,
    click.option(
        "--prior",
        type=SHARE_OR_ESTIMATED,
        multiple=True,
        callback=shares,
        metavar="NAME=P|estimated",
        help="Share of a class in the mail to be judged, as in spam=0.8; `estimated` finds the"
        " shares from that mail.  [default: as in training]",
    ),
)

new_class_option = click.option(
    "--new-class", is_flag=True, help="Let a class that the model does not have be a new one."
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
    "--cv",
    type=FOLDS,
    default=10,
    show_default=True,
    metavar="K|loo",
    help="Number of folds of the cross-validation; loo leaves out one document at a time.",
)
reading_options = filling(
    reading_of,
    "reading",
    SOURCES,
    click.option(
        "--format",
        metavar="NAME",
        help="Format of SOURCE: eml, mbox, maildir, mh, classes, trec, tar, zip, parquet, csv,"
        " tsv, jsonl or fasttext.  [default: found by looking]",
    ),
    click.option(
        "--text-column",
        "text_columns",
        multiple=True,
        metavar="NAME",
        help="Column of a table that holds the texts; of several, the texts are joined.",
    ),
    click.option(
        "--label-column", metavar="NAME", help="Column of a table that holds the classes."
    ),
    click.option(
        "--id-column", metavar="NAME", help="Column of a table that holds the names of its rows."
    ),
    click.option(
        "--encoding",
        metavar="NAME",
        help="Encoding of a table, such as gb18030 or utf-16.  [default: found by looking]",
    ),
)
label_options = filling(
    Labels,
    "labels",
    SOURCES,
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
fp_cost_option = titled(
    COSTS,
    click.option(
        "--fp-cost",
        type=COST,
        metavar="NUMBER",
        help="Cost of calling ham spam, where missing a spam costs 1.  [default: 2]",
    ),
)
unsure_cost_option = titled(
    COSTS,
    click.option(
        "--unsure-cost",
        type=COST,
        metavar="NUMBER",
        help="Cost of the answer unsure, where missing a spam costs 1.  [default: never answer"
        " unsure]",
    ),
)
decision_options = filling(
    Decision,
    "decision",
    COSTS,
    fp_cost_option,
    unsure_cost_option,
    click.option(
        "--loss",
        metavar="FILE",
        help="JSON file of the possible answers and of what each costs in each class.",
    ),
)

"""The option --engine, and what it and --jobs mean together.

Secret: how an engine that the command line names is started, and ended with the command.
"""

from typing import TYPE_CHECKING

import click

from nbspam.cli.command import COMMON, titled
from nbspam.errors import UsageError

if TYPE_CHECKING:
    from nbspam.parallel import Workers

_ENGINE = "engine"  # where --jobs finds it


def workers(context: click.Context, _: click.Parameter, jobs: int | None) -> "Workers":
    """Return how many processes --jobs says, or one for each core; or the workers of --engine."""
    from nbspam.parallel import available_cores

    jobs = jobs or available_cores()
    engine = context.meta.get(_ENGINE)
    if engine is None:
        return jobs
    from nbspam.engines import workers_of

    return context.with_resource(workers_of(engine, jobs))


def refuse_engine(jobs: "Workers") -> None:
    """Raise UsageError if there is an engine, for what is done here."""
    if not isinstance(jobs, int):
        raise UsageError("--engine: for mail and texts; a table is counted here, leave it out")


def _keep_engine(context: click.Context, _: click.Parameter, engine: str | None) -> None:
    if engine is not None:
        context.meta[_ENGINE] = engine


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

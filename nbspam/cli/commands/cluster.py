"""nbspam cluster: documents without labels into clusters."""

from typing import TYPE_CHECKING, NamedTuple

import click

from nbspam.cli.arguments import items_for_em, records_of, starts_of
from nbspam.cli.command import Command
from nbspam.cli.options import (
    filling,
    jobs_option,
    json_option,
    number_option,
    reading_options,
    seed_option,
    sources_argument,
    strict_option,
)
from nbspam.cli.output import echo_json, echo_rows, report_skipped
from nbspam.cli.values import ALPHA
from nbspam.errors import UsageError
from nbspam.models.registry import EM_MODELS
from nbspam.settings import Choices, option_name
from nbspam.sources.items import SourceOptions

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nbspam.arrays import Floats
    from nbspam.classifier.clusters import Clusters, Typical
    from nbspam.tables.clusters import TableClusters


class Columns(NamedTuple):
    """What the columns of a table hold."""

    table: bool = False
    categorical: tuple[str, ...] = ()
    numeric: tuple[str, ...] = ()
    drop: tuple[str, ...] = ()


def _mixture(
    model: str | None, alpha: float | str | None, weighting: str | None, min_df: int | None
) -> Choices:
    """Return the choices that a mixture has."""
    return Choices(model=model, alpha=alpha, weighting=weighting, min_df=min_df)


mixture_options = filling(
    _mixture,
    "mixture",
    click.option(
        "--model",
        type=click.Choice(EM_MODELS),
        help="Distribution of the tokens of a cluster.  [default: multinomial]",
    ),
    click.option(
        "--alpha",
        type=ALPHA,
        metavar="NUMBER|auto",
        help="Smoothing: what is added to every count.  [default: auto, a tenth of what is"
        " counted, spread evenly]",
    ),
    click.option(
        "--weighting",
        type=click.Choice(["presence", "counts", "unit-length", "tf-idf"]),
        help="Weight of a token that occurs several times in a document.",
    ),
    click.option(
        "--min-df",
        type=click.IntRange(min=1),
        metavar="N",
        help="Drop tokens that occur in fewer than N documents.  [default: 2]",
    ),
)


columns_options = filling(
    Columns,
    "columns",
    "Tables of columns",
    click.option("--table", is_flag=True, help="Read SOURCE as a table of columns."),
    click.option(
        "--categorical", multiple=True, metavar="COLUMN", help="Read COLUMN as categories."
    ),
    click.option("--numeric", multiple=True, metavar="COLUMN", help="Read COLUMN as numbers."),
    click.option("--drop", multiple=True, metavar="COLUMN", help="Leave COLUMN out."),
)


@click.command("cluster", cls=Command)
@sources_argument
@click.option(
    "-k", required=True, type=click.IntRange(min=2), metavar="K", help="Number of clusters."
)
@mixture_options
@click.option(
    "--restarts",
    type=click.IntRange(min=1),
    metavar="N",
    default=5,
    show_default=True,
    help="Number of random starts, of which the most likely result is kept.",
)
@click.option(
    "--rounds",
    type=click.IntRange(min=1),
    metavar="N",
    help="Largest number of rounds of EM.  [default: until it converges]",
)
@click.option(
    "--start", metavar="FILE", help="JSON file of components to start from, without restarts."
)
@click.option("--hard", is_flag=True, help="Assign every document to one cluster entirely.")
@seed_option("the starts")
@number_option(10, "cluster")
@columns_options
@click.option("--assignments", is_flag=True, help="Print the cluster of every item instead.")
@reading_options
@jobs_option
@strict_option
@json_option
def command(
    sources: tuple[str, ...],
    k: int,
    mixture: Choices,
    restarts: int,
    rounds: int | None,
    start: str | None,
    hard: bool,
    seed: int,
    number: int,
    columns: Columns,
    assignments: bool,
    reading: SourceOptions,
    jobs: int,
    strict: bool,
    as_json: bool,
) -> None:
    """Sort documents without labels into K clusters, and print the typical tokens of each.

    The number after a token is its probability in the cluster.  With --table, SOURCE is a table
    of columns, and what is typical are values and their probabilities, or numbers and their
    means and standard deviations.

    \b
    nbspam cluster ~/Maildir -k 5
    nbspam cluster tickets.csv -k 8 --assignments
    nbspam cluster iris.csv -k 3 --table --drop species
    """
    if columns != Columns():
        _check_for_table(columns, mixture, start)
        from nbspam.tables.clusters import cluster_rows

        alpha = 1.0 if mixture.alpha is None else float(mixture.alpha)
        kinds = columns.categorical, columns.numeric, columns.drop
        rows = records_of(sources, reading)
        in_table = cluster_rows(rows, k, alpha, *kinds, restarts, hard, seed, rounds)
        if assignments:
            _show_assignments(in_table.clusters, in_table.share, in_table.names, as_json)
        else:
            _show_table(in_table, number, as_json)
        return
    from nbspam.classifier.clusters import cluster, typical_tokens

    settings, items = items_for_em(sources, reading, mixture)
    starts = starts_of(start)
    found = cluster(items, settings, k, restarts, hard, jobs, seed, starts, rounds)
    report_skipped(found.skipped, strict)
    if assignments:
        _show_assignments(found.classifier.classes, found.share, found.names, as_json)
    else:
        _show_clusters(found, typical_tokens(found, number), as_json)


def _check_for_table(columns: Columns, mixture: Choices, start: str | None) -> None:
    """Raise UsageError for options that do not go together."""
    if not columns.table:
        name = next(name for name in ("categorical", "numeric", "drop") if getattr(columns, name))
        raise UsageError(f"--{name}: for the columns of a table; say --table too")
    given = [name for name in mixture.given if name != "alpha"]
    if given or start is not None:
        name = option_name(given[0]) if given else "--start"
        raise UsageError(f"{name}: for mail and text; leave it out with --table")
    if mixture.alpha == "auto":
        raise UsageError("--alpha auto: not a number from 0 up; give one for a table")


def _show_table(found: "TableClusters", number: int, as_json: bool) -> None:
    """Print the size of each cluster of rows and what is typical of it."""
    size = dict(zip(found.clusters, found.share.sum(axis=0).tolist(), strict=True))
    typical = zip(size.items(), found.features, strict=True)
    if not as_json:
        echo_rows([("cluster", "rows", "typical values")])
        echo_rows(
            (c, f"{n:.4g}", "  ".join(str(feature) for feature in features[:number]))
            for (c, n), features in typical
        )
        return
    rows = [
        {"cluster": c, "rows": n, "values": [feature._asdict() for feature in features[:number]]}
        for (c, n), features in typical
    ]
    echo_json({"log_likelihood": found.fit.steps[-1].log_likelihood, "clusters": rows})


def _show_assignments(
    classes: "Sequence[str]", share: "Floats", names: "Sequence[str]", as_json: bool
) -> None:
    """Print the most probable cluster of each item, and its probability."""
    best = [classes[c] for c in share.argmax(axis=1).tolist()]
    rows = zip(best, share.max(axis=1).tolist(), names, strict=True)
    if as_json:
        for c, p, name in rows:
            echo_json({"name": name, "cluster": c, "share": p})
    else:
        echo_rows((c, f"{p:.4f}", name) for c, p, name in rows)


def _show_clusters(found: "Clusters", tokens: "dict[str, list[Typical]]", as_json: bool) -> None:
    """Print the size of each cluster and its typical tokens."""
    size = dict(zip(found.classifier.classes, found.share.sum(axis=0).tolist(), strict=True))
    if not as_json:
        echo_rows([("cluster", "documents", "typical tokens")])
        echo_rows(
            (c, f"{n:.4g}", " ".join(f"{t.token}={t.probability:.4g}" for t in tokens[c]))
            for c, n in size.items()
        )
        return
    rows = [
        {
            "cluster": c,
            "documents": n,
            "tokens": [
                {"token": t.token, "worth": t.worth, "probability": t.probability}
                for t in tokens[c]
            ],
        }
        for c, n in size.items()
    ]
    echo_json({"log_likelihood": found.fit.steps[-1].log_likelihood, "clusters": rows})

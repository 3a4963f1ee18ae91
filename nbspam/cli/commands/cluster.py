"""nbspam cluster: documents without labels into clusters."""

from typing import TYPE_CHECKING

import click

from nbspam.cli.arguments import items_for_em, starts_of
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
from nbspam.models.registry import EM_MODELS
from nbspam.settings import Choices
from nbspam.sources.items import SourceOptions

if TYPE_CHECKING:
    from nbspam.classifier.clusters import Clusters, Typical


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
    help="Most rounds of EM.  [default: until it converges]",
)
@click.option(
    "--start", metavar="FILE", help="JSON file of components to start from, without restarts."
)
@click.option("--hard", is_flag=True, help="Assign every document to one cluster entirely.")
@seed_option("the starts")
@number_option(10, "cluster")
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
    assignments: bool,
    reading: SourceOptions,
    jobs: int,
    strict: bool,
    as_json: bool,
) -> None:
    """Sort documents without labels into K clusters, and print the typical tokens of each.

    The number after a token is its probability in the cluster.

    \b
    nbspam cluster ~/Maildir -k 5
    nbspam cluster tickets.csv -k 8 --assignments
    """
    from nbspam.classifier.clusters import cluster, typical_tokens

    settings, items = items_for_em(sources, reading, mixture)
    starts = starts_of(start)
    found = cluster(items, settings, k, restarts, hard, jobs, seed, starts, rounds)
    report_skipped(found.skipped, strict)
    if assignments:
        _show_assignments(found, as_json)
    else:
        _show_clusters(found, typical_tokens(found, number), as_json)


def _show_assignments(found: "Clusters", as_json: bool) -> None:
    """Print the most probable cluster of each item, and its probability."""
    classes = [found.classifier.classes[c] for c in found.share.argmax(axis=1).tolist()]
    rows = zip(classes, found.share.max(axis=1).tolist(), found.names, strict=True)
    if as_json:
        for c, share, name in rows:
            echo_json({"name": name, "cluster": c, "share": share})
    else:
        echo_rows((c, f"{share:.4f}", name) for c, share, name in rows)


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

"""nbspam cluster: documents without labels, sorted into kinds."""

from typing import Any

import click

from nbspam.cli.arguments import cores, peek, read_sources, settings_for
from nbspam.cli.options import (
    format_options,
    jobs_option,
    json_option,
    sources_argument,
    strict_option,
)
from nbspam.cli.output import echo_json, echo_rows, report_skipped
from nbspam.models.registry import EM_MODELS


@click.command("cluster")
@sources_argument
@click.option(
    "-k", required=True, type=click.IntRange(min=2), metavar="K", help="How many clusters."
)
@click.option("--model", type=click.Choice(EM_MODELS), help="Of what the mixture is.")
@click.option("--alpha", metavar="NUMBER", help="Smoothing; 1 is a tenth of what is counted.")
@click.option(
    "--weighting",
    type=click.Choice(["presence", "counts", "unit-length", "tf-idf"]),
    help="What a repeated token counts.",
)
@click.option(
    "--min-df",
    type=click.IntRange(min=1),
    metavar="N",
    help="Drop rarer tokens.  [default: 2]",
)
@click.option(
    "--restarts",
    type=click.IntRange(min=1),
    metavar="N",
    default=5,
    show_default=True,
    help="Random starts.",
)
@click.option(
    "--rounds",
    type=click.IntRange(min=1),
    metavar="N",
    help="Of EM, at most.  [default: as needed]",
)
@click.option("--start", metavar="FILE", help="Components to start from, as JSON; no restarts.")
@click.option("--hard", is_flag=True, help="Each document belongs to one cluster whole.")
@click.option(
    "--seed", type=int, metavar="N", default=0, show_default=True, help="Of the random starts."
)
@click.option(
    "-n",
    "--number",
    type=click.IntRange(min=1),
    metavar="N",
    default=10,
    show_default=True,
    help="Tokens each.",
)
@click.option("--assignments", is_flag=True, help="Print the cluster of every item instead.")
@format_options
@jobs_option
@strict_option
@json_option
def command(
    sources: tuple[str, ...],
    k: int,
    restarts: int,
    rounds: int | None,
    start: str | None,
    hard: bool,
    seed: int,
    number: int,
    assignments: bool,
    jobs: int | None,
    strict: bool,
    as_json: bool,
    **options: Any,
) -> None:
    """Sort documents into K clusters, without labels, and name what is typical of each.

    Beside each token stands its probability in the cluster.

    \b
    nbspam cluster ~/Maildir -k 5
    nbspam cluster tickets.csv -k 8 --assignments
    """
    from nbspam.classifier.clusters import cluster, read_starts, typical_tokens
    from nbspam.classifier.unlabelled import em_settings
    from nbspam.sources.files import read_json

    is_text, items = peek(read_sources(sources, options))
    given = {name: value for name, value in options.items() if value is not None}
    # A model that is named is a plain one, of the tokens that plain models have.
    plain = {**options, "model": options["model"] or "multinomial"}
    settings = em_settings(settings_for(is_text, plain), given)
    starts = () if start is None else read_starts(read_json(start), f"--start {start}")
    found = cluster(items, settings, k, restarts, hard, cores(jobs), seed, starts, rounds)
    report_skipped(found.skipped, strict)
    if assignments:
        _show_assignments(found, as_json)
    else:
        _show_clusters(found, typical_tokens(found, number), as_json)


def _show_assignments(found: Any, as_json: bool) -> None:
    """Print each item's most probable cluster, and how probable it is."""
    classes = [found.classifier.classes[c] for c in found.share.argmax(axis=1).tolist()]
    rows = zip(classes, found.share.max(axis=1).tolist(), found.names, strict=True)
    if as_json:
        echo_json([{"cluster": c, "share": share, "name": name} for c, share, name in rows])
    else:
        echo_rows((c, f"{share:.4f}", name) for c, share, name in rows)


def _show_clusters(found: Any, tokens: dict[str, Any], as_json: bool) -> None:
    """Print how many documents each cluster has, and what is typical of it."""
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

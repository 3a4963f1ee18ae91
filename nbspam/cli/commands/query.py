"""nbspam query: the beliefs and the structure of a Bayesian network."""

from typing import TYPE_CHECKING

import click

from nbspam.cli.arguments import network_of
from nbspam.cli.command import Command
from nbspam.cli.options import json_option, model_option, seed_option
from nbspam.cli.output import echo_json, echo_rows, warn
from nbspam.errors import UsageError

if TYPE_CHECKING:
    from nbspam.models.network.network import Network
    from nbspam.models.network.questions import Belief


@click.command("query", cls=Command)
@model_option
@click.argument("more", nargs=-1, metavar="[NAME[=VALUE]]...")
@click.option(
    "--evidence",
    multiple=True,
    metavar="NAME=VALUE",
    help="A known value; more NAME=VALUE may follow.",
)
@click.option(
    "--target",
    multiple=True,
    metavar="NAME[=VALUE]",
    help="A variable, or one value of it, whose probability is printed; more NAME may follow,"
    " and then the joint probabilities are printed.",
)
@click.option(
    "--gibbs", type=int, metavar="N", help="Estimate from N samples, instead of calculating."
)
@seed_option("the samples")
@click.option(
    "--independent",
    nargs=2,
    metavar="NAME NAME",
    help="Say whether the graph makes two variables independent, given the evidence.",
)
@click.option("--dot", is_flag=True, help="Print the graph in the language of Graphviz.")
@click.option(
    "--moral",
    is_flag=True,
    help="Print the moral graph: parents of a variable are joined, and edges have no direction.",
)
@json_option
def command(
    model_path: str,
    more: tuple[str, ...],
    evidence: tuple[str, ...],
    target: tuple[str, ...],
    gibbs: int | None,
    seed: int,
    independent: tuple[str, str] | None,
    dot: bool,
    moral: bool,
    as_json: bool,
) -> None:
    """Ask a Bayesian network, or print its structure.

    The model is one of `nbspam train --model network`, or a JSON file as this command prints
    it.  In models of mail the variables are tokens, which are absent or present, and the
    class, which is called class.

    \b
    nbspam query -m m.nbspam
    nbspam query -m m.nbspam --evidence colour=green sound=dull --target ripe
    nbspam query -m m.nbspam --target ripe sweet --evidence colour=green
    nbspam query -m m.nbspam --target ripe=yes --gibbs 10000
    nbspam query -m m.nbspam --independent colour sound --evidence ripe
    """
    from nbspam.models.network.questions import believe
    from nbspam.models.network.questions import independent as are_independent

    words = *evidence, *(word for word in more if "=" in word or independent or not target)
    target = *target, *(word for word in more if word not in words)
    if (words or gibbs is not None) and not (independent or target):
        raise UsageError(
            "--evidence, --gibbs: for a question; say --target NAME too, and the model by -m FILE"
        )
    named = network_of(model_path)
    if independent:
        holds = are_independent(named, *independent, words)
        text = "independent" if holds else "dependent"
        echo_json({"independent": holds}) if as_json else echo_rows([(text,)])
    elif target:
        _show_belief(believe(named, target, words, gibbs, seed), as_json)
    else:
        _show_graph(named.network, dot, moral, as_json)


def _show_graph(network: "Network", dot: bool, moral: bool, as_json: bool) -> None:
    """Print the graph of a network: for Graphviz, as JSON with all tables, or as rows."""
    from nbspam.models.network.graphs import moral_graph, to_dot
    from nbspam.models.network.network import to_json

    if dot:
        click.echo(to_dot(network.parents, network.names, moral))
    elif as_json:
        echo_json(to_json(network))
    elif moral:
        edges = sorted(moral_graph(network.parents))
        echo_rows((network.names[a], "-", network.names[b]) for a, b in edges)
    else:
        for name, of in zip(network.names, network.parents, strict=True):
            echo_rows([(name, *(("<-", ", ".join(network.names[p] for p in of)) if of else ()))])


def _show_belief(believed: "Belief", as_json: bool) -> None:
    """Print the probability of every combination of values."""
    probability = believed.probability.ravel().tolist()
    sampled = believed.sampled
    if sampled is not None and sampled.caution:
        warn(f"--gibbs: {sampled.caution}; ask without --gibbs")
    errors = None if sampled is None else sampled.standard_error.ravel().tolist()
    if as_json:
        echo_json(_belief_json(believed, probability, errors))
        return
    shown = [f"{p:.6f}" for p in probability]
    if sampled is None or errors is None:
        echo_rows([(*believed.targets, "probability")])
        echo_rows((*value, p) for value, p in zip(believed.values, shown, strict=True))
        return
    echo_rows([(*believed.targets, "probability", "standard error")])
    echo_rows(
        (*value, p, f"{error:.6f}")
        for value, p, error in zip(believed.values, shown, errors, strict=True)
    )
    echo_rows([(f"R-hat {sampled.r_hat:.4f}, {sampled.n_samples:,} samples",)])


def _belief_json(
    believed: "Belief", probability: list[float], errors: list[float] | None
) -> dict[str, object]:
    sampled = believed.sampled
    exact: list[float | None] = [None] * len(probability)
    rows = [
        {
            "values": dict(zip(believed.targets, value, strict=True)),
            "probability": p,
            "standard_error": error,
        }
        for value, p, error in zip(believed.values, probability, errors or exact, strict=True)
    ]
    if sampled is None:
        return {"rows": rows, "log_evidence": believed.log_evidence}
    # JSON has no infinity, which is the R-hat of chains that never left their start.
    r_hat = sampled.r_hat if sampled.r_hat < float("inf") else None
    return {
        "rows": rows,
        "r_hat": r_hat,
        "samples": sampled.n_samples,
        "burn_in": sampled.burn_in,
    }

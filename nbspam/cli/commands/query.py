"""nbspam query: what a Bayesian network believes, and its structure."""

from typing import Any

import click

from nbspam.cli.options import json_option
from nbspam.cli.output import echo_json, echo_rows
from nbspam.errors import UsageError


@click.command("query")
@click.argument("model")
@click.argument("more", nargs=-1, metavar="[NAME=VALUE]...")
@click.option("--evidence", multiple=True, metavar="NAME=VALUE", help="What is known.")
@click.option("--target", multiple=True, metavar="NAME", help="What is asked; jointly, if more.")
@click.option("--gibbs", type=int, metavar="N", help="Sample N times instead of calculating.")
@click.option(
    "--seed", type=int, metavar="N", default=0, show_default=True, help="Of the samples."
)
@click.option(
    "--independent",
    nargs=2,
    metavar="NAME NAME",
    help="Whether the graph says so, given the evidence.",
)
@click.option("--dot", is_flag=True, help="Print the graph in Graphviz's language.")
@click.option("--moral", is_flag=True, help="Of the moral graph: parents married, no arrows.")
@json_option
def command(
    model: str,
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

    MODEL is what `nbspam train --model network` wrote, or a network in JSON as this
    command prints it.  More evidence may follow the first.  Of models of mail, tokens
    are absent or present, and the class is called class.

    \b
    nbspam query m.nbspam
    nbspam query m.nbspam --evidence colour=green sound=dull --target ripe
    nbspam query m.nbspam --target ripe --gibbs 10000
    nbspam query m.nbspam --independent colour sound --evidence ripe
    """
    from nbspam.models.network.graphs import moral_graph, to_dot
    from nbspam.models.network.network import to_json
    from nbspam.models.network.questions import believe
    from nbspam.models.network.questions import independent as are_independent
    from nbspam.store.open import load_network

    named = load_network(model)
    network, words = named.network, (*evidence, *more)
    if independent:
        holds = are_independent(named, *independent, words)
        text = "independent" if holds else "dependent"
        echo_json({"independent": holds}) if as_json else echo_rows([(text,)])
    elif target:
        _show_belief(believe(named, target, words, gibbs, seed), as_json)
    elif words or gibbs is not None:
        raise UsageError("--evidence, --gibbs: for a question; say --target NAME too")
    elif dot:
        click.echo(to_dot(network.parents, network.names, moral))
    elif as_json:
        echo_json(to_json(network), indent=1)
    elif moral:
        edges = sorted(moral_graph(network.parents))
        echo_rows((network.names[a], "-", network.names[b]) for a, b in edges)
    else:
        for name, of in zip(network.names, network.parents, strict=True):
            echo_rows([(name, *(("<-", ", ".join(network.names[p] for p in of)) if of else ()))])


def _show_belief(believed: Any, as_json: bool) -> None:
    probability = believed.probability.ravel().tolist()
    sampled = believed.sampled
    errors = None if sampled is None else sampled.standard_error.ravel().tolist()
    if as_json:
        values = [dict(zip(believed.targets, value, strict=True)) for value in believed.values]
        rows = [{**v, "probability": p} for v, p in zip(values, probability, strict=True)]
        facts: dict[str, Any] = {"rows": rows}
        if sampled is None or errors is None:
            facts["log_evidence"] = believed.log_evidence
        else:
            for row, error in zip(rows, errors, strict=True):
                row["standard_error"] = error
            # JSON has no infinity: walks that never left their start have no figure.
            r_hat = sampled.r_hat if sampled.r_hat < float("inf") else None
            facts |= {"r_hat": r_hat, "samples": sampled.n_samples, "burn_in": sampled.burn_in}
        echo_json(facts)
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

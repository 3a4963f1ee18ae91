"""nbspam info, words, tokens, doctor, query and cluster: the contents of models and mail."""

import os
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import click

from nbspam.arrays import Floats
from nbspam.cli import inputs, options, output
from nbspam.cli.frame import Command, subcommand
from nbspam.cli.training_options import (
    attachments_option,
    pairs_option,
    preset_option,
    rounds_options,
)
from nbspam.errors import UsageError
from nbspam.models import EM_MODELS
from nbspam.printing import finite, readable_number, readable_probability
from nbspam.settings import SettingsChoices, chosen_settings, first_is_text
from nbspam.sources.files import read_json
from nbspam.sources.items import SourceOptions

if TYPE_CHECKING:
    from nbspam.classifier.classifier import Classifier
    from nbspam.models.em import Step
    from nbspam.models.network import Network
    from nbspam.models.network_questions import Belief

_MOST_SHOWN = 12  # tokens


@subcommand("info", "--model-file", "--json")
@options.model_option
@options.json_option
def info_command(model_path: str, as_json: bool) -> None:
    """Verify a model file, and show its training data and settings.

    \b
    nbspam info
    nbspam info -m mail.nbspam --json
    """
    classifier = cast("Classifier", inputs.loaded_model(model_path))
    n_bytes = os.path.getsize(model_path)
    table, sent = classifier.table, classifier.settings.sent_mail
    settings = classifier.settings.to_dict()
    n_docs = output.class_counts_of(table.classes, table.class_count)
    n_tokens, noun = len(table.vocabulary), classifier.noun
    if as_json:
        known = sent and {"messages": len(sent.messages), "correspondents": sent.n_correspondents}
        cutoffs = getattr(classifier, "cutoffs", None)
        output.echo_json(
            {
                "model": model_path,
                "bytes": n_bytes,
                "read": n_docs,
                "tokens": n_tokens,
                "forgotten": output.loss_json(table.loss),
                "sent_mail": known,
                "settings": settings,
                "cutoffs": cutoffs and cutoffs._asdict(),
            }
        )
        return
    settings |= settings.pop("parameters", {}) | settings.pop("tokens")
    if settings["combine"]:  # which uses none of these
        del settings["model"], settings["alpha"], settings["class_prior"]
    if settings.pop("columns", None):
        settings |= output.columns_read_json(classifier.settings.columns)
    output.echo_rows(
        [
            ("file", f"{model_path} ({n_bytes:,} bytes, verified)"),
            ("trained", output.total_text(n_docs, noun)),
            ("tokens", f"{n_tokens:,}"),
            *([("forgotten", output.loss_text(table.loss, noun))] if table.loss else []),
            *([("people", sent.in_words)] if sent else []),
            ("decision", _decision(model_path, classifier)),
            *((name, _setting_in_words(value)) for name, value in settings.items()),
            *_probability_rows(classifier),
        ]
    )


def _probability_rows(classifier: "Classifier") -> Iterator[tuple[str, ...]]:
    """Yield P(class), and P(token given class) of the commonest tokens, if the model has it."""
    from nbspam.classifier.sum import token_probabilities

    table = classifier.table
    probability = token_probabilities(table, classifier.settings)
    if probability is None:
        return
    yield ("",)
    yield ("P(token | class)", *table.classes)
    shown = (-table.document_frequency.astype(int)).argsort(kind="stable")[:_MOST_SHOWN].tolist()
    of_tokens = ((table.vocabulary.text(j), probability[j], table.feature_count[j]) for j in shown)
    for name, shares, counts in (("(class)", classifier.prior, table.class_count), *of_tokens):
        pairs = zip(shares.tolist(), counts.tolist(), strict=True)
        yield (name, *(f"{readable_probability(p, 6)} ({readable_number(n)})" for p, n in pairs))
    yield ("In brackets: counts.  All tokens: nbspam export",)


def _setting_in_words(value: object) -> str:
    if isinstance(value, (list, tuple)):
        return ", ".join(map(str, value)) or "no"
    if value is None or isinstance(value, bool):
        return "yes" if value else "no"
    return str(value)


def _decision(path: str, classifier: "Classifier") -> str:
    """Return how the model at a path decides by default."""
    from nbspam.decision import Cutoffs

    rule, is_tuned = classifier.rule, getattr(classifier, "cutoffs", None) is not None
    # The name of every model in a folder of `serve --users`.
    is_users = os.path.basename(path) == "model" and not is_tuned
    by_itself = "with serve --users, on top of the site's model; by itself, " if is_users else ""
    if classifier.lack is not None:
        return by_itself + classifier.lack
    if not isinstance(rule, Cutoffs):
        return "the most probable class"
    origin = "kept by `nbspam tune`" if is_tuned else "by the costs"
    unsure = "" if rule.unsure_cost is None else ", unsure between"
    return f"{by_itself}{rule.in_words}{unsure}; {origin}"


@subcommand("words", "--number", "--model-file", "--json")
@options.model_option
@options.number_option(20, "tokens per class")
@options.tokens_option
@options.json_option
def words_command(model_path: str, number: int, tokens: bool, as_json: bool) -> None:
    """Print the words that speak most strongly for each class.

    The columns are the weight of the token (its log-odds against the other classes, in
    nats), its count in both classes, or in the class and in all others, and the token.
    With more than two classes verdicts limit large weights; here they have no limit.  Runs
    of characters, which repeat the evidence of words, are left out without --tokens.

    \b
    nbspam words -n 10
    """
    from nbspam.classifier.classifier import strongest_tokens

    classifier = cast("Classifier", inputs.loaded_model(model_path))
    strongest = strongest_tokens(classifier, number, tokens)
    if as_json:
        for name, rows in strongest.items():
            for row in rows:
                counts = dict(zip(classifier.classes, row.counts, strict=True))
                output.echo_json({"class": name, **row._asdict(), "counts": counts})
        return
    many = len(classifier.classes) > 2
    for k, (name, rows) in enumerate(strongest.items()):
        heads = (name, "others") if many else classifier.classes
        output.echo_rows([(f"# {name}: weight", *heads, "token")])
        for row in rows:
            own = row.counts[k]
            shown = (own, sum(row.counts) - own) if many else row.counts
            output.echo_rows([(f"{row.weight:.3f}", *map(readable_number, shown), row.token)])


@subcommand("tokens", "--preset", "--pairs", "--json")
@inputs.sources_argument
@inputs.reading_options
@options.filling(SettingsChoices, "choices", preset_option, pairs_option, attachments_option)
@options.json_option
def tokens_command(
    sources: tuple[str, ...], reading: SourceOptions, choices: SettingsChoices, as_json: bool
) -> int:
    """Print the tokens of messages, and how often each occurs in its message.

    A token has its origin before it, as in subject:free or url:example.org, unless it is a
    word of the body.

    \b
    nbspam tokens message.eml
    nbspam tokens --pairs - < message.eml
    """
    from nbspam.classifier.classifier import token_counts

    is_text, items = first_is_text(inputs.items_of_sources(sources, reading))
    successes = output.Successes()
    counts = successes.of(token_counts(items, chosen_settings(choices, is_text)))
    if as_json:
        output.echo_each_as_json({"token": token, "count": count} for token, count in counts)
    else:
        output.echo_rows((str(count), token) for token, count in counts)
    return successes.status


@subcommand("doctor", "--repair", "--model-file", "--json")
@options.model_option
@click.option(
    "--repair",
    "repairs",
    is_flag=True,
    help="First save the good changes of a damaged journal; the damaged file is kept.",
)
@options.json_option
def doctor_command(model_path: str, repairs: bool, as_json: bool) -> int:
    """Verify a model, its journal and its lists of senders, and print the findings.

    The exit status is 0 if all is well, and 1 if something is bad.  A finding that is only
    a note costs no data.  One finding says who else can read the words of your mail that the
    model holds.  Without --repair nothing is changed.

    \b
    nbspam doctor
    nbspam doctor -m mail.nbspam --json
    nbspam doctor --repair
    """
    from nbspam.sharing.outbox import share_findings
    from nbspam.store.upkeep import BAD, findings, repair

    found = [repair(model_path)] if repairs else []
    found += [*findings(model_path), *share_findings(model_path)]
    if as_json:
        output.echo_json(
            {"model": model_path, "findings": [finding._asdict() for finding in found]}
        )
    else:
        output.echo_rows(found)
    return int(any(finding.state == BAD for finding in found))


# --- networks --------------------------------------------------------------------------------


class NetworkQuestion(NamedTuple):
    """A question to a network; without one its structure is printed."""

    more: tuple[str, ...]
    evidence: tuple[str, ...]
    target: tuple[str, ...]
    gibbs: int | None
    seed: int
    independent: tuple[str, str] | None
    dot: bool
    moral: bool
    as_json: bool


network_options = options.filling(
    NetworkQuestion,
    "question",
    click.argument("more", nargs=-1, metavar="[NAME[=VALUE]]..."),
    click.option(
        "--evidence",
        multiple=True,
        metavar="NAME=VALUE",
        help="State a known value; more NAME=VALUE may follow.",
    ),
    click.option(
        "--target",
        multiple=True,
        metavar="NAME[=VALUE]",
        help="Print the probability of a variable, or of one value of it.  More NAME may follow,"
        " and then the joint probabilities are printed.",
    ),
    click.option(
        "--gibbs", type=int, metavar="N", help="Estimate from N samples, instead of calculating."
    ),
    options.seed_option("the samples"),
    click.option(
        "--independent",
        nargs=2,
        metavar="NAME NAME",
        help="Say whether the graph makes two variables independent, given the evidence.",
    ),
    click.option("--dot", is_flag=True, help="Print the graph in the language of Graphviz."),
    click.option(
        "--moral",
        is_flag=True,
        help="Print the moral graph.  Parents of a variable are joined, and edges have no"
        " direction.",
    ),
    options.json_option,
)


class QueryCommand(Command):
    """A command whose words after an option belong to it."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the command line; refuse NAME=VALUE among the words after --target."""
        option, is_its_own = "", False
        for word in args:
            if word.startswith("-"):
                option, has_value, _ = word.partition("=")
                is_its_own = not has_value
            elif is_its_own:
                is_its_own = False
            elif option == "--target" and "=" in word:
                raise click.UsageError(
                    f"{word}: neither target nor evidence; write --target {word} for a joint"
                    f" probability, or --evidence {word}"
                )
        return super().parse_args(ctx, args)


@subcommand("query", "--target", "--evidence", "--model-file", "--json", kind=QueryCommand)
@options.model_option
@network_options
def query_command(model_path: str, question: NetworkQuestion) -> None:
    """Ask a Bayesian network of tokens, or print its structure.

    The model is one of `nbspam train --model network`, or a JSON file as this command prints
    it.  The variables are tokens, which are absent or present, and the class, which is called
    class.

    \b
    nbspam query -m m.nbspam
    nbspam query -m m.nbspam --target class --evidence viagra=present
    nbspam query -m m.nbspam --target class --gibbs 10000
    """
    ask_network(model_path, question)


def ask_network(model_path: str, question: NetworkQuestion) -> None:
    """Print the answer of a network, or its structure; raises ModelFileError and UsageError.

    model_path: a JSON file, or a model of the running command's kind.
    """
    from nbspam.models.network_questions import believe
    from nbspam.models.network_questions import independent as are_independent
    from nbspam.store.open import load_network, network_of_model

    more, evidence, target, gibbs, seed, independent, dot, moral, as_json = question
    words = *evidence, *(word for word in more if "=" in word or independent or not target)
    target = *target, *(word for word in more if word not in words)
    drawn = {"--dot" if dot else "--moral": dot or moral}
    output.refuse_two({"--json": as_json, **drawn})
    output.refuse_two({"--target": bool(target), "--independent": bool(independent), **drawn})
    if not target and (gibbs is not None or (words and not independent)):
        raise UsageError(
            "--evidence, --gibbs: for a question; say --target NAME too, and the model by -m FILE"
        )
    if gibbs is None and output.is_named("seed"):
        raise UsageError("--seed: for --gibbs N; give it, too")
    if model_path.lower().endswith(".json"):
        named = load_network(model_path)
    else:
        named = network_of_model(model_path, inputs.loaded_model(model_path))
    if independent:
        holds = are_independent(named, *independent, words)
        if as_json:
            output.echo_json({"independent": holds})
        else:
            output.echo_rows([("independent" if holds else "dependent",)])
    elif target:
        _show_belief(believe(named, target, words, gibbs, seed), as_json)
    else:
        _show_graph(named.network, dot, moral, as_json)


def _show_graph(network: "Network", dot: bool, moral: bool, as_json: bool) -> None:
    """Print the graph of a network: for Graphviz, as JSON with all tables, or as rows."""
    from nbspam.models.graphs import moral_graph, to_dot
    from nbspam.models.network import to_json

    if dot:
        click.echo(to_dot(network.parents, network.names, moral))
    elif as_json:
        output.echo_json(to_json(network))
    elif moral:
        edges = sorted(moral_graph(network.parents))
        output.echo_rows((network.names[a], "-", network.names[b]) for a, b in edges)
    else:
        for name, of in zip(network.names, network.parents, strict=True):
            output.echo_rows(
                [(name, *(("<-", ", ".join(network.names[p] for p in of)) if of else ()))]
            )


def _show_belief(believed: "Belief", as_json: bool) -> None:
    """Print the probability of every combination of values."""
    probability = believed.probability.ravel().tolist()
    sampled = believed.sampled
    if sampled is not None and sampled.caution:
        output.warn(f"--gibbs: {sampled.caution}; ask without --gibbs")
    errors = None if sampled is None else sampled.standard_error.ravel().tolist()
    if as_json:
        output.echo_json(_belief_json(believed, probability, errors))
        return
    numbers = {"probability": probability}
    if errors is not None:
        numbers["standard error"] = errors
    output.echo_rows([(*believed.targets, *numbers)])
    rows = zip(believed.values, zip(*numbers.values(), strict=True), strict=True)
    output.echo_rows((*value, *(readable_probability(n, 6) for n in row)) for value, row in rows)
    if sampled is not None:
        output.echo_rows([(f"R-hat {sampled.r_hat:.4f}, {sampled.n_samples:,} samples",)])


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
    r_hat = finite(sampled.r_hat)  # that of chains that never left their start is infinite
    return {"rows": rows, "r_hat": r_hat, "samples": sampled.n_samples, "burn_in": sampled.burn_in}


# --- clusters --------------------------------------------------------------------------------


class ClusterForm(NamedTuple):
    """The number of clusters, the length of the search, and the printed details."""

    k: int
    restarts: int
    rounds: int | None
    epsilon: float | None
    hard: bool
    seed: int
    trace: bool
    number: int
    assignments: bool
    as_json: bool

    def check(self) -> None:
        """Raise UsageError if two forms of answer are chosen."""
        output.refuse_two(
            {"--number": output.is_named("number"), "--assignments": self.assignments}
        )
        # A single JSON object has the rounds in a key, lines of JSON have no place for them.
        are_lines = self.assignments and self.as_json
        output.refuse_two({"--trace": self.trace, "--assignments --json": are_lines})


cluster_options = options.filling(
    ClusterForm,
    "form",
    click.option(
        "-k", required=True, type=click.IntRange(min=2), metavar="K", help="Number of clusters."
    ),
    options.count_option(
        "--restarts",
        most=options.MAX_RESTARTS,
        default=5,
        show_default=True,
        help="Number of random starts, of which the most likely result is kept.",
    ),
    *rounds_options,
    click.option("--hard", is_flag=True, help="Assign every document to one cluster entirely."),
    options.seed_option("the starts"),
    click.option("--trace", is_flag=True, help="Print every round of EM first."),
    options.number_option(10, "tokens, or values, per cluster"),
    click.option("--assignments", is_flag=True, help="Print the cluster of every item instead."),
    options.json_option,
)


mixture_options = options.filling(
    SettingsChoices,
    "mixture",
    click.option(
        "--model",
        type=click.Choice(EM_MODELS),
        help="Distribution of the tokens of a cluster.  [default: multinomial]",
    ),
    click.option(
        "--alpha",
        type=options.FROM_ZERO_OR_AUTO,
        metavar="NUMBER|auto",
        help="Smoothing: a number added to every count.  [default: auto, a tenth of all counts,"
        " spread evenly]",
    ),
    click.option(
        "--weighting",
        type=click.Choice(["presence", "counts", "unit-length", "tf-idf"]),
        help="Weight of a token that occurs several times in a document.",
    ),
    options.count_option(
        "--min-df", help="Drop tokens that occur in fewer than N documents.  [default: 2]"
    ),
)


@subcommand("cluster", "-k", "--number", "--assignments", "--json")
@inputs.sources_argument
@cluster_options
@mixture_options
@click.option(
    "--start", metavar="FILE", help="JSON file of components to start from, without restarts."
)
@inputs.reading_options
@options.jobs_option
@options.strict_option
def cluster_command(
    sources: tuple[str, ...],
    form: ClusterForm,
    mixture: SettingsChoices,
    start: str | None,
    reading: SourceOptions,
    jobs: int,
    strict: bool,
) -> None:
    """Sort documents without labels into K clusters, and print the typical tokens of each.

    The number after a token is its probability in the cluster.

    \b
    nbspam cluster ~/Maildir -k 5
    nbspam cluster tickets.csv -k 8 --assignments
    """
    from nbspam.classifier.unlabelled import cluster_documents, read_starts, typical_tokens
    from nbspam.cli.training import items_for_em
    from nbspam.models.em import stopping

    form.check()
    for name in ("restarts", "seed"):
        if start is not None and output.is_named(name):
            raise UsageError(f"--{name}: EM starts from --start; leave out one")
    given = inputs.items_of_sources(sources, reading)
    settings, items = items_for_em(given, reading, mixture)
    starts = [] if start is None else read_starts(read_json(start), f"--start {start}")
    how = form.restarts, form.hard, jobs, form.seed, starts, stopping(form.rounds, form.epsilon)
    found = cluster_documents(items, settings, form.k, *how)
    output.report_skipped(found.skipped, strict)
    named = found.names, found.classifier.classes, found.share
    typical = typical_tokens(found, form.number)
    show_clusters(form, found.fit.steps, *named, typical, ("documents", "tokens"), " ")


def show_clusters(
    form: ClusterForm,
    steps: "Sequence[Step]",
    names: Sequence[str],
    clusters: Sequence[str],
    share: Floats,
    typical: Mapping[str, Sequence[Any]],
    nouns: tuple[str, str],
    between: str,
) -> None:
    """Print the rounds of EM and the cluster of each item, as the form says, or the clusters.

    share: (n_items, n_clusters), probabilities.  typical: the typical tokens or values of each
    cluster, named tuples that say how a line shows them.  nouns: of the items, and of these.
    between: what separates them in a line.
    """
    from nbspam.cli.training import rounds_json, show_rounds

    items, what = nouns
    if form.trace and not form.as_json:  # which has the rounds in a key
        show_rounds(steps, is_asked_for=True)
    if form.assignments:
        best = [clusters[c] for c in share.argmax(axis=1).tolist()]
        rows = zip(best, share.max(axis=1).tolist(), names, strict=True)
        if form.as_json:
            facts = ({"name": name, "cluster": c, "share": p} for c, p, name in rows)
            output.echo_each_as_json(facts)
        else:
            output.echo_rows((c, f"{p:.4f}", name) for c, p, name in rows)
        return
    sizes = list(zip(clusters, share.sum(axis=0).tolist(), strict=True))
    if form.as_json:
        found = [
            {"cluster": c, items: n, what: [each._asdict() for each in typical[c]]}
            for c, n in sizes
        ]
        output.echo_json({**rounds_json(steps), "clusters": found})
        return
    output.echo_rows([("cluster", items, f"typical {what}")])
    output.echo_rows(
        (c, readable_number(n, 4), between.join(map(str, typical[c]))) for c, n in sizes
    )

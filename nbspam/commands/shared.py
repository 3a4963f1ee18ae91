"""What commands share: options, labelled sources, the model's place, safe printing.

Secret: how the command line's words become the library's values.
"""

import os
import sys
from collections.abc import Callable, Iterable, Iterator
from functools import reduce
from itertools import chain
from typing import Any

import click

from nbspam.errors import InputError, UsageError

Command = Callable[..., Any]


def default_model_path() -> str:
    """Return where the model lives unless told otherwise: the user's data folder."""
    if sys.platform == "win32":
        base = os.environ.get("LOCALAPPDATA") or os.path.expanduser("~")
    elif sys.platform == "darwin":
        base = os.path.expanduser("~/Library/Application Support")
    else:
        base = os.environ.get("XDG_DATA_HOME") or os.path.expanduser("~/.local/share")
    return os.path.join(base, "nbspam", "model.nbspam")


model_option = click.option(
    "-m",
    "--model-file",
    "model_path",
    envvar="NBSPAM_MODEL",
    default=default_model_path,
    metavar="FILE",
    show_default="in the user's data folder",
    help="The model; also $NBSPAM_MODEL.",
)
json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
strict_option = click.option(
    "--strict", is_flag=True, help="Fail at the first item that cannot be read."
)
jobs_option = click.option(
    "-j",
    "--jobs",
    type=click.IntRange(min=1),
    default=None,
    metavar="N",
    help="Processes at work  [default: one a core]",
)
MODEL_NAMES = (
    *("bernoulli", "multinomial", "complement"),
    *("spode", "tan", "aode", "a2de", "network"),
    *("categorical", "gaussian", "mixed"),
)
sources_argument = click.argument("sources", nargs=-1, metavar="[SOURCE]...")


def options_in_order(*options: Callable[[Command], Command]) -> Callable[[Command], Command]:
    """Return a decorator that adds several options, shown in this order."""
    return lambda command: reduce(lambda made, option: option(made), reversed(options), command)


format_options = options_in_order(
    click.option("--format", "format_", metavar="NAME", help="What SOURCE is: eml, mbox, csv, …"),
    click.option("--text-column", metavar="NAME", help="A table's column of texts."),
    click.option("--label-column", metavar="NAME", help="A table's column of classes."),
)
label_options = options_in_order(
    click.option("--spam", multiple=True, metavar="PATH", help="All of PATH is spam."),
    click.option("--ham", multiple=True, metavar="PATH", help="All of PATH is ham."),
    click.option("--label", multiple=True, metavar="NAME=PATH", help="All of PATH is NAME."),
)
decision_options = options_in_order(
    click.option("--fp-cost", metavar="NUMBER", help="Of ham called spam; a miss costs 1."),
    click.option("--unsure-cost", metavar="NUMBER", help="Of the answer unsure, then given too."),
    click.option("--loss", "loss_path", metavar="FILE", help="Answers and their costs, as JSON."),
)
prior_option = click.option(
    "--prior",
    "stated",
    multiple=True,
    metavar="NAME=P",
    help="How common a class is where you are, as spam=0.8; classify and eval also take"
    " `estimated`: by the mail itself.  [default: as in training]",
)
ESTIMATED = ("estimated",)
training_options = options_in_order(
    click.option(
        "--preset",
        type=click.Choice(["mail", "text", "tutorial"]),
        help="Settings as a whole  [default: mail, or text for tables]",
    ),
    click.option(
        "--model",
        type=click.Choice(MODEL_NAMES),
        metavar="NAME",
        help="Sums all evidence: bernoulli, multinomial, complement.  Lets few tokens depend on"
        " each other: spode, tan, aode, a2de, network.  Tables: these, categorical, gaussian,"
        " mixed.",
    ),
    click.option("--alpha", metavar="NUMBER|auto", help="Lidstone smoothing; 1 is Laplace's."),
    click.option(
        "--class-prior",
        metavar="estimated|uniform|smoothed|P,P,…",
        help="Prior probabilities, in the order of the class names.",
    ),
    click.option(
        "--weighting",
        type=click.Choice(["presence", "counts", "unit-length", "log-length", "tf-idf"]),
        help="What a repeated token counts.",
    ),
    click.option("--pairs/--no-pairs", default=None, help="Pairs of neighbouring words too."),
    click.option(
        "--characters/--no-characters", default=None, help="Runs of 1 to 5 characters too."
    ),
    click.option(
        "--strip",
        metavar="PART,PART,…",
        help="Read texts without their headers, footers or quotes.",
    ),
    click.option(
        "--min-df",
        type=click.IntRange(min=1),
        metavar="N",
        help="Drop tokens in fewer than N documents.",
    ),
    click.option(
        "--max-features",
        "--features",
        "max_features",
        type=click.IntRange(min=1),
        metavar="N",
        help="Keep the N tokens that tell most about the class.",
    ),
    click.option(
        "--estimate",
        type=click.Choice(["mle", "map", "mean"]),
        help="Tables, spode to network: how counts become probabilities; --alpha is the prior's."
        "  [default: mean]",
    ),
    click.option(
        "--min-support",
        type=click.FloatRange(min=0, min_open=True),
        metavar="N",
        help="aode, a2de: values in fewer than N documents are no parents.  [default: 1]",
    ),
    click.option(
        "--parent", metavar="COLUMN", help="spode of a table: the column all others depend on."
    ),
    click.option(
        "--criterion",
        type=click.Choice(["bic", "aic", "mdl", "likelihood"]),
        help="network: what its graph is chosen by.  [default: bic]",
    ),
    click.option(
        "--start",
        type=click.Choice(["tree", "naive", "empty"]),
        help="network: the graph to start from.  [default: tree]",
    ),
    click.option("--climb/--no-climb", default=None, help="network: change the graph from there."),
    click.option(
        "--max-parents",
        type=click.IntRange(min=1),
        metavar="N",
        help="network: of a variable at most N.  [default: 3, where tables stay small]",
    ),
)


def cores(jobs: int | None) -> int:
    """Return the number of processes asked for, or one a core."""
    from nbspam.parallel import available_cores

    return jobs or available_cores()


_MAX_LOSS_BYTES = 1 << 20
_FEATURE_PARAMETERS = (
    *("estimate", "min_support"),
    *("criterion", "start", "climb", "max_parents"),
)
_SOURCE_OPTIONS = ("format_", "text_column", "label_column")


def read_sources(sources: Iterable[str], options: dict[str, Any]) -> Iterable[Any]:
    """Yield the Items of all sources, labelled by the options or by themselves.

    Takes out of `options` what says how to read: formats, columns and classes.
    """
    from nbspam.sources import SourceOptions, read_items

    how = SourceOptions(*(options.pop(name) for name in _SOURCE_OPTIONS))
    named = [(name, path) for name in ("spam", "ham") for path in options.pop(name, ())]
    for pair in options.pop("label", ()):
        name, equals, path = pair.partition("=")
        if not (name and equals and path):
            raise UsageError(f"--label {pair}: not NAME=PATH; write it as --label work=mail/work")
        named.append((name, path))
    parts = [read_items([path], label=name, options=how) for name, path in named]
    if sources or not named:
        parts.insert(0, read_items(sources or ["-"], options=how))
    return chain.from_iterable(parts)


def settings_for(first_is_text: bool, choices: dict[str, Any], many: bool = False) -> Any:
    """Return the preset that fits, with the choices made on the command line.

    many: there are more than two classes.
    """
    from dataclasses import replace

    from nbspam.settings import FEATURES, MANY, PLAIN, PRESETS

    given = {name: value for name, value in choices.items() if value is not None}
    is_text = first_is_text or "strip" in given
    name = given.pop("preset", "text" if is_text else "mail")
    settings = MANY.get(name, PRESETS[name]) if many else PRESETS[name]
    # Whoever chooses a model or its parameters wants that model, not a combination.
    if given.keys() & {"model", "alpha", "class_prior", "weighting"}:
        settings = PLAIN.get(name, settings)
    parameters: dict[str, Any] = {
        name: given.pop(name) for name in _FEATURE_PARAMETERS if name in given
    }
    if given.get("model") in FEATURES:
        features = FEATURES[given["model"]]
        how = replace(settings, weighting="presence", alpha=1.0, max_features=features)
        settings = replace(how, parameters=parameters)
    elif parameters:
        name = next(iter(parameters)).replace("_", "-")
        raise UsageError(f"--{name}: for tables and --model {', '.join(FEATURES)}; leave it out")
    if "strip" in given:
        given["strip"] = tuple(given["strip"].split(","))
    chosen = {part: given.pop(part) for part in ("pairs", "characters") if part in given}
    settings = replace(settings, tokens=replace(settings.tokens, **chosen))
    if "alpha" in given:
        given["alpha"] = alpha_of(given["alpha"])
    if "class_prior" in given:
        given["class_prior"] = prior_of(given["class_prior"])
    return replace(settings, **given)


def alpha_of(text: str, choosing: bool = True) -> float | str:
    """Return the --alpha that a text says; choosing: it may be auto.  Raises UsageError."""
    if text == "auto" and choosing:
        return text
    try:
        alpha = float(text)
    except ValueError:
        alpha = -1.0
    if not 0 <= alpha < float("inf"):
        other = ", or auto" if choosing else ""
        raise UsageError(f"--alpha {text}: not a number from 0 up; give one{other}")
    return alpha


def prior_of(text: str, smoothed: bool = False) -> str | tuple[float, ...]:
    """Return the --class-prior that a text says; smoothed: that is one too.  Raises UsageError."""
    if text in ("estimated", "uniform") or (smoothed and text == "smoothed"):
        return text
    try:
        prior = tuple(float(part) for part in text.split(","))
    except ValueError:
        prior = ()
    if not prior or min(prior) <= 0 or abs(sum(prior) - 1) > 1e-9:
        raise UsageError(
            f"--class-prior {text}: not probabilities that sum to 1; write them as 0.3,0.7"
        )
    return prior


def prior_for(stated: Iterable[str], classes: tuple[str, ...], old: Any) -> Any:
    """Return the shares of the classes that --prior states; raises UsageError."""
    from nbspam.prevalence import stated_prior

    shares = {}
    for pair in stated:
        name, _, text = pair.rpartition("=")
        try:
            shares[name] = float(text)
        except ValueError:
            raise UsageError(f"--prior {pair}: not NAME=P; write it as --prior spam=0.8") from None
    return stated_prior(shares, classes, old)


def load_classifier(model_path: str, stated: Iterable[str]) -> Any:
    """Return the classifier in a model file, under the shares of classes that --prior states."""
    from nbspam.loading import load

    classifier: Any = load(model_path)
    if not stated:
        return classifier
    from nbspam.prevalence import with_prior

    return with_prior(classifier, prior_for(stated, classifier.classes, classifier.prior))


def decision_rule(model: Any, options: dict[str, Any]) -> Any:
    """Return the rule that the decision options ask for, or the model's (or trial's) own.

    Takes those options out of `options`.
    """
    from nbspam.decision import FP_COST, HAM_AND_SPAM, cutoffs

    names = ("fp_cost", "unsure_cost", "loss_path")
    fp_cost, unsure_cost, loss_path = (options.pop(name) for name in names)
    if loss_path is not None:
        if fp_cost is not None or unsure_cost is not None:
            raise UsageError("--loss: it has all costs; leave out --fp-cost and --unsure-cost")
        return _read_loss(loss_path, model.classes)
    if fp_cost is None and unsure_cost is None:
        return model.rule
    if model.classes != HAM_AND_SPAM:
        option = "--unsure-cost" if fp_cost is None else "--fp-cost"
        raise UsageError(
            f"{option}: the model's classes are {', '.join(model.classes)};"
            " it is for a model of ham and spam, give --loss FILE"
        )
    return cutoffs(
        FP_COST if fp_cost is None else _cost("--fp-cost", fp_cost),
        None if unsure_cost is None else _cost("--unsure-cost", unsure_cost),
    )


def _cost(option: str, text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise UsageError(f"{option} {text}: not a number above 0; a miss costs 1") from None


def _read_loss(path: str, classes: tuple[str, ...]) -> Any:
    """Return the loss matrix in a JSON file; raises UsageError."""
    import json

    from nbspam.decision import loss_matrix

    try:
        with open(path, "rb") as stream:
            data = stream.read(_MAX_LOSS_BYTES + 1)
        if len(data) > _MAX_LOSS_BYTES:
            raise UsageError(f"more than {_MAX_LOSS_BYTES:,} bytes")
        return loss_matrix(json.loads(data), classes)
    except OSError as error:
        reason = error.strerror or "cannot be read"
    except (ValueError, RecursionError):
        reason = "not JSON"
    except UsageError as error:
        reason = str(error)
    raise UsageError(
        f'--loss {path}: {reason}; write {{"actions": [name, …], "loss": {{class: [cost, …], …}}}}'
    )


def peek(items: Iterable[Any]) -> tuple[bool, Iterator[Any]]:
    """Return whether the first item is a table's text, and the items again."""
    items = iter(items)
    first = next(items, None)
    if first is None:
        raise InputError("sources: nothing to read; name a folder, a file or a table of mail")
    return first.is_text, chain([first], items)


# How far ahead the classes are looked for; whoever names more of them later than that is
# read as if there were two.
_AHEAD_ITEMS, _AHEAD_BYTES = 50_000, 1 << 26


def are_many(items: Iterator[Any]) -> tuple[bool, Iterator[Any]]:
    """Return whether the items have more than two classes, and the items again."""
    labels: set[str] = set()
    seen = []
    size = 0
    for item in items:
        seen.append(item)
        size += len(item.data or b"")
        labels |= {item.label} - {None}
        # A filter is not kept waiting: what is called ham or spam is a mail filter's.
        if len(labels) > 2 or labels & {"ham", "spam"}:
            break
        if len(seen) >= _AHEAD_ITEMS or size >= _AHEAD_BYTES:
            break
    return len(labels) > 2, chain(seen, items)


def echo_rows(rows: Iterable[Iterable[str]]) -> None:
    """Print rows of fields with tabs between; strangers' control characters spelt out."""
    from nbspam.printing import printable, write_lines

    write_lines(("\t".join(map(printable, row)) for row in rows), sys.stdout)


def echo_json(values: Any, indent: int | None = None) -> None:
    """Print one JSON document."""
    import json

    click.echo(json.dumps(values, indent=indent))


def json_line(value: Any) -> str:
    """Return a value as JSON on one line."""
    import json

    return json.dumps(value)


def verdict_json(verdict: Any) -> dict[str, Any]:
    """Return a verdict's values for JSON."""
    values = {"name": verdict.name, "label": verdict.label, "posterior": verdict.posterior}
    if verdict.score is not None:
        last = list(verdict.posterior.values())[-1]
        values |= {"probability": last, "score": verdict.score}
    return values


def warn(line: str) -> None:
    """Print one line of diagnosis on standard error."""
    from nbspam.printing import printable

    click.echo(f"nbspam: {printable(line)}", err=True)


def report_skipped(skipped: Iterable[Any], strict: bool = False, most: int = 5) -> None:
    """Say on standard error what was not read, the first few by name."""
    failures = list(skipped)
    if failures and strict:
        raise InputError(f"{failures[0].name}: {_reason(failures[0])} (--strict)")
    for failure in failures[:most]:
        warn(f"skipped {failure.name}: {_reason(failure)}")
    if len(failures) > most:
        warn(f"skipped {len(failures) - most} more")


def _reason(failure: Any) -> str:
    return str(failure.reason).removeprefix(f"{failure.name}: ")


def today() -> int:
    """Return the day it is, counted from 1970-01-01."""
    import time

    return int(time.time() // 86_400)


def report_outcome(outcome: Any, model_path: str, as_json: bool) -> int:
    """Print what became of messages that were to be learned; return the exit status."""
    report_skipped(outcome.skipped)
    for note in outcome.notes:
        warn(note)
    counts = {
        "learned": outcome.learned,
        "already known": outcome.already_known,
        "moved": outcome.moved,
        "un-learned": outcome.unlearned,
        "not known": outcome.unknown,
        "right already": outcome.passed,
        "skipped": len(outcome.skipped),
    }
    if as_json:
        skipped = [{"name": s.name, "reason": s.reason} for s in outcome.skipped]
        names = {name.replace(" ", "_").replace("-", ""): n for name, n in counts.items()}
        echo_json({"model": model_path, **names, "skipped": skipped, "notes": outcome.notes})
    else:
        said = ", ".join(f"{name} {n:,}" for name, n in counts.items() if n)
        echo_rows([(said or "nothing to do",)])
    return 1 if outcome.skipped else 0

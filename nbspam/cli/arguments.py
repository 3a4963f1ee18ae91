"""What the command line's words mean: sources, settings, classifiers, rules.

Secret: how the command line's words become the library's values.
"""

from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Any

from nbspam.errors import InputError, UsageError

ESTIMATED = ("estimated",)  # what --prior says where the mail itself is to tell
_MAX_LOSS_BYTES = 1 << 20
_FEATURE_PARAMETERS = (
    *("estimate", "min_support"),
    *("criterion", "start", "climb", "max_parents"),
)
_SOURCE_OPTIONS = ("format_", "text_column", "label_column")


def cores(jobs: int | None) -> int:
    """Return the number of processes asked for, or one a core."""
    from nbspam.parallel import available_cores

    return jobs or available_cores()


def today() -> int:
    """Return the day it is, counted from 1970-01-01."""
    import time

    return int(time.time() // 86_400)


def read_sources(sources: Iterable[str], options: dict[str, Any]) -> Iterable[Any]:
    """Yield the Items of all sources, labelled by the options or by themselves.

    Takes out of `options` what says how to read: formats, columns and classes.
    """
    from nbspam.sources.items import SourceOptions, read_items

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
    settings = replace(settings, tokens=settings.tokens._replace(**chosen))
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
    from nbspam.decision import stated_prior

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
    from nbspam.store.open import load

    classifier: Any = load(model_path)
    if not stated:
        return classifier
    from nbspam.decision import with_prior

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

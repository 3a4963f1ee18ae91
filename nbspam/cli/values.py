"""The types of option values: one word of a command line becomes a number, a name or a pair.

A word that does not fit is refused by click: `--alpha x: not a number from 0 up; give one`.

Secret: the spelling of values.
"""

from collections.abc import Callable, Iterable
from math import inf

import click

from nbspam.cli.frame.config import wrong_value

AUTO, ESTIMATED = "auto", "estimated"


class Value(click.ParamType[object]):
    """A type made of a function that reads one word, or raises ValueError."""

    def __init__(self, name: str, read: Callable[[str], object], wrong: str) -> None:
        self.name, self._read, self._wrong = name, read, wrong

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> object:
        """Return what a word means, or fail with the word and what is wrong with it."""
        if not isinstance(value, str):
            return value  # a default
        try:
            return self._read(value)
        except ValueError:
            self.fail(f"{value}: {self._wrong}", param, ctx)


def _require(is_right: bool) -> None:
    if not is_right:
        raise ValueError


def _number_from_zero(text: str) -> float:
    number = float(text)
    _require(0 <= number < inf)
    return number


def _number_above_zero(text: str) -> float:
    number = float(text)
    _require(0 < number < inf)
    return number


def _number_or_auto(text: str) -> float | str:
    return text if text == AUTO else _number_from_zero(text)


def _class_prior(text: str) -> str | tuple[float, ...]:
    if text in (ESTIMATED, "uniform", "smoothed"):
        return text
    prior = tuple(float(part) for part in text.split(","))
    _require(min(prior) > 0 and abs(sum(prior) - 1) <= 1e-9)
    return prior


def _named_path(text: str) -> tuple[str, str]:
    name, _, path = text.partition("=")
    _require(bool(name and path))
    return name, path


def _share(text: str) -> tuple[str, float]:
    name, _, number = text.rpartition("=")
    return name, float(number)


def _share_or_estimated(text: str) -> tuple[str, float] | str:
    return text if text == ESTIMATED else _share(text)


def _folds(text: str) -> int | str:
    return text if text == "loo" else int(text)


def _shard(text: str) -> tuple[int, int]:
    number, _, of = text.partition("/")
    _require(number.isdecimal() and of.isdecimal() and 1 <= int(number) <= int(of))
    return int(number), int(of)


def _day(text: str) -> int:
    from datetime import date

    day = date.fromisoformat(text).toordinal() - date(1970, 1, 1).toordinal()
    _require(0 <= day < 1 << 16)
    return day


def _letter(text: str) -> str:
    _require(len(text) == 1 and text.isascii() and text.isalpha())
    return text


def _parts(text: str) -> tuple[str, ...]:
    return tuple(text.split(","))


def _declared(text: str) -> tuple[str, tuple[str, ...]]:
    import csv

    name, _, listed = text.partition("=")
    values = tuple(value.strip() for value in next(csv.reader([listed]), []))
    _require(bool(name) and bool(values) and all(values) and len(set(values)) == len(values))
    return name, values


def _dirichlet(text: str) -> tuple[str | None, tuple[float, ...]]:
    name, _, listed = text.rpartition("=")
    parameters = tuple(_number_from_zero(part) for part in listed.split(","))
    return name or None, parameters


_WRONG_NUMBER = "not a number from 0 up; give one, or auto"
_WRONG_SHARE = "not NAME=P; write it as --prior spam=0.8"

ALPHA = Value("alpha", _number_or_auto, _WRONG_NUMBER)
WEIGHT = Value("weight", _number_or_auto, _WRONG_NUMBER)
CLASS_PRIOR = Value(
    "prior", _class_prior, "not probabilities that sum to 1; write them as 0.3,0.7"
)
COST = Value("cost", _number_above_zero, "not a number above 0; a miss costs 1")
NAMED_PATH = Value("label", _named_path, "not NAME=PATH; write it as --label work=mail/work")
SHARE = Value("share", _share, _WRONG_SHARE)
SHARE_OR_ESTIMATED = Value("share", _share_or_estimated, _WRONG_SHARE)
FOLDS = Value("folds", _folds, "not a number of folds; give one, or loo")
LETTER = Value("letter", _letter, "not one letter; give one, as in --flag F")
SHARD = Value(
    "shard",
    _shard,
    "not I/N; I counts from 1 to N, while other systems count from 0: write 1/4 for their 0 of 4",
)
DAY = Value("day", _day, "not a day from 1970-01-01 on; write it as 2026-11-22")
DECLARED = Value(
    "values", _declared, "not COLUMN=VALUE,VALUE; write it as --values colour=red,green"
)
DIRICHLET = Value(
    "dirichlet", _dirichlet, "not [COLUMN=]A,A with numbers from 0 up; write --dirichlet 2,5"
)
PARTS = Value("parts", _parts, "")

Shares = dict[str, float]


def shares(
    ctx: click.Context, param: click.Parameter, words: Iterable[tuple[str, float] | str]
) -> Shares | str | None:
    """Return all values of --prior as one: shares by class, `estimated`, or None."""
    given = list(words)
    if given == [ESTIMATED]:
        return ESTIMATED
    pairs = [word for word in given if not isinstance(word, str)]
    if len(pairs) < len(given):
        raise click.BadParameter(f"{ESTIMATED}: {_WRONG_SHARE}", ctx, param)
    return dict(pairs) or None


def complaint(error: click.ClickException) -> str:
    """Return what click found wrong, in one line: `--cv x: not a number; see …`."""
    text = reason(error)
    context = error.ctx if isinstance(error, click.UsageError) else None
    if context is None or ";" in text or text.endswith("?"):
        return text
    return f"{text}; see `{context.command_path} --help`"


def _spelt(error: click.BadParameter) -> str:
    """Return the name of a wrong value: that of the option, or of its environment variable."""
    from click.core import ParameterSource

    option = error.param
    if option is None:
        return "option"
    if error.ctx is not None and option.name is not None:
        source = error.ctx.get_parameter_source(option.name)
        if source == ParameterSource.ENVIRONMENT:
            return str(option.envvar)
    return max(option.opts, key=len)


def reason(error: click.ClickException) -> str:
    """Return what click found wrong, without advice."""
    text = error.format_message()
    if isinstance(error, click.BadParameter) and not isinstance(error, click.MissingParameter):
        text = f"{_spelt(error)} {wrong_value(error)}"
    return " ".join(text.split()).rstrip(".")

"""Options that several commands share, and the values that they fill.

`@decision_options` adds --fp-cost, --unsure-cost and --loss to a command, which gets them all as
one value `decision`.  Such values are NamedTuples, of this module or of the library: a dataclass
takes 1.6 ms or more to define, at every start.
"""

import os
import re
from collections.abc import Callable, Iterable
from dataclasses import replace
from datetime import date
from functools import wraps
from inspect import signature
from math import inf, isfinite
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from nbspam.arrays import EPOCH, LARGEST_COUNT, LARGEST_SEED, LAST_DAY
from nbspam.cli import frame, output
from nbspam.errors import UsageError

if TYPE_CHECKING:
    from nbspam.decision import Rule
    from nbspam.evaluation.evaluation import Trial
    from nbspam.verdicts import AnyClassifier
    from nbspam.workers import Workers

_MAX_LOSS_BYTES = 1 << 20
MAX_RESTARTS = 10_000  # random starts of EM; a larger number is a slip of the keyboard
ESTIMATED = "estimated"

# --- values: one word of a command line becomes a number, a name or a pair -------------------
#
# click refuses a word that does not fit: `--alpha x: not a number from 0 up; give one`.


class Value(click.ParamType):  # type: ignore[type-arg]  # click 8.4 made it generic
    """A type made of a function that reads one word, or raises ValueError."""

    name = "value"

    def __init__(self, read: Callable[[str], object], wrong: str) -> None:
        self._read, self._wrong = read, wrong

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> object:
        """Return the value of a word, or fail with the word and its fault."""
        if not isinstance(value, str):
            return value  # a default
        try:
            return self._read(value)
        except ValueError:
            shown = value or "''"
            self.fail(f"{shown}: {self._wrong}", param, ctx)


class FiniteRange(click.FloatRange):
    """A range of numbers; click's own ranges take nan, and inf without an upper end."""

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """Return the number that a word states, or fail."""
        number = super().convert(value, param, ctx)
        return number if isfinite(number) else self.fail(f"{value} is not a number", param, ctx)


def _require(is_right: bool) -> None:
    if not is_right:
        raise ValueError


def _number_from_zero(text: str) -> float:
    number = float(text)
    _require(0 <= number < inf)
    return number


def _number_above_zero(text: str) -> float:
    number = _number_from_zero(text)
    _require(number > 0)
    return number


def _or(word: str, read: Callable[[str], object]) -> Callable[[str], object]:
    return lambda text: text if text == word else read(text)


def _class_prior(text: str) -> str | tuple[float, ...]:
    if text in (ESTIMATED, "uniform", "smoothed"):
        return text
    prior = tuple(float(part) for part in text.split(","))
    _require(min(prior) > 0 and abs(sum(prior) - 1) <= 1e-9)
    return prior


def _file(text: str) -> str:
    _require(bool(os.path.basename(text)) and "://" not in text)
    return os.path.expanduser(text)  # of the environment, which no shell reads in cron


def _named_path(text: str) -> tuple[str, str]:
    name, _, path = text.partition("=")
    _require(bool(name and path))
    from unicodedata import normalize  # late: few commands need it

    return normalize("NFC", name), path  # a Mac takes the letters of a folder's name apart


def _share(text: str) -> tuple[str, float]:
    name, _, number = text.rpartition("=")
    _require(bool(name))
    return name, float(number)


def _shard(text: str) -> tuple[int, int]:
    number, _, of = text.partition("/")
    _require(number.isdecimal() and of.isdecimal() and 1 <= int(number) <= int(of) < 1 << 31)
    return int(number), int(of)


def _day(text: str) -> int:
    day = date.fromisoformat(text).toordinal() - EPOCH
    _require(0 <= day <= LAST_DAY)
    return day


def _letter(text: str) -> str:
    _require(len(text) == 1 and text.isascii() and text.isalpha() and text not in "PRST")
    return text


def _mode(text: str) -> int:
    _require(re.fullmatch("[0-7]{3,4}", text) is not None)
    return int(text, 8)


def _declared(text: str) -> tuple[str, tuple[str, ...]]:
    import csv

    name, _, listed = text.partition("=")
    try:
        values = tuple(value.strip() for value in next(csv.reader([listed]), []))
    except csv.Error as error:  # an end of line outside quotation marks
        raise ValueError from error
    _require(bool(name) and bool(values) and all(values) and len(set(values)) == len(values))
    return name, values


def _dirichlet(text: str) -> tuple[str | None, tuple[float, ...]]:
    name, _, listed = text.rpartition("=")
    parameters = tuple(_number_from_zero(part) for part in listed.split(","))
    return name or None, parameters


def _beta(text: str) -> tuple[float, ...]:
    present, absent = map(_number_from_zero, text.split(","))
    return present, absent


_WRONG_SHARE = "not NAME=P; write it as --prior spam=0.8"

FROM_ZERO = Value(_number_from_zero, "not a number from 0 up; give one")
FROM_ZERO_OR_AUTO = Value(
    _or("auto", _number_from_zero), "not a number from 0 up; give one, or auto"
)
CLASS_PRIOR = Value(_class_prior, "not numbers above 0 that sum to 1; write 0.3,0.7, or uniform")
COST = Value(_number_above_zero, "not a number above 0; a miss costs 1")
FILE = Value(_file, "no name of a file here; give one")
NAMED_PATH = Value(_named_path, "not NAME=PATH; write it as --label work=mail/work")
SHARE = Value(_share, _WRONG_SHARE)
SHARE_OR_ESTIMATED = Value(_or(ESTIMATED, _share), _WRONG_SHARE)
FOLDS = Value(_or("loo", int), "not a number of folds; give one, or loo")
LETTER = Value(_letter, "not a letter that people set (programs set P, R, S and T); give --flag F")
SHARD = Value(_shard, "not I/N; shards are numbered from 1: the first of four is 1/4")
DAY = Value(_day, "not a day from 1970-01-01 on; write it as 2026-11-22")
DECLARED = Value(_declared, "not COLUMN=VALUE,VALUE; write it as --values colour=red,green")
DIRICHLET = Value(_dirichlet, "not [COLUMN=]A,A with numbers from 0 up; write --dirichlet 2,5")
BETA = Value(_beta, "not two numbers from 0 up; write them as --beta 2,5")
MODE = Value(_mode, "not three digits from 0 to 7; write 660 for owner and group, 666 for all")
PARTS = Value(lambda text: tuple(text.split(",")), "")

PriorShares = dict[str, float]


def shares(
    ctx: click.Context, param: click.Parameter, words: Iterable[tuple[str, float] | str]
) -> PriorShares | str | None:
    """Return all values of --prior as one: shares by class, `estimated`, or None."""
    given = list(words)
    if given == [ESTIMATED]:
        return ESTIMATED
    pairs = [word for word in given if not isinstance(word, str)]
    if len(pairs) < len(given):
        raise click.BadParameter(f"{ESTIMATED}: {_WRONG_SHARE}", ctx, param)
    if len(dict(pairs)) < len(pairs):
        raise click.BadParameter("names a class twice; give each class one share", ctx, param)
    return dict(pairs) or None


def complaint(error: click.ClickException) -> str:
    """Return the fault that click found, in one line: `--cv x: not a number; see …`."""
    text = reason(error)
    context = error.ctx if isinstance(error, click.UsageError) else None
    if context is None or ";" in text or text.endswith("?"):
        return text
    advice = f"see `{context.command_path} --help`"
    if text.startswith("Got unexpected extra argument") and "model_path" in context.params:
        advice = f"give a model with -m, or {advice}"
    if not isinstance(error, click.NoSuchOption):
        return f"{text}; {advice}"
    if isinstance(context.command, click.Group):
        text += " before the command"
        advice = f"give it after the command, or {advice}"
    return frame.near(text, error.option_name, error.possibilities or (), advice)


def _spelt(error: click.BadParameter) -> str:
    """Return the name of a wrong value: that of the option, or of its environment variable."""
    option, context = error.param, error.ctx
    assert option is not None  # click adds them where a callback leaves them out
    assert context is not None
    if context.get_parameter_source(str(option.name)) is click.core.ParameterSource.ENVIRONMENT:
        return str(option.envvar)
    return max(option.opts, key=len)


def reason(error: click.ClickException) -> str:
    """Return the fault that click found, without advice."""
    if isinstance(error, click.NoSuchOption):
        return f"{error.option_name}: no such option"
    text = error.format_message()
    if isinstance(error, click.BadParameter) and not isinstance(error, click.MissingParameter):
        text = f"{_spelt(error)} {frame.wrong_value(error)}"
    return " ".join(text.split()).rstrip(".")


# --- options, and the values they fill -------------------------------------------------------

# Titles under which help lists options.
SOURCES = "What is read"
COSTS = "Costs of mistakes, and shares of the classes"
JUDGING = "How it is judged, and what is shown"


class Decision(NamedTuple):
    """The stated costs of decisions; a miss costs 1."""

    fp_cost: float | None = None
    unsure_cost: float | None = None
    loss: str | None = None  # the path of a file with all costs


class StatedAccess(NamedTuple):
    """The access to mail accounts whose tables in the configuration state none."""

    password_command: str | None = None
    token_command: str | None = None
    tls_ca: str | None = None  # the path of a file of certificates


def default_model_path() -> str:
    """Return the default path of the model, in the user's data folder; raises click.UsageError."""
    folder = frame.user_folder("XDG_DATA_HOME", "~/.local/share")
    if folder.startswith("~"):
        raise click.UsageError("this user has no home folder; set HOME, or give the model with -m")
    return os.path.join(folder, "model.nbspam")


def filling(
    kind: Callable[..., Any], name: str, *declared: frame.Decorator | str
) -> frame.Decorator:
    """Return a decorator that adds options, whose values the command gets as one.

    kind: a type or function with a parameter for every option; a parameter that no option is for
    keeps its default.  name: the command's parameter.  declared: as for `frame.titled`.
    """

    def decorated(command: frame.Function) -> frame.Function:
        others = list(getattr(command, "__click_params__", ()))

        @wraps(command)
        def filled(**values: Any) -> Any:
            own = {
                each: values.pop(each)
                for each, parameter in signature(kind).parameters.items()
                if each in options or parameter.default is parameter.empty
            }
            return command(**values, **{name: kind(**own)})

        made = frame.titled(*declared)(filled)
        added = (each for each in getattr(made, "__click_params__", ()) if each not in others)
        options = {each.name for each in added}
        return made

    return decorated


def count_option(*names: str, most: int | None = None, **attributes: Any) -> frame.Decorator:
    """Return an option whose value is a whole number N from 1 up; most: the largest."""
    return click.option(*names, type=click.IntRange(1, most), metavar="N", **attributes)


access_options = filling(
    StatedAccess,
    "access",
    frame.ACCOUNTS,
    click.option(
        "--password-command",
        metavar="COMMAND",
        help="Take the password of an account (imaps://USER@HOST) from the output of COMMAND.",
    ),
    click.option(
        "--token-command",
        metavar="COMMAND",
        help="Take an access token of OAuth2 from what COMMAND prints, whenever one is needed.",
    ),
    click.option(
        "--tls-ca",
        metavar="FILE",
        help="Trust the certificates in FILE, for a mail server of your own.",
    ),
)
null_option = click.option(
    "-0",
    "--null",
    is_flag=True,
    help="End each answer in NUL, with the name as it is: for `xargs -0` and --files0-from.",
)
model_option = frame.titled(
    frame.COMMON,
    click.option(
        "-m",
        "--model-file",
        "model_path",
        type=FILE,
        envvar="NBSPAM_MODEL",
        default=default_model_path,
        metavar="FILE",
        show_default="in the user's data folder",
        help="The model file.  The environment variable NBSPAM_MODEL sets it too.",
    ),
)
json_option = frame.titled(
    frame.COMMON,
    click.option("--json", "as_json", is_flag=True, help="Print JSON instead of text."),
)
strict_option = frame.titled(
    frame.COMMON,
    click.option(
        "--strict", is_flag=True, help="Fail if an item cannot be read, instead of skipping it."
    ),
)
_jobs_option = count_option(
    "-j", "--jobs", help="Number of processes to work in.  [default: one for each core]"
)


def _workers(jobs: int | None, engine: str | None) -> "Workers":
    """Return how many processes --jobs says, or one for each core; or the workers of --engine."""
    from nbspam.workers import workers_of

    # They end with the command.
    return click.get_current_context().with_resource(workers_of(engine, processes(jobs)))


def processes(jobs: int | None) -> int:
    """Return how many processes --jobs says, or one for each core."""
    from nbspam.workers import available_cores

    return jobs or available_cores()


jobs_option = filling(processes, "jobs", frame.COMMON, _jobs_option)
workers_options = filling(
    _workers,
    "jobs",
    frame.COMMON,
    _jobs_option,
    click.option(
        "--engine",
        metavar="NAME[:ADDRESS]",
        help="Workers that read and count: fork, dask, dask:ADDRESS of a scheduler, loky or ray."
        "  [default: fork]",
    ),
)


def _prior_option(kind: Value, metavar: str, more: str = "") -> frame.Decorator:
    """Return the option of how common classes are; more: said of it in help."""
    option = click.option(
        "--prior",
        type=kind,
        multiple=True,
        callback=shares,
        metavar=metavar,
        help=f"State the share of a class in what is judged, as in spam=0.8{more}.  [default: as"
        " in training]",
    )
    return frame.titled(COSTS, option)


prior_option = _prior_option(SHARE, "NAME=P")
prior_or_estimated_option = _prior_option(
    SHARE_OR_ESTIMATED, "NAME=P|estimated", "; `estimated` finds the shares there"
)
sent_option = frame.titled(
    SOURCES,
    click.option(
        "--sent",
        multiple=True,
        metavar="PATH",
        callback=lambda context, option, paths: tuple(output.tell_waiting(paths)),
        help="Learn whom you know from mail that you sent.  [default: .Sent or Sent, beside the "
        "Maildirs that are read]  A model keeps hashes of the ids of these messages and of the "
        "people they went to.",
    ),
)
new_class_option = click.option(
    "--new-class", is_flag=True, help="Accept a class that the model does not have yet."
)


def number_option(default: int, what: str) -> frame.Decorator:
    """Return the option that says how many of something are shown; what: these, in the plural."""
    return count_option(
        "-n", "--number", default=default, show_default=True, help=f"Show N {what}."
    )


tokens_option = click.option(
    "--tokens", is_flag=True, help="Show every token by itself, also runs of characters."
)


def output_option(text: str) -> frame.Decorator:
    """Return the required option that names the file to write; text: its help."""
    return click.option(
        "-o", "--output", "output_path", type=FILE, required=True, metavar="FILE", help=text
    )


def picture_option(text: str) -> frame.Decorator:
    """Return the option that names a file for a picture; text: its help."""
    return click.option("--plot", metavar="FILE", help=text + "  FILE ends in .svg or .png.")


def log_option(text: str) -> frame.Decorator:
    """Return the option that chooses the form of log lines; text: its help."""
    forms = click.Choice(["text", "json", "none"])
    return click.option("--log", type=forms, default="text", show_default=True, help=text)


def seed_option(thing: str) -> frame.Decorator:
    """Return the option that makes another run draw the same random numbers."""
    return click.option(
        "--seed",
        type=click.IntRange(0, LARGEST_SEED),
        metavar="N",
        default=0,
        show_default=True,
        help=f"Seed of the random numbers that draw {thing}.",
    )


folds_option = click.option(
    "--cv",
    type=FOLDS,
    default=10,
    show_default=True,
    metavar="K|loo",
    help="Number of folds of the cross-validation; loo leaves out one document at a time.",
)
fp_cost_option = click.option(
    "--fp-cost",
    type=COST,
    metavar="NUMBER",
    help="Cost of calling ham spam, where missing a spam costs 1.  [default: 2]",
)
unsure_cost_option = click.option(
    "--unsure-cost",
    type=COST,
    metavar="NUMBER",
    help="Cost of the answer unsure, where missing a spam costs 1.  [default: never answer"
    " unsure]",
)
decision_options = filling(
    Decision,
    "decision",
    COSTS,
    fp_cost_option,
    unsure_cost_option,
    click.option(
        "--loss",
        metavar="FILE",
        help="JSON file of the possible answers and their costs in each class.",
    ),
)


def report_option(what: str) -> frame.Decorator:
    """Return the option that writes a page for people; what: it shows."""
    return click.option(
        "--report",
        metavar="FILE.html",
        help=f"Write a page for people into FILE.html: {what}.  It is one file that needs neither"
        " network nor script.",
    )


def report_options(what: str) -> tuple[frame.Decorator, frame.Decorator]:
    """Return the options of a report on an evaluation; what: it shows."""
    per_week = count_option(
        "--per-week",
        most=LARGEST_COUNT,
        help="In --report, say what the errors mean for N messages a week.  [default: for a"
        " thousand messages]",
    )
    return report_option(what), per_week


# --- costs and shares: the rule by which probabilities become labels -------------------------


def rule_of(decision: Decision, deciding: "AnyClassifier | Trial") -> "Rule":
    """Return the rule that follows from the stated costs, else the default; raises UsageError."""
    from nbspam.decision import FP_COST, HAM_AND_SPAM, cutoffs

    fp_cost, unsure_cost = decision.fp_cost, decision.unsure_cost
    if decision.loss is not None:
        if fp_cost is not None or unsure_cost is not None:
            raise UsageError("--loss: it has all costs; leave out --fp-cost and --unsure-cost")
        return _read_loss(decision.loss, deciding.classes)
    if fp_cost is None and unsure_cost is None:
        return deciding.rule
    if deciding.classes != HAM_AND_SPAM:
        option = "--unsure-cost" if fp_cost is None else "--fp-cost"
        raise UsageError(
            f"{option}: the model's classes are {', '.join(deciding.classes)};"
            " it is for a model of ham and spam, give --loss FILE"
        )
    return cutoffs(FP_COST if fp_cost is None else fp_cost, unsure_cost)


def _read_loss(path: str, classes: tuple[str, ...]) -> "Rule":
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
        fault = error.strerror or "cannot be read"
    except (ValueError, RecursionError):
        fault = "not JSON"
    except UsageError as error:
        fault = str(error)
    raise UsageError(
        f'--loss {path}: {fault}; write {{"actions": [name, …], "loss": {{class: [cost, …], …}}}}'
    )


def trial_under(trial: "Trial", prior: PriorShares | str | None, decision: Decision) -> "Trial":
    """Return a trial under the prior and the costs that are stated."""
    from nbspam.decision import estimate_prior, stated_prior
    from nbspam.evaluation.evaluation import trial_under_prior

    if isinstance(prior, str):
        trial = trial_under_prior(trial, estimate_prior(trial.probability, trial.prior))
    elif prior is not None:
        trial = trial_under_prior(trial, stated_prior(prior, trial.classes, trial.prior))
    return replace(trial, rule=rule_of(decision, trial), has_costs=decision != Decision())

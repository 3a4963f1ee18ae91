"""An evaluation as text for a terminal, as values for JSON, and as a page that may load nothing.

Text is laid out for 80 columns and may change between releases.  The JSON keys stay, and so
does the classification report, which has scikit-learn's layout to the letter.  Class names are
padded by their width in a terminal, where a Chinese character takes two columns.

Pages come from templates in which all text is escaped.  The policy in each page allows one style
element, by its hash, and neither scripts nor pictures nor requests, so that a mistake in escaping
would run nothing either.
"""

import base64
import hashlib
from collections.abc import Callable
from dataclasses import asdict
from functools import cache
from math import isfinite, isnan
from typing import TYPE_CHECKING, Any, NamedTuple

from nbspam.decision import Shares, shares_of
from nbspam.evaluation.evaluation import Evaluation, Trial, evaluation_of
from nbspam.evaluation.metrics import HM, ClassificationReport, ClassScores, confusions
from nbspam.printing import amount_text, clipped, display_width, finite, left, printable, right
from nbspam.sources.arrival import ORDERS

if TYPE_CHECKING:
    from jinja2 import Environment

_WIDTH = 80
LABEL_WIDTH = 20  # longer class names are cut
_REPORT_WIDTH = 39  # the same in the classification report
N_CONFUSIONS = 10  # most frequent errors shown where the confusion matrix is too wide
_SHORT = 8  # columns of a class name at least in the matrix of many classes
N_SHARES = 10  # with more classes, their shares are not shown


def classification_report_text(report: ClassificationReport) -> str:
    """Return the report as scikit-learn's classification_report prints it, in 80 columns."""
    names = [clipped(printable(name), _REPORT_WIDTH) for name in report.classes]
    width = max(len("weighted avg"), *map(display_width, names))
    n_docs = report.macro.support

    def line(name: str, *cells: object) -> str:
        return right(name, width) + " " + "".join(f" {cell:>9}" for cell in cells) + "\n"

    def scores(name: str, row: ClassScores) -> str:
        return line(name, *(f"{value:.2f}" for value in row[:3]), row.support)

    return "".join(
        [
            line("", "precision", "recall", "f1-score", "support"),
            "\n",
            *map(scores, names, report.rows),
            "\n",
            line("accuracy", "", "", f"{report.accuracy:.2f}", n_docs),
            scores("macro avg", report.macro),
            scores("weighted avg", report.weighted),
        ]
    )


class Measure(NamedTuple):
    """How a measure of an `Evaluation` is shown."""

    label: str
    name: str  # the attribute of `Evaluation`
    shown: Callable[[float], float] = float  # from its value to the number shown


def _percent(rate: float) -> float:
    return 100 * rate


# Error rates that name their two classes, unless these are ham and spam.
_ERRORS = {"hm_rate": (0, 1), "sm_rate": (1, 0)}
_OF_MAIL = ("lam", "sm_at_hm")  # measures that only spam filters have
MEASURES = (
    Measure("accuracy", "accuracy"),
    Measure("macro F1", "macro_f1"),
    Measure("Matthews correlation", "mcc"),
    Measure("fp % (hm)", "hm_rate", _percent),
    Measure("fn % (sm)", "sm_rate", _percent),
    Measure("lam %", "lam", _percent),
    Measure("AUC", "auc"),
    Measure("(1-AUC) %", "auc", lambda auc: 100 * (1 - auc)),
    Measure(f"fn % at fp {100 * HM:g} %", "sm_at_hm", _percent),
    Measure("log loss (nats)", "log_loss"),
    Measure("Brier score", "brier"),
    Measure("calibration error", "calibration_error"),
    Measure("cost per document", "cost"),
    Measure("Bayes risk", "bayes_risk"),
)


def evaluation_text(evaluation: Evaluation, noun: str = "messages") -> str:
    """Return an evaluation as text: errors, report, intervals, confusion matrix, measures.

    noun: the documents' name; rows of a table are no mail, whatever their classes.
    """
    of_mail = is_mail(evaluation.scores.classes, noun)
    blocks = [
        _errors_text(evaluation, of_mail),
        classification_report_text(evaluation.scores),
        _class_intervals_text(evaluation),
        _confusion_text(evaluation),
        _measures_text(evaluation, of_mail),
    ]
    return "\n".join(block for block in blocks if block)


def is_mail(classes: tuple[str, ...], noun: str) -> bool:
    """Return whether documents of these classes and this name are mail or texts to filter."""
    return classes == ("ham", "spam") and noun != "rows"


def compared_names(classes: tuple[str, ...], noun: str) -> dict[str, str]:
    """Return the printed names of compared measures by key; a missing key is printed itself."""
    names = {
        "false_positives": "false positives",
        "false_negatives": "false negatives",
        "auc_loss": "(1-AUC) %",
        "log_loss": "log loss (nats)",
        "brier": "Brier score",
    }
    if len(classes) == 2 and not is_mail(classes, noun):
        first, second = (clipped(printable(name), 7) for name in classes)
        names["false_positives"] = f"{first} called {second}"
        names["false_negatives"] = f"{second} called {first}"
    return names


def evaluation_json(evaluation: Evaluation) -> dict[str, Any]:
    """Return an evaluation as JSON values; measures that do not apply are null.

    "report" has the form of scikit-learn's classification_report(output_dict=True).
    """
    report, confusion = evaluation.scores, evaluation.confusion
    is_binary = len(report.classes) == 2
    keys = ("precision", "recall", "f1-score")
    return {
        "classes": list(report.classes),
        "n_docs": evaluation.n_docs,
        "errors": evaluation.errors,
        "undecided": evaluation.undecided,
        "answers": list(evaluation.answers),
        "confusion": confusion.tolist(),
        "report": _report_json(report),
        "false_positives": int(confusion[0, 1]) if is_binary else None,
        "false_negatives": int(confusion[1, 0]) if is_binary else None,
        **{name: finite(getattr(evaluation, name)) for _, name, _ in MEASURES},
        "intervals": {
            name: [finite(low), finite(high)] for name, (low, high) in evaluation.intervals.items()
        },
        "class_intervals": {
            name: dict(zip(keys, map(list, bounds), strict=True))
            for name, bounds in evaluation.class_intervals.items()
        },
    }


def shares_text(shares: Shares, classes: tuple[str, ...]) -> str:
    """Return how common each class is, one line per class."""
    lines = ["share of documents, %   assumed      here  estimated\n"]
    columns = shares.assumed, shares.observed, shares.estimated
    for name, *values in zip(map(printable_class, classes), *columns, strict=True):
        assumed, here, estimated = (100 * float(value) for value in values)
        lines.append(f"{left(name, 21)}{assumed:>10.2f}{here:>10.2f}{estimated:>11.2f}\n")
    return "".join(lines)


def trial_text(trial: Trial, seed: int | None = None) -> str:
    """Return all numbers of a trial as text, and how common its classes are.

    seed: of the bootstrap intervals; None leaves them out.
    """
    evaluation = evaluation_of(trial, seed)
    text = f"judged and then learned {ORDERS[trial.order]}\n" if trial.order else ""
    text += evaluation_text(evaluation, trial.noun)
    if len(trial.classes) <= N_SHARES:
        shares = shares_of(trial.probability, trial.y, trial.prior)
        text += "\n" + shares_text(shares, trial.classes)
    return text


def trial_json(trial: Trial, seed: int | None = None) -> dict[str, Any]:
    """Return all numbers of a trial as JSON values; seed: see `trial_text`."""
    evaluation = evaluation_of(trial, seed)
    shares = asdict(shares_of(trial.probability, trial.y, trial.prior))
    by_class = {key: dict(zip(trial.classes, shares[key].tolist(), strict=True)) for key in shares}
    return {
        **evaluation_json(evaluation),
        "shares": by_class,
        "order": trial.order,
        "known": None if trial.is_known is None else trial.n_known,
        "accuracy_of_unknown": trial.accuracy_of_unknown,
    }


def _report_json(report: ClassificationReport) -> dict[str, Any]:
    def scores(row: ClassScores) -> dict[str, float]:
        keys = ("precision", "recall", "f1-score", "support")
        return dict(zip(keys, row, strict=True))

    rows = dict(zip(report.classes, map(scores, report.rows), strict=True))
    return rows | {
        "accuracy": report.accuracy,
        "macro avg": scores(report.macro),
        "weighted avg": scores(report.weighted),
    }


def _errors_text(evaluation: Evaluation, of_mail: bool) -> str:
    """Return how many documents got the right and the wrong class, and which way round."""
    n_docs = evaluation.n_docs
    n_right = n_docs - evaluation.errors - evaluation.undecided
    text = f"{n_right:,} of {n_docs:,} right ({100 * n_right / n_docs:.2f} %)"
    text += f", {evaluation.errors:,} wrong"
    text += f", {evaluation.undecided:,} unsure\n" if evaluation.undecided else "\n"
    if of_mail:
        false_positives, false_negatives = evaluation.confusion[0, 1], evaluation.confusion[1, 0]
        text += f"{false_positives:,} false positives (ham called spam), "
        text += f"{false_negatives:,} false negatives (spam called ham)\n"
    return text


def _class_intervals_text(evaluation: Evaluation) -> str:
    """Return the intervals of each class's precision, recall and F1; nothing without them."""
    if not evaluation.class_intervals:
        return ""
    lines = [left("95 % intervals", LABEL_WIDTH)]
    lines[0] += "".join(f"{name:>18}" for name in ("precision", "recall", "f1-score")) + "\n"
    for name, bounds in evaluation.class_intervals.items():
        cells = (f"{low:.4f} to {high:.4f}" for low, high in bounds)
        line = left(printable_class(name), LABEL_WIDTH) + "".join(f"{cell:>18}" for cell in cells)
        lines.append(line + "\n")
    return "".join(lines)


def _confusion_text(evaluation: Evaluation) -> str:
    """Return the confusion matrix; if it is too wide, in per cent, and the worst errors."""
    answers = [printable_class(name) for name in evaluation.answers]
    names = answers[: len(evaluation.confusion)]
    corner = "truth \\ prediction"
    first = max(map(display_width, [corner, *names]))
    columns = zip(answers, evaluation.confusion.max(axis=0), strict=True)
    widths = [2 + max(display_width(name), len(str(most))) for name, most in columns]
    if first + sum(widths) > _WIDTH:
        worst = (
            f"{count:>9,}  {left(answers[truth], LABEL_WIDTH)}  called  {answers[answer]}\n"
            for count, truth, answer in confusions(evaluation.confusion)[:N_CONFUSIONS]
        )
        return "\n".join(filter(None, [_shares_matrix(evaluation, answers), "".join(worst)]))
    counts = [[str(n) for n in row] for row in evaluation.confusion.tolist()]
    rows = [(corner, answers), *zip(names, counts, strict=True)]
    return "".join(
        left(label, first) + "".join(map(right, cells, widths)) + "\n" for label, cells in rows
    )


def _shares_matrix(evaluation: Evaluation, answers: list[str]) -> str:
    """Return the confusion matrix in per cent of each class, three columns a cell.

    Columns have numbers in place of names.  It is empty if names would get less than _SHORT
    columns, or numbers more than two digits.
    """
    width = _WIDTH - 3 - 1 - 3 * len(answers)
    if width < _SHORT:
        return ""
    text = "class, % by answer".ljust(width + 3)[: width + 3] + " "
    text += "".join(f"{n:>3}" for n in range(1, len(answers) + 1)) + "\n"
    for n, name in enumerate(answers, 1):
        line = f"{n:>2} {left(clipped(name, width), width)} "
        if n <= len(evaluation.confusion):
            counts = evaluation.confusion[n - 1]
            line += "".join(f"{_percent_of(k, counts.sum()):>3}" for k in counts.tolist())
        text += line.rstrip() + "\n"
    return text


def _percent_of(part: int, whole: int) -> str:
    """Return a share in two digits: a dot for none, and 100 only for all."""
    if not part:
        return "."
    return "100" if part == whole else str(min(round(100 * part / whole), 99))


def _measures_text(evaluation: Evaluation, of_mail: bool) -> str:
    """Return a line for each measure that applies, with its interval if there is one."""
    names = [clipped(printable(name), 10) for name in evaluation.scores.classes]
    rows = []
    for label, name, convert in MEASURES:
        value = getattr(evaluation, name)
        if value is None or (name in _OF_MAIL and not of_mail):
            continue
        if name in _ERRORS and not of_mail:
            label = "{} called {}, %".format(*(names[k] for k in _ERRORS[name]))
        rows.append((label, name, convert, value))
    width = max([22, *(display_width(label) for label, *_ in rows)])
    lines = []
    for label, name, convert, value in rows:
        line = f"{left(label, width)}{convert(value):>10.5f}"
        if name in evaluation.intervals:
            low, high = sorted(map(convert, evaluation.intervals[name]))
            line += f"   95 % interval {low:.5f} to {high:.5f}"
        lines.append(line + "\n")
    return "".join(lines)


def short(value: float, sign: str = "") -> str:
    """Return a measure of a comparison: counts as whole numbers, others with five digits."""
    return f"{value:{sign},.0f}" if float(value).is_integer() else f"{value:{sign}.5f}"


def printable_class(name: str) -> str:
    """Return a class name, safe to print and cut to LABEL_WIDTH columns of a terminal."""
    return clipped(printable(name), LABEL_WIDTH)


# ---- pages ----

_MINUS = "\N{MINUS SIGN}"
_LONG = 1e9  # nats; larger numbers are shown with an exponent


def render(template: str, **values: Any) -> str:
    """Return a page; template: the name of a file, values: its variables."""
    return environment(__package__).get_template(template).render(values)


@cache
def environment(package: str) -> "Environment":
    """Return the engine of the templates of a package, and of reports' templates.

    The package's style is added to that of reports.  Packages may lie in a zip file.
    """
    from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined

    loaders = [PackageLoader(name) for name in dict.fromkeys((__package__, package))]
    environment = Environment(
        loader=ChoiceLoader(loaders[::-1]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    style = "".join(loader.get_source(environment, "style.css")[0] for loader in loaders)
    environment.globals["style"] = style
    environment.globals["style_hash"] = hash_of(style)
    environment.filters |= {
        "shown": shown,
        "heading": printable_class,
        "count": lambda n: f"{n:,}",
        "amount": amount_text,
        "nats": nats,
        "rate": rate,
        "cutoff": cutoff,
        "short": short,
        "percent": lambda share: f"{100 * share:.1f}",
    }
    return environment


def hash_of(style: str) -> str:
    """Return the hash by which a content security policy allows a style element."""
    return "sha256-" + base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()


def shown(text: str) -> str:
    r"""Return text of strangers in which all but line ends is visible: \u202e for an override."""
    return "\n".join(map(printable, text.replace("\t", "    ").split("\n")))


def nats(value: float, digits: int = 2) -> str:
    """Return a sum of evidence with its sign."""
    if not isfinite(value):
        return "?" if isnan(value) else f"{'+' if value > 0 else _MINUS}∞"
    text = f"{value:+.{digits}f}" if abs(value) < _LONG else f"{value:+.{digits}e}"
    return text.replace("-", _MINUS)


def rate(value: float) -> str:
    """Return how many of a hundred or a thousand, with the digits that tell it.

    >>> [rate(each) for each in (99.974, 99.996, 100.0, 33.33, 2.54, 0.041, 0.004, 0.0)]
    ['99.97', '99.996', '100', '33.3', '2.5', '0.04', '0.004', '0']
    """
    is_near_all_or_none = 0 < value < 1 or 99 < value < 100
    digits = (2 if 0.005 < value < 99.995 else 4) if is_near_all_or_none else 1
    return f"{value:.{digits}f}".rstrip("0").rstrip(".")


def cutoff(value: float) -> str:
    """Return a probability that decides, such as 0.667 or 0.9999."""
    return f"{value:.3f}".rstrip("0") if 0.001 <= value <= 0.999 else f"{value:.6g}"

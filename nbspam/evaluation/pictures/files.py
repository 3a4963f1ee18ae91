"""Pictures of a trial in a PNG or SVG file: errors, calibration, scores, learning.

matplotlib is an extra (`plot`).  It is imported only here and in `fonts`, when a picture is drawn.
Its Figure is created directly, so that neither a display nor global state is needed.

Secret: how a picture looks.
"""

import warnings
from typing import Any

import numpy as np

from nbspam.errors import InputError, UsageError
from nbspam.evaluation.pictures.curves import Views, wilson_interval
from nbspam.evaluation.pictures.fonts import families_for
from nbspam.evaluation.report import shortened
from nbspam.printing import printable
from nbspam.verdicts import cut

ENDINGS = (".png", ".svg")
_FIRST, _SECOND, _GREY = "#2166ac", "#d6604d", "#777777"
_MAX_HEIGHT = 30  # inches of a confusion matrix
_TITLE = 80  # characters of what is judged
_MAX_NUMBERED = 30  # answers, with more of which cells have no numbers
_PERCENTS = (0.01, 0.1, 1, 10, 50, 90)


def check(path: str) -> None:
    """Raise UsageError if pictures cannot be drawn to this path."""
    if not path.lower().endswith(ENDINGS):
        raise UsageError(f"--plot {path}: neither .png nor .svg; give such a name, or -")
    try:
        import matplotlib.figure  # noqa: F401
    except ImportError:
        raise UsageError(
            f"--plot {path}: matplotlib is not installed; install nbspam[plot], or give -"
        ) from None


def draw(views: Views, path: str, what: str) -> str | None:
    """Write the picture of a trial, PNG or SVG by the ending of its path; raises InputError.

    what: was judged, for the title.  Returns a note if no font has all letters of the picture.
    """
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    n_right = int(np.trace(views.confusion))
    share = n_right / views.n_docs
    result = f"{n_right:,} of {views.n_docs:,} {views.noun} right ({share:.2%})"
    title = f"{printable(cut(what, _TITLE))}\n{result}"
    families, lacking = families_for(printable("".join([what, result, *views.answers])))
    metadata = {"Date": None} if path.lower().endswith("svg") else None
    with rc_context({"font.family": families}), warnings.catch_warnings():
        if lacking:  # the note replaces a warning for every letter
            warnings.filterwarnings("ignore", message="Glyph .* missing from font")
        figure = _figure(views, Figure, title)
        try:
            figure.savefig(path, dpi=120, metadata=metadata)
        except OSError as error:
            reason = error.strerror or "cannot be written"
            raise InputError(f"--plot {path}: {reason}; give another name") from error
    if not lacking:
        return None
    return (
        f"--plot {path}: no font on this machine has {lacking[:5]}; install one, such as"
        " Noto Sans CJK for Chinese, Japanese and Korean"
    )


def _figure(views: Views, make: Any, title: str) -> Any:
    """Return the figure: a title, two panels a row, and the matrix of many classes below."""
    panels = [_calibration, _histogram]
    panels[:0] = [_tradeoff] if views.tradeoff is not None else []
    panels += [_learning] if views.learning is not None else []
    n_rows = (len(panels) + 1) // 2
    heights = [4.4] * n_rows
    has_matrix = len(views.classes) > 2
    if has_matrix:
        heights.append(min(3 + 0.35 * len(views.classes), _MAX_HEIGHT))
    figure = make(figsize=(10, sum(heights) + 0.4), layout="constrained")
    figure.suptitle(title, x=0.01, ha="left")
    grid = figure.add_gridspec(len(heights), 2, height_ratios=heights)
    for place, panel in enumerate(panels):
        axes = figure.add_subplot(grid[place // 2, place % 2])
        for side in ("top", "right"):
            axes.spines[side].set_visible(False)
        panel(axes, views)
    if has_matrix:
        _matrix(figure.add_subplot(grid[n_rows, :]), views)
    return figure


def _matrix(axes: Any, views: Views) -> None:
    """Draw the confusion matrix: colours for shares of each class, and counts where they fit."""
    counts = views.confusion
    share = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
    axes.imshow(share, cmap="Blues", vmin=0, vmax=1, aspect="auto")
    names = [shortened(printable(name), 24) for name in views.answers]
    axes.set_xticks(range(len(names)), names, rotation=90 if len(names) > 5 else 0)
    axes.set_yticks(range(len(counts)), names[: len(counts)])
    axes.set_xlabel("answer")
    axes.set_ylabel("class")
    axes.set_title("Confusion matrix", loc="left")
    if len(names) > _MAX_NUMBERED:
        return
    for row, column in zip(*np.nonzero(counts), strict=True):
        colour = "white" if share[row, column] > 0.5 else "black"
        number = f"{counts[row, column]:,}"
        axes.text(column, row, number, ha="center", va="center", color=colour, fontsize=8)


def _tradeoff(axes: Any, views: Views) -> None:
    """Draw both error rates against each other, on logit axes that spread rare errors."""
    assert views.tradeoff is not None
    hm_rate, sm_rate, (hm, sm) = views.tradeoff
    # A rate of 0 has no logit: it is drawn as half a document.
    least = 0.5 / views.n_docs
    x, y = (np.clip(rate, least, 1 - least) for rate in (hm_rate, sm_rate))
    axes.plot(x, y, color=_FIRST, drawstyle="steps-post")
    axes.plot(*np.clip((hm, sm), least, 1 - least), "o", color=_SECOND, label="decision rule")
    axes.axvline(0.001, color=_GREY, linewidth=0.8, linestyle=":")
    for axis, scale in ((axes.xaxis, axes.set_xscale), (axes.yaxis, axes.set_yscale)):
        scale("logit")
        ticks = [percent / 100 for percent in _PERCENTS if percent / 100 >= least]
        axis.set_major_locator(_fixed(ticks))
        axis.set_major_formatter(lambda value, _: f"{100 * value:g}")
        axis.set_minor_locator(_fixed([]))
    axes.set_xlim(least / 2, 0.9)
    axes.set_ylim(least / 2, 0.9)
    first, second = map(printable, views.classes)
    axes.set_xlabel(f"{first} called {second}, %")
    axes.set_ylabel(f"{second} called {first}, %")
    axes.set_title("Errors at every cutoff (dotted: 0.1 %)", loc="left")
    axes.legend(frameon=False)


def _fixed(ticks: list[float]) -> Any:
    from matplotlib.ticker import FixedLocator

    return FixedLocator(ticks)


def _calibration(axes: Any, views: Views) -> None:
    """Draw observed frequency against predicted probability; larger dots, more documents."""
    n_docs, confidence, frequency = views.calibration
    low, high = wilson_interval(np.rint(frequency * n_docs), n_docs)
    axes.plot([0, 1], [0, 1], color=_GREY, linewidth=0.8, linestyle=":")
    axes.vlines(confidence, low, high, color=_FIRST, linewidth=1.2)
    area = 20 + 200 * n_docs / n_docs.sum()
    axes.scatter(confidence, frequency, s=area, color=_FIRST, zorder=3, clip_on=False)
    many = len(views.classes) > 2
    what = "the answer" if many else printable(views.classes[1])
    axes.set_xlabel(f"probability of {what}")
    axes.set_ylabel("share that was right" if many else f"share that was {what}")
    axes.set_title("Calibration (lines: 95 % interval)", loc="left")


def _histogram(axes: Any, views: Views) -> None:
    """Draw how many documents of both kinds have which score."""
    what, names, edges, counts = views.histogram
    for name, count, colour in zip(names, counts, (_FIRST, _SECOND), strict=True):
        axes.stairs(count, edges, color=colour, fill=True, alpha=0.45, label=printable(name))
        axes.stairs(count, edges, color=colour)
    axes.set_yscale("symlog", linthresh=1)
    axes.set_ylim(bottom=0)
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    axes.set_xlabel(what)
    axes.set_ylabel(views.noun)
    axes.set_title("Scores", loc="left")
    # Above the axes, because the bars may fill every corner.
    axes.legend(frameon=False, loc="lower right", bbox_to_anchor=(1, 1), ncols=2)


def _learning(axes: Any, views: Views) -> None:
    """Draw the share of wrong answers by the number of documents learned."""
    from matplotlib.ticker import LogLocator

    assert views.learning is not None
    n_learned, wrong, low, high = views.learning
    axes.fill_between(n_learned, 100 * low, 100 * high, color=_FIRST, alpha=0.2, linewidth=0)
    axes.plot(n_learned, 100 * wrong, "o-", color=_FIRST, markersize=4)
    axes.set_xscale("log")
    axes.set_ylim(bottom=0)
    axes.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    axes.xaxis.set_minor_formatter("")
    axes.set_xlabel(f"{views.noun} learned")
    axes.set_ylabel("wrong, %")
    axes.set_title("Learning (band: 95 % interval)", loc="left")

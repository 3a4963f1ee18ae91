"""Labels: what can be judged, and what to say where nothing can.

Secret: how inputs without a usable label are explained to the user.
"""

from collections.abc import Iterable, Sequence

from nbspam.counts.corpus import Corpus, read_corpus
from nbspam.errors import InputError
from nbspam.parallel import Workers
from nbspam.settings import Settings
from nbspam.sources.items import Item
from nbspam.verdicts import Skipped


def labelled(
    items: Iterable[Item], settings: Settings, jobs: Workers
) -> tuple[Corpus, tuple[Skipped, ...]]:
    """Return labelled items as a corpus, and the others; raises InputError if there are none."""
    data, skipped = read_corpus(items, settings, jobs)
    if not data.names:
        raise nothing_judged(skipped, settings.noun)
    return data, skipped


def nothing_judged(
    skipped: Sequence[Skipped], noun: str, heard: Iterable[str] = (), classes: Iterable[str] = ()
) -> InputError:
    """Return the error for inputs of which none could be judged.

    heard: the classes of labelled inputs that the model does not have.  classes: those it has.
    """
    if heard:
        return InputError(
            f"labels: the classes are {', '.join(sorted(heard))}, and the model knows"
            f" {', '.join(classes)}; give {noun} of these, or a model of those"
        )
    name, reason = skipped[0]
    if reason != "no label":
        return InputError(f"{name}: {reason.removeprefix(f'{name}: ')}; nothing can be judged")
    how = "a table with the column that --target names"
    if noun != "rows":
        how = "class folders, a table with a column of classes, or --spam PATH --ham PATH"
    return InputError(
        f"labels: {len(skipped):,} {noun} ({name}, …), and none has a label to compare answers"
        f" with; give {how}"
    )

"""Which columns of a table hold the texts, the classes and the names of its rows.

Secret: by which names columns are recognised, and how a first row without names is told.
"""

import sys
from collections.abc import Sequence
from typing import NamedTuple

# The text is in the first of these columns that a table has; case does not matter.
TEXT_NAMES = (
    "text", "message", "body", "content", "sms", "email", "mail", "document", "review",
    "comment", "v2", "subject", "title",
)  # fmt: skip
LABEL_NAMES = ("label", "class", "category", "target", "spam", "is_spam", "type", "v1")
_LONGEST_NAME = 40  # characters
_LEARNED = ", which the model has learned from"


class Columns(NamedTuple):
    """The columns in which a table has its texts and its classes, by name."""

    text: tuple[str, ...] = ()  # joined in this order; empty: the table has no row of names
    label: str | None = None


class Wanted(NamedTuple):
    """The columns that a user named, and those that a model has learned from."""

    text: tuple[str, ...] = ()
    label: str | None = None
    id: str | None = None  # holds the names of the rows
    learned: Columns = Columns()  # taken where a table has them and the user named none

    @property
    def is_named(self) -> bool:
        """Whether the user named a column, so that the table has a row of names."""
        return bool(self.text or self.label or self.id)


class Places(NamedTuple):
    """The positions of columns in a row."""

    text: tuple[int, ...]
    label: int | None
    id: int | None = None

    @property
    def positions(self) -> tuple[int, ...]:
        """Those of the texts, then of label and name; where there is none, beyond every row."""
        others = (sys.maxsize if at is None else at for at in (self.label, self.id))
        return (*self.text, *others)


class Listener:
    """What the reader of tables tells while it reads.  Subclasses keep what they need."""

    columns = Columns()  # of the first table

    def notice(self, line: str) -> None:
        """Hear what the user should know of a table."""

    def table(self, names: Sequence[str] | None, columns: Columns) -> None:
        """Hear the names in a table's first row, None if it has none, and what is read of it."""

    def row(self, cells: Sequence[str]) -> None:
        """Hear the cells of a row as they are, before the row is handed out."""


class Naming(Listener):
    """Passes on what it hears, with the name of a table before what is said of it."""

    def __init__(self, name: str, listener: Listener) -> None:
        self._name, self._listener = name, listener

    def notice(self, line: str) -> None:
        """Pass on a line with the name."""
        self._listener.notice(f"{self._name}: {line}")

    def table(self, names: Sequence[str] | None, columns: Columns) -> None:
        """Pass on the columns."""
        self._listener.table(names, columns)

    def row(self, cells: Sequence[str]) -> None:
        """Pass on the cells."""
        self._listener.row(cells)


class Rememberer(Listener):
    """Remembers the columns of the first table, for the model that learns from it."""

    def __init__(self) -> None:
        self._has_heard = False

    def table(self, names: Sequence[str] | None, columns: Columns) -> None:
        """Remember the columns of the first table."""
        if not self._has_heard:
            self.columns, self._has_heard = columns, True


SILENT = Listener()
NO_COLUMNS = Columns()
ANY = Wanted()


def places_of(first: list[str], sample: list[list[str]], wanted: Wanted) -> Places | None:
    """Return where a table's columns are; None if its first row holds no names.

    sample: the first rows of the table, which show whether values recur.  Raises ValueError.
    """
    if wanted.is_named or _has_all(first, wanted.learned.text) or not _is_data(first, sample):
        return named_places(first, wanted)
    return None


def named_places(names: list[str], wanted: Wanted) -> Places | None:
    """Return the positions of columns in a row of names; None if it has no names.

    Raises ValueError if a column that the user named, or one of several that the model
    reads together, is not there.
    """
    folded = [_fold(name) for name in names]
    learned = wanted.learned
    text = [position(names, name) for name in wanted.text]
    if not text and not set(map(_fold, learned.text)).isdisjoint(folded):
        text = [position(names, name, _LEARNED) for name in learned.text]
    label = _label_of(names, wanted)
    if not text:
        text = [folded.index(name) for name in TEXT_NAMES if name in folded][:1]
    if not text and label is not None and len(names) == 2:
        text = [1 - label]
    if not text:
        return None
    row_id = None if wanted.id is None else position(names, wanted.id)
    return Places(tuple(text), None if label in text else label, row_id)


def _label_of(names: list[str], wanted: Wanted) -> int | None:
    """Return the position of the column of classes, None if no column is known for it."""
    folded = [_fold(name) for name in names]
    if wanted.label is not None:
        return position(names, wanted.label)
    known = [_fold(wanted.learned.label or ""), *LABEL_NAMES]
    return next((folded.index(name) for name in known if name and name in folded), None)


def unnamed_places(rows: list[list[str]]) -> Places:
    """Return the positions of text and label in a table of at most two columns without names.

    The label is the column with fewer different values; on a tie, the one without spaces,
    then the shorter one, then the first.  Raises ValueError.
    """
    width = len(rows[0])
    if width == 1:
        return Places((0,), None)
    if width > 2:
        raise no_text_column(rows[0])

    def size(place: int) -> tuple[int, bool, int]:
        cells = [row[place] for row in rows if len(row) == 2]
        return len(set(cells)), any(" " in cell for cell in cells), sum(map(len, cells))

    label = min((0, 1), key=size)
    return Places((1 - label,), label)


def is_header_of_texts(cells: list[str], learned: Columns) -> bool:
    """Return whether cells are the names of a table of texts, as a model or anybody calls them."""
    folded = set(map(_fold, cells))
    if len(cells) < 2 or len(folded) < len(cells) or max(map(len, cells)) > _LONGEST_NAME:
        return False
    return _has_all(cells, learned.text) or bool(
        folded.intersection(TEXT_NAMES) and folded.intersection(LABEL_NAMES)
    )


def position(names: Sequence[str], wanted: str, why: str = "") -> int:
    """Return the position of a column, whatever its case; raises ValueError.

    Of names that differ in case only, the one that is spelt alike is meant.  why: what an error
    says of the column.
    """
    places = [at for at, name in enumerate(names) if _fold(name) == _fold(wanted)]
    if not places:
        raise no_column(wanted, names, why)
    alike = [at for at in places if names[at].strip() == wanted.strip()]
    if len(alike or places) > 1:
        raise ValueError(f"two columns are called {wanted!r}; rename one")
    return (alike or places)[0]


def no_column(wanted: str, names: Sequence[str], why: str = "") -> ValueError:
    """Return the error for a column that a table does not have."""
    from difflib import get_close_matches

    near = get_close_matches(_fold(wanted), map(_fold, names), 1)
    meant = f"did you mean {next(n for n in names if _fold(n) == near[0])!r}? " if near else ""
    return ValueError(f"no column {wanted!r}{why}; {meant}there are: {listed(names)}")


def no_text_column(names: Sequence[str]) -> ValueError:
    """Return the error for a table of whose columns none is known to hold texts."""
    return ValueError(f"no known text column; name one by --text-column, of: {listed(names)}")


def listed(names: Sequence[str]) -> str:
    """Return column names for an error message, shortened and at most 20."""
    more = f" and {len(names) - 20} more" if len(names) > 20 else ""
    return ", ".join(name[:_LONGEST_NAME] for name in names[:20]) + more


def _has_all(names: list[str], some: tuple[str, ...]) -> bool:
    return bool(some) and set(map(_fold, some)) <= set(map(_fold, names))


def _is_data(first: list[str], sample: list[list[str]]) -> bool:
    """Return whether a first row of two cells is data, though one cell is a known column name.

    "spam", for example, can be the name of a column or a class.
    """
    known = [at for at, cell in enumerate(first) if _fold(cell) in (*TEXT_NAMES, *LABEL_NAMES)]
    if len(first) != 2 or len(known) != 1:
        return False
    # A class recurs in its column; the column's name does not.
    at = known[0]
    recurs = any(len(row) == 2 and row[at] == first[at] for row in sample[1:])
    return recurs or _fold(first[at]) == "spam"


def _fold(name: str) -> str:
    return name.strip().lower()

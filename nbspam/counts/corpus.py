"""A corpus in memory: labelled documents over one vocabulary.

Training reads each message once and needs no corpus.  Cross-validation, EM and models of dependent
tokens look at the same documents several times.  The counts of any subset of the documents
equal training on that subset.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import compress
from typing import Any, NamedTuple

import numpy as np

from nbspam.arrays import ArrayLike, Floats, Indices, Integers, Keys, together
from nbspam.counts.counting import Training
from nbspam.counts.ledger import Memory, Messages, Sampling
from nbspam.counts.lessons import LessonBatch, read_lessons
from nbspam.counts.table import CountTable, counted
from nbspam.disk import result_file
from nbspam.errors import UsageError, check_number
from nbspam.mail.digest import Copies
from nbspam.settings import PRESENCE, Settings, SettingsChoices, chosen_settings, first_is_text
from nbspam.sources.items import Item
from nbspam.tokens.items_to_messages import chunks_of
from nbspam.tokens.sparse import Documents, Vocabulary, join, no_documents, smallest, stacked
from nbspam.verdicts import Skipped
from nbspam.workers import Workers, ordered_map


@dataclass(frozen=True, slots=True)
class Corpus:
    """Labelled documents over one vocabulary."""

    names: tuple[str, ...]
    classes: tuple[str, ...]  # sorted
    y: Integers  # (n_docs,) index into classes
    digests: Keys  # (n_docs,)
    vocabulary: Vocabulary
    documents: Documents  # over all columns of the vocabulary

    @property
    def X(self) -> Any:  # noqa: N802  the name of the data matrix, as in all estimators
        """The counts as a SciPy CSR matrix (n_docs, n_features)."""
        return csr(self.documents, self.documents.times())

    def over_keys(self, rows: Integers) -> Documents:
        """Return some documents over the keys of all tokens."""
        return self.documents.take(rows)._replace(tokens=self.vocabulary.keys)

    def table(self, rows: Integers, weighting: str) -> CountTable:
        """Return the count table of some documents; repeated messages are counted again."""
        documents = self.documents.take(rows)
        return counted(self.classes, self.vocabulary, documents, self.y[rows], weighting)

    def training(self, rows: Integers, weighting: str) -> Training:
        """Return the input of training, as `counting.count_items` makes it of the same items."""
        once, y, digests = self.unique(rows)
        documents = self.documents.take(once)
        table = counted(self.classes, self.vocabulary, documents, y, weighting)
        own = np.flatnonzero(table.document_frequency)  # the columns of their tokens
        labels = np.array(self.classes, np.str_)[y]
        documents = documents._replace(tokens=self.vocabulary.keys)
        if weighting == PRESENCE:
            documents = documents._replace(counts=None)
        sampling = Sampling(weighting)
        sampling.add([Messages(labels, digests, documents)])
        return Training(
            table.take(own),
            tuple(sampling.messages),
            sampling.bits,
            digests,
            labels,
            np.zeros(len(once), np.bool_),
            len(rows) - len(once),
        )

    def unique(self, rows: Integers) -> tuple[Integers, Integers, Keys]:
        """Return the rows, classes and digests of the distinct messages among some documents.

        The result is in the order of digests.  The first copy of each message is kept, with the
        class of its last copy; each copy of a text has a digest of its own.
        """
        digests = np.fromiter(map(Copies().numbered, self.digests[rows].tolist()), np.uint64)
        _, first = np.unique(digests, return_index=True)
        _, last = np.unique(digests[::-1], return_index=True)
        return rows[first], self.y[rows[::-1][last]], digests[first]


def csr(documents: Documents, values: Floats | Indices) -> Any:
    """Return documents as a SciPy CSR matrix (n_docs, n_tokens); values: (nnz,) its elements."""
    from scipy import sparse

    shape = documents.n_docs, len(documents.tokens)
    # Half of scikit-learn's estimators refuse indices of 64 bits.
    index = np.int32 if max(len(documents.columns), *shape) < 2**31 else np.int64
    columns, offsets = documents.columns.astype(index), documents.offsets.astype(index)
    return sparse.csr_array((values, columns, offsets), shape)


def read_corpus(
    items: Iterable[Item], settings: Settings, jobs: Workers = 1
) -> tuple[Corpus, tuple[Skipped, ...]]:
    """Return all labelled items as one corpus, and the items that were skipped."""
    parts: list[LessonBatch] = []
    skipped: list[Skipped] = []
    read = partial(_read_chunk, settings)
    for part, failures in ordered_map(read, chunks_of(items, jobs), jobs):
        parts.append(part)
        skipped.extend(failures)
    whole = _joined(parts)
    classes, y = np.unique(whole.messages.labels, return_inverse=True)
    return Corpus(
        tuple(whole.names),
        tuple(classes.tolist()),
        y,
        whole.messages.digests,
        whole.vocabulary,
        whole.messages.documents,
    ), tuple(skipped)


def remembered(table: CountTable, memory: Memory) -> Corpus:
    """Return the messages that a model remembers, without their names; table: the model's."""
    sample = memory.sample
    return Corpus(
        ("",) * len(sample.digests),
        table.classes,
        memory.sample_labels,
        sample.digests,
        table.vocabulary,
        sample.documents,
    )


def _read_chunk(settings: Settings, items: list[Item]) -> tuple[LessonBatch, list[Skipped]]:
    """Return one chunk of items as a single batch; this runs in a worker process."""
    lessons, skipped = read_lessons(settings, items, to_judge=True)
    return _joined(lessons), skipped


def _joined(parts: Sequence[LessonBatch]) -> LessonBatch:
    """Return all batches as one, over the union of their vocabularies."""
    vocabulary, column = join([part.vocabulary for part in parts])
    tokens = np.arange(len(vocabulary))
    documents = [no_documents(tokens, with_counts=True)]
    start = 0
    for part in parts:
        own = smallest(column[start : start + len(part.vocabulary)], len(vocabulary))
        start += len(own)
        columns = own.take(part.messages.documents.columns)
        documents.append(part.messages.documents._replace(tokens=tokens, columns=columns))
    return LessonBatch(
        [name for part in parts for name in part.names],
        Messages(
            together([part.messages.labels for part in parts], np.str_),
            together([part.messages.digests for part in parts], np.uint64),
            stacked(documents),
        ),
        vocabulary,
        [told for part in parts for told in part.told],
        [copy for part in parts for copy in part.copies],
    )


def stratified_folds(
    y: ArrayLike, k: int, rng: np.random.Generator | np.random.RandomState
) -> Integers:
    """Return the fold of each document, 0 to k - 1, shape (n_docs,); raises UsageError.

    The sizes of the folds differ by at most one document, in total and within each class.
    Documents in the order of classes are dealt to the folds in turn, then shuffled within each
    class.  RandomState(seed) gives the folds of scikit-learn's StratifiedKFold(k, shuffle=True,
    random_state=seed); unlike there, a class may be smaller than k.
    """
    labels = np.asarray(y)
    if not 2 <= k <= len(labels):
        raise UsageError(f"folds: {k} folds of {len(labels)} documents; give 2 to {len(labels)}")
    _, first, label = np.unique(labels, return_index=True, return_inverse=True)
    folds = np.empty(len(labels), np.int64)
    dealt = 0
    for c in np.argsort(first):
        members = np.flatnonzero(label == c)
        hands = np.sort(np.arange(dealt, dealt + len(members)) % k)
        rng.shuffle(hands)
        folds[members] = hands
        dealt += len(members)
    return folds


# --- documents as vectors, for other programs -------------------------------------------------


class Vectors(NamedTuple):
    """Documents as vectors."""

    X: Any  # CSR (n_docs, n_features)
    vocabulary: list[str]  # the token of each column
    labels: list[str]  # the class of each document, "" if it has none
    skipped: tuple[Skipped, ...]


def vectors_of(
    items: Iterable[Item],
    choices: SettingsChoices,
    binary: bool,
    vocabulary: Sequence[str] | None,
    min_df: int,
    jobs: Workers,
) -> Vectors:
    """Return items as vectors, see `library.vectorize`; raises UsageError."""
    check_number("min_df", min_df, 1, whole=True)
    if vocabulary is not None and min_df > 1:
        raise UsageError("--min-df: --vocabulary names the tokens; leave out one of them")
    is_text, items = first_is_text(items)
    settings = chosen_settings(choices._replace(model="multinomial"), is_text)
    labelled = (item if item.label is not None else item._replace(label="") for item in items)
    corpus, skipped = read_corpus(labelled, settings, jobs)
    tokens = [corpus.vocabulary.text(j) for j in range(len(corpus.vocabulary))]
    X = corpus.X.astype(np.float64).tocoo()
    if vocabulary is None:
        often = np.bincount(X.col, minlength=len(tokens)) >= min_df
        vocabulary = sorted(compress(tokens, often.tolist()))
    place = {token: j for j, token in enumerate(vocabulary)}
    if len(place) < len(vocabulary):
        raise UsageError("vectorize: a token stands twice in the vocabulary; name each once")
    column = np.array([place.get(token, -1) for token in tokens], X.col.dtype)[X.col]
    kept = column >= 0
    counts = np.minimum(X.data[kept], 1.0) if binary else X.data[kept]
    X = type(X)((counts, (X.row[kept], column[kept])), shape=(X.shape[0], len(place))).tocsr()
    labels = np.array(corpus.classes)[corpus.y].tolist()
    return Vectors(X, list(vocabulary), labels, skipped)


def write_vectors(found: Vectors, path: str) -> None:
    """Write a file for `scipy.sparse.load_npz`, or a table for .csv; raises InputError."""
    import csv
    from codecs import getwriter
    from zipfile import ZipFile

    from scipy import sparse

    with result_file(path, "--output") as stream:
        if path.endswith(".csv"):
            # The name of a folder, and so of a class, need not be UTF-8.
            table = csv.writer(getwriter("utf-8")(stream, "backslashreplace"), lineterminator="\n")
            last = "(label)" if "label" in found.vocabulary else "label"
            table.writerow([*found.vocabulary, last])
            for row, label in enumerate(found.labels):
                table.writerow([*found.X[[row]].toarray()[0].astype(int).tolist(), label])
            return
        sparse.save_npz(stream, found.X)
        with ZipFile(stream, "a") as archive, archive.open("labels.npy", "w") as member:
            np.lib.format.write_array(member, np.array(found.labels, np.str_), allow_pickle=False)

"""The library's face beside models: vectors of texts, clusters, and questions to a network."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from nbspam.arrays import Floats
from nbspam.disk import replace_file
from nbspam.errors import InputError, UsageError
from nbspam.settings import SettingsChoices, chosen_settings, first_is_text
from nbspam.sources.items import Item, items_given
from nbspam.store.library import Model, rows_given
from nbspam.store.open import network_of_model
from nbspam.verdicts import Skipped
from nbspam.workers import Workers

if TYPE_CHECKING:
    from nbspam.models.em import Step
    from nbspam.models.network.questions import Belief


class Vectors(NamedTuple):
    """Documents as vectors."""

    X: Any  # CSR (n_docs, n_features)
    vocabulary: list[str]  # the token of each column
    labels: list[str]  # the class of each document, "" if it has none
    skipped: tuple[Skipped, ...]


def vectorize(
    given: Any,
    *,
    binary: bool = False,
    vocabulary: Sequence[str] | None = None,
    preset: str | None = None,
    pairs: bool | None = None,
    characters: bool | None = None,
    min_df: int = 1,
    jobs: int = 1,
) -> tuple[Any, list[str]]:
    """Return documents as a CSR matrix (n_docs, n_features), and the token of each column.

    given: a path, or an iterable of paths, data, (data, label) pairs or Items.  Counts, as
    multinomial naive Bayes takes them, or with binary presence, as Bernoulli does.  vocabulary:
    the tokens to count, in this order; otherwise those of at least min_df documents, in their
    alphabetical order.  preset, pairs, characters: see `nbspam tokens`.  Raises NbspamError.
    """
    choices = SettingsChoices(preset=preset, pairs=pairs, characters=characters)
    found = vectors_of(items_given(given), choices, binary, vocabulary, min_df, jobs)
    if found.skipped:
        first = found.skipped[0]
        raise UsageError(f"vectorize: {first.name}: {first.reason}; leave it out")
    return found.X, found.vocabulary


def vectors_of(
    items: Iterable[Item],
    choices: SettingsChoices,
    binary: bool,
    vocabulary: Sequence[str] | None,
    min_df: int,
    jobs: Workers,
) -> Vectors:
    """Return items as vectors, see `vectorize`; raises UsageError."""
    from nbspam.counts.corpus import read_corpus

    if vocabulary is not None and min_df > 1:
        raise UsageError("--min-df: --vocabulary names the tokens; leave out one of them")
    is_text, items = first_is_text(items)
    settings = chosen_settings(choices._replace(model="multinomial"), is_text)
    corpus, skipped = read_corpus(_labelled(items), settings, jobs)
    tokens = [corpus.vocabulary.text(j) for j in range(len(corpus.vocabulary))]
    X = corpus.X.astype(np.float64)
    if vocabulary is None:
        often = X.astype(bool).sum(axis=0) >= min_df
        wanted = sorted(token for token, kept in zip(tokens, often.tolist(), strict=True) if kept)
    else:
        wanted = list(vocabulary)
    place = {token: j for j, token in enumerate(wanted)}
    if len(place) < len(wanted):
        raise UsageError("vectorize: a token stands twice in the vocabulary; name each once")
    X = X.tocoo()
    column = np.array([place.get(token, -1) for token in tokens], np.int64)[X.col]
    kept = column >= 0
    counts = np.minimum(X.data[kept], 1.0) if binary else X.data[kept]
    cells = counts, (X.row[kept], column[kept])
    X = type(X)(cells, shape=(X.shape[0], len(wanted))).tocsr()
    labels = np.array(corpus.classes)[corpus.y].tolist()
    return Vectors(X, wanted, labels, skipped)


def write_vectors(found: Vectors, path: str) -> None:
    """Write a file for `scipy.sparse.load_npz`, with the array `labels` beside; raises InputError.

    Only the owner can read it, as it may hold words of mail.
    """
    from nbspam.counts.corpus import save_csr

    try:
        replace_file(path, lambda stream: save_csr(stream, found.X, found.labels))
    except OSError as error:
        raise InputError(f"--output {path}: {error.strerror}; give another name") from error


def _labelled(items: Iterable[Item]) -> Iterator[Item]:
    for item in items:
        yield item if item.label is not None else item._replace(label="")


class Clustering(NamedTuple):
    """Documents or rows sorted into clusters, which are named by numbers, the largest first."""

    names: tuple[str, ...]  # (n_docs,) of the documents
    clusters: tuple[str, ...]
    share: Floats  # (n_docs, k) P(cluster given document)
    typical: Mapping[str, Sequence[Any]]  # the most distinctive tokens or values of each cluster
    steps: "tuple[Step, ...]"  # the rounds of EM


def cluster(
    given: Any,
    k: int,
    *,
    rows: bool = False,
    model: str | None = None,
    alpha: float | str | None = None,
    categorical: Sequence[str] = (),
    numeric: Sequence[str] = (),
    drop: Sequence[str] = (),
    restarts: int = 5,
    hard: bool = False,
    rounds: int | None = None,
    epsilon: float | None = None,
    seed: int = 0,
    typical: int = 10,
    jobs: int = 1,
) -> Clustering:
    """Return k clusters of texts or mail, or with `rows` of a table's rows; raises NbspamError.

    given: as for `nbspam.train`; labels are ignored.  The other keywords are the options of
    `nbspam cluster` and `nbspam table cluster`; typical: how many tokens or values to name.
    """
    from nbspam.models.em import stopping

    when = stopping(rounds, epsilon)
    if rows:
        from nbspam.tables.em import cluster_rows

        if model is not None or alpha == "auto":
            raise UsageError("cluster: model and alpha='auto' are for texts; leave them out")
        smoothing = 1.0 if alpha is None else float(alpha)
        records, kinds = rows_given(given), (categorical, numeric, drop)
        of_rows = cluster_rows(records, k, smoothing, *kinds, restarts, hard, seed, stopping=when)
        named = dict(zip(of_rows.clusters, (f[:typical] for f in of_rows.features), strict=True))
        steps = of_rows.fit.steps
        return Clustering(of_rows.names, of_rows.clusters, of_rows.share, named, steps)
    from nbspam.classifier import em

    if categorical or numeric or drop:
        raise UsageError("cluster: categorical, numeric and drop are for a table; say rows=True")
    is_text, items = first_is_text(items_given(given))
    settings = em.em_chosen(SettingsChoices(model=model, alpha=alpha), is_text)
    found = em.cluster_documents(items, settings, k, restarts, hard, jobs, seed, stopping=when)
    classes = found.classifier.classes
    tokens = em.typical_tokens(found, typical)
    return Clustering(found.names, classes, found.share, tokens, found.fit.steps)


def query(
    model: Model,
    target: str | Sequence[str] = (),
    evidence: Mapping[str, str] | Sequence[str] = (),
    *,
    independent: tuple[str, str] | None = None,
    gibbs: int | None = None,
    seed: int = 0,
) -> "Belief | bool":
    """Return P(targets given evidence) in a Bayesian network, or whether two are independent.

    model: of a network.  target: a variable, or several, whose joint probabilities are
    returned; NAME=VALUE asks for one value.  evidence: the known values by variable.
    independent: two variables; the answer is whether the graph separates them given the
    evidence.  gibbs: the number of samples, instead of exact inference.  Raises UsageError.
    """
    from nbspam.models.network import questions

    named = network_of_model("query", model.classifier)
    known = (
        [f"{name}={value}" for name, value in evidence.items()]
        if isinstance(evidence, Mapping)
        else list(evidence)
    )
    if independent is not None:
        return questions.independent(named, *independent, known)
    targets = [target] if isinstance(target, str) else list(target)
    if not targets:
        raise UsageError("query: no target; name a variable, or two as independent")
    return questions.believe(named, targets, known, gibbs, seed)

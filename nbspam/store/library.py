"""The library's face: train, load and use a model of any kind.

A model of tokens that knows its messages, and a model of a table, learn on: one from disk does so
on disk.  Beside models there are vectors of texts, clusters, and questions to a network.
"""

import os
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from difflib import get_close_matches
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple

from nbspam.arrays import LAST_DAY, Floats, today
from nbspam.classifier.classifier import Classifier
from nbspam.counts.lessons import Outcome
from nbspam.errors import InputError, ModelFileError, UsageError, check_number
from nbspam.printing import first_few
from nbspam.settings import (
    Bounds,
    Settings,
    SettingsChoices,
    TableChoices,
    as_learned,
    as_options,
    check_unbounded,
    first_is_text,
    in_keywords,
    is_for_table,
    names_given,
    naming_keywords,
    settings_for,
    texts_given,
)
from nbspam.sources.files import Rememberer, cell_text
from nbspam.sources.items import SourceOptions, item_of, items_given, path_of
from nbspam.sources.records import rows_given
from nbspam.store.model import StoredModel
from nbspam.store.open import load_classifier, load_network, network_of_model, save_classifier
from nbspam.store.tables import StoredTable, model_with_messages
from nbspam.tables.classifier import Factors, TableClassifier, estimate_rows, estimated, factors
from nbspam.tokens.people import knowing_sent_mail, learned_sent_mail
from nbspam.verdicts import AnyClassifier, Explanation, Skipped, Verdict
from nbspam.workers import Workers, workers_of

if TYPE_CHECKING:
    from nbspam.models.em import Step
    from nbspam.models.network_questions import Belief


class Model:
    """A trained model of mail, of text, of dependent tokens, or of a table's columns.

    Not for two threads at once.  skipped: what could not be read when it was trained.  steps:
    the rounds of EM, if EM trained it: likelihood, posterior and change of each.
    """

    def __init__(
        self,
        classifier: AnyClassifier,
        stored: StoredModel | StoredTable | None = None,
        skipped: tuple[Skipped, ...] = (),
        steps: "tuple[Step, ...]" = (),
    ) -> None:
        self._classifier = classifier
        self._stored = stored
        self.skipped, self.steps = skipped, steps

    def __repr__(self) -> str:
        path = self._stored.path if self._stored is not None else None
        where = repr(path) if path else "not saved"
        return f"<Model of {', '.join(self._classifier.classes)}; {where}>"

    @property
    def classifier(self) -> AnyClassifier:
        """The current classifier; of a model on disk, with the lessons of other processes."""
        return self._classifier if self._stored is None else self._stored.classifier()

    @property
    def classes(self) -> tuple[str, ...]:
        """The class names, sorted."""
        return self.classifier.classes

    @naming_keywords()
    def classify(self, data: Any) -> Verdict:
        """Return the verdict on one message, text or row; raises InputError.

        data: the bytes of a message, a string of text, a path, an Item; for a model of a table
        a mapping from columns to cells.  Anything else is a UsageError.
        """
        (result,) = self.classifier.classify([self._input(data)])
        if isinstance(result, Skipped):
            raise InputError(result.reason)
        return result

    def classify_many(self, given: Any, jobs: int = 1) -> Iterator[Verdict | Skipped]:
        """Yield a verdict for every message or row in order, or why it could not be read.

        given: a path, or an iterable of what `classify` takes.
        """
        yield from self.classifier.classify(self._inputs(given), jobs)

    @naming_keywords()
    def explain(self, data: Any) -> Explanation:
        """Return why one message, text or row gets its verdict; see `classify`."""
        return self.classifier.explain(self._input(data))

    @naming_keywords()
    def factors(self, row: Any) -> Factors:
        """Return the factors of P(class, row) in a table's model.

        Raises InputError for a cell that should be a number, and UsageError for another model.
        """
        (found,) = factors(self._of_table(), [self._input(row)])
        if isinstance(found, Skipped):
            raise InputError(found.reason)
        return found

    def estimates(self) -> Iterator[dict[str, Any]]:
        """Yield the numbers that `nbspam table export` prints; UsageError for another model."""
        for each in estimated(self._of_table()):
            yield from estimate_rows(each)

    @naming_keywords()
    def update(
        self,
        given: Any,
        policy: str = "everything",
        jobs: int = 1,
        day: int | None = None,
        new_class: bool = False,
    ) -> Outcome:
        """Learn labelled messages; of a model from disk, they are on disk on return.

        given: a path, or an iterable of (data, label) pairs or Items; for a model of a table, of
        rows with their class.  policy: everything, error (only what it gets wrong) or near (also
        near misses); the rows of a table all count.  day: on which they are learned, counted
        from 1970-01-01; today unless given.  new_class: labels that the model does not have are
        new classes, and no UsageError.  Raises NbspamError.
        """
        if isinstance(self._stored, StoredTable):
            return self._stored.learn(self._inputs(given), new_class)
        if isinstance(given, tuple) and len(given) == 2 and isinstance(given[1], str):
            raise UsageError("update: one pair is no collection; give a list of pairs")
        items = items_given(given, self._reading)
        return self._learning().learn(
            items, day=_day(day), policy=policy, jobs=jobs, new_class=new_class
        )

    def learn_sent_mail(self, given: Any) -> bool:
        """Learn known senders from mail that the user has sent; return whether it was new.

        given: a path, or an iterable of the bytes of messages or Items.  Raises NbspamError.
        """
        learning = self._learning()
        if learning.settings.reading != "mail":
            raise UsageError("learn_sent_mail: for mail, and this model is of texts")
        found = learned_sent_mail(items_given(given, self._reading))
        return found is not None and learning.learn_sent_mail(found)

    @naming_keywords()
    def relabel(
        self, given: Any, to: str, jobs: int = 1, day: int | None = None, new_class: bool = False
    ) -> Outcome:
        """Move messages to a class; messages that were never learned are learned as that.

        Arguments: see `update`; labels are ignored.  Raises NbspamError.
        """
        learning, items = self._learning(), items_given(given, self._reading)
        return learning.relabel(items, str(to), day=_day(day), jobs=jobs, new_class=new_class)

    @naming_keywords()
    def unlearn(self, given: Any, jobs: int = 1, day: int | None = None) -> Outcome:
        """Take messages out of the model, whatever class they were learned as.

        The rows of a table must be given with the class that they were learned as.  Raises
        NbspamError; messages that were never learned are counted, and no error.
        """
        if isinstance(self._stored, StoredTable):
            return self._stored.unlearn(self._inputs(given))
        return self._learning().unlearn(
            items_given(given, self._reading), day=_day(day), jobs=jobs
        )

    def save(self, path: "str | os.PathLike[str]") -> None:
        """Write the model to a file; raises ModelFileError.

        A model from disk that is saved to its own path absorbs its journal, with other
        processes' lessons; saved elsewhere, it is copied.
        """
        target, stored = _checked_path(path), self._stored
        if stored and stored.path and os.path.realpath(stored.path) == os.path.realpath(target):
            stored.compact()
        else:
            save_classifier(target, stored.whole() if stored else self._classifier)

    def _of_table(self) -> TableClassifier:
        classifier = self.classifier
        if isinstance(classifier, TableClassifier):
            return classifier
        raise UsageError("model: factors and estimates are of tables; see `nbspam export`")

    def _learning(self) -> StoredModel:
        if isinstance(self._stored, StoredTable):
            raise UsageError("model: rows of a table are not remembered; unlearn and update them")
        if self._stored is None:
            raise UsageError("model: this kind does not learn on; train it again")
        return self._stored

    @property
    def _reading(self) -> SourceOptions:
        """How sources are read: a model of text remembers its columns of a table."""
        settings: Settings = self._classifier.settings  # type: ignore[attr-defined]
        return as_learned(SourceOptions(), settings)

    def _input(self, data: Any) -> Any:
        if isinstance(self._classifier, TableClassifier):
            record, *others = rows_given([data], self._classifier.schema.names)
            if others:
                raise UsageError(f"{data}: a table of several rows; give one, or classify_many it")
            return record
        return item_of(data)

    def _inputs(self, given: Any) -> Iterator[Any]:
        if isinstance(self._classifier, TableClassifier):
            yield from rows_given(given, self._classifier.schema.names)
        else:
            yield from items_given(given, self._reading)


@naming_keywords()
def train(
    given: Any,
    *,
    jobs: int = 1,
    engine: Any = None,
    day: int | None = None,
    target: str | int | None = None,
    sent: "Sequence[str | os.PathLike[str]]" = (),
    structure: Any = None,
    unlabelled: Any = None,
    em: "bool | Mapping[str, Any]" = False,
    **choices: Any,
) -> Model:
    """Return the model that labelled mail, texts or a table's rows make; raises NbspamError.

    given: a path, or an iterable of paths, (data, label) pairs or Items; with a target also rows,
    see `rows_given`.  engine: other workers than `jobs` forked processes, such as "dask", a Dask
    Client or an Executor; see `workers.workers_of`.  day: see `Model.update`.  target: the column
    of a table that holds the class.  sent: paths of mail that the user has sent; unless given,
    Maildirs beside a path (`mailboxes.sent_folders`).  structure: of a network, the parents of
    each variable, or the path of a JSON file.  unlabelled: more documents or rows, whose classes
    EM finds; em: the rows of a table that lack a class take part, too.  em may be a dict of
    `EMOptions`; `steps` of the model are its rounds.  dirichlet: numbers, or a dict from columns
    to numbers.  choices: the other options of `nbspam train` or `nbspam table train`, which make
    the same model; one that takes names takes a single one as a string, too.
    """
    choices = _options_of_training(choices)
    options = _em_options(em)
    named = None if target is None else str(target)
    columns = TableChoices(named, **_taken(choices, TableChoices))
    bounds = Bounds(**_taken(choices, Bounds))
    chosen = SettingsChoices(**choices)
    if is_for_table(chosen, columns):
        if engine is not None:
            raise UsageError("engine: for mail and texts; a table is counted here, leave it out")
        check_unbounded(bounds, "a table of columns")
        return _trained_on_rows(given, chosen, columns, structure, unlabelled, em, options)
    if structure is not None:
        raise UsageError("structure: for the network of a table; give target too")
    if em and unlabelled is None:
        raise UsageError("em: for rows that lack a class; give texts as unlabelled")
    with workers_of(engine, jobs) as workers:
        if unlabelled is None:
            return _trained_on_documents(given, chosen, sent, bounds, workers, _day(day))
        check_unbounded(bounds, "EM")
        return _trained_with(unlabelled, given, chosen, options, workers)


class EMOptions(NamedTuple):
    """How EM learns: the options of the command line; rounds, epsilon: see `em.stopping`."""

    weight: float | None = None  # of an unlabelled document; None: by cross-validation, of rows 1
    hard: bool = False
    rounds: int | None = None
    epsilon: float | None = None
    restarts: int | None = None  # of tables
    seed: int = 0


def _em_options(em: "bool | Mapping[str, Any]") -> EMOptions:
    given = em if isinstance(em, Mapping) else {}
    for name in given.keys() - {*EMOptions._fields}:
        raise UsageError(f"em: no option {name!r}; choose from {', '.join(EMOptions._fields)}")
    options = EMOptions(**given)
    if options.weight is not None:
        check_number("weight", options.weight, 0)
    return options


def _trained_on_documents(
    given: Any,
    choices: SettingsChoices,
    sent: "Sequence[str | os.PathLike[str]]",
    bounds: Bounds,
    workers: Workers,
    day: int,
) -> Model:
    """Return the model of labelled mail or texts."""
    from nbspam.classifier.training import learn_items

    tables = Rememberer()
    reading = SourceOptions(listener=tables, is_mail=choices.preset == "mail")
    how, items = settings_for(items_given(given, reading), choices, tables)
    beside = [path_of(given)] if isinstance(given, os.PathLike) else ()
    how = knowing_sent_mail(how, [*map(_checked_path, names_given(sent))], beside)
    learned = learn_items(items, how, workers, day, bounds)
    classifier, stored = learned.classifier, None
    if isinstance(classifier, Classifier) and classifier.memory is not None:
        stored = StoredModel.in_memory(classifier)
    return Model(classifier, stored, learned.skipped)


def _trained_with(
    unlabelled: Any, given: Any, choices: SettingsChoices, em: EMOptions, jobs: Workers
) -> Model:
    """Return the model of labelled and unlabelled documents."""
    from nbspam.classifier.unlabelled import BEFORE_OVERFITTING, em_chosen, train_with_unlabelled
    from nbspam.models.em import stopping

    is_text, items = first_is_text(items_given(given))
    when = stopping(em.rounds, em.epsilon, BEFORE_OVERFITTING)
    settings = em_chosen(choices, is_text)
    report = train_with_unlabelled(
        items, items_given(unlabelled), settings, em.weight, em.hard, jobs, em.seed, stopping=when
    )
    return Model(report.classifier, None, tuple(report.skipped), report.fit.steps)


def _trained_on_rows(
    given: Any,
    choices: SettingsChoices,
    columns: TableChoices,
    structure: Any,
    unlabelled: Any,
    em: Any,
    options: EMOptions,
) -> Model:
    """Return the model of a table's rows."""
    from nbspam.tables import training
    from nbspam.tables.unlabelled import train_by_em, without_class

    is_path = isinstance(structure, str | os.PathLike)
    columns = columns._replace(structure=os.fsdecode(structure) if is_path else None)
    settings = training.table_settings(choices, columns)
    if structure is not None and not is_path:
        training.check_goes_with_structure(choices)
        settings = replace(settings, structure=structure, model="network")
    if not em and unlabelled is None:
        data = training.read_table(rows_given(given), settings)
        _warn_of(data.notes)
        of_table = training.train_table(data.table, settings)
        return Model(of_table, StoredTable(of_table), data.skipped)
    from nbspam.models.em import stopping

    more = () if unlabelled is None else rows_given(unlabelled)
    rows = chain(rows_given(given), without_class(more, settings.target))
    data = training.read_table(rows, settings, with_unlabelled=True)
    _warn_of(data.notes)
    weight = 1.0 if options.weight is None else options.weight
    when = stopping(options.rounds, options.epsilon)
    report = train_by_em(
        data.table, settings, weight, options.hard, when, options.restarts, options.seed
    )
    return Model(report.classifier, StoredTable(report.classifier), (), report.fit.steps)


def _warn_of(notes: Sequence[str]) -> None:
    """Issue the warnings about columns, at the line that called a function of the library."""
    for note in first_few(notes, "warned of"):
        warnings.warn(in_keywords(note), stacklevel=5)


def _options_of_training(choices: Mapping[str, Any]) -> dict[str, Any]:
    """Return choices as the command line has them; raises UsageError, also for unknown ones."""
    known = [*SettingsChoices._fields, *TableChoices._fields[1:], *Bounds._fields]
    wrong = [name for name in choices if name not in known]
    if wrong:
        near = get_close_matches(wrong[0], [*known, "em", "unlabelled", "target", "jobs"], 1)
        hint = f"did you mean {near[0]}?" if near else "they are those of `nbspam train --help`"
        raise UsageError(f"train: no option {wrong[0]!r}; {hint}")
    return as_options(choices)


def _taken(choices: dict[str, Any], kind: Any) -> dict[str, Any]:
    return {name: choices.pop(name) for name in kind._fields if name in choices}


def _checked_path(given: Any) -> str:
    try:
        path = os.fsdecode(given)
    except TypeError:
        raise UsageError(f"{type(given).__name__}: no path; give a str or pathlib.Path") from None
    if not path or "\0" in path:
        raise ModelFileError(f"{path!r}: not the name of a file; give another one")
    return path


def load(path: "str | os.PathLike[str]") -> Model:
    """Return the model in a file, with its journal; raises ModelFileError.

    Its later lessons are written to that file and its journal.
    """
    where = os.path.abspath(_checked_path(path))  # the current folder may change
    if (stored := model_with_messages(where)) is not None:
        return Model(stored.classifier(), stored)
    classifier = load_classifier(where)
    if isinstance(classifier, TableClassifier):
        return Model(classifier, StoredTable(classifier, where))
    return Model(classifier)


def _day(day: int | None) -> int:
    day = today() if day is None else day
    check_number("day", day, 0, LAST_DAY, whole=True)
    return day


# ---- vectors of texts, clusters, and questions to a network ----


@naming_keywords()
def vectorize(
    given: Any,
    *,
    binary: bool = False,
    vocabulary: Sequence[str] | None = None,
    preset: str | None = None,
    pairs: bool | None = None,
    characters: bool | None = None,
    attachments: bool | None = None,
    min_df: int = 1,
    jobs: int = 1,
) -> tuple[Any, list[str]]:
    """Return documents as a CSR matrix (n_docs, n_features), and the token of each column.

    given: a path, or an iterable of paths, data, (data, label) pairs or Items.  Counts, as
    multinomial naive Bayes takes them, or with binary presence, as Bernoulli does.  vocabulary:
    the tokens to count, in this order; otherwise those of at least min_df documents, in their
    alphabetical order.  The others: see `nbspam vectorize`.  Raises NbspamError.
    """
    from nbspam.counts.corpus import vectors_of

    choices = SettingsChoices(
        preset=preset, pairs=pairs, characters=characters, attachments=attachments
    )
    named = None if vocabulary is None else texts_given(vocabulary)
    found = vectors_of(items_given(given), choices, binary, named, min_df, jobs)
    if found.skipped:
        first = found.skipped[0]
        raise UsageError(f"vectorize: {first.name}: {first.reason}; leave it out")
    return found.X, found.vocabulary


class Clustering(NamedTuple):
    """Documents or rows sorted into clusters, which are named by numbers, the largest first."""

    names: tuple[str, ...]  # (n_docs,) of the documents
    clusters: tuple[str, ...]
    share: Floats  # (n_docs, k) P(cluster given document)
    typical: Mapping[str, Sequence[Any]]  # the most distinctive tokens or values of each cluster
    steps: "tuple[Step, ...]"  # the rounds of EM

    def __repr__(self) -> str:
        return f"<Clustering of {len(self.names):,} documents as {', '.join(self.clusters)}>"


@naming_keywords()
def cluster(
    given: Any,
    k: int,
    *,
    rows: bool = False,
    model: str | None = None,
    alpha: float | str | None = None,
    weighting: str | None = None,
    min_df: int | None = None,
    start: Sequence[Mapping[str, Any]] | None = None,
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

    given: as for `nbspam.train`; labels are ignored.  typical: how many tokens or values to name.
    start: what the file of `--start` holds.  The other keywords are the options of `nbspam
    cluster` and `nbspam table cluster`.
    """
    from nbspam.models.em import stopping

    when = stopping(rounds, epsilon)
    check_number("k", k, 2, whole=True)
    check_number("typical", typical, 0, whole=True)
    how = {"restarts": restarts, "hard": hard, "seed": seed, "stopping": when}
    kinds = texts_given(categorical), texts_given(numeric), texts_given(drop)
    if rows:
        if alpha == "auto" or any(each is not None for each in (model, weighting, min_df, start)):
            raise UsageError(
                "cluster: model, alpha='auto', weighting, min_df and start are for texts; leave"
                " them out"
            )
        return _clusters_of_rows(given, k, 1.0 if alpha is None else alpha, kinds, how, typical)
    if any(kinds):
        raise UsageError("cluster: categorical, numeric and drop are for a table; say rows=True")
    choices = SettingsChoices(model=model, alpha=alpha, weighting=weighting, min_df=min_df)
    return _clusters_of_texts(given, k, choices, start, how | {"jobs": jobs}, typical)


def _clusters_of_rows(
    given: Any, k: int, alpha: Any, kinds: Any, how: Mapping[str, Any], typical: int
) -> Clustering:
    from nbspam.tables.unlabelled import cluster_rows

    found = cluster_rows(rows_given(given), k, alpha, *kinds, **how)
    _warn_of(found.notes)
    named = dict(zip(found.clusters, (f[:typical] for f in found.features), strict=True))
    return Clustering(found.names, found.clusters, found.share, named, found.fit.steps)


def _clusters_of_texts(
    given: Any, k: int, choices: SettingsChoices, start: Any, how: Mapping[str, Any], typical: int
) -> Clustering:
    from nbspam.classifier import unlabelled

    is_text, items = first_is_text(items_given(given))
    settings = unlabelled.em_chosen(choices, is_text)
    starts = () if start is None else unlabelled.read_starts(start, "start")
    found = unlabelled.cluster_documents(items, settings, k, starts=starts, **how)
    tokens = unlabelled.typical_tokens(found, typical)
    return Clustering(found.names, found.classifier.classes, found.share, tokens, found.fit.steps)


@naming_keywords()
def query(
    model: "Model | os.PathLike[str]",
    target: str | Sequence[str] = (),
    evidence: Mapping[str, Any] | Sequence[str] = (),
    *,
    independent: tuple[str, str] | None = None,
    gibbs: int | None = None,
    seed: int = 0,
) -> "Belief | Any":
    """Return P(targets given evidence) in a Bayesian network, or whether two are independent.

    model: of a network, or its JSON file.  target: a variable, or several, whose joint
    probabilities are returned; NAME=VALUE asks for one value.  evidence: the known values by
    variable.  independent: two variables; the answer is whether the graph separates them given
    the evidence.  gibbs: the number of samples, instead of exact inference.  Raises NbspamError.
    """
    from nbspam.models import network_questions

    if isinstance(model, Model):
        named = network_of_model("query", model.classifier)
    else:
        named = load_network(_checked_path(model))
    known = texts_given(evidence)
    if isinstance(evidence, Mapping):
        known = tuple(f"{name}={cell_text(value)}" for name, value in evidence.items())
    if independent is not None:
        two = texts_given(independent)
        if len(two) != 2:
            raise UsageError(f"independent: {independent!r} is not two variables; name two")
        return network_questions.independent(named, *two, known)
    targets = texts_given(target)
    if not targets:
        raise UsageError("query: no target; name a variable, or two as independent")
    return network_questions.believe(named, targets, known, gibbs, seed)

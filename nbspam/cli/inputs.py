"""The inputs of commands: options, and the items, rows and models that they name.

The options of sources fill values (`reading`, `labels`); the functions below turn these values
into items, into the rows of tables, and into a model's inputs.
"""

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache, partial
from glob import glob
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar, cast

import click

from nbspam.cli import options, output
from nbspam.cli.frame import Decorator, command_group, say
from nbspam.errors import EmptyError, ModelFileError, UsageError
from nbspam.printing import Extent, tracked
from nbspam.settings import Settings, SettingsChoices, as_learned, settings_for
from nbspam.sources import files
from nbspam.sources.items import (
    FORMATS,
    RECORD_FORMATS,
    Item,
    SourceOptions,
    begins_like_mail,
    items_together,
    read_items,
    read_once,
    starts_of,
)

if TYPE_CHECKING:
    from nbspam.classifier.classifier import Classifier
    from nbspam.decision import Rule
    from nbspam.imap.accounts import AccessBook
    from nbspam.sources.records import Record
    from nbspam.store.merging import Merged
    from nbspam.tables.schema import Schema
    from nbspam.verdicts import AnyClassifier

T = TypeVar("T")
_PACKED = (*files.COMPRESSED, ".zip", ".parquet")
_MAX_UNSEEN = 5  # categories that are named on standard error
_OF_TABLES = "text_columns", "label_column", "id_column"  # parameters that name columns
# Commands that `nbspam table` lacks, and those that do the same there.
_MEANT_FOR_TABLES = {"words": "info", "relabel": "unlearn"}


# --- options --------------------------------------------------------------------------------


class Labels(NamedTuple):
    """Paths whose class is stated on the command line."""

    spam: tuple[str, ...] = ()
    ham: tuple[str, ...] = ()
    named: tuple[tuple[str, str], ...] = ()  # class and path

    @property
    def paths(self) -> list[tuple[str, str]]:
        """Every class and path; a quoted pattern stands for the files that it matches."""
        spam, ham = (("spam", path) for path in self.spam), (("ham", path) for path in self.ham)
        return [
            (name, path)
            for name, given in chain(spam, ham, self.named)
            for path in sorted(() if os.path.lexists(given) else glob(given)) or [given]
        ]


NO_LABELS = Labels()


class LabelledSources(NamedTuple):
    """Labelled sources, and how they are read."""

    sources: tuple[str, ...]
    reading: SourceOptions
    labels: Labels
    sent: tuple[str, ...] = ()  # paths of sent mail; without any, that beside the sources

    @property
    def paths(self) -> list[str]:
        """The paths of all sources and class options."""
        return [*self.sources, *(path for _, path in self.labels.paths)]

    def items(self) -> Iterator[Item]:
        """Return the labelled items; raises InputError and UsageError."""
        return items_of_sources(self.sources, self.reading, self.labels)

    def knowing_sent_mail(self, settings: Settings) -> Settings:
        """Return settings that know the sent mail, too; raises InputError."""
        from nbspam.tokens.people import knowing_sent_mail

        return knowing_sent_mail(settings, self.sent, self.paths)

    def settings_and_items(self, choices: SettingsChoices) -> tuple[Settings, Iterator[Item]]:
        """Return the settings by which they are learned, and the items; raises NbspamError."""
        settings, items = settings_for(self.items(), choices, self.reading.listener)
        return self.knowing_sent_mail(settings), items


class TableListener(files.Rememberer):
    """Prints each remark on tables once, and remembers the last table's names of columns."""

    names: tuple[str, ...] = ()  # of the columns; without names, none

    def __init__(self) -> None:
        super().__init__()
        self._said: set[str] = set()

    def notice(self, line: str) -> None:
        """Print a line on standard error, unless it was printed already."""
        if line not in self._said:
            self._said.add(line)
            output.warn(line)

    def table(self, names: Sequence[str] | None, columns: files.TextColumns) -> None:
        """Remember the names of the columns."""
        super().table(names, columns)
        self.names = tuple(names or ())


def reading_of(
    format: str | None,
    id_column: str | None,
    encoding: str | None,
    access: options.StatedAccess,
    text_columns: tuple[str, ...] = (),
    label_column: str | None = None,
) -> SourceOptions:
    """Return how sources are read, with a listener that prints remarks."""

    @cache
    def accounts() -> "AccessBook":
        from nbspam.cli.accounts import access_book

        return access_book(access)

    columns = text_columns, label_column, id_column
    return SourceOptions(format, *columns, encoding, listener=TableListener(), accounts=accounts)


class CompleteSources(tuple[str, ...]):
    """All sources: if there are none, nothing is read, instead of standard input."""

    def __bool__(self) -> bool:
        return True


# Parameters that name what is read, besides SOURCE; paths: of --unlabelled, named: of --label.
_MORE_TO_READ = ("corpus", "files0_from", "sent", "paths", "test", "spam", "ham", "named")


def _sources(sources: tuple[str, ...], files0_from: str | None) -> tuple[str, ...]:
    """Return the sources of the command line and of --files0-from.

    Raises UsageError if standard input is named twice.
    """
    params = click.get_current_context().params
    values = [params.get(each) or () for each in _MORE_TO_READ]
    named = chain.from_iterable([each] if isinstance(each, str) else each for each in values)
    paths = [each if isinstance(each, str) else each[-1] for each in named]
    if [*sources, *paths].count("-") > 1:
        raise UsageError("-: standard input is given twice; give it once")
    if files0_from is None:
        return sources
    output.tell_waiting([files0_from], "--files0-from -")
    complete = CompleteSources([*sources, *files.file_names_in(files0_from)])
    click.get_current_context().params["sources"] = complete  # no option may write over them
    return complete


sources_argument = options.filling(
    _sources,
    "sources",
    options.SOURCES,
    click.argument("sources", nargs=-1, metavar="[SOURCE]..."),
    click.option(
        "--files0-from",
        metavar="FILE",
        help="Read the names of more SOURCEs from FILE.  Each ends in NUL, as `find -print0`"
        " writes them; - is standard input.",
    ),
)
_id_column_option = click.option(
    "--id-column", metavar="NAME", help="Column of a table that names its rows."
)
_encoding_option = click.option(
    "--encoding", metavar="NAME", help="Encoding of a table, such as gb18030.  [default: found]"
)
reading_options = options.filling(
    reading_of,
    "reading",
    options.SOURCES,
    click.option(
        "--format",
        type=click.Choice(FORMATS),
        metavar="NAME",
        help="Format of SOURCE, such as mbox.  [default: found by looking]  One of eml, mbox,"
        " maildir, mh, classes, trec, tar, zip, parquet, csv, tsv, jsonl or fasttext.",
    ),
    click.option(
        "--text-column",
        "text_columns",
        multiple=True,
        metavar="NAME",
        help="Column of a table that holds texts.  Of several, the texts are joined.",
    ),
    click.option("--label-column", metavar="NAME", help="Column of a table that holds classes."),
    _id_column_option,
    _encoding_option,
    options.access_options,
)
row_options = options.filling(
    partial(reading_of, access=options.StatedAccess()),
    "reading",
    options.SOURCES,
    click.option(
        "--format",
        type=click.Choice(RECORD_FORMATS),
        metavar="NAME",
        help="Format of SOURCE: csv, tsv or jsonl.  [default: found by looking]",
    ),
    _id_column_option,
    _encoding_option,
)
label_options = options.filling(
    Labels,
    "labels",
    options.SOURCES,
    click.option("--spam", multiple=True, metavar="PATH", help="Read PATH as spam."),
    click.option("--ham", multiple=True, metavar="PATH", help="Read PATH as ham."),
    click.option(
        "--label",
        "named",
        type=options.NAMED_PATH,
        multiple=True,
        metavar="NAME=PATH",
        help="Read PATH as class NAME.",
    ),
)
_labelled = sources_argument, reading_options, label_options
corpus_options = options.filling(LabelledSources, "corpus", *_labelled)
corpus_and_sent_options = options.filling(
    LabelledSources, "corpus", *_labelled, options.sent_option
)


class Rows(NamedTuple):
    """Tables of typed columns, and how they are read."""

    sources: tuple[str, ...]
    reading: SourceOptions


rows_options = options.filling(Rows, "rows", sources_argument, row_options)


class Question(NamedTuple):
    """Sources that a model is asked about, and the costs and shares that are stated."""

    model_path: str
    sources: tuple[str, ...]
    reading: SourceOptions
    decision: options.Decision
    prior: options.PriorShares | str | None


def question_options(*reading_and_prior: Decorator) -> Decorator:
    """Return the options of a question; reading_and_prior: how sources are read, and --prior."""
    asked = sources_argument, options.model_option, options.decision_options
    return options.filling(Question, "question", *asked, *reading_and_prior)


# --- items and rows --------------------------------------------------------------------------


def items_of_sources(
    sources: Iterable[str], reading: SourceOptions, labels: Labels | None = None
) -> Iterator[Item]:
    """Return the items of all sources, then those whose class the options state.

    labels: None if the command needs no classes.  Without any path the items come from standard
    input, whose mail has no class.  Raises InputError and UsageError.
    """
    context = click.get_current_context()
    if context.params.get("preset") == "mail":
        reading = reading._replace(is_mail=True)
    stated = [] if labels is None else labels.paths
    if labels is not None and not (sources or stated or reading.format):
        name = context.command.name
        raise UsageError(
            f"{name}: no SOURCE, and mail on standard input states no class; give labelled mail,"
            f" such as: nbspam {name} mails/, or: nbspam {name} --spam PATH --ham PATH"
        )
    paths = [*sources, *(path for _, path in stated)]
    given = output.or_standard_input(paths or sources)
    if labels is None:
        items = read_items(given, options=reading)
    else:
        items = _labelled_items(sources if stated else given, stated, reading)
    return counting_items(_told_of_tables(items, reading.listener), "messages", given or ["-"])


def _told_of_tables(items: Iterator[Item], heard: files.Listener) -> Iterator[Item]:
    """Yield the items; warn of options that name columns if none of the sources is a table."""
    yield from items
    params = click.get_current_context().command.params
    given = [each for each in params if each.name in _OF_TABLES and output.is_named(each.name)]
    named = ", ".join(each.opts[0] for each in given)
    if named and not heard.has_heard:
        output.warn(f"{named}: no table was read; for one that was taken for text, say --format")


def _labelled_items(
    sources: Iterable[str], stated: Sequence[tuple[str, str]], reading: SourceOptions
) -> Iterator[Item]:
    """Return the items of sources and of paths of stated classes, each once.

    stated: class and path.  The shell expands `--spam cur/*` to one file of the option and many
    sources; so if a single class is stated, files among the sources have it, too.
    """
    starts = starts_of(sources, stated)
    if stated:
        names = list(dict.fromkeys(name for name, _ in stated))
        parts = [(path, _items_at(path, name, reading, names)) for name, path in starts.values()]
    else:
        parts = [("", read_items([path for _, path in starts.values()], options=reading))]
    return items_together(read_once(parts, starts), reading.listener)


def _items_at(
    path: str, label: str | None, reading: SourceOptions, names: list[str]
) -> Iterator[Item]:
    """Return the items of a path; a file that states no class has the only class of `names`.

    label: the class that is stated for the path.
    """
    items = read_items([path], label=label, options=reading)
    if label is not None or files.holds_many(path):
        return items
    if len(names) == 1:
        return (item if item.label else item._replace(label=names[0]) for item in items)
    try:
        first = next(items)
    except EmptyError:  # `items_together` tells the listener
        return read_items([path], options=reading)
    if first.label is None and not first.is_text:
        raise UsageError(
            f"{path}: states no class, and the options state {', '.join(names)};"
            " give it an option of its own, or quote the pattern of the files: --spam 'junk/*'"
        )
    return chain([first], items)


def records_of(
    sources: Iterable[str],
    reading: SourceOptions,
    names: Sequence[str] = (),
    labels: Labels | None = NO_LABELS,
) -> "Iterator[Record]":
    """Yield the rows of tables.

    names: of the columns that are expected, see `records.read_cells`.  labels: None if the command
    needs no classes, and prints a table twice that is given twice.
    """
    from nbspam.sources.records import read_records

    paths = output.or_standard_input(sources)
    if labels is not None:
        paths = [path for _, path in starts_of(paths).values()]
    return counting_items(read_records(paths, reading, names), "rows", paths)


def warned_of_unseen(records: "Iterator[Record]", schema: "Schema") -> "Iterator[Record]":
    """Yield the records; say on standard error which categories and columns are missing."""
    from nbspam.tables.schema import CategoryCodes, is_missing

    known = {c.name: CategoryCodes(c.levels) for c in schema.columns if c.levels is not None}
    n_unseen = 0
    absent = {column.name for column in schema.columns}
    record: Record | None = None  # stays if nothing is read
    for record in records:
        absent -= record.cells.keys()
        for column, codes in known.items():
            cell = record.cells.get(column, "")
            if codes[cell] >= 0 or is_missing(cell):
                continue
            n_unseen += 1
            if n_unseen <= _MAX_UNSEEN:
                output.warn(
                    f"{record.name}: {column} is {cell[:40]!r}, which training has not seen;"
                    " taken for missing"
                )
        yield record
    if n_unseen > _MAX_UNSEEN:
        output.warn(f"{n_unseen - _MAX_UNSEEN:,} more like these")
    if record is not None and absent:
        names = files.listed([name for name in schema.names if name in absent])
        output.warn(f"no column {names}, which training has seen; taken for missing in every row")


def schema_of(classifier: "AnyClassifier") -> "Schema | None":
    """Return the columns that a model of a table knows; None for models of mail and text."""
    schema: Schema | None = getattr(classifier, "schema", None)
    return schema


def counting_items(things: Iterator[T], what: str, paths: Iterable[str]) -> Iterator[T]:
    """Yield things that are read from paths, with progress; with -v, say how many they were."""
    n_things = 0
    for thing in tracked(things, what, Extent(lambda: _bytes_of(paths), _size_of)):
        n_things += 1
        yield thing
    say(f"{what} read: {n_things:,}")


def _size_of(read: "Item | Record") -> int:
    """Return about how many bytes of its source an item or a row takes."""
    if not isinstance(read, Item):
        return sum(map(len, read.cells.values())) + len(read.cells)
    if read.data is not None:
        return len(read.data)
    return os.path.getsize(read.name) if os.path.exists(read.name) else 0


def _bytes_of(paths: Iterable[str]) -> int | None:
    """Return how many bytes files and folders have; None if that tells nothing."""
    total = 0
    for path in paths:
        found = [path]
        if os.path.isdir(path):
            found = [os.path.join(place, n) for place, _, names in os.walk(path) for n in names]
        for name in found:
            if not os.path.isfile(name) or name.lower().endswith(_PACKED):
                return None  # a stream, or compressed
            total += os.path.getsize(name)
    return total


# --- models ----------------------------------------------------------------------------------


def loaded_model(model_path: str) -> "AnyClassifier":
    """Return the classifier in a model file; raises ModelFileError.

    Raises UsageError for a model of a table in a command for mail, or the other way round.
    """
    from nbspam.store.open import load_classifier, with_lists

    if _is_for_tables():
        check_there(model_path)
    classifier = with_lists(load_classifier(model_path), model_path)
    check_kind(model_path, schema_of(classifier) is not None)
    return classifier


def check_kind(model_path: str, is_table: bool) -> None:
    """Raise UsageError if the running command is not for this kind of model."""
    context = click.get_current_context()
    name = str(context.command.name)
    if is_table == _is_for_tables():
        return
    if not is_table:
        raise UsageError(
            f"{model_path}: a model of mail or text; give a table's by -m, or use: nbspam {name}"
        )
    name = _MEANT_FOR_TABLES.get(name, name)
    is_there = name in command_group(context, is_table=True).list_commands(context)
    use = f"use: nbspam table {name}" if is_there else "see: nbspam table"
    raise UsageError(f"{model_path}: the model of a table; {use}")


def _is_for_tables() -> bool:
    return getattr(click.get_current_context().command, "group", "") == "table"


def check_there(model_path: str, advice: str | None = None) -> None:
    """Raise ModelFileError if a model is missing; advice: to train a table's unless given."""
    train = f"train one with: nbspam table train SOURCE --target NAME -m {model_path}"
    try:
        os.stat(model_path)
    except FileNotFoundError:
        raise ModelFileError(f"{model_path}: no such model; {advice or train}") from None
    except (OSError, ValueError):  # ValueError: NUL in the path
        pass  # reading it says why


def stored_model(model_path: str) -> Any:
    """Return a model that learns on, of the running command's kind: StoredModel or StoredTable.

    Raises ModelFileError and UsageError.
    """
    from nbspam.store.tables import StoredTable, open_stored

    if _is_for_tables():
        check_there(model_path)
    model = open_stored(model_path)
    check_kind(model_path, isinstance(model, StoredTable))
    return model


def merged_models(paths: Sequence[str], day: int) -> "Merged":
    """Return the sum of models of the running command's kind; raises NbspamError.

    day: on which the messages of parts are learned.
    """
    from nbspam.store.merging import merge

    for path in paths:
        say(f"model {path}")
        check_there(path, "give the names of models or parts")
    merged = merge(paths, day)
    check_kind(paths[0], schema_of(merged.classifier) is not None)
    return merged


class AskedModel(NamedTuple):
    """A classifier, the rule by which its probabilities become labels, and its inputs."""

    classifier: "AnyClassifier"
    rule: "Rule"
    inputs: "Iterable[Item | Record]"
    costs: "Rule | None"  # the rule, if its costs were stated


def asked_model(
    question: Question, jobs: int = 1, checked: Callable[[Iterable[Any]], Iterator[Any]] = iter
) -> AskedModel:
    """Return the model of a question, under its prior, with its inputs and decision rule.

    checked: passes inputs on, or raises UsageError.
    """
    classifier = loaded_model(question.model_path)
    output.report_lack(classifier)
    asked = asked_of(classifier, question.sources, question.reading, question.decision)
    asked, prior = asked._replace(inputs=checked(asked.inputs)), question.prior
    if prior is None:
        return asked
    from nbspam.decision import stated_prior
    from nbspam.verdicts import with_estimated_prior, with_prior

    if isinstance(prior, str):
        assert prior == options.ESTIMATED
        inputs = list(asked.inputs)  # which are read twice
        estimated = with_estimated_prior(classifier, inputs, jobs)
        return asked._replace(classifier=estimated, inputs=inputs)
    shares = stated_prior(prior, classifier.classes, classifier.prior)
    return asked._replace(classifier=with_prior(classifier, shares))


def asked_of(
    classifier: "AnyClassifier",
    sources: Iterable[str],
    reading: SourceOptions,
    decision: options.Decision,
) -> AskedModel:
    """Return a classifier with its inputs and the decision rule of the stated costs."""
    rule = options.rule_of(decision, classifier)
    inputs = inputs_of(classifier, sources, reading)
    return AskedModel(classifier, rule, inputs, None if decision == options.Decision() else rule)


def inputs_of(
    classifier: "AnyClassifier",
    sources: Iterable[str],
    reading: SourceOptions,
    labels: Labels | None = None,
) -> "Iterator[Item | Record]":
    """Return the inputs of a classifier: rows for the model of a table, else items."""
    schema = schema_of(classifier)
    if schema is not None:
        return warned_of_unseen(records_of(sources, reading, schema.names, labels), schema)
    settings = cast("Classifier", classifier).settings
    items = items_of_sources(sources, as_learned(reading, settings), labels)
    return map(_pasted_as_text, items) if settings.reading == "mail" else items


def _pasted_as_text(item: Item) -> Item:
    """Return an item; mail that was pasted without its head becomes a text."""
    if item.name != "-" or item.is_text or item.data is None or begins_like_mail(item.data):
        return item
    from nbspam.sources.foreign import oddity  # late: nearly all items are mail

    if oddity(item.data, files.TextColumns()) is not None:
        return item
    output.warn(
        "-: no head of a mail, judged as text; paste the message's source to judge all of it"
    )
    return item._replace(is_text=True)

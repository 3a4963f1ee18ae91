"""The settings a model is trained with, and which ones a corpus gets by default.

`Settings` is stored in the model file.  `SettingsChoices` holds a user's decisions;
`chosen_settings` fills in the rest.  `nbspam train` and the library take the same path, so both
train the same model.  Presets are the decisions that a user never has to make.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field, replace
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple

from nbspam.errors import InputError, NbspamError, UsageError, check_number
from nbspam.models import COLUMN_MODELS, PRESENCE_MODELS, TOKEN_MODELS
from nbspam.models import FEATURES as FEATURES
from nbspam.sources.files import NO_COLUMNS, SILENT, Listener, TextColumns, cell_text
from nbspam.sources.items import Item, SourceOptions

if TYPE_CHECKING:
    from nbspam.sent_mail import SentMail

MODELS = (*TOKEN_MODELS, *FEATURES)  # of messages, by name
TABLE_MODELS = tuple(name for name in COLUMN_MODELS if name not in FEATURES)  # of tables only
READINGS = ("mail", "text", "latin1")
STRIPPABLE = ("headers", "footers", "quotes")  # parts of a text, in the order they are cut off
PRESENCE, COUNTS, UNIT_LENGTH, TF_IDF = "presence", "counts", "unit-length", "tf-idf"
LOG_LENGTH = "log-length"  # 1 + ln count; every group of a document scaled to unit length
AUTO = "auto"  # as alpha: chosen from the counts
MOST = (1 << 63) - 1  # of min_df and max_features
WEIGHTINGS = (PRESENCE, COUNTS, UNIT_LENGTH, LOG_LENGTH, TF_IDF)


class TokenSettings(NamedTuple):
    """How text is cut into tokens; the model file keeps it, so that new mail is cut alike."""

    punctuation: str = "$'-_!"  # ASCII characters allowed in words beside letters and digits
    min_length: int = 1  # characters
    max_length: int = 40  # bytes; three times as many where letters take three, as in Tamil
    pairs: bool = False  # add every pair of neighbouring words of a field
    raw: bool = False  # cut the text as it is, without normalisation
    characters: bool = False  # add runs of characters


def option_name(name: str) -> str:
    """Return the option of the command line that fills a field: --min-df for min_df."""
    return "--" + name.replace("_", "-")


@dataclass(frozen=True, slots=True)
class Settings:
    """How items become tokens, tokens counts, and counts probabilities."""

    tokens: TokenSettings = field(default_factory=TokenSettings)
    reading: str = "mail"  # one of READINGS; latin1 takes every byte of the file for a letter
    weighting: str = PRESENCE
    model: str = "multinomial"
    alpha: float | str = 0.01  # Lidstone's addend, or "auto": chosen from the counts
    class_prior: str | tuple[float, ...] = "estimated"  # or "smoothed", "uniform", or given
    min_df: int = 1
    max_features: int | None = None
    # Weigh groups of evidence instead of summing it: two classes are combined
    # (combine.py), more are blended (blend.py).
    combine: bool = False
    strip: tuple[str, ...] = ()  # parts of a text that are removed before it is read
    parameters: Mapping[str, Any] = field(default_factory=dict)  # of the model
    columns: TextColumns = NO_COLUMNS  # of the table that the model was trained on
    # The name by which the user's own server signs its Authentication-Results (RFC 8601).
    authserv_id: str | None = None
    sent_mail: "SentMail | None" = None  # None: nothing is known of the sender
    attachments: bool = False  # read the text of attached documents

    def __post_init__(self) -> None:
        for part in self.strip:
            if part not in STRIPPABLE:
                raise UsageError(
                    f"--strip {part}: not a part of a text; choose from {', '.join(STRIPPABLE)}"
                )
        for value, allowed, what in (
            (self.reading, READINGS, "reading"),
            (self.weighting, WEIGHTINGS, "weighting"),
            (self.model, MODELS, "model"),
        ):
            if value not in allowed:
                raise UsageError(f"{what}: {value!r} is unknown; choose from {', '.join(allowed)}")
        for name in ("min_df", "max_features"):
            number = getattr(self, name)
            if number is not None:
                check_number(option_name(name), number, 1, MOST, whole=True)
        if self.attachments and self.reading != "mail":
            raise UsageError("--attachments: for mail, and these are texts; leave it out")
        if self.weighting != PRESENCE and self.model in PRESENCE_MODELS:
            raise UsageError(
                f"--weighting {self.weighting}: --model {self.model} sees only whether a token"
                " is in a document, not how often; leave out --weighting"
            )

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for the model file, where `sent_mail` has a place of its own."""
        columns = {"text": list(self.columns.text), "label": self.columns.label}
        values = asdict(replace(self, sent_mail=None))
        values["tokens"] = self.tokens._asdict()
        values["columns"] = None if self.columns == NO_COLUMNS else columns
        for name in ("authserv_id", "parameters", "columns", "sent_mail", "attachments"):
            if not values[name]:
                del values[name]
        return {k: list(v) if isinstance(v, tuple) else v for k, v in values.items()}

    @property
    def noun(self) -> str:
        """The word for the items, in the plural."""
        return "messages" if self.reading == "mail" else "texts"

    @property
    def has_beginnings(self) -> bool:
        """Whether mail is also judged by the beginning of its text.

        Pairs of words, and runs of characters, would depend on where the text is cut.
        """
        return self.is_mail_combined and not (self.tokens.pairs or self.tokens.characters)

    @property
    def is_mail_combined(self) -> bool:
        """Whether the model combines the evidence of mail, so that costs decide by default.

        Its probabilities are calibrated, and a false positive loses mail.
        """
        return self.combine and self.reading == "mail"


def settings_to_state(settings: Settings) -> dict[str, Any]:
    """Return the entries of a model file's state that are settings."""
    state, sent = {"settings": settings.to_dict()}, settings.sent_mail
    return state if sent is None else {**state, "sent_mail": sent.to_dict()}


def settings_from_state(state: Mapping[str, Any]) -> Settings:
    """Return the settings in a model file; the inverse of `settings_to_state`."""
    settings = settings_from_dict(state["settings"])
    if "sent_mail" not in state:
        return settings
    from nbspam.sent_mail import SentMail

    return replace(settings, sent_mail=SentMail(**state["sent_mail"]))


def settings_from_dict(values: dict[str, Any]) -> Settings:
    """Return the settings that `to_dict` described."""
    prior, columns = values["class_prior"], values.get("columns")
    read = NO_COLUMNS if columns is None else TextColumns(tuple(columns["text"]), columns["label"])
    own_types = {
        "tokens": TokenSettings(**values["tokens"]),
        "class_prior": tuple(prior) if isinstance(prior, list) else prior,
        "strip": tuple(values["strip"]),
        "columns": read,
    }
    return Settings(**values | own_types)


# As in scikit-learn's tutorial on 20 newsgroups: every file is Latin-1 text, words have two
# or more word characters, counts are scaled to unit length, and alpha is Laplace's.  Some notes
# call these weights tf-idf, but no document frequency takes part.
_TUTORIAL = Settings(
    TokenSettings(punctuation="_", min_length=2, max_length=4096, raw=True),
    reading="latin1",
    weighting=UNIT_LENGTH,
    alpha=1.0,
)
_WRITTEN = TokenSettings(punctuation="_", pairs=True)
# For two classes, whose evidence is combined and comes from presence.  E-002, E-020.
PRESETS = {
    "mail": Settings(model="complement", alpha=0.1, combine=True),
    "text": Settings(_WRITTEN._replace(characters=True), reading="text", alpha=0.1, combine=True),
    "tutorial": _TUTORIAL,
}
# For more classes: unless documents are scaled, long ones outweigh short ones.  E-024.
MANY = {
    "mail": Settings(weighting=LOG_LENGTH, combine=True),
    "text": Settings(_WRITTEN, reading="text", weighting=LOG_LENGTH, combine=True),
}
# For evidence that is summed, as one of _PLAIN was chosen; a model by name has alpha 1.  E-004.
PLAIN = {
    "mail": Settings(model="complement", alpha=0.1),
    "text": Settings(reading="text", weighting=COUNTS, alpha=0.1),
}


# --- from choices to settings ----------------------------------------------------------------

# Every start of the command line makes these two classes: as a NamedTuple each takes 0.3 ms,
# as a dataclass 2 to 3 ms.


class SettingsChoices(NamedTuple):
    """The settings that a user decided on; None leaves a decision to `chosen_settings`."""

    preset: str | None = None  # one of PRESETS
    model: str | None = None  # one of MODELS; for a table one of TABLE_MODELS, too
    alpha: float | str | None = None  # from 0, or "auto"
    class_prior: str | tuple[float, ...] | None = None
    weighting: str | None = None  # one of WEIGHTINGS
    pairs: bool | None = None
    characters: bool | None = None
    strip: tuple[str, ...] | None = None  # of STRIPPABLE
    min_df: int | None = None
    max_features: int | None = None
    authserv_id: str | None = None
    attachments: bool | None = None
    # Parameters of estimators.
    estimate: str | None = None
    beta: tuple[float, ...] | None = None  # of bernoulli, for texts
    # Parameters of priors, each with the column it is for; see tables/training.py.  Of texts,
    # only the classes have such a prior.
    dirichlet: tuple[tuple[str | None, tuple[float, ...]], ...] = ()
    min_support: float | None = None
    criterion: str | None = None
    start: str | None = None
    climb: bool | None = None
    max_parents: int | None = None


class TableChoices(NamedTuple):
    """A user's decisions about the columns of a table; only `target` is not optional."""

    target: str | None = None  # the column that holds the class; None: not a table
    categorical: tuple[str, ...] = ()
    numeric: tuple[str, ...] = ()
    drop: tuple[str, ...] = ()  # columns that are left out
    values: tuple[tuple[str, tuple[str, ...]], ...] = ()  # declared, by column
    discretise: str | None = None
    bins: int | None = None
    parent: str | None = None
    root: str | None = None
    class_parents: bool | None = None
    order: int | None = None
    structure: str | None = None  # the path of a file


def decisions_made(choices: SettingsChoices | TableChoices) -> dict[str, Any]:
    """Return the decisions that were made, by name; arrays and lists as tuples of plain values.

    Raises UsageError.
    """
    values = {n: v.tolist() if hasattr(v, "tolist") else v for n, v in choices._asdict().items()}
    for name in ("preset", "model"):  # which are looked up
        if not isinstance(values.get(name), str | None):
            raise UsageError(f"{name}: {values[name]!r} is not a name; give one")
    values = {name: tuple(v) if isinstance(v, list) else v for name, v in values.items()}
    return {name: value for name, value in values.items() if value not in (None, ())}


PARAMETERS = ("estimate", "beta", "min_support", "criterion", "start", "climb", "max_parents")
# A user's decision on any of these asks for a single textbook model, not a combination.
_PLAIN = {"model", "alpha", "class_prior", "weighting", "estimate", "beta", "dirichlet"}
# How far ahead `look_at_items` searches for a third class.
_MAX_ITEMS, _MAX_BYTES = 50_000, 1 << 26


def is_for_table(choices: SettingsChoices, columns: TableChoices) -> bool:
    """Return whether the choices describe a table of columns; raises UsageError."""
    if columns.target is not None:
        return True
    wrong = [option_name(name) for name in decisions_made(columns)]
    if choices.model in TABLE_MODELS:
        wrong.append(f"--model {choices.model}")
    if wrong:
        raise UsageError(f"{wrong[0]}: for the columns of a table; say --target COLUMN too")
    return False


def chosen_settings(choices: SettingsChoices, is_text: bool, many: bool = False) -> Settings:
    """Return the preset that fits a corpus, changed by the user's choices.

    is_text: its items are texts and not mail.  many: it has more than two classes.
    Raises UsageError for choices that contradict each other.
    """
    check_estimate(choices)
    given = decisions_made(choices)
    name = given.pop("preset", "text" if is_text or "strip" in given else "mail")
    if name not in PRESETS:
        raise UsageError(f"--preset {name}: unknown; choose from {', '.join(PRESETS)}")
    for flag in ("pairs", "characters", "attachments"):
        if not isinstance(given.get(flag, False), bool):
            raise UsageError(f"{flag}: {given[flag]!r} is neither True nor False; give one")
    settings = MANY.get(name, PRESETS[name]) if many else PRESETS[name]
    if given.keys() & _PLAIN:
        settings = PLAIN.get(name, settings)
    parameters = {name: given.pop(name) for name in PARAMETERS if name in given}
    if isinstance(parameters.get("beta"), tuple):
        parameters["beta"] = list(parameters["beta"])  # as the model file will return it
    if "dirichlet" in given:
        priors = given.pop("dirichlet")
        parameters["class_dirichlet"] = _of_classes(priors, given.get("class_prior"))
        given["class_prior"] = "smoothed"
    if choices.model is not None and name != "tutorial":
        # As textbooks have them, by Laplace's rule.  D-110.
        weighting = PRESENCE if choices.model in PRESENCE_MODELS else COUNTS
        settings = replace(settings, weighting=weighting, alpha=1.0)
    elif choices.model in PRESENCE_MODELS:
        settings = replace(settings, weighting=PRESENCE)
    if choices.model in FEATURES:
        settings = replace(settings, max_features=FEATURES[choices.model])
    else:
        _check_parameters(parameters, choices.model)
    settings = replace(settings, parameters=parameters)
    if settings.reading != "mail" and "authserv_id" in given:
        raise UsageError("--authserv-id: for mail, and these are texts; leave it out")
    tokens = {name: given.pop(name) for name in ("pairs", "characters") if name in given}
    return replace(settings, tokens=settings.tokens._replace(**tokens), **given)


def _of_classes(
    given: Sequence[tuple[str | None, tuple[float, ...]]], class_prior: object
) -> list[float]:
    """Return the parameters of the classes' prior, as the model file will; raises UsageError."""
    if len(given) > 1:
        raise UsageError(
            "--dirichlet: of texts only the classes have such a prior; give one, and --alpha or"
            " --beta for the tokens"
        )
    if class_prior not in (None, "smoothed"):
        raise UsageError("--dirichlet: gives the classes a prior, as --class-prior; leave out one")
    return list(given[0][1])


def check_estimate(choices: SettingsChoices) -> None:
    """Raise UsageError for a prior of probabilities beside maximum likelihood, which has none."""
    alpha, dirichlet = choices.alpha or None, choices.dirichlet or None  # alpha 0 says the same
    for name, prior in (("alpha", alpha), ("beta", choices.beta), ("dirichlet", dirichlet)):
        if choices.estimate == "mle" and prior is not None:
            raise UsageError(f"{option_name(name)}: --estimate mle adds nothing; leave out one")


def check_dirichlet(choices: SettingsChoices, columns: TextColumns) -> None:
    """Raise UsageError if a prior is for another column of a table than that of the classes."""
    for name, _ in choices.dirichlet:
        if name not in (None, columns.label):
            raise UsageError(
                f"--dirichlet {name}: not the column of the classes; leave out {name}= for texts,"
                " or use: nbspam table train"
            )


def _check_parameters(parameters: Mapping[str, Any], model: str | None) -> None:
    """Raise UsageError for parameters that a model of all tokens does not have."""
    for name in parameters.keys() - {"estimate", "class_dirichlet"}:
        if name != "beta":
            raise UsageError(
                f"{option_name(name)}: for tables and --model {', '.join(FEATURES)}; leave it out"
            )
        if model != "bernoulli":
            raise UsageError("--beta: for --model bernoulli; say that too, or leave it out")


def first_is_text(items: Iterable[Item]) -> tuple[bool, Iterator[Item]]:
    """Return whether the first item is text and not mail, and all the items.

    Raises InputError if there are none.
    """
    rest = iter(items)
    first = next(rest, None)
    if first is None:
        raise InputError("sources: nothing to read; name a folder, a file or a table of mail")
    return first.is_text, chain([first], rest)


def look_at_items(items: Iterable[Item]) -> tuple[bool, bool, Iterator[Item]]:
    """Return whether items are text, whether they have more than two classes, and all of them.

    The search for a third class ends after _MAX_ITEMS items or _MAX_BYTES bytes of texts; a corpus
    that shows it later counts as one of two classes.  Raises InputError if there are no items.
    """
    is_text, items = first_is_text(items)
    labels: set[str] = set()
    seen: list[Item] = []
    size = 0
    for item in items:
        seen.append(item)
        size += len(item.data or b"")
        if item.label is not None:
            labels.add(item.label)
        # Classes called ham or spam belong to a mail filter, so there is no need to wait.
        if len(labels) > 2 or labels & {"ham", "spam"}:
            break
        if len(seen) >= _MAX_ITEMS or size >= _MAX_BYTES:
            break
    return is_text, len(labels) > 2, chain(seen, items)


def as_learned(reading: SourceOptions, settings: Settings) -> SourceOptions:
    """Return how sources are read for a model, which remembers the columns of its table."""
    columns = settings.columns
    is_mail = bool(columns.text) and settings.reading == "mail"
    return reading._replace(learned=columns, is_mail=is_mail)


def settings_for(
    items: Iterable[Item], choices: SettingsChoices, listener: Listener = SILENT
) -> tuple[Settings, Iterator[Item]]:
    """Return the settings that `nbspam train` uses for labelled items, and all the items.

    listener: the one to the tables among the sources, whose columns the settings keep.
    """
    is_text, many, items = look_at_items(items)
    check_dirichlet(choices, listener.columns)
    return replace(chosen_settings(choices, is_text, many), columns=listener.columns), items


class Bounds(NamedTuple):
    """Limits on the tokens that training counts of a stream, and on its memory of messages.

    They are not settings: they change neither the definition nor the weight of a token.
    """

    max_tokens: int | None = None  # the most frequent ones that are counted; None: all
    ledger: bool = True  # whether all messages are known, or only the sample's
    vocabulary: Sequence[str] | None = None  # the tokens that are counted, seen or not; None: all


UNBOUNDED = Bounds()


def check_unbounded(bounds: Bounds, what: str) -> None:
    """Raise UsageError if there are bounds; what: the kind of model that takes none."""
    options = zip(("--max-tokens", "--no-ledger", "--vocabulary"), bounds, UNBOUNDED, strict=True)
    if given := ", ".join(option for option, bound, free in options if bound != free):
        raise UsageError(f"{given}: not for {what}; leave that out")


# --- keywords of the library as choices -------------------------------------------------------


@contextmanager
def naming_keywords() -> Iterator[None]:
    """Let errors name keywords of the library where they name options, see `in_keywords`."""
    try:
        yield
    except NbspamError as error:
        error.args = (in_keywords(str(error)),)
        raise


def in_keywords(text: str) -> str:
    """Return a message with keywords of the library instead of options: min_df for --min-df.

    Whole commands, such as "nbspam doctor --repair", stay as they are.
    """
    import re

    told = re.sub(r"--spam PATH --ham PATH( \(.*\))?", "pairs of data and label", text)
    told = re.sub(r", and --id-column .*", "", told)  # rows are named by their dicts
    told = re.sub(r"(?<![\w-])--no-([a-z]+)", r"\1=False", told)
    option = r"(\bnbspam [^;]*)|(?<![\w-])-(?:-|(?=k ))([a-z][a-z-]*)"
    return re.sub(option, lambda found: found[1] or found[2].replace("-", "_"), told)


def names_given(given: Any) -> tuple[Any, ...]:
    """Return the names or paths that are given, as a tuple; a string is one of them."""
    return (given,) if isinstance(given, str) or not isinstance(given, Iterable) else tuple(given)


def texts_given(given: Any) -> tuple[str, ...]:
    """Return names as texts; the columns of arrays are numbers."""
    return tuple(map(str, names_given(given)))


def _declared(given: Any) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """Return all values of some columns, as a file has them; raises UsageError."""
    with suppress(TypeError, ValueError):
        by_column = dict(given).items()
        values = {str(name): tuple(map(cell_text, names_given(of))) for name, of in by_column}
        if all(all(cells) and 0 < len(cells) == len({*cells}) for cells in values.values()):
            return tuple(values.items())
    raise UsageError(f"values: {given!r}; give a dict from columns to their different values")


def _priors(given: Any) -> tuple[tuple[str | None, tuple[float, ...]], ...]:
    """Return the parameters of priors by column; raises UsageError."""
    by_column = given if isinstance(given, Mapping) else {None: given}  # None: of the classes
    names = [None if name is None else str(name) for name in by_column]
    pairs = zip(names, by_column.values(), strict=True)
    try:
        return tuple((name, tuple(map(float, of))) for name, of in pairs if len(of))
    except (TypeError, ValueError):
        raise UsageError(f"dirichlet: {given!r} are no numbers; give one for each") from None


# How choices become options of the command line; the others are options as they are.
_OPTION_OF: dict[str, Callable[[Any], Any]] = {
    **dict.fromkeys(("strip", "categorical", "numeric", "drop", "vocabulary"), texts_given),
    **dict.fromkeys(("parent", "root"), str),
    "values": _declared,
    "dirichlet": _priors,
}


def as_options(choices: Mapping[str, Any]) -> dict[str, Any]:
    """Return keywords as the command line has its options, without None; raises UsageError."""
    stated = {name: value for name, value in choices.items() if value is not None}
    return {name: _OPTION_OF.get(name, lambda v: v)(value) for name, value in stated.items()}

"""The judge, the thread between connections and the model; and users' models.

The judge judges all messages that wait, many at a time.  A batch is all that arrived while the
batch before it was judged, and just behind it, so an idle server answers at once.  Before each
batch the judge takes in the lessons of all processes; one model judges all messages of a batch.

A user may have a model that counts on top of the site's: a model file like any other,
DIR/NAME/model, begun by the user's first lesson.  The counts that judging needs are held in memory
for the users whose mail came last.  Strangers write users' names, so an encoding turns each name
into a folder's name that is never a path.
"""

import asyncio
import contextlib
import os
import stat
import string
import unicodedata
from collections import OrderedDict, deque
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from concurrent import futures
from time import monotonic, time
from typing import Any, Generic, NamedTuple, TypeVar
from urllib.parse import quote, unquote

from nbspam.classifier import personal
from nbspam.classifier.classifier import Classifier
from nbspam.classifier.combine import Combination
from nbspam.classifier.personal import OwnCounts, n_learned, own_of
from nbspam.counts.lessons import Outcome
from nbspam.decision import HAM_AND_SPAM, Rule
from nbspam.disk import Stamp, resolved, stamp_of, stamp_of_status
from nbspam.errors import InputError, ModelFileError, NbspamError, UsageError
from nbspam.mail import addresses
from nbspam.mail.attachments import limits_with_documents
from nbspam.server.metrics import ServerTally
from nbspam.settings import PRESENCE, Settings, SettingsChoices, chosen_settings
from nbspam.sources.items import Item
from nbspam.store.journal import journal_path
from nbspam.store.model import StoredModel
from nbspam.store.modelfile import IN_MEMORY
from nbspam.verdicts import Explanation, Skipped, Verdict
from nbspam.workers import return_freed_memory

T = TypeVar("T")
IDLE = 10.0  # seconds without a message, after which a worker returns freed memory
_MAX_FOLDER = 200  # bytes of a folder's name; file systems allow 255
_MAX_NAME = 1000  # characters, too many for a folder; normalizing more would take seconds
_PLAIN = "@+_-."  # beside ASCII letters and digits; quote() leaves ~ as it is, too
_EACH = 1000  # bytes that a user takes in memory beside the arrays


class UserError(UsageError):
    """A user's name for which there can be no folder."""


def known_as(text: str | None) -> str:
    """Return the name by which a user is known, "" for nobody.

    Senders write the addresses of recipients as they like: <Alice@Example.ORG> is
    alice@example.org.
    """
    name = (text or "").strip(f"<>{string.whitespace}")[:_MAX_NAME]
    name = unicodedata.normalize("NFC", name)
    return unicodedata.normalize("NFC", name.lower())


def user_folder_name(name: str) -> str:
    """Return the name of a user's folder; raises UserError.

    name: from `known_as`.  Different names have different folders, none of which is a path.
    """
    if not name:
        raise UserError("no user is named; name one: rspamc -d NAME, spamc -u NAME")
    if "\ufffd" in name:  # different bytes have become the same
        raise UserError("the user's name is not UTF-8; write it so")
    folder = quote(name, safe=_PLAIN, errors="surrogatepass")
    if folder.startswith("."):
        folder = f"%2E{folder[1:]}"
    if len(folder) > _MAX_FOLDER:
        raise UserError(
            f"the user's name is too long: {len(folder)} bytes as the name of a folder, of"
            f" {_MAX_FOLDER} allowed; give a shorter one"
        )
    return folder


def model_in(folder: str, name: str) -> str:
    """Return the path of a user's model, be it there or not; raises UserError.

    name: from `known_as`.
    """
    return os.path.join(folder, user_folder_name(name), "model")


def user_of(recipients: Collection[str]) -> str:
    """Return the user whose model judges mail to some recipients; "" for the site's.

    With several recipients it is the site's: no user decides for others.
    """
    users = set(map(known_as, recipients))
    return users.pop() if len(users) == 1 else ""


def users_in(folder: str) -> list[str]:
    """Return the users with an entry of their name in a folder, in order.

    Other entries are left out, and so is all of a folder that cannot be read.
    """
    found = []
    with contextlib.suppress(OSError):
        for entry in os.listdir(folder):
            with contextlib.suppress(UserError, UnicodeError):
                name = unquote(entry, errors="surrogatepass")
                if known_as(name) == name and user_folder_name(name) == entry:
                    found.append(name)
    return sorted(found)


def check_folder(folder: str) -> None:
    """Raise InputError if the users' folder is not a folder."""
    try:
        if not stat.S_ISDIR(os.stat(folder).st_mode):
            raise InputError(f"--users {folder}: not a folder; give a folder, or a new name")
        if not os.access(folder, os.X_OK):
            raise InputError(f"--users {folder}: may not be entered; serve as its owner")
    except FileNotFoundError:
        return  # the first lesson makes it
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise InputError(f"--users {folder}: {reason}; give another folder") from error


def check_site(model: StoredModel) -> None:
    """Raise UsageError if users' own models cannot count on top of a model."""
    if not (model.settings.is_mail_combined and model.settings.weighting == PRESENCE):
        raise UsageError(
            f"--users: {model.name} does not combine the evidence of mail, so that nobody's own"
            " lessons can be added; serve a model that was trained without --model and --weighting"
        )


def served_copy(path: str) -> str:
    """Return the path of the copy of a model that a server's workers read."""
    return f"{resolved(path)}.served"


def open_served(path: str, is_server: bool = True) -> StoredModel:
    """Return a model of mail that can be served; raises NbspamError.

    If there is none, the first lesson makes one.  is_server: whether a supervisor has large models
    fitted, and removes the copy.
    """
    new = chosen_settings(SettingsChoices(), is_text=False)
    model = StoredModel(path, new=new, served=served_copy(path) if is_server else None)
    check_served(path, model.classifier())
    if model.settings.attachments:
        limits_with_documents()
    return model


def check_served(path: str, classifier: Classifier) -> None:
    """Raise UsageError unless a model is of mail, of ham and spam."""
    if classifier.classes != HAM_AND_SPAM or classifier.settings.reading != "mail":
        raise UsageError(
            f"{path}: a model of {classifier.noun}, of the classes"
            f" {', '.join(classifier.classes)}; serve a model of mail, of ham and spam"
        )


class _Held(NamedTuple):
    """A user's counts, and the files that they were read from."""

    stamps: tuple[Stamp | None, ...]  # of the user's model and journal, and of the site's model
    own: OwnCounts | None  # None: the model cannot be read, or has un-learned everything

    @property
    def n_bytes(self) -> int:
        return _EACH + (0 if self.own is None else self.own.n_bytes)


class UserCounts:
    """The counts of users' models, for the judge's thread.

    room: bytes of memory for them.  on_trouble: told why a user's model cannot be read;
    the site's judges that user's mail then.
    """

    def __init__(self, folder: str, room: int, on_trouble: Callable[[Exception], None]) -> None:
        self.folder = folder
        self._room = room
        self._on_trouble = on_trouble
        self._held: OrderedDict[str, _Held] = OrderedDict()  # those used last are at the end
        self.n_bytes = 0

    def __len__(self) -> int:
        return len(self._held)

    def own(self, name: str, site: StoredModel) -> OwnCounts | None:
        """Return a user's counts; None without any lesson, or for a name that cannot be kept.

        site: the model whose classifier was just asked for.
        """
        try:
            path = model_in(self.folder, name)
            # Taken before the files are read: a lesson written then shows at the next message.
            model = stamp_of_status(os.stat(path))
        except (UserError, FileNotFoundError):
            self._drop(name)
            return None
        except OSError:
            model = None  # reading it tells why
        stamps = model, stamp_of(journal_path(path)), site.stamp
        held = self._held.get(name)
        if held is None or held.stamps != stamps:
            self._drop(name)
            held = _Held(stamps, self._read(path, site))
            self._held[name] = held
            self.n_bytes += held.n_bytes
            while self.n_bytes > self._room and len(self._held) > 1:
                self._drop(next(iter(self._held)))
        self._held.move_to_end(name)
        return held.own

    def _drop(self, name: str) -> None:
        if name in self._held:
            self.n_bytes -= self._held.pop(name).n_bytes

    def _read(self, path: str, site: StoredModel) -> OwnCounts | None:
        """Return a user's counts; None, and a note, if the model cannot be used."""
        try:
            model = StoredModel(path, served=IN_MEMORY)
            if model.base.classes != HAM_AND_SPAM or model.settings.weighting != PRESENCE:
                raise ModelFileError(f"{path}: not a user's model; move it away")
            table, documents, y = model.lessons()
        except (NbspamError, OSError) as error:
            self._on_trouble(error)
            return None
        sent, cutoffs = model.settings.sent_mail, model.base.cutoffs
        is_new = sent is None and cutoffs is None and not table.class_count.any()
        if is_new or not isinstance(site.base.fit, Combination):
            return None
        return own_of(site.base, table, documents, y)._replace(sent_mail=sent, cutoffs=cutoffs)


# ---- the thread ----


BATCH = 128  # messages that are judged together at most
BATCH_BYTES = 1 << 19  # after which a batch takes no more: its arrays stay with the process
_TURNS = 3  # of the event loop, in which a connection is accepted, opened and read
# Seconds that the event loop sleeps at most while a batch is judged.  Otherwise its thread and the
# judge's would take the interpreter from each other, with 37 system calls a message: E-352.  Most
# batches take less; during a longer one, clients are heard, refused, and told that it is late.
_MOST_SLEEP = 0.05


class Judgement(NamedTuple):
    """The answer about one message."""

    verdict: Verdict
    rule: Rule  # by which the verdict's label was found
    explanation: Explanation | None = None  # if it was asked for
    lack: str | None = None  # the lessons a model needs before it can judge at all
    n_learned: float = 0.0  # messages that the model had learned, with a user's own
    is_known: bool = False  # with an explanation: whether the site's model had learned this one
    listed: str | None = None  # the line of a list that the message fits
    lesson: str | None = None  # the class as which it is learned, as its list allows


class AskedMessage(NamedTuple):
    """A message to judge."""

    data: bytes
    user: str = ""  # its owner, from `known_as`; "" for nobody
    explain: bool = False


class BatchJudge:
    """Judges batches of messages by a model that other processes teach.

    rule_of: the rule for a classifier.  on_trouble: told why the model cannot be read again; the
    one that was read before goes on judging, unless its file has gone.  users: whose models count
    beside it; None: nobody's.
    """

    def __init__(
        self,
        model: StoredModel,
        rule_of: Callable[[Classifier], Rule],
        on_trouble: Callable[[Exception], None],
        tally: ServerTally,
        users: UserCounts | None = None,
    ) -> None:
        self.model = model
        self.classifier = model.classifier()
        self._users = users
        self._rule_of = rule_of
        self._on_trouble = on_trouble
        self.tally = tally
        self._lists = addresses.ListsInUse()

    def judgements(self, cases: Sequence[AskedMessage]) -> "list[Judgement | Exception]":
        """Return the judgement of each message, or the error that prevented it."""
        before = self.model.stamp
        try:
            self.classifier = self.model.classifier()
            if before is not None and self.model.stamp is None:
                raise ModelFileError(f"{self.model.path}: the model has gone; put it back")
        except Exception as error:  # even if memory ran out: the model as it was goes on
            self._on_trouble(error)
        if self.model.stamp != before:
            return_freed_memory()
        try:
            return list(self._of_batch(cases))
        except Exception as error:  # one message must not keep the others from their verdicts
            if len(cases) == 1:
                return [error]
            return [self.judgements([case])[0] for case in cases]

    def _of_batch(self, cases: Sequence[AskedMessage]) -> "list[Judgement | Exception]":
        classifier = self.classifier
        check_served(self.model.path, classifier)  # others may have put another in its place
        rule = self._rule_of(classifier)
        items = [Item("-", None, case.data) for case in cases]
        owners = self._own_counts(cases)
        lists, server = self._lists_of(cases), classifier.settings.authserv_id
        if any(own is not None for own in owners):
            verdicts = iter(personal.classify(classifier, items, owners, rule))
        else:
            verdicts = classifier.classify(items, rule=rule)
        found: list[Judgement | Exception] = []
        for case, item, own, verdict in zip(cases, items, owners, verdicts, strict=True):
            if isinstance(verdict, Skipped):
                found.append(NbspamError(verdict.reason))
                continue
            is_known = case.explain and self.model.filed(case.data).label is not None
            if own is None:
                why = classifier.explain(item, rule) if case.explain else None
                learned = float(classifier.table.n_docs)
            else:
                why = personal.explain(classifier, item, own, rule) if case.explain else None
                learned = n_learned(classifier, own)
            own_rule = personal.rule_for(classifier, own, rule)
            lack = personal.lack_of_own(classifier, own)
            given = Judgement(verdict, own_rule, why, lack, learned, is_known)
            own_lists = (each.trusting(server) for each in lists[case.user])
            matches = (each.match(case.data, case.user) for each in own_lists)
            learns = own is not None or self._users is None  # without lessons, a user has no files
            found.append(_listed(given, next(filter(None, matches), None), learns))
        return found

    def _lists_of(self, cases: Sequence[AskedMessage]) -> dict[str, list[addresses.AddressLists]]:
        """Return the lists of each user who has mail in a batch, before the site's."""
        found = {}
        for user in {case.user for case in cases}:
            models = [self.model.path]
            if self._users is not None:
                with contextlib.suppress(UserError):
                    models.insert(0, model_in(self._users.folder, user))
            beside = []
            for path in models:
                try:
                    beside.append(self._lists.beside(path))
                except InputError as error:
                    self._on_trouble(InputError(f"{error}; until then, none of its lines counts"))
            found[user] = [lists for lists in beside if lists is not None]
        return found

    def _own_counts(self, cases: Sequence[AskedMessage]) -> list[OwnCounts | None]:
        """Return the counts of each message's user, None for the site's model."""
        users = self._users
        if users is None:
            return [None] * len(cases)
        owners = [users.own(case.user, self.model) for case in cases]
        self.tally.add("personal", len(owners) - owners.count(None))
        self.tally.set_gauge("users", len(users))
        self.tally.set_gauge("users_bytes", users.n_bytes)
        return owners


class WaitingRequest(Generic[T]):
    """A request in the judge's or a teacher's queue; made and settled in the event loop's thread.

    If its client disconnects, only its place in the queue is left.
    """

    def __init__(self, request: T) -> None:
        self.request: T | None = request
        self.done: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self.done.add_done_callback(self._let_go)

    def _let_go(self, _: "asyncio.Future[Any]") -> None:
        self.request = None


class Judge:
    """Has messages judged in a thread; `judge` is called in the event loop's thread."""

    def __init__(self, batches: BatchJudge) -> None:
        self._batches = batches  # used in the thread only, but for what the properties tell
        self._waiting: deque[WaitingRequest[AskedMessage]] = deque()
        self._is_busy = False  # a batch is gathered or judged: the next one follows it
        self._began: float | None = None  # when the batch under way was taken, monotonic seconds
        self._loop = asyncio.get_running_loop()
        self._thread = futures.ThreadPoolExecutor(1, thread_name_prefix="judge")
        self._thread.submit(int)  # begins it now, while there is memory
        self._trim: asyncio.TimerHandle | None = None  # returns freed memory, once nothing comes

    @property
    def model_time(self) -> float:
        """When the model file was written, seconds since 1970; now, if there is none yet."""
        stamp = stamp_of(self._batches.model.path)
        return time() if stamp is None else stamp[3] / 1e9

    @property
    def settings(self) -> Settings:
        """How the model reads mail."""
        return self._batches.classifier.settings

    @property
    def n_waiting(self) -> int:
        """How many messages wait for the next batch."""
        return len(self._waiting)

    @property
    def seconds_busy(self) -> float:
        """How long the batch under way has taken; 0 if none is."""
        return 0.0 if self._began is None else monotonic() - self._began

    def judge(
        self, data: bytes, explain: bool = False, user: str = ""
    ) -> "asyncio.Future[Judgement]":
        """Return the future judgement of a message; user: from `known_as`."""
        case = WaitingRequest(AskedMessage(data, user, explain))
        self._waiting.append(case)
        if not self._is_busy:
            self._is_busy = True
            self._loop.call_soon(self._gather, 1, _TURNS)
        return case.done

    def end(self) -> None:
        """End the thread once it has judged the batch under way."""
        self._waiting.clear()  # a turn of the event loop may still follow
        if self._trim is not None:
            self._trim.cancel()
        self._thread.shutdown()

    def _gather(self, n_before: int, turns: int) -> None:
        """Begin a batch when some turns of the event loop have brought no further message.

        n_before: how many waited at the turn before.  turns: how many may still pass.
        """
        n = len(self._waiting)
        turns = _TURNS if n > n_before else turns - 1
        if turns and n < BATCH:
            self._loop.call_soon(self._gather, n, turns)
        else:
            self._begin()

    def _begin(self) -> None:
        """Have a batch judged; the event loop sleeps until its end, or for _MOST_SLEEP."""
        cases: list[WaitingRequest[AskedMessage]] = []
        messages: list[AskedMessage] = []
        n_bytes = 0
        while self._waiting and len(cases) < BATCH and n_bytes < BATCH_BYTES:
            case = self._waiting.popleft()
            if case.request is not None and not case.done.cancelled():
                cases.append(case)
                messages.append(case.request)
                n_bytes += len(case.request.data)
        if not cases:
            self._is_busy = False
            return
        if self._trim is not None:
            self._trim.cancel()
        self._began = monotonic()
        batch = self._thread.submit(self._batches.judgements, messages)
        try:
            batch.exception(_MOST_SLEEP)
        except TimeoutError:
            tell = self._loop.call_soon_threadsafe
            batch.add_done_callback(lambda batch: tell(self._settle, cases, batch))
        else:
            self._settle(cases, batch)

    def _settle(self, cases: Sequence[WaitingRequest[Any]], batch: "futures.Future[Any]") -> None:
        """Deliver the judgements of a batch, and gather the next one."""
        self._began = None
        tally = self._batches.tally
        tally.add("batches")
        tally.add("batched", len(cases))
        error = batch.exception()  # `on_trouble` may itself run out of memory
        settle_all(cases, batch.result() if error is None else [error] * len(cases))
        # 3 to 18 MB, the larger the messages were; the next batch then takes a tenth longer.
        self._trim = self._loop.call_later(IDLE, self._thread.submit, return_freed_memory)
        self._is_busy = bool(self._waiting)
        if self._is_busy:
            self._loop.call_soon(self._gather, len(self._waiting), _TURNS)


def _listed(given: Judgement, match: addresses.ListMatch | None, learns: bool) -> Judgement:
    if match is None:
        return given
    explanation = given.explanation
    if explanation is not None:
        explanation = addresses.listed_explanation(explanation, match, given.rule)
    lesson = addresses.autolearned(match, given.verdict.posterior["spam"]) if learns else None
    verdict = addresses.listed_verdict(given.verdict, match, given.rule)
    return given._replace(
        verdict=verdict, explanation=explanation, listed=match.line, lesson=lesson
    )


def judge_each(
    model: StoredModel,
    messages: Iterable[tuple[bytes, str]],
    users: UserCounts | None,
    on_trouble: Callable[[Exception], None],
) -> Iterator[Judgement]:
    """Yield the judgement that a server would give each message; messages: data, and user."""
    judge = BatchJudge(model, lambda each: each.rule, on_trouble, ServerTally(1), users)
    for data, user in messages:
        (found,) = judge.judgements([AskedMessage(data, user)])
        if isinstance(found, Exception):
            raise found
        yield found


def settle_all(
    cases: Sequence[WaitingRequest[Any]], results: "Sequence[Judgement | Outcome | BaseException]"
) -> None:
    """Deliver the result of each message, unless its client disconnected or timed out."""
    for case, result in zip(cases, results, strict=True):
        if case.done.done():
            continue
        if isinstance(result, BaseException):
            case.done.set_exception(result)
        else:
            case.done.set_result(result)

"""The judge and the teacher: the two threads between connections and model.

The judge judges all messages that wait, many at a time.  A batch is whatever arrived while the
batch before it was judged, so nothing waits when there is little to do.  Before each batch the
judge takes in the lessons of all processes; one model judges all messages of a batch.  The teacher
learns one message after the other as every process does: decided under the model's lock, put
on disk, and only then acknowledged.  The judge reads it there.
"""

import asyncio
import contextlib
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from queue import Empty, SimpleQueue
from threading import Thread
from time import monotonic, time
from typing import NamedTuple

from nbspam.classifier import personal
from nbspam.classifier.classifier import Classifier
from nbspam.classifier.personal import OwnCounts, n_learned
from nbspam.counts.counting import Outcome
from nbspam.decision import Rule
from nbspam.errors import InputError, NbspamError
from nbspam.mail.address_lists import (
    AddressLists,
    ListMatch,
    ListsInUse,
    listed_explanation,
    listed_verdict,
)
from nbspam.server.metrics import ServerTally
from nbspam.server.users import UserError, Users
from nbspam.settings import Settings
from nbspam.sharing.sharer import LOG_SECONDS, SharedOutlet
from nbspam.sources.items import Item
from nbspam.store.model import StoredModel
from nbspam.tokens.people import learned_sent_mail
from nbspam.verdicts import Explanation, Skipped, Verdict
from nbspam.workers import return_freed_memory

BATCH = 128  # messages that are judged together at most
BATCH_BYTES = 1 << 20  # after which a batch takes no more: its arrays stay with the process


class Judgement(NamedTuple):
    """The answer about one message."""

    verdict: Verdict
    rule: Rule  # by which the verdict's label was found
    explanation: Explanation | None = None  # if it was asked for
    lack: str | None = None  # the lessons a model needs before it can judge at all
    n_learned: float = 0.0  # messages that it had learned; those of users count on top
    is_known: bool = False  # with an explanation: whether it, not a user's, had learned this one
    listed: str | None = None  # the line of a list that the message fits


class WaitingMessage:
    """A message in the judge's queue; made and settled in the event loop's thread.

    If its client goes, only its place in the queue is left, without its bytes.  user: the owner of
    the message, from `users.known_as`; "" for nobody.
    """

    def __init__(self, data: bytes, user: str, explain: bool) -> None:
        self.data = data
        self.user = user
        self.explain = explain
        self.done: asyncio.Future[Judgement] = asyncio.get_running_loop().create_future()
        self.done.add_done_callback(self._let_go)

    def _let_go(self, _: "asyncio.Future[Judgement]") -> None:
        self.data = b""

    def settle(self, result: Judgement | Exception) -> None:
        """Deliver the result, unless the client disconnected or timed out."""
        if self.done.done():
            return
        if isinstance(result, Exception):
            self.done.set_exception(result)
        else:
            self.done.set_result(result)


class Judge:
    """Judges messages in a thread of its own; `judge` is called in the event loop's thread.

    rule_of: the rule for a classifier.  on_trouble: told, in the judge's thread, why the model
    cannot be read again; the one that was read before goes on judging.  users: whose models count
    beside it; None: nobody's.
    """

    def __init__(
        self,
        model: StoredModel,
        rule_of: Callable[[Classifier], Rule],
        on_trouble: Callable[[Exception], None],
        tally: ServerTally,
        users: Users | None = None,
    ) -> None:
        self._model = model
        self._users = users
        self._classifier = model.classifier()
        self._rule_of = rule_of
        self._on_trouble = on_trouble
        self._tally = tally
        self._lists = ListsInUse()
        self._cases: SimpleQueue[WaitingMessage | None] = SimpleQueue()
        self._began: float | None = None  # when the batch under way was taken, monotonic seconds
        self._loop = asyncio.get_running_loop()
        self._thread = Thread(target=self._work, name="judge", daemon=True)
        self._thread.start()

    @property
    def model_time(self) -> float:
        """When the model file was written, seconds since 1970; now, if there is none yet."""
        stamp = self._model.stamp
        return time() if stamp is None else stamp[3] / 1e9

    @property
    def settings(self) -> Settings:
        """How the model reads mail."""
        return self._classifier.settings

    @property
    def n_waiting(self) -> int:
        """How many messages wait for the next batch."""
        return self._cases.qsize()

    @property
    def seconds_busy(self) -> float:
        """How long the batch under way has taken; 0 if none is."""
        began = self._began
        return 0.0 if began is None else monotonic() - began

    @property
    def is_alive(self) -> bool:
        """Whether messages are judged at all."""
        return self._thread.is_alive()

    def judge(
        self, data: bytes, explain: bool = False, user: str = ""
    ) -> "asyncio.Future[Judgement]":
        """Return the future judgement of a message; user: from `users.known_as`."""
        case = WaitingMessage(data, user, explain)
        self._cases.put(case)
        return case.done

    def end(self) -> None:
        """End the thread once it has judged all waiting messages."""
        self._cases.put(None)
        self._thread.join()

    # ---- in the thread ----

    def _work(self) -> None:
        ends = False
        while not ends:
            cases = [self._cases.get()]
            n_bytes = 0
            while len(cases) < BATCH and n_bytes < BATCH_BYTES:
                try:
                    cases.append(self._cases.get_nowait())
                except Empty:
                    break
                n_bytes += len(cases[-1].data) if cases[-1] is not None else 0
            ends = None in cases
            waiting = [case for case in cases if case is not None and not case.done.cancelled()]
            if waiting:
                self._began = monotonic()
                results = self._judgements(waiting)
                self._began = None
                self._tally.add("batches")
                self._tally.add("batched", len(waiting))
                self._loop.call_soon_threadsafe(_settle, waiting, results)

    def _judgements(self, cases: Sequence[WaitingMessage]) -> "list[Judgement | Exception]":
        """Return the judgement of each message, or the error that prevented it."""
        before = self._model.stamp
        try:
            self._classifier = self._model.classifier()
        except Exception as error:  # even if memory ran out: the thread must not end
            self._on_trouble(error)
        if self._model.stamp != before:
            return_freed_memory()
        try:
            return list(self._of_batch(cases))
        except Exception as error:  # one message must not keep the others from their verdicts
            if len(cases) == 1:
                return [error]
            return [self._judgements([case])[0] for case in cases]

    def _of_batch(self, cases: Sequence[WaitingMessage]) -> "list[Judgement | Exception]":
        classifier = self._classifier
        rule = self._rule_of(classifier)
        items = [Item("-", None, case.data) for case in cases]
        owners = self._owners(cases)
        lists = self._lists_of(cases)
        if any(own is not None for own in owners):
            verdicts = iter(personal.classify(classifier, items, owners, rule))
        else:
            verdicts = classifier.classify(items, rule=rule)
        found: list[Judgement | Exception] = []
        for case, item, own, verdict in zip(cases, items, owners, verdicts, strict=True):
            match = self._match(case, lists[case.user])
            is_known = case.explain and self._model.filed(case.data).label is not None
            if isinstance(verdict, Skipped):
                found.append(NbspamError(verdict.reason))
            elif own is None:
                why = classifier.explain(item, rule) if case.explain else None
                learned = float(classifier.table.n_docs)
                given = Judgement(verdict, rule, why, classifier.lack, learned, is_known)
                found.append(_listed(given, match))
            else:
                why = personal.explain(classifier, item, own, rule) if case.explain else None
                own_rule = personal.rule_for(classifier, own, rule)
                lack, learned = personal.lack_of_own(classifier, own), n_learned(classifier, own)
                given = Judgement(verdict, own_rule, why, lack, learned, is_known)
                found.append(_listed(given, match))
        return found

    def _lists_of(self, cases: Sequence[WaitingMessage]) -> dict[str, list[AddressLists]]:
        """Return the lists of each user who has mail in a batch, before the site's."""
        found: dict[str, list[AddressLists]] = {}
        for user in {case.user for case in cases}:
            models = [self._model.path]
            if self._users is not None:
                with contextlib.suppress(UserError):
                    models.insert(0, self._users.path(user))
            try:
                found[user] = self._lists.beside(models)
            except InputError as error:
                self._on_trouble(error)
                found[user] = []
        return found

    def _match(self, case: WaitingMessage, lists: Sequence[AddressLists]) -> ListMatch | None:
        """Return the first line that a message fits."""
        trusted = self._classifier.settings.authserv_id
        matches = (each.match(case.data, case.user, trusted) for each in lists)
        return next(filter(None, matches), None)

    def _owners(self, cases: Sequence[WaitingMessage]) -> list[OwnCounts | None]:
        """Return the lessons of each message's user."""
        users = self._users
        if users is None:
            return [None] * len(cases)
        owners = [users.own(case.user, self._model) for case in cases]
        self._tally.add("personal", len(owners) - owners.count(None))
        self._tally.put("users", len(users))
        self._tally.put("users_bytes", users.n_bytes)
        return owners


def _listed(given: Judgement, match: ListMatch | None) -> Judgement:
    if match is None:
        return given
    explanation = given.explanation
    if explanation is not None:
        explanation = listed_explanation(explanation, match, given.rule)
    verdict = listed_verdict(given.verdict, match, given.rule)
    return given._replace(verdict=verdict, explanation=explanation, listed=match.line)


def _settle(cases: Sequence[WaitingMessage], results: "Sequence[Judgement | Exception]") -> None:
    for case, result in zip(cases, results, strict=True):
        case.settle(result)


class Teacher:
    """Learns messages in a thread of its own; a lesson is on disk before it is acknowledged.

    opened: opens the shared model, when the first lesson comes.  users: whose models are taught
    instead; None: all teach the shared one.  newly_sent: the mail that a user has sent since it
    was last asked for; it is learned before the user's next lesson.  outlet: takes the lessons
    for other servers, if they share them.  waits_for_log: a lesson is acknowledged when their log
    has it, too.
    """

    def __init__(
        self,
        opened: Callable[[], StoredModel],
        users: Users | None = None,
        newly_sent: Callable[[str], Iterable[Item]] = lambda user: (),
        outlet: SharedOutlet | None = None,
        waits_for_log: bool = False,
    ) -> None:
        self._opened = opened
        self._outlet = outlet
        self._waits_for_log = waits_for_log
        self._users = users
        self._newly_sent = newly_sent
        self._model: StoredModel | None = None  # the site's
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="teacher")
        self.n_waiting = 0

    def teach(
        self, data: bytes, label: str | None, user: str = "", instead_of: str | None = None
    ) -> "asyncio.Future[Outcome]":
        """Return the future outcome of learning a message; None un-learns it.

        user: from `users.known_as`.  instead_of: the class that the message is to leave; a
        message of another class stays as it is; None: any class.  The future raises UserError for
        a name that cannot be kept, other NbspamErrors, and OSError.
        """
        self.n_waiting += 1
        message = [data]
        loop = asyncio.get_running_loop()
        lesson = loop.run_in_executor(self._thread, self._teach, message, label, user, instead_of)
        lesson.add_done_callback(self._count_off)
        done = asyncio.shield(lesson)  # a client that goes leaves its place in the queue
        done.add_done_callback(lambda _: message.clear())  # without the message
        return done

    def _count_off(self, _: "asyncio.Future[Outcome]") -> None:
        self.n_waiting -= 1

    def _teach(
        self, message: list[bytes], label: str | None, user: str, instead_of: str | None
    ) -> Outcome:
        try:
            data = message.pop()
        except IndexError:  # its client has gone
            return Outcome()
        if self._model is None:
            self._model = self._opened()
        model = self._model
        if self._users is not None:
            model = self._users.opened(user, model.settings)
            if label is None and not model.is_there:
                return Outcome(unknown=1)  # without files for a user who has taught nothing
            sent = learned_sent_mail(self._newly_sent(user))
            if sent is not None:
                model.learn_sent_mail(sent)
        if instead_of is not None and model.filed_now(data).label != instead_of:
            return Outcome(already_known=1)
        if self._outlet is not None:
            self._outlet.attach(model, user if self._users is not None else "")
        item = Item("-", label, data, told=label is not None)  # a person has told it
        day, before = int(time() // 86_400), model.stamp
        if label is None:
            outcome = model.unlearn([item], day=day)
        else:
            outcome = model.learn([item], day=day, classes=[label])
        if model.stamp != before:
            return_freed_memory()
        if self._outlet is not None and self._waits_for_log:
            self._outlet.wait_for_log(LOG_SECONDS)
        return outcome

    def end(self) -> None:
        """End the thread once it has learned all waiting messages."""
        self._thread.shutdown()

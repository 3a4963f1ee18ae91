"""The judge: one thread that judges all messages that wait, many at a time.

A batch is what has arrived while the batch before it was judged, so nothing waits for others when
there is little to do.  Before each batch the judge takes in what any process has learned since the
last one; all messages of a batch are judged by the same model.

Secret: how messages get from the connections to the model and back.
"""

import asyncio
from collections.abc import Callable, Sequence
from queue import Empty, SimpleQueue
from threading import Thread
from time import monotonic, time
from typing import NamedTuple

from nbspam.classifier.classifier import Classifier
from nbspam.classifier.personal import answers
from nbspam.classifier.personal.evidence import Own, n_learned
from nbspam.decision import Rule
from nbspam.errors import NbspamError
from nbspam.server.tally import Tally
from nbspam.server.threads.waiting import Waiting
from nbspam.server.users import Users
from nbspam.settings import Settings
from nbspam.sources.items import Item
from nbspam.store.model import StoredModel
from nbspam.verdicts import Explanation, Skipped, Verdict

BATCH = 128  # messages that are judged together at most


class Judgement(NamedTuple):
    """What is said about one message."""

    verdict: Verdict
    rule: Rule  # by which the verdict's label was found
    explanation: Explanation | None = None  # if it was asked for
    lack: str | None = None  # what the model needs before it can judge at all
    n_learned: float = 0.0  # messages that it had learned; those of users count on top
    is_known: bool = False  # with an explanation: whether it, not a user's, had learned this one


class Case(Waiting[Judgement]):
    """A message that waits for its verdict."""

    def __init__(self, data: bytes, user: str, explain: bool) -> None:
        super().__init__(data, user)
        self.explain = explain


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
        tally: Tally,
        users: Users | None = None,
    ) -> None:
        self._model = model
        self._users = users
        self._classifier = model.classifier()
        self._rule_of = rule_of
        self._on_trouble = on_trouble
        self._tally = tally
        self._cases: SimpleQueue[Case | None] = SimpleQueue()
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

    def judge(
        self, data: bytes, explain: bool = False, user: str = ""
    ) -> "asyncio.Future[Judgement]":
        """Return what will be the judgement of a message; user: from `users.known_as`."""
        case = Case(data, user, explain)
        self._cases.put(case)
        return case.done

    def end(self) -> None:
        """End the thread, after it has judged what waits."""
        self._cases.put(None)
        self._thread.join()

    # ---- in the thread ----

    def _work(self) -> None:
        ends = False
        while not ends:
            cases = [self._cases.get()]
            while len(cases) < BATCH:
                try:
                    cases.append(self._cases.get_nowait())
                except Empty:
                    break
            ends = None in cases
            waiting = [case for case in cases if case is not None and not case.done.cancelled()]
            if waiting:
                self._began = monotonic()
                results = self._judgements(waiting)
                self._began = None
                self._tally.add("batches")
                self._tally.add("batched", len(waiting))
                self._loop.call_soon_threadsafe(_settle, waiting, results)

    def _judgements(self, cases: Sequence[Case]) -> "list[Judgement | Exception]":
        """Return the judgement of each message, or what kept it from being judged."""
        try:
            self._classifier = self._model.classifier()
        except (NbspamError, OSError) as error:
            self._on_trouble(error)
        try:
            return list(self._of_batch(cases))
        except Exception as error:  # one message must not keep the others from their verdicts
            if len(cases) == 1:
                return [error]
            return [self._judgements([case])[0] for case in cases]

    def _of_batch(self, cases: Sequence[Case]) -> "list[Judgement | Exception]":
        classifier = self._classifier
        rule = self._rule_of(classifier)
        items = [Item("-", None, case.data) for case in cases]
        owners = self._owners(cases)
        if any(own is not None for own in owners):
            verdicts = iter(answers.classify(classifier, items, owners, rule))
        else:
            verdicts = classifier.classify(items, rule=rule)
        found: list[Judgement | Exception] = []
        for case, item, own, verdict in zip(cases, items, owners, verdicts, strict=True):
            is_known = case.explain and self._model.filed(case.data).label is not None
            if isinstance(verdict, Skipped):
                found.append(NbspamError(verdict.reason))
            elif own is None:
                why = classifier.explain(item, rule) if case.explain else None
                learned = float(classifier.table.n_docs)
                found.append(Judgement(verdict, rule, why, classifier.lack, learned, is_known))
            else:
                why = answers.explain(classifier, item, own, rule) if case.explain else None
                own_rule = answers.rule_for(classifier, own, rule)
                lack, learned = answers.lack(classifier, own), n_learned(classifier, own)
                found.append(Judgement(verdict, own_rule, why, lack, learned, is_known))
        return found

    def _owners(self, cases: Sequence[Case]) -> list[Own | None]:
        """Return what the user of each message has taught."""
        users = self._users
        if users is None:
            return [None] * len(cases)
        owners = [users.own(case.user, self._model) for case in cases]
        self._tally.add("personal", len(owners) - owners.count(None))
        self._tally.put("users", len(users))
        self._tally.put("users_bytes", users.n_bytes)
        return owners


def _settle(cases: Sequence[Case], results: "Sequence[Judgement | Exception]") -> None:
    """Give each message its result."""
    for case, result in zip(cases, results, strict=True):
        case.settle(result)

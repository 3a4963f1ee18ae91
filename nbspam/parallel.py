"""Work on many cores: forked processes that each compute one chunk after another.

Other workers, on other machines too, are engines: see `engines`.

Secret: how processes are started and spoken to.  They are forked, because a forked process
has numpy loaded already; a fresh one would spend longer on importing it than on counting a
thousand messages.  Where processes cannot be forked, this one does all the work.
"""

import os
import pickle
import select
import signal
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from itertools import chain, islice
from typing import Any, NoReturn, TypeVar

from nbspam.errors import NbspamError

Chunk = TypeVar("Chunk")
Result = TypeVar("Result")

# Chunks per worker that may be computed ahead of an earlier one that takes longer.
_AHEAD = 4
PROTOCOL = 5  # of pickle


class Engine(ABC):
    """Workers that this process does not fork."""

    @abstractmethod
    def map(
        self,
        function: Callable[[Any], Any],
        chunks: Iterable[Any],
        last: Callable[[], Any] | None,
    ) -> Iterator[Any]:
        """Yield what `ordered_map` does; `last` is called after every chunk."""


Workers = int | Engine  # the number of processes to fork, or other workers


def available_cores() -> int:
    """Return how many cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def ordered_map(
    function: Callable[[Chunk], Result],
    chunks: Iterable[Chunk],
    workers: Workers,
    last: Callable[[], Result] | None = None,
) -> Iterator[Result]:
    """Yield function(chunk) for every chunk, in order, computed by workers.

    last: called in every process after its last chunk; these results come at the end.  An engine
    begins anew with each chunk, so there it is called after each one, and its result follows.

    Few chunks are in flight at a time, so a long stream takes constant memory.  With a number of
    processes, a single chunk starts none, and the functions and what they hold are inherited;
    to an engine they are sent.  Raises what the functions raise, and NbspamError if a process is
    killed.
    """
    if isinstance(workers, Engine):
        yield from workers.map(function, chunks, last)
        return
    keep_freed_memory()
    stream = iter(chunks)
    first = list(islice(stream, 2))
    stream = chain(first, stream)
    if workers == 1 or len(first) < 2 or not hasattr(os, "fork"):
        yield from map(function, stream)
        if last is not None:
            yield last()
        return
    with _forked(workers, function, last) as processes:
        yield from _map_chunks(processes, stream)
        if last is not None:
            for worker in processes:
                worker.send(None)
            for worker in processes:
                yield worker.receive()


def keep_freed_memory() -> None:
    """Make the C library reuse freed blocks instead of returning them to the system.

    glibc returns large freed blocks at once, so every array of a batch would cause its page
    faults again.  After one block of 24 MB was freed, even if never touched, glibc keeps
    blocks up to that size.  Without this, training takes 3 % longer and classifying 13 %.
    """
    import numpy as np

    np.empty(24 << 20, np.uint8)


# --- in the parent --------------------------------------------------------------------------


class _Worker:
    """A forked process as its parent sees it: it sends one answer for every message."""

    def __init__(self, function: Callable[[Any], Any], last: Callable[[], Any] | None) -> None:
        self.number = 0  # of the chunk it works on
        requests, to_worker = os.pipe()
        to_parent, answers = os.pipe()
        # A worker inherits the parent's ends of the pipes to earlier workers.  If the parent
        # dies, the worker forked last reads the end of its pipe and exits, then the one before.
        self._to = open(to_worker, "wb")  # noqa: SIM115
        self._back = open(to_parent, "rb")  # noqa: SIM115
        self._pid = fork()
        if self._pid == 0:
            self._to.close()
            self._back.close()
            _serve(function, last, requests, answers)
        os.close(requests)
        os.close(answers)

    def fileno(self) -> int:
        """Return the descriptor that `select` waits for: readable when an answer is there."""
        return self._back.fileno()

    def send(self, message: tuple[Any] | None) -> None:
        """Send a chunk, as a tuple of one; None asks for the result of `last`."""
        with suppress(BrokenPipeError):  # the worker was killed, as `receive` will report
            pickle.dump(message, self._to, PROTOCOL)
            self._to.flush()

    def receive(self) -> Any:
        """Return the worker's answer to a message, or raise the error it is."""
        try:
            error, result = pickle.load(self._back)
        except (EOFError, pickle.UnpicklingError):
            raise NbspamError(
                "a worker process was ended from outside (out of memory?); try --jobs 1"
            ) from None
        if error is not None:
            raise error
        return result

    def end(self) -> None:
        """Kill the process, whatever it is doing."""
        os.kill(self._pid, signal.SIGKILL)
        os.waitpid(self._pid, 0)
        self._back.close()
        with suppress(BrokenPipeError):
            self._to.close()


@contextmanager
def _forked(
    jobs: int, function: Callable[[Any], Any], last: Callable[[], Any] | None
) -> Iterator[list[_Worker]]:
    """Give workers that live as long as the context."""
    workers: list[_Worker] = []
    try:
        for _ in range(jobs):
            workers.append(_Worker(function, last))  # noqa: PERF401 - ended if the next one fails
        yield workers
    finally:
        for worker in workers:
            worker.end()


def fork() -> int:
    """Fork this process, as `os.fork` does, without its warning."""
    with warnings.catch_warnings():
        # Python 3.12 warns that other threads may hold locks.  The only other threads are
        # those of numpy's libraries; they are idle, and a worker never waits for them.
        warnings.simplefilter("ignore", DeprecationWarning)
        return os.fork()


def _map_chunks(workers: list[_Worker], chunks: Iterator[Any]) -> Iterator[Any]:
    """Yield the workers' results for all chunks, in order.

    A worker has at most one chunk, so that neither side ever waits to write while the
    other does.  Every idle worker gets a chunk before a result is yielded.
    """
    idle = list(workers)
    busy: list[_Worker] = []
    done: dict[int, Any] = {}  # results by number of the chunk
    n_yielded = 0

    def receive() -> None:
        for worker in select.select(busy, [], [])[0]:
            done[worker.number] = worker.receive()
            busy.remove(worker)
            idle.append(worker)

    def in_order() -> Iterator[Any]:
        nonlocal n_yielded
        while n_yielded in done:
            yield done.pop(n_yielded)
            n_yielded += 1

    for number, chunk in enumerate(chunks):
        while not idle:
            receive()
        worker = idle.pop()
        worker.number = number
        worker.send((chunk,))
        busy.append(worker)
        if not idle:
            yield from in_order()
        while number - n_yielded >= _AHEAD * len(workers):
            receive()
            yield from in_order()
    while busy:
        receive()
        yield from in_order()


# --- in a worker ----------------------------------------------------------------------------


def _serve(
    function: Callable[[Any], Any],
    last: Callable[[], Any] | None,
    requests: int,
    answers: int,
) -> NoReturn:
    """Answer messages until the pipe ends; never returns."""
    # os._exit skips exit handlers and buffered output, which belong to the parent.
    try:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C: the parent ends its workers
        with open(requests, "rb") as source, open(answers, "wb") as sink:
            while True:
                sink.write(_answer(function, last, pickle.load(source)))
                sink.flush()
    finally:
        os._exit(0)


def _answer(
    function: Callable[[Any], Any], last: Callable[[], Any] | None, message: tuple[Any] | None
) -> bytes:
    """Return the answer to a message."""
    return answer(lambda: function(*message) if message is not None else last and last())


def answer(compute: Callable[[], Any]) -> bytes:
    """Return the pickled pair of error and result, one of which is None."""
    try:
        return pickle.dumps((None, compute()), PROTOCOL)
    except Exception as error:
        if not isinstance(error, NbspamError):
            from traceback import format_exc

            error.add_note(format_exc())
        return pickle.dumps((error, None), PROTOCOL)

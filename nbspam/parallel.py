"""Work on many cores: chunks to forked worker processes, and what comes back.

Secret: how processes are started and spoken to.  They are forked, because a forked
worker has numpy loaded already; a fresh one would spend longer importing it than counting
a thousand messages.  Where processes cannot be forked, this one does all the work.
"""

import os
import pickle
import select
import signal
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from itertools import chain, islice
from typing import Any, Generic, NoReturn, Protocol, TypeVar

from nbspam.errors import NbspamError

Chunk = TypeVar("Chunk")
ChunkIn = TypeVar("ChunkIn", contravariant=True)
Result = TypeVar("Result")
ResultOut = TypeVar("ResultOut", covariant=True)
NoteOut = TypeVar("NoteOut", covariant=True)
Note = TypeVar("Note")

_LENGTH_BYTES = 8
# So many chunks for each worker may be done before an earlier one that takes longer.
_AHEAD = 4


class Accumulator(Protocol[ChunkIn, NoteOut, ResultOut]):
    """What takes chunk after chunk and has one result in the end."""

    def add(self, chunk: ChunkIn) -> NoteOut:
        """Take a chunk; return what is to be told at once."""

    def result(self) -> ResultOut:
        """Return what all chunks so far come to."""


def available_cores() -> int:
    """Return how many cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def ordered_map(
    function: Callable[[Chunk], Result], chunks: Iterable[Chunk], jobs: int
) -> Iterator[Result]:
    """Yield function(chunk) for every chunk, in order, computed in `jobs` processes.

    Few chunks are in flight at a time, so a long stream takes constant memory; a single
    chunk starts no process.  The function, and what it holds, is inherited, not sent.
    """
    is_alone, chunks = _is_alone(chunks, jobs)
    if is_alone:
        yield from map(function, chunks)
        return
    early: dict[int, Result] = {}
    due = 0
    with _crew(_Mapped(function), jobs) as crew:
        for number, result in crew.work(chunks):
            early[number] = result
            while due in early:
                yield early.pop(due)
                due += 1


def accumulate(
    accumulator: Accumulator[Chunk, Note, Result],
    chunks: Iterable[Chunk],
    jobs: int,
    tell: Callable[[int, Note], None],
) -> list[Result]:
    """Return the results of `jobs` processes that share the chunks among them.

    Each works with a copy of the accumulator; which chunks it gets depends on the wind.
    tell: called with the number of every chunk and what was noted of it, in any order.
    """
    is_alone, chunks = _is_alone(chunks, jobs)
    if is_alone:
        for number, chunk in enumerate(chunks):
            tell(number, accumulator.add(chunk))
        return [accumulator.result()]
    with _crew(accumulator, jobs) as crew:
        for number, note in crew.work(chunks):
            tell(number, note)
        return crew.results()


def _is_alone(chunks: Iterable[Chunk], jobs: int) -> tuple[bool, Iterator[Chunk]]:
    """Return whether this process is to do all the work, and the chunks."""
    stream = iter(chunks)
    first = list(islice(stream, 2))
    is_alone = jobs == 1 or len(first) < 2 or not hasattr(os, "fork")
    return is_alone, chain(first, stream)


class _Mapped(Generic[Chunk, Result]):
    """A function as an accumulator that keeps nothing."""

    def __init__(self, function: Callable[[Chunk], Result]) -> None:
        self.add = function

    def result(self) -> None:
        """Return nothing."""


# --- in the parent --------------------------------------------------------------------------


class _Worker:
    """A forked process and the two pipes to it."""

    def __init__(self, accumulator: Accumulator[Any, Any, Any], others: list["_Worker"]) -> None:
        inward, self.to = os.pipe()
        self.back, outward = os.pipe()
        self.pid = _fork()
        if self.pid == 0:
            # A pipe ends when all who could write to it are gone.
            for fd in (self.to, self.back, *(fd for w in others for fd in (w.to, w.back))):
                os.close(fd)
            _serve(accumulator, inward, outward)
        os.close(inward)
        os.close(outward)

    def send(self, data: bytes) -> None:
        """Send a packed chunk; the worker must be waiting for one."""
        # One that is gone shows when it is to answer.
        with suppress(BrokenPipeError):
            _write(self.to, data)

    def receive(self) -> bytearray:
        """Return what the worker answers, packed."""
        try:
            return _read(self.back)
        except EOFError:
            raise NbspamError(
                "a worker process was ended from outside (out of memory?); try --jobs 1"
            ) from None


def _opened(answer: bytearray) -> Any:
    """Return a worker's answer; raises what it raised."""
    is_error, value = pickle.loads(answer)
    if is_error:
        raise value
    return value


def _fork() -> int:
    import warnings

    with warnings.catch_warnings():
        # Python 3.12 warns of threads that may hold locks; those of numpy's libraries
        # wait for work, and a worker never waits for them.
        warnings.simplefilter("ignore", DeprecationWarning)
        return os.fork()


class _Crew:
    """Workers that take a chunk each, and the next one when they have answered."""

    def __init__(self, workers: list[_Worker]) -> None:
        self.workers = workers

    def work(self, chunks: Iterator[Any]) -> Iterator[tuple[int, Any]]:
        """Yield number and answer of every chunk, as they come."""
        packed = (pickle.dumps(chunk, 5) for chunk in chunks)
        following = next(packed, None)
        number, ahead = 0, _AHEAD * len(self.workers)
        idle, busy = list(self.workers), dict[int, tuple[_Worker, int]]()

        def feed() -> None:
            nonlocal following, number
            oldest = min((begun for _, begun in busy.values()), default=number)
            while idle and following is not None and number < oldest + ahead:
                worker = idle.pop()
                worker.send(following)
                busy[worker.back] = worker, number
                number += 1
                following = next(packed, None)

        while busy or following is not None:
            feed()
            for fd in select.select(list(busy), [], [])[0]:
                worker, done = busy.pop(fd)
                answer = worker.receive()
                idle.append(worker)
                feed()  # before the answer is looked at: nobody shall wait for that
                yield done, _opened(answer)

    def results(self) -> list[Any]:
        """Return what every worker has in the end."""
        for worker in self.workers:
            worker.send(b"")
        return [_opened(worker.receive()) for worker in self.workers]


@contextmanager
def _crew(accumulator: Accumulator[Any, Any, Any], jobs: int) -> Iterator[_Crew]:
    """Start workers, and end them in the end, whatever they are doing."""
    workers: list[_Worker] = []
    try:
        for _ in range(jobs):
            workers.append(_Worker(accumulator, workers))
        yield _Crew(workers)
    finally:
        for worker in workers:
            os.close(worker.to)
            os.close(worker.back)
            os.kill(worker.pid, signal.SIGKILL)
            os.waitpid(worker.pid, 0)


# --- in a worker ------------------------------------------------------------------------------


def _serve(accumulator: Accumulator[Any, Any, Any], inward: int, outward: int) -> NoReturn:
    """Answer chunk after chunk until there are no more; never returns."""
    # Ctrl-C is for the parent, which ends the workers.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    status = 1
    try:
        while True:
            packed = _read(inward)
            _write(outward, _answer(accumulator, packed))
    except (EOFError, BrokenPipeError):  # the parent is gone
        status = 0
    finally:
        # Without the parent's own last words: buffers it has not flushed are its to flush.
        os._exit(status)


def _answer(accumulator: Accumulator[Any, Any, Any], packed: bytearray) -> bytes:
    """Return a packed answer, or a packed error."""
    try:
        answer = accumulator.add(pickle.loads(packed)) if packed else accumulator.result()
        return pickle.dumps((False, answer), 5)
    except Exception as error:
        if not isinstance(error, NbspamError):
            from traceback import format_exc

            error.add_note(format_exc())
        return pickle.dumps((True, error), 5)


# --- pipes ------------------------------------------------------------------------------------


def _write(fd: int, data: bytes) -> None:
    """Write the length of the data and the data."""
    os.write(fd, len(data).to_bytes(_LENGTH_BYTES, "little"))
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(fd, rest) :]


def _read(fd: int) -> bytearray:
    """Return what one `_write` has written; raises EOFError."""
    length = int.from_bytes(_read_exactly(fd, _LENGTH_BYTES), "little")
    return _read_exactly(fd, length)


def _read_exactly(fd: int, length: int) -> bytearray:
    data = bytearray(length)
    rest = memoryview(data)
    while rest:
        got = os.readv(fd, [rest])
        if got == 0:
            raise EOFError
        rest = rest[got:]
    return data

"""Work on many cores: chunks drawn, worked on and answered for by forked processes.

Secret: how processes are started and spoken to.  They are forked, because a forked
worker has numpy loaded already; a fresh one would spend longer importing it than counting
a thousand messages.  Where processes cannot be forked, this one does all the work.
"""

import os
import pickle
import select
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from itertools import chain, islice, repeat
from typing import Any, NoReturn, TypeVar

from nbspam.errors import NbspamError

Chunk = TypeVar("Chunk")
Result = TypeVar("Result")
Packed = list[Any]  # bytes of a pickle, and of arrays that it refers to
Answers = Callable[[Iterator[Packed]], Iterable[Any]]  # to packed chunks, as they come

_NUMBER_BYTES = 8
_NOTHING: Packed = []
_PIPE_BYTES = 1 << 20  # what Linux grants to everybody
_SMALL = 1 << 14  # bytes; arrays of more are sent as they are, without a copy
# So many chunks for each worker may be done before an earlier one that takes longer.
_AHEAD = 4


def available_cores() -> int:
    """Return how many cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def ordered_map(
    function: Callable[[Chunk], Result],
    chunks: Iterable[Chunk],
    jobs: int,
    last: Callable[[], Result] | None = None,
) -> Iterator[Result]:
    """Yield function(chunk) for every chunk, in order, computed in `jobs` processes.

    And then what last() is in each of them, if that is given.  Few chunks are in flight at
    a time, so a long stream takes constant memory; a single chunk starts no process.  The
    functions, and what they hold, are inherited, not sent.
    """
    _keep_freed_memory()
    stream = iter(chunks)
    first = list(islice(stream, 2))
    stream = chain(first, stream)
    if jobs == 1 or len(first) < 2 or not hasattr(os, "fork"):
        yield from map(function, stream)
        if last is not None:
            yield last()
        return
    early: dict[int, Result] = {}
    due = 0
    with _workers(partial(_worked, function, last), jobs) as workers:
        packed = map(_packed, stream)
        ends = repeat(_NOTHING, jobs if last is not None else 0)
        for number, result in _work(workers, chain(packed, ends)):
            early[number] = result
            while due in early:
                yield early.pop(due)
                due += 1


@contextmanager
def drawn_ahead(chunks: Iterable[Chunk], jobs: int) -> Iterator[Iterator[Chunk]]:
    """Give chunks that a process of its own draws, which begins at once.

    It draws no further ahead than a pipe holds.  With one job there is no such process.
    """
    if jobs == 1 or not hasattr(os, "fork"):
        yield iter(chunks)
        return
    with _workers(lambda _: chunks, 1) as [drawer]:
        yield map(_opened, iter(drawer.receive, _NOTHING))


def _keep_freed_memory() -> None:
    """Make the C library keep what is freed, instead of asking for it again and again.

    Arrays of a batch are so large that each would be mapped, zeroed page by page and
    unmapped.  glibc learns from the first such block that is freed to keep blocks of that
    size; one of 24 MB, never touched, teaches it at once.  It saves an eighth of the time.
    """
    import numpy as np

    np.empty(24 << 20, np.uint8)


# --- in the parent --------------------------------------------------------------------------


class _Worker:
    """A forked process that answers, and the two pipes to it."""

    def __init__(self, answers: Answers, others: list["_Worker"]) -> None:
        self.given: deque[int] = deque()  # numbers of chunks it has not yet answered
        self._gets_more = True
        inward, self.to, self._room = _wide_pipe()
        self.back, outward, _ = _wide_pipe()
        self.pid = _fork()
        if self.pid == 0:
            # A pipe ends when all who could write to it are gone.
            for fd in (self.to, self.back, *(fd for w in others for fd in (w.to, w.back))):
                os.close(fd)
            _serve(answers, inward, outward)
        os.close(inward)
        os.close(outward)

    def has_room(self, packed: Packed) -> bool:
        """Return whether a packed chunk can be sent without waiting.

        One may lie ready while another is worked on, if the pipe holds it: the worker may
        be sending an answer, and then nobody would read the rest.
        """
        fits = len(self.given) == 1 and sum(map(len, packed)) < self._room // 2
        return self._gets_more and (not self.given or fits)

    def send(self, number: int, packed: Packed) -> None:
        """Send a packed chunk, or nothing for the last, when there is room."""
        self.given.append(number)
        self._gets_more = bool(packed)
        # One that is gone shows when it is to answer.
        with suppress(BrokenPipeError):
            _write(self.to, packed)

    def receive(self) -> Packed:
        """Return what the worker answers, packed; nothing where that was all."""
        try:
            return _read(self.back)
        except EOFError:
            raise NbspamError(
                "a worker process was ended from outside (out of memory?); try --jobs 1"
            ) from None


def _opened(answer: Packed) -> Any:
    """Return a worker's answer; raises what it raised."""
    is_error, value = _unpacked(answer)
    if is_error:
        raise value
    return value


def _wide_pipe() -> tuple[int, int, int]:
    """Return the ends of a pipe, and how many bytes it is known to hold.

    These are many, where the system allows it: then nobody waits for who reads.
    """
    inward, outward = os.pipe()
    room = 0
    with suppress(ImportError, AttributeError, OSError):
        import fcntl

        room = fcntl.fcntl(outward, fcntl.F_SETPIPE_SZ, _PIPE_BYTES)
    return inward, outward, room


def _fork() -> int:
    import warnings

    with warnings.catch_warnings():
        # Python 3.12 warns of threads that may hold locks; those of numpy's libraries
        # wait for work, and a worker never waits for them.
        warnings.simplefilter("ignore", DeprecationWarning)
        return os.fork()


def _work(workers: Sequence[_Worker], packed: Iterator[Packed]) -> Iterator[tuple[int, Any]]:
    """Yield number and answer of every packed chunk, as they come.

    To a worker that is sent nothing no more is sent.
    """
    following = next(packed, None)
    number = 0

    def feed() -> None:
        nonlocal following, number
        while following is not None:
            oldest = min((worker.given[0] for worker in workers if worker.given), default=number)
            free = [worker for worker in workers if worker.has_room(following)]
            if not free or number >= oldest + _AHEAD * len(workers):
                break
            min(free, key=lambda worker: len(worker.given)).send(number, following)
            number += 1
            following = next(packed, None)

    feed()
    while busy := {worker.back: worker for worker in workers if worker.given}:
        for fd in select.select(list(busy), [], [])[0]:
            worker = busy[fd]
            answer = worker.receive()
            done = worker.given.popleft()
            feed()  # before the answer is looked at: nobody shall wait for that
            yield done, _opened(answer)


@contextmanager
def _workers(answers: Answers, jobs: int) -> Iterator[list[_Worker]]:
    """Start workers, and end them in the end, whatever they are doing."""
    import signal

    workers: list[_Worker] = []
    try:
        for _ in range(jobs):
            workers.append(_Worker(answers, workers))
        yield workers
    finally:
        for worker in workers:
            os.close(worker.to)
            os.close(worker.back)
            os.kill(worker.pid, signal.SIGKILL)
        for worker in workers:
            os.waitpid(worker.pid, 0)


# --- in a worker ------------------------------------------------------------------------------


def _serve(answers: Answers, inward: int, outward: int) -> NoReturn:
    """Send all answers to what comes; never returns."""
    import signal

    # Ctrl-C is for the parent, which ends the workers.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        for packed in _caught(answers(iter(partial(_read, inward), _NOTHING))):
            _write(outward, packed)
        _write(outward, _NOTHING)
    except BrokenPipeError:  # the parent is gone
        pass
    finally:
        # Without the parent's own last words: buffers it has not flushed are its to flush.
        os._exit(0)


def _caught(answers: Iterable[Any]) -> Iterator[Packed]:
    """Yield packed answers, and a packed error if one ends them."""
    try:
        for answer in answers:
            yield _packed((False, answer))
    except Exception as error:
        if not isinstance(error, NbspamError):
            from traceback import format_exc

            error.add_note(format_exc())
        yield _packed((True, error))


def _worked(
    function: Callable[[Any], Any], last: Callable[[], Any] | None, chunks: Iterator[Packed]
) -> Iterator[Any]:
    """Yield what the function makes of every packed chunk, and the last word."""
    for packed in chunks:
        yield function(_unpacked(packed))
    if last is not None:
        yield last()


# --- pipes ------------------------------------------------------------------------------------


def _packed(value: Any) -> Packed:
    """Return what a pipe carries of a value."""
    arrays: list[pickle.PickleBuffer] = []

    def is_small(array: pickle.PickleBuffer) -> bool:
        if len(array.raw()) < _SMALL:
            return True
        arrays.append(array)
        return False

    data = pickle.dumps(value, 5, buffer_callback=is_small)
    return [data, *(array.raw() for array in arrays)]


def _unpacked(packed: Packed) -> Any:
    return pickle.loads(packed[0], buffers=packed[1:])


def _write(fd: int, packed: Packed) -> None:
    """Write the number of pieces, the length of each, and the pieces."""
    numbers = len(packed), *map(len, packed)
    head = b"".join([number.to_bytes(_NUMBER_BYTES, "little") for number in numbers])
    for piece in (head, *packed):
        rest = memoryview(piece)
        while rest:
            rest = rest[os.write(fd, rest) :]


def _read(fd: int) -> Packed:
    """Return what one `_write` has written; raises EOFError."""
    lengths = [_read_number(fd) for _ in range(_read_number(fd))]
    return [_read_exactly(fd, length) for length in lengths]


def _read_number(fd: int) -> int:
    return int.from_bytes(_read_exactly(fd, _NUMBER_BYTES), "little")


def _read_exactly(fd: int, length: int) -> bytearray:
    data = bytearray(length)
    rest = memoryview(data)
    while rest:
        got = os.readv(fd, [rest])
        if got == 0:
            raise EOFError
        rest = rest[got:]
    return data

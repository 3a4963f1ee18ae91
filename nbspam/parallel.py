"""Work on many cores: one ordered, bounded map over chunks.

Secret: how processes are started.  They are forked where that is possible, because a
forked worker has numpy loaded already; a fresh one would spend longer importing it than
counting a thousand messages.
"""

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from itertools import chain, islice
from typing import Any, TypeVar

from nbspam.errors import NbspamError

Chunk = TypeVar("Chunk")
Result = TypeVar("Result")


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
    stream = iter(chunks)
    head = list(islice(stream, 2))
    if jobs == 1 or len(head) < 2:
        yield from map(function, chain(head, stream))
    else:
        yield from _map_in_processes(function, chain(head, stream), jobs)


def _map_in_processes(
    function: Callable[[Chunk], Result], chunks: Iterator[Chunk], jobs: int
) -> Iterator[Result]:
    import multiprocessing
    from concurrent.futures import Future, ProcessPoolExecutor
    from concurrent.futures.process import BrokenProcessPool

    method = "fork" if "fork" in multiprocessing.get_all_start_methods() else None
    context = multiprocessing.get_context(method)
    pool = ProcessPoolExecutor(jobs, context, initializer=_start_worker, initargs=(function,))
    pending: deque[Future[Result]] = deque()
    try:
        for chunk in chunks:
            pending.append(pool.submit(_work, chunk))
            if len(pending) > 2 * jobs:
                yield pending.popleft().result()
        while pending:
            yield pending.popleft().result()
    except BrokenProcessPool as error:
        raise NbspamError(
            "a worker process was ended from outside (out of memory?); try --jobs 1"
        ) from error
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


# What a worker process does; set once, when it starts.
_function: Callable[[Any], Any]


def _start_worker(function: Callable[[Any], Any]) -> None:
    """Keep the function, and leave Ctrl-C to the parent, which ends the workers."""
    import signal

    global _function
    _function = function
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _work(chunk: Any) -> Any:
    return _function(chunk)

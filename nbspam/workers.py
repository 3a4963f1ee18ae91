"""Work on many cores: by forked processes, or by an engine, whose workers others start.

Processes are forked because they then have numpy loaded already; a fresh one would spend longer
on importing it than on counting a thousand messages.  An engine (Dask, loky, Ray, any executor)
may be on other machines.
"""

import gc
import os
import pickle
import select
import signal
import sys
import threading
import warnings
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext, suppress
from functools import cache, cached_property, partial
from importlib import import_module
from itertools import chain, islice
from typing import Any, NamedTuple, NoReturn, TypeVar

from nbspam import __version__
from nbspam.errors import NbspamError, UsageError, check_number, library_error

Chunk = TypeVar("Chunk")
Result = TypeVar("Result")

# Chunks per worker that may be computed ahead of an earlier one that takes longer.
_AHEAD = 4
PROTOCOL = 5  # of pickle
_ENDED = "a worker process was ended from outside (out of memory?)"
_SHARE = "/sys/fs/cgroup/cpu.max"  # of a container: microseconds of every so many, or "max"


def available_cores() -> int:
    """Return how many cores this process may use, at most as its container has time for."""
    has_mask = hasattr(os, "sched_getaffinity")
    cores = len(os.sched_getaffinity(0)) if has_mask else os.cpu_count() or 1
    with suppress(OSError, ValueError), open(_SHARE) as file:
        share, period = map(int, file.read().split())
        return min(cores, -(-share // period))
    return cores


def grouped(
    things: Iterable[Chunk], size_of: Callable[[Chunk], int], room: int, most: int = sys.maxsize
) -> Iterator[list[Chunk]]:
    """Yield things in groups of at most `most`, whose sizes are at most `room` together.

    A larger one is a group of its own.
    """
    group: list[Chunk] = []
    total = 0
    for thing in things:
        size = size_of(thing)
        if group and (len(group) >= most or total + size > room):
            yield group
            group, total = [], 0
        group.append(thing)
        total += size
    if group:
        yield group


def ordered_map(
    function: Callable[[Chunk], Result],
    chunks: Iterable[Chunk],
    workers: "Workers",
    last: Callable[[], Result] | None = None,
) -> Iterator[Result]:
    """Yield function(chunk) for every chunk, in order, computed by workers.

    last: called in every process after its last chunk; these results come at the end.  An engine
    uses a fresh copy for each chunk, so there it is called after each one, and its result follows.

    Few chunks are in flight at a time, so a long stream takes constant memory.  With a number of
    processes, a single chunk starts none, and processes inherit the functions with their values;
    an engine is sent them.  Raises the errors of the functions, and NbspamError if a process is
    killed.
    """
    if isinstance(workers, Engine):
        yield from workers.map(function, chunks, last)
        return
    check_number("jobs", workers, 1, whole=True)
    keep_freed_memory()
    stream = iter(chunks)
    first = list(islice(stream, 2))
    stream = chain(first, stream)
    if workers == 1 or len(first) < 2:
        yield from map(function, stream)
        if last is not None:
            yield last()
        return
    processes: list[_ForkedWorker] = []
    try:
        yield from _map_chunks(stream, processes, workers, partial(_ForkedWorker, function, last))
        if last is not None:
            for worker in processes:
                worker.send(None)
            for worker in processes:
                yield worker.receive()
    finally:
        for worker in processes:
            worker.end()


_M_ARENA_MAX = -8  # of malloc.h


@cache
def keep_freed_memory() -> None:
    """Make the C library reuse freed blocks instead of returning them to the system.

    glibc returns large freed blocks at once, so every array of a batch would cause its page
    faults again.  After one block of 24 MB was freed, even if never touched, glibc keeps
    blocks up to that size; once is enough for a process and all that are forked from it.  Without
    this, a server's batch of 128 messages takes 4 % longer, with 14,000 page faults instead of
    120 in 2,000 messages, and 3 MB less.  A process without room for the block does without.
    Threads take blocks from one heap, since several would each keep freed memory.
    """
    import numpy as np

    allocate_in_one_heap()
    with suppress(MemoryError):
        np.empty(24 << 20, np.uint8)


def return_freed_memory() -> None:
    """Return freed memory to the system, after a model was fitted or read again.

    A fit takes several times the size of the model.  glibc would keep that for the next one,
    which a server may never make: after 1,000 lessons a worker had 211 MB, and with this 145.
    """
    import ctypes

    with suppress(AttributeError, OSError):  # only glibc has it
        ctypes.CDLL(None).malloc_trim(0)


def allocate_in_one_heap() -> None:
    """Let all threads of this process allocate in one heap; call it before there are any.

    glibc gives each thread its own heap, and never returns free memory at its end: after 240
    lessons and some fits, a worker that shares lessons had 108 MB of its own, and with this 57.
    """
    import ctypes

    with suppress(AttributeError, OSError):  # only glibc has it
        ctypes.CDLL(None).mallopt(_M_ARENA_MAX, 1)


# --- in the parent --------------------------------------------------------------------------


class _ForkedWorker:
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
        """Return the descriptor to wait for: readable when an answer is there."""
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
            raise NbspamError(f"{_ENDED}; try --jobs 1") from None
        if error is not None:
            raise error
        return result

    def end(self) -> None:
        """Kill the process, whatever it is doing."""
        # A parent that ignores SIGCHLD, as some daemons hand on, has nothing to wait for.
        with suppress(ProcessLookupError, ChildProcessError):
            os.kill(self._pid, signal.SIGKILL)
            os.waitpid(self._pid, 0)
        self._back.close()
        with suppress(BrokenPipeError):
            self._to.close()


def fork() -> int:
    """Fork this process, as `os.fork` does, without its warning; the child ignores Ctrl-C."""
    # Python's hooks of a fork drop a Ctrl-C, and a child that hears it unwinds the parent's calls.
    with _deaf_children(), warnings.catch_warnings():
        # Python 3.12 warns that other threads may hold locks.  The only other threads are
        # threads of numpy's libraries; they are idle, and a worker never waits for them.
        warnings.simplefilter("ignore", DeprecationWarning)
        pid = os.fork()
        if pid == 0:
            signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent ends its children
    return pid


def _map_chunks(
    chunks: Iterator[Any],
    workers: list[_ForkedWorker],
    jobs: int,
    start: Callable[[], _ForkedWorker],
) -> Iterator[Any]:
    """Yield the workers' results for all chunks, in order.

    workers: they are started here, one for each chunk up to `jobs`.  A worker has at most one
    chunk, so that neither side ever waits to write while the other does.  Every idle worker gets a
    chunk before a result is yielded.
    """
    idle: list[_ForkedWorker] = []
    busy: dict[int, _ForkedWorker] = {}  # by descriptor
    answers = select.poll()  # takes any descriptor; select.select takes only those below 1,024
    done: dict[int, Any] = {}  # results by number of the chunk
    n_yielded = 0

    def receive() -> None:
        for descriptor, _ in answers.poll():
            answers.unregister(descriptor)
            worker = busy.pop(descriptor)
            done[worker.number] = worker.receive()
            idle.append(worker)

    def in_order() -> Iterator[Any]:
        nonlocal n_yielded
        while n_yielded in done:
            yield done.pop(n_yielded)
            n_yielded += 1

    for number, chunk in enumerate(chunks):
        if not idle and len(workers) < jobs:
            workers.append(start())
            idle.append(workers[-1])
        while not idle:
            receive()
        worker = idle.pop()
        worker.number = number
        worker.send((chunk,))
        busy[worker.fileno()] = worker
        answers.register(worker, select.POLLIN)
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
    function: Callable[[Any], Any], last: Callable[[], Any] | None, requests: int, answers: int
) -> NoReturn:
    """Answer messages until the pipe ends; never returns."""
    # os._exit skips exit handlers and buffered output, which belong to the parent.
    try:
        with open(requests, "rb") as source, open(answers, "wb") as sink:
            while True:
                message = pickle.load(source)
                compute = partial(function, *message) if message else last
                assert compute is not None  # the parent asks for it only if there is one
                sink.write(_answer(compute))
                sink.flush()
    finally:
        os._exit(0)


def _answer(compute: Callable[[], Any]) -> bytes:
    """Return the pickled pair of error and result, one of which is None."""
    try:
        return pickle.dumps((None, compute()), PROTOCOL)
    except Exception as error:
        from traceback import format_exc

        if not isinstance(error, NbspamError):
            error.add_note(format_exc())
        try:
            answer = pickle.dumps((error, None), PROTOCOL)
            pickle.loads(answer)  # fails if a class asks for more than its errors keep
        except Exception:
            answer = pickle.dumps((RuntimeError(format_exc()), None), PROTOCOL)
        return answer


# --- engines --------------------------------------------------------------------------------

# Each chunk is worked on by a fresh copy of the caller's object; so a chunk whose worker is lost
# is worked on again elsewhere, and nothing is counted twice.
ENGINES = ("fork", "dask", "loky", "ray")
_FEWEST = 16  # chunks that are sent ahead in any case: a cluster may grow
_PATIENCE = "10s"  # to reach a scheduler
_SILENT = 51  # above logging.CRITICAL
_LARGE = "distributed.admin.large-graph-warning-threshold"
_TRACKER = "multiprocessing.resource_tracker"
# Tokens depend on this program and on Python's tables of Unicode.
_VERSIONS = f"nbspam {__version__} with Python {sys.version_info.major}.{sys.version_info.minor}"


class _Pool(NamedTuple):
    """Workers that are running."""

    submit: Callable[..., Any]  # of a function and its arguments; returns a future
    n_workers: int
    share: Callable[[bytes], Any] = bytes  # makes an argument of many calls, sent once if possible


_Opened = AbstractContextManager[_Pool]


class Engine:
    """Workers that return futures; they are started when there is work."""

    def __init__(self, name: str, opened: _Opened) -> None:
        self._name, self._opened, self._stack = name, opened, ExitStack()

    @cached_property
    def _pool(self) -> _Pool:
        return self._stack.enter_context(self._opened)

    def close(self) -> None:
        """End the pool that was started here, so that a process may end hard without leftovers."""
        if "_pool" in vars(self):
            self._stack.close()
            del self._pool
            gc.collect()

    def map(
        self, function: Callable[[Any], Any], chunks: Iterable[Any], last: Callable[[], Any] | None
    ) -> Iterator[Any]:
        """Yield the results for all chunks in order, each followed by that of `last`.

        Few chunks are under way at a time.  Raises the functions' errors, and NbspamError if
        the workers are lost.
        """
        # The versions are looked at before the rest is unpickled.
        task = pickle.dumps((_VERSIONS, pickle.dumps((function, last), PROTOCOL)), PROTOCOL)
        submit, n_workers, share = self._pool
        ahead = max(_FEWEST, _AHEAD * n_workers)
        under_way: deque[Any] = deque()
        try:
            with self._told(), _ctrl_c_later():
                shared = share(task)
            for chunk in chunks:
                pickled = pickle.dumps(chunk, PROTOCOL)
                with self._told(), _ctrl_c_later():
                    under_way.append(submit(answer_chunk, shared, pickled))
                if len(under_way) == ahead:
                    yield from self._oldest(under_way)
            while under_way:
                yield from self._oldest(under_way)
        finally:
            for future in under_way:
                future.cancel()

    def _oldest(self, under_way: deque[Any]) -> list[Any]:
        """Return the results of the first future, and drop it."""
        with self._told():
            error, results = pickle.loads(under_way[0].result())
        with _ctrl_c_later():
            under_way.popleft()
        if error is not None:
            raise error
        return list(results)

    @contextmanager
    def _told(self) -> Iterator[None]:
        """Turn errors of engines into one line; the errors of `answer_chunk` come as answers."""
        try:
            yield
        except Exception as error:
            from concurrent.futures import BrokenExecutor, CancelledError

            cause = error.__cause__ or error
            what = (str(error) or type(error).__name__).splitlines()[0]
            if isinstance(error, BrokenExecutor):
                what = _ENDED
            elif isinstance(cause, ImportError):
                what = f"the scheduler or a worker does not have nbspam ({cause})"
            elif isinstance(error, CancelledError | OSError):
                what = "the connection to the workers is lost"
            raise NbspamError(
                f"--engine {self._name}: {what}; try again, or without --engine"
            ) from error


def answer_chunk(task: bytes, chunk: bytes) -> bytes:
    """Return the pickled answer to a pickled chunk; this runs in a worker."""

    def results() -> list[Any]:
        versions, pickled = pickle.loads(task)
        if versions != _VERSIONS:
            raise NbspamError(
                f"--engine: a worker has {_VERSIONS}, and messages must be read by {versions};"
                " install the same on all machines"
            )
        keep_freed_memory()
        function, last = pickle.loads(pickled)
        result = function(pickle.loads(chunk))
        return [result] if last is None else [result, last()]

    return _answer(results)


Workers = int | Engine  # the number of processes to fork, or other workers


@contextmanager
def workers_of(engine: Any, jobs: int) -> Iterator[Workers]:
    """Give the workers that an engine means, for as long as the context lasts.

    engine: None or "fork" for `jobs` forked processes; "dask", "loky" or "ray" for `jobs` workers
    of these; "dask:ADDRESS" for the workers of that scheduler; a `dask.distributed.Client`; or an
    `Executor` of `concurrent.futures`, which is not closed.  An engine given by name is
    imported and started when there is work.  Raises UsageError.
    """
    if engine is None or engine == "fork":
        yield jobs
        return
    workers = Engine(*_meant(engine, jobs))
    try:
        yield workers
    finally:
        workers.close()


def _meant(engine: Any, jobs: int) -> tuple[str, _Opened]:
    """Return the name of an engine, and its workers; raises UsageError."""
    if isinstance(engine, str):
        name, _, address = engine.partition(":")
        if name == "dask" and engine != "dask:":
            return engine, _dask(engine, address, jobs)
        if engine in ("loky", "ray"):
            return engine, (_loky if engine == "loky" else _ray)(jobs)
        raise UsageError(
            f"--engine {engine}: unknown; choose from {', '.join(ENGINES)}, or dask:ADDRESS, such"
            " as dask:tcp://host:8786"
        )
    if hasattr(engine, "scheduler_info"):  # a Client, told without importing Dask
        return "dask", nullcontext(_pool_of_client(engine))
    from concurrent.futures import Executor

    if isinstance(engine, Executor):
        n_workers = getattr(engine, "_max_workers", available_cores())
        return type(engine).__name__, nullcontext(_Pool(engine.submit, n_workers))
    raise UsageError(
        f"engine: {type(engine).__name__} is none; give a name ({', '.join(ENGINES)}), a"
        " dask.distributed.Client or a concurrent.futures.Executor"
    )


# --- what is opened ---------------------------------------------------------------------------


@contextmanager
def _dask(engine: str, address: Any, jobs: int) -> Iterator[_Pool]:
    """Give the workers of a Dask scheduler, or of one that is started here."""
    dask = _imported("dask", engine, "cluster")
    distributed = _imported("distributed", engine, "cluster")
    with ExitStack() as stack:
        # Chunks go through the scheduler, so that it still has a lost worker's chunks.
        stack.enter_context(dask.config.set({_LARGE: "1 GB"}))
        stack.enter_context(_silent("distributed"))
        if not address:
            with _deaf_children(_TRACKER):
                cluster = distributed.LocalCluster(
                    n_workers=jobs,
                    threads_per_worker=1,
                    dashboard_address="127.0.0.1:0",  # any free port
                    silence_logs=_SILENT,
                )
            address = stack.enter_context(cluster)
        try:
            client = distributed.Client(address, timeout=_PATIENCE, set_as_default=False)
        except (OSError, ValueError) as error:
            raise NbspamError(
                f"--engine {engine}: no scheduler answers there ({type(error).__name__}); start it"
                " by `dask scheduler`, or correct the address"
            ) from None
        stack.enter_context(client)
        yield _pool_of_client(client)


def _pool_of_client(client: Any) -> _Pool:
    submit = partial(client.submit, pure=False)
    # Workers send shared objects to one another; lost ones are made again.
    return _Pool(submit, sum(client.nthreads().values()), partial(submit, bytes))


@contextmanager
def _loky(jobs: int) -> Iterator[_Pool]:
    executor = import_module("joblib.externals.loky").ProcessPoolExecutor(jobs)
    try:
        with _deaf_children(_TRACKER, "joblib.externals.loky.backend.resource_tracker"):
            executor.submit(int)  # starts the workers
        yield _Pool(executor.submit, jobs)
    finally:
        executor.shutdown()  # after the chunks that are being worked on


@contextmanager
def _ray(jobs: int) -> Iterator[_Pool]:
    """Give the workers of the cluster that RAY_ADDRESS names, or of one that is started here."""
    ray = _imported("ray", "ray", "")
    started = not ray.is_initialized()
    ray.init(ignore_reinit_error=True, include_dashboard=False, logging_level=_SILENT)
    try:
        yield _Pool(lambda function, *of: ray.remote(function).remote(*of).future(), jobs, ray.put)
    finally:
        if started:
            ray.shutdown()


def _imported(module: str, engine: str, extra: str) -> Any:
    """Return a module; raises UsageError.  extra: as for `library_error`."""
    try:
        return import_module(module)
    except ImportError:
        raise library_error(f"--engine {engine}", module, extra) from None


@contextmanager
def _silent(name: str) -> Iterator[None]:
    """Keep an imported library from logging: it raises its errors."""
    from logging import getLogger, root

    own = [each for each in root.manager.loggerDict if each.split(".")[0] == name]
    before = {logger: logger.level for logger in map(getLogger, own)}
    try:
        for logger in before:
            logger.setLevel(_SILENT)
        yield
    finally:
        for logger, level in before.items():
            logger.setLevel(level)


@contextmanager
def _ctrl_c_later() -> Iterator[None]:
    """Let Ctrl-C be heard at the end of the context.

    Engines complain of futures that are half made, and Python ignores what is raised while an
    object ends: a Ctrl-C would be lost.
    """
    handler = signal.getsignal(signal.SIGINT)
    if handler is None or threading.current_thread() is not threading.main_thread():
        yield  # no Ctrl-C is heard here
        return
    heard: list[int] = []
    signal.signal(signal.SIGINT, lambda number, _: heard.append(number))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, handler)
        if heard:
            signal.raise_signal(signal.SIGINT)


@contextmanager
def _deaf_children(*trackers: str) -> Iterator[None]:
    """Let processes that are started within the context not hear Ctrl-C: this one ends them.

    Threads that are started within it start such processes later, too.  trackers: the modules
    of processes that track theirs; these would start with the first one, and unblock the signal.
    """
    for tracker in trackers:
        import_module(tracker).ensure_running()
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)

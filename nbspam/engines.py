"""Engines: workers that this process does not fork, on this machine or on others.

Secret: how Dask, Ray, loky and executors are spoken to.  To all of them goes one function,
`work`, with bytes, and bytes come back as a future.  Each chunk is worked on by a fresh copy of
what the caller gives; so a chunk whose worker is lost is worked on again elsewhere, and nothing
is counted twice.
"""

import gc
import pickle
import signal
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from functools import cached_property
from importlib import import_module
from typing import Any, NamedTuple

from nbspam import __version__
from nbspam.errors import NbspamError, UsageError
from nbspam.parallel import (
    PROTOCOL,
    Engine,
    Workers,
    answer,
    available_cores,
    keep_freed_memory,
)

ENGINES = ("fork", "dask", "loky", "ray")
_AHEAD = 4  # chunks per worker that are sent before the first result is taken
_FEWEST = 16  # chunks that are sent before that in any case: a cluster may grow
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


@contextmanager
def workers_of(engine: Any, jobs: int) -> Iterator[Workers]:
    """Give the workers that an engine means, for as long as the context lasts.

    engine: None or "fork" for `jobs` forked processes; "dask", "loky" or "ray" for `jobs` workers
    of these; "dask:ADDRESS" for those of the scheduler there; a `dask.distributed.Client`; or an
    `Executor` of `concurrent.futures`, which is not closed.  What has a name is imported and
    started when there is work.  Raises UsageError.
    """
    if engine is None or engine == "fork":
        yield jobs
        return
    workers = _Futures(*_meant(engine, jobs))
    try:
        yield workers
    finally:
        workers.close()


def _meant(engine: Any, jobs: int) -> tuple[str, _Opened]:
    """Return the name of an engine, and its workers; raises UsageError."""
    if isinstance(engine, str):
        name, _, address = engine.partition(":")
        if name == "dask":
            return engine, _dask(engine, address, jobs)
        if engine in ("loky", "ray"):
            return engine, (_loky if engine == "loky" else _ray)(jobs)
        raise UsageError(
            f"--engine {engine}: unknown; choose from {', '.join(ENGINES)}, or dask:ADDRESS, such"
            " as dask:tcp://host:8786"
        )
    if hasattr(engine, "scheduler_info"):  # a Client, told without importing Dask
        return "dask", _of_client(engine)
    from concurrent.futures import Executor

    if isinstance(engine, Executor):
        return type(engine).__name__, _of_executor(engine)
    raise UsageError(
        f"engine: {type(engine).__name__} is none; give a name ({', '.join(ENGINES)}), a"
        " dask.distributed.Client or a concurrent.futures.Executor"
    )


class _Futures(Engine):
    """Workers that return futures; they are started when there is work."""

    def __init__(self, name: str, opened: _Opened) -> None:
        self._name, self._opened, self._stack = name, opened, ExitStack()

    @cached_property
    def _pool(self) -> _Pool:
        return self._stack.enter_context(self._opened)

    def close(self) -> None:
        """End what was started here, and leave nothing to clean up after a process's hard end."""
        if "_pool" in vars(self):
            self._stack.close()
            del self._pool
            gc.collect()

    def map(
        self,
        function: Callable[[Any], Any],
        chunks: Iterable[Any],
        last: Callable[[], Any] | None,
    ) -> Iterator[Any]:
        """Yield the results for all chunks in order, each followed by that of `last`.

        Few chunks are under way at a time.  Raises what the functions raise, and NbspamError if
        the workers are lost.
        """
        # The versions are looked at before the rest is unpickled.
        task = pickle.dumps((_VERSIONS, pickle.dumps((function, last), PROTOCOL)), PROTOCOL)
        submit, n_workers, share = self._pool
        ahead = max(_FEWEST, _AHEAD * n_workers)
        under_way: deque[Any] = deque()
        try:
            with self._told():
                shared = share(task)
            for chunk in chunks:
                pickled = pickle.dumps(chunk, PROTOCOL)
                with self._told():
                    under_way.append(submit(work, shared, pickled))
                if len(under_way) == ahead:
                    yield from self._results(under_way.popleft())
            while under_way:
                yield from self._results(under_way.popleft())
        finally:
            for future in under_way:
                future.cancel()

    def _results(self, future: Any) -> list[Any]:
        with self._told():
            error, results = pickle.loads(future.result())
        if error is not None:
            raise error
        return list(results)

    @contextmanager
    def _told(self) -> Iterator[None]:
        """Turn what engines raise into one line; the errors of `work` come as answers."""
        try:
            yield
        except Exception as error:
            from concurrent.futures import BrokenExecutor, CancelledError

            what = (str(error) or type(error).__name__).splitlines()[0]
            if isinstance(error, BrokenExecutor):
                what = "a worker process was ended from outside (out of memory?)"
            elif isinstance(error, ImportError) or isinstance(error.__cause__, ImportError):
                what = (
                    f"the scheduler or a worker does not have nbspam ({error.__cause__ or error})"
                )
            elif isinstance(error, CancelledError | OSError):
                what = "the connection to the workers is lost"
            raise NbspamError(
                f"--engine {self._name}: {what}; try again, or without --engine"
            ) from error


def work(task: bytes, chunk: bytes) -> bytes:
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

    return answer(results)


# --- what is opened ---------------------------------------------------------------------------


@contextmanager
def _dask(engine: str, address: Any, jobs: int) -> Iterator[_Pool]:
    """Give the workers of a Dask scheduler, or of one that is started here."""
    dask = _imported("dask", engine, "nbspam[cluster]")
    distributed = _imported("distributed", engine, "nbspam[cluster]")
    with ExitStack() as stack:
        # Chunks go by the scheduler, so that it has those of a worker that is lost.
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
        yield stack.enter_context(_of_client(client))


@contextmanager
def _of_client(client: Any) -> Iterator[_Pool]:
    def submit(function: Callable[..., Any], *arguments: Any) -> Any:
        return client.submit(function, *arguments, pure=False)

    # Workers send what is shared to one another, and if it is lost, it is made again.
    n_workers = sum(client.nthreads().values())
    yield _Pool(submit, n_workers, lambda data: submit(bytes, data))


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
    ray = _imported("ray", "ray", "ray")
    started = not ray.is_initialized()
    ray.init(ignore_reinit_error=True, include_dashboard=False, logging_level=_SILENT)
    try:
        yield _Pool(lambda function, *of: ray.remote(function).remote(*of).future(), jobs, ray.put)
    finally:
        if started:
            ray.shutdown()


@contextmanager
def _of_executor(executor: Any) -> Iterator[_Pool]:
    yield _Pool(executor.submit, getattr(executor, "_max_workers", available_cores()))


def _imported(module: str, engine: str, package: str) -> Any:
    """Return a module; raises NbspamError.  package: what users install to have it."""
    try:
        return import_module(module)
    except ImportError:
        raise NbspamError(
            f"--engine {engine}: {module} is not installed; run `pip install '{package}'`"
        ) from None


@contextmanager
def _silent(name: str) -> Iterator[None]:
    """Let a library that is imported log nothing: what goes wrong is raised."""
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

"""A service: a model, what its clients may do, and the processes that answer them.

Secret: which models can be served.
"""

import resource
import socket
from collections.abc import Callable, Mapping
from functools import partial
from typing import NamedTuple

from nbspam.classifier.classifier import Classifier
from nbspam.decision import HAM_AND_SPAM, Rule
from nbspam.errors import InputError, UsageError
from nbspam.server.desk import Policy
from nbspam.server.limits import LIMITS, Limits
from nbspam.server.logs import Log
from nbspam.server.review.access import access_beside
from nbspam.server.review.people import People
from nbspam.server.supervisor import Supervisor
from nbspam.server.tally import Tally
from nbspam.server.users import check_folder, check_site
from nbspam.server.worker import Service, protocol
from nbspam.settings import Choices, chosen
from nbspam.sources.items import Item
from nbspam.store.model import StoredModel

_FILES = 100  # besides connections: models, sockets, pipes
_MAX_PASSWORD = 1000  # bytes
# Judged before workers are forked: what is loaded at the first message is then shared by all.
_FIRST = Item(
    "-", None, b"Subject: a first message\nContent-Type: text/html\n\n<p>Gr\xc3\xbc\xc3\x9fe"
)


class Options(NamedTuple):
    """What can change while a service runs."""

    model_path: str
    rule_of: Callable[[Classifier], Rule]
    policy: Policy
    log: str  # one of logs.FORMATS
    users: str | None = None  # the folder of their models; None: all share one


def password_in(path: str) -> bytes:
    """Return the password in the first line of a file; raises InputError."""
    try:
        with open(path, "rb") as file:
            password = file.readline(_MAX_PASSWORD).strip()
    except OSError as error:
        raise InputError(f"--password-file {path}: {error.strerror}; give a file") from error
    if not password:
        raise InputError(f"--password-file {path}: its first line is empty; write a password")
    return password


def opened(path: str) -> StoredModel:
    """Return a model of mail that can be served; raises NbspamError.

    If there is none, the first lesson makes one.
    """
    model = StoredModel(path, new=chosen(Choices(), is_text=False))
    classifier = model.classifier()
    if classifier.classes != HAM_AND_SPAM or model.settings.reading != "mail":
        raise UsageError(
            f"{path}: a model of {classifier.noun}, of the classes"
            f" {', '.join(classifier.classes)}; serve a model of mail, of ham and spam"
        )
    return model


def _allow_files(number: int) -> None:
    """Let each process have so many open files, as far as the system allows."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != resource.RLIM_INFINITY and soft < number:
        most = number if hard == resource.RLIM_INFINITY else min(number, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))


def serve(
    options: Options,
    sockets: Mapping[str, socket.socket],
    n_workers: int,
    reread: Callable[[], Options],
    limits: Limits = LIMITS,
) -> None:
    """Answer clients until SIGTERM or SIGINT; raises NbspamError.

    sockets: listening, by protocol.  reread: returns the options anew, upon SIGHUP.
    """
    tally = Tally(2 * n_workers + 1)
    _allow_files(2 * (limits.connections + limits.visitors) + _FILES)
    for name in sockets:
        try:
            protocol(name)
        except ImportError as error:
            raise UsageError(
                f"--{name}: needs {error.name}; install it with: pip install 'nbspam[serve]'"
            ) from error

    def service(options: Options) -> tuple[Service, StoredModel]:
        model = opened(options.model_path)
        if options.users is not None:
            check_folder(options.users)
            check_site(model)
        rule = options.rule_of(model.classifier())
        list(model.classifier().classify([_FIRST], rule=rule))
        policy = options.policy
        if "web" in sockets:
            users = options.users
            people = None if users is None else People(users, policy.review)
            policy = policy._replace(access=access_beside(options.model_path), people=people)
        made = Service(
            lambda: opened(options.model_path),
            options.rule_of,
            sockets,
            policy,
            limits,
            Log(options.log, on_drop=partial(tally.add, "unlogged")),
            tally,
            options.users,
        )
        return made, model

    Supervisor(*service(options), n_workers, lambda: service(reread())).run()

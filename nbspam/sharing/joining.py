"""Snapshots: the models of a host as the log has them, from which a new host starts."""

import os
import shutil
from contextlib import closing

from nbspam.disk import locked, make_folder, resolved
from nbspam.errors import InputError, ModelFileError, SharedLogError, UsageError
from nbspam.sharing.outbox import LogPosition, Outbox
from nbspam.sharing.sharer import Sharer
from nbspam.store.open import save_classifier

_TRIES = 20  # lessons may come in between
MODEL, USERS = "model", "users"


def snapshot(sharer: Sharer, folder: str, users: list[str]) -> LogPosition:
    """Write a host's models and the position in the log that they stand for; raises NbspamError.

    folder: a new one.  users: all that have a model.
    """
    if os.path.exists(folder):
        raise UsageError(f"{folder}: is there already; give a new folder")
    for _ in range(_TRIES):
        sharer.exchange()
        with sharer.at_rest():
            place = _copy_models(sharer, folder, users)
        if place is not None:
            return place
        shutil.rmtree(folder, ignore_errors=True)
    raise SharedLogError(f"{sharer.path}: lessons come all the time; try again when fewer do")


def join_log(folder: str, path: str, users: str | None) -> LogPosition:
    """Start a host from a snapshot; raises NbspamError.

    path: of the site's model, which must not be there.  users: the folder of users' models.
    """
    path = resolved(path)
    taken = [f"{path}.share", path, *([users] if users is not None else [])]
    for name in taken:
        if os.path.exists(name):
            raise UsageError(f"{name}: is there already; move it away first, or give another name")
    if not os.path.exists(os.path.join(folder, MODEL + ".share")):
        raise InputError(f"{folder}: not a snapshot; make one with nbspam share snapshot")
    if users is None and os.path.exists(os.path.join(folder, USERS)):
        raise UsageError(f"{folder}: has models of users; say with --users where they go")
    try:
        make_folder(os.path.dirname(path) or os.curdir)
        if users is not None and os.path.exists(os.path.join(folder, USERS)):
            shutil.copytree(os.path.join(folder, USERS), users)
        if os.path.exists(os.path.join(folder, MODEL)):
            shutil.copyfile(os.path.join(folder, MODEL), path)
            os.chmod(path, 0o600)
    except OSError as error:
        raise ModelFileError(
            f"{path}: {error.strerror or error}; make room, and join again"
        ) from error
    with closing(Outbox(os.path.join(folder, MODEL))) as old, closing(Outbox(path)) as outbox:
        outbox.move(old.place(), old.seen())
        if users is not None:
            outbox.keep_users(os.path.abspath(users))
        return outbox.place()


def _copy_models(sharer: Sharer, folder: str, users: list[str]) -> LogPosition | None:
    """Copy models as the log has them; None if lessons came in between."""
    place = sharer.outbox.place()
    for user in ["", *users]:
        model = sharer.model_of(user)
        with locked(model.path):
            if user in sharer.outbox.users():
                return None
            if not os.path.exists(model.path):
                continue
            whole = model.whole()
        inside = os.path.basename(os.path.dirname(model.path))
        target = (
            os.path.join(folder, USERS, inside, MODEL) if user else os.path.join(folder, MODEL)
        )
        save_classifier(target, whole)
    with closing(Outbox(resolved(os.path.join(folder, MODEL)))) as outbox:
        outbox.move(place, sharer.outbox.seen())
    return place

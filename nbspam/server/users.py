"""Users: each may have a model of their own, which counts on top of the site's.

A user's model is a model file like any other, DIR/NAME/model, begun by the user's first lesson.
The counts that judging needs are held in memory for the users whose mail came last.  Strangers
write users' names, so a name becomes the name of a folder by an encoding that no path survives.
"""

import contextlib
import os
import stat
import string
import unicodedata
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple
from urllib.parse import quote, unquote

from nbspam.classifier.combine import Combination
from nbspam.classifier.personal import OwnCounts, own_of
from nbspam.decision import HAM_AND_SPAM
from nbspam.disk import Stamp, stamp_of
from nbspam.errors import InputError, ModelFileError, NbspamError, UsageError
from nbspam.settings import PRESENCE, Settings
from nbspam.store.journal import journal_path
from nbspam.store.model import StoredModel

_MAX_FOLDER = 200  # bytes of a folder's name; file systems allow 255
_PLAIN = "@+_-."  # beside ASCII letters and digits; quote() leaves ~ as it is, too
_EACH = 1000  # bytes that a user takes in memory beside the arrays


class UserError(NbspamError):
    """A user's name that no folder can have."""


def known_as(text: str | None) -> str:
    """Return the name by which a user is known, "" for nobody.

    Senders write the addresses of recipients as they like: <Alice@Example.ORG> is
    alice@example.org.
    """
    name = unicodedata.normalize("NFC", (text or "").strip(f"<>{string.whitespace}"))
    return unicodedata.normalize("NFC", name.lower())


def user_folder_name(name: str) -> str:
    """Return the name of a user's folder; raises UserError.

    name: from `known_as`.  Different names have different folders, none of which is a path.
    """
    if not name:
        raise UserError("no user is named; name whose model is to learn")
    if "\N{REPLACEMENT CHARACTER}" in name:  # different bytes have become the same
        raise UserError("the user's name is not UTF-8; write it so")
    folder = quote(name, safe=_PLAIN, errors="surrogatepass")
    if folder.startswith("."):
        folder = f"%2E{folder[1:]}"
    if len(folder) > _MAX_FOLDER:
        raise UserError(
            f"the user's name is too long: {len(folder)} bytes as the name of a folder, of"
            f" {_MAX_FOLDER} allowed; give a shorter one"
        )
    return folder


def model_in(folder: str, name: str) -> str:
    """Return the path of a user's model, be it there or not; raises UserError.

    name: from `known_as`.
    """
    return os.path.join(folder, user_folder_name(name), "model")


def users_in(folder: str) -> list[str]:
    """Return the users with an entry of their name in a folder, in order.

    Other entries are left out, and so is all of a folder that cannot be read.
    """
    try:
        entries = os.listdir(folder)
    except OSError:
        return []
    return sorted(name for name in map(_name_of, entries) if name)


def _name_of(entry: str) -> str:
    """Return the user whose folder has this name, "" if it is nobody's."""
    with contextlib.suppress(UserError, UnicodeError):
        name = unquote(entry, errors="surrogatepass")
        if known_as(name) == name and user_folder_name(name) == entry:
            return name
    return ""


def check_folder(folder: str) -> None:
    """Raise InputError if the users' folder is not a folder."""
    try:
        if not stat.S_ISDIR(os.stat(folder).st_mode):
            raise InputError(f"--users {folder}: not a folder; give a folder, or a new name")
    except FileNotFoundError:
        return  # the first lesson makes it
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise InputError(f"--users {folder}: {reason}; give another folder") from error


def check_site(model: StoredModel) -> None:
    """Raise UsageError if users' own models cannot count on top of a model."""
    if not (model.settings.is_mail_combined and model.settings.weighting == PRESENCE):
        raise UsageError(
            f"--users: {model.name} does not combine the evidence of mail, so that nobody's own"
            " lessons can be added; serve a model that was trained without --model and --weighting"
        )


class _Held(NamedTuple):
    """A user's counts, and the files that they were read from."""

    stamps: tuple[Stamp | None, ...]  # of the user's model and journal, and of the site's model
    own: OwnCounts | None  # None: the model cannot be read, or has un-learned everything

    @property
    def n_bytes(self) -> int:
        return _EACH + (0 if self.own is None else self.own.n_bytes)


class Users:
    """The users' models: `own` is for the judge's thread, `opened` for the teacher's.

    room: bytes of memory for users' counts.  on_trouble: told why a user's model cannot be read;
    the site's judges that user's mail then.
    """

    def __init__(self, folder: str, room: int, on_trouble: Callable[[Exception], None]) -> None:
        self._folder = folder
        self._room = room
        self._on_trouble = on_trouble
        self._held: OrderedDict[str, _Held] = OrderedDict()  # those used last are at the end
        self.n_bytes = 0

    def __len__(self) -> int:
        return len(self._held)

    def path(self, name: str) -> str:
        """Return the path of a user's model, from `known_as`; raises UserError."""
        return model_in(self._folder, name)

    def opened(self, name: str, settings: Settings) -> StoredModel:
        """Return a user's model; raises NbspamError.  If there is none, a lesson makes one.

        settings: those of the site's model, whose tokens the user's has, without its sent mail.
        """
        return StoredModel(self.path(name), new=replace(settings, sent_mail=None))

    def own(self, name: str, site: StoredModel) -> OwnCounts | None:
        """Return a user's counts; None without any lesson, or for a name that cannot be kept.

        site: the model whose classifier was just asked for.
        """
        try:
            path = self.path(name)
        except UserError:
            return None
        # Taken before the files are read: a lesson written during that shows at the next message.
        stamps = stamp_of(path), stamp_of(journal_path(path)), site.stamp
        if stamps[0] is None:
            self._drop(name)
            return None
        held = self._held.get(name)
        if held is None or held.stamps != stamps:
            self._drop(name)
            held = _Held(stamps, self._read(path, site))
            self._held[name] = held
            self.n_bytes += held.n_bytes
            while self.n_bytes > self._room and len(self._held) > 1:
                self._drop(next(iter(self._held)))
        self._held.move_to_end(name)
        return held.own

    def _drop(self, name: str) -> None:
        if name in self._held:
            self.n_bytes -= self._held.pop(name).n_bytes

    def _read(self, path: str, site: StoredModel) -> OwnCounts | None:
        """Return a user's counts; None, and a note, if the model cannot be used."""
        try:
            model = StoredModel(path, is_copied=True)
            if model.base.classes != HAM_AND_SPAM or model.settings.weighting != PRESENCE:
                raise ModelFileError(f"{path}: not a user's model; move it away")
            table, documents, y = model.lessons()
        except (NbspamError, OSError) as error:
            self._on_trouble(error)
            return None
        sent, cutoffs = model.settings.sent_mail, model.base.cutoffs
        is_new = sent is None and cutoffs is None and not table.class_count.any()
        if is_new or not isinstance(site.base.fit, Combination):
            return None
        return own_of(site.base, table, documents, y)._replace(sent_mail=sent, cutoffs=cutoffs)

"""URLs of accounts, folders and messages: RFC 5092.

    imaps://ann@mail.example.org/                                  an account
    imaps://ann@mail.example.org/INBOX                             a folder
    imaps://ann@mail.example.org/INBOX;UIDVALIDITY=17/;UID=4       a message

`imap://` is the port without TLS, on which TLS begins by STARTTLS.  User and folder are
percent-encoded UTF-8; a folder may be written as it is where a shell lets it pass.
"""

import re
from typing import NamedTuple
from urllib.parse import quote, unquote

from nbspam.errors import UsageError

_URL = re.compile(
    r"(?P<scheme>imaps?)://(?:(?P<user>.*)@)?(?P<host>\[[0-9a-f:.]+\]|[^\s:/@\[\]]+)"
    r"(?::(?P<port>[0-9]{1,5}))?(?:/(?P<path>.*))?",
    re.IGNORECASE | re.DOTALL,
)
_PATH = re.compile(
    r"(?P<folder>.*?)/?(?:;UIDVALIDITY=(?P<validity>[0-9]{1,10}))?(?:/?;UID=(?P<uid>[0-9]{1,10}))?/?",
    re.IGNORECASE | re.DOTALL,
)
_HOW = "write imaps://USER@HOST/FOLDER"
_PORTS = {"imaps": 993, "imap": 143}
_SAFE = "/.,=!*'()$+ "  # in folders, beside letters, digits and _-~; a space is encoded below


class ImapUrl(NamedTuple):
    """An account, and what of it is meant."""

    is_tls: bool  # from the first byte on, as imaps:// says
    user: str
    host: str
    port: int
    folder: str = ""  # as people see it, not in UTF-7; "": the whole account
    validity: int | None = None  # UIDVALIDITY, under which the UID has a meaning; None: any
    uid: int | None = None  # None: the whole folder

    @property
    def account(self) -> str:
        """The account in messages and for secrets: USER@HOST."""
        return f"{self.user}@{self.host}"

    def of_folder(self, folder: str) -> "ImapUrl":
        """Return the URL of a folder of the account."""
        return self._replace(folder=folder, validity=None, uid=None)

    def of_message(self, validity: int, uid: int) -> "ImapUrl":
        """Return the URL of a message of this folder."""
        return self._replace(validity=validity, uid=uid)

    def __str__(self) -> str:
        scheme = "imaps" if self.is_tls else "imap"
        host = f"[{self.host}]" if ":" in self.host else self.host
        port = "" if self.port == _PORTS[scheme] else f":{self.port}"
        text = f"{scheme}://{quote(self.user, safe='')}@{host}{port}/"
        text += quote(self.folder, safe=_SAFE).replace(" ", "%20")
        if self.uid is None:
            return text
        return f"{text};UIDVALIDITY={self.validity or 0}/;UID={self.uid}"


def imap_url(path: str) -> ImapUrl:
    """Return the parts of a URL; raises UsageError, which repeats no password."""
    found = _URL.fullmatch(path)
    user = (found["user"] if found else None) or ""
    user = re.sub(r";AUTH=[^;]*$", "", user, flags=re.IGNORECASE)  # servers say what they take
    if ":" in user:
        raise UsageError(
            "imaps://: a password in a URL is seen by others; leave it out, and give"
            " --password-command or type it when asked"
        )
    if found is None:
        raise UsageError(f"{path}: no URL of a mail account; {_HOW}")
    if not user:
        raise UsageError(f"{path}: names no user; {_HOW}")
    scheme = found["scheme"].lower()
    port = int(found["port"]) if found["port"] else _PORTS[scheme]
    inside = _PATH.fullmatch(found["path"] or "")
    assert inside is not None  # it fits whatever there is
    url = ImapUrl(
        scheme == "imaps",
        unquote(user),
        found["host"].strip("[]"),
        port,
        unquote(inside["folder"]),
        int(inside["validity"]) if inside["validity"] else None,
        int(inside["uid"]) if inside["uid"] else None,
    )
    words = url.user + url.folder
    if not 0 < port < 1 << 16 or "\0" in words or "\r" in words or "\n" in words:
        raise UsageError(f"{path}: no URL of a mail account; {_HOW}")
    return url

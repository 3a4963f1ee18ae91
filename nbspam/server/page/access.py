"""Access to the page: a secret beside the model, and the tokens that are made from it.

    token     logs in; the site's is in the address that the server prints when it starts, and
              with --users each user has one, which names the user
    session   is in the cookie of a browser that has logged in, says as whom, and ends after a
              month
    form      is in each form of a session, and must come back with what is posted

Nothing is kept of them: the secret is enough to check them, so all workers know all sessions, and
so does a restarted server.  Another secret ends them all.
"""

import base64
import os
import secrets
import socket
import stat
import sys
from collections.abc import Mapping
from hashlib import sha256
from hmac import compare_digest, digest

from nbspam.disk import locked, open_own, parent_folder, replace_file, resolved
from nbspam.errors import ModelFileError, UsageError
from nbspam.server.addresses import Address, listened

_SECRET_BYTES = 32
SESSION_SECONDS = 30 * 86_400
_EMBEDDED = {"cross-site", "same-site"}  # Sec-Fetch-Site of what another site asks for


class Access:
    """Makes tokens, and names their users.

    secret: bytes that nobody else knows.  Users are named as by `users.known_as`; "" is the site.
    """

    def __init__(self, secret: bytes) -> None:
        self._secret = secret

    def _signed(self, text: str) -> str:
        return _coded(digest(self._secret, _bytes(text), sha256))

    def token_of(self, user: str) -> str:
        """Return the token that logs a user in."""
        if not user:
            return self._signed("token")
        return f"{_coded(_bytes(user))}.{self._signed(f'token {user}')}"

    def user_of(self, token: str) -> str | None:
        """Return the user of a token, None if it is not ours."""
        try:
            user = _decoded(token.rpartition(".")[0])
        except ValueError:
            return None
        return user if _same(token, self.token_of(user)) else None

    def new_session(self, now: float, user: str) -> str:
        """Return a session of a user that begins; now: seconds since 1970."""
        begun = f"{now:.0f}.{secrets.token_urlsafe(16)}.{_coded(_bytes(user))}"
        return f"{begun}.{self._signed(f'session {begun}')}"

    def session_user(self, session: str, now: float) -> str | None:
        """Return the user of a session, None if it has ended or is not ours."""
        begun, _, mac = session.rpartition(".")
        if not _same(mac, self._signed(f"session {begun}")):
            return None
        moment, _, user = begun.split(".")
        return _decoded(user) if now - int(moment) < SESSION_SECONDS else None

    def form_token(self, session: str) -> str:
        """Return the token that the forms of a session contain."""
        return self._signed(f"form {session}")

    def is_form_token(self, text: str, session: str) -> bool:
        """Return whether a text was in a form of a session."""
        return _same(text, self.form_token(session))


def _same(text: str, other: str) -> bool:
    return compare_digest(_bytes(text), _bytes(other))


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def _coded(data: bytes) -> str:
    """Return bytes as text of which every character may be in an address and in a cookie."""
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


def _decoded(text: str) -> str:
    """Return the text that was coded; raises ValueError."""
    padding = "=" * (-len(text) % 4)
    return base64.urlsafe_b64decode(text + padding).decode("utf-8", "surrogatepass")


# ---- the secret ----


def access_beside(model: str) -> Access:
    """Return the access by the secret in MODEL.secret, which is made if there is none.

    Raises ModelFileError.
    """
    target = resolved(model)
    name = f"{target}.secret"
    with locked(target):
        try:
            if not os.path.lexists(name):
                text = secrets.token_hex(_SECRET_BYTES).encode() + b"\n"
                # Like its folder: like the model, others could read it.
                replace_file(name, lambda file: file.writelines([text]), like=parent_folder(name))
            return Access(_read(name, target))
        except OSError as error:
            reason = error.strerror or str(error)
            raise ModelFileError(f"{name}: {reason}; --web keeps a secret there") from error


def _read(name: str, model: str) -> bytes:
    with open(open_own(name, model), "rb") as file:
        if sys.platform != "win32" and os.fstat(file.fileno()).st_mode & (
            stat.S_IRWXG | stat.S_IRWXO
        ):
            raise ModelFileError(f"{name}: others than its owner can read it; remove it")
        text = file.read(1000)
    try:
        secret = bytes.fromhex(text.decode("ascii"))
    except ValueError:
        secret = b""
    if len(secret) != _SECRET_BYTES:
        raise ModelFileError(f"{name}: not a secret; remove it, and a new one is made")
    return secret


# ---- the address of the page, and where a request comes from ----


def page_of(listener: socket.socket, model: str) -> str:
    """Return the address that logs in to the page, by the secret beside the model.

    Raises UsageError where others than this machine can reach it, and ModelFileError.
    """
    address = listened(listener)
    if address.path:
        raise UsageError(f"--web {address}: no browser opens it; give 127.0.0.1:PORT")
    if not address.is_local:
        raise UsageError(
            f"--web {address}: other machines can reach it, and it is not encrypted; give"
            " 127.0.0.1:PORT, and come from other machines by ssh -L"
        )
    return f"http://{address}/?token={access_beside(model).token_of('')}"


def hosts_of(address: Address) -> set[str]:
    """Return the values of Host that a browser writes; no name that others resolve is one."""
    hosts = {str(address), f"localhost:{address.port}"}
    if address.port == 80:  # which browsers leave out
        hosts |= {host.removesuffix(":80") for host in hosts}
    return hosts


def stranger(method: str, headers: Mapping[str, str], address: Address) -> str | None:
    """Return the reason to refuse a request that may come from another site, None without one.

    headers: by name in lower case.
    """
    host = headers.get("host", "").lower()
    if host not in hosts_of(address):
        return f"Host is not {address}: a name of another site leads here"
    origin, site = headers.get("origin"), headers.get("sec-fetch-site")
    if origin is not None and origin.lower() != f"http://{host}":
        return "Origin is another site"
    if method == "POST" and origin is None and site != "same-origin":
        return "neither Origin nor Sec-Fetch-Site says that the request comes from this page"
    visits = headers.get("sec-fetch-mode") == "navigate"
    opens = visits and headers.get("sec-fetch-dest") == "document"
    if site in _EMBEDDED and not (method == "GET" and opens):
        return "another site asks for a part of this page"
    return None

"""Access to the page: the secret beside the model, login tokens, and requests of other sites.

A token logs in: the site's is in the address that the server prints when it starts, and with
--users each user has one, which names the user.  A browser that has logged in has a session in a
signed cookie.  The secret is enough to check both, so every worker knows them, and so does a
restarted server.  Another secret ends them all.
"""

import os
import re
import secrets
import socket
import stat
import sys
from collections.abc import Mapping

from nbspam.disk import locked, open_own, parent_folder, replace_file, resolved
from nbspam.errors import ModelFileError, UsageError
from nbspam.server.addresses import Address, listened

_SECRET_BYTES = 32
_EMBEDDED = {"cross-site", "same-site"}  # Sec-Fetch-Site of what another site asks for


class Access:
    """Makes login tokens, and names their users.

    secret: a text that nobody else knows; it signs sessions, too.  Users are named as by
    `users.known_as`; "" is the site.
    """

    def __init__(self, secret: str) -> None:
        from itsdangerous import URLSafeSerializer  # of the extra `web`

        self.secret = secret
        # A user's name need not be UTF-8, and as ASCII any is.
        self._tokens = URLSafeSerializer(
            secret, salt="token", serializer_kwargs={"ensure_ascii": True}
        )

    def token_of(self, user: str) -> str:
        """Return the token that logs a user in, always the same one."""
        return str(self._tokens.dumps(user))

    def user_of(self, token: str) -> str | None:
        """Return the user of a token, None if it is not ours."""
        from itsdangerous import BadData

        try:
            return str(self._tokens.loads(token))
        except BadData:
            return None


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


def _read(name: str, model: str) -> str:
    with open(open_own(name, model), "rb") as file:
        if sys.platform != "win32" and os.fstat(file.fileno()).st_mode & (
            stat.S_IRWXG | stat.S_IRWXO
        ):
            raise ModelFileError(f"{name}: others than its owner can read it; remove it")
        text = file.read(1000).strip().decode("latin-1")
    if not re.fullmatch(f"[0-9a-f]{{{2 * _SECRET_BYTES}}}", text):
        raise ModelFileError(f"{name}: not a secret; remove it, and a new one is made")
    return text


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

"""Mail that Postfix holds: listed, read, released and deleted by Postfix's own programs.

They find their configuration as always (`MAIL_CONFIG`), and only root may use them.
"""

import json
import os
import re
import shutil
import subprocess
from collections.abc import Sequence
from typing import BinaryIO, NamedTuple, cast

from nbspam.errors import InputError
from nbspam.sources import files

_PLACES = os.pathsep.join(("/usr/sbin", "/usr/local/sbin"))  # which few users' PATH has
_QUEUE = "hold"
_IDENTIFIER = re.compile("[0-9A-Za-z]+")


class MessageGoneError(InputError):
    """A message was delivered or deleted since the queue was listed."""


class HeldMessage(NamedTuple):
    """A message that Postfix holds."""

    identifier: str  # of the queue
    sender: str
    recipients: tuple[str, ...]

    def read(self) -> bytes:
        """Return the message, truncated to MAX_MESSAGE; raises InputError."""
        command = _command("postcat", "-qbh", self.identifier)
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
            assert process.stdout is not None
            assert process.stderr is not None
            data = files.read_raw_message(cast(BinaryIO, process.stdout))
            process.stdout.close()
            _check("postcat", data == b"", process.stderr.read())
        return data

    def named_recipients(self) -> list[str]:
        """Return the recipients that a milter was told, before aliases; raises InputError."""
        envelope = _run("postcat", "-qe", self.identifier).stdout.decode("utf-8", "replace")
        found, original = [], None
        for line in envelope.split("\n"):  # addresses may have other ends of lines
            kind, _, value = line.partition(": ")
            if kind == "original_recipient":
                original = value
            elif kind == "recipient":
                found.append(original or value)
                original = None
        return found

    def release(self) -> None:
        """Let Postfix deliver the message now; raises InputError."""
        self._change("-H")
        _run("postqueue", "-i", self.identifier)

    def delete(self) -> None:
        """Let Postfix delete the message; raises InputError."""
        self._change("-d")

    def _change(self, how: str) -> None:
        # It succeeds also if somebody else has released or deleted the message.
        said = _run("postsuper", how, self.identifier, _QUEUE).stderr
        _check("postsuper", b": 1 message" not in said, said)


def held_messages(identifiers: Sequence[str] = ()) -> list[HeldMessage]:
    """Return the messages that Postfix holds, or the named ones of them; raises InputError."""
    held = {}
    for line in _run("postqueue", "-j").stdout.splitlines():
        row = json.loads(line.decode("utf-8", "replace"))
        name = row["queue_id"]
        if row["queue_name"] == _QUEUE and _IDENTIFIER.fullmatch(name):
            recipients = tuple(each["address"] for each in row["recipients"])
            held[name] = HeldMessage(name, row["sender"], recipients)
    return [held[name] for name in dict.fromkeys(identifiers or held) if name in held]


def _command(program: str, *words: str) -> list[str]:
    path = shutil.which(program, path=f"{os.environ.get('PATH', '')}{os.pathsep}{_PLACES}")
    if path is None:
        raise InputError(f"{program}: not found; nbspam held needs Postfix on this machine")
    return [path, *words]


def _run(program: str, *words: str) -> "subprocess.CompletedProcess[bytes]":
    done = subprocess.run(_command(program, *words), capture_output=True, check=False)
    _check(program, done.returncode != 0, done.stderr)
    return done


def _check(program: str, is_failed: bool, said: bytes) -> None:
    """Raise InputError with a program's last line of errors, if it has failed."""
    if is_failed:
        lines = said.decode("utf-8", "replace").splitlines() or ["the message is gone"]
        reason = re.sub(r"^\S+: (fatal: |warning: )?", "", lines[-1])
        kind = MessageGoneError if "No such file" in reason else InputError
        raise kind(f"{program}: {reason}; run it as root, or look whether Postfix runs")

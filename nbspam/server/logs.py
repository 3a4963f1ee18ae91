"""The log: one line on standard error for each answer, as text or as JSON.

A line tells the queue's identifier, user, verdict, probability and milliseconds; never words of
mail.

Secret: how a line is written, so that lines of several processes do not mix.
"""

import contextlib
import json
import os
from typing import Any

from nbspam.printing import printable

_MAX_VALUE = 200  # characters; a line shorter than a pipe's buffer is written in one piece
FORMATS = ("text", "json", "none")


class Log:
    """Writes lines to a file descriptor."""

    def __init__(self, kind: str, descriptor: int = 2) -> None:
        self._kind = kind
        self._descriptor = descriptor

    def answered(self, **facts: Any) -> None:
        """Write what was answered."""
        if self._kind != "none":
            self._write(facts)

    def told(self, text: str) -> None:
        """Write what the server's owner should know, even if answers are not logged."""
        self._write({"note": text})

    def _write(self, facts: dict[str, Any]) -> None:
        shown = {name: _short(value) for name, value in facts.items() if value not in (None, "")}
        if self._kind == "json":
            line = json.dumps(shown)
        elif "note" in shown:
            line = f"nbspam: {shown['note']}"
        else:
            line = " ".join(f"{name}={value}" for name, value in shown.items())
        with contextlib.suppress(OSError):  # nobody reads it, or the disk is full: mail goes on
            os.write(self._descriptor, line.encode("utf-8", "replace") + b"\n")


def _short(value: Any) -> Any:
    return printable(value)[:_MAX_VALUE] if isinstance(value, str) else value

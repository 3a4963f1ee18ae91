"""The log: one line on standard error for each answer, as text or as JSON.

A line tells the queue's identifier, user, verdict, probability and milliseconds; never words of
mail.  Who reads too slowly misses lines; mail does not wait for them.

Secret: how a line is written, so that lines of several processes do not mix and nobody waits.
"""

import json
import os
import select
from collections.abc import Callable
from typing import Any

from nbspam.errors import NbspamError
from nbspam.printing import printable

_MAX_VALUE = 200  # characters; a line of less than 4,096 bytes is written to a pipe in one piece
FORMATS = ("text", "json", "none")


class Log:
    """Writes lines to a file descriptor, if there is room for them.

    on_drop: called for each line that is not written.
    """

    def __init__(
        self, kind: str, descriptor: int = 2, on_drop: Callable[[], None] = lambda: None
    ) -> None:
        self._kind = kind
        self._descriptor = descriptor
        self._on_drop = on_drop

    def answered(self, **facts: Any) -> None:
        """Write what was answered."""
        if self._kind != "none":
            self._write(facts)

    def told(self, text: str) -> None:
        """Write what the server's owner should know, even if answers are not logged."""
        self._write({"note": text}, f"nbspam: {_short(text)}")

    def failed(self, what: str, error: BaseException) -> None:
        """Write what failed, and why.

        An error that we did not foresee may quote mail, so only its kind and place are written.
        """
        why = str(error) if isinstance(error, NbspamError | OSError) else _kind_and_place(error)
        self.told(f"{what}: {why}")

    def listens(self, protocol: str, address: str, workers: int, model: str) -> None:
        """Write that clients of a protocol are answered from now on."""
        self._write(
            {"listening": protocol, "address": address, "workers": workers, "model": model},
            f"nbspam serve: {protocol} on {_short(address)}, {workers}"
            f" worker{'s' * (workers != 1)}, model {_short(model)}",
        )

    def _write(self, facts: dict[str, Any], text: str = "") -> None:
        shown = {name: _short(value) for name, value in facts.items() if value not in (None, "")}
        if self._kind == "json":
            line = json.dumps(shown, ensure_ascii=False)
        else:
            line = text or " ".join(f"{name}={value}" for name, value in shown.items())
        try:
            # A pipe with room has a free page; what several workers write at once fits into it.
            if select.select([], [self._descriptor], [], 0)[1]:
                os.write(self._descriptor, line.encode("utf-8", "replace") + b"\n")
                return
        except OSError:
            pass  # nobody reads it any more, or the disk is full: mail goes on
        self._on_drop()


def _kind_and_place(error: BaseException) -> str:
    """Return the class of an error and the lines of code that led to it, the last one first."""
    from traceback import walk_tb

    lines = [
        f"{os.path.basename(frame.f_code.co_filename)}:{number}"
        for frame, number in walk_tb(error.__traceback__)
    ]
    return " ".join([type(error).__name__, *reversed(lines)])


def _short(value: Any) -> Any:
    return printable(value)[:_MAX_VALUE] if isinstance(value, str) else value

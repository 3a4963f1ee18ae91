"""The process that reads documents, as the process that needs it sees it.

A document may make a library hang, crash, or take memory without end.  So libraries are called in
a process of its own (`documents.py`), which is given up then.
"""

import atexit
import os
import re
import struct
import subprocess
import sys
from collections.abc import Sequence
from select import select
from threading import Lock
from typing import NamedTuple

from nbspam.mail.attachments import AttachedDocument


class DocumentTexts(NamedTuple):
    """The texts of documents, their links, and facts about them."""

    texts: list[bytes]  # UTF-8
    links: list[bytes]
    facts: set[str]


_PATIENCE = 10.0  # seconds of the clock after which the process is given up
REQUEST = struct.Struct("<8sdI")  # kind, seconds of processor time that are left, bytes of data
ANSWER = struct.Struct("<dIII")  # seconds that were used, bytes of text, of links and of facts
_MAX_ANSWER = 4 << 20  # bytes
_FACT = re.compile(rb"[a-z0-9-]{1,30}")
_PROGRAM = "from nbspam.mail.documents import answer_requests; answer_requests()"


class DocumentReader:
    """The process that reads documents: started at the first one, and again after each loss."""

    def __init__(self) -> None:
        self.lock = Lock()
        self.process: subprocess.Popen[bytes] | None = None

    def read(self, files: Sequence[AttachedDocument], seconds: float) -> DocumentTexts:
        """Return the texts of a message's documents; never raises.

        seconds: of processor time for all of them.  Documents that need more are not read, which
        is a fact.
        """
        read = DocumentTexts([], [], set())
        with self.lock:
            for file in files:
                answer = self.ask(file, seconds) if seconds > 0 else None
                if answer is None:
                    read.facts.add("attached-slow")
                    break
                used, text, links, facts = answer
                seconds -= used
                read.texts.append(text.decode("utf-8", "ignore").encode())
                read.links.extend(links.decode("utf-8", "ignore").encode().split())
                read.facts.update(fact.decode() for fact in _FACT.findall(facts))
        return read

    def ask(
        self, file: AttachedDocument, seconds: float
    ) -> tuple[float, bytes, bytes, bytes] | None:
        """Return seconds, text, links and facts of a document; None if the process is lost."""
        if self.process is None:
            self.process = subprocess.Popen(
                [sys.executable, "-P", "-c", _PROGRAM],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
            )
        try:
            assert self.process.stdin is not None
            self.process.stdin.write(REQUEST.pack(file.kind.encode(), seconds, len(file.data)))
            self.process.stdin.write(file.data)
            self.process.stdin.flush()
            used, *sizes = ANSWER.unpack(self.received(ANSWER.size))
            text, links, facts = map(self.received, sizes)
        except (OSError, struct.error):
            self.stop()
            return None
        return used, text, links, facts

    def received(self, size: int) -> bytes:
        """Return so many bytes of the answer; raises OSError if they do not come."""
        assert self.process is not None
        assert self.process.stdout is not None
        pieces: list[bytes] = []
        left = min(size, _MAX_ANSWER)
        while left:
            if not select([self.process.stdout], [], [], _PATIENCE)[0]:
                raise OSError("no answer")
            piece = os.read(self.process.stdout.fileno(), left)
            if not piece:
                raise OSError("the process ended")
            pieces.append(piece)
            left -= len(piece)
        return b"".join(pieces)

    def stop(self) -> None:
        """End the process, if there is one."""
        if self.process is not None:
            with self.process as process:
                process.kill()
            self.process = None


READER = DocumentReader()
atexit.register(READER.stop)
if hasattr(os, "register_at_fork"):  # a process of its own for each process
    os.register_at_fork(after_in_child=READER.__init__)  # type: ignore[misc]

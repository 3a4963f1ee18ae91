"""Every error that this program raises on purpose.

NbspamError
├── InputError       a message, folder, table or stream cannot be read
│   └── EmptyError   there are none in a path
├── LostError        a connection to a source of mail was lost for good
├── ModelFileError   a file is not a model that we can read, or a model cannot be written
├── NotTrainedError  a model was used before it had learned enough
├── SharedLogError   the log that servers share is away, or is not the one it was
└── UsageError       options contradict each other, or do not fit the data

Every message reads `where: what is wrong; what to do`.  A fault that does not stop a
command is a ModelWarning, which the command line shows in one line, too.
"""

from math import inf
from typing import Any


class NbspamError(Exception):
    """The base class.  Any other exception is a bug, and is shown with its traceback."""


class InputError(NbspamError):
    """A message, folder, table or stream cannot be read."""


class EmptyError(InputError):
    """A path with no messages."""


class LostError(NbspamError):
    """A connection to a source of mail was lost, and could not be reopened.

    It is no InputError, because those skip one message, and the next ones would be lost, too.
    """


class ModelFileError(NbspamError):
    """A file is not a model that this program can read, or a model cannot be written."""


class NotTrainedError(NbspamError):
    """A model was asked for an answer before it had learned enough to give one."""


class SharedLogError(NbspamError):
    """The log of shared lessons is down, or was replaced.

    Verdicts and lessons go on without it; lessons wait until it can be used again.
    """


class UsageError(NbspamError):
    """Options contradict each other, or do not fit the data."""


def check_number(
    name: str,
    value: Any,
    least: float,
    most: float = inf,
    *,
    whole: bool = False,
    above: bool = False,
    error: type[UsageError] = UsageError,
) -> None:
    """Raise an error unless a value is a number from `least` to `most`, and not infinite.

    whole: a whole number; above: more than `least`.
    """
    is_number = type(value) is int
    if not is_number:
        from numbers import Integral, Real

        is_number = isinstance(value, Integral if whole else Real) and not isinstance(value, bool)
    if is_number and least <= value <= most and value < inf and not (above and value == least):
        return
    kind = "a whole number" if whole else "a number"
    end = f"from {least:g} up" if most == inf else f"from {least:g} to {most:,}"
    if above:
        end = f"above {least:g}"
    raise error(f"{name}: {value!r} is not {kind} {end}; give one")


def library_error(where: str, library: str | None, extra: str, other: str = "") -> UsageError:
    """Return the error to raise for a missing library.

    extra: of nbspam, which installs the library, or "" if none does; other: another way.
    """
    package = f"nbspam[{extra}]" if extra else library
    return UsageError(f"{where}: needs {library}; install it with: pip install '{package}'{other}")


class ModelWarning(UserWarning):
    """A model's files have a fault, and the command goes on without the affected data."""

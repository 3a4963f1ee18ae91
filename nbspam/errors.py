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


class ModelWarning(UserWarning):
    """A model's files have a fault, and the command goes on without the affected data."""

"""Every error this program raises on purpose.

NbspamError
├── InputError       a message, folder or table cannot be read
├── ModelFileError   a file is not a model we can read, or cannot be written
├── NotTrainedError  a model was asked before it saw what it needs
└── UsageError       options that contradict each other or the data

Secret: none; a message reads `where: what is wrong; what to do`.
"""


class NbspamError(Exception):
    """The root: whatever is not one of these is a bug and keeps its traceback."""


class InputError(NbspamError):
    """A message, folder, table or stream cannot be read."""


class ModelFileError(NbspamError):
    """A file is not a model this program can read, or a model cannot be written."""


class NotTrainedError(NbspamError):
    """A model was asked for an answer before it had learnt enough to give one."""


class UsageError(NbspamError):
    """Options contradict each other, or do not fit the data they are for."""

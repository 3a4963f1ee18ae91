"""JSON files that people write: networks, components to start from.

Secret: none; whatever is wrong with the file is one line.
"""

import json
from typing import Any

from nbspam.errors import InputError

_MAX_BYTES = 64 << 20


def read_json(path: str) -> Any:
    """Return the plain values in a file; raises InputError."""
    try:
        with open(path, "rb") as stream:
            data = stream.read(_MAX_BYTES + 1)
        if len(data) > _MAX_BYTES:
            raise InputError(f"{path}: more than {_MAX_BYTES:,} bytes of JSON; give less")
        return json.loads(data)
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}; give a file of JSON") from error
    except (ValueError, RecursionError):
        raise InputError(f"{path}: not JSON; correct it") from None

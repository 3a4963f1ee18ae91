"""The kinds of arrays, by what they hold.

Secret: that importing numpy.typing takes longer than classifying a message, so that
only type checkers do it.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import ArrayLike as ArrayLike
    from numpy.typing import NDArray

    Keys = NDArray[np.uint64]  # hashes of tokens
    Integers = NDArray[np.int64]
    Integers32 = NDArray[np.int32]
    Integers16 = NDArray[np.uint16]
    Counts = Integers | Integers32 | Integers16
    Indices = Integers | Integers32
    Floats = NDArray[np.float64]
    Floats32 = NDArray[np.float32]
    Booleans = NDArray[np.bool_]
    Octets = NDArray[np.uint8]  # text, or small numbers
    Strings = NDArray[np.str_]
else:
    ArrayLike = Keys = Integers = Integers32 = Integers16 = Counts = Indices = Any
    Floats = Floats32 = Booleans = Octets = Strings = Any

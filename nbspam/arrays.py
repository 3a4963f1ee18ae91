"""Names for the types of numpy arrays, by their contents, and short operations on them.

Only type checkers import numpy.typing, because the import takes longer than classifying
a message.  At run time every name of a type is `Any`.
"""

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from nbspam.errors import check_number

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import ArrayLike as ArrayLike
    from numpy.typing import NDArray

    Keys = NDArray[np.uint64]  # hashes of tokens
    Integers = NDArray[np.int64]
    Integers32 = NDArray[np.int32]
    Columns = NDArray[np.uint32]
    Indices = Integers | Integers32 | Columns | NDArray[np.uint16] | NDArray[np.uint8]
    Floats = NDArray[np.float64]
    Floats32 = NDArray[np.float32]
    Booleans = NDArray[np.bool_]
    Days = NDArray[np.uint16]  # since 1970-01-01
    Octets = NDArray[np.uint8]  # text as UTF-8, or small numbers
    Strings = NDArray[np.str_]
else:
    ArrayLike = Keys = Integers = Integers32 = Indices = Any
    Columns = Days = Floats = Floats32 = Booleans = Octets = Strings = Any


EPOCH = 719_163  # the ordinal of 1970-01-01, from which `Days` count
LAST_DAY = (1 << 16) - 1
# Nats by which equal log-probabilities differ at most: the same terms, added in another order,
# differ in their last digits.
TIED = 1e-9


def today() -> int:
    """Return the day that it is in UTC, counted from 1970-01-01, as models keep it."""
    return min(max(int(time.time() // 86_400), 0), LAST_DAY)


LARGEST_SEED = (1 << 32) - 1  # that numpy's older generators take
LARGEST_COUNT = 10**12  # of samples, or of messages a week; more is a slip of the keyboard


def checked_seed(seed: int) -> int:
    """Return the seed of random numbers; raises UsageError."""
    check_number("seed", seed, 0, LARGEST_SEED, whole=True)
    return seed


# A message alone is judged by some three hundred calls of numpy on short arrays.  The functions
# np.flatnonzero and np.diff take five times as long on these as what they do.


def positions_of(mask: Any) -> "Integers":
    """Return the positions of the elements that are not 0 or false; mask: one-dimensional."""
    places: Integers = mask.nonzero()[0]
    return places


def find(ascending: Any, wanted: Any) -> "Integers":
    """Return the position of each wanted element, -1 for a missing one; shape as `wanted`.

    ascending: one-dimensional, sorted.
    """
    if not len(ascending):
        import numpy as np

        return np.full(len(wanted), -1)
    place: Integers = ascending.searchsorted(wanted)
    place[ascending.take(place, mode="clip") != wanted] = -1
    return place


def distinct(numbers: Any) -> Any:
    """Return the different elements, ascending; numbers: one-dimensional, without NaN.

    At its first call np.unique imports masked arrays, which takes 12 ms.
    """
    import numpy as np

    ascending = np.sort(numbers)
    return np.concatenate([ascending[:1], ascending[1:][ascending[1:] != ascending[:-1]]])


def together(parts: Sequence[Any], kind: Any) -> Any:
    """Return arrays of one kind as one; an empty one of that kind if there are none."""
    import numpy as np

    return np.concatenate([np.empty(0, kind), *parts])


def differences(numbers: Any) -> Any:
    """Return the difference of each element and the one before it, shape (len(numbers) - 1,)."""
    return numbers[1:] - numbers[:-1]

"""What tests of stored models share: numbered mail, and models that are trained into files."""

import errno
from dataclasses import replace
from pathlib import Path

from hypothesis import HealthCheck
from hypothesis import settings as hypothesis_settings

from nbspam.classifier.training import learn_items
from nbspam.errors import ModelFileError
from nbspam.settings import MANY, PLAIN, PRESETS
from nbspam.sources.items import Item
from nbspam.store.model import StoredModel
from nbspam.store.modelfile import replacing_state
from nbspam.store.open import save_classifier
from support import examples, raising

DAY = 20_000
EVERY_SETTING = {
    **PRESETS,
    "plain": PLAIN["text"],
    "tf-idf": replace(PLAIN["text"], weighting="tf-idf"),
    **{f"many, {name}": settings for name, settings in MANY.items()},
}
# Laws that train models in one folder, which each example leaves as the next one can use it.
few = hypothesis_settings(
    examples(12), suppress_health_check=[HealthCheck.function_scoped_fixture]
)


def numbered(n, label="spam"):
    """Return message n, which has words of its own."""
    return Item(f"m{n}", label, b"Message-ID: <%d@x>\nSubject: s%d\n\npills%d\n" % (n, n, n))


def letter(n, label=None, words=b"cheap lunch", told=False, is_text=False, head=b""):
    """Return message n, which shares its sender and its words with some others."""
    head += b"Message-ID: <%d@x>\nFrom: a%d@x\nSubject: s %d" % (n, n % 3, n)
    text = head + b"\n\n%s pills%d pills\n" % (words, n % 5)
    return Item(f"m{n}", label, text, is_text, told=told)


def half_spam(numbers):
    return [numbered(n, "ham" if n % 2 else "spam") for n in numbers]


def trained(items, settings=PRESETS["mail"], day=DAY):
    return learn_items(items, settings, day=day).classifier


def train_on(items, path, settings=PRESETS["mail"], day=DAY):
    return bytes_of(trained(items, settings, day), path)


def bytes_of(classifier, path):
    save_classifier(str(path), classifier)
    return Path(path).read_bytes()


def whole_bytes(path):
    return bytes_of(StoredModel(str(path)).whole(), f"{path}.copy")


def save_state(path, state):
    with replacing_state(path, state):
        pass


# In the place of a function that writes to a disk.
full_disk = raising(OSError(errno.ENOSPC, "No space left on device"))


def no_room(path, *arguments):
    """Refuse, in the place of `write_model`."""
    raise ModelFileError(f"{path}: cannot be written: No space left on device")

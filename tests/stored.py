"""What tests of stored models share: numbered mail, and models that are trained into files."""

from dataclasses import replace
from pathlib import Path

from hypothesis import HealthCheck
from hypothesis import settings as hypothesis_settings

from nbspam.classifier.training import train_classifier
from nbspam.counts.counting import count_items
from nbspam.settings import MANY, PLAIN, PRESETS
from nbspam.sources.items import Item
from nbspam.store.model import StoredModel
from nbspam.store.open import save_classifier
from support import examples

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


def half_spam(numbers):
    """Return messages of these numbers; the odd ones are ham."""
    return [numbered(n, "ham" if n % 2 else "spam") for n in numbers]


def train_on(items, path, settings=PRESETS["mail"], day=DAY):
    """Write the model of items to a file, and return its bytes."""
    save_classifier(str(path), train_classifier(count_items(items, settings), settings, day))
    return Path(path).read_bytes()


def whole_bytes(path):
    """Return the bytes of the model file that would be written now."""
    copy = Path(f"{path}.copy")
    save_classifier(str(copy), StoredModel(str(path)).whole())
    return copy.read_bytes()

"""The filter: a message passes through and gets a verdict; a confident verdict is learned.

Mail passes even if anything fails, so the classifier is imported only when the message has been
read, and nothing is learned before the message has passed.
"""

import shutil
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, BinaryIO

from nbspam.errors import NbspamError
from nbspam.mail.headers import MAX_BYTES, HeaderChoices

if TYPE_CHECKING:
    from nbspam.classifier.classifier import Classifier
    from nbspam.decision import Rule

_READ_BYTES = 1 << 16
_NOT_LEARNED = "the message is through, and was not learned"
# Seconds to wait for the model's lock: the delivery waits, too, and Dovecot's ends after ten.
_PATIENCE = 5.0


def copy_message(
    source: BinaryIO, sink: BinaryIO, rewrite: Callable[[bytes, bool], Iterable[bytes]]
) -> None:
    """Copy a message with its beginning rewritten; unchanged if that fails.

    rewrite: takes the first bytes, MAX_BYTES or a little more, and whether they are the whole
    message; returns the pieces to write instead.  If it fails, the message is copied first,
    and then NbspamErrors and OSErrors are raised again; others become NbspamErrors.
    """
    beginning: list[bytes] = []
    size, whole = 0, False
    failure: Exception | None = None
    try:
        # Read all of it before writing: the program at both ends may write before it reads.
        while size < MAX_BYTES and (chunk := source.read(_READ_BYTES)):
            beginning.append(chunk)
            size += len(chunk)
        whole = size < MAX_BYTES
        written = list(rewrite(b"".join(beginning), whole))
    except Exception as error:  # even bugs and MemoryError must not keep mail from passing
        # The frames of the traceback would keep a second copy of the message in memory.
        written, failure = beginning, error.with_traceback(None)
    try:
        sink.writelines(written)
        if not whole:
            shutil.copyfileobj(source, sink)
        sink.flush()
    except BrokenPipeError:
        raise NbspamError("-: nobody reads standard output; the message was not written") from None
    except MemoryError:
        raise NbspamError("-: no memory left; only part of the message was written") from None
    if isinstance(failure, NbspamError | OSError):
        raise failure
    if failure is not None:
        what = "no memory left" if isinstance(failure, MemoryError) else repr(failure)
        raise NbspamError(f"-: {what}; the message passed unchanged") from failure


def filter_message(
    source: BinaryIO,
    sink: BinaryIO,
    model_path: str,
    rule_of: "Callable[[Classifier], Rule]",
    wanted: HeaderChoices,
    sure: float | None,
    day: int,
) -> list[str]:
    """Copy one message with a verdict in its head; raises NbspamError after the message.

    rule_of: gives the rule for a classifier.  sure: learn the message if its class is as
    probable as this; None learns nothing.  day: today, counted from 1970-01-01.  Returns notes
    for the model's owner, such as why the message was not learned.
    """
    notes: list[str] = []
    lesson: tuple[str, bytes] | None = None

    def rewrite(data: bytes, whole: bool) -> Iterable[bytes]:
        nonlocal lesson
        from nbspam.classifier.classifier import judge_and_mark
        from nbspam.sources.items import begins_like_mail
        from nbspam.store.open import load_tokens, with_lists

        classifier = with_lists(load_tokens(model_path), model_path)
        if classifier.lack:
            notes.append(classifier.lack)
        strange = None
        if sure is not None and not begins_like_mail(data):
            from nbspam.sources.foreign import strangeness  # late: nearly every message is mail

            if strange := strangeness(data):
                notes.append(f"{_NOT_LEARNED}: {strange}")
        least = sure if whole and not strange else None
        rule = rule_of(classifier)
        _, pieces, label = judge_and_mark(classifier, rule, wanted, data, whole, least)
        if label is not None:
            lesson = label, data
        return pieces

    copy_message(source, sink, rewrite)
    if lesson is not None:
        try:
            _learn(model_path, *lesson, day)
        except Exception as error:  # even bugs and MemoryError: mail that is through stays so
            why = error if isinstance(error, NbspamError | OSError) else repr(error)
            notes.append(f"{_NOT_LEARNED}: {why}")
    return notes


def _learn(model_path: str, label: str, data: bytes, day: int) -> None:
    """Learn a message that has passed, unless the model knows it."""
    from nbspam.sharing.sharer import shared_lessons
    from nbspam.sources.items import Item
    from nbspam.store.model import StoredModel

    with shared_lessons(StoredModel(model_path)) as model:
        model.patience = _PATIENCE
        item = Item("-", label, data)
        model.learn_each([item], day=day, is_wanted=lambda _, filed: filed.label is None)

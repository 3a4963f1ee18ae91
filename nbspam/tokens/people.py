"""Facts about the sender as evidence: whether a message answers its user, and who wrote it.

A fact is a token like a word, and training learns its weight.  Words of a message cannot
pose as facts, because the kind of a token is a part of its key.  Messages are judged as they
arrived: an address counts as known only from the time of the first message to it on.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from math import inf

from nbspam.errors import EmptyError, InputError, UsageError
from nbspam.mail.addresses import Check, Correspondence, Mailbox, are_genuine, read_correspondence
from nbspam.mail.digest import mail_digest
from nbspam.mail.headers import Field, OpenedMessage, open_message
from nbspam.mail.message import Message
from nbspam.sent_mail import ADDRESS, ID, NAME, OWN, SentMail, SentMessage, sent_fact, sent_mail_of
from nbspam.settings import Settings
from nbspam.sources.arrival import seconds_of
from nbspam.sources.items import Item, read_items
from nbspam.sources.mailboxes import sent_folders
from nbspam.tokens.normalize import normalize

_MIN_WORDS = 2  # of a name that tells who it is
_MAX_CLAIMING = 10  # senders of a message; the time is that of their words times their number


def with_facts(message: Message, opened: OpenedMessage, settings: Settings) -> Message:
    """Return a message with the facts about its sender; opened: the message as it was read."""
    head = read_correspondence(opened)
    fields = list(message.fields)
    server = settings.authserv_id
    checks = None if server is None else head.checks(server)
    if settings.sent_mail is not None:
        facts = " ".join(_facts(head, settings.sent_mail, checks))
        fields.append(Field("people", facts.encode()))
    if server is not None:
        results = dict.fromkeys(f"{check.method}-{check.result}" for check in checks or ())
        fields.append(Field("auth", "\n".join(results).encode()))
    return message._replace(fields=tuple(fields))


def _facts(head: Correspondence, sent: SentMail, checks: list[Check] | None) -> Iterator[str]:
    """Yield the facts of a head; checks: None if the user's server says nothing of it."""

    def knows(kind: int, text: bytes) -> bool:
        since = sent.since(kind, text)
        if since is None:  # as of most senders; to read a date takes a while
            return False
        times = (found for value in head.times if (found := seconds_of(value)) is not None)
        return since <= next(times, inf)  # without a date, after all sent mail

    senders = head.mailboxes(b"from")
    is_known = bool(senders) and all(knows(ADDRESS, each.address) for each in senders)
    # Anybody can write an address: it counts as far as the user's server vouches for it.
    is_genuine = is_known and (checks is None or are_genuine(senders, checks))
    reply = _reply(head, sent, senders)
    if reply == "reply-to-you" or (reply is not None and not is_genuine):
        yield reply
    if not is_known:
        yield "first-contact"
        claims = (claim for each in senders[:_MAX_CLAIMING] for claim in _claims(each))
        if any(knows(*claim) for claim in claims):
            yield "known-name-from-another-address"
    elif checks is not None:
        yield (
            "known-correspondent-authenticated" if is_genuine else "known-address-unauthenticated"
        )
    elif reply == "reply-to-nothing":
        yield "reply-to-nothing-from-a-known-address"
    else:
        yield "known-correspondent"


def _reply(head: Correspondence, sent: SentMail, senders: list[Mailbox]) -> str | None:
    """Return the fact about a message that answers the user, or claims to; else None.

    An answer to others' messages is no fact: anybody can write to the members of a list, and
    training would take it for evidence of ham.
    """
    answered = head.answered
    # An id is proof by itself; the clocks of two machines may differ.
    if any(sent.since(ID, each) is not None for each in answered):
        # What the user wrote to a list is public, and so is its id.
        is_sent_there = (sent.was_sent_to(each, senders[0].address) for each in answered)
        return "reply-to-you" if senders and any(is_sent_there) else "reply-from-a-stranger"
    readers = head.mailboxes(b"to", b"cc") if answered else []
    is_private = readers and all(sent.since(OWN, each.address) is not None for each in readers)
    return "reply-to-nothing" if is_private else None


def _claims(sender: Mailbox) -> Iterator[tuple[int, bytes]]:
    """Yield the name that a sender claims, and addresses in it that are not the sender's."""
    if name := _normal_name(sender.name):
        yield NAME, name
    for word in sender.name.lower().split():
        if b"@" in word and word.strip(b"'\"<>()[],;") != sender.address:
            yield ADDRESS, word.strip(b"'\"<>()[],;")


def _normal_name(name: bytes) -> bytes | None:
    """Return a name's words in lower case, sorted; None if there are too few of them.

    Letters of other alphabets that look like Latin ones are replaced.
    """
    text = name.lower() if name.isascii() else normalize(name)[0]
    words = sorted(word.strip(b".,'\"") for word in text.replace(b",", b" ").split())
    return b" ".join(words) if len(words) >= _MIN_WORDS and b"@" not in text else None


# --- sent mail --------------------------------------------------------------------------------


def knowing_sent_mail(
    settings: Settings, sent: Sequence[str], sources: Iterable[str] = ()
) -> Settings:
    """Return settings that also know sent mail at some paths, or beside sources.

    Raises UsageError.  Without `sent`, these are Maildirs called .Sent or Sent (see
    `mailboxes.sent_folders`).
    """
    if settings.reading != "mail":
        if sent:
            raise UsageError(
                f"--sent {sent[0]}: for mail, and this model is of texts; leave it out"
            )
        return settings
    try:
        found = learned_sent_mail(read_items(sent or sent_folders(sources)))
    except EmptyError:
        if sent:  # a folder that nobody has named may be empty
            raise
        return settings
    known = settings.sent_mail
    both = found.united(known) if found and known else found or known
    return replace(settings, sent_mail=both)


def learned_sent_mail(items: Iterable[Item]) -> SentMail | None:
    """Return the facts of sent mail, None if there are none.

    Items that cannot be read, and texts, tell nothing.
    """
    messages = []
    for item in items:
        if not item.is_text:
            with suppress(InputError):
                messages.append(_sent_message(item.read()))
    return sent_mail_of(messages) or None


def _sent_message(data: bytes) -> SentMessage:
    opened = open_message(data)
    head = read_correspondence(opened)
    facts = {sent_fact(ID, head.own_id)} if head.own_id else set()
    facts |= {sent_fact(OWN, each.address) for each in head.mailboxes(b"from")}
    for each in head.mailboxes(b"to", b"cc", b"bcc"):
        facts.add(sent_fact(ADDRESS, each.address))
        if name := _normal_name(each.name):
            facts.add(sent_fact(NAME, name))
    when = next(filter(None, map(seconds_of, head.values.get(b"date", ())[:1])), None)
    return SentMessage(mail_digest(opened), max(int(when or 0), 0), tuple(sorted(facts)))

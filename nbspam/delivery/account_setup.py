"""The first day of an account: its folders, a model of its mail, and what that would do.

Nothing in the account changes.  The newest messages of the inbox are held out of training, so
that their verdicts show what to expect.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from nbspam.arrays import Booleans
from nbspam.classifier.classifier import Classifier
from nbspam.classifier.training import train_classifier
from nbspam.delivery.account_look import KEYWORDS
from nbspam.errors import InputError
from nbspam.evaluation.evaluation import Trial
from nbspam.evaluation.judging import fold_trial, labelled_corpus
from nbspam.imap.accounts import INBOX
from nbspam.imap.session import AccountSession
from nbspam.mail.addresses import Heading, heading
from nbspam.printing import amount_text
from nbspam.settings import PRESETS
from nbspam.sources.files import MAX_MESSAGE
from nbspam.sources.items import Item
from nbspam.tokens.people import learned_sent_mail
from nbspam.verdicts import Explanation, Skipped

MOST_OF_CLASS = 2500  # messages of a class that are learned on the first day
MOST_SENT = 1000
_HELD_OUT = 100  # newest messages of the inbox that are judged instead of learned
_FEWEST = 10  # messages of a class, for ten folds
SETUP_FOLDS = 10
# Unread mail of the inbox is not learned as ham if the folds find spam this probable.  E-362: if
# one in twenty there is spam, 51 of 139 unread spams stay instead of 124; .9 moves more ham.
_SURELY_SPAM = 0.99


class SurveyedFolder(NamedTuple):
    """A folder that matters, and how many messages it has; see `_unmarked`."""

    name: str
    n_messages: int
    n_unread: int


class FirstDay(NamedTuple):
    """A model of an account, how good it is, and its verdicts on the newest mail."""

    classifier: Classifier
    n_learned: Mapping[str, int]  # messages by class
    n_there: Mapping[str, int]  # messages by class in the folders that stand for it
    trial: Trial
    verdicts: tuple[tuple[Explanation, Heading], ...]  # on the newest messages of the inbox
    skipped: tuple[Skipped, ...]


def surveyed(session: AccountSession, spam_folder: str | None) -> dict[str, SurveyedFolder]:
    """Return the folders that matter, by use: inbox, junk, archive and sent.

    spam_folder: its name; None: found by its use or usual name.  Raises InputError if there is too
    little mail to learn from.
    """
    folders = session.folders()
    uses: dict[str, str | None] = {each.use: each.name for each in reversed(folders)}
    uses["inbox"] = session.url.folder or INBOX
    uses["junk"] = session.junk_folder(folders, spam_folder)
    found: dict[str, SurveyedFolder] = {}
    for use in ("inbox", "junk", "archive", "sent"):
        if (name := uses.get(use)) and name not in (each.name for each in found.values()):
            session.open(name)
            n_unread = len(_unmarked(session, use, "UNSEEN")) if use == "junk" else 0
            found[use] = SurveyedFolder(name, len(_unmarked(session, use)), n_unread)
    where, junk, inbox = session.url.account, found.get("junk"), found["inbox"]
    if junk is None:
        raise InputError(f"{where}: no junk folder; name one by --spam-folder")
    for folder, fewest, advice in (
        (junk, _FEWEST, f"put {_FEWEST} or more there, or begin with"),
        (inbox, 2 * _FEWEST, "begin with"),
    ):
        if folder.n_messages < fewest:
            raise InputError(
                f"{where}: {folder.name} has {amount_text(folder.n_messages, 'messages')}, too few"
                f" to learn from; {advice}: nbspam sort {session.url}"
            )
    return found


def _unmarked(session: AccountSession, use: str, *criteria: str) -> Sequence[int]:
    """Return the UIDs of the open folder's messages without a mark of the other class."""
    marks = KEYWORDS["ham" if use == "junk" else "spam"]
    return session.uids(*criteria, *(word for mark in marks for word in ("UNKEYWORD", mark)))


def first_day(session: AccountSession, survey: Mapping[str, SurveyedFolder], day: int) -> FirstDay:
    """Return a model of a sample of an account by date, and what it would do.

    survey: from `surveyed`.  day: today, in days since 1970-01-01.
    """
    uids: dict[str, Sequence[int]] = {}
    names = {use: folder.name for use, folder in survey.items()}
    for use, name in names.items():
        session.open(name)
        uids[use] = _unmarked(session, use)
    newest = uids["inbox"][-min(_HELD_OUT, len(uids["inbox"]) // 4) :]
    uids["inbox"] = uids["inbox"][: -len(newest)]
    wanted = {use: uids[use] for use in ("inbox", "archive") if uids.get(use)}
    n_ham = sum(map(len, wanted.values()))
    chosen = [("junk", "spam", spread(uids["junk"], MOST_OF_CLASS))]
    chosen += [
        (use, "ham", spread(there, -(-MOST_OF_CLASS * len(there) // max(n_ham, MOST_OF_CLASS))))
        for use, there in wanted.items()
    ]

    def items(parts: Sequence[tuple[str, str | None, Sequence[int]]]) -> Iterator[Item]:
        for use, label, some in parts:
            folder = session.open(names[use])
            url = session.url.of_folder(folder.name)
            for batch in session.messages(some, MAX_MESSAGE):
                for uid, data in batch.data.items():
                    yield Item(str(url.of_message(folder.validity, uid)), label, data)

    settings = PRESETS["mail"]
    if "sent" in uids:
        sent = learned_sent_mail(items([("sent", None, uids["sent"][-MOST_SENT:])]))
        settings = replace(settings, sent_mail=sent)
    data, skipped = labelled_corpus(items(chosen), settings, 1)
    trial = fold_trial(data, settings, SETUP_FOLDS, 0)
    learned = np.flatnonzero(~_doubtful(session, names["inbox"], trial))
    training = data.training(learned, settings.weighting)
    classifier = train_classifier(training, settings, day)
    verdicts = []
    for item in items([("inbox", None, newest)]):
        (explanation,) = classifier.explanations([item])
        if isinstance(explanation, Explanation):
            verdicts.append((explanation, heading(item.read())))
    n_learned = Counter(data.classes[number] for number in data.y[learned])
    n_there = {"spam": len(uids["junk"]), "ham": n_ham}
    skipped += tuple(Skipped(str(url), why) for url, why in session.refused.items())
    return FirstDay(classifier, n_learned, n_there, trial, tuple(verdicts), skipped)


def _doubtful(session: AccountSession, inbox: str, trial: Trial) -> Booleans:
    """Return which messages are unread in the inbox and seem to be spam, shape (n_docs,)."""
    url, validity = session.url.of_folder(inbox), session.open(inbox).validity
    unread = {str(url.of_message(validity, uid)) for uid in _unmarked(session, "inbox", "UNSEEN")}
    spam = trial.probability[:, trial.classes.index("spam")]
    return np.array([name in unread for name in trial.names]) & (spam >= _SURELY_SPAM)


def spread(uids: Sequence[int], most: int) -> Sequence[int]:
    """Return at most so many UIDs, spread evenly over their times of arrival."""
    if len(uids) <= most:
        return uids
    return [uids[number * len(uids) // most] for number in range(most)]

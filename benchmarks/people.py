"""Measure what a user's sent mail and server tell of senders, on a mailbox that is made up.

usage: python benchmarks/people.py CORPUS [--messages 2000] [--seeds 3]

CORPUS is a folder with ham/ and spam/, whose texts the mailbox has (see made_mailbox.py).  The
first two thirds of the mail are learned, and the last third is judged: with and without sent
mail, with and without her server's checks of where mail is from.  Then spams that are called spam
pose as answers, as in attacks.py.  The figures are of all mailboxes together.
"""

import argparse
import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from attack_forms import THREAD, Form
from attack_mail import Good, Mail, as_text, read_mail, thread_head
from attacks import labels_of
from made_mailbox import SERVER, SHARES, Letter, Mailbox, Texts, checked

from nbspam.classifier.classifier import Classifier
from nbspam.classifier.combine import PEOPLE, Combination
from nbspam.classifier.training import train_classifier
from nbspam.counts.counting import count_items
from nbspam.evaluation.metrics import auc
from nbspam.sent_mail import SentMail
from nbspam.settings import PRESETS
from nbspam.sources.items import Item
from nbspam.tokens.people import learned_sent_mail
from nbspam.verdicts import Answer

WAYS = "neither", "checks", "sent mail", "both"
N_ATTACKED = 150
_HOST = re.compile(rb"^Received: from mail\.(\S+)", re.MULTILINE)
LOST = 0.05  # share of her messages that are not in the folder of sent mail


def texts_of(corpus: Path, seed: int) -> Texts:
    """Return subjects and plain texts of the corpus, in an order of the seed's."""
    found: Texts = {}
    for label in ("ham", "spam"):
        paths = sorted((corpus / label).iterdir())
        order = np.random.default_rng(seed).permutation(len(paths))
        mails = (read_mail(paths[i].read_bytes()) for i in order.tolist())
        found[label] = [
            (mail.subject, as_text(mail.text) if mail.is_html else mail.text)
            for mail in mails
            if mail is not None
        ]
    return found


def trained(letters: list[Letter], sent: list[Letter]) -> dict[str, Classifier]:
    """Return the models that know neither sent mail nor her server's checks, one, and both."""
    items = [Item(letter.kind, letter.label, letter.data) for letter in letters]
    settings = [
        replace(PRESETS["mail"], sent_mail=known, authserv_id=server)
        for known in (None, known_from(sent))
        for server in (None, SERVER)
    ]
    models = (train_classifier(count_items(items, each), each) for each in settings)
    return dict(zip(WAYS, models, strict=True))


def known_from(sent: list[Letter]) -> SentMail | None:
    """Return the facts of sent mail."""
    return learned_sent_mail(Item("sent", None, letter.data) for letter in sent)


def judge(model: Classifier, letters: list[Letter]) -> tuple[list[str], list[float]]:
    """Return labels and log-odds of spam."""
    items = [Item(letter.kind, None, letter.data) for letter in letters]
    answers = [answer for answer in model.answers(items) if isinstance(answer, Answer)]
    verdicts = model.verdicts(answers)
    return [v.label for v in verdicts], [float(a.joint[1] - a.joint[0]) for a in answers]


def attacked(
    models: dict[str, Classifier], letters: list[Letter]
) -> Iterator[tuple[str, str, list[bool]]]:
    """Yield form, way and whether each attacked spam passes."""
    heads = [head for each in letters if each.label == "ham" and (head := thread_head(each.data))]
    texts = [
        mail.text for each in letters if each.label == "ham" and (mail := read_mail(each.data))
    ]
    good = Good((), tuple(t.strip() for t in texts if 300 < len(t) < 20_000), tuple(heads))
    spams = [
        read_mail(each.data, number) for number, each in enumerate(letters) if each.kind == "spam"
    ]
    mails: list[Mail] = [mail for mail in spams if mail is not None][:N_ATTACKED]
    for name, form in forms(letters).items():
        data = [form(mail, good) for mail in mails]
        for way, model in models.items():
            before = labels_of(model, [mail.message(mail.part()) for mail in mails])
            after = labels_of(model, data)
            pairs = zip(before, after, strict=True)
            yield name, way, [late != "spam" for early, late in pairs if early == "spam"]


def forms(letters: list[Letter]) -> dict[str, Form]:
    """Return the forms of attack: those of attacks.py, and such as know more of the user."""
    replies = b"\n".join(each.data for each in letters if each.kind == "reply")
    known = re.findall(rb"^From: (\w.*>)$", replies, re.MULTILINE)

    def with_header(form: Form, name: bytes, values: list[bytes]) -> Form:
        def changed(mail: Mail, good: Good) -> bytes:
            value = values[mail.number % len(values)]
            data = _with_line(form(mail, good), name, name + b": " + value)
            if name != b"From":
                return data
            host = _HOST.search(mail.head)
            assert host
            results = checked(host[1].decode(), value.rpartition(b"@")[2].rstrip(b">").decode())
            return _with_line(data, b"Authentication-Results", results.rstrip().encode())

        return changed

    found = dict(THREAD)
    for name, form in THREAD.items():
        found[f"{name}, to a list"] = with_header(form, b"To", [b"python@lists.example"])
        found[f"{name}, from a known address"] = with_header(form, b"From", known)
    return found


def _with_line(data: bytes, name: bytes, line: bytes) -> bytes:
    """Return a message with another line in place of the first header of a name."""
    return re.sub(rb"^" + name + rb": .*", lambda _: line, data, count=1, flags=re.MULTILINE)


def show(title: str, cells: Sequence[str]) -> None:
    print(f"{title:54}" + "".join(f"{cell:>12}" for cell in cells))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("corpus", type=Path, help="folder with ham/ and spam/")
    parser.add_argument("--messages", type=int, default=2000, help="[default: 2000]")
    parser.add_argument("--seeds", type=int, default=3, help="number of mailboxes  [default: 3]")
    options = parser.parse_args()
    wrong: dict[tuple[str, str], list[bool]] = defaultdict(list)
    passes: dict[tuple[str, str], list[bool]] = defaultdict(list)
    ranked: dict[str, list[float]] = defaultdict(list)
    worth: list[float] = []
    for seed in range(options.seeds):
        box = list(Mailbox(texts_of(options.corpus, seed), seed).letters(options.messages))
        mail, sent = ([x for x in box if (x.kind == "sent") is s] for s in (False, True))
        n = len(mail) * 2 // 3
        lost = np.random.default_rng(seed).random(len(sent)) < LOST
        sent = [x for x, is_lost in zip(sent, lost.tolist(), strict=True) if not is_lost]
        models = trained(mail[:n], [x for x in sent if x.when < mail[n].when])
        for way in WAYS[2:]:
            now = replace(models[way].settings, sent_mail=known_from(sent))
            models[way] = replace(models[way], settings=now)
        fit = models["both"].fit
        assert isinstance(fit, Combination)
        worth.append(float(fit.worth[PEOPLE]))
        for way, model in models.items():
            labels, scores = judge(model, mail[n:])
            for letter, label in zip(mail[n:], labels, strict=True):
                wrong[letter.kind, way].append(label != letter.label)
            truth = np.array([letter.label == "spam" for letter in mail[n:]])
            ranked[way].append(1 - auc(truth, np.array(scores)))
        for form, way, found in attacked(models, mail[n:]):
            passes[form, way] += found
    print(f"{options.seeds} mailboxes of {options.messages} messages, texts of {options.corpus}")
    print(f"worth of the group: {', '.join(f'{each:.2f}' for each in worth)}\n")
    show("wrong of", WAYS)
    for kind in (*SHARES, "all"):
        rows = [
            [
                e
                for (k, w), found in wrong.items()
                if w == way and kind in (k, "all")
                for e in found
            ]
            for way in WAYS
        ]
        show(f"{kind:26}{len(rows[0]):>8}", [f"{sum(row)}" for row in rows])
    show("(1-AUC) %", [f"{100 * np.mean(ranked[way]):.4f}" for way in WAYS])
    print()
    for form in dict.fromkeys(form for form, _ in passes):
        print(
            f"{form:54}" + "".join(f"{100 * np.mean(passes[form, way]):>10.1f} %" for way in WAYS)
        )


if __name__ == "__main__":
    main()

"""Hostile inputs by the hundred thousand: nothing raises, nothing hangs, no law is broken.

Every input (see hostile.py) is judged as mail, in batches; a share of them goes through LAWS, all
else that mail meets.  Warnings are errors.  A failure tells the number of its input, and
`STRESS_FIRST=number STRESS_INPUTS=1` tries that one alone, through all laws.  STRESS_INPUTS and
STRESS_SEED, in the environment, are how many inputs are tried and which.
"""

import email
import io
import json
import math
import os
import re
import signal
import tempfile
import time
import traceback
import warnings
from contextlib import contextmanager, redirect_stderr, redirect_stdout, suppress
from functools import cache, cached_property, partial
from itertools import islice
from pathlib import Path
from random import Random

import numpy as np
import pytest

from nbspam.charsets import check_encoding
from nbspam.classifier.classifier import judge_and_mark
from nbspam.cli.main import exit_status
from nbspam.decision import default_rule
from nbspam.errors import NbspamError
from nbspam.mail.digest import digest_of
from nbspam.mail.message import parse_message
from nbspam.mail.parts import shared
from nbspam.mail.verdict_headers import VERDICT, HeaderChoices, names_of, with_headers
from nbspam.settings import TokenSettings
from nbspam.sources.arrival import date_of
from nbspam.sources.items import FORMATS, TABLE_FORMATS, Item, SourceOptions, read_items
from nbspam.sources.mailboxes import mbox_messages, unwrap
from nbspam.sources.records import read_records
from nbspam.store import text
from nbspam.store.library import train
from nbspam.store.model import StoredModel
from nbspam.store.open import load_tokens, save_classifier
from nbspam.tokens.tokenizer import tokenize
from stress.hostile import PATTERNS, Inputs, mutated, repeated
from support import ROOT, standard_input
from tokens.test_normalize import assert_equal_in_context
from tokens.test_tokenizer import expected, spelt

SEED = int(os.environ.get("STRESS_SEED", "1"))
FIRST = int(os.environ.get("STRESS_FIRST", "0"))
INPUTS = int(os.environ.get("STRESS_INPUTS", "100000"))
CHUNK = 2048  # inputs of one test
BATCH = 64  # inputs that are judged together
# The work on an input is broken off after so many seconds of processor time.
PATIENCE, PATIENCE_PER_KB = 5.0, 0.2
FROM = b"From a@b.example Thu Aug 22 12:36:23 2002\n"
COMMANDS = ("classify", "classify --json", "explain -n 9", "explain --json")
COMMANDS += ("tokens", "tokens --json", "predict")
WANTED = HeaderChoices(bogosity=True, spam_status=True, subject_tag="[SPAM] ", explain=True)


class Hang(BaseException):
    """Raised where the work is broken off; nothing in the program catches it."""


class BrokenLawError(AssertionError):
    """A law that does not hold."""


def require(holds, law):
    if not holds:
        raise BrokenLawError(law)


@contextmanager
def broken_off(seconds):
    """Raise Hang in the block after this much processor time."""

    def stop(*_):
        raise Hang

    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


# ---- laws ----


class Checker:
    """The models that inputs are judged by, and the laws that are checked."""

    def __init__(self, inputs, mails):
        self.inputs = inputs
        items = [Item(f"#{n}", *each) for n, each in enumerate(mails)]
        self.mail = _classifier(items)
        self.few = items[:: 1 + len(items) // 100]
        self.before = self.mail.judge(self.few).joint
        memory_disk = "/dev/shm" if Path("/dev/shm").is_dir() else None
        self.shared = tempfile.TemporaryDirectory(prefix="fuzz-", dir=memory_disk)

    @cached_property
    def folder(self):
        """A folder of this process."""
        folder = Path(self.shared.name) / str(os.getpid())
        folder.mkdir()
        return folder

    @cached_property
    def others(self):
        """Models of other kinds."""
        texts = [item._replace(is_text=True) for item in self.few]
        thirds = [item._replace(label="abc"[n % 3]) for n, item in enumerate(self.few)]
        return [
            _classifier(texts),  # with pairs and runs of characters
            _classifier(thirds),
            _classifier(self.few, model="bernoulli"),
            _classifier(self.few, model="multinomial", weighting="log-length"),
        ]

    def judge(self, data):
        judged = self.mail.judge([Item(f"#{n}", None, each) for n, each in enumerate(data)])
        require(judged.joint.shape == (len(data), 2), "every input has an answer")
        require(np.isfinite(judged.joint).all(), "answers are finite")

    def message(self, number, data, rng):
        """Parse an input, and a copy of it with other line ends."""
        found = parse_message(data)
        for field in found.fields:
            field.text.decode()  # does not raise
        defects = dict(found.fields).get("defect", b"").split()
        require(defects == sorted(set(defects)), "defects are sorted")
        require(parse_message(with_crlf(data)) == found, "line ends do not matter")

    def tokens(self, number, data, rng):
        """Compare the tokens with those of the definition."""
        if len(data) > 1 << 16:
            return  # the definition is slow
        settings = TokenSettings()
        if rng.random() < 0.5:
            settings = TokenSettings(
                rng.choice(("", "$'-", "_")),
                rng.choice((1, 2, 3)),
                rng.choice((1, 8, 40)),
                *(rng.random() < 0.5 for _ in range(3)),
            )
        messages = [parse_message(each) for each in (data, self.inputs(number + 1)[:4096])]
        require(spelt(tokenize(messages, settings)) == expected(messages, settings), "tokens")

    def explanation(self, number, data, rng):
        """Explain a verdict: shares add up to the score, which is the one of a batch."""
        item = Item("-", None, data)
        for classifier in (self.mail, rng.choice(self.others)):
            explanation = classifier.explain(item)
            shares = [row.contribution for row in explanation.evidence]
            total = explanation.constant + math.fsum(shares)
            close = math.isclose(total, explanation.score, rel_tol=1e-6, abs_tol=1e-6)
            require(close, f"shares add up: {total} and {explanation.score}")
            require(explanation.brief(10).isprintable(), "what is printed is printable")
            near = [Item("-", None, self.inputs(number + k)) for k in (1, 2)]
            joint = classifier.judge([near[0], item, near[1]]).joint
            alone = classifier.judge([item]).joint[0]
            require(np.allclose(joint[1], alone, rtol=1e-9, atol=1e-9), "alone as in a batch")
            posterior = explanation.verdict.posterior.values()
            require(math.isclose(sum(posterior), 1.0, abs_tol=1e-9), "probabilities sum to 1")

    def digest(self, number, data, rng):
        """Compare the digests of copies, and of other messages."""
        for is_text in (False, True):
            same = digest_of(with_crlf(data), is_text) == digest_of(data, is_text)
            require(same, "the digest of a copy with CRLF")
        head = b"Message-ID: <1@example.org>\nSubject: x\n"
        plain = head + b"\n" + data
        added = b"Received: from a by b;\n\tThu, 22 Aug 2002 12:36:23 +0000\nX-Spam-Status: No\n"
        require(digest_of(plain) == digest_of(added + plain), "the digest of a delivered copy")
        require(digest_of(plain) == digest_of(FROM + plain), "the digest in a mailbox")
        require(digest_of(plain) != digest_of(plain + b"\nmore"), "the digest of another body")
        other = head.replace(b"1", b"2")
        require(digest_of(plain) != digest_of(other + b"\n" + data), "the digest of another id")
        # Digests ignore lines that are empty at the end; in UTF-16 their ends may be a character.
        one, changed = (head + each.rstrip() for each in (data, mutated(rng, data, 1)))
        if digest_of(one) == digest_of(changed):
            require(body_of(one) == body_of(changed), "messages of one digest say the same")

    def headers(self, number, data, rng):
        """Write verdicts into the head: readers find them, and all else stays."""
        verdict, pieces, _ = judge_and_mark(
            self.mail, default_rule(("ham", "spam"), True), WANTED, data, sure=0.99
        )
        out = b"".join(pieces)
        # Without From_ lines: the standard library does not know those with a ">".
        read = email.message_from_bytes(b"".join(pieces[1:]))
        for name in names_of(WANTED)[:2]:
            require(len(read.get_all(name, [])) == 1, f"{name} is there once")
        require(str(read[VERDICT]).startswith(f"{verdict.label}, "), "the verdict is readable")
        ours = [(VERDICT, "ham")]
        envelope, _, rest = with_headers(data, ours, names_of(WANTED))
        if not re.search(rb"x-(nbspam|bogosity|spam)", data, re.IGNORECASE):
            require(envelope + rest == data, "all other bytes stay")
            body = re.search(rb"(?s)\n\n.*\Z", data)
            require(body is None or out.endswith(body[0]), "the body stays")
            cut = data[: len(data) // 2]
            envelope, _, rest = with_headers(cut, ours, names_of(WANTED), whole=False)
            require(envelope + rest == cut, "the bytes of a beginning stay")

    def mailbox(self, number, data, rng):
        """Split an input as a mailbox, and read it back from a mailbox."""
        size = rng.choice((1, 7, 100, 1 << 18)) if len(data) < 8192 else 1 << 12
        split = list(mbox_messages(data[at : at + size] for at in range(0, len(data), size)))
        require(split == list(mbox_messages([data])), "chunks do not matter")
        found = b"".join(split)
        blank = data.removesuffix(found)  # before the first message
        require(data == blank + found and not blank.strip(), "nothing is lost")
        stored = [data, self.inputs(number + 1), self.inputs(number + 2)]
        # A CRLF at the end is taken for one of the mailbox, where all lines end so.
        stored = [each.rstrip(b"\r\n") + b"\n" for each in stored]
        box = b"".join(FROM + re.sub(rb"(?m)^(>*From )", rb">\1", each) + b"\n" for each in stored)
        require([unwrap(raw) for raw in mbox_messages([box])] == stored, "a mailbox keeps mail")

    def sources(self, number, data, rng):
        """Read an input as everything that a file can be; errors are those of users."""
        encoding = rng.choice((None, None, "utf-8", "utf-16", "gb18030", "iso-2022-jp", "cp1252"))
        if encoding is not None:
            check_encoding(encoding)
        for form in (None, *FORMATS):
            options = SourceOptions(form, encoding=encoding if form in TABLE_FORMATS else None)
            with standard_input(data):
                items = _allowed(read_items(["-"], options=options))
            are_read = (item.data is not None or item.problem for item in items)
            require(form == "trec" or all(are_read), "items or why they are none")
        for form in (None, "csv", "tsv", "jsonl"):
            options = SourceOptions(form, encoding=encoding)
            names = rng.choice(((), ("text", "label")))
            with standard_input(data):
                _allowed(read_records(["-"], options, names))
        for name in ("cur/1:2,S", "new/2", "Inbox", "x.csv", "x.mbox", "index", "y.jsonl"):
            (self.folder / name).parent.mkdir(exist_ok=True)
            (self.folder / name).write_bytes(data)
        for path in (self.folder, *self.folder.iterdir()):
            items = _allowed(read_items([str(path)]))
            _allowed(item.read() for item in items)

    def learning(self, number, data, rng):
        """Learn inputs and un-learn them: the counts are the same as before."""
        living = StoredModel.in_memory(self.mail)
        before = counts_of(self.mail)
        texts = [data, self.inputs(number + 1), self.inputs(number + 2)]
        items = [Item(f"#{n}", "spam", each) for n, each in enumerate(texts)]
        learned = living.learn(items, day=20_000)
        known = learned.already_known + learned.moved + len(learned.skipped)
        require(learned.learned + known == 3, "all are learned")
        if known:
            return  # one of them is a message of the model, or neither mail nor text
        living.classifier().explain(items[0])
        moved = living.relabel(items, "ham", day=20_001)
        require(moved.moved == 3, "all are moved")
        require(living.unlearn(items, day=20_002).unlearned == 3, "all are un-learned")
        require(counts_of(living.classifier()) == before, "counts are as before")

    def training(self, number, data, rng):
        """Train on inputs, write the model as a file and as text, and read it again."""
        texts = [data, *(self.inputs(number + k) for k in range(1, 12))]
        items = [Item(f"#{n}", ("ham", "spam")[n % 2], each) for n, each in enumerate(texts)]
        if len({digest_of(each) for each in texts}) < len(texts):
            return  # a message in both classes is in the last one
        is_text = rng.random() < 0.5
        items = [item._replace(is_text=is_text) for item in items]
        model = _classifier(items)
        lines = list(text.model_lines(model))
        again = text.model_of_lines(lines, "lines")
        require(list(text.model_lines(again)) == lines, "export and import keep a model")
        if not is_text:
            require(list(text.bogofilter_lines(model)), "bogofilter's lines")
        path = str(self.folder / "model")
        save_classifier(path, model)
        require(list(text.model_lines(load_tokens(path))) == lines, "a file keeps a model")
        more = [Item("#", "spam", self.inputs(number + k), is_text) for k in (12, 13, 14)]
        on_disk = StoredModel(path)
        on_disk.learn(more, day=20_001)
        learned = load_tokens(path)
        require(counts_of(learned) == counts_of(on_disk.classifier()), "a journal keeps changes")

    def commands(self, number, data, rng):
        """Run commands on an input: they succeed, and print nothing that moves a cursor."""
        path = str(self.folder / "x.eml")
        Path(path).write_bytes(data)
        for line in map(str.split, COMMANDS):
            out, err = io.BytesIO(), io.StringIO()
            with redirect_stdout(io.TextIOWrapper(out, "utf-8")) as stream, redirect_stderr(err):
                model = [] if line[0] == "tokens" else ["-m", self.model]
                status = exit_status([*line, *model, path])
                stream.flush()
            shown = err.getvalue()
            require(status == 0, f"{line}: status {status}: {shown}")
            require(all(each.startswith("nbspam: ") for each in shown.splitlines()), shown)
            text = out.getvalue().decode()
            require(re.sub(r"[\n\t]", "", text + shown).isprintable(), f"{line}: what is printed")
            if "--json" in line:
                [json.loads(each) for each in text.splitlines()]
        Path(path).unlink()

    @cached_property
    def model(self):
        path = str(self.folder / "mail.nbspam")
        save_classifier(path, self.mail)
        return path

    def unchanged(self):
        """Judge some mail again: what was read in between must not matter."""
        joint = self.mail.judge(self.few).joint
        require(np.array_equal(joint, self.before), "verdicts on other mail are as before")


# The laws, and of how many inputs one goes through each: (checker, number, input, random numbers).
LAWS = {
    Checker.message: 16, Checker.digest: 16, Checker.headers: 48, Checker.explanation: 240,
    Checker.tokens: 160, Checker.mailbox: 32, Checker.sources: 120, Checker.learning: 1000,
    Checker.commands: 2000, Checker.training: 8000,
}  # fmt: skip


def _classifier(items, **choices):
    return train(items, day=20_000, **choices).classifier


def _allowed(things):
    """Return at most a thousand things that are read; fewer if the rest is refused."""
    found = []
    with suppress(NbspamError):
        found.extend(islice(things, 1000))
    return found


def with_crlf(data):
    return re.sub(rb"\r?\n", b"\r\n", data)  # a bare CR is not always a line end


def body_of(data):
    """Return the words of a message's text by origin, without those of its first head."""
    head, *others = parse_message(data).fields
    words = {}
    if others and others[0].origin == "body" and others[0].text in head.text:
        del others[0]  # the subject
    for origin, shown in others:
        if origin in ("body", "hidden", "alt", "url"):
            words.setdefault(origin, []).extend(re.sub(rb"(?m)^>+From ", b"From ", shown).split())
    return {origin: found for origin, found in words.items() if found}


def counts_of(classifier):
    """Return the counts of a model as plain values, without tokens that have none."""
    table = classifier.table
    some = table.document_frequency > 0
    keys = table.vocabulary.keys[some]
    order = np.argsort(keys)
    return (
        table.class_count.tolist(),
        keys[order].tolist(),
        table.feature_count[some][order].tolist(),
        table.document_frequency[some][order].tolist(),
    )


# ---- running ----


def embedded_mail():
    paths = sorted((ROOT / "corpora" / "mail").rglob("*.eml"))
    return [(path.parent.name, path.read_bytes()) for path in paths]


@cache
def material(seed):
    """Return the inputs that are made of the embedded mail and the hostile mail of tests."""
    evidence = sorted((ROOT / "tests" / "evidence").glob("*.eml"))
    mails = [data for _, data in embedded_mail()]
    return Inputs(seed, [*mails, *(path.read_bytes() for path in evidence)])


@cache
def checker_of(seed, one_of=1):
    """Return a checker whose model has learned one of so many embedded messages."""
    return Checker(material(seed), embedded_mail()[::one_of])


def failure_of(work, size):
    """Return in words how some work on so many bytes failed, None if it did not."""
    try:
        with warnings.catch_warnings(), broken_off(PATIENCE + PATIENCE_PER_KB * size / 1024):
            warnings.simplefilter("error")
            work()
    except Hang:
        return "hangs"
    except BrokenLawError as error:
        return f"law: {error}"
    except Exception as error:
        frames = traceback.extract_tb(error.__traceback__)
        at = ([frame for frame in frames if "/nbspam/" in frame.filename] or frames)[-1]
        return f"{type(error).__name__}: {str(error)[:200]!r} ({at.filename}:{at.lineno})"
    return None


def judged(checker, batch):
    """Judge a batch; return failures by number of an input: a batch that fails is halved."""
    data = [each for _, each in batch]
    failure = failure_of(lambda: checker.judge(data), sum(map(len, data)))
    if failure is None:
        return []
    if len(batch) == 1:
        return [(batch[0][0], f"judge: {failure}")]
    half = len(batch) // 2
    return [*judged(checker, batch[:half]), *judged(checker, batch[half:])] or [
        (batch[0][0], f"judge: {failure}, but only together with input {batch[-1][0]}")
    ]


def failures(checker, numbers):
    """Try inputs; return (number, what failed) of those that failed."""
    found = []
    for start in range(0, len(numbers), BATCH):
        batch = [(number, checker.inputs(number)) for number in numbers[start : start + BATCH]]
        found += judged(checker, batch)
        for number, data in batch:
            for law, one_of in LAWS.items():
                if len(numbers) == 1 or number % one_of == 0:
                    work = partial(law, checker, number, data, checker.inputs.rng(~number))
                    failure = failure_of(work, len(data))
                    found += [] if failure is None else [(number, f"{law.__name__}: {failure}")]
    failure = failure_of(checker.unchanged, 1 << 16)
    return found if failure is None else [*found, (numbers[0], f"afterwards: {failure}")]


@pytest.mark.parametrize("first", range(FIRST, FIRST + INPUTS, CHUNK))
def test_hostile_inputs_raise_nothing_and_break_no_law(first):
    numbers = range(first, min(first + CHUNK, FIRST + INPUTS))

    assert failures(checker_of(SEED), numbers) == []


def test_time_is_linear_in_patterns():
    checker, rule = checker_of(SEED), default_rule(("ham", "spam"), True)

    def seconds(data):
        start = time.process_time()
        judge_and_mark(checker.mail, rule, WANTED, data)
        digest_of(data)
        checker.mailbox(0, data, Random(0))
        checker.sources(0, data, Random(0))
        return time.process_time() - start

    def least(data):
        return min(seconds(data) for _ in range(3))

    drawn = {n: lambda size, n=n: repeated(Random(n), size) for n in range(100)}
    ratios = {
        name: least(pattern(400_000)) / least(pattern(100_000))
        for name, pattern in (PATTERNS | drawn).items()
    }
    assert {name: ratio for name, ratio in ratios.items() if ratio > 8} == {}


def test_shortening_takes_linear_time():
    def seconds(text):
        start = time.process_time()
        shared([text, text], [True, False], 100_000)
        return time.process_time() - start

    for scrap in (b"<!--", b"<style>", b"<script", b"a" * 255 + b" ", b" ", b"<", b"\n", b"\x80"):
        long, short = (scrap * (size // len(scrap)) for size in (8_000_000, 2_000_000))
        assert seconds(long) / seconds(short) < 8, scrap


@pytest.mark.parametrize("piece", b"(| |-|1|Date: |\n |:|a,|\r\n".split(b"|"))
def test_no_long_date_takes_long(piece):
    start = time.process_time()
    date_of(b"Date: " + piece * 1_000_000)
    assert time.process_time() - start < 1


@pytest.mark.parametrize("start", range(0, 0x110000, 0x22000))
def test_every_code_point_has_the_form_that_the_definition_gives_it(start, monkeypatch):
    context = "{}\na{}e\n中{}中\né\u0323{}{}a"
    assert_equal_in_context(range(start, start + 0x22000), context, monkeypatch)

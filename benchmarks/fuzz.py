"""A million hostile inputs: no exception, no hang, no law broken.

    python benchmarks/fuzz.py [--inputs 1000000] [--seed 1] [--jobs 2] [--keep FOLDER]
    python benchmarks/fuzz.py --seed 1 --first NUMBER --inputs 1
    python benchmarks/fuzz.py --linear

Every input (see `hostile.py`) is judged as mail, in batches: it is parsed, cut into tokens, and
gets its score.  A share of the inputs goes through everything else that mail meets, and laws are
checked: see LAWS.  Warnings are errors.  An input is a hang if it takes longer than a bound of
processor time.  What fails is printed with its number and kept in a folder; the second form
repeats a single input, through all laws.

The third form times each pattern of `hostile.PATTERNS` at two lengths, one four times the other:
a ratio above 8 is not linear.

Exits 1 if anything failed.
"""

import argparse
import email
import io
import json
import math
import os
import re
import resource
import signal
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout, suppress
from functools import cached_property
from itertools import islice, pairwise
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import numpy as np
from hostile import PATTERNS, Inputs, mutated

from nbspam.classifier.classifier import Classifier, mark
from nbspam.cli.main import exit_status
from nbspam.decision import default_rule
from nbspam.errors import NbspamError
from nbspam.mail.digest import digest_of
from nbspam.mail.head import with_headers, without_headers
from nbspam.mail.message import Message, parse_message
from nbspam.mail.verdict_headers import VERDICT, Wanted
from nbspam.parallel import ordered_map
from nbspam.settings import TokenSettings
from nbspam.sources.encodings import check_encoding
from nbspam.sources.items import FORMATS, TABLE_FORMATS, Item, SourceOptions, read_items
from nbspam.sources.mailboxes import mbox_messages, unwrap
from nbspam.sources.records import read_records
from nbspam.store.learning import LivingModel
from nbspam.store.library import train
from nbspam.store.model import StoredModel
from nbspam.store.open import load_tokens, save
from nbspam.store.text import bogofilter, interchange
from nbspam.tokens.definition import reference_key, reference_tokens
from nbspam.tokens.tokenizer import tokenize

ROOT = Path(__file__).parents[1]
BATCH = 64  # inputs that are judged together
LARGE = 32 << 10  # bytes of an input that is judged alone: the slowest one is among these
CHUNK = 32 * BATCH  # inputs between two reports of a process
# An input that takes longer than this many seconds of processor time hangs.
PATIENCE, PATIENCE_PER_KB = 0.25, 0.01
SLOWER = 20  # times as long, and the work is broken off
KEPT = 3  # inputs of each failure
FROM = b"From a@b.example Thu Aug 22 12:36:23 2002\n"
COMMANDS = (
    ["classify"],
    ["classify", "--json"],
    ["explain", "-n", "9"],
    ["explain", "--json"],
    ["tokens"],
    ["tokens", "--json"],
    ["predict"],
)
WANTED = Wanted(bogosity=True, spam_status=True, subject_tag="[SPAM] ", explain=True, sure=0.99)


class Hang(BaseException):
    """Raised where the work is broken off; nothing in the program catches it."""


class BrokenLawError(AssertionError):
    """A law that does not hold."""


class Failure(NamedTuple):
    """What an input did."""

    number: int
    law: str
    kind: str  # exception, hang or law
    what: str


class Slow(NamedTuple):
    """How long an input took."""

    seconds: float
    size: int
    number: int

    def __str__(self) -> str:
        return f"{1000 * self.seconds:.0f} ms of {self.size / 1024:.1f} KB (input {self.number:,})"


class Totals(NamedTuple):
    """What some inputs did."""

    inputs: int = 0
    size: int = 0
    checks: int = 0
    failures: tuple[Failure, ...] = ()
    slowest: Slow = Slow(0.0, 0, 0)
    memory: int = 0  # KB, at most

    def __add__(self, other: "Totals") -> "Totals":  # type: ignore[override]
        return Totals(
            self.inputs + other.inputs,
            self.size + other.size,
            self.checks + other.checks,
            self.failures + other.failures,
            max(self.slowest, other.slowest),
            max(self.memory, other.memory),
        )

    def __str__(self) -> str:
        kinds = Counter(failure.kind for failure in self.failures)
        return (
            f"{self.inputs:,} inputs, {self.size / 2**20:,.0f} MB, {self.checks:,} checks of laws;"
            f" {kinds['exception']} exceptions, {kinds['hang']} hangs, {kinds['law']} laws broken;"
            f" slowest {self.slowest}; {self.memory / 1024:,.0f} MB of memory"
        )


def patience(size: int) -> float:
    """Return how long an input of this many bytes may take, seconds."""
    return PATIENCE + PATIENCE_PER_KB * size / 1024


@contextmanager
def broken_off(seconds: float) -> Iterator[None]:
    """Raise Hang in the block after this much processor time."""

    def stop(*_: object) -> None:
        raise Hang

    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def require(holds: Any, law: str) -> None:
    """Raise BrokenLawError unless a law holds."""
    if not holds:
        raise BrokenLawError(law)


# ---- laws ----


class Checker:
    """The models that inputs are judged by, and the laws that are checked."""

    def __init__(self, inputs: Inputs, mails: Sequence[tuple[str, bytes]]) -> None:
        self.inputs = inputs
        items = [Item(f"#{n}", *each) for n, each in enumerate(mails)]
        self.mail = _classifier(items)
        self.few = items[:: 1 + len(items) // 100]
        self.before = self.mail.judge(self.few).joint
        self.shared = tempfile.TemporaryDirectory(prefix="fuzz-", dir=_memory_disk())

    @cached_property
    def folder(self) -> Path:
        """A folder of this process."""
        folder = Path(self.shared.name) / str(os.getpid())
        folder.mkdir()
        return folder

    @cached_property
    def others(self) -> list[Classifier]:
        """Models of other kinds."""
        texts = [item._replace(is_text=True) for item in self.few]
        thirds = [item._replace(label="abc"[n % 3]) for n, item in enumerate(self.few)]
        return [
            _classifier(texts),  # with pairs and runs of characters
            _classifier(thirds),
            _classifier(self.few, model="bernoulli"),
            _classifier(self.few, model="multinomial", weighting="log-length"),
        ]

    def judge(self, data: Sequence[bytes]) -> None:
        """Judge inputs as mail, all together."""
        judged = self.mail.judge([Item(f"#{n}", None, each) for n, each in enumerate(data)])
        require(judged.joint.shape == (len(data), 2), "every input has an answer")
        require(np.isfinite(judged.joint).all(), "answers are finite")

    def message(self, number: int, data: bytes, rng: Random) -> None:
        """Parse an input, and a copy of it with other line ends."""
        found = parse_message(data)
        for field in found.fields:
            field.text.decode()  # does not raise
        require(list(found.defects) == sorted(set(found.defects)), "defects are sorted")
        require(parse_message(with_crlf(data)) == found, "line ends do not matter")

    def tokens(self, number: int, data: bytes, rng: Random) -> None:
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
        require(found_tokens(messages, settings) == defined_tokens(messages, settings), "tokens")

    def explanation(self, number: int, data: bytes, rng: Random) -> None:
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

    def digest(self, number: int, data: bytes, rng: Random) -> None:
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
        one, changed = (head + each for each in (data, mutated(rng, data, 1)))
        if digest_of(one) == digest_of(changed):
            require(body_of(one) == body_of(changed), "messages of one digest say the same")

    def headers(self, number: int, data: bytes, rng: Random) -> None:
        """Write verdicts into the head: readers find them, and all else stays."""
        verdict, pieces = mark(self.mail, default_rule(("ham", "spam"), True), WANTED, data)
        out = b"".join(pieces)
        # Without From_ lines: the standard library does not know those with a ">".
        read = email.message_from_bytes(b"".join(pieces[1:]))
        for name in WANTED.names[:2]:
            require(len(read.get_all(name, [])) == 1, f"{name} is there once")
        require(str(read[VERDICT]).startswith(f"{verdict.label}, "), "the verdict is readable")
        ours = [(VERDICT, "ham")]
        marked = b"".join(with_headers(data, ours, WANTED.names))
        if not re.search(rb"x-(nbspam|bogosity|spam)", data, re.IGNORECASE):
            back = without_headers(marked, WANTED.names)
            require(back == data, "headers can be removed again")
            body = re.search(rb"(?s)\n\n.*\Z", data)
            require(body is None or out.endswith(body[0]), "the body stays")
            cut = data[: len(data) // 2]
            envelope, _, rest = with_headers(cut, ours, WANTED.names, whole=False)
            require(envelope + rest == cut, "the bytes of a beginning stay")

    def mailbox(self, number: int, data: bytes, rng: Random) -> None:
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

    def sources(self, number: int, data: bytes, rng: Random) -> None:
        """Read an input as everything that a file can be; errors are those of users."""
        encoding = rng.choice((None, None, "utf-8", "utf-16", "gb18030", "iso-2022-jp", "cp1252"))
        if encoding is not None:
            check_encoding(encoding)
        for form in (None, *FORMATS):
            options = SourceOptions(form, encoding=encoding if form in TABLE_FORMATS else None)
            items = _allowed(read_items(["-"], options=options, stdin=io.BytesIO(data)))
            require(form == "trec" or all(item.data is not None for item in items), "items")
        for form in (None, "csv", "tsv", "jsonl"):
            options = SourceOptions(form, encoding=encoding)
            names = rng.choice(((), ("text", "label")))
            _allowed(read_records(["-"], options, names, io.BytesIO(data)))
        for name in ("cur/1:2,S", "new/2", "Inbox", "x.csv", "x.mbox", "index", "y.jsonl"):
            (self.folder / name).parent.mkdir(exist_ok=True)
            (self.folder / name).write_bytes(data)
        for path in (self.folder, *self.folder.iterdir()):
            items = _allowed(read_items([str(path)]))
            _allowed(item.read() for item in items)

    def learning(self, number: int, data: bytes, rng: Random) -> None:
        """Learn inputs and un-learn them: the counts are the same as before."""
        living = LivingModel(self.mail)
        before = counts_of(self.mail)
        texts = [data, self.inputs(number + 1), self.inputs(number + 2)]
        items = [Item(f"#{n}", "spam", each) for n, each in enumerate(texts)]
        learned = living.learn(items, day=20_000)
        require(learned.learned + learned.already_known + learned.moved == 3, "all are learned")
        if learned.learned < 3:
            return  # one of them is a message of the model
        living.classifier().explain(items[0])
        moved = living.relabel(items, "ham", day=20_001)
        require(moved.moved == 3, "all are moved")
        require(living.unlearn(items, day=20_002).unlearned == 3, "all are un-learned")
        require(counts_of(living.classifier()) == before, "counts are as before")

    def training(self, number: int, data: bytes, rng: Random) -> None:
        """Train on inputs, write the model as a file and as text, and read it again."""
        texts = [data, *(self.inputs(number + k) for k in range(1, 12))]
        items = [Item(f"#{n}", ("ham", "spam")[n % 2], each) for n, each in enumerate(texts)]
        if len({digest_of(each) for each in texts}) < len(texts):
            return  # a message in both classes is in the last one
        is_text = rng.random() < 0.5
        items = [item._replace(is_text=is_text) for item in items]
        model = _classifier(items)
        lines = list(interchange.dump_lines(model))
        again = interchange.load_lines(lines, "lines")
        require(list(interchange.dump_lines(again)) == lines, "export and import keep a model")
        if not is_text:
            require(list(bogofilter.dump_lines(model)), "bogofilter's lines")
        path = str(self.folder / "model")
        save(path, model)
        require(list(interchange.dump_lines(load_tokens(path))) == lines, "a file keeps a model")
        more = [Item("#", "spam", self.inputs(number + k), is_text) for k in (12, 13, 14)]
        on_disk = StoredModel(path)
        on_disk.learn(more, day=20_001)
        learned = load_tokens(path)
        require(counts_of(learned) == counts_of(on_disk.classifier()), "a journal keeps changes")

    def commands(self, number: int, data: bytes, rng: Random) -> None:
        """Run commands on an input: they succeed, and print nothing that moves a cursor."""
        path = str(self.folder / "x.eml")
        Path(path).write_bytes(data)
        for line in COMMANDS:
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
    def model(self) -> str:
        """The path of a model of mail."""
        path = str(self.folder / "mail.nbspam")
        save(path, self.mail)
        return path

    def unchanged(self) -> None:
        """Judge some mail again: what was read in between must not matter."""
        joint = self.mail.judge(self.few).joint
        require(np.array_equal(joint, self.before), "verdicts on other mail are as before")


class Law(NamedTuple):
    """A law, and which share of the inputs it is checked on: one of so many."""

    check: Callable[[Checker, int, bytes, Random], None]
    one_of: int
    slowness: float = 1.0  # how many times as long as judging it may take


LAWS = {
    "message": Law(Checker.message, 16),
    "digest": Law(Checker.digest, 16),
    "headers": Law(Checker.headers, 48),
    "explanation": Law(Checker.explanation, 240, 4),
    "tokens": Law(Checker.tokens, 160, 20),
    "mailbox": Law(Checker.mailbox, 32, 2),
    "sources": Law(Checker.sources, 120, 20),
    "learning": Law(Checker.learning, 1000, 20),
    "commands": Law(Checker.commands, 2000, 40),
    "training": Law(Checker.training, 8000, 40),
}


def _classifier(items: list[Item], **choices: Any) -> Classifier:
    classifier = train(items, day=20_000, **choices).classifier
    assert isinstance(classifier, Classifier)
    return classifier


def _allowed(things: Iterator[Any]) -> list[Any]:
    """Return at most a thousand things that are read; fewer if the rest is refused."""
    found: list[Any] = []
    with suppress(NbspamError):
        found.extend(islice(things, 1000))
    return found


def _memory_disk() -> str | None:
    return "/dev/shm" if Path("/dev/shm").is_dir() else None


def with_crlf(data: bytes) -> bytes:
    """Return a copy whose lines end in CRLF."""
    plain = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    return plain.replace(b"\n", b"\r\n")


def body_of(data: bytes) -> dict[str, list[bytes]]:
    """Return the words of a message's text by origin, without those of its first head."""
    head, *others = parse_message(data).fields
    words: dict[str, list[bytes]] = {}
    if others and others[0].origin == "body" and others[0].text in head.text:
        del others[0]  # the subject
    for origin, text in others:
        if origin in ("body", "hidden", "alt", "url"):
            words.setdefault(origin, []).extend(re.sub(rb"(?m)^>+From ", b"From ", text).split())
    return {origin: found for origin, found in words.items() if found}


def found_tokens(messages: list[Message], settings: TokenSettings) -> Counter[Any]:
    """Return what the tokenizer finds, as {(document, key, text): count}."""
    batch = tokenize(messages, settings)
    blob, offsets = batch.texts()
    texts = [blob[a:b].tobytes() for a, b in pairwise(offsets)]
    documents, keys = batch.documents, batch.keys.tolist()
    found: Counter[Any] = Counter()
    rows = documents.rows().tolist()
    columns = documents.columns.tolist()
    for row, j, n in zip(rows, columns, documents.times().tolist(), strict=True):
        found[row, keys[j], texts[j]] += n
    return found


def defined_tokens(messages: list[Message], settings: TokenSettings) -> Counter[Any]:
    """Return the same from the definition."""
    found: Counter[Any] = Counter()
    for row, message in enumerate(messages):
        for token in reference_tokens(message, settings):
            prefix = b"" if token.origin == "body" else token.origin.encode() + b":"
            found[row, reference_key(token), prefix + token.text] += 1
    return found


def counts_of(classifier: Classifier) -> tuple[Any, ...]:
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


class Worker:
    """What one process does: it tries inputs, and says what they did."""

    def __init__(self, checker: Checker, inputs: Inputs, all_laws: bool) -> None:
        self.checker, self.inputs, self.all_laws = checker, inputs, all_laws
        self.slowest = Slow(0.0, 0, 0)
        self.failures: list[Failure] = []
        self.checks = 0

    def __call__(self, numbers: range) -> Totals:
        """Try some inputs."""
        warnings.simplefilter("error")
        self.failures, self.checks, size = [], 0, 0
        for start in range(0, len(numbers), BATCH):
            batch = [(number, self.inputs(number)) for number in numbers[start : start + BATCH]]
            size += sum(len(data) for _, data in batch)
            self.judge([pair for pair in batch if len(pair[1]) < LARGE])
            for pair in batch:
                if len(pair[1]) >= LARGE:
                    self.judge([pair])
                self.check(*pair)
        self.note(attempt(numbers.start, "afterwards", self.checker.unchanged, 1 << 16, 1)[1])
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        failures = tuple(self.failures)
        return Totals(len(numbers), size, self.checks, failures, self.slowest, peak)

    def judge(self, batch: Sequence[tuple[int, bytes]]) -> None:
        """Judge a batch; one that fails, or in which an input may be a hang, is halved."""
        if not batch:
            return
        data = [each for _, each in batch]
        number, size = batch[0][0], sum(map(len, data))
        seconds, failure = attempt(
            number, "judge", lambda: self.checker.judge(data), size, 1, len(data) > 1
        )
        if len(batch) == 1:
            self.note(failure)
            self.slowest = max(self.slowest, Slow(seconds, size, number))
        elif failure or seconds > PATIENCE:
            before = len(self.failures)
            for half in (batch[: len(batch) // 2], batch[len(batch) // 2 :]):
                self.judge(half)
            if failure and len(self.failures) == before:
                what = f"{failure.what}, only together with input {batch[-1][0]}"
                self.failures.append(failure._replace(what=what))

    def check(self, number: int, data: bytes) -> None:
        """Check the laws whose turn it is on one input."""
        for name, law in LAWS.items():
            if not self.all_laws and number % law.one_of:
                continue
            self.checks += 1
            rng = self.inputs.rng(~number)

            def work(law: Law = law, rng: Random = rng) -> None:
                law.check(self.checker, number, data, rng)

            self.note(attempt(number, name, work, len(data), law.slowness)[1])

    def note(self, failure: Failure | None) -> None:
        """Add a failure, if it is one, to those of this chunk."""
        self.failures += [] if failure is None else [failure]


def attempt(
    number: int,
    name: str,
    work: Callable[[], None],
    size: int,
    slowness: float,
    is_batch: bool = False,
) -> tuple[float, Failure | None]:
    """Do some work; return how long it took, seconds of processor time, and its failure.

    A batch is no hang unless it is broken off: its inputs are timed.
    """
    most = slowness * patience(size)
    start = time.process_time()
    try:
        with broken_off(SLOWER * most):
            work()
    except Hang:
        return SLOWER * most, Failure(number, name, "hang", f"over {SLOWER * most:.1f} s")
    except BrokenLawError as error:
        return 0.0, Failure(number, name, "law", str(error))
    except Exception as error:
        return 0.0, Failure(number, name, "exception", where(error))
    seconds = time.process_time() - start
    if seconds > most and not is_batch:
        again = time.process_time()
        work()  # another process may have slowed it down
        seconds = min(seconds, time.process_time() - again)
        if seconds > most:
            what = f"{seconds:.2f} s for {size / 1024:.1f} KB"
            return seconds, Failure(number, name, "hang", what)
    return seconds, None


def where(error: Exception) -> str:
    """Return an exception, and the last place of the program that it passed."""
    frames = traceback.extract_tb(error.__traceback__)
    ours = [frame for frame in frames if "/nbspam/" in frame.filename] or frames
    place = f"{Path(ours[-1].filename).name}:{ours[-1].lineno}"
    return f"{type(error).__name__}: {str(error)[:200]!r} ({place})"


def embedded_mail() -> list[tuple[str, bytes]]:
    """Return the labels and the messages of the embedded corpus."""
    paths = sorted((ROOT / "corpora" / "mail").rglob("*.eml"))
    return [(path.parent.name, path.read_bytes()) for path in paths]


def material(seed: int) -> Inputs:
    """Return the inputs that are made of the embedded mail and the hostile mail of tests."""
    evidence = sorted((ROOT / "tests" / "evidence").glob("*.eml"))
    mails = [data for _, data in embedded_mail()]
    return Inputs(seed, [*mails, *(path.read_bytes() for path in evidence)])


def run(inputs: Inputs, numbers: range, jobs: int) -> Iterator[Totals]:
    """Try inputs, in several processes, and yield what they did, chunk by chunk."""
    checker = Checker(inputs, embedded_mail())
    worker = Worker(checker, inputs, len(numbers) == 1)
    chunks = (numbers[at : at + CHUNK] for at in range(0, len(numbers), CHUNK))
    with checker.shared:
        yield from ordered_map(worker, chunks, jobs)


class Keeper:
    """Keeps inputs that failed, some of each kind of failure."""

    def __init__(self, inputs: Inputs, folder: Path) -> None:
        self.inputs, self.folder = inputs, folder
        self.times: Counter[str] = Counter()

    def keep(self, failure: Failure) -> str | None:
        """Keep the input of a failure; return what to say, None if there were enough such."""
        alike = f"{failure.law} {failure.kind} {re.sub(r'[0-9.]+', '#', failure.what)}"
        self.times[alike] += 1
        if self.times[alike] > KEPT:
            return None
        self.folder.mkdir(parents=True, exist_ok=True)
        path = self.folder / f"{self.inputs.seed}-{failure.number}.eml"
        path.write_bytes(self.inputs(failure.number))
        return f"input {failure.number}: {failure.law}: {failure.kind}: {failure.what} ({path})"


# ---- linear time ----


def linear(size: int = 100_000) -> bool:
    """Print how long each pattern takes at two lengths; return whether all are linear."""
    checker = Checker(Inputs(1, [b""]), embedded_mail())
    rule = default_rule(("ham", "spam"), True)

    def work(data: bytes) -> None:
        mark(checker.mail, rule, WANTED, data)
        digest_of(data)
        checker.mailbox(0, data, Random(0))
        checker.sources(0, data, Random(0))

    def seconds(data: bytes) -> float:
        measured = [math.inf]
        for _ in range(3):
            start = time.process_time()
            with suppress(Hang), broken_off(SLOWER * patience(len(data))):
                work(data)
                measured.append(time.process_time() - start)
        return min(measured)

    worst = 0.0
    with checker.shared:
        for name, pattern in PATTERNS.items():
            short, long = pattern(size), pattern(4 * size)
            once, fourfold = seconds(short), seconds(long)
            ratio = fourfold / once if once < math.inf else math.inf
            worst = max(worst, ratio)
            print(f"{name:<40} {1000 * once:6.0f} ms {1000 * fourfold:6.0f} ms {ratio:5.1f}")
    sizes = f"{size // 1000} and {4 * size // 1000} KB"
    print(f"{len(PATTERNS)} patterns at {sizes}; worst ratio {worst:.1f}")
    return worst <= 8


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--inputs", type=int, default=1_000_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--first", type=int, default=0, metavar="NUMBER")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--keep", type=Path, default=Path("build/fuzz"), metavar="FOLDER")
    parser.add_argument("--linear", action="store_true")
    options = parser.parse_args()
    if options.linear:
        sys.exit(not linear())
    inputs = material(options.seed)
    numbers = range(options.first, options.first + options.inputs)
    keeper = Keeper(inputs, options.keep)
    start, totals = time.monotonic(), Totals()
    for part in run(inputs, numbers, options.jobs):
        for line in filter(None, map(keeper.keep, part.failures)):
            print(line, flush=True)
        totals += part
        print(f"{time.monotonic() - start:6.0f} s  {totals}", file=sys.stderr, flush=True)
    print(totals)
    sys.exit(bool(totals.failures))


if __name__ == "__main__":
    main()

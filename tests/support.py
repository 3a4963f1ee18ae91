"""Shared by several tests: mail, texts, tables, trials, and what an error looks like."""

import atexit
import io
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import tracemalloc
import unicodedata
import warnings
import zipfile
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import cache
from itertools import combinations, product
from pathlib import Path
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st

from nbspam import models
from nbspam.counts.ledger import Messages
from nbspam.counts.table import CountTable, entry_weights
from nbspam.decision import default_rule
from nbspam.errors import ModelWarning, UsageError
from nbspam.evaluation.evaluation import Trial
from nbspam.mail.headers import Field
from nbspam.mail.message import Message
from nbspam.models.graphs import topological_order
from nbspam.models.pairs import PairModel
from nbspam.sources.items import Item
from nbspam.tokens.tokenizer import batch_vocabulary
from nbspam.verdicts import joint_of_log_odds

ROOT = Path(__file__).parent.parent
CORPORA = ROOT / "corpora"
MELONS, LIHANG = CORPORA / "watermelon-3.0.csv", CORPORA / "lihang-4.1.csv"
CATEGORIES = ("色泽", "根蒂", "敲声", "纹理", "脐部", "触感")  # of melons
FROM = b"From someone@example.org Thu Aug 22 12:36:23 2002\n"  # before a message of an mbox
HAM = b"From: ann@example.org\nSubject: lunch\n\nshall we have lunch on friday?\n"
LESSON = b"Subject: a lesson of mine\n\nabout harbours and anchors\n"
SPAM = b"From: x@example.com\nSubject: cheap pills\n\nbuy cheap pills now http://p.example/\n"
TOPICS = {"sea": "ship sail harbour wave tide anchor", "sky": "cloud wing bird wind pilot star"}
THREE_TOPICS = {**TOPICS, "soil": "rose bulb tulip seed bloom root"}
EVERYDAY = ["the", "and", "of", "to", "in", "is", "it", "that", "on", "with"]
TOKEN_MODELS = [models.estimator_class(name) for name in models.TOKEN_MODELS]
COLUMN_MODELS = [models.estimator_class(name) for name in models.COLUMN_MODELS]
PAIR_MODELS = [Class for Class in COLUMN_MODELS if issubclass(Class, PairModel)]

# Commands with arguments that they succeed on; words in capitals: tests/cli/conftest.py.
COMMAND_WORDS = {
    "classify": "FOLDER", "predict": "FOLDER", "explain": "FOLDER", "filter": "", "sort": "BOX",
    "train": "FOLDER", "update": "FOLDER --spam NEW", "unlearn": "ONE",
    "relabel": "ONE --to spam", "prune": "--min-df 2", "eval": "FOLDER",
    "compare": "FOLDER --cv 2 --against --pairs", "tune": "FOLDER --cv 2", "doubts": "MISFILED",
    "info": "", "words": "", "tokens": "FOLDER", "doctor": "", "export": "", "import": "TEXT",
    "shard": "1/2 FOLDER -o OTHER", "vectorize": "FOLDER -o VECTORS",
    "merge": "MODEL MODEL -o OTHER", "query": "-m NETWORK", "lazy": "FOLDER NEW",
    "cluster": "FOLDER -k 2", "help": "words", "table classify": "ROWS -m TABLE",
    "table predict": "ROWS -m TABLE", "table explain": "ROWS -m TABLE",
    "table train": "LIHANG --target Y -m OTHER", "table update": "LIHANG -m TABLE",
    "table unlearn": "ROW -m TABLE", "table merge": "TABLE TABLE -o OTHER",
    "table eval": "LIHANG -m TABLE",
    "table compare": "LIHANG --target Y --cv 2 --against '--model tan'",
    "table info": "-m TABLE", "table query": "-m NETWORK", "table export": "-m TABLE",
    "table lazy": "LIHANG ROWS --target Y", "table cluster": "LIHANG -k 2",
}  # fmt: skip


def standard_input(data):
    """Let standard input be these bytes in a block."""
    return patch("sys.stdin", io.TextIOWrapper(io.BytesIO(data)))


def examples(n):
    """Return settings for a law that is tried on n examples, on a part of them when quick."""
    return settings(max_examples=max(n * settings.default.max_examples // 100, 3))


@contextmanager
def told():
    """Yield a list that has, after the block, what the library said of a model's files."""
    texts = []
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always", ModelWarning)
        yield texts
    texts += [str(each.message) for each in found]


def raising(error):
    def call(*_, **__):
        raise error

    return call


def crash_at(step, patch, owner, *names):
    """Let the program be killed at a step, before or after a call of these functions, its last."""
    steps = iter(range(step + 1))

    def crashing(function):
        def call(*arguments):
            if next(steps, step) == step:
                raise KeyboardInterrupt
            found = function(*arguments)
            if next(steps, step) == step:
                raise KeyboardInterrupt
            return found

        return call

    for name in names:
        patch.setattr(owner, name, crashing(getattr(owner, name)))


def in_child(work):
    """Run something in a child process; return its exit status."""
    process = os.fork()
    if process:
        return os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
    try:
        work()
        os._exit(0)
    except BaseException:
        os._exit(1)


def memory_of(work, *arguments):
    """Return how many bytes of memory a call kept, and how many it had at most."""
    tracemalloc.start()
    try:
        work(*arguments)
        return tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()


def run_nbspam(*arguments, **how):
    """Run nbspam as users do, in a process of its own; return its status, output and errors."""
    how = {"text": True, "cwd": ROOT, "timeout": 60, **how}
    command = [sys.executable, "-m", "nbspam", *arguments]
    done = subprocess.run(command, capture_output=True, check=False, **how)
    return done.returncode, done.stdout, done.stderr


def install_program(folder, monkeypatch):
    """Make a folder with a program `nbspam`, which is this one; shells find it first."""
    folder.mkdir()
    program = folder / "nbspam"
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m nbspam "$@"\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(folder), prepend=os.pathsep)
    monkeypatch.setenv("PYTHONPATH", str(ROOT))


def blocks_of(page, kind):
    return re.findall(rf"^```{kind}\n(.*?)^```", page, re.DOTALL | re.MULTILINE)


def needs(*programs):
    """Return a mark that skips a test where one of these programs is not installed."""
    missing = ", ".join(name for name in programs if shutil.which(name) is None)
    return pytest.mark.skipif(bool(missing), reason=f"not installed: {missing}")


def complains(result, status, *words):
    """Assert a status and one line on standard error that has these words."""
    code, _, err = result
    assert code == status
    assert err.count("\n") == 1, err
    assert "Traceback" not in err
    for word in words:
        assert word in err, err
    return True


def steps_of(table, *rows):
    """Return the factors of the last row as `table explain --factors` prints them."""
    status, out, err = table("explain", "--factors", "--json", stdin="\n".join(rows).encode())
    assert (status, err) == (0, "")
    return json.loads(out.splitlines()[-1])["factors"]


def json_lines(out):
    """Return the objects of JSON lines, without the version that each of them has."""
    values = [json.loads(line) for line in out.splitlines()]
    assert {each.pop("version") for each in values} == {1}
    return values


def columns(line):
    """Return the width of a line in a terminal, counted independently of the program."""
    # By category: some marks have the combining class of letters.
    letters = [c for c in line if unicodedata.category(c) not in ("Mn", "Me")]
    return len(letters) + sum(unicodedata.east_asian_width(c) in ("W", "F") for c in letters)


@cache
def first_mails():
    """Return a folder with the first hundred embedded messages of each class.

    They are the hard ones, and enough for tests of details, which would take twice the time
    with all.
    """

    def later(_, names):
        return [name for name in names if "101" <= name[:3] <= "999"]

    folder = Path(tempfile.mkdtemp(prefix="nbspam-mails-"))
    atexit.register(shutil.rmtree, folder)
    return shutil.copytree(ROOT / "corpora" / "mail", folder / "mail", ignore=later)


def write_mails(folder, n_docs=2):
    for name, data in (("ham", HAM), ("spam", SPAM)):
        (folder / name).mkdir(parents=True)
        for n in range(1, n_docs + 1):
            (folder / name / f"{n}.eml").write_bytes(data + b"%d\n" % n)
    return folder


def write_files(folder, files):
    for name, data in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(data)
    return folder


def make_maildir(root, *folders):
    """Make a Maildir, with folders in it, as far as there is none; return its path."""
    for folder in ("", *folders):
        for part in ("cur", "new", "tmp"):
            (root / folder / part).mkdir(parents=True, exist_ok=True)
    return root


def packed(members, kind="tar"):
    """Return an archive of names and their contents, written by Python's own writers."""
    file = io.BytesIO()
    if kind == "zip":
        with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, data in members.items():
                archive.writestr(name, data)
        return file.getvalue()
    with tarfile.open(
        fileobj=file, mode=f"w:{kind.removeprefix('tar').removeprefix('.')}"
    ) as archive:
        for name, data in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    return file.getvalue()


def write_misfiled(folder):
    """Write forty messages of each class into a new folder, and one of spam among the ham."""
    write_mails(folder, 40)
    shutil.copy(folder / "spam" / "1.eml", folder / "ham" / "misfiled.eml")
    with (folder / "ham" / "misfiled.eml").open("ab") as file:
        file.write(b"misfiled\n")
    return folder


def reviews(language):
    rows = (CORPORA / "reviews.tsv").read_text("utf-8").splitlines()
    return [row.partition("\t")[2] for row in rows if row.startswith(language)]


def texts(n, seed, length=3, topics=TOPICS):
    """Return n labelled items a topic: a few of its words among words of everyday."""
    rng = np.random.default_rng(seed)
    items = []
    for label, words in topics.items():
        for i in range(n):
            drawn = [*rng.choice(words.split(), length), *rng.choice(EVERYDAY, 12)]
            text = " ".join(rng.permutation(drawn)).encode()
            items.append(Item(f"{label}{seed}-{i}", label, text, is_text=True))
    return items


@st.composite
def tables(draw, missing=True):
    """Return codes, labels and numbers of values: missing cells, values and classes unseen."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n_rows, n_columns = rng.integers(1, 25), rng.integers(1, 5)
    levels = rng.integers(1, 5, n_columns)
    X = np.floor(rng.random((n_rows, n_columns)) * levels)
    if missing:
        X[rng.random(X.shape) < 0.2] = np.nan
    return X, np.minimum(rng.geometric(0.5, n_rows) - 1, 2), levels


def answered_by_position(classifier, inputs, labels, jobs):
    """Check that inputs of one name get their own answers; return what the second one lacks.

    inputs: three, of which the second cannot be read; labels: those of the first and the third.
    """
    first, gone, third = classifier.answers(inputs, jobs)
    for found, one in ((first, inputs[0]), (third, inputs[2])):
        assert found.joint.tolist() == next(classifier.answers([one])).joint.tolist()
    assert (first.joint != third.joint).any()
    assert (first.truth, third.truth) == labels

    verdicts = list(classifier.classify(inputs))
    assert (verdicts[0].label, verdicts[1], verdicts[2].label) == (labels[0], gone, labels[1])
    first, again, third = classifier.explanations(inputs)
    assert [first.verdict, again, third.verdict] == verdicts
    return gone.reason


def words_of(table):
    return [table.vocabulary.text(column) for column in range(len(table.vocabulary))]


def message(**fields):
    """Return a message whose fields, by origin, have these texts."""
    return Message(tuple(Field(name, text.encode()) for name, text in fields.items()))


def of_keys(batch, labels, digests):
    """Return the messages of a batch with their classes and digests, as training holds them."""
    return Messages(np.array(labels, np.str_), np.array(digests, np.uint64), batch.documents)


def plain(counted):
    """Return a count table as plain values: documents by class, and each token's counts."""
    rows = {
        counted.vocabulary.text(j): (dict(zip(counted.classes, row, strict=True)), df)
        for j, (row, df) in enumerate(
            zip(counted.feature_count.tolist(), counted.document_frequency.tolist(), strict=True)
        )
    }
    return dict(zip(counted.classes, counted.class_count.tolist(), strict=True)), rows


def check_bound(table, exact):
    """Assert that counts lack what the table's loss says at most, and never have too much."""
    had = dict(zip(exact.vocabulary.keys.tolist(), exact.document_frequency.tolist(), strict=True))
    lacks = [0] * len(table.vocabulary) if table.loss is None else table.loss.of_each.tolist()
    counts = table.vocabulary.keys.tolist(), table.document_frequency.tolist(), lacks
    for key, n, lack in zip(*counts, strict=True):
        assert n <= had.pop(key) <= n + lack
    assert max(had.values(), default=0) <= (0 if table.loss is None else table.loss.of_others)


def items_of_words(numbers, label=None):
    """Return mail of words of which few are frequent and many rare, as in any language."""
    words = np.random.default_rng(0).zipf(1.3, (300, 8))
    bodies = [b" ".join(b"w%d" % word for word in words[n]) for n in numbers]
    return [
        Item(f"m{n}", label or ("ham", "spam")[n % 2], b"Message-ID: <%d@x>\n\n%s\n" % (n, body))
        for n, body in zip(numbers, bodies, strict=True)
    ]


def count_batch(batch, labels, weighting, classes=None):
    """Return the counts of one batch as a table.

    classes: those of the labels unless given.
    """
    classes = classes or tuple(sorted(set(labels)))
    documents = batch.documents
    y = np.array([classes.index(label) for label in labels], np.int64)
    total = np.zeros((len(batch.keys), len(classes)))
    weights = entry_weights(documents, batch.groups, weighting)
    np.add.at(total, (documents.columns, y[documents.rows()]), weights)
    frequency = np.bincount(documents.columns, minlength=len(batch.keys))
    n_docs = np.bincount(y, minlength=len(classes)).astype(np.float64)
    return CountTable(classes, n_docs, batch_vocabulary(batch), total, frequency)


def trial_of(y, score, fold=None, rule=None, **options):
    """Return a trial of ham and spam with these log-odds of spam."""
    options.setdefault("prior", np.array([0.5, 0.5]))
    options.setdefault("names", tuple(f"m{n}" for n in range(len(score))))
    return Trial(
        ("ham", "spam"),
        np.asarray(y),
        joint_of_log_odds(np.asarray(score)),
        default_rule(("ham", "spam"), calibrated=True) if rule is None else rule,
        np.zeros(len(score), np.int64) if fold is None else np.asarray(fold),
        **options,
    )


def trial_of_classes(classes, y, joint):
    """Return a trial of any classes, whose answers are the most probable ones."""
    trial = trial_of(y, np.zeros(len(y)), prior=np.full(len(classes), 1 / len(classes)))
    rule = default_rule(classes, calibrated=False)
    return replace(trial, classes=tuple(classes), joint=joint, rule=rule)


def random_trial(seed, n_docs=400, n_folds=4, bias=0.0):
    """Return a calibrated trial, but for a bias of its log-odds."""
    rng = np.random.default_rng(seed)
    score = rng.normal(0, 3, n_docs)
    y = (rng.random(n_docs) < 1 / (1 + np.exp(-score))).astype(np.int64)
    y[:2] = 0, 1
    return trial_of(y, score + bias, rng.permutation(n_docs) % n_folds)


@cache
def all_graphs(n):
    """Return every graph of n nodes without a cycle, by its parents."""
    choices = [[s for k in range(n) for s in combinations({*range(n)} - {i}, k)] for i in range(n)]
    found = []
    for parents in product(*choices):
        with suppress(UsageError):
            topological_order(parents)
            found.append(parents)
    return found

"""Word lists of bogofilter come and go; what other filters write is known and refused."""

import shutil
import subprocess

import pytest

from nbspam.errors import InputError, UsageError
from nbspam.sources.items import Item
from nbspam.store.model import StoredModel
from nbspam.store.open import read_text_model as load_file
from nbspam.store.text import bogofilter_lines, model_of_bogofilter_lines
from support import HAM, SPAM, complains

LABELS = ("ham", "spam")
LIST = b"""\
subj:free 10 0 20261121
Viagra 5 0 20261120
VIAGRA 7 0 20261122
example.org 1 4 20260101
rtrn:example 1 2 0
rcvd:mx 3 4 0
head:X-Mailer 2 3 0
http://x 1 0 0
buy*now 4 0 0
.MSG_COUNT 10 20 20261122
.ENCODING 2 0 20261122
"""


def counts(classifier):
    table = classifier.table
    return {
        table.vocabulary.text(j): tuple(map(int, row))
        for j, row in enumerate(table.feature_count.tolist())
    }


def model_of(path):
    return StoredModel(str(path)).whole()


def test_a_word_list_becomes_our_tokens_cut_and_folded_with_their_counts_and_days():
    classifier = model_of_bogofilter_lines(LIST.splitlines(keepends=True), "x")
    found = counts(classifier)

    assert found["subject:free"] == (0, 10)
    assert found["return-path:example"] == (2, 1)
    assert found["received:mx"] == (4, 3)
    assert found["header:x-mailer"] == found["mailer:x-mailer"] == (3, 2)
    assert "date:x-mailer" not in found
    assert found["2g:buy now"] == (0, 4)
    assert found["example"] == found["org"] == (4, 1)
    assert found["http"] == found["x"] == (0, 1)
    assert found["viagra"] == (0, 10)  # 5 + 7, and there are ten messages
    assert classifier.table.class_count.tolist() == [20, 10]
    days = dict(zip(found, classifier.memory.last_seen.tolist(), strict=True))
    assert days["viagra"] - days["subject:free"] == 1
    assert days["received:mx"] == 0
    assert len(classifier.memory.ledger.digests) == 0
    (verdict,) = classifier.classify([Item("a", None, b"Subject: free\n\nviagra\n")])
    assert verdict.label == "spam"


@pytest.mark.parametrize("options", [(), ("--pairs",)])
def test_what_was_dumped_and_loaded_is_dumped_the_same(nbspam, model, mails, tmp_path, options):
    for label in LABELS:
        (tmp_path / label).mkdir()
        for path in sorted((mails / label).iterdir())[::10]:
            (tmp_path / label / path.name).symlink_to(path)
    nbspam("train", "--ham", tmp_path / "ham", "--spam", tmp_path / "spam", *options)
    lines = list(bogofilter_lines(model_of(model)))

    again = model_of_bogofilter_lines(lines, "x")
    assert list(bogofilter_lines(again)) == lines
    assert counts(again) == counts(model_of(model))
    assert again.settings == model_of(model).settings


def test_a_loaded_model_classifies_and_learns_on(nbspam, trained, tmp_path):
    (tmp_path / "list").write_text(nbspam("export", "--format", "bogoutil")[1])
    assert nbspam("import", tmp_path / "list")[0] == 0

    assert nbspam("classify", stdin=SPAM)[1].startswith("spam")
    assert nbspam("classify", stdin=HAM)[1].startswith("ham")
    assert nbspam("update", "--ham", "-", stdin=b"Subject: x\n\nnew\n")[1] == "learned 1\n"
    assert ".MSG_COUNT 2 3 " in nbspam("export", "--format", "bogoutil")[1]


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        (b"free 1 2\n", "line 1: not `token spam ham yyyymmdd`"),
        (b"free 1 x 0\n", "line 1: not `token"),
        (b"a 1 1 0\nfree -1 2 0\n", "line 2: not `token"),
        (b"free 99999999999999 2 0\n", "line 1: not `token"),
        (b" 1 2 0\n", "line 1: not `token"),
        (b"free 1 2 0\n", "no line of .MSG_COUNT"),
        (b".MSG_COUNT 1 1 0\n", "no line of token"),
        (b".MSG_COUNT 0 0 0\na 0 0 0\n", "no messages"),
        (b".MSG_COUNT 1 1 0\n:: 1 1 0\n", "no line of token"),
    ],
)
def test_text_that_is_no_word_list_is_refused(tmp_path, text, complaint):
    (tmp_path / "list").write_bytes(text)
    with pytest.raises(InputError) as caught:
        load_file(str(tmp_path / "list"))

    assert complaint in str(caught.value)


@pytest.mark.parametrize(
    ("written", "day"),
    [(b"0", 0), (b"19700102", 1), (b"18000101", 0), (b"99991231", 65_535), (b"9" * 40, 0)],
)
def test_days_beyond_ours_are_none_or_the_last(written, day):
    classifier = model_of_bogofilter_lines(
        [b".MSG_COUNT 1 1 0\n", b"a 0 0 " + written + b"\n"], "x"
    )

    assert classifier.memory.last_seen.tolist() == [day]


def test_bytes_that_are_no_text_are_no_obstacle():
    found = counts(
        model_of_bogofilter_lines([b".MSG_COUNT 2 2 0\n", b"gr\xfc\xdfe 1 0 99999999\n"], "x")
    )

    assert found == {"grüsse": (0, 1)} or found == {"grüße": (0, 1)}


def test_only_ham_and_spam_in_whole_numbers_can_be_dumped(nbspam, tmp_path, folder, model):
    nbspam("train", folder, "--weighting", "unit-length")
    status, _, err = nbspam("export", "--format", "bogoutil")
    assert (status, "counts are weights" in err) == (2, True)

    (folder / "ham").rename(folder / "work")
    nbspam("train", folder)
    with pytest.raises(UsageError, match="the classes are spam, work"):
        list(bogofilter_lines(model_of(model)))


bogofilter = pytest.mark.skipif(
    shutil.which("bogofilter") is None or shutil.which("bogoutil") is None,
    reason="bogofilter is not installed",
)


def run(*command, stdin=b""):
    return subprocess.run(command, input=stdin, capture_output=True, check=True).stdout


@bogofilter
def test_a_bogofilter_moves_in(tmp_path):
    def mail(n, label):
        words = " ".join(f"{label}{(7 * n + k) % 40}" for k in range(15))
        return f"From: {label}@example.org\nSubject: {label} {n}\n\n{words}\n".encode()

    for option, label in (("-s", "spam"), ("-n", "ham")):
        for n in range(10):
            run("bogofilter", "-C", "-d", tmp_path, option, stdin=mail(n, label))
    (tmp_path / "list").write_bytes(run("bogoutil", "-d", tmp_path / "wordlist.db"))

    classifier = load_file(str(tmp_path / "list"))

    assert classifier.table.class_count.tolist() == [10, 10]
    items = [Item(f"{label}{n}", label, mail(n, label)) for n in range(10, 40) for label in LABELS]
    assert all(v.label == i.label for v, i in zip(classifier.classify(items), items, strict=True))


@bogofilter
def test_bogofilter_reads_what_is_dumped(nbspam, model, mails, tmp_path):
    nbspam("train", mails)
    lines = b"".join(bogofilter_lines(model_of(model)))
    word_list = tmp_path / "wordlist.db"
    run("bogoutil", "-l", word_list, stdin=lines)

    assert sorted(run("bogoutil", "-d", word_list).splitlines()) == sorted(lines.splitlines())


# ---- other filters ----

BACKUP = b"v\t3\tdb_version # this must be the first line!!!\nv\t40\tnum_spam\n"
DUMP = b"0.000          0          3          0  non-token data: bayes db version\n"
EXPORT = b'0,3,8868,"$"\n0,1,8868,"$ fax"\n'
ADVICE = "train from the mail: nbspam train --spam PATH --ham PATH"
TEXTS = {
    "sa-learn --backup": (BACKUP, "a backup of sa-learn, which has hashes in place of words"),
    "sa-learn --dump": (DUMP, "a dump of sa-learn, which has hashes"),
    "spamprobe export": (EXPORT, "an export of spamprobe, which does not say in how many"),
    "spamprobe dump": (b"0.3000000       0       3  0x000022a4  $\n", "a dump of spamprobe"),
}


@pytest.mark.parametrize("kind", TEXTS)
def test_an_import_says_why_it_cannot_be_and_what_to_do(nbspam, model, kind):
    text, reason = TEXTS[kind]

    assert complains(nbspam("import", "-", stdin=text), 1, f"-: {reason}", ADVICE)
    assert not model.exists()


@pytest.mark.parametrize(
    ("program", "learn", "write"),
    [
        pytest.param(
            *("sa-learn", ["--dbpath", "bayes", "--spam"], ["--dbpath", "bayes", "--backup"]),
            marks=pytest.mark.slow,
        ),
        ("spamprobe", ["-c", "-d", "probe", "spam"], ["-d", "probe", "export"]),
        ("spamprobe", ["-c", "-d", "probe", "spam"], ["-d", "probe", "dump"]),
    ],
)
def test_what_the_programs_write_themselves_is_known(
    nbspam, model, mails, tmp_path, monkeypatch, program, learn, write
):
    if shutil.which(program) is None:
        pytest.skip(f"{program} is not installed")

    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    run(program, *learn, str(mails / "spam" / "001-pills-plain.eml"))
    result = nbspam("import", "-", stdin=run(program, *write))

    assert complains(result, 1, program, ADVICE)

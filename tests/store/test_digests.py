"""Digests in models: two mails are two, and models of before know their mail by older digests."""

import json
import shutil

import pytest

from nbspam.mail.digest import digest_of
from nbspam.sources.items import Item
from nbspam.store.format.modelfile import load_state, save_state
from nbspam.store.model import StoredModel
from nbspam.store.open import load
from support import ROOT, complains

pytestmark = pytest.mark.usefixtures("quick_disk")
MAIL = ROOT / "corpora" / "mail"
OLD = ROOT / "tests" / "evidence" / "models" / "mail"
TRAINED = json.loads((OLD / "expected.json").read_text())["arguments"][0]["arguments"]
HAM, SPAM = (
    [TRAINED[i + 1] for i, word in enumerate(TRAINED) if word == option]
    for option in ("--ham", "--spam")
)


@pytest.fixture
def old(model):
    """Where a model of an older version is: it knows mail by digests of version 1."""
    model.parent.mkdir(parents=True)
    shutil.copy(OLD / "model.nbspam", model)
    return model


def versions(path):
    return load(str(path)).memory.versions


def known(path):
    return set(StoredModel(str(path)).whole().memory.ledger.digests.tolist())


HEAD = b"From: Ann <ann@example.org>\nMessage-ID: <7@example.org>\n%s\n%s\n"
TEXT = b"Content-Type: text/plain\n"
PAIRS = {
    "what separates values": (
        b"Message-ID: <a>\n\nb\n\0\n\0c\n",
        b"Date: <a>\nFrom: b\n\nc\n",
    ),
    "the type": (HEAD % (TEXT, b"<b>hi</b>"), HEAD % (b"Content-Type: text/html\n", b"<b>hi</b>")),
    "the charset": (
        HEAD % (b"Content-Type: text/plain; charset=koi8-r\n", b"\xc1\xc2\xd7\xc7"),
        HEAD % (b"Content-Type: text/plain; charset=windows-1251\n", b"\xc1\xc2\xd7\xc7"),
    ),
    "the transfer encoding": (
        HEAD % (TEXT, b"YnV5IHBpbGxz"),
        HEAD % (TEXT + b"Content-Transfer-Encoding: base64\n", b"YnV5IHBpbGxz"),
    ),
    "the boundary": tuple(
        HEAD
        % (
            b"Content-Type: multipart/mixed; boundary=%s\n" % name,
            b"--a\n\nlunch on friday\n--b\n\nbuy pills\n--a--\n--b--",
        )
        for name in (b"a", b"b")
    ),
    "a line that ends the headers": tuple(
        b"Message-ID: <8@example.org>\n%s\nX-A: b\n\nbye\n" % line
        for line in (b"lunch on friday", b"buy pills")
    ),
}


@pytest.mark.parametrize("what", PAIRS)
def test_learning_one_of_two_mails_leaves_the_other_as_it_was(nbspam, trained, what):
    ham, spam = PAIRS[what]
    assert digest_of(ham, version=1) == digest_of(spam, version=1)

    assert nbspam("update", "--ham", "-", stdin=ham)[1] == "learned 1\n"
    assert nbspam("update", "--spam", "-", stdin=spam)[1] == "learned 1\n"
    assert nbspam("update", "--ham", "-", stdin=ham)[1] == "already known 1\n"


COPIES = [
    lambda mail: b"Received: from a by b\n\twith c\nReturn-Path: <x@example.org>\n" + mail,
    lambda mail: mail.replace(b"Subject:", b"X-Spam-Status: Yes, score=9\nSubject: [SPAM]"),
    lambda mail: mail.replace(b"\n", b"\r\n"),
    lambda mail: b"From MAILER-DAEMON Mon Jan  5 10:00:00 2026\n" + mail + b"\n\n",
    lambda mail: mail.replace(b"ID: ", b"id :\n\t").replace(b"Id: ", b"id :\n\t"),
]


@pytest.mark.parametrize("copied", COPIES)
@pytest.mark.parametrize("name", ["038-html-letter-aunt.eml", "001-lunch-plain.eml"])
def test_a_copy_on_another_way_is_the_same_message(nbspam, trained, copied, name):
    (path,) = (MAIL / "ham").glob(name[:3] + "-*")
    mail = path.read_bytes()
    assert nbspam("update", "--ham", "-", stdin=mail)[1] == "learned 1\n"
    assert copied(mail) != mail
    assert nbspam("update", "--ham", "-", stdin=copied(mail))[1] == "already known 1\n"


# ---- models that know mail by digests of version 1 ----


def test_a_new_model_says_that_its_digests_are_of_version_2(trained):
    assert load_state(str(trained))["memory"]["digest_versions"] == [2]
    assert versions(trained) == (2,)


def test_mail_that_an_old_model_learned_is_recognised(nbspam, old):
    ham, spam = ([str(MAIL / name) for name in names] for names in (HAM, SPAM))
    assert versions(old) == (1,)
    before = known(old)

    assert nbspam("update", "--ham", ham[0], "--spam", spam[0])[1] == "already known 2\n"
    assert nbspam("update", "--spam", ham[0])[1] == "moved 1\n"
    assert known(old) == before  # it keeps its digest
    assert nbspam("update", "--spam", ham[0])[1] == "already known 1\n"
    assert nbspam("relabel", "--to", "ham", ham[0])[1] == "moved 1\n"
    assert nbspam("unlearn", ham[1], spam[1])[1] == "un-learned 2\n"
    assert len(known(old)) == len(before) - 2
    assert nbspam("unlearn", ham[1])[1] == "not known 1\n"


def test_a_model_says_where_it_has_a_message_by_its_old_digest_or_its_new_one(nbspam, old):
    spam, ham = ((MAIL / name).read_bytes() for name in (SPAM[0], HAM[0]))
    assert nbspam("unlearn", str(MAIL / HAM[0]))[0] == 0
    model = StoredModel(str(old))

    assert model.filed(spam) == ("spam", False)
    assert model.filed(ham) == (None, False)
    model.relabel([Item("-", None, ham)], "ham", day=1)
    assert model.filed(ham) == ("ham", True)


def test_what_an_old_model_learns_has_a_new_digest(nbspam, old):
    mail = str(MAIL / HAM[0])
    assert nbspam("unlearn", mail)[1] == "un-learned 1\n"
    assert nbspam("update", "--ham", mail, mail)[1] == "learned 1, already known 1\n"
    data = (MAIL / HAM[0]).read_bytes()
    assert digest_of(data) in known(old)
    assert digest_of(data, version=1) not in known(old)
    StoredModel(str(old)).compact()
    assert versions(old) == (1, 2)
    assert nbspam("unlearn", mail)[1] == "un-learned 1\n"


def test_a_mail_known_by_its_new_digest_is_not_taken_for_another_of_the_same_old_one(old):
    ham, spam = PAIRS["the type"]
    living = StoredModel(str(old))
    assert living.learn([Item("a", "ham", ham)], day=20_100).learned == 1
    assert living.learn([Item("b", "spam", spam)], day=20_100).learned == 1
    assert living.learn([Item("a", "ham", ham)], day=20_100).already_known == 1


def test_a_journal_of_an_old_model_is_recognised_too(nbspam, old):
    shutil.copy(OLD / "model.nbspam.journal", f"{old}.journal")
    learned = MAIL / "ham" / "027-haggling-over-a-tuba.eml"
    assert nbspam("update", "--ham", learned)[1] == "confirmed 1\n"
    assert nbspam("update", "--spam", learned)[1] == "moved 1\n"


def test_an_export_says_its_versions_and_keeps_them(nbspam, old, tmp_path):
    lines = nbspam("export")[1]
    assert json.loads(lines.splitlines()[0])["digest_versions"] == [1]
    without = lines.replace('"digest_versions": [1], ', "")  # as older programs wrote it
    for number, text in enumerate((lines, without)):
        (tmp_path / "lines").write_text(text)
        copy = tmp_path / f"{number}.nbspam"
        assert nbspam("import", tmp_path / "lines", "-m", copy)[0] == 0
        assert versions(copy) == (1,)
        assert nbspam("unlearn", "-m", copy, MAIL / HAM[0])[1] == "un-learned 1\n"


@pytest.mark.parametrize("wrong", ["[]", "2", '["2"]', "[3]", "[2, 1]", "[true]", "null"])
def test_an_export_of_unknown_versions_is_refused(nbspam, old, tmp_path, wrong):
    lines = nbspam("export")[1].replace('"digest_versions": [1]', f'"digest_versions": {wrong}')
    (tmp_path / "lines").write_text(lines)
    result = nbspam("import", tmp_path / "lines", "-m", tmp_path / "copy.nbspam")
    assert complains(result, 1, "line 1: digest_versions", "are not versions")


@pytest.mark.parametrize("wrong", [[], 2, ["2"], [3], [2, 1], [True], "12"])
def test_a_model_of_unknown_versions_cannot_learn(nbspam, trained, wrong):
    state = load_state(str(trained))
    memory = {**state["memory"], "digest_versions": wrong}
    save_state(str(trained), {**state, "memory": memory})
    assert complains(nbspam("unlearn", "-", stdin=b"x"), 1, str(trained))


def test_the_doctor_says_that_older_digests_can_be_shared(nbspam, trained):
    assert "older digests" not in nbspam("doctor")[1]
    shutil.copy(OLD / "model.nbspam", trained)
    status, out, _ = nbspam("doctor")
    assert status == 0
    assert "may be known by older digests, which two messages could share; train it anew" in out


def test_models_that_know_mail_by_different_digests_are_not_merged(nbspam, old, tmp_path):
    new = tmp_path / "new.nbspam"
    assert nbspam("train", "--ham", MAIL / HAM[0], "--spam", MAIL / SPAM[0], "-m", new)[0] == 0
    merged = tmp_path / "merged.nbspam"
    for pair in ((old, new), (new, old)):
        result = nbspam("merge", *pair, "-o", merged)
        assert complains(result, 2, f"{pair[1]}: mail that it shares", f"train {old} anew")


def test_old_models_are_merged_as_they_were(nbspam, old, tmp_path):
    other = tmp_path / "other.nbspam"
    shutil.copy(old, other)
    merged = tmp_path / "merged.nbspam"
    assert nbspam("merge", old, other, "-o", merged)[0] == 0
    assert versions(merged) == (1,)
    assert known(merged) == known(old)


def test_an_old_model_of_texts_is_merged_with_a_new_one(nbspam, model, tmp_path):
    # Digests of texts never changed.
    texts, new = tmp_path / "texts.nbspam", tmp_path / "new.nbspam"
    shutil.copy(OLD.parent / "text" / "model.nbspam", texts)
    settings = load(str(texts)).settings
    living = StoredModel(str(new), new=settings)
    items = [Item(name, name, name.encode(), True) for name in ("billing", "garden")]
    assert living.learn(items, day=20_000, new_class=True).learned == 2
    assert nbspam("merge", texts, new, "-o", tmp_path / "merged.nbspam")[0] == 0
    assert versions(tmp_path / "merged.nbspam") == (2,)

"""The commands update, unlearn, relabel, merge, allow and deny, and their errors."""

import errno
import os

import pytest

from nbspam.counts import ledger
from nbspam.store.open import load_tokens as load
from support import HAM, SPAM, complains


def test_commands_say_what_happened(nbspam, trained, folder):
    new, work = SPAM + b"new\n", "nbspam: work: a new class; the model had ham, spam\n"
    spam, policy = b"Subject: cheap lunch\n\ncheap pills for lunch\n", ("--policy", "error")
    assert nbspam("classify", stdin=spam)[1] == "ham\t0.425817\t-\n"  # the cutoff is 2/3
    assert nbspam("update", *policy, "--ham", "-", stdin=spam)[1] == "right already 1\n"
    assert nbspam("update", *policy, "--spam", "-", stdin=spam)[1] == "learned 1\n"
    assert nbspam("unlearn", stdin=spam)[1] == "un-learned 1\n"

    assert nbspam("update", "--spam", "-", stdin=new) == (0, "learned 1\n", "")
    answer = nbspam.json("update", "--spam", "-", stdin=new)
    assert (answer["learned"], answer["already_known"], answer["skipped"]) == (0, 1, [])
    assert answer["model"] == str(trained)
    assert nbspam("update", "--ham", "-", stdin=new) == (0, "moved 1\n", "")
    assert nbspam("relabel", "--to", "spam", stdin=new) == (0, "moved 1\n", "")
    assert nbspam("unlearn", stdin=new) == (0, "un-learned 1\n", "")
    assert nbspam("unlearn", stdin=new) == (0, "not known 1\n", "")
    result = nbspam("update", "--label", "work=-", "--new-class", stdin=new)
    assert result == (0, "learned 1\n", work)
    assert nbspam("update", folder) == (0, "already known 4\n", "")
    assert nbspam("relabel", "--to", "work", folder / "ham") == (0, "moved 2\n", "")
    assert load(str(trained)).classes == ("spam", "work")


def test_a_model_must_be_there(nbspam, tmp_path):
    model = tmp_path / "none" / "m.nbspam"
    reading = ("classify", "predict", "explain", "eval", "words", "info", "filter")
    for command in (*reading, "relabel --to ham", "unlearn", "prune"):
        result = nbspam(*command.split(), "-m", model, stdin=SPAM)
        assert complains(result, 1, f"{model}: no such model", "nbspam train SOURCE -m"), command
        assert result[1] == (SPAM.decode() if command == "filter" else "")
        assert not model.parent.exists()
    assert complains(nbspam("update", "--spam", "-", "-m", tmp_path, stdin=SPAM), 1, "a folder")


def test_a_message_of_a_hundred_megabytes_is_learned(nbspam, trained):
    def size_on_disk():
        return sum(path.stat().st_size for path in trained.parent.iterdir())

    data = SPAM + b"cheap pills " * (100_000_000 // 12)
    before = size_on_disk()

    assert nbspam("update", "--spam", "-", stdin=data)[:2] == (0, "learned 1\n")
    assert size_on_disk() < before + 2000
    assert load(str(trained)).table.n_docs == 5


def test_a_folder_that_cannot_be_written(nbspam, trained, monkeypatch):
    """The system's refusal is simulated, as root may write anywhere."""
    real = os.open

    def refuse(path, flags, *mode, **how):
        if flags & os.O_CREAT:
            raise OSError(errno.EROFS, os.strerror(errno.EROFS), path)
        return real(path, flags, *mode, **how)

    monkeypatch.setattr(os, "open", refuse)
    result = nbspam("update", "--spam", "-", stdin=SPAM)
    assert complains(result, 1, str(trained), "Read-only", "; mount its file system to be")
    assert nbspam("classify", stdin=SPAM)[0] == 0


def test_merge_says_what_models_had_in_common(nbspam, trained, folder, tmp_path):
    other, both = tmp_path / "other.nbspam", tmp_path / "both.nbspam"
    (folder / "spam" / "3.eml").write_bytes(SPAM)
    nbspam("train", "-m", other, folder)
    nbspam("relabel", "-m", other, "--to", "ham", folder / "spam" / "1.eml")
    out = nbspam.out("merge", trained, other, "-o", both)
    assert "added 2 models: 5 messages (3 ham, 2 spam)" in out
    assert "4 known to several, 1 as different classes" in out
    assert nbspam.json("merge", trained, other, "-o", both)["in_both"] == 4

    both.unlink()
    nbspam("train", "-m", other, "--pairs", folder)
    result = nbspam("merge", trained, other, "-o", both)
    assert complains(result, 2, str(other), "tokens", "train both with the same options")
    assert complains(nbspam("merge", trained, "-o", both), 2, "name two or more")
    assert not both.exists()


def test_a_shared_message_outside_the_samples_is_refused_and_not_counted_twice(
    nbspam, folder, model, tmp_path, monkeypatch
):
    monkeypatch.setattr(ledger, "MAX_SAMPLE", 1)
    for name in ("a", "b"):
        nbspam("train", "-j", "1", "-m", tmp_path / name, folder)
    for again in "b", "a":
        merge = ("merge", tmp_path / "a", tmp_path / again, "-o", tmp_path / "c")
        advice = f"nbspam unlearn -m {tmp_path}/{again}"
        assert complains(nbspam(*merge), 2, "4 of its messages", advice)


# ---- `nbspam allow` and `nbspam deny`, and what all that judge make of them ----


SENDER = "x@example.com"  # of SPAM
SIGNED = b"Authentication-Results: mx.example.org; dkim=pass header.d=example.com\n" + SPAM


def label(nbspam, data):
    return nbspam("classify", stdin=data)[1].split("\t")[0]


def test_an_allowed_sender_is_ham_if_the_trusted_server_says_that_it_is_genuine(nbspam, trained):
    assert label(nbspam, SIGNED) == "spam"
    status, out, err = nbspam("allow", SENDER)
    assert (status, out) == (0, f"allow\t{SENDER}\n")
    hint = "no server is trusted, so that allowed senders are a hint only; give --trust SERVER\n"
    assert err.endswith(hint)
    assert nbspam("allow", "--trust", "mx.example.org")[0] == 0
    assert label(nbspam, SIGNED) == "ham"

    (line,) = [line for line in nbspam("explain", stdin=SIGNED)[1].splitlines() if "-40" in line]
    assert f"allow {SENDER} (mx.example.org says" in line
    assert nbspam("filter", stdin=SIGNED)[1].startswith("X-Nbspam: ham, probability=1.000000")
    assert "allow x@example.com" in nbspam("filter", "--explain", stdin=SIGNED)[1]
    shown = nbspam.json("allow")
    assert shown["lists"] == f"{trained}.lists"
    assert (shown["trust"], shown["allow"], shown["deny"]) == ("mx.example.org", [SENDER], [])

    assert nbspam("deny")[1] == f"allow\t{SENDER}\ntrust\tmx.example.org\n"

    assert nbspam("allow", "--forget", SENDER)[::2] == (0, "")
    assert nbspam("deny", "-m", "typo")[2] == "nbspam: typo: no such model yet; check its name\n"
    for form in ((), ("--json",)):
        again = nbspam("allow", "--forget", SENDER, *form)
        assert complains(again, 0, f"--forget {SENDER}: not on the lists"), form
    assert label(nbspam, SIGNED) == "spam"

    data = b"From: ann@lunch.example.com\n" + HAM  # whoever signs it
    assert label(nbspam, data) == "ham"
    assert nbspam("deny", "Example.com", "list:news.example")[0] == 0
    assert label(nbspam, data) == "spam"
    listed = "deny\texample.com\ndeny\tlist:news.example\ntrust\tmx.example.org\n"
    assert nbspam("deny")[1] == listed


@pytest.mark.parametrize("costs", [(), ("--fp-cost", "2")])
def test_a_model_of_spam_alone_is_unsure_of_denied_senders_too(nbspam, costs):
    nbspam("update", "--spam", "-", stdin=SPAM)
    nbspam("deny", "example.com")
    data = b"From: ann@example.com\n" + HAM
    assert nbspam("classify", *costs, stdin=data)[1].startswith("unsure\t1.0")
    assert nbspam("explain", *costs, stdin=data)[1].startswith("unsure ")
    assert nbspam("filter", *costs, stdin=data)[1].startswith("X-Nbspam: unsure,")


def test_a_damaged_list_is_told_by_its_line(nbspam, trained):
    lists = trained.with_name(f"{trained.name}.lists")
    lists.write_text("allow \33[1ma@b.example\n")
    assert nbspam("allow")[1] == "allow\t\\x1b[1ma@b.example\n"
    lists.write_text("allow a@b\nnonsense\n")
    why = f"{trained}.lists:2: neither allow nor deny ADDRESS, nor trust SERVER; correct the line"
    assert complains(nbspam("classify", stdin=SPAM), 1, why)
    assert nbspam("doctor") == (1, f"bad\tfile\t{why}\n", "")


def test_a_named_row_is_changed_although_rows_of_other_classes_equal_it(nbspam, trained, tmp_path):
    table = tmp_path / "texts.csv"
    table.write_text("label,text\nham,ok\nham,lunch\n,ok\nspam,ok\nspam,pills\nham,ok\n")
    assert "1 text each" in nbspam("train", "-m", trained, table, "--max-tokens", "9")[1]
    assert nbspam("relabel", "--to", "ham", f"{table}#4") == (0, "moved 1\n", "")
    assert nbspam("unlearn", f"{table}#1", f"{table}#6") == (0, "un-learned 2\n", "")
    assert nbspam("update", table)[1] == "learned 2, already known 2, moved 1, skipped 1\n"

"""What a person has told of a message: a flag that every way to a model keeps, and no doubt."""

import os
import random
import tarfile

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from nbspam.settings import MANY, PRESETS
from nbspam.sources.items import read_items
from nbspam.store.journal import journal_path, read_journal
from nbspam.store.merging import merge
from nbspam.store.model import StoredModel
from nbspam.store.open import load_classifier
from nbspam.store.text import model_lines
from nbspam.store.upkeep import findings
from stored import DAY, bytes_of, few, letter, train_on, trained
from support import FROM, HAM, SPAM, write_mails

SETTINGS = {"mail": PRESETS["mail"], "many": MANY["mail"]}
OWN = b"lunch friday garden", b"pills cheap casino"


def item(n, label, told=False):
    """Return message n; its words are those of one class, and n decides of which."""
    return letter(n, label, OWN[n * 7 % 10 % 2], told)


START = [item(n, ("ham", "spam")[n % 2]) for n in range(100, 130)]
LABELS = st.sampled_from(["ham", "spam"])


def export_of(classifier):
    return b"".join(model_lines(classifier))


@pytest.mark.parametrize("kind", SETTINGS)
@given(
    filed=st.lists(st.tuples(LABELS, st.booleans()), min_size=12, max_size=12),
    first=st.sets(st.integers(0, 11)),
    told_there=st.sets(st.integers(0, 11)),
)
@few
def test_merging_is_training_together_and_what_one_was_told_both_know(
    tmp_path, kind, filed, first, told_there
):
    paths, settings = [str(tmp_path / name) for name in ("a.nbspam", "b.nbspam")], SETTINGS[kind]
    here = {n: item(n, *filed[n]) for n in first}
    there = {n: item(n, filed[n][0], n in told_there) for n in range(6, 12)}
    train_on([*START, *here.values()], paths[0], settings)
    train_on([*START[:4], *there.values()], paths[1], settings)

    both = {
        n: item(n, filed[n][0], any(part[n].told for part in (here, there) if n in part))
        for n in {*here, *there}
    }
    together = train_on([*START, *both.values()], tmp_path / "together", settings)
    for order in (paths, paths[::-1]):
        merged = merge(order, DAY)
        assert bytes_of(merged.classifier, tmp_path / "merged") == together
        assert (merged.repeated, merged.disputed) == (4 + len(here.keys() & there.keys()), 0)


@given(
    copies=st.lists(st.tuples(st.booleans(), st.integers(0, 3), LABELS), min_size=2, max_size=3)
)
@example(copies=[(False, 2, "ham"), (False, 1, "spam")])
@example(copies=[(False, 1, "ham"), (False, 3, "ham"), (False, 2, "spam")])
@few
def test_of_a_dispute_the_told_word_holds_else_the_later_else_that_of_the_last_model(
    tmp_path, copies
):
    paths = [str(tmp_path / name) for name in "abc"[: len(copies)]]
    for path, (is_told, day, label) in zip(paths, copies, strict=True):
        train_on(START, path)
        StoredModel(path).learn([item(1, label, is_told)], day=DAY + day)
    merged = merge(paths, DAY)

    told, _, _, holds = max((*copy[:2], k, copy[2]) for k, copy in enumerate(copies))
    assert merged.disputed == sum(label != holds for _, _, label in copies)
    expected = [16, 15] if holds == "ham" else [15, 16]
    assert merged.classifier.table.class_count.tolist() == expected
    for last in paths[2:]:  # one after the other, too
        bytes_of(merge(paths[:2], DAY).classifier, tmp_path / "two")
        stepwise = merge([str(tmp_path / "two"), last], DAY)
        assert stepwise.classifier.table.class_count.tolist() == expected
    assert merged.classifier.memory.ledger.told.sum() == told


def test_of_several_copies_the_last_class_counts_and_one_told_copy_tells_it():
    told = [item(1, "ham", True), item(2, "ham", True), item(2, "spam"), item(3, "ham", True)]
    filed = [item(1, "ham"), item(3, "spam"), item(3, "ham")]

    expected = trained([*START, item(1, "ham", True), item(2, "spam"), item(3, "ham")])
    assert export_of(trained([*START, *told, *filed])) == export_of(expected)


def test_confirming_a_label_is_a_change_and_says_so(tmp_path):
    path = str(tmp_path / "m.nbspam")
    train_on([item(n, ("ham", "spam")[n % 2]) for n in range(100, 400)], path)

    first = StoredModel(path).relabel([item(101, None)], "spam", day=DAY)
    assert (first.confirmed, first.moved, first.already_known) == (1, 0, 0)
    (change,) = read_journal(path).changes
    assert (change.before, change.after, change.told) == ("spam", "spam", True)
    again = StoredModel(path).learn([item(101, "spam", told=True)], day=DAY)
    filed = StoredModel(path).learn([item(101, "spam")], day=DAY)
    assert (again.already_known, filed.already_known) == (1, 1)
    # Between two fits only counts change, and these are what they were.
    assert load_classifier(path).table.class_count.tolist() == [150, 150]
    StoredModel(path).compact()
    assert not os.path.exists(journal_path(path))
    ledger = StoredModel(path).whole().memory.ledger
    assert (ledger.told.sum(), len(ledger.told)) == (1, 300)
    (found,) = (each.text for each in findings(path) if each.what == "ledger")
    assert found == "300 messages, 1 of them told one at a time"


# --- what counts as told -------------------------------------------------------------------


def n_told(path):
    return int(StoredModel(str(path)).whole().memory.ledger.told.sum())


def test_single_messages_of_a_stated_class_are_told_the_first_of_a_model_too(
    nbspam, model, tmp_path
):
    one = tmp_path / "one.eml"
    one.write_bytes(SPAM + b"one\n")
    told_so = [
        (("--ham", "-"), HAM),
        (("--spam", one), None),
        (("--label", f"spam={tmp_path / 'two.eml'}"), None),
        (("--spam", "-"), FROM + SPAM + b"1\n"),
        (("--spam", f"{tmp_path / 'alone.mbox'}#1"), None),
    ]
    (tmp_path / "alone.mbox").write_bytes(FROM + SPAM + b"alone\n\n")
    (tmp_path / "two.eml").write_bytes(SPAM + b"two\n")
    for number, (options, data) in enumerate(told_so, 1):
        assert nbspam("update", *options, stdin=data)[0] == 0
        assert n_told(model) == number
    assert nbspam("relabel", "--to", "ham", one)[1] == "moved 1\n"
    assert nbspam("relabel", "--to", "ham", one)[1] == "already known 1\n"


def test_what_lies_in_folders_and_mailboxes_is_filed(nbspam, model, tmp_path):
    mails = write_mails(tmp_path / "one", 1)
    files = [tmp_path / f"{n}.eml" for n in range(2)]
    for n, file in enumerate(files):
        file.write_bytes(SPAM + b"new %d\n" % n)
    (tmp_path / "one.mbox").write_bytes(FROM + SPAM + b"2\n")
    with tarfile.open(tmp_path / "packed", "w") as archive:  # no archive by its name
        for n in range(2):
            archive.add(files[n], f"{n}.eml")

    assert nbspam("train", mails)[0] == 0
    assert nbspam("update", "--spam", mails / "spam", "--ham", mails / "ham")[0] == 0
    assert nbspam("update", "--spam", tmp_path / "one.mbox")[1] == "learned 1\n"
    assert nbspam("update", "--spam", mails / "spam")[1] == "already known 1\n"
    assert nbspam("update", "--spam", tmp_path / "packed", "--format", "tar")[1] == "learned 2\n"
    assert nbspam("update", "--spam", *files)[1] == "already known 2\n"
    assert n_told(model) == 0
    assert nbspam("relabel", "--to", "ham", mails / "ham")[1] == "confirmed 1\n"
    assert n_told(model) == 1


# --- what it is for ------------------------------------------------------------------------


def shuffled(mails):
    items = [each._replace(data=each.read()) for each in read_items([str(mails)])]
    random.Random(5).shuffle(items)
    return items


def turned(items):
    other = {"ham": "spam", "spam": "ham"}
    return [each._replace(label=other[each.label]) for each in items]


def test_corrected_messages_are_answered_as_told_more_often_than_before(mails, tmp_path):
    path, items = str(tmp_path / "m.nbspam"), shuffled(mails)
    n_wrong = len(items) // 5
    filed = turned(items[:n_wrong])
    corrected = items[: n_wrong // 2]  # the rest stays wrong, and keeps the model doubting
    train_on([*filed, *items[n_wrong:]], path)
    before = answered_right(StoredModel(path).whole(), corrected)
    for each in corrected:
        assert StoredModel(path).relabel([each], each.label, day=DAY).moved == 1
    after = answered_right(StoredModel(path).whole(), corrected)
    rest = [*filed[n_wrong // 2 :], *items[n_wrong:]]
    as_filed = answered_right(trained([*corrected, *rest]), corrected)

    assert (after | ~before).all()  # none is lost
    assert before.sum() < as_filed.sum() <= after.sum()
    assert after.mean() >= 0.95


def test_a_person_who_contradicts_all_other_mail_is_believed(mails):
    items = shuffled(mails)
    astray, taste = turned(items[:40]), turned(items[40:60])
    told = [each._replace(told=True) for each in taste]

    before = answered_right(trained([*astray, *items[40:]]), taste).sum()
    as_filed = answered_right(trained([*astray, *taste, *items[60:]]), taste).sum()
    as_told = answered_right(trained([*astray, *told, *items[60:]]), taste).sum()
    assert before < as_filed < as_told
    assert as_told >= 19


def answered_right(classifier, items):
    verdicts = classifier.classify(items)
    return np.array([v.label == i.label for v, i in zip(verdicts, items, strict=True)])

"""Laws of a model that learns on: it depends on its messages alone, to the last bit."""

import os
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import stored
from nbspam.classifier.blend import Blend
from nbspam.counts import ledger
from nbspam.counts.ledger import NOT_FILED, FiledMessage
from nbspam.counts.lessons import Outcome
from nbspam.decision import cutoffs
from nbspam.errors import ModelFileError, NotTrainedError, UsageError
from nbspam.settings import PLAIN, PRESETS
from nbspam.sources.items import Item
from nbspam.store import model as store_model
from nbspam.store import text
from nbspam.store.journal import journal_path
from nbspam.store.merging import merge
from nbspam.store.model import StoredModel
from nbspam.store.open import load_tokens as load
from nbspam.store.open import save_classifier
from nbspam.store.upkeep import BAD, PruningRule, findings, prune_model
from stored import DAY, EVERY_SETTING, bytes_of, few, letter, no_room, whole_bytes
from support import HAM, ROOT, SPAM, examples, plain, words_of


def in_turn(numbers, *labels):
    return [letter(n, labels[k % len(labels)]) for k, n in enumerate(numbers)]


# Of the first every change is a twentieth of a class, so that the journal is never used; of the
# others the fifth change of a class is.
START, MORE = (in_turn(range(100, end), "spam", "ham") for end in (108, 268))
THREE, MORE_OF_THREE = (in_turn(range(100, end), "ham", "spam", "work") for end in (108, 352))
DO = st.sampled_from(["file", "tell", "relabel", "unlearn"])
LABELS = st.sampled_from(["ham", "spam", "work"])
HISTORIES = st.lists(st.tuples(st.integers(0, 7), DO, LABELS), max_size=12)


def start_of(preset, more):
    if preset.startswith("many"):
        return MORE_OF_THREE if more else THREE
    return MORE if more else START


def train_on(items, path, preset="mail"):
    return stored.train_on(items, path, EVERY_SETTING[preset])


@pytest.fixture(scope="module")
def start_bytes(tmp_path_factory):
    """Return the bytes of the model of a preset that many tests start from, trained once."""
    path = tmp_path_factory.mktemp("start") / "m.nbspam"
    return cache(lambda preset, more: train_on(start_of(preset, more), path, preset))


@pytest.fixture
def path(tmp_path):
    return tmp_path / "m.nbspam"


def take(model, n, do, label):
    if do == "unlearn":  # by a copy that came another way, whose traces were not learned
        head = b"Received: by omega\n" * (model.settings.reading == "mail")
        return model.unlearn([letter(n, head=head)], day=DAY)
    if do == "relabel":
        return model.relabel([letter(n)], label, day=DAY, new_class=True)
    return model.learn([letter(n, label, told=do == "tell")], day=DAY, new_class=True)


def filed_after(before, do, label):
    """Return where a message is after a step, and the outcome; before: where it was."""
    if do == "unlearn":
        return NOT_FILED, Outcome(unknown=1) if before == NOT_FILED else Outcome(unlearned=1)
    after = FiledMessage(label, do != "file" or before == (label, True))
    if before == NOT_FILED:
        return after, Outcome(learned=1)
    if before.label != label:
        return after, Outcome(moved=1)
    return after, Outcome(already_known=1) if before == after else Outcome(confirmed=1)


@pytest.mark.parametrize("preset", EVERY_SETTING)
@given(history=HISTORIES, with_journal=st.booleans(), compact_at=st.integers(0, 12))
@few
def test_same_messages_labels_and_flags_are_the_same_model_whatever_the_way(
    tmp_path, start_bytes, preset, history, with_journal, compact_at
):
    """On disk, in memory and as text it is the model that is trained on what is left."""
    path, scratch = tmp_path / "m.nbspam", tmp_path / "scratch"
    path.with_name("m.nbspam.journal").unlink(missing_ok=True)  # of the example before
    path.write_bytes(start_bytes(preset, with_journal))
    memory, filed = StoredModel.in_memory(load(str(path))), {}
    for number, (n, *step) in enumerate(history):
        filed[n], expected = filed_after(filed.get(n, NOT_FILED), *step)
        for model in (StoredModel(str(path)), memory):
            assert replace(take(model, n, *step), notes=()) == expected
        if number == compact_at:
            StoredModel(str(path)).compact()
    left = [letter(n, f.label, told=f.told) for n, f in filed.items() if f != NOT_FILED]
    expected = train_on([*left, *start_of(preset, with_journal)], scratch, preset)

    assert whole_bytes(path) == expected
    assert bytes_of(memory.whole(), scratch) == expected
    lines = text.model_lines(load(str(scratch)))
    assert bytes_of(text.model_of_lines(lines, "x"), scratch) == expected


@pytest.mark.parametrize("preset", ["mail", "plain"])
def test_a_copy_may_lack_a_token_that_all_forgotten_messages_have(path, monkeypatch, preset):
    """Then the token would be in more messages than the class has, for doctor and Bernoulli."""
    monkeypatch.setattr(ledger, "MAX_SAMPLE", 1)
    head = {"spam": b"X-Mailer: alpha\n", "ham": b"X-Mailer: omega\n"}
    start = [letter(n, ("ham", "spam")[n % 2]) for n in range(24)]
    start = [each._replace(data=head[each.label] + each.data) for each in start]
    settings = PRESETS["mail"] if preset == "mail" else replace(PLAIN["mail"], model="bernoulli")
    before = stored.train_on(start, path, settings)
    StoredModel(str(path)).unlearn([letter(n) for n in (1, 3, 5, 7)], day=DAY)
    load(str(path)).answers([letter(1)])
    whole_bytes(path)

    assert not [each for each in findings(str(path)) if each.state == BAD]
    StoredModel(str(path)).learn([letter(n, "spam") for n in (1, 3, 5, 7)], day=DAY)
    assert whole_bytes(path) == before


def test_two_classes_must_be_left_if_they_are_not_those_of_mail(path):
    start = [i._replace(label="work") if i.label == "ham" else i for i in START]
    before = train_on(start, path)
    with pytest.raises(NotTrainedError, match="all messages would be of class work, and a cl"):
        StoredModel(str(path)).unlearn([i for i in start if i.label == "spam"], day=DAY)

    assert path.read_bytes() == before


@pytest.mark.parametrize("prior", [
    {"class_prior": (0.3, 0.7)},
    {"class_prior": "smoothed", "parameters": {"class_dirichlet": [3.0, 7.0]}},
])  # fmt: skip
def test_a_prior_that_was_given_allows_no_other_classes(path, prior):
    """Such a lesson would be in the journal, and no command could read the model any more."""
    before = stored.train_on(START, path, replace(PLAIN["mail"], **prior))
    said = "a prior was given for ham, spam, not for ham, spam, zoo"
    with pytest.raises(UsageError, match=said):
        StoredModel(str(path)).learn([letter(1, "zoo")], day=DAY, new_class=True)

    assert whole_bytes(path) == before


@pytest.mark.parametrize("preset", ["mail", "text", "plain", "many, mail"])
def test_a_journal_gives_the_counts_of_the_model_it_will_become(path, start_bytes, preset):
    path.write_bytes(start_bytes(preset, True))
    StoredModel(str(path)).learn([letter(n, "ham") for n in range(3)], day=DAY)
    StoredModel(str(path)).unlearn(start_of(preset, True)[:1], day=DAY)
    laid_over, whole = load(str(path)).table, StoredModel(str(path)).whole().table
    assert os.path.exists(journal_path(str(path)))

    column = laid_over.vocabulary.columns(whole.vocabulary.keys)
    assert (column >= 0).all()
    assert plain(laid_over.take(np.sort(column))) == plain(whole)
    assert laid_over.document_frequency.sum() == whole.document_frequency.sum()
    words = words_of(laid_over)
    assert [words[j] for j in column] == words_of(whole)


def test_a_new_word_of_a_forgotten_message_that_is_moved_is_in_its_new_class_only(
    path, monkeypatch
):
    """The copy that moves it has a word that the model does not know: ham has it -1 times."""
    monkeypatch.setattr(ledger, "MAX_SAMPLE", 1)
    train_on(MORE, path)
    model, head = StoredModel(str(path)), b"X-Mailer: omega\n"
    model.relabel([letter(101, head=head)], "spam", day=DAY)
    model.learn([letter(1, "spam", head=head)], day=DAY)

    assert os.path.exists(journal_path(str(path)))
    for each in (model, StoredModel(str(path), served=f"{path}.served")):
        table = each.classifier().table
        column = words_of(table).index("mailer:omega")
        assert table.feature_count[column].tolist() == [0, 2]


@pytest.mark.parametrize("preset", ["mail", "many, mail"])
def test_a_class_is_in_the_models_file_from_its_first_message_on(path, start_bytes, preset):
    path.write_bytes(start_bytes(preset, True))
    names = load(str(path)).classes
    zoo = [letter(n, "zoo", b"giraffe") for n in range(3)]
    outcome = StoredModel(str(path)).learn(zoo[:1], day=DAY, new_class=True)
    assert not os.path.exists(journal_path(str(path)))
    StoredModel(str(path)).learn(zoo[1:], day=DAY, new_class=True)
    now = load(str(path))
    (answer,) = now.answers([letter(9, words=b"giraffe giraffe")])

    assert outcome.notes == (f"zoo: a new class; the model had {', '.join(names)}",)
    assert now.classes == (*names, "zoo")
    assert now.classes[answer.joint.argmax()] == "zoo"


def test_many_classes_that_become_two_are_blended_still(path):
    train_on(THREE, path, "many, text")
    StoredModel(str(path)).unlearn([i for i in THREE if i.label == "work"], day=DAY)
    two, two_bytes = load(str(path)), whole_bytes(path)

    assert isinstance(two.fit, Blend)
    assert two_bytes == train_on([i for i in THREE if i.label != "work"], path, "many, text")
    (verdict,) = two.classify([THREE[0]])
    assert verdict.label == "ham"
    assert verdict.score < 0


def test_a_policy_learns_what_the_model_gets_wrong_and_counts_it_plainly(path):
    items = [letter_of(n, label) for n in range(30) for label in ("ham", "spam")]
    train_on(items, path)
    right, wrong = Item("r", "ham", HAM + b"more\n"), Item("w", "ham", SPAM + b"more\n")
    outcome = StoredModel(str(path)).learn([right, wrong], day=DAY, policy="error")

    assert (outcome.learned, outcome.passed) == (1, 1)
    assert whole_bytes(path) == train_on([*items, wrong], path)

    train_on(START, path)  # near misses are learned, too, and new classes always
    how = {"day": DAY, "policy": "error", "new_class": True}
    assert StoredModel(str(path)).learn([letter(1, "work")], **how).learned == 1
    assert StoredModel(str(path)).learn([letter(2, "ham")], day=DAY, policy="near").learned == 1


def test_rows_of_a_table_all_count_and_are_known_when_they_come_again(path):
    rows = [Item(f"t#{n}", "ham", b"ok", True) for n in range(3)]
    start = [i._replace(is_text=True) for i in START]
    whole = train_on([*start, *rows], path, "text")
    train_on(start, path, "text")

    assert StoredModel(str(path)).learn(rows, day=DAY).learned == 3
    assert whole_bytes(path) == whole
    assert StoredModel(str(path)).learn(rows, day=DAY).already_known == 3
    assert StoredModel(str(path)).unlearn(rows, day=DAY).unlearned == 3


STEPS = st.lists(
    st.tuples(st.sampled_from(["ham", "spam", None]), st.integers(0, 6)), min_size=1, max_size=12
)


def messages(documents, y):
    rows = range(documents.n_docs)
    return sorted((int(y[row]), documents.one(row).tokens.tolist()) for row in rows)


@examples(30)
@given(STEPS)
def test_lessons_are_those_of_the_model_that_a_fit_would_make(tmp_path_factory, steps):
    path = str(tmp_path_factory.mktemp("model") / "m")
    stored.train_on([Item("-", "ham", HAM), Item("-", "spam", SPAM)], path)
    model = StoredModel(path)
    model.learn([Item("-", "ham", HAM + b"word%d\n" % n) for n in range(30)], day=1)
    for label, n in steps:
        each = Item("-", label, SPAM + b"other%d\n" % n)
        if label is None:
            model.unlearn([each], day=2)
        else:
            model.learn([each], day=2, classes=[label])

    table, documents, y = StoredModel(path).lessons()
    whole = StoredModel(path).whole()
    met = np.flatnonzero(table.document_frequency)
    assert table.class_count.tolist() == whole.table.class_count.tolist()
    assert plain(table.take(met)) == plain(whole.table)
    keys = whole.table.vocabulary.keys
    sample = whole.memory.sample.documents
    over_keys = sample._replace(tokens=keys[sample.tokens])
    assert messages(documents, y) == messages(over_keys, whole.memory.sample_labels)


def test_a_copy_on_another_way_is_known_and_another_reading_of_the_same_bytes_is_not(
    nbspam, trained
):
    mail = (ROOT / "corpora/mail/ham/038-wrong-charset-label-menu.eml").read_bytes()
    copies = (
        b"Received: from a by b\n\twith c\nReturn-Path: <x@example.org>\n" + mail,
        mail.replace(b"Subject:", b"X-Spam-Status: Yes, score=9\nSubject: [SPAM]"),
        mail.replace(b"\n", b"\r\n"),
        b"From MAILER-DAEMON Mon Jan  5 10:00:00 2026\n" + mail + b"\n\n",
    )
    assert nbspam("update", "--ham", "-", stdin=mail)[1] == "learned 1\n"
    for copy in copies:
        assert copy != mail
        assert nbspam("update", "--ham", "-", stdin=copy)[1] == "already known 1\n"

    other = mail.replace(b"text/plain", b"text/html", 1)
    assert nbspam("update", "--spam", "-", stdin=other)[1] == "learned 1\n"
    assert nbspam("update", "--ham", "-", stdin=mail)[1] == "already known 1\n"


# ---- a model's first day ----

SETTINGS = {"mail": PRESETS["mail"], "text": PRESETS["text"], "plain": PLAIN["mail"]}


def letter_of(n, label):
    data = {"ham": HAM, "spam": SPAM, "work": SPAM}[label]
    return Item(f"m{n}", label, data + b"number %d of %d\n" % (n, n % 3))


def new(path, kind="mail"):
    return StoredModel(str(path), new=SETTINGS[kind])


@pytest.mark.parametrize("kind", SETTINGS)
@given(labels=st.lists(st.sampled_from(["ham", "spam"]), min_size=1, max_size=9))
@few
def test_what_begins_with_nothing_becomes_the_model_trained_on_the_same_mail(
    tmp_path, kind, labels
):
    path = tmp_path / "m"
    path.unlink(missing_ok=True)
    items = [letter_of(n, label) for n, label in enumerate(labels)]
    for number, each in enumerate(items, 1):
        assert new(path, kind).learn([each], day=DAY).learned == 1
        classifier = load(str(path))
        assert classifier.classes == ("ham", "spam")
        assert (classifier.lack is None) == (len(set(labels[:number])) == 2)
    if len(set(labels)) == 2:
        assert whole_bytes(path) == stored.train_on(items, tmp_path / "once", SETTINGS[kind])


@pytest.mark.parametrize("kind", SETTINGS)
@pytest.mark.parametrize(("label", "other"), [("ham", "spam"), ("spam", "ham")])
def test_a_model_of_one_class_is_unsure_of_everything(path, kind, label, other):
    living = new(path, kind)
    living.learn([letter_of(n, label) for n in range(70)], day=DAY)
    outcome = living.learn([letter_of(70, label)], day=DAY)  # no fit is due
    assert os.path.exists(f"{path}.journal")
    classifier = load(str(path))
    asked = [letter_of(5, "ham"), letter_of(5, "spam")]
    for rule in (None, cutoffs(), cutoffs(99), cutoffs(2, 0.1)):
        for verdict in classifier.classify(asked, rule=rule):
            assert (verdict.label, verdict.probability) == ("unsure", 0.5)
            assert verdict.posterior == {"ham": 0.5, "spam": 0.5}
    assert outcome.notes == (classifier.lack,)
    assert f"knows only {label}" in classifier.lack
    assert f"nbspam update --{other} PATH" in classifier.lack
    assert classifier.prior.tolist() == [0.5, 0.5]
    explanation = classifier.explain(asked[0])
    assert (explanation.score, explanation.constant) == (0, 0)
    assert not any(row.contribution for row in explanation.evidence)
    assert not [each for each in findings(str(path)) if each.state == BAD]


def test_a_model_can_lose_its_classes_and_get_them_again(path, tmp_path):
    items = [letter_of(n, "ham" if n % 2 else "spam") for n in range(6)]
    new(path).learn(items, day=DAY)
    StoredModel(str(path)).unlearn(items[::2], day=DAY)
    assert "only ham" in load(str(path)).lack
    StoredModel(str(path)).unlearn(items, day=DAY)
    empty = load(str(path))

    assert "no mail yet" in empty.lack
    assert (empty.table.n_docs, len(empty.table.vocabulary)) == (0, 0)
    assert [v.label for v in empty.classify([items[0]])] == ["unsure"]
    StoredModel(str(path)).learn(items, day=DAY)
    assert whole_bytes(path) == train_on(items, tmp_path / "once")


def test_two_who_begin_at_once_lose_nothing(path):
    first, second = new(path), new(path)
    first.learn([letter_of(1, "ham")], day=DAY)
    second.learn([letter_of(2, "spam")], day=DAY)

    assert load(str(path)).table.class_count.tolist() == [1, 1]
    assert first.classifier().lack is None


def test_what_makes_no_first_model_leaves_no_file(path, monkeypatch):
    assert len(new(path).learn([Item("a", None, SPAM)], day=DAY).skipped) == 1
    assert not new(path).is_there
    with pytest.raises(NotTrainedError, match="all messages would be of class work"):
        new(path).learn([letter_of(1, "work")], day=DAY, new_class=True)
    with monkeypatch.context() as patched:
        patched.setattr(store_model.journals, "write_model", no_room)
        with pytest.raises(ModelFileError, match="No space left"):
            new(path).learn([letter_of(1, "spam")], day=DAY)
    assert not path.exists()
    assert not os.path.exists(f"{path}.journal")

    both = [letter_of(1, "work"), letter_of(2, "ham")]  # ham alone would do, work does not
    assert new(path).learn(both, day=DAY, new_class=True).learned == 2
    assert load(str(path)).classes == ("ham", "work")


def test_models_of_one_class_each_merge_to_the_model_of_both(path, tmp_path):
    items = {label: [letter_of(n, label) for n in range(5)] for label in ("ham", "spam")}
    for label, some in items.items():
        new(tmp_path / label).learn(some, day=DAY)
    merged = merge([str(tmp_path / label) for label in items], DAY).classifier

    both = train_on([*items["ham"], *items["spam"]], tmp_path / "once")
    assert bytes_of(merged, path) == both


def test_a_model_of_one_class_is_exported_imported_and_pruned(path):
    new(path).learn([letter_of(n, "spam") for n in range(3)], day=DAY)
    before = path.read_bytes()
    save_classifier(str(path), text.model_of_lines(text.model_lines(load(str(path))), "-"))

    assert path.read_bytes() == before
    lines = list(text.bogofilter_lines(load(str(path))))
    assert lines[0].startswith(b".MSG_COUNT 3 0 ")
    assert "only spam" in text.model_of_bogofilter_lines(lines, "-").lack
    prune_model(str(path), PruningRule(min_df=2, half_life=1.0), DAY + 9)
    assert np.asarray(load(str(path)).table.class_count).tolist() == [0, 1]

"""The journal: after any crash or damage every acknowledged change is there or missed aloud."""

import errno
import json
import os
import re
import resource
import shutil
import zlib
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nbspam.counts.ledger import LabelChange, LogProgress
from nbspam.errors import ModelFileError, ModelWarning
from nbspam.mail.digest import digest_of
from nbspam.settings import PRESETS
from nbspam.store import assembly, modelfile
from nbspam.store import journal as journal_format
from nbspam.store.journal import Condition, end_mark, journal_path, read_journal, write_journal
from nbspam.store.model import StoredModel
from nbspam.store.modelfile import Identity, identity_at
from nbspam.store.open import keep_cutoffs, save_classifier, save_keeping
from nbspam.store.open import load_tokens as load
from nbspam.store.upkeep import BAD, GOOD, NOTE, PruningRule, findings, prune_model, repair
from nbspam.tokens.sparse import Documents, Vocabulary
from stored import half_spam, train_on
from stored import numbered as item
from support import examples, in_child, raising, told, words_of

OWNER = Identity(1234, 5678)
# Large enough to learn a few messages more before the journal is merged into the model.
N_DOCS, N_CHANGES = 400, 4
NAMES = st.one_of(st.none(), st.text(max_size=5))


@st.composite
def changes(draw):
    keys = draw(st.lists(st.integers(0, 1 << 63), max_size=5, unique=True).map(sorted))
    new = sorted(draw(st.sets(st.sampled_from(keys)))) if keys else []
    lengths = draw(st.lists(st.integers(0, 9), min_size=len(new), max_size=len(new)))
    counts = draw(st.lists(st.integers(1, 3), min_size=len(keys), max_size=len(keys)))
    n = len(keys)
    return LabelChange(
        draw(st.integers(0, (1 << 64) - 1)),
        draw(NAMES),
        draw(NAMES),
        draw(st.integers(0, 65535)),
        Documents(np.array(keys, "u8"), np.array([0, n]), np.arange(n), np.array(counts, "u4")),
        Vocabulary(
            np.array(new, "u8"),
            np.arange(sum(lengths), dtype="u1"),
            np.cumsum([0, *lengths]),
            np.zeros(len(new), "u1"),
        ),
        draw(st.booleans()),
    )


def plain(change):
    """Return a change as values that can be compared."""
    document, new = change.document, change.new
    arrays = (
        *(document.tokens, document.columns, document.times()),
        *(new.keys, new.blob, new.offsets, new.groups),
    )
    return [*change[:4], change.told, *(array.tolist() for array in arrays)]


def learn(path, *numbers):
    return StoredModel(path).learn([item(n) for n in numbers], day=1)


@pytest.fixture(scope="module")
def trained_bytes(tmp_path_factory):
    path = tmp_path_factory.mktemp("trained") / "m.nbspam"
    return train_on(half_spam(range(1000, 1000 + N_DOCS)), path, day=1)


@pytest.fixture
def model(trained_bytes, tmp_path):
    (tmp_path / "m.nbspam").write_bytes(trained_bytes)
    return str(tmp_path / "m.nbspam")


@pytest.fixture
def changed(model):
    """The path of a model with a journal of four changes."""
    for n in range(N_CHANGES):
        learn(model, n)
    return model


@pytest.fixture
def journal(model):
    return Path(journal_path(model))


def known(path):
    """Return which of the messages 0 to 99 a model has learned."""
    texts = set(words_of(load(path).table))
    return [n for n in range(100) if f"pills{n}" in texts]


def found_in_journal(path):
    return next(each for each in findings(path) if each.what == "journal")


def aside(journal):
    """Return the contents of the journals that were kept aside."""
    return [path.read_bytes() for path in sorted(journal.parent.glob("*.journal.*"))]


@examples(20)
@given(written=st.lists(st.lists(changes(), max_size=3), max_size=3))
def test_appended_changes_are_read(tmp_path_factory, written):
    path = str(tmp_path_factory.mktemp("j") / "m")
    state = write_journal(path, OWNER, [])
    for batch in filter(None, written):
        held = state
        state = journal_format.append(path, state, batch)
        more = journal_format.read_more(path, OWNER, held)
        assert [plain(change) for change in more.changes] == [plain(change) for change in batch]
        assert more._replace(changes=[]) == state._replace(changes=[])
    found = read_journal(path)

    assert [plain(c) for c in found.changes] == [plain(c) for batch in written for c in batch]
    assert found._replace(changes=[]) == state._replace(changes=[])
    assert found.is_whole
    assert os.stat(journal_path(path)).st_mode & 0o777 == 0o600


def test_the_bytes_of_a_journal_are_those_of_the_reference_page(tmp_path):
    document = Documents(
        np.array([5, 6], "u8"), np.array([0, 2]), np.arange(2), np.array([1, 3], "u4")
    )
    text, groups = np.frombuffer(b"ab", "u1"), np.zeros(1, "u1")
    new = Vocabulary(np.array([5], "u8"), text, np.array([0, 2]), groups)
    change = LabelChange(7, None, "spam", 20_000, document, new, told=True)
    write_journal(str(tmp_path / "m"), OWNER, [change])
    pieces = (
        b"nbspam journal\0\0".hex(),
        "01000000 d204000000000000 2e160000 9bc17057",  # format, model file, checksum
        "42000000 0700000000000000 204e",  # length, digest, day
        "ffffffff 04000000 02000000 02000000 01000000 01",  # lengths, numbers, told
        b"spam".hex(),
        "0600000000000000 0500000000000000 03000000 01000000",  # tokens, counts
        "02000000 00 6162 85637660",  # the new token, checksum
        "ffffffff 01000000 000000000000000000000000",  # end mark: records, successor,
        "00000000 0000000000000000 00000000 0000000000000000 ff 6d77e319",  # progress in a log
    )

    assert (tmp_path / "m.journal").read_bytes() == bytes.fromhex("".join(pieces))


# ---- several readers and writers ----


def test_a_reader_reads_again_if_a_writer_overtakes_it(model, monkeypatch):
    """The model is replaced and its journal removed between the two reads of a reader."""
    learn(model, 1)
    looks = []

    def overtaken(path, name=None, read=journal_format.read_journal):
        looks.append(path)
        if len(looks) == 1:
            save_classifier(model, StoredModel(model).whole())
        return read(path, name)

    monkeypatch.setattr(journal_format, "read_journal", overtaken)
    assert known(model) == [1]
    assert len(looks) == 7  # three of them by the writer, and two by each look at the files


def test_an_open_model_follows_what_others_learn_write_and_delete(model, journal):
    held = StoredModel(model)
    learn(model, 1)
    assert held.whole().table.n_docs == N_DOCS + 1
    save_classifier(model, StoredModel(model).whole())
    learn(model, 2)
    assert held.classifier().table.n_docs == N_DOCS + 2
    assert held.learn([item(1), item(2), item(3)], day=1).learned == 1
    journal.unlink()  # its changes are lost
    with pytest.warns(ModelWarning, match="journal: it has vanished, and 2 changes with it"):
        assert held.learn([item(2)], day=1).learned == 1
    assert known(model) == [1, 2]
    journal.unlink()
    with pytest.warns(ModelWarning, match="it has vanished, and 1 change with it"):
        held.classifier()


def test_changes_that_a_writer_takes_back_disappear(model, journal):
    """A record can be read before its writer learns that writing it failed."""
    learn(model, 1)
    before = journal.read_bytes()
    learn(model, 2)
    held = StoredModel(model)
    journal.write_bytes(before)
    learn(model, *range(3, 9))  # more bytes than before

    assert held.classifier().table.n_docs == N_DOCS + 7
    assert held.learn([item(2)], day=1).learned == 1
    assert known(model) == [*range(1, 9)]


def test_messages_read_for_another_model_are_not_learned(model):
    """The model is retrained with other settings while messages for it are read."""
    held = StoredModel(model)

    def items():
        train_on(half_spam(range(4)), model, PRESETS["text"])
        yield item(9)

    with pytest.raises(ModelFileError, match="replaced by another model just now"):
        held.learn(items(), day=1)
    assert load(model).table.n_docs == 4
    assert held.learn([item(9)], day=1).learned == 1


def test_a_journal_is_merged_when_a_class_has_grown(model, journal):
    has_journal = []
    for n in range(21):
        learn(model, n)
        has_journal.append(journal.exists())

    # A twentieth of two hundred is ten, and of 210 it is eleven.
    assert has_journal == [*([True] * 9), False, *([True] * 10), False]
    assert known(model) == [*range(21)]


def test_pruning_and_learning_at_once_loses_nothing(model):
    tasks = (
        lambda n: learn(model, n),
        lambda n: learn(model, n + 50),
        lambda n: prune_model(model, PruningRule(min_df=2), 2),
    )
    with ThreadPoolExecutor(3) as pool:
        list(pool.map(lambda task: [task(n) for n in range(15)], tasks))

    assert len(StoredModel(model).whole().memory.ledger.digests) == N_DOCS + 30
    assert load(model).table.n_docs == N_DOCS + 30


# ---- disks that fail, and kills ----


@pytest.mark.parametrize(
    ("call", "code"), [("open", errno.EIO), ("write", errno.ENOSPC), ("fsync", errno.EIO)]
)
def test_a_failing_disk_is_an_error_and_changes_nothing(model, journal, monkeypatch, call, code):
    learn(model, 1)
    before = journal.read_bytes()
    held = StoredModel(model)
    real = getattr(os, call)

    def refuse(what, *arguments):
        writes = str(what).endswith(".journal") and arguments[0] & os.O_RDWR
        if call == "open" and not writes:
            return real(what, *arguments)
        if call == "write":
            real(what, bytes(arguments[0])[:10])
        raise OSError(code, os.strerror(code))

    with monkeypatch.context() as broken:
        broken.setattr(journal_format.os, call, refuse)
        with pytest.raises(ModelFileError, match=r"m\.nbspam: cannot be written: "):
            held.learn([item(2)], day=1)
    assert journal.read_bytes() == before
    assert held.learn([item(2)], day=1).learned == 1
    assert known(model) == [1, 2]


def test_a_full_disk_leaves_a_model_that_loads(model):
    def fill():
        living, n = StoredModel(model), 0
        resource.setrlimit(resource.RLIMIT_FSIZE, (700, 700))
        try:
            while True:
                n += living.learn([item(n)], day=1).learned
        except ModelFileError as error:
            os._exit(n if "cannot be written: File too large" in str(error) else 0)

    n_learned = in_child(fill)
    assert n_learned > 1
    assert known(model) == [*range(n_learned)]
    assert all(f.state == GOOD for f in findings(model))


@pytest.mark.parametrize("step", [1, 2])
def test_a_writer_killed_between_its_writes_leaves_what_was_acknowledged(changed, step):
    def work():
        model, write, earlier = StoredModel(changed), os.write, iter(range(step - 1))
        os.write = lambda *of: os._exit(9) if next(earlier, None) is None else write(*of)
        model.learn([item(9)], day=1)

    assert in_child(work) == 9
    assert known(changed) == [0, 1, 2, 3]
    is_marked = read_journal(changed).condition
    assert is_marked == (Condition.WHOLE if step == 1 else Condition.UNFINISHED)


def test_a_kill_between_file_and_journal_leaves_one_that_is_removed_in_silence(
    changed, journal, monkeypatch
):
    """The new file has the changes of the journal, and one that contradicts them."""
    held, old = StoredModel(changed), journal.read_bytes()
    held.unlearn([item(0)], day=1)
    with monkeypatch.context() as killed:
        killed.setattr(journal_format, "remove_journal", raising(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            held.compact()
    left = journal.read_bytes()
    journal.write_bytes(old)  # as if its machine had stopped: nothing tells what it is
    with told() as texts:
        assert known(changed) == [1, 2, 3]
    assert "the journal of another model, or of this one at another time" in texts[0]

    journal.write_bytes(left)
    assert known(changed) == [1, 2, 3]
    assert found_in_journal(changed).state == NOTE
    assert learn(changed, 9).notes == ()
    assert known(changed) == [1, 2, 3, 9]
    assert aside(journal) == []


# ---- damage ----


def records(data):
    """Return where each record begins in a journal, and where the end mark does."""
    found = [journal_format.HEADER.size]
    for _ in range(N_CHANGES):
        length = int.from_bytes(data[found[-1] : found[-1] + 4], "little")
        found.append(found[-1] + 4 + length + 4)
    return found


def flipped(data, at):
    return data[:at] + bytes([data[at] ^ 16]) + data[at + 1 :]


def damage_second_record(journal):
    data = journal.read_bytes()
    journal.write_bytes(flipped(data, records(data)[1] + 20))


@pytest.mark.parametrize(("damage", "step"), [(flipped, 7), (lambda data, at: data[:at], 5)])
def test_damage_at_any_byte_is_told_and_costs_no_change_before_it(changed, journal, damage, step):
    whole = journal.read_bytes()
    starts = records(whole)
    for at in range(0, len(whole), step):
        journal.write_bytes(damage(whole, at))
        with told() as texts:
            found = known(changed)
        assert found == [n for n in range(N_CHANGES) if starts[0] <= at and starts[n + 1] <= at]
        assert len(texts) == 1


def test_records_that_were_exchanged_or_are_of_another_journal_are_told(
    changed, journal, tmp_path
):
    other = str(tmp_path / "other")
    train_on([item(5), item(6, "ham")], other)
    write_journal(other, StoredModel(other)._identity, read_journal(changed).changes)
    foreign, data = Path(journal_path(other)).read_bytes(), journal.read_bytes()
    _, first, second, third, _ = records(data)
    for put, kept in (
        (data[second:third] + data[first:second], [0]),
        (data[first:second] + foreign[second:third], [0, 1]),
    ):
        journal.write_bytes(data[:first] + put + data[third:])
        with told() as texts:
            assert known(changed) == kept
        used = ("1 change used, 3 lost", "2 changes used, 2 lost")[len(kept) - 1]
        assert f"damaged; {used}" in texts[0]


def beside_a_fit(monkeypatch, act):
    """Do something while the next model is fitted."""

    def fitted(base, changes, progress, real=assembly.compacted):
        monkeypatch.setattr(assembly, "compacted", real)
        act()
        return real(base, changes, progress)

    monkeypatch.setattr(assembly, "compacted", fitted)


def test_what_is_learned_while_a_model_is_fitted_stays_in_the_journal(
    changed, journal, tmp_path, monkeypatch
):
    def learns():
        learn(changed, 5, 6)
        # The new model file does not know the words of the one, and knows those of the other.
        StoredModel(changed).unlearn([item(1000), item(0)], day=1)

    held, other = StoredModel(changed), StoredModel(changed)
    beside_a_fit(monkeypatch, learns)
    held.compact()
    left = [*half_spam(range(1001, 1000 + N_DOCS)), *map(item, (1, 2, 3, 5, 6))]

    assert len(read_journal(changed).changes) == 4
    assert read_journal(changed).owner == held._identity
    assert not held.has(digest_of(item(0).read()))
    expected = train_on(left, tmp_path / "at-once", day=1)
    for model in (held, other, StoredModel(changed)):
        save_classifier(str(tmp_path / "whole"), model.whole())
        assert (tmp_path / "whole").read_bytes() == expected
    assert not list(journal.parent.glob("*.next"))
    with told() as texts:
        learn(changed, 7)
    assert not texts


@pytest.mark.parametrize("way", ["compact", "a fit"])
def test_a_model_that_others_replace_while_it_is_fitted_has_everything(changed, monkeypatch, way):
    def replaces():
        learn(changed, 5)
        WRITERS[way](changed)
        learn(changed, 6)

    beside_a_fit(monkeypatch, replaces)
    StoredModel(changed).compact()
    assert {0, 1, 2, 3, 5, 6} <= set(known(changed))


@pytest.mark.parametrize("comes", [False, True])
def test_a_crash_while_a_fitted_model_is_written_loses_nothing(
    changed, journal, monkeypatch, comes
):
    held, old = StoredModel(changed), read_journal(changed).owner
    with monkeypatch.context() as patch:
        beside_a_fit(patch, lambda: learn(changed, 5))
        if comes:  # the model file is in its place, its journal is not
            patch.setattr(journal_format, "_put_in_place", raising(KeyboardInterrupt))
        else:
            patch.setattr(journal_format, "name_successor", raising(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            StoredModel(changed).compact()
    (coming,) = journal.parent.glob("*.next")

    assert (identity_at(changed) != old) == comes
    assert known(changed) == [0, 1, 2, 3, 5]
    assert held.classifier().table.n_docs == N_DOCS + 5
    assert found_in_journal(changed).state == GOOD
    with told() as texts:
        held.learn([item(6)], day=1)
    assert not texts
    assert not coming.exists()
    assert known(changed) == [0, 1, 2, 3, 5, 6]
    assert aside(journal) == []


WRITERS = {
    "prune": lambda path: prune_model(path, PruningRule(min_df=1, older_than=0), 1),
    "cutoffs": lambda path: keep_cutoffs(path, load(path).rule),
    "save": lambda path: save_classifier(path, load(path)),
    "train": lambda path: save_keeping(path, load(path)),
    "compact": lambda path: StoredModel(path).compact(),
    "a fit": lambda path: learn(path, *range(20, 40)),
}


@pytest.mark.parametrize("way", WRITERS)
@pytest.mark.parametrize("what", ["damaged", "foreign", "notes"])
def test_every_writer_of_a_model_keeps_what_it_did_not_take_in(changed, journal, way, what):
    journal.with_suffix(".journal.0").write_bytes(b"older notes")  # are not replaced
    if what == "damaged":
        damage_second_record(journal)
    elif what == "foreign":
        changes = read_journal(changed).changes
        StoredModel(changed).compact()
        strange = [change._replace(digest=change.digest ^ 1) for change in changes]
        write_journal(changed, Identity(1, 2), strange)
    else:
        journal.write_bytes(b"notes of mine, which are not a journal")
    before = journal.read_bytes()
    found = found_in_journal(changed)
    assert found.state == (NOTE if what == "foreign" else BAD)
    assert found.text.endswith("with: nbspam doctor --repair")
    with told() as texts:
        WRITERS[way](changed)

    assert not journal.exists() or read_journal(changed).is_whole
    assert aside(journal) == [b"older notes", before]
    (text,) = (text for text in texts if text.startswith(f"{journal}."))
    assert ("the damaged journal" if what == "damaged" else "not the journal of this") in text
    assert what != "damaged" or known(changed)[0] == 0


@pytest.mark.filterwarnings("ignore::nbspam.errors.ModelWarning")
@pytest.mark.parametrize("way", WRITERS)
def test_a_model_that_mv_restores_during_a_write_is_kept(changed, tmp_path, monkeypatch, way):
    restored = tmp_path / "restored"
    expected, write = train_on(half_spam(range(8)), restored), modelfile._write

    def written(*arguments):
        if restored.exists():
            restored.replace(changed)
        return write(*arguments)

    monkeypatch.setattr(modelfile, "_write", written)
    with suppress(journal_format.ReplacedError):
        WRITERS[way](changed)
    assert expected in [path.read_bytes() for path in tmp_path.iterdir()]


def test_an_unfinished_write_is_no_damage_and_is_cut_off_with_a_word(changed, journal):
    journal.write_bytes(journal.read_bytes() + b"half")
    assert known(changed) == [0, 1, 2, 3]  # silently: the end mark says that nothing is missing
    found = found_in_journal(changed)
    assert found.state == NOTE
    assert "the bytes after them are of an unfinished write" in found.text
    with told() as texts:
        learn(changed, 9)

    assert len(texts) == 1
    assert "an unfinished write at its end, never acknowledged, was cut off" in texts[0]
    assert known(changed) == [0, 1, 2, 3, 9]
    assert aside(journal) == []


@pytest.mark.parametrize("groups", [b"\x0a", b"", b"\0x"])
def test_a_record_of_right_checksum_and_wrong_contents_is_damage(changed, journal, groups):
    identity = StoredModel(changed)._identity
    change = journal_format._CHANGE.pack(1, 1, -1, 4, 1, 0, 1, 0)
    body = change + b"spam" + bytes(8) + bytes(4) + groups
    record = len(body).to_bytes(4, "little") + body
    crc = zlib.crc32(record, read_journal(changed).crc).to_bytes(4, "little")
    before = journal.read_bytes()[: -journal_format.END_SIZE]
    journal.write_bytes(before + record + crc + end_mark(identity, 5))
    with told() as texts:
        assert known(changed) == [0, 1, 2, 3]
    assert "4 changes used, 1 lost" in texts[0]

    # An end mark of more bits than a digest has.
    journal.write_bytes(before + end_mark(identity, 4, progress=LogProgress(bits=64)))
    with told() as texts:
        assert known(changed) == [0, 1, 2, 3]
    assert "damaged; 4 changes used" in texts[0]


# ---- repair ----


def test_doctor_repairs_what_can_be_saved_and_moves_what_is_not_the_models_away(
    nbspam, changed, journal
):
    damage_second_record(journal)
    damaged = journal.read_bytes()
    status, out, _ = nbspam("doctor", "-m", changed)
    assert status == 1
    assert "bad\tjournal\t" in out
    assert "save them with: nbspam doctor --repair" in out
    out = nbspam.out("doctor", "-m", changed, "--repair")
    saved = out.splitlines()[0]
    assert saved.startswith("note\trepair\t1 change saved in a new journal, 3 lost;")
    assert Path(saved.partition("kept as ")[2]).read_bytes() == damaged
    assert known(changed) == [0]
    out = nbspam.out("doctor", "-m", changed, "--repair")
    assert out.startswith("good\trepair\tthere was not")
    assert re.search(r"good\tjournal\t1 change, [\d,]+ bytes, 1 message more\n", out)
    journal.write_bytes(b"notes")
    out = nbspam("doctor", "-m", changed, "--repair", "--json")[1]
    assert "what was in the journal's place is now" in str(json.loads(out))
    assert not journal.exists()
    assert sorted(aside(journal)) == sorted([b"notes", damaged])


def test_what_is_no_whole_model_cannot_be_repaired_but_the_one_before_is_named(model, tmp_path):
    shutil.copy(model, f"{model}~")
    Path(model).write_bytes(flipped(Path(model).read_bytes(), 5000))
    finding = repair(model)
    assert finding.state == BAD
    assert finding.text.endswith(f"the model that was there before is {model}~")

    (tmp_path / "empty").mkdir()
    with pytest.raises(ModelFileError, match="no such model"):
        repair(str(tmp_path / "empty" / "none"))
    assert not list((tmp_path / "empty").iterdir())

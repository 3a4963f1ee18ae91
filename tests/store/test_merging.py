"""Parts and models together make the model of training at once; sums take one block."""

import errno
import os
import resource
import shutil
from collections import defaultdict
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from nbspam.classifier import training
from nbspam.classifier.training import train_classifier
from nbspam.counts import counting, ledger, shards
from nbspam.counts.counting import count_items
from nbspam.counts.shards import Shard, count_shard
from nbspam.counts.table import CountTable, Loss, add_tables, most_frequent
from nbspam.errors import InputError, ModelFileError, NbspamError
from nbspam.settings import PRESENCE, PRESETS
from nbspam.sources.items import Item, read_items
from nbspam.store import merging
from nbspam.store.merging import SortedTokens, merge, merged_runs, save_part
from nbspam.store.model import StoredModel
from nbspam.store.modelfile import load_state
from nbspam.store.open import save_classifier
from nbspam.store.text import model_lines
from nbspam.store.upkeep import BAD, NOTE, findings
from nbspam.tokens import tokenizer
from nbspam.tokens.sparse import Vocabulary
from nbspam.tokens.tokenizer import groups_of
from stored import DAY, EVERY_SETTING, letter, save_state, train_on
from support import HAM, SPAM, examples, in_child, raising

SETTINGS = {**EVERY_SETTING, "pruned": replace(PRESETS["text"], min_df=2, max_features=15)}
quick = hypothesis_settings(
    examples(40), suppress_health_check=[HealthCheck.function_scoped_fixture]
)


def mail(n, words, route=0):
    """Return a message; with another route it is another copy of the same one."""
    return (
        f"Received: from host{route}.example\nMessage-ID: <{n}@x>\nFrom: a{n % 3}@x\n"
        f"Subject: {words}\n\nbody{n} {words}\n"
    ).encode()


SPELLINGS = ["cheap", "Cheap", "CHEAP", "pills", "lunch", "Lunch", "ok"]
WORDS = st.lists(st.sampled_from(SPELLINGS), max_size=4)
LABELS = st.sampled_from(["ham", "spam", "work"])


@st.composite
def corpora(draw, least=8):
    """Return items, in a random order, many of which come again, often with other classes."""
    texts = draw(st.lists(WORDS.map(" ".join), min_size=5, max_size=5))
    items = []
    for _ in range(draw(st.integers(least, 30))):
        kind, k, route = draw(st.tuples(*map(st.integers, (0, 0, 0), (9, 4, 2))))
        label, told = draw(LABELS), draw(st.booleans())
        if kind < 6:
            items.append(Item("m", label, mail(k, texts[k], route), told=told))
        elif kind < 8:
            items.append(Item("t", label, texts[k].encode(), is_text=True))
        elif kind == 8:
            items.append(Item("n", None, mail(k, texts[k], route)))
        else:
            items.append(Item("f", label, problem="f: cannot be read; look at it"))
    return items


CORPORA = corpora()
# One of each class at least, so that there is a model.
SURE = [Item("h", "ham", HAM), Item("s", "spam", SPAM)]


def parts_of(items, settings, n, folder, jobs=1):
    """Write all parts of a corpus, and return their paths."""
    paths = [str(folder / f"part.{number}") for number in range(1, n + 1)]
    for number, path in enumerate(paths, 1):
        share, _ = count_shard(items, settings, Shard(number, n), jobs)
        save_part(path, share, settings)
    return paths


def model_at_once(items, settings, path):
    """Return the export and the file of the model that training at once makes."""
    return written(train_classifier(count_items(items, settings), settings, DAY), path)


def written(classifier, path):
    save_classifier(str(path), classifier)
    return b"".join(model_lines(classifier)), path.read_bytes()


@quick
@given(
    corpora(least=0),
    st.integers(0, 30),
    st.integers(1, 6),
    st.sampled_from(list(SETTINGS)),
    st.permutations(range(6)),
)
def test_parts_make_the_model_of_training_at_once(tmp_path, corpus, place, n, name, order):
    settings = SETTINGS[name]
    items = [*corpus[:place], *SURE, *corpus[place:]]
    if name == "tutorial":  # which reads no mail
        items = [item._replace(is_text=True) for item in items]
    paths = parts_of(items, settings, n, tmp_path)
    mixed = [paths[k] for k in order if k < n]
    merged = merge(mixed, DAY)

    expected = model_at_once(items, settings, tmp_path / "once")
    assert written(merged.classifier, tmp_path / "merged") == expected
    assert merged.n_added == n
    assert merged.repeated == count_items(items, settings).repeated


def sampled(size):
    limits = {"MAX_SAMPLE": size, "ENOUGH": size, "MAX_ENTRIES": 5 * size}
    yield from ((ledger, name, limit) for name, limit in limits.items())


def narrow(size):
    """Small blocks, a tree of merges and little room."""
    names = ((merging, "BLOCK"), (shards, "_AT_ONCE"), (shards, "_DOCS_AT_ONCE"))
    yield from ((where, name, size) for where, name in names)
    yield merging, "RUNS_AT_ONCE", 2 + size % 2
    yield training, "MAX_MODEL_BYTES", 300 + 135 * (size * 7 % 20)


def colliding(size):
    """Tokens that share keys, of which the first text of the corpus stays."""
    yield tokenizer, "HASH_MASK", np.uint64((1 << 64) - (1 << 63 - size % 6))


@pytest.mark.parametrize("limited", [sampled, narrow, colliding])
@quick
@given(CORPORA, st.integers(1, 7), st.integers(1, 20), st.sampled_from(["mail", "many, text"]))
def test_so_they_do_whatever_is_limited(tmp_path, limited, corpus, n, size, name):
    items, settings = [*corpus, *SURE], SETTINGS[name]
    with pytest.MonkeyPatch.context() as patch:
        for where, attribute, value in limited(size):
            patch.setattr(where, attribute, value)
        merged = merge(parts_of(items, settings, n, tmp_path), DAY).classifier
        expected = model_at_once(items, settings, tmp_path / "once")

    assert written(merged, tmp_path / "merged") == expected


def test_a_part_is_the_same_whatever_the_jobs_and_the_batches(mails, tmp_path, monkeypatch):
    items = [item for _ in range(2) for item in read_items([str(mails)])]
    settings = PRESETS["mail"]
    for jobs in (1, 2):
        folder = tmp_path / str(jobs)
        folder.mkdir()
        parts_of(items, settings, 2, folder, jobs)
        monkeypatch.setattr("nbspam.tokens.tokenizer._BATCH_BYTES", 1 << 12)
        monkeypatch.setattr(counting, "MAX_TOKENS", 50)

    for name in ("part.1", "part.2"):
        assert (tmp_path / "1" / name).read_bytes() == (tmp_path / "2" / name).read_bytes()


def test_what_a_share_leaves_out_is_not_read(tmp_path):
    here = tmp_path / "1.eml"
    here.write_bytes(HAM)
    items = [Item(str(here), "ham"), Item(str(tmp_path / "gone.eml"), "spam")]
    first, skipped = count_shard(items, PRESETS["mail"], Shard(1, 2))
    _, other = count_shard(items, PRESETS["mail"], Shard(2, 2))

    assert (first.table.n_docs, skipped, len(other)) == (1, (), 1)
    assert first.census.n_items == 2


@pytest.fixture
def three(tmp_path):
    """Return the paths of three parts of mail, and that of the model of training at once."""
    items = [
        Item("m", ("ham", "spam")[k % 2], mail(k, ["lunch", "pills"][k % 2])) for k in range(8)
    ]
    train_on(items, tmp_path / "once")
    return [*parts_of(items, PRESETS["mail"], 3, tmp_path), str(tmp_path / "once")]


def test_the_same_part_twice_is_used_once_and_files_that_belong_to_it_are_no_parts(
    three, tmp_path
):
    *parts, _ = three
    shutil.copy(parts[1], tmp_path / "again")
    merged = merge([*parts, str(tmp_path / "again"), parts[0]], DAY)

    assert written(merged.classifier, tmp_path / "merged")[1] == (tmp_path / "once").read_bytes()
    assert merged.n_added == 3
    page = (".secret", ".review", ".review.lock", ".review-wal", ".review.damaged", ".lists")
    page += (".served", ".share", ".share-shm", ".share.reading.lock")
    page += (".accounts", ".accounts-wal", ".accounts.0123456789abcdef.lock")
    for ending in ("~", "~.lock", ".journal", ".journal.0123abcd", *page):
        (tmp_path / f"part.2{ending}").write_bytes(b"not a part")
    names = sorted(map(str, tmp_path.glob("part.*")))

    assert len(names) == 3 + 3 + 4 + len(page)  # each part has a lock
    assert merge(names, DAY).n_added == 3
    with pytest.raises(ModelFileError, match=r"part.2~: not a model"):
        merge([parts[0], f"{parts[1]}~"], DAY)


@pytest.fixture(scope="module")
def others(tmp_path_factory):
    """Return a folder with a model, and with parts of trainings that differ in one thing each."""
    folder = tmp_path_factory.mktemp("others")
    mails = PRESETS["mail"]

    def write(name, label="spam", n_items=8, settings=mails, n=3, words="other"):
        items = [Item("x", ("ham", label)[k % 2], mail(k, words)) for k in range(n_items)]
        for number, path in enumerate(parts_of(items, settings, n, folder), 1):
            os.rename(path, folder / f"{name}{number}")
        return items

    items = write("A")
    train_on(items, folder / "once")
    train_on(items, folder / "strip", replace(mails, strip=("quotes",)))
    write("B", words="more")
    write("two", n=2)
    write("nine", n_items=9)
    write("work", "work")
    write("alpha", settings=replace(mails, alpha=2.0))
    write("many", n=9)
    write("ham", "ham")
    save_part(str(folder / "huge1"), count_shard(items, mails, Shard(1, 1 << 40))[0], mails)
    return folder


def test_what_cannot_be_merged_is_refused(others):
    for named, words in (
        ("A1 A2 A3 B1", "differs from .*A1, and both are part 1/3; name only the right one"),
        ("A1 A2 A3 two1", "part 1/2, but .*A1 is part 1/3; name the parts of one training"),
        ("A1 A2 A3 nine1", r"other mail than .*A1 \(9 items, not 8"),
        ("A1 A2 A3 work1", r"other mail than .*A1 \(8 items, not 8, or other labels"),
        ("A1 A2 A3 alpha1", "made with other options than"),
        ("A1 A3", "part 2 of 3 is missing; make it with: nbspam shard 2/3"),
        ("A2 A3", "part 1 of 3 is missing"),
        ("many1", "part 2, 3, 4, 5, 6 and 3 more of 9 is missing"),
        ("huge1", "part 2, 3, 4, 5, 6 and 1,099,511,627,770 more of 1099511627776 is missing"),
        ("A1 A2 A3 once", "once: a model, named with parts of a training; merge"),
        ("once A1", r"A1: a part of a training, .* model yet.*: nbspam merge PART\.\.\. -o FILE"),
        ("ham1 ham2 ham3", "only one class"),
        ("once strip", r"differs from .*once in its settings \(strip\)"),
    ):
        with pytest.raises(NbspamError, match=words):
            merge([str(others / name) for name in named.split()], DAY)


def test_a_part_is_no_model_and_doctor_says_what_it_is(three, tmp_path):
    states = {finding.what: finding for finding in findings(three[0])}
    assert states["model"].state == NOTE
    assert "part 1/3" in states["model"].text
    nothing = parts_of(SURE[:1], PRESETS["mail"], 2, tmp_path)[1]
    assert load_state(nothing)["classes"] == []  # a part may have no messages


DAMAGE = {
    "number": 9,
    "items": -1,
    "checksum": -1,
    "classes": ["spam", "ham"],
    "first": np.zeros(1, np.uint8),
    "position": np.arange(3, dtype=np.uint8),
    "told": np.full(3, 2, np.uint8),
    "label": np.full(3, 7, np.uint8),
    "document_offsets": np.zeros(4, np.uint8),
    "column": np.zeros(1, np.int8),
    "times": np.zeros(2, np.uint8),
    "document_frequency": lambda counted: counted + 1,
    "text_offsets": lambda offsets: offsets.astype(np.uint64),
}


@pytest.mark.parametrize("name", DAMAGE)
def test_a_part_whose_contents_make_no_sense_is_refused(three, name):
    state = load_state(three[0])
    value = DAMAGE[name]
    save_state(three[0], {**state, name: value(state[name]) if callable(value) else value})

    with pytest.raises(ModelFileError, match=r"its contents do not fit .*; make this part again"):
        merge(three[:3], DAY)
    assert [each.state for each in findings(three[0])] == [BAD]


def test_more_models_are_merged_than_files_may_be_open(tmp_path):
    path, n_files = tmp_path / "m", resource.getrlimit(resource.RLIMIT_NOFILE)
    train_on([letter(n, ("ham", "spam")[n % 2]) for n in range(60)], path)
    StoredModel(str(path)).learn([letter(99, "ham")], day=DAY)
    names = [f"{path}{n}" for n in range(20)]
    for copy, ending in product(names, ("", ".journal")):
        shutil.copy(f"{path}{ending}", f"{copy}{ending}")

    def merges():
        os.closerange(3, n_files[0])  # what other tests have left open
        resource.setrlimit(resource.RLIMIT_NOFILE, (99, n_files[1]))
        assert merge(names, DAY).classifier.table.n_docs == 61

    assert in_child(merges) == 0


def test_a_model_that_states_no_kind_is_refused(tmp_path):
    path = str(tmp_path / "m")
    save_state(path, {"classes": ["ham", "spam"]})
    with pytest.raises(ModelFileError, match=r"its contents do not fit .*; train it again"):
        merge([path, path], DAY)


# ---- streams ----


# Keys, the number in each class, the rank of the text, the day.
TOKENS = st.dictionaries(
    st.integers(0, 40), st.tuples(*map(st.integers, (-1, 0, 0, 0), (3, 3, 9, 9))), max_size=30
)
RUNS = st.lists(TOKENS, min_size=1, max_size=9)


def run(tokens, number=0, lost=None):
    """Return a run; the text of each token says its key, the run's number and the rank."""
    rows = sorted(tokens.items())
    keys = np.array([key << 40 for key, _ in rows], np.uint64)
    texts = [b"%d of %d, %d" % (key, number, row[2]) for key, row in rows]
    offsets = np.cumsum([0, *map(len, texts)])
    blob = np.frombuffer(b"".join(texts), np.uint8)
    counts = np.array([row[:2] for _, row in rows], np.float64).reshape(-1, 2)
    loss = None if lost is None else Loss(np.full(len(rows), lost // 2), lost)
    table = CountTable(
        ("a", "b"),
        counts.sum(axis=0) + 20,
        Vocabulary(keys, blob, offsets, groups_of(keys)),
        counts,
        counts.sum(axis=1).astype(np.int64),
        loss,
    )
    # No two texts of a token have the same rank.
    ranks = np.array([10 * row[2] + number for _, row in rows], np.int64)
    return SortedTokens(table, ranks, np.array([row[3] for _, row in rows], np.uint16))


def plain(whole):
    words = whole.table.vocabulary
    texts = [words.text(j) for j in range(len(words))]
    rows = zip(texts, whole.table.feature_count.tolist(), whole.last_seen.tolist(), strict=True)
    return dict(zip((words.keys >> np.uint64(40)).tolist(), rows, strict=True))


@examples(200)
@given(RUNS, st.integers(1, 12), st.integers(2, 4))
@example([{1: (1, 0, rank, 0)} for rank in (0, 9, 5)], 12, 2)  # two are added first
def test_a_sum_of_runs_is_that_of_dictionaries(runs, block, at_once):
    expected = {}
    together = defaultdict(list)
    for number, tokens in enumerate(runs):
        for key, (a, b, rank, day) in tokens.items():
            together[key].append((10 * rank + number, f"{key} of {number}, {rank}", a, b, day))
    for key, rows in together.items():
        a, b = sum(row[2] for row in rows), sum(row[3] for row in rows)
        if a + b > 0:
            counts = [max(a, 0), max(b, 0)]
            expected[key] = (min(rows)[1], counts, max(row[4] for row in rows))
    given = [run(tokens, number) for number, tokens in enumerate(runs)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(merging, "BLOCK", block)
        patch.setattr(merging, "RUNS_AT_ONCE", at_once)
        whole, _ = merged_runs(given, (), PRESENCE)

    assert plain(whole) == expected
    keys = whole.table.vocabulary.keys
    assert not len(keys) or merging._map_of(keys) is not None
    assert (keys[1:] > keys[:-1]).all()
    class_count = sum(run(tokens).table.class_count for tokens in runs)
    assert whole.table.class_count.tolist() == class_count.tolist()


def test_a_sum_without_room_for_temporary_files_says_so(monkeypatch):
    none = FileNotFoundError(errno.ENOENT, "No usable temporary directory found in ['/tmp']")
    monkeypatch.setattr(merging, "TemporaryFile", raising(none))
    with pytest.raises(InputError, match=r": No usable .*; free some space, or set TMPDIR"):
        merging.spooled([])


@examples(100)
@given(RUNS, st.integers(1, 12))
def test_no_block_has_more_rows_than_it_may_have(runs, size):
    given = [run(tokens, number) for number, tokens in enumerate(runs)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(merging, "BLOCK", size)
        cuts = merging._cuts(given)
        parts = list(merging.blocks(given))

    ends = [np.searchsorted(each.table.vocabulary.keys, cuts) for each in given]
    total = np.sum(ends, axis=0)
    bounds = [0, *total.tolist(), sum(len(each.ranks) for each in given)]
    assert max(np.diff(bounds)) <= max(size, 2 * len(given))
    assert len(parts) == len(cuts) + 1


@examples(100)
@given(RUNS, st.lists(st.none() | st.integers(1, 9), min_size=9, max_size=9), st.integers(1, 9))
def test_what_runs_have_forgotten_adds_up_as_in_memory(runs, lost, block):
    runs = [{k: (abs(r[0]) + 1, *r[1:]) for k, r in tokens.items()} for tokens in runs]
    given = [run(tokens, n, lost[n]) for n, tokens in enumerate(runs)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(merging, "BLOCK", block)
        patch.setattr(merging, "RUNS_AT_ONCE", 3)
        found = merged_runs(given, (), PRESENCE)[0].table

    assert equal_losses(found, add_tables([each.table for each in given]))


def equal_losses(found, expected):
    """Return whether two tables have forgotten the same."""
    if found.loss is None or expected.loss is None:
        return found.loss is expected.loss
    same = found.loss.of_each.tolist() == expected.loss.of_each.tolist()
    return same and found.loss.of_others == expected.loss.of_others


@examples(100)
@given(TOKENS, st.integers(1, 30), st.none() | st.integers(1, 5), st.integers(1, 9))
@example(dict.fromkeys(range(4), (1, 1, 0, 0)), 3, None, 9)  # one too many
def test_what_a_model_has_room_for_is_what_derive_keeps(tokens, room, lost, block):
    tokens = {key: (abs(row[0]) + 1, *row[1:]) for key, row in tokens.items()}
    settings, n_bytes = PRESETS["mail"], 35 + 2 * 12
    whole = run(tokens, 0, lost)
    columns = np.flatnonzero(whole.table.document_frequency > 1)
    expected = whole.table
    if len(columns) < len(expected.vocabulary):
        expected = expected.forgetting(columns)
    if len(columns) > room:
        seen = whole.last_seen[columns]
        expected = expected.forgetting(most_frequent(expected.document_frequency, room, seen))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(merging, "BLOCK", block)
        patch.setattr(training, "MAX_MODEL_BYTES", room * n_bytes)
        table, last_seen = merging.loaded_table(merging.spooled([whole]), settings, columns)

    kept = np.isin(whole.table.vocabulary.keys, expected.vocabulary.keys)
    assert plain(SortedTokens(table, last_seen, last_seen)) == plain(
        SortedTokens(expected, whole.ranks[kept], whole.last_seen[kept])
    )
    assert equal_losses(table, expected)

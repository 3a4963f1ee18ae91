"""Doubts: which labels are found wrong, by the library and by the command."""

import random
from math import log

import numpy as np
import pytest

from nbspam.evaluation import doubts
from nbspam.evaluation.doubts import find_doubts, leads, noise_of, wrong_probability
from nbspam.mail.digest import digest_of
from nbspam.settings import MANY, PRESETS
from nbspam.sources.items import Item
from nbspam.verdicts import posterior
from support import FROM, HAM, ROOT, SPAM, complains, json_lines, write_files, write_misfiled

WORDS = """
sea ship sail harbour wave tide anchor captain deck rope island
sky cloud wing bird wind pilot star moon plane storm feather
soil worm root seed plough field clay stone harvest barn spade
"""
TOPICS = {line.split()[0]: line.split()[1:] for line in WORDS.strip().splitlines()}
NONE = "nbspam: no label is probably wrong"


def corpus(n, labels, seed=0):
    """Return n texts of each class; each has six words of its class and three of any."""
    rng = random.Random(seed)
    words = [word for label in labels for word in TOPICS[label]]
    return [
        Item(f"{label}-{i}", label, " ".join(text).encode(), is_text=True)
        for label in labels
        for i in range(n)
        for text in [[*rng.sample(TOPICS[label], 6), *rng.sample(words, 3), f"own{label}{i}"]]
    ]


def misfiled(items, count, seed=1):
    """Return items of which some have another label, and the names of these."""
    rng = random.Random(seed)
    wrong = set(rng.sample([item.name for item in items], count))
    labels = sorted({item.label for item in items})
    others = {label: [name for name in labels if name != label] for label in labels}
    moved = [
        item._replace(label=rng.choice(others[item.label])) if item.name in wrong else item
        for item in items
    ]
    rng.shuffle(moved)
    return moved, wrong


def as_mail(texts):
    """Return texts as mail, of which each has an id of its own."""
    return [
        item._replace(data=b"Message-ID: <%d@x>\n\n" % n + item.data, is_text=False)
        for n, item in enumerate(texts)
    ]


SETTINGS = {2: PRESETS["text"], 3: MANY["text"]}


@pytest.mark.parametrize("n_classes", SETTINGS)
def test_each_misfiled_text_is_reached_and_gets_its_label_back(n_classes):
    right = corpus(60, list(TOPICS)[:n_classes])
    assert find_doubts(right, SETTINGS[n_classes], {}).found == ()
    items, wrong = misfiled(right, 6)

    found = find_doubts(items, SETTINGS[n_classes], {}).found
    assert {each.name for each in found} == wrong
    for each in found:
        assert each.label == each.name.split("-")[0] != each.filed
        for row in each.evidence[:3]:  # words, and pairs of words
            words = set(row.token.removeprefix("2g:").split())
            assert words & {*TOPICS[each.label], *(w for w in words if each.label in w)}
        strengths = [row.contribution for row in each.evidence]
        assert strengths == sorted(strengths, reverse=True)
        assert min(strengths) > 0
    probabilities = [each.probability for each in found]
    assert 1 >= probabilities[0] >= probabilities[-1] > 0.5
    assert probabilities == sorted(probabilities, reverse=True)


def test_what_a_person_has_told_is_believed_and_not_listed():
    items, wrong = misfiled(corpus(60, ["sea", "sky"]), 6)
    by_name = {item.name: item for item in items}
    confirmed, corrected, other = sorted(wrong)[:3]
    told = {
        digest_of(by_name[confirmed].data, True): by_name[confirmed].label,
        digest_of(by_name[corrected].data, True): corrected.split("-")[0],
        digest_of(by_name[other].data, True): "soil",  # which is no class here
    }

    found = find_doubts(items, SETTINGS[2], told).found
    assert {each.name for each in found} == wrong - {confirmed, corrected}


def test_a_message_filed_twice_is_judged_without_either_copy():
    # The copy in the wrong class comes last, so training would believe it.
    mail = as_mail(corpus(60, ["sea", "sky"]))
    again = [mail[n]._replace(name=f"again-{n}", label="sky") for n in range(4)]

    found = find_doubts([*mail, *again], PRESETS["mail"], {}).found
    assert found
    assert {each.name for each in found} <= {each.name for each in again}


def test_a_class_is_learned_from_its_messages_and_not_from_copies_filed_elsewhere_later():
    """Both messages of soil are contradicted; a third one was filed as soil, and then as sea."""
    soil, sea = (" ".join(TOPICS[name][:10]) for name in ("soil", "sea"))
    filed = [
        ("first", "soil", f"{soil[: len(soil) // 2]} {sea}"),
        ("second", "soil", f"{soil[len(soil) // 2 :]} {sea}"),
        ("moved", "soil", soil),
        ("moved again", "sea", soil),
    ]
    odd = [Item(name, label, text.encode(), is_text=True) for name, label, text in filed]
    mail = [
        item._replace(data=b"Message-ID: <%d@x>\n\n" % min(n, 62) + item.data, is_text=False)
        for n, item in enumerate([*corpus(30, ["sea", "sky"]), *odd])
    ]

    found = find_doubts(mail, MANY["mail"], {}).found
    assert {"first", "second"} <= {each.name for each in found}


def test_a_class_of_copies_only_that_are_all_contradicted_keeps_its_messages():
    mail = as_mail(corpus(20, ["sea", "sky"]))
    again = [item._replace(name=f"again {item.name}", label="soil") for item in mail[:8]]

    found = find_doubts([*mail, *again], MANY["mail"], {}).found
    assert {each.name for each in found} <= {each.name for each in again}


def test_a_fold_that_loses_a_class_to_copies_elsewhere_is_wrong_usage(nbspam, tmp_path):
    mail = as_mail(corpus(6, ["sea", "sky", "soil"]))
    again = [item._replace(name=f"again {item.name}", label="sky") for item in mail[:6]]
    files = {f"{item.label}/{item.name}.eml": item.data for item in [*mail, *again]}
    write_files(tmp_path / "mails", files)
    found = nbspam("eval", "--cv", "3", tmp_path / "mails")
    assert complains(found, 2, "sea: its messages are filed in other classes, too")


# --- the share of wrong labels --------------------------------------------------------------


def test_leads_and_how_probably_a_label_is_wrong_worked_by_hand():
    lead = np.array([log(4)])
    # The other label is four times as likely, one label in ten is wrong: 4 * .1 against 1 * .9.
    assert wrong_probability(lead, 0.1, 1) == pytest.approx([0.4 / 1.3])
    # Of three classes a wrong label is one of two: 4 * .05 against 1 * .9.
    assert wrong_probability(lead, 0.1, 2) == pytest.approx([0.2 / 1.1])

    joint = np.log([[0.2, 0.3, 0.5], [0.1, 0.1, 0.2]])
    assert np.exp(leads(joint, np.array([2, 0]))) == pytest.approx([1, 3])


@pytest.mark.parametrize(
    ("n_classes", "share", "scale"), [(2, 0.05, 1.0), (2, 0.2, 0.5), (4, 0.05, 2.0), (4, 0.2, 0.5)]
)
def test_share_and_scale_that_made_the_labels_are_found(n_classes, share, scale):
    rng = np.random.default_rng(7)
    n_docs = 20_000
    joint = rng.normal(0, 4, (n_docs, n_classes))
    below = posterior(scale * joint).cumsum(axis=1) < rng.random((n_docs, 1))
    truth = below.sum(axis=1).clip(max=n_classes - 1)
    step = np.where(rng.random(n_docs) < share, rng.integers(1, n_classes, n_docs), 0)
    y = (truth + step) % n_classes

    noise = noise_of(joint, y)
    assert noise.share == pytest.approx(share, rel=0.15)
    assert noise.scale == pytest.approx(scale, rel=0.3)
    wrong = wrong_probability(leads(noise.scale * joint, y), noise.share, n_classes - 1)
    for low, high in ((0.2, 0.5), (0.5, 0.8), (0.8, 1.0)):
        chosen = (wrong > low) & (wrong <= high)
        if chosen.sum() > 50:
            assert (step > 0)[chosen].mean() == pytest.approx(wrong[chosen].mean(), abs=0.15)


@pytest.mark.parametrize("seed", range(5))
def test_of_few_labels_no_other_noise_explains_them_and_what_is_assumed_better(seed):
    rng = np.random.default_rng(seed)
    joint, y = rng.normal(0, rng.choice([0.5, 3, 12]), (30, 3)), rng.integers(0, 3, 30)

    def explained(scale, share):
        """Return the log of the likelihood and of what is assumed; share: of any shape (n,)."""
        own = posterior(scale * joint)[np.arange(30), y][:, None]
        assumed = doubts.N_WRONG * np.log(share) + doubts.N_RIGHT * np.log(1 - share)
        assumed -= (np.log2(scale) / doubts.SPREAD) ** 2 / 2
        return np.log((1 - share) * own + share / 2 * (1 - own)).sum(axis=0) + assumed

    shares, noise = np.linspace(0.001, doubts.MOST_WRONG, 200), noise_of(joint, y)
    best = max(explained(scale, shares).max() for scale in doubts.SCALES)
    assert explained(noise.scale, np.array([noise.share])) > best - 0.01


def test_where_four_labels_in_ten_seem_wrong_none_is():
    """So judges a model of 3,000 empty texts, of which 1,200 are of the second class."""
    joint, y = np.log(np.tile([0.995, 0.005], (3000, 1))), np.repeat([0, 1], [1800, 1200])
    noise = noise_of(joint, y)
    assert wrong_probability(leads(noise.scale * joint, y), noise.share, 1).max() < 0.5


# --- the command ------------------------------------------------------------------------------

EASY = {
    "144-team-standup-notes.eml", "155-climbing-wall-closed.eml",
    "135-casino-welcome-bonus-300.eml", "133-watches-handbags-outlet.eml",
}  # fmt: skip


@pytest.fixture
def mixed_up(tmp_path):
    """A folder with the easier embedded mail, of which four messages lie in the wrong class."""
    for path in sorted((ROOT / "corpora" / "mail").glob("*/*")):
        label = path.parent.name
        if path.name[:3] > "100":  # the first ones are hard
            place = ({"ham", "spam"} - {label}).pop() if path.name in EASY else label
            write_files(tmp_path / "mixed", {f"{place}/{path.name}": path.read_bytes()})
    return tmp_path / "mixed"


def names_in(out):
    return {line.split("\t")[4].rsplit("/", 1)[1] for line in out.splitlines()}


def test_a_list_leads_to_files_and_is_empty_once_all_is_right(nbspam, model, mixed_up):
    out = nbspam.out("doubts", mixed_up)
    assert len(names_in(out) & EASY) >= 3
    assert len(names_in(out)) <= 6
    for line in out.splitlines():
        filed, label, probability, reasons, name = line.split("\t")
        assert {filed, label} == {"ham", "spam"}
        assert f"/{filed}/" in name
        assert 0.5 < float(probability) <= 1
        assert reasons.count(", ") == 2
    assert not model.exists()

    nul = nbspam("doubts", "-0", mixed_up)[1]
    rows = [row.split("\t", 4) for row in nul.split("\0")[:-1]]
    assert [row[4] for row in rows] == [line.split("\t")[4] for line in out.splitlines()]
    assert nbspam("train", mixed_up)[0] == 0
    for filed, label in (("ham", "spam"), ("spam", "ham")):
        listed = "".join(f"{row[4]}\0" for row in rows if row[0] == filed)
        moved = nbspam("relabel", "--to", label, "--files0-from", "-", stdin=listed.encode())
        assert moved[1] == f"moved {sum(row[0] == filed for row in rows)}\n"
    assert not names_in(nbspam("doubts", mixed_up)[1]) & names_in(out)


def test_json_has_the_same_with_more_tokens(nbspam, model, tmp_path):
    write_misfiled(tmp_path / "mails")
    (shown,) = nbspam("doubts", tmp_path / "mails")[1].splitlines()
    (found,) = json_lines(nbspam("doubts", "--json", tmp_path / "mails")[1])

    row = shown.split("\t")
    assert [found["filed"], found["label"], found["name"]] == [row[0], row[1], row[4]]
    assert len(found["tokens"]) > len(row[3].split(", ")) == 3
    assert set(found["tokens"][0]["counts"]) == {"ham", "spam"}


def test_texts_are_read_from_tables_and_mailboxes_name_their_messages(nbspam, model, tmp_path):
    items, wrong = misfiled(corpus(40, list(TOPICS)), 3)
    table = tmp_path / "texts.csv"
    rows = [f"{item.name},{item.label},{item.data.decode()}" for item in items]
    table.write_text("\n".join(["row,topic,body", *rows]) + "\n")
    columns = "--label-column", "topic", "--text-column", "body", "--id-column", "row"
    out = nbspam("doubts", table, *columns)[1]
    assert {line.split("\t")[4] for line in out.splitlines()} == wrong

    for label, data in (("ham", HAM), ("spam", SPAM)):
        messages = [
            b"%sMessage-ID: <%s%d@x>\n%s\n" % (FROM, label.encode(), n, SPAM if n == 7 else data)
            for n in range(1, 31)
        ]
        (tmp_path / f"{label}.mbox").write_bytes(b"".join(messages))
    boxes = "--ham", tmp_path / "ham.mbox", "--spam", tmp_path / "spam.mbox"
    (line,) = nbspam("doubts", *boxes)[1].splitlines()
    assert line.split("\t")[4] == f"{tmp_path / 'ham.mbox'}#7"


def test_what_cannot_be_judged_is_said_in_one_line(nbspam, model, folder):
    (folder / "spam" / "3.eml.gz").write_bytes(b"not gzip")
    assert complains(nbspam("doubts", "--strict", folder), 1, "3.eml.gz", "--strict")
    status, out, err = nbspam("doubts", folder)
    skipped, none = err.splitlines()
    assert (status, out, none) == (0, "", NONE)
    assert skipped.startswith(f"nbspam: skipped {folder}/spam/3.eml.gz: ")


@pytest.mark.parametrize("is_table", [False, True])
def test_a_model_that_was_told_nothing_is_no_obstacle(nbspam, model, folder, is_table):
    mail = ["train", folder, "--unlabelled", folder]
    table = ["table", "train", ROOT / "corpora" / "lihang-4.1.csv", "--target", "Y"]
    assert nbspam(*(table if is_table else mail), "-m", model)[0] == 0
    assert nbspam("doubts", "-m", model, folder) == (0, "", f"{NONE}\n")

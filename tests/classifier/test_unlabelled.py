"""Few labels and many documents without, and none at all: better with them, never collapsed."""

import json

import numpy as np
import pytest

from nbspam.classifier import unlabelled
from nbspam.counts.table import inverse_document_frequency
from nbspam.errors import InputError, NotTrainedError
from nbspam.settings import TF_IDF, SettingsChoices
from nbspam.store.open import load_tokens
from support import ROOT, TOPICS, complains, json_lines, texts


def for_em(**choices):
    return unlabelled.em_chosen(SettingsChoices(**choices), is_text=True)


def right(classifier, items):
    verdicts = zip(classifier.classify(items), items, strict=True)
    return np.mean([verdict.label == item.label for verdict, item in verdicts])


@pytest.mark.parametrize("model", ["multinomial", "bernoulli"])
@pytest.mark.parametrize("hard", [False, True])
def test_unlabelled_documents_help(model, hard):
    settings = for_em(model=model)
    labelled, others, test = texts(1, 1), texts(100, 2), texts(100, 3)
    plain = unlabelled.train_with_unlabelled(labelled, others, settings, weight=0.0)
    em = unlabelled.train_with_unlabelled(labelled, others, settings, weight=1.0, hard=hard)
    assert right(em.classifier, test) > max(0.93, right(plain.classifier, test))
    assert em.n_unlabelled == 200


@pytest.mark.parametrize("alpha", ["auto", 0.01])
@pytest.mark.parametrize("weight", [0.001, 0.1, 1.0])
def test_under_no_alpha_and_no_weight_one_class_takes_all(alpha, weight):
    settings = for_em(alpha=alpha)
    report = unlabelled.train_with_unlabelled(texts(2, 1), texts(100, 2), settings, weight=weight)
    share = report.fit.responsibility.mean(axis=0)
    assert share.min() > 0.25


def test_alpha_and_prior_are_those_that_were_asked_for():
    labelled, others = texts(2, 1)[:3], [*texts(60, 2)[:60], *texts(5, 3)[5:]]

    def trained(**choices):
        report = unlabelled.train_with_unlabelled(labelled, others, for_em(**choices), weight=1.0)
        return report.classifier, report.fit.model

    classifier, model = trained()
    assert model.alpha == classifier.settings.alpha < 1
    assert np.exp(model.class_log_prior_).tolist() == pytest.approx([2 / 3, 1 / 3])
    classifier, model = trained(alpha=1.0, class_prior="estimated")
    assert model.alpha == classifier.settings.alpha == 1
    shares = model.class_count_ / model.class_count_.sum()
    assert np.exp(model.class_log_prior_) == pytest.approx(shares)
    assert classifier.prior == pytest.approx(shares)
    assert abs(shares[0] - 0.5) > 0.1
    given = trained(class_prior=(0.2, 0.8))[1]
    assert np.exp(given.class_log_prior_).tolist() == pytest.approx([0.2, 0.8])


@pytest.mark.parametrize("choices", [
    {}, {"weighting": "counts"}, {"model": "bernoulli"},
    {"alpha": 0.5, "class_prior": "estimated"},
])  # fmt: skip
def test_the_classifier_holds_the_model_of_the_last_round(choices):
    settings = for_em(**choices)
    report = unlabelled.train_with_unlabelled(texts(3, 1), texts(20, 2), settings, weight=0.5)
    table, tables = report.classifier.table, report.fit.model.tables()
    weight, n_docs = tables.weight, float(table.class_count.sum())
    if report.classifier.settings.weighting == TF_IDF:
        weight = weight * inverse_document_frequency(table.document_frequency, n_docs)[:, None]

    fit = report.classifier.fit
    np.testing.assert_allclose(fit.weight, weight, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(fit.intercept, tables.intercept, rtol=1e-9)
    assert n_docs == pytest.approx(6 + 0.5 * 40)


def test_the_weight_is_chosen_by_cross_validation_of_the_labelled():
    settings = for_em()
    report, other = (  # of everyday words, so that folds differ
        unlabelled.train_with_unlabelled(texts(4, 1, length=0), texts(10, 2), settings, seed=seed)
        for seed in (0, 1)
    )
    assert set(report.accuracy) == set(unlabelled.WEIGHTS)
    assert report.accuracy[report.weight] == max(report.accuracy.values())
    assert other.accuracy != report.accuracy
    # Without a document to hold out it is one.
    report = unlabelled.train_with_unlabelled(texts(1, 1), texts(20, 2), settings)
    assert (report.weight, report.accuracy) == (1.0, {})
    # All tokens in several documents may be those of the unlabelled.
    alone = [item._replace(data=f"no{n}".encode()) for n, item in enumerate(texts(2, 1))]
    bernoulli = for_em(model="bernoulli")
    report = unlabelled.train_with_unlabelled(alone, texts(20, 2), bernoulli)
    assert set(report.accuracy.values()) == {0.5}


def test_labels_of_unlabelled_documents_play_no_part():
    others = texts(30, 2)
    wrong = [item._replace(label="sky" if item.label == "sea" else "x") for item in others]
    one, two = (
        unlabelled.train_with_unlabelled(texts(2, 1), each, for_em()).classifier
        for each in (others, wrong)
    )
    assert one.classes == two.classes == ("sea", "sky")
    assert (one.fit.weight == two.fit.weight).all()


def test_one_class_or_no_document_without_a_label_is_refused():
    with pytest.raises(NotTrainedError, match="of 1 class"):
        unlabelled.train_with_unlabelled(texts(2, 1)[:2], texts(2, 2), for_em())
    with pytest.raises(InputError, match="--unlabelled: nothing to read"):
        unlabelled.train_with_unlabelled(texts(2, 1), [], for_em())


@pytest.fixture
def few(tmp_path):
    """A table of few labels, and a folder of the other texts."""
    lines = [json.dumps({"label": i.label, "text": i.data.decode()}) for i in texts(2, 1)]
    (tmp_path / "few.jsonl").write_text("\n".join(lines))
    (tmp_path / "others").mkdir()
    for i in texts(20, 2):
        (tmp_path / "others" / f"{i.name}.txt").write_bytes(i.data)
    return tmp_path


def test_train_with_unlabelled_shows_each_round(nbspam, few, model):
    command = ("train", few / "few.jsonl", "--unlabelled", few / "others")
    out = nbspam.out(*command)
    assert out.startswith("round\tlog-likelihood\tlog-posterior\tgain of Q\tlargest change\n")
    assert "read 4 labelled, 40 unlabelled" in out
    assert "held-out accuracy by weight 0: " in out
    assert load_tokens(str(model)).classes == ("sea", "sky")
    (few / "q.jsonl").write_text('{"text": "sail and anchor"}\n')
    assert nbspam("predict", few / "q.jsonl", "--text-column", "text")[1] == "sea\n"

    report = nbspam.json(*command, "--unlabelled-weight", "0.5", "--hard")
    reached = [row["log_posterior"] for row in report["rounds"]]
    assert reached == sorted(reached)
    assert (report["weight"], report["labelled"], report["unlabelled"]) == (0.5, 4, 40)


@pytest.mark.parametrize("model", ["multinomial", "bernoulli"])
def test_two_topics_are_told_apart_and_named_by_their_words(model):
    items = texts(60, 1, length=6)
    found = unlabelled.cluster_documents(items, for_em(model=model), 2)

    of = dict(zip(found.names, found.share.argmax(axis=1).tolist(), strict=True))
    sea = np.array([of[item.name] for item in items if item.label == "sea"])
    sky = np.array([of[item.name] for item in items if item.label == "sky"])
    most = round(sea.mean())
    assert (sea == most).sum() + (sky != most).sum() > 0.95 * len(items)
    for number, tokens in enumerate(unlabelled.typical_tokens(found, 5).values()):
        topic = TOPICS["sea" if number == most else "sky"]
        assert {each.token for each in tokens} <= set(topic.split())


def test_the_command_prints_clusters_largest_first_or_the_cluster_of_every_item(nbspam, tmp_path):
    path = tmp_path / "texts.jsonl"
    lines = [json.dumps({"text": item.data.decode()}) for item in texts(15, 1, length=6)]
    path.write_text("\n".join(lines))

    def clustered(k, *options):
        return nbspam("cluster", path, "-k", k, "--text-column", "text", *options)

    status, out, err = clustered(2, "-n", "3")
    assert (status, err) == (0, "")
    head, *rows = [line.split("\t") for line in out.splitlines()]
    assert head == ["cluster", "documents", "typical tokens"]
    assert [row[0] for row in rows] == ["1", "2"]
    assert float(rows[0][1]) >= float(rows[1][1])
    assert sum(float(row[1]) for row in rows) == pytest.approx(30, abs=0.1)
    assert all(len(row[2].split()) == 3 for row in rows)

    first = clustered(3, "--seed", "4", "--json")
    assert clustered(3, "--seed", "4", "--json", "--trace") == first
    assert [row["cluster"] for row in json.loads(first[1])["clusters"]] == ["1", "2", "3"]
    assert clustered(3, "--seed", "5", "--json") != first

    how = ("--assignments", "--hard", "--weighting", "counts")
    rows = [line.split("\t") for line in clustered(2, *how)[1].splitlines()]
    assert len(rows) == len(json_lines(clustered(2, *how, "--json")[1])) == 30
    assert {(row[0], row[1]) for row in rows} == {("1", "1.0000"), ("2", "1.0000")}
    assert complains(clustered(31), 2, "-k 31: not from 2 to the number of documents (a table")


COINS = ROOT / "corpora" / "two-coins.csv"
BARE = ("-k", "2", "--weighting", "counts", "--min-df", "1")


@pytest.mark.parametrize(("text", "status", "words"), [
    ("[", 1, "not JSON"),
    ("{}", 2, "not components"),
    ('[{"weight": 0, "tokens": {}}]', 2, "not components"),
    ('[{"weight": 1e999, "tokens": {}}, {"weight": 1, "tokens": {}}]', 2, "not components"),
    (f'[{{"weight": {10**400}, "tokens": {{}}}}]', 2, "not components"),
    ('[{"weight": 1, "tokens": {"heads": 2}}]', 2, "not components"),
    ('[{"weight": 1, "tokens": {"heads": 1}}]', 2, "1 components for 2 clusters; give 2"),
    ('[{"weight": 1, "tokens": {"x": 1}}, {"weight": 1, "tokens": {}}]', 2, "the token 'x'"),
    (None, 1, "No such file"),
])  # fmt: skip
def test_impossible_starts_are_refused(nbspam, tmp_path, text, status, words):
    if text is not None:
        (tmp_path / "s.json").write_text(text)
    how = ("cluster", COINS, *BARE, "--start", tmp_path / "s.json")
    assert complains(nbspam(*how), status, words)

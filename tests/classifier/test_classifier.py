"""What a classifier says of a message: its reasons, and headers with its verdict."""

import json
import math
from dataclasses import replace
from functools import cache, partial
from math import fsum

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nbspam import __version__
from nbspam.classifier.classifier import Classifier, judge_and_mark
from nbspam.classifier.reasons import by_words
from nbspam.classifier.sum import log_tables
from nbspam.classifier.training import learn_items
from nbspam.decision import Cutoffs
from nbspam.errors import UsageError
from nbspam.mail.headers import HeaderChoices
from nbspam.mail.message import parse_message
from nbspam.settings import MANY, PLAIN, PRESETS
from nbspam.sources.items import Item, read_items
from nbspam.store.open import load_tokens as load
from nbspam.tokens.definition import MAX_RUN_BYTES, folded_line, reference_runs
from nbspam.tokens.tokenizer import tokenize
from nbspam.verdicts import Evidence, shares_by_chain
from support import HAM, SPAM, count_batch, examples, first_mails, message, words_of

MAILS = sorted(first_mails().glob("*/*.eml"))
SETTINGS = {
    "combined": PRESETS["mail"],
    "text": PRESETS["text"],
    "blended": MANY["mail"],
    "multinomial": PLAIN["text"],
    "bernoulli": replace(PLAIN["mail"], model="bernoulli", alpha=1.0),
    "complement": replace(PLAIN["text"], model="complement", alpha=1.0),
    "unit length": PRESETS["tutorial"],
}


@cache
def model_of(name):
    items = list(read_items([str(first_mails())]))
    if name == "blended":
        items = [item._replace(label=f"{item.label}{n % 2}") for n, item in enumerate(items)]
    return learn_items(items, SETTINGS[name]).classifier


@cache
def columns_of(name):
    return {word: column for column, word in enumerate(words_of(model_of(name).table))}


@pytest.mark.parametrize("name", SETTINGS)
@examples(50)
@given(st.sampled_from(MAILS), st.integers(0, 4000))
def test_contributions_and_the_constant_are_the_score_strongest_first(name, path, size):
    model = model_of(name)
    given = parse_message(path.read_bytes()[:size])
    explanation = model.explain_message(given, path.name)

    (document,) = model.documents([given])
    joint = model.joint_of(document)[0]
    towards, against = (model.classes.index(c) for c in (explanation.towards, explanation.against))
    assert explanation.score == pytest.approx(joint[towards] - joint[against], abs=1e-9)
    for evidence in (explanation.evidence, explanation.tokens):
        shares = [row.contribution for row in evidence]
        total = explanation.constant + math.fsum(shares)
        assert total == pytest.approx(explanation.score, abs=1e-9)
        assert [*map(abs, shares)] == sorted(map(abs, shares), reverse=True)
    assert not any(row.token.startswith("char:") for row in explanation.evidence)
    counts, columns = model.table.feature_count, columns_of(name)
    own = {row.token: tuple(counts[columns[row.token]]) for row in explanation.tokens}
    for row in (*explanation.evidence, *explanation.tokens):
        assert row.counts == own.get(row.token, ())


def test_a_score_of_combined_evidence_is_that_of_the_last_class():
    for path in (MAILS[0], MAILS[-1]):
        explanation = model_of("combined").explain_message(parse_message(path.read_bytes()), "")
        assert (explanation.towards, explanation.against) == ("spam", "ham")
        assert (explanation.score > 0) == (path.parent.name == "spam")
        assert explanation.verdict.score == explanation.score


def test_shares_and_start_of_a_chain_add_up_to_the_last_log_odds():
    with np.errstate(divide="ignore"):
        joint = np.log([[0.5, 0.3, 0.2], [0.4, 0.1, 0.2], [0.1, 0.1, 0.0], [0.1, 0.0, 0.0]])
    shares, start = shares_by_chain(joint[:3], 0, 1)
    assert start == pytest.approx(np.log(5 / 3))
    assert shares == pytest.approx([np.log(4 / (5 / 3)), -np.log(4)])
    # Impossible in both classes: such a step says nothing.
    for row, odds in ((0, np.log(3 / 2)), (2, np.inf), (3, 0)):
        shares, start = shares_by_chain(joint[[row, 3]], 1, 2)
        assert (start, shares.tolist()) == (pytest.approx(odds), [0])


@pytest.mark.parametrize(("text", "score"), [("x y", math.inf), ("x y z w", 0)])
def test_the_two_most_probable_classes_are_compared_though_tokens_are_impossible(text, score):
    """Without smoothing a token that a class never had is impossible there: b and c have no y."""
    unsmoothed = replace(PLAIN["text"], alpha=0.0)
    messages = [message(body=text) for text in ("x y", "x z", "w")]
    table = count_batch(tokenize(messages, unsmoothed.tokens), ["a", "b", "c"], "counts")
    model = Classifier(unsmoothed, table, log_tables(table, unsmoothed))
    explanation = model.explain_message(message(body=text), "")

    assert explanation.score == score
    assert explanation.verdict.label == explanation.towards == "a"
    assert not any(math.isnan(row.contribution) for row in explanation.evidence)


def test_long_tokens_are_cut_at_eighty_columns(nbspam, model, folder):
    long = b"Subject: " + b"v" * 40 + b" " + b"w" * 40 + b"\n\nhi\n"
    (folder / "spam" / "1.eml").write_bytes(long)
    nbspam("train", "--pairs", folder)
    _, out, _ = nbspam("explain", "-n", "1000", stdin=long)
    assert max(map(len, out.splitlines())) == 80
    assert "…" in out


def test_json_has_no_infinities(nbspam, tmp_path):
    table, model = tmp_path / "t.csv", tmp_path / "m.nbspam"
    table.write_text("label,text\na,x y\nb,x z\n")
    assert nbspam("train", "-m", model, "--alpha", "0", table)[0] == 0
    _, out, _ = nbspam("explain", "-m", model, "--json", stdin=b"x y\n")
    strict = partial(json.loads, parse_constant=lambda name: pytest.fail(name))
    values = strict(out)
    assert (values["label"], values["score"]) == ("a", None)
    table.write_text("x,y\nu,a\nv,b\n")
    options = ("--target", "y", "--alpha", 0, "--values", "y=A,a,b", "-m", model)
    assert nbspam("table", "train", *options, table)[0] == 0
    values = strict(nbspam.out("table", "explain", "-m", model, "--json", stdin=b"x\nu\n"))
    assert (values["label"], values["against"], values["constant"]) == ("a", "A", None)


def test_brief_has_as_many_tokens_as_a_header_has_room_for():
    items = list(read_items([str(path) for path in MAILS[::20]]))
    lengths = [len(each.brief(1000)) for each in model_of("combined").explanations(items)]
    assert 150 < min(lengths) <= max(lengths) <= 200


def test_tokens_of_strangers_never_reach_the_terminal(nbspam, model, folder):
    strange = "Subject: \u202echeap\u202c\n\n\x1b[31mpills\u202e pills\n".encode()
    (folder / "spam" / "1.eml").write_bytes(strange)
    nbspam("train", folder)
    for options in ((), ("--brief",), ("--json",)):
        _, out, _ = nbspam("explain", *options, folder / "spam" / "1.eml")
        assert "pills" in out
        assert out.replace("\n", "").isprintable()


def test_chunks_are_made_for_the_processes_that_judge_them(mail_classifier, monkeypatch):
    asked, chunks = [], Classifier.chunks

    def watched(self, inputs, jobs=1):
        asked.append(jobs)
        return chunks(self, inputs, jobs)

    monkeypatch.setattr(Classifier, "chunks", watched)
    for answered in (mail_classifier.answers, mail_classifier.classify):
        list(answered([Item("-", None, HAM)], 2))
    assert asked == [2, 2]


def test_explain_follows_the_costs(nbspam, trained):
    costs = ("--fp-cost", "1e9")
    assert nbspam("explain", "--brief", *costs, stdin=SPAM)[1].startswith("ham 0.")
    out = nbspam("explain", "--brief", *costs, "--unsure-cost", "1e-6", stdin=SPAM)[1]
    assert out.startswith("unsure 0.")


def headers(pieces):
    lines = pieces[1].decode().splitlines()
    return [tuple(line.split(": ", 1)) for line in lines]


def test_a_message_gets_the_verdict_that_is_returned():
    classifier = model_of("combined")
    verdict, pieces, _ = judge_and_mark(classifier, classifier.rule, HeaderChoices(), SPAM)
    said = f"spam, probability={verdict.probability:.6f}, version={__version__}"
    assert headers(pieces) == [("X-Nbspam", said)]
    assert 0.5 < verdict.probability < 1
    # A probability at the cutoff scores what is required.
    spam = verdict.posterior["spam"]
    wanted = HeaderChoices(spam_status=True)
    _, pieces, _ = judge_and_mark(classifier, Cutoffs(spam, spam), wanted, SPAM)
    assert "Yes, score=5.0 required=5.0" in dict(headers(pieces))["X-Spam-Status"]


def test_other_classes_than_ham_and_spam_have_our_header_alone(nbspam, tmp_path, folder):
    (folder / "ham").rename(folder / "wörk, later")
    nbspam("train", "-m", tmp_path / "m.nbspam", folder)
    classifier = load(str(tmp_path / "m.nbspam"))

    _, pieces, _ = judge_and_mark(classifier, classifier.rule, HeaderChoices(), HAM)
    assert dict(headers(pieces))["X-Nbspam"].startswith(r"w\xf6rk, later, probability=0.")
    with pytest.raises(UsageError, match="it is for ham, spam and unsure"):
        judge_and_mark(classifier, classifier.rule, HeaderChoices(bogosity=True), HAM)


TEXT = PRESETS["text"].tokens


def told(text, *evidence, **fields):
    """Return the contributions by word; evidence: tokens and their nats."""
    rows = tuple(
        Evidence(token, nats, "characters" if token.startswith("char:") else "text", (1.0, 2.0))
        for token, nats in evidence
    )
    return by_words(message(body=text, **fields), TEXT, rows)


def sums(*arguments, **fields):
    return {each.token: pytest.approx(each.contribution) for each in told(*arguments, **fields)}


def test_a_run_goes_to_its_word_and_is_divided_among_its_places():
    found = told("big prize", ("char:priz", 4.0), ("prize", 1.0), ("char:i", 3.0))
    # `i` stands in both words, half of it in each
    assert [(e.token, e.contribution, e.group) for e in found] == [
        ("prize", 6.5, "text"),
        ("big", 1.5, "characters"),
    ]
    assert [e.counts for e in found] == [(1.0, 2.0), ()]  # the model does not know `big`


def test_a_run_over_a_blank_is_divided_and_what_stands_between_blanks_is_one_stretch():
    assert sums("win now", ("char:in n", 3.0)) == {"win": 2.0, "now": 1.0}
    assert sums("win now", ("char: ", 3.0)) == {"win": 1.5, "now": 1.5}
    found = sums("&lt;#&gt; ok", ("char:t;", 1.0), ("char:ok", 0.5))
    assert found == {"&lt;#&gt;": 1.0, "ok": 0.5}
    assert sums("ok.", ("char:k.", 1.0)) == {"ok": 1.0}
    assert sums("v1agra", ("char:v1", 1.0)) == {"viagra": 1.0}  # as the word is counted


def test_scripts_without_spaces_are_cut_where_the_sign_changes():
    found = sums("质量很好但是太贵", ("char:很好", 2.0), ("char:太贵", -1.0), ("很好", 0.5))
    assert found == {"很好": 2.5, "但是太贵": -1.0}


def test_words_of_the_subject_and_runs_that_are_not_found_keep_their_names():
    assert sums("x", ("char:free", 2.0), subject="free")["subject:free"] == 2.0
    assert sums("x", ("char:elsewhere", 1.0), ("char:x", 1.0)) == {"char:elsewhere": 1, "x": 1}


words = st.text("ab1 .$é好<\u0301\0", max_size=60)


@examples(200)
@given(words, words, st.randoms(use_true_random=False))
def test_the_sum_stays_and_no_run_is_left(body, subject, random):
    lines = [folded_line(text.encode()) for text in (body, subject)]
    runs = sorted({run.decode() for line in lines for run in reference_runs(line)})
    evidence = [(f"char:{run}", random.uniform(-3, 3)) for run in runs]
    found = told(body, *evidence, subject=subject)

    assert fsum(e.contribution for e in found) == pytest.approx(fsum(n for _, n in evidence))
    sizes = [abs(e.contribution) for e in found]
    assert sizes == sorted(sizes, reverse=True)


def test_without_runs_evidence_stays_as_it_is_and_long_fields_are_cut():
    evidence = (Evidence("x", 1.0, "text", ()),)
    assert by_words(message(body="x"), TEXT, evidence) is evidence
    assert sums("a" * MAX_RUN_BYTES + "b", ("char:b", 1.0)) == {"char:b": 1.0}

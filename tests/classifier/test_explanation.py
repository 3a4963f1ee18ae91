import json
import math
from dataclasses import replace
from functools import cache

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nbspam.classifier.classifier import Classifier
from nbspam.classifier.sum import log_tables
from nbspam.classifier.training import count_items, train_classifier
from nbspam.mail.message import parse_message
from nbspam.settings import MANY, PLAIN, PRESETS
from nbspam.sources.items import read_items
from nbspam.tokens.tokenizer import tokenize
from nbspam.verdicts import Explanation
from support import SPAM, count_batch, examples, first_mails, json_lines, message

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
def classifier(name):
    how = SETTINGS[name]
    items = list(read_items([str(first_mails())]))
    if name == "blended":
        items = [item._replace(label=f"{item.label}{n % 2}") for n, item in enumerate(items)]
    return train_classifier(count_items(items, how), how)


def total(explanation: Explanation) -> float:
    return explanation.constant + math.fsum(row.contribution for row in explanation.evidence)


@pytest.mark.parametrize("name", SETTINGS)
@examples(50)
@given(st.sampled_from(MAILS), st.integers(0, 4000))
def test_contributions_and_the_constant_are_the_score(name, path, size):
    model = classifier(name)
    given = parse_message(path.read_bytes()[:size])
    explanation = model.explain_message(given, path.name)

    (document,) = model.documents([given])
    joint = model.joint_of(document)[0]
    towards, against = (model.classes.index(c) for c in (explanation.towards, explanation.against))
    assert explanation.score == pytest.approx(joint[towards] - joint[against], abs=1e-9)
    assert total(explanation) == pytest.approx(explanation.score, abs=1e-9)


@pytest.mark.parametrize("name", SETTINGS)
def test_evidence_comes_strongest_first_with_its_counts(name):
    model = classifier(name)
    evidence = model.explain_message(parse_message(MAILS[-1].read_bytes()), "").evidence

    strength = [abs(row.contribution) for row in evidence]
    assert strength == sorted(strength, reverse=True)
    column = {model.table.vocabulary.text(j): j for j in range(len(model.table.vocabulary))}
    for row in evidence:
        assert row.counts == tuple(model.table.feature_count[column[row.token]])


def test_a_score_of_combined_evidence_is_that_of_the_last_class():
    for path in (MAILS[0], MAILS[-1]):
        explanation = classifier("combined").explain_message(parse_message(path.read_bytes()), "")
        assert (explanation.towards, explanation.against) == ("spam", "ham")
        assert (explanation.score > 0) == (path.parent.name == "spam")
        assert explanation.verdict.score == explanation.score


def three_classes():
    """Return a model without smoothing: a token that a class never had is impossible there."""
    unsmoothed = replace(PLAIN["text"], alpha=0.0)
    messages = [message(body=text) for text in ("x y", "x z", "w")]
    table = count_batch(tokenize(messages, unsmoothed.tokens), ["a", "b", "c"], "counts")
    return Classifier(unsmoothed, table, log_tables(table, unsmoothed))


def test_of_many_classes_the_two_most_probable_are_compared():
    explanation = three_classes().explain_message(message(body="x y"), "")

    assert explanation.verdict.label == explanation.towards == "a"
    assert explanation.score == math.inf  # b has no y, and c neither
    assert all(not math.isnan(row.contribution) for row in explanation.evidence)


def test_tokens_that_are_impossible_in_every_class_say_nothing():
    model = three_classes()
    explanation = model.explain_message(message(body="x y z w"), "")

    assert explanation.score == 0
    assert all(not math.isnan(row.contribution) for row in explanation.evidence)


# --- the command -------------------------------------------------------------------------


def test_the_rows_add_up_to_the_score(nbspam, trained):
    status, out, _ = nbspam("explain", "-n", "3", stdin=SPAM)

    header, columns, *rows = out.splitlines()
    assert status == 0
    assert header.startswith("spam  probability 0.")
    assert columns.split() == ["nats", "ham", "spam", "kind", "token"]
    score = float(header.split("score ")[1].split()[0])
    assert sum(float(row.split()[0]) for row in rows) == pytest.approx(score, abs=0.01)
    assert len(rows) == 5  # three tokens, the rest, the constant
    assert max(map(len, out.splitlines()[1:])) <= 80


def test_long_tokens_are_cut_at_eighty_columns(nbspam, model, folder):
    long = b"Subject: " + b"v" * 40 + b" " + b"w" * 40 + b"\n\nhi\n"
    (folder / "spam" / "1.eml").write_bytes(long)
    nbspam("train", "--pairs", folder)
    _, out, _ = nbspam("explain", "-n", "1000", stdin=long)

    assert max(map(len, out.splitlines())) == 80
    assert "…" in out


def test_json_has_every_number_of_the_explanation(nbspam, trained):
    _, out, _ = nbspam("explain", "--json", "-n", "1000", stdin=SPAM)

    (values,) = json_lines(out)
    assert set(values) == {
        *("name", "label", "posterior", "probability", "score", "towards", "against"),
        *("constant", "tokens", "risk"),
    }
    added = math.fsum(token["contribution"] for token in values["tokens"])
    assert values["constant"] + added == pytest.approx(values["score"], abs=1e-9)
    assert set(values["tokens"][0]) == {"token", "contribution", "group", "counts"}


def test_json_has_no_infinities(nbspam, tmp_path):
    table, model = tmp_path / "t.csv", tmp_path / "m.nbspam"
    table.write_text("label,text\na,x y\nb,x z\n")
    assert nbspam("train", "-m", model, "--alpha", "0", table)[0] == 0
    _, out, _ = nbspam("explain", "-m", model, "--json", stdin=b"x y\n")

    values = json.loads(out, parse_constant=lambda name: pytest.fail(name))
    assert (values["label"], values["score"]) == ("a", None)


def test_brief_is_one_line_short_enough_for_a_header(nbspam, trained, mails):
    status, out, _ = nbspam("explain", "--brief", "-n", "1000", mails)

    lines = out.splitlines()
    assert status == 0
    assert len(lines) == len(MAILS)
    assert max(map(len, lines)) <= 200
    assert any(line.startswith("spam 0.") and ": " in line for line in lines)


def test_tokens_of_strangers_never_reach_the_terminal(nbspam, model, folder):
    strange = "Subject: \u202echeap\u202c\n\n\x1b[31mpills\u202e pills\n".encode()
    (folder / "spam" / "1.eml").write_bytes(strange)
    nbspam("train", folder)
    for options in ((), ("--brief",), ("--json",)):
        _, out, _ = nbspam("explain", *options, folder / "spam" / "1.eml")
        assert "pills" in out
        assert out.replace("\n", "").isprintable()


def test_explain_follows_the_costs(nbspam, trained):
    assert nbspam("explain", "--brief", "--fp-cost", "1e9", stdin=SPAM)[1].startswith("ham 0.")
    out = nbspam("explain", "--brief", "--fp-cost", "1e9", "--unsure-cost", "1e-6", stdin=SPAM)[1]
    assert out.startswith("unsure 0.")


def test_an_unreadable_message_is_skipped_with_a_warning(nbspam, trained, tmp_path):
    (tmp_path / "box").mkdir()
    (tmp_path / "box" / "a.eml.gz").write_bytes(b"not gzip")
    status, out, err = nbspam("explain", tmp_path / "box")

    assert (status, out) == (1, "")
    assert "skipped" in err
    assert nbspam("explain", "--strict", tmp_path / "box")[0] == 1

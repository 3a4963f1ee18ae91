"""Mail whose structure is unlike that learned: numbers by hand, laws, and what users see."""

from dataclasses import replace
from math import exp, log

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nbspam.classifier.combine import MOST_DOUBT, share_unknown, tempered
from nbspam.classifier.fitting import usual_share
from nbspam.classifier.training import count_items, train_classifier
from nbspam.settings import PRESENCE, PRESETS, TokenSettings
from nbspam.sources.items import Item, read_items
from nbspam.tokens.tokenizer import tokenize
from support import HAM, SPAM, count_batch, examples, json_lines, message, write_mails

SCORES = st.lists(st.floats(-50, 50), min_size=1, max_size=5).map(np.array)
# A head that no model knows, as long as a spammer likes.
UNKNOWN = "".join(f"X-Kq{n}z: v{n}jx\n" for n in range(300)).encode()


def test_a_share_and_a_drawn_score_worked_by_hand():
    # 3 of 5 tokens are unknown; 5 more are taken as known.
    assert share_unknown(np.array([3]), np.array([5])).tolist() == [3 / 10]

    # .2 above the usual share: the divisor is 1 + 20 * .2 = 5.  From log 2, the default cutoff, a
    # score is drawn to log 2; below even odds to 0; between them it stays.
    score = np.array([log(2) + 4, -5.0, 0.3])
    assert tempered(score, np.full(3, 0.3), 0.1) == pytest.approx([log(2) + 4 / 5, -1, 0.3])
    assert tempered(score, np.full(3, 0.1), 0.1).tolist() == score.tolist()
    assert tempered(score, np.ones(3), 0.1) == pytest.approx([log(2) + 0.4, -0.5, 0.3])


@examples(100)
@given(SCORES, st.floats(0, 1), st.floats(0, 1))
def test_no_score_passes_a_cutoff_and_none_changes_its_order(score, share, usual):
    drawn = tempered(score, np.full(len(score), share), usual)

    for cutoff in (0.0, log(2)):
        assert ((drawn > cutoff) <= (score > cutoff)).all()
        assert ((drawn < cutoff) <= (score < cutoff)).all()
    assert (np.abs(drawn) <= np.abs(score) + 1e-12).all()
    away = np.abs(score - np.clip(score, 0, log(2)))
    assert (np.abs(drawn - score) <= away * MOST_DOUBT / (1 + MOST_DOUBT) + 1e-12).all()
    order = np.argsort(score, kind="stable")
    assert (np.diff(drawn[order]) >= -1e-12).all()


def test_the_usual_share_is_that_of_messages_left_out():
    # Of each message header:from, header:subject and from:example.org are known to the others, and
    # its own sender, a to t, is not: 1 / (1 + n_known + 5).
    names = "abcdefghijklmnopqrst"
    messages = [message(**{"from": f"{name}{name}@example.org"}) for name in names]
    batch = tokenize(messages, TokenSettings())
    table = count_batch(batch, 10 * ["ham"] + 10 * ["spam"], PRESENCE)
    documents = table.known(batch.documents)
    (n_tokens,) = set(documents.structure.tolist())
    assert np.diff(documents.offsets).tolist() == [n_tokens] * len(names)

    assert usual_share(table, documents) == 1 / (n_tokens + 5)
    assert usual_share(table._replace(classes=("bill", "work")), documents) == 1.0
    assert usual_share(table.forgetting(np.arange(3)), documents) == 1.0
    assert usual_share(table, documents.part(0, 19)) == 1.0  # of nineteen none is usual


def test_tokens_that_were_dropped_are_counted_by_message():
    batch = tokenize([message(**{"from": "aa@example.org"}), message()], TokenSettings())
    table = count_batch(batch, ["ham", "spam"], PRESENCE)
    others = [message(**{"from": "bb@example.net"}, body="new words"), message()]
    known = table.known(tokenize(others, TokenSettings()).documents)

    def dropped(documents):
        return (documents.structure - np.diff(documents.offsets)).tolist()

    # bb and net; words of the body are no structure.
    assert dropped(known) == [2, 0]
    assert dropped(known.one(0)) == [2]
    assert dropped(known.part(1, 2)) == [0]
    assert dropped(known.take(np.array([1, 0]))) == [0, 2]
    assert dropped(table.met(known)) == [2, 0]
    unlearned = table._replace(document_frequency=table.document_frequency * 0)
    assert dropped(unlearned.met(known)) == known.structure.tolist()


def test_headers_that_nobody_knows_make_no_spam_ham(mail_classifier, mails):
    spams = [item.read() for item in read_items([str(mails / "spam")])]
    plain = list(mail_classifier.classify([Item("", None, data) for data in spams]))
    odd = list(mail_classifier.classify([Item("", None, UNKNOWN + data) for data in spams]))

    assert [verdict.label for verdict in odd] == [verdict.label for verdict in plain]
    sure = [(a, b) for a, b in zip(plain, odd, strict=True) if a.posterior["spam"] > 0.9]
    assert len(sure) > 50
    assert all(b.posterior["spam"] < a.posterior["spam"] for a, b in sure)


def test_an_explanation_says_that_a_message_is_unlike_and_adds_up(nbspam, model, tmp_path):
    nbspam("train", write_mails(tmp_path / "mails", 10))
    _, known, _ = nbspam("explain", stdin=SPAM)
    _, out, _ = nbspam("explain", "-n", "1000", stdin=UNKNOWN + SPAM)
    header, said, _, *rows = out.splitlines()

    assert "unlike" not in known
    assert said.startswith("unlike the mail that was learned (headers, links, markup): evidence")
    score = float(header.split("score ")[1].split()[0])
    assert sum(float(row.split()[0]) for row in rows) == pytest.approx(score, abs=0.05)

    (values,) = json_lines(nbspam("explain", "--json", "-n", "1000", stdin=UNKNOWN + SPAM)[1])
    added = sum(token["contribution"] for token in values["tokens"])
    assert values["constant"] + added == pytest.approx(values["score"], abs=1e-9)
    assert values["posterior"]["spam"] == pytest.approx(1 / (1 + exp(-values["score"])))
    assert 0 < values["kept"] < 1
    assert f"counts {values['kept']:.0%}" in said
    assert json_lines(nbspam("explain", "--json", stdin=SPAM)[1])[0]["kept"] == 1


def test_a_model_that_forgot_tokens_takes_no_message_for_unlike(mail_classifier, mails):
    settings = replace(PRESETS["mail"], min_df=2)
    pruned = train_classifier(count_items(read_items([str(mails)]), settings), settings)
    assert 0 < mail_classifier.fit.usual < 1
    assert pruned.fit.usual == 1.0


def test_ham_stays_ham(nbspam, trained):
    (values,) = json_lines(nbspam("explain", "--json", stdin=UNKNOWN + HAM)[1])
    assert values["label"] == "ham"
    assert values["score"] < 0

"""The scaffold of all classifiers; what each of them answers is tested with its own kind."""

import numpy as np
import pytest

from nbspam.classifier.classifier import Classifier
from nbspam.sources.items import Item
from nbspam.verdicts import shares_by_chain
from support import HAM


def test_chunks_are_made_for_the_processes_that_judge_them(mail_classifier, monkeypatch):
    asked, chunks = [], Classifier.chunks

    def watched(self, inputs, jobs=1):
        asked.append(jobs)
        return chunks(self, inputs, jobs)

    monkeypatch.setattr(Classifier, "chunks", watched)
    for answered in (mail_classifier.answers, mail_classifier.classify):
        list(answered([Item("-", None, HAM)], 2))
    assert asked == [2, 2]


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

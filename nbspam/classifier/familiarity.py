"""Familiarity: how far a message's structure is like that of the mail that was learned.

Other people's mail has the same words, but came by other hosts and programs: of its headers,
links and markup the model knows few tokens.  What its other tokens tell was learned of another
kind of mail, so the probability is drawn towards those that say nothing.

The threshold is that of novelty detection: what all but one in two hundred of the learned
messages stay below (Bishop 1994, "Novelty detection and neural network validation").
"""

from math import log
from typing import Any

import numpy as np

from nbspam.arrays import Floats, Octets
from nbspam.counts.table import CountTable
from nbspam.decision import FP_COST, HAM_AND_SPAM
from nbspam.tokens.definition import IS_STRUCTURE
from nbspam.tokens.sparse import Documents

# E-299 chose the constants, on other collections than those that it judges.
DAMPING = 5.0  # tokens by which a message's structure is taken to be longer: it may be short
USUAL = 0.995  # quantile of the share unknown, among the learned messages
DOUBT, MOST_DOUBT = 20.0, 9.0  # the divisor's growth with the share above the usual one; its most
# Nats: from even odds to the default cutoff nothing is certain.  A score above is not drawn below:
# anybody can add headers that nobody knows, and a third of spams stuffed with words would pass.
UNCERTAIN = 0.0, log(FP_COST)


def share_unknown(unknown: Any, whole: Any) -> Floats:
    """Return the share of a message's structure that is unknown, 0 to 1; same shape (n_docs,).

    unknown: tokens of headers, links and markup that are unknown.  whole: all of these tokens.
    """
    return np.asarray(unknown / (whole + DAMPING))


def share_dropped(documents: Documents, groups: Octets) -> Floats:
    """Return the share of each document's structure that was dropped as unknown, (n_docs,).

    documents: over columns of a table.  groups: (n_tokens,).
    """
    known = documents.lengths(IS_STRUCTURE.take(groups))
    whole = known if documents.structure is None else documents.structure
    return share_unknown(whole - known, whole)


def usual_share(table: CountTable, documents: Documents) -> float:
    """Return the share unknown that messages hardly ever exceed, 0 to 1, leaving one out.

    documents: learned messages, over columns of the table.  It is 1, so that nothing is drawn, for
    classes other than ham and spam, and for a model that has forgotten tokens: it cannot know how
    much of a message is new.
    """
    if table.classes != HAM_AND_SPAM or table.loss is not None or not documents.n_docs:
        return 1.0
    is_structure = IS_STRUCTURE.take(table.vocabulary.groups.take(documents.tokens))
    is_own = is_structure & (table.document_frequency.take(documents.tokens) < 2)
    own, whole = documents.lengths(is_own), documents.lengths(is_structure)
    shares = np.sort(share_unknown(own, whole))
    return float(shares[int(USUAL * (len(shares) - 1))])


def tempered(score: Floats, share: Floats, usual: float) -> Floats:
    """Return log-odds, nats, drawn towards UNCERTAIN where structure is unknown, (n_docs,).

    score: (n_docs,) nats.  share: (n_docs,) from `share_unknown`.  usual: from `usual_share`.
    """
    if not len(share) or share.max() <= usual:
        return score
    nearest = np.clip(score, *UNCERTAIN)
    divisor = 1 + np.clip(DOUBT * (share - usual), 0.0, MOST_DOUBT)
    return np.asarray(nearest + (score - nearest) / divisor)

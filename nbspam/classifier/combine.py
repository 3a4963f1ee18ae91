"""Combining: how evidence for two classes adds up to calibrated log-odds.

Naive Bayes adds the log-odds of all tokens as if tokens were independent, so its probabilities
are too extreme.  Here the log-odds of each group of tokens (text, route, web, pairs, ...) are
averaged, and a small logistic regression, fitted to held-out messages, weights the means of the
groups; it gives a probability.  Corrections of single tokens are added, learned from the few
messages that are wrong or nearly wrong (`fitting.py`).  The score remains a sum over tokens.

A spammer may add any number of words of ham.  Of ham and spam, therefore, only the strongest
tokens of each group count, fewer of those for ham, and only the strongest corrections.
Words that the reader does not see can only speak for spam.

Other people's mail has the same words, but came through other hosts and programs: the model
knows few tokens of its headers, links and markup.  The evidence of its other tokens was
learned from another kind of mail, so its score is drawn towards even odds.  Its words alone
may raise the score again, the more, the fewer of the other tokens are known.  They never lower
it, so a sender gains nothing by adding words of ham.

How often the text has signs such as ! tells ham from spam in all mail, but little: its few nats
are added whoever wrote the message, unless spam would become ham because little is known of it.

The beginning of a writer's own text may raise a score, too: ham that is quoted, forwarded or
appended below a spam does not hide it.
"""

from math import log
from typing import Any, NamedTuple

import numpy as np

from nbspam.arrays import (
    Booleans,
    Floats,
    Floats32,
    Integers,
    Keys,
    Octets,
    differences,
    positions_of,
)
from nbspam.counts.table import CountTable
from nbspam.decision import FP_COST, HAM_AND_SPAM
from nbspam.settings import Settings
from nbspam.tokens.definition import GROUPS, IS_STRUCTURE, UNVOUCHED, Token, reference_key
from nbspam.tokens.sparse import Documents, offsets_of, places_in
from nbspam.verdicts import joint_of_log_odds

# E-002 chose the constants of groups and corrections, the same for all corpora; E-119 STRONGEST.
# Other people's mail shares its words with one's own, and common words vary less than rare
# ones: so rare words are believed less, and weak ones more (E-260).
_IS_WORD = np.isin(GROUPS, ["text", "subject"])
SIGNS = GROUPS.index("signs")
# Lidstone's addend to the presence of a token in a class, (n_groups,)
_ALPHA = np.where(_IS_WORD, 0.1, 0.03)
_ALPHA[SIGNS] = 1.0  # Laplace's: a model of a few messages may not believe them much
BAND = np.where(_IS_WORD, 1.5, 2.0)  # nats, (n_groups,); tokens with weaker log-odds are ignored
BAND[SIGNS] = 0.0
DAMPING = 5.0  # added to the number of tokens by which a group's sum is divided
STRONGEST = 15, 30  # the number of a group's tokens for ham, and for spam, that count at most
_ABOVE_ALL = 64.0  # nats; no log-odds of counts are as strong
# The group with which each group's tokens are averaged: subjects are short, and count as text.
_AVERAGED_WITH = np.arange(len(GROUPS))
_AVERAGED_WITH[GROUPS.index("subject")] = GROUPS.index("text")
HIDDEN, RUNS = GROUPS.index("hidden"), GROUPS.index("characters")
_LIMITS = np.tile(STRONGEST, (len(GROUPS), 1))
_LIMITS[HIDDEN, 0] = 0  # no hidden token speaks for ham
PEOPLE = GROUPS.index("people")
_UNVOUCHED = np.array(
    [reference_key(Token("people", word.encode())) for word in UNVOUCHED], np.uint64
)
MOST_UNVOUCHED = 1  # tokens of a group that count for ham at most, beside one of UNVOUCHED
# The groups whose tokens are corrected, (n_groups,).
IN_LAYER = ~np.isin(np.arange(len(GROUPS)), [GROUPS.index("pairs"), HIDDEN, SIGNS])
MOST_NATS = 12.0  # nats by which all corrections together move a score at most: E-119
# Of ham and spam, the number of a message's corrections for ham, and for spam, that count at most:
# a sender of spam can add weak ones for ham without end.  E-312
MOST_FOR_HAM, MOST_FOR_SPAM = 150, 180
# E-299 and E-318 chose the constants, on other collections than they judge.
STRUCTURE_DAMPING = 5.0  # tokens by which a message's structure is taken to be longer
DOUBT, MOST_DOUBT = 40.0, 19.0  # the divisor's growth with the share above the usual one; its most
# Nats, even odds and the default cutoff: doubt draws scores to the nearest end of this range.
# Spam above it stays spam, because a sender could add unknown headers to be drawn below the
# cutoff: a third of spams stuffed with words would pass.
UNCERTAIN = 0.0, log(FP_COST)
NEUTRAL = 20.0  # messages that are assumed to say of each word that it leans to neither class
FEWEST_WITH_BEGINNING = 20  # learned messages; scores by fewer are too uncertain for a second one
SURELY_HAM = -10.0  # nats; no beginning turns mail below into spam, and most ham is below: E-321
RAISE = 10.0  # nats for a unit of mean leaning, where all structure is unknown


class DocumentEvidence(NamedTuple):
    """Documents, and what counts say of their tokens."""

    documents: Documents
    groups: Octets  # (n_tokens,)
    odds: Floats  # (nnz,) log-odds of each entry's token, nats
    in_layer: Booleans  # (n_tokens,) whether the token is corrected
    correction: Floats32  # (n_tokens,) nats; 0 for tokens outside the layer
    limits: Integers | None  # from `limits_for`
    unfamiliar: Floats  # (n_docs,) share of the structure that is unknown, from `share_dropped`
    leaning: Floats | None  # (nnz,) of each entry's token, from `leanings`; None: not asked


class ScoreParts(NamedTuple):
    """One document's score as a sum, and how it came about."""

    shares: Floats  # (nnz,) of each entry, nats
    constant: float  # nats
    kept: float  # factor, at most 1, of all this but signs: 1 unless the document is unfamiliar
    by_beginning: bool = False  # whether its beginning decides, which scores more


class Combination(NamedTuple):
    """The fitted weights of groups, and the corrections of single tokens."""

    worth: Floats  # (n_groups + 1,) weight of each group's mean, and the constant in nats
    correction: Floats32  # (n_features,) nats; 0 for tokens outside the layer
    usual: float = 1.0  # share of a message's structure that is unknown and raises no doubt
    leaning: float = 1.0  # mean leaning of words that raises no score; 1: none does

    def joint(self, table: CountTable, documents: Documents, weighting: str) -> Floats:
        """Return log P(class given document), nats, shape (n_docs, 2); see `LogTables.joint`."""
        return joint_of_log_odds(self.scores(self.evidence(table, documents)))

    def shares(
        self, table: CountTable, documents: Documents, weighting: str, towards: int, against: int
    ) -> tuple[Floats, float]:
        """See `LogTables.shares`.  Shares and constant add up to its score."""
        sign = 1 if towards == 1 else -1
        parts = self.parts(self.evidence(table, documents))
        return sign * parts.shares, sign * parts.constant

    def evidence(self, table: CountTable, documents: Documents) -> DocumentEvidence:
        """Return documents over columns of the table with the log-odds of their tokens."""
        if table.n_docs < FEWEST_WITH_BEGINNING:
            documents = documents._replace(in_rest=None)
        groups = table.vocabulary.groups.take(documents.tokens)
        counts = table.feature_count.take(documents.tokens, axis=0), table.class_count, groups
        leaning = leanings(*counts).take(documents.columns) if self.leaning < 1 else None
        in_layer = IN_LAYER.take(groups)
        return DocumentEvidence(
            documents,
            groups,
            log_odds(*counts).take(documents.columns),
            in_layer,
            self.correction.take(documents.tokens) * in_layer,
            limits_for(limits_of(table), documents, groups, table.vocabulary.keys),
            share_dropped(documents, groups),
            leaning,
        )

    def scores(self, evidence: DocumentEvidence) -> Floats:
        """Return the log-odds of class 1 for each document, nats, shape (n_docs,).

        If a document's beginning alone scores more (`mail/message.py`), the difference, divided by
        doubt, is added to the score: the beginning of unlike mail says less.
        """
        score = self._drawn_and_raised(evidence)
        if (own := beginnings(evidence, score)) is not None:
            more = self._drawn_and_raised(own.evidence) - score[own.rows]
            score[own.rows] += np.maximum(more, 0.0) / doubt(own.evidence.unfamiliar, self.usual)
        return score

    def _drawn_and_raised(self, evidence: DocumentEvidence) -> Floats:
        """Return the log-odds of class 1 by this evidence, drawn and raised, (n_docs,) nats."""
        _, drawn, signs = self._whole_scores(evidence)
        return np.asarray(drawn + self._raised(evidence) + signs)

    def _raised(self, evidence: DocumentEvidence) -> Any:
        """Return the nats that words by themselves add to each score, at least 0, (n_docs,)."""
        if evidence.leaning is None:
            return 0.0
        mean = mean_leaning(evidence.documents, evidence.leaning)
        return RAISE * evidence.unfamiliar * np.maximum(mean - self.leaning, 0.0)

    def _whole_scores(self, evidence: DocumentEvidence) -> tuple[Floats, Floats, Floats]:
        """Return log-odds, nats: by all but signs, the same drawn, and by signs; (n_docs,)."""
        documents, groups, odds, in_layer, _, limits, unfamiliar, _ = evidence
        means = group_means(documents, groups, odds, limits)
        number = documents.lengths(in_layer)
        values = strongest_corrections(evidence, number)
        corrected = np.bincount(documents.rows(), values, len(number)) * layer_scale(number)
        signs = self.worth[SIGNS] * means[:, SIGNS]
        means[:, SIGNS] = 0.0
        whole = np.asarray(score_of_means(means, self.worth) + bounded(corrected))
        # Signs of ham are divided, too, where spam would not stay spam: see UNCERTAIN.
        is_spam = (signs < 0) & (whole + signs > UNCERTAIN[1])
        signs = np.where(is_spam, signs / doubt(unfamiliar, self.usual), signs)
        return whole, tempered(whole, unfamiliar, self.usual), signs

    def parts(self, evidence: DocumentEvidence) -> ScoreParts:
        """Return the parts of one document's score, which add up to that from `scores`."""
        found, score = self._parts(evidence), self._drawn_and_raised(evidence)
        own = beginnings(evidence, score)
        if own is None or self._drawn_and_raised(own.evidence)[0] <= score[0]:
            return found
        of_own = self._parts(own.evidence)
        part = 1 / doubt(own.evidence.unfamiliar, self.usual)[0]
        shares = found.shares * (1 - part)
        shares[own.entry] += part * of_own.shares
        constant = found.constant + part * (of_own.constant - found.constant)
        return ScoreParts(shares, constant, found.kept, by_beginning=True)

    def _parts(self, evidence: DocumentEvidence) -> ScoreParts:
        """Return the parts of one document's score by this evidence, whatever its beginning."""
        documents, groups, odds, in_layer, _, limits, _, leaning = evidence
        number = documents.lengths(in_layer)
        shares = strongest_corrections(evidence, number) * layer_scale(number)[0]
        if abs(total := float(shares.sum())) > MOST_NATS:
            shares *= MOST_NATS / abs(total)
        entry, cell, values = strongest(documents, groups, odds, limits)
        by = divisors(np.bincount(cell, minlength=len(GROUPS)), limits).take(cell)
        shares[entry] += self.worth[cell] * values / by
        whole, drawn, signs = self._whole_scores(evidence)
        kept = float(drawn[0] / whole[0]) if whole[0] else 1.0
        is_sign = groups.take(documents.columns) == SIGNS
        by_signs = float(shares[is_sign].sum())
        shares *= np.where(is_sign, signs[0] / by_signs if by_signs else 1.0, kept)
        if leaning is not None and (raised := self._raised(evidence)[0]):
            to_spam = np.maximum(leaning, 0.0)
            shares += raised * to_spam / to_spam.sum()
        return ScoreParts(shares, float(self.worth[-1]) * kept, kept)

    def recounted(self, table: CountTable, settings: Settings) -> "Combination":
        """Return the combination for a table with more columns, which get no corrections."""
        more = np.zeros(len(table.vocabulary) - len(self.correction), np.float32)
        return self._replace(correction=np.append(self.correction, more))

    def counted(self, groups: Octets, weights: Floats, appeared: Integers) -> "Combination":
        """Return the combination unchanged: it holds no sums of counts (see `Blend.counted`)."""
        return self


class Beginnings(NamedTuple):
    """Documents that have a rest, without it."""

    rows: Integers  # (n,) their numbers among all
    entry: Integers  # the numbers of their entries among all
    evidence: DocumentEvidence


def beginnings(evidence: DocumentEvidence, score: Floats) -> Beginnings | None:
    """Return the documents whose text has a rest, without the tokens that only the rest has.

    score: (n_docs,) nats; documents at or below SURELY_HAM are left out.  Returns None if no
    document is left, or if the classes are others than ham and spam.
    """
    documents, limits = evidence.documents, evidence.limits
    if documents.in_rest is None or limits is None:
        return None
    offsets = documents.offsets
    has_rest = documents.number_of(documents.in_rest) > 0
    rows = positions_of(has_rest & (score > SURELY_HAM))
    if not len(rows):
        return None
    # All entries of these documents, and then those that are not only in the rest.
    lengths = differences(offsets).take(rows)
    entry = places_in(offsets.take(rows), lengths)
    is_own = ~documents.in_rest.take(entry)
    entry = entry[is_own]
    own_lengths = np.bincount(np.arange(len(rows)).repeat(lengths), is_own, len(rows))
    columns = documents.columns.take(entry)
    own = evidence._replace(
        documents=Documents(documents.tokens, offsets_of(own_lengths), columns, None),
        odds=evidence.odds.take(entry),
        limits=limits if limits.ndim == 2 else limits.take(rows, axis=0),
        unfamiliar=evidence.unfamiliar.take(rows),
        leaning=None if evidence.leaning is None else evidence.leaning.take(entry),
    )
    return Beginnings(rows, entry, own)


def log_odds(
    feature_count: Floats, class_count: Floats, groups: Octets, left_out: int | None = None
) -> Floats:
    """Return log [P(token | class 1) / P(token | class 0)], nats, shape (n_features,).

    feature_count: (n_features, 2) documents.  class_count: (2,), or (n_features, 2) where each
    token is of another table.  groups: (n_features,).  left_out: 0 or 1, to leave a counted
    document of this class out: each token gets the log-odds that it has without one document of
    the class that has the token.  Log-odds weaker than the BAND of their group are 0.
    """
    n, count = _without(feature_count, class_count, left_out)
    known = count.any(axis=0)
    alpha = _ALPHA.take(groups)
    likelihood = np.log(count + alpha) - np.log(n + 2 * alpha)
    # Rounded: log-odds that differ in the last digit alone are added in an order that the other
    # documents decide, and a score may not depend on them.
    odds = np.round(likelihood[1] - likelihood[0], 9)
    return np.where(known & (np.abs(odds) >= BAND.take(groups)), odds, 0.0)


def _without(
    feature_count: Floats, class_count: Floats, left_out: int | None
) -> tuple[Floats, Floats]:
    """Return the documents of each class, (2, 1) or (2, n_features), and those with each token."""
    n = np.array(class_count, np.float64).T.reshape(2, -1)
    count = np.array(feature_count.T, np.float64, order="C")  # contiguous for each class
    if left_out is not None:
        n[left_out] -= 1
        count[left_out] -= 1
        np.maximum(count[left_out], 0, out=count[left_out])
    return n, count


def limits_of(table: CountTable) -> Integers | None:
    """Return the most tokens of each group that count for ham and for spam, (n_groups, 2).

    None: all count, because the classes are others, which nobody imitates.
    """
    return _LIMITS if table.classes == HAM_AND_SPAM else None


def limits_for(
    limits: Integers | None, documents: Documents, groups: Octets, keys: Keys | None = None
) -> Integers | None:
    """Return the limits of each document, (n_docs, n_groups, 2), or of all, from `limits_of`.

    In a stranger's message that poses as an answer only a few tokens count for ham, because it
    can copy the rest from the thread: see `definition.UNVOUCHED`.  groups: (n_tokens,).  keys:
    of the vocabulary, if the documents are over its columns.
    """
    place = positions_of(groups == PEOPLE)
    if limits is None or not len(place):
        return limits
    tokens = documents.tokens.take(place)
    unvouched = place[np.isin(tokens if keys is None else keys[tokens], _UNVOUCHED)]
    rows = documents.rows()[np.isin(documents.columns, unvouched)]
    of_each = np.tile(limits, (documents.n_docs, 1, 1))
    of_each[rows, :, 0] = np.minimum(limits[:, 0], MOST_UNVOUCHED)
    return of_each


def strongest(
    documents: Documents, groups: Octets, odds: Floats | Floats32, limits: Integers | None
) -> tuple[Integers, Integers, Floats | Floats32]:
    """Return the entries that count, in any order: their numbers, cells and log-odds, (n,) each.

    A cell is document * n_groups + the group with which the entry's token is averaged.
    groups: (n_tokens,); odds: (nnz,) log-odds of each entry's token; zeros do not count.  Of each
    group's tokens for a class those with the strongest log-odds count, and of equally strong ones
    those whose entries come first.  limits: their number, from `limits_for`.
    """
    entry = positions_of(odds != 0)  # numpy finds the true ones faster than numbers
    cell = documents.rows().take(entry).astype(np.int64)
    cell *= len(GROUPS)
    cell += _AVERAGED_WITH.take(groups.take(documents.columns.take(entry)))
    odds = odds.take(entry)
    if limits is None:
        return entry, cell, odds
    place = 2 * cell + (odds > 0)
    # Equally strong ones add up to the same in any order; a document's entries may be printed.
    kind: Any = "stable" if documents.n_docs == 1 else None
    order = (_ABOVE_ALL * place - np.abs(odds)).argsort(kind=kind)
    number = np.bincount(place)
    most = limits.ravel().take(np.arange(len(number)) % limits.size)
    end = number.cumsum() - number + most
    counts = order[np.arange(len(order)) < end.repeat(number)]
    return entry[counts], cell[counts], odds[counts]


def group_means(
    documents: Documents, groups: Octets, odds: Floats | Floats32, limits: Integers | None
) -> Floats:
    """Return damped means of log-odds by document and group, nats, shape (n_docs, n_groups).

    groups: (n_tokens,); odds: (nnz,) log-odds of each entry's token.  limits: see `strongest`.
    """
    _, cell, odds = strongest(documents, groups, odds, limits)
    n_cells = documents.n_docs * len(GROUPS)
    total = np.bincount(cell, odds, n_cells).reshape(-1, len(GROUPS))
    number = np.bincount(cell, minlength=n_cells).reshape(-1, len(GROUPS))
    return np.asarray(total / divisors(number, limits))


def score_of_means(means: Floats, worth: Floats) -> Floats:
    """Return the log-odds by the means of groups, (n_docs,) nats; worth: with the constant."""
    # Last digits of `means @ worth` would depend on the place among the documents.
    return np.asarray(np.einsum("nj,j->n", means, worth[:-1]) + worth[-1])


def divisors(number: Integers, limits: Integers | None) -> Floats:
    """Return the divisors of sums of log-odds; number: (..., n_groups) of their tokens.

    The number of hidden tokens does not matter, so that no further one lowers the score.  Facts
    about people, and of signs, are few and not repeated in other words: they are summed.
    """
    by = number + DAMPING
    by[..., [PEOPLE, SIGNS]] = 1
    if limits is not None:
        by[..., HIDDEN] = STRONGEST[1] + DAMPING
    return np.asarray(by)


def layer_scale(number: Integers) -> Floats:
    """Return 1 / sqrt(number of tokens in the layer) for each document, shape (n_docs,)."""
    return np.asarray(1 / np.sqrt(np.maximum(number, 1)))


def strongest_corrections(evidence: DocumentEvidence, number: Integers) -> Any:
    """Return each entry's correction, (nnz,); 0 if too many of the same sign are stronger.

    number: (n_docs,) of tokens in the layer.  Without limits all count, because the classes are
    others.  Runs of characters all count: a field has them only at its beginning.  E-364
    """
    columns, offsets = evidence.documents.columns, evidence.documents.offsets
    values = evidence.correction.take(columns)
    most = MOST_FOR_HAM + MOST_FOR_SPAM
    if evidence.limits is None or number.max(initial=0) <= most:
        return values
    is_run = evidence.groups == RUNS
    of_runs = np.where(is_run, evidence.correction, 0.0).take(columns) if is_run.any() else 0.0
    values -= of_runs
    # Among sorted corrections, the last that may count for ham and the next, and so for spam.
    edges = MOST_FOR_HAM - 1, MOST_FOR_HAM, -MOST_FOR_SPAM - 1, -MOST_FOR_SPAM
    for row in positions_of(number > most).tolist():
        own = values[offsets[row] : offsets[row + 1]]
        # Sorting numbers takes a twentieth of the time of sorting their places.
        last_ham, next_ham, next_spam, last_spam = np.sort(own).take(edges).tolist()
        is_weak = (own >= min(next_ham, 0.0)) & (own <= max(next_spam, 0.0))
        # Of equally strong ones the first count for ham, and the last for spam.
        if last_ham == next_ham < 0:
            room = MOST_FOR_HAM - np.count_nonzero(own < last_ham)
            is_weak[positions_of(own == last_ham)[:room]] = False
        if last_spam == next_spam > 0:
            room = MOST_FOR_SPAM - np.count_nonzero(own > last_spam)
            is_weak[positions_of(own == last_spam)[-room:]] = False
        own[is_weak] = 0
    return values + of_runs


def bounded(total: Any) -> Any:
    """Return a sum of corrections, nats, cut off where it exceeds MOST_NATS."""
    return np.minimum(np.maximum(total, -MOST_NATS), MOST_NATS)


def share_unknown(unknown: Any, whole: Any) -> Floats:
    """Return the share of a message's structure that is unknown, 0 to 1; same shape (n_docs,).

    unknown: tokens of headers, links and markup that are unknown.  whole: all of these tokens.
    """
    return np.asarray(unknown / (whole + STRUCTURE_DAMPING))


def share_dropped(documents: Documents, groups: Octets) -> Floats:
    """Return the share of each document's structure that was dropped as unknown, (n_docs,).

    documents: over columns of a table.  groups: (n_tokens,).
    """
    known = documents.lengths(IS_STRUCTURE.take(groups))
    whole = known if documents.structure is None else documents.structure
    return share_unknown(whole - known, whole)


def leanings(
    feature_count: Floats, class_count: Floats, groups: Octets, left_out: int | None = None
) -> Floats:
    """Return how far each word leans to class 1, -1 to 1, shape (n_features,).

    It is 0 for unknown words, and for tokens that are no words.  Arguments: see `log_odds`.
    Twice the degree of belief of Robinson (2003), "A statistical approach to the spam problem",
    less one.
    """
    n, count = _without(feature_count, class_count, left_out)
    number, (first, second) = count[0] + count[1], count * n[::-1]
    believed = number / ((number + NEUTRAL) * np.maximum(first + second, 1))
    return np.asarray((second - first) * believed * _IS_WORD.take(groups))


def mean_leaning(documents: Documents, leaning: Floats) -> Floats:
    """Return the damped mean leaning of each document's known words, -1 to 1, shape (n_docs,).

    leaning: (nnz,) of each entry's token.
    """
    number = documents.number_of(leaning != 0)
    total = np.bincount(documents.rows(), leaning, len(number))
    return np.asarray(total / (number + DAMPING))


def tempered(score: Floats, share: Floats, usual: float) -> Floats:
    """Return log-odds, nats, drawn towards UNCERTAIN where structure is unknown, (n_docs,).

    score: (n_docs,) nats.  share: (n_docs,) from `share_unknown`.  usual: the fitted one.
    """
    if not len(share) or share.max() <= usual:
        return score
    nearest = np.clip(score, *UNCERTAIN)
    drawn = nearest + (score - nearest) / doubt(share, usual)
    return np.where(share > usual, drawn, score)


def doubt(share: Floats, usual: float) -> Floats:
    """Return the divisor of evidence about unlike mail, at least 1; arguments: see `tempered`."""
    return np.asarray(1 + np.clip(DOUBT * (share - usual), 0.0, MOST_DOUBT))


def probability(log_odds: Any) -> Any:
    """Return the probability for log-odds: the logistic function, never exactly 0 or 1."""
    return 1 / (1 + np.exp(-np.clip(log_odds, -500, 500)))

"""Guesses at why an answer is wrong, from signs that are more frequent in wrong answers (E-182).

A sign looks at the answer and its evidence alone, so that it can be measured on right answers too;
only the first guess knows what the answers to all other messages say of the label.

Secret: the signs, and their order.
"""

from collections.abc import Iterator
from math import isfinite
from typing import NamedTuple

from nbspam.evaluation.pages.marks import Marked
from nbspam.verdicts import Evidence, Explanation

_FEW_WORDS = 12  # in a message that is too short
_UNKNOWN = 0.5  # share of words that are many to be new
_CLOSE = 0.9  # probability below which an answer was a close call
_MIXED = 2 / 3  # of what spoke for the answer: what spoke against it, if both are much
_DECIDING = 3  # pieces of evidence at most that are few


class Guess(NamedTuple):
    """A sign, and what it says of one answer."""

    sign: str
    text: str


class Answered(NamedTuple):
    """An answer as it is looked at: for one class, against another that may be the right one."""

    answer: str
    other: str
    probability: float  # of the answer
    score: float  # log-odds of the answer against the other class, nats
    evidence: tuple[Evidence, ...]  # positive numbers speak for the answer
    text: Marked | None = None
    is_mail: bool = True  # not a text, which is often short
    misfiled: float = 0.0  # how probably its label is wrong
    confused: tuple[int, int] | None = None  # how many of the other class got this answer, of all

    def sum_of(self, *groups: str) -> float:
        """Return what these kinds of evidence add for the answer."""
        return sum(each.contribution for each in self.evidence if each.group in groups)


def answered(explanation: Explanation, other: str) -> Answered:
    """Return an explained answer; other: the class it is held against.

    An explanation of two other classes says nothing of this answer.
    """
    verdict = explanation.verdict
    pair = verdict.label, other
    sign = {(explanation.towards, explanation.against): 1}.get(pair, 0)
    sign = {(explanation.against, explanation.towards): -1}.get(pair, sign)
    evidence = tuple(
        each._replace(contribution=sign * each.contribution) for each in explanation.evidence
    )
    score = sign * explanation.score
    return Answered(*pair, verdict.probability, score, evidence if sign else ())


def guesses(found: Answered) -> list[Guess]:
    """Return guesses at why an answer is wrong, the likeliest first."""
    certain = [*_of_label(found), *_of_text(found), *_of_evidence(found)]
    if certain:
        return certain
    if found.probability < _CLOSE:
        said = f"A close call: the answer had a probability of only {found.probability:.0%}."
        return [Guess("close", said)]
    whole = sum(abs(each.contribution) for each in found.evidence)
    if not isfinite(whole) or not whole:
        return [Guess("nothing", "Nothing stands out.")]
    own = sum(max(each.contribution, 0.0) for each in found.evidence)
    said = f"{own / whole:.0%} of its evidence speaks for {found.answer}."
    return [Guess("nothing", f"Nothing stands out: {said}")]


def _of_label(found: Answered) -> Iterator[Guess]:
    """Yield what the answers to other messages tell."""
    if found.misfiled > 0.5:
        said = f"All the others contradict its label ({found.misfiled:.0%} sure)."
        yield Guess("misfiled", f"Filed wrongly? {said}")
    if found.confused is not None:
        part, whole = found.confused
        said = f"{part:,} of {whole:,} {found.other} were called {found.answer}."
        yield Guess("confused", f"Two classes that are often confused: {said}")


def _of_text(found: Answered) -> Iterator[Guess]:
    """Yield what the text tells: that there is little of it, or little that is known."""
    text = found.text
    if text is None or text.problem:
        return
    unknown = text.n_tokens - text.n_known
    if found.is_mail and text.n_tokens < _FEW_WORDS:
        yield Guess("short", f"Too short: it has only {text.n_tokens} different words.")
    elif unknown > _UNKNOWN * text.n_tokens and not text.is_cut:
        said = f"{unknown:,} of its {text.n_tokens:,} different words."
        yield Guess("unknown", f"Words never seen before: {said}")


def _of_evidence(found: Answered) -> Iterator[Guess]:
    """Yield what the evidence tells: without which part the other class would have been ahead."""
    if not found.evidence:
        return
    other = found.other
    likelier = f"{other} would have been likelier than {found.answer}"
    if found.score < 0:
        said = f"{other} was likelier than {found.answer}, but not by as much as the costs demand."
        yield Guess("cutoff", f"The cutoff decided: {said}")
        return
    if found.score < found.sum_of("hidden"):
        said = f"without what readers do not see, {likelier}."
        yield Guess("hidden", f"Hidden words: {said}")
    if found.score < found.sum_of("route"):
        said = f"Without sender and route, {likelier}."
        yield Guess("head", f"A forged or an unusual head? {said}")
    own = sum(max(each.contribution, 0.0) for each in found.evidence)
    opposed = own - sum(each.contribution for each in found.evidence)
    if opposed > _MIXED * own:
        said = f"{own:.1f} nats for {found.answer}, {opposed:.1f} for {other}"
        decided = "; the constant decided" if opposed >= own else ""
        yield Guess("mixed", f"Mixed evidence: {said}{decided}.")
    few = _deciding(found)
    if few:
        named = few[0] if len(few) == 1 else f"{', '.join(few[:-1])} and {few[-1]}"
        yield Guess("few", f"It hangs on little: without {named}, {likelier}.")


def _deciding(found: Answered) -> list[str]:
    """Return the fewest tokens that turn the answer when they are left out; none if too many."""
    left = found.score
    names = []
    for each in sorted(found.evidence, key=lambda each: -each.contribution)[:_DECIDING]:
        left -= each.contribution
        names.append(each.token)
        if left < 0:
            return names
    return []

"""The page of explanations: single messages, with what spoke for and against them.

Secret: how many messages a page shows.
"""

from collections.abc import Iterable, Iterator
from typing import Any

from nbspam.answering import AnyClassifier
from nbspam.evaluation.pages.cases import Case, case_of
from nbspam.evaluation.pages.rendering import render
from nbspam.settings import Settings
from nbspam.sources.items import Item
from nbspam.verdicts import Explanation

N_SHOWN = 100  # messages; each takes about 10 KB


class Explained:
    """Looks on while a classifier explains its inputs one by one, and makes a page of it."""

    def __init__(self, classifier: AnyClassifier) -> None:
        self._settings: Settings | None = getattr(classifier, "settings", None)  # none of tables
        self._noun = classifier.noun
        self._cases: list[Case] = []
        self._n_explained = 0
        self._given: Any = None

    def watched(self, inputs: Iterable[Any]) -> Iterator[Any]:
        """Let inputs pass; the next explanation is that of the last one."""
        for self._given in inputs:
            yield self._given

    def passing(self, explanations: Iterable[Explanation]) -> Iterator[Explanation]:
        """Let explanations pass, and note the first N_SHOWN."""
        for each in explanations:
            self._n_explained += 1
            if self._n_explained <= N_SHOWN:
                item = self._given if isinstance(self._given, Item) else None
                self._cases.append(case_of(each, item, self._settings))
            yield each

    def page(self) -> str:
        """Return the page of what was explained so far."""
        return render(
            "explained.html", cases=self._cases, n_explained=self._n_explained, noun=self._noun
        )

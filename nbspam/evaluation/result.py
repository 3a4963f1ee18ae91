"""The result of a cross-validation, as the library's face gives it."""

from dataclasses import dataclass
from typing import Any

from nbspam.arrays import LARGEST_COUNT
from nbspam.errors import UsageError, check_number
from nbspam.evaluation.evaluation import Evaluation, Trial, evaluation_of
from nbspam.evaluation.judging import judge_folds
from nbspam.evaluation.witness import Witness
from nbspam.settings import SettingsChoices, as_options, naming_keywords, settings_for
from nbspam.sources.items import items_given
from nbspam.workers import workers_of


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class Result(Evaluation):
    """All measures of a cross-validation, and the content of its report."""

    trial: Trial
    witness: Witness

    def __repr__(self) -> str:
        return f"<Result of {self.n_docs:,} documents; accuracy {self.accuracy:.4f}>"

    def report(self, per_week: int | None = None) -> str:
        """Return a page of HTML that tells how good the models are; it needs nothing else.

        per_week: how many messages come in a week, for the figures of a week.  Raises UsageError.
        """
        if per_week is not None:
            check_number("per_week", per_week, 1, LARGEST_COUNT, whole=True)
        from nbspam.evaluation.pages import quality_page

        return quality_page(self.trial, self.witness, per_week=per_week)


@naming_keywords()
def cross_validate(
    given: Any,
    cv: int | str = 10,
    *,
    seed: int = 0,
    curve: bool = False,
    jobs: int = 1,
    engine: Any = None,
    **choices: Any,
) -> Result:
    """Return the measures of a cross-validation on labelled mail or texts; raises NbspamError.

    given: a path, or an iterable of paths, (data, label) pairs or Items.  cv: the number of
    stratified folds, or "loo" to leave out one at a time.  curve: judge models of fewer documents
    too, for the learning curve of `report`, which takes about as long again.  engine: other
    workers than `jobs` forked processes, see `workers.workers_of`.  choices: the options of
    `nbspam train` as keywords.
    """
    for name in choices:
        if name not in SettingsChoices._fields:
            raise UsageError(
                f"cross_validate: no option {name!r}; they are those of nbspam.train for mail and"
                " texts, and tables are judged by an estimator of nbspam.models"
            )
    witness = Witness()
    chosen = SettingsChoices(**as_options(choices))
    settings, items = settings_for(witness.watched(items_given(given)), chosen)
    with workers_of(engine, jobs) as workers:
        trial = judge_folds(items, settings, cv, seed, workers, curve, witness)
    return Result(**vars(evaluation_of(trial)), trial=trial, witness=witness)

"""From the options of costs and shares to the rule by which probabilities become labels.

Secret: how costs are written in a file.
"""

from dataclasses import replace
from typing import TYPE_CHECKING

from nbspam.cli.options import Decision
from nbspam.cli.values import Shares
from nbspam.errors import UsageError

if TYPE_CHECKING:
    from nbspam.answering import AnyClassifier
    from nbspam.decision import Rule
    from nbspam.evaluation.trial import Trial

_MAX_LOSS_BYTES = 1 << 20


def rule_of(decision: Decision, deciding: "AnyClassifier | Trial") -> "Rule":
    """Return the rule that follows from the stated costs, or else the default; UsageError."""
    from nbspam.decision import FP_COST, HAM_AND_SPAM, cutoffs

    fp_cost, unsure_cost = decision.fp_cost, decision.unsure_cost
    if decision.loss is not None:
        if fp_cost is not None or unsure_cost is not None:
            raise UsageError("--loss: it has all costs; leave out --fp-cost and --unsure-cost")
        return _read_loss(decision.loss, deciding.classes)
    if fp_cost is None and unsure_cost is None:
        return deciding.rule
    if deciding.classes != HAM_AND_SPAM:
        option = "--unsure-cost" if fp_cost is None else "--fp-cost"
        raise UsageError(
            f"{option}: the model's classes are {', '.join(deciding.classes)};"
            " it is for a model of ham and spam, give --loss FILE"
        )
    return cutoffs(FP_COST if fp_cost is None else fp_cost, unsure_cost)


def _read_loss(path: str, classes: tuple[str, ...]) -> "Rule":
    """Return the loss matrix in a JSON file; raises UsageError."""
    import json

    from nbspam.decision import loss_matrix

    try:
        with open(path, "rb") as stream:
            data = stream.read(_MAX_LOSS_BYTES + 1)
        if len(data) > _MAX_LOSS_BYTES:
            raise UsageError(f"more than {_MAX_LOSS_BYTES:,} bytes")
        return loss_matrix(json.loads(data), classes)
    except OSError as error:
        reason = error.strerror or "cannot be read"
    except (ValueError, RecursionError):
        reason = "not JSON"
    except UsageError as error:
        reason = str(error)
    raise UsageError(
        f'--loss {path}: {reason}; write {{"actions": [name, …], "loss": {{class: [cost, …], …}}}}'
    )


def trial_under(trial: "Trial", prior: Shares | str | None, decision: Decision) -> "Trial":
    """Return a trial under the prior and the costs that are stated."""
    from nbspam.decision import estimate_prior, stated_prior
    from nbspam.evaluation.trial import under_prior

    if isinstance(prior, str):
        trial = under_prior(trial, estimate_prior(trial.probability, trial.prior))
    elif prior is not None:
        trial = under_prior(trial, stated_prior(prior, trial.classes, trial.prior))
    return replace(trial, rule=rule_of(decision, trial), has_costs=decision != Decision())

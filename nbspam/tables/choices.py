"""From a user's choices to the settings of a table's model."""

from nbspam.errors import UsageError
from nbspam.models.registry import COUNTED
from nbspam.settings import PARAMETERS, Choices, TableChoices, option_name
from nbspam.sources.files import read_json
from nbspam.tables.intervals import BINS
from nbspam.tables.training import TableSettings

_OF_TABLES = ("model", "alpha", "class_prior", *PARAMETERS)


def table_settings(choices: Choices, columns: TableChoices) -> TableSettings:
    """Return the settings of the model of a table; raises UsageError.

    columns: with a target.  Of `choices`, those about tokens are refused.
    """
    assert columns.target is not None
    unused = [name for name in choices.given if name not in _OF_TABLES]
    if unused:
        raise UsageError(
            f"{option_name(unused[0])}: for mail and text; leave it out with --target"
        )
    if choices.alpha == "auto":
        raise UsageError("--alpha auto: not a number from 0 up; give one for a table")
    if columns.bins is not None and columns.discretise not in ("width", "frequency"):
        raise UsageError("--bins: mdl finds how many; leave it out, or say --discretise width")
    parameters = {name: value for name, value in choices.given.items() if name != "model"}
    if columns.parent is not None:
        parameters["parent"] = columns.parent
    _check_columns(choices, columns)
    return TableSettings(
        columns.target,
        choices.model if columns.structure is None else "network",
        columns.categorical,
        columns.numeric,
        drop=columns.drop,
        values=dict(columns.values),
        dirichlet=columns.dirichlet,
        discretise=columns.discretise,
        bins=BINS if columns.bins is None else columns.bins,
        parameters=parameters,
        structure=None if columns.structure is None else read_json(columns.structure),
        structure_from=columns.structure or "",
    )


def _check_columns(choices: Choices, columns: TableChoices) -> None:
    """Raise UsageError for choices that contradict each other about columns."""
    values = dict(columns.values)
    used = {columns.target, *columns.categorical, *columns.numeric, *values}
    for name in columns.drop:
        if name in used:
            raise UsageError(f"--drop {name}: another option names it too; leave out one")
    both = sorted(values.keys() & set(columns.numeric))
    if both:
        raise UsageError(
            f"--values {both[0]}: --numeric says that it holds numbers; leave out one"
        )
    if choices.model in COUNTED:
        said = {*columns.categorical, *columns.numeric, *values} - {columns.target}
        if said:
            raise UsageError(
                f"--model {choices.model}: all columns hold counts; leave out what says that"
                f" {min(said)} holds something else"
            )
    if columns.structure is not None:
        _check_no_search(choices)


def _check_no_search(choices: Choices) -> None:
    """Raise UsageError for choices that do not go with a given structure."""
    if choices.model not in (None, "network"):
        raise UsageError(f"--structure: for --model network, not for {choices.model}")
    for name in ("start", "climb", "max_parents"):
        if getattr(choices, name) is not None:
            raise UsageError(
                f"{option_name(name)}: for a search, and --structure gives it; leave out one"
            )

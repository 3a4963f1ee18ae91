"""Prior distributions of a table's values and classes, with a parameter for each value.

Secret: which columns a prior without a name is for.
"""

from collections.abc import Iterable

from nbspam.errors import UsageError
from nbspam.tables.schema import Schema

# A column's name, or None: every column with as many values as there are parameters.
Dirichlet = tuple[str | None, tuple[float, ...]]


def by_column(given: Iterable[Dirichlet], schema: Schema) -> list[list[float] | None]:
    """Return the parameters for each column and, last, for the classes; raises UsageError.

    None: no parameters of its own.  Parameters follow the order of a column's values; the
    classes are sorted.  A prior with a name takes precedence over one without.
    """
    n_values = {column.name: column.n_values for column in schema.columns}
    n_values[schema.target] = len(schema.classes)
    found: dict[str, list[float]] = {}
    for name, parameters in sorted(given, key=lambda each: each[0] is not None):
        n = len(parameters)
        if name is None:
            fitting = [column.name for column in schema.columns if column.n_values == n]
            if not fitting:
                raise UsageError(f"--dirichlet: no column has {n} values; name one as COLUMN=A,A")
            found |= {each: list(parameters) for each in fitting}
        elif name not in n_values:
            raise UsageError(
                f"--dirichlet {name}: no such column; choose from {', '.join(n_values)}"
            )
        elif not n_values[name]:
            raise UsageError(f"--dirichlet {name}: holds numbers; say --categorical {name} too")
        elif n_values[name] != n:
            raise UsageError(
                f"--dirichlet {name}: it has {n_values[name]} values, and not {n}; give a number"
                " for each, in the order that `nbspam info` prints"
            )
        else:
            found[name] = list(parameters)
    return [found.get(name) for name in n_values]

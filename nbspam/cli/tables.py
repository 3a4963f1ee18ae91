"""Tables on the command line: what train, eval and explain do with them.

Secret: which options a table takes, and how its columns are shown.
"""

from collections.abc import Iterable, Iterator
from typing import Any

import click

from nbspam.cli.arguments import alpha_of, prior_of, read_sources
from nbspam.cli.options import options_in_order
from nbspam.cli.output import (
    echo_json,
    echo_rows,
    json_line,
    report_skipped,
    verdict_json,
    warn,
)
from nbspam.errors import UsageError

table_options = options_in_order(
    click.option(
        "--target", metavar="COLUMN", help="SOURCE is a table; this column is the class."
    ),
    click.option("--categorical", multiple=True, metavar="COLUMN", help="Holds names of things."),
    click.option("--numeric", multiple=True, metavar="COLUMN", help="Holds numbers."),
    click.option(
        "--discretise",
        type=click.Choice(["width", "frequency", "mdl"]),
        help="Cut numbers into intervals: equal width, equal frequency, or where classes change.",
    ),
    click.option("--bins", type=click.IntRange(min=2), metavar="K", help="At most K intervals."),
)
_READING = ("format_", "text_column", "label_column", "spam", "ham", "label")
_ONLY_TABLES = ("categorical", "numeric", "discretise", "bins")
_PARAMETERS = (
    *("estimate", "alpha", "class_prior", "min_support", "parent"),
    *("criterion", "start", "climb", "max_parents"),
)


def is_table(options: dict[str, Any]) -> bool:
    """Return whether the options say that sources are tables of columns."""
    if options["target"] is not None:
        return True
    for name in _ONLY_TABLES:
        if options[name]:
            raise UsageError(f"--{name}: for the columns of a table; say --target COLUMN too")
    if options["model"] in ("categorical", "gaussian", "mixed"):
        raise UsageError(
            f"--model {options['model']}: for the columns of a table; say --target COLUMN too"
        )
    return False


def without_table_options(options: dict[str, Any]) -> None:
    """Take the options of tables alone, none of which is given, out of the others."""
    for name in ("target", *_ONLY_TABLES):
        del options[name]
    if options.pop("parent") is not None:
        raise UsageError("--parent: for the columns of a table; say --target COLUMN too")


def read_questions(
    classifier: Any, sources: Iterable[str], options: dict[str, Any]
) -> Iterable[Any]:
    """Yield what a model is asked about: Items, or Records if it knows the columns of a table."""
    schema = getattr(classifier, "schema", None)
    if schema is None:
        return read_sources(sources, options)
    return table_records(sources, options, schema)


def table_records(
    sources: Iterable[str], options: dict[str, Any], schema: Any = None
) -> Iterator[Any]:
    """Yield the Records of tables; with a schema, warn of categories it does not have.

    Takes out of `options` what says how to read.
    """
    from nbspam.sources.records import read_records

    form = options.pop(_READING[0])
    for name in _READING[1:]:
        if options.pop(name, None):
            option = name.replace("_", "-")
            raise UsageError(f"--{option}: for mail and text; a table's class is its --target")
    if schema is None:
        return read_records(sources or ["-"], form)
    return _telling_unseen(read_records(sources or ["-"], form, schema.names), schema)


def _telling_unseen(records: Iterator[Any], schema: Any, most: int = 5) -> Iterator[Any]:
    """Yield the records; say on standard error which categories training has not seen."""
    from nbspam.tables.schema import categories, unseen_cells

    n_unseen, known = 0, categories(schema)
    for record in records:
        for cell in unseen_cells(record, known):
            n_unseen += 1
            if n_unseen <= most:
                warn(
                    f"{cell.name}: {cell.column} is {cell.cell[:40]!r}, which training has not"
                    " seen; taken for missing"
                )
        yield record
    if n_unseen > most:
        warn(f"{n_unseen - most} more categories that training has not seen")


def read_training(sources: tuple[str, ...], options: dict[str, Any], strict: bool) -> Any:
    """Return (TableData, TableSettings) of the sources, having said what was wrong with them."""
    data, settings = _read_table(sources, options)
    for note in data.notes:
        warn(note)
    report_skipped(data.skipped, strict)
    return data, settings


def _read_table(sources: tuple[str, ...], options: dict[str, Any]) -> Any:
    """Return (TableData, TableSettings) of the sources; raises UsageError."""
    from nbspam.tables.training import read_table

    settings = _settings(options)
    records = table_records(sources, options)
    unused = [name for name, value in options.items() if value]
    if unused:
        option = unused[0].replace("_", "-")
        raise UsageError(f"--{option}: for mail and text; leave it out with --target")
    return read_table(records, settings), settings


def _settings(options: dict[str, Any]) -> Any:
    """Return the settings of a table's model; takes its options out of `options`."""
    from nbspam.tables.intervals import BINS
    from nbspam.tables.training import TableSettings

    given = {name: options.pop(name) for name in _PARAMETERS}
    parameters = {name: value for name, value in given.items() if value is not None}
    if "alpha" in parameters:
        parameters["alpha"] = alpha_of(parameters["alpha"], choosing=False)
    if "class_prior" in parameters:
        parameters["class_prior"] = prior_of(parameters["class_prior"], smoothed=True)
    discretise, bins = options.pop("discretise"), options.pop("bins")
    if bins is not None and discretise not in ("width", "frequency"):
        raise UsageError("--bins: mdl finds how many; leave it out, or say --discretise width")
    return TableSettings(
        options.pop("target"),
        options.pop("model"),
        options.pop("categorical"),
        options.pop("numeric"),
        discretise,
        BINS if bins is None else bins,
        parameters,
    )


def train(
    sources: tuple[str, ...], model_path: str, options: dict[str, Any], strict: bool, as_json: bool
) -> None:
    """Learn from the rows of tables, write the model, and show what the columns hold."""
    import numpy as np

    from nbspam.store.open import save
    from nbspam.tables.training import train_table

    data, settings = read_training(sources, options, strict)
    classifier = train_table(data.table, settings)
    save(model_path, classifier)
    schema = classifier.schema
    n_rows = np.bincount(data.table.y, minlength=len(schema.classes)).tolist()
    counts = dict(zip(schema.classes, n_rows, strict=True))
    if as_json:
        skipped = [{"name": s.name, "reason": s.reason} for s in data.skipped]
        facts = {"model": model_path, "kind": classifier.name, "read": counts}
        echo_json({**facts, "columns": columns_json(schema), "skipped": skipped})
        return
    shown = ", ".join(f"{n:,} {name}" for name, n in counts.items())
    failed = f", skipped {len(data.skipped):,}" if data.skipped else ""
    echo_rows(
        [
            (f"read {len(data.table.y):,} rows ({shown}){failed}",),
            *((f"  {column}",) for column in schema.columns),
            (f"learned {schema.target} by {classifier.name}; model in {model_path}",),
        ]
    )


def columns_json(schema: Any) -> list[dict[str, Any]]:
    """Return what the columns hold, for JSON."""
    from nbspam.tables.schema import schema_to_dict

    columns: list[dict[str, Any]] = schema_to_dict(schema)["columns"]
    return columns


def trial(
    sources: tuple[str, ...],
    options: dict[str, Any],
    strict: bool,
    cv: int | None,
    test_source: str | None,
    seed: int,
    with_smaller: bool,
) -> Any:
    """Return the answers of models trained on rows to others."""
    from nbspam.evaluation import judging as validation

    form = {name: options[name] for name in ("format_", "text_column", "label_column")}
    data, settings = read_training(sources, options, strict)
    if cv is not None:
        return validation.table_trial(data.table, settings, cv, seed, with_smaller)
    from nbspam.tables.training import train_table

    classifier = train_table(data.table, settings)
    records = table_records((str(test_source),), form, classifier.schema)
    return validation.judge_classifier(classifier, records)


def trials(
    sources: tuple[str, ...], chosen: list[dict[str, Any]], strict: bool, cv: int, seed: int
) -> list[Any]:
    """Return the answers to the same rows of several ways of training, in the same folds.

    chosen: options; how to read, and the class, are those of the first.
    """
    from nbspam.evaluation.judging import table_trial

    first, *others = chosen
    same = {name: first[name] for name in (*_READING, "target")}
    read = [read_training(sources, first, strict)]
    read += [_read_table(sources, {**each, **same}) for each in others]
    return [table_trial(data.table, settings, cv, seed) for data, settings in read]


def info(classifier: Any, model_path: str, n_bytes: int, as_json: bool) -> None:
    """Show what a table's model was trained on and with."""
    schema = classifier.schema
    parameters = {
        name: value
        for name, value in classifier.model.get_params().items()
        if name != "levels" and value is not None
    }
    counts = {
        name: int(n) for name, n in zip(schema.classes, classifier.model.class_count_, strict=True)
    }
    if as_json:
        facts = {"model": model_path, "bytes": n_bytes, "kind": classifier.name, "read": counts}
        facts |= {"target": schema.target, "columns": columns_json(schema)}
        echo_json({**facts, "settings": parameters}, indent=2)
        return
    shown = ", ".join(f"{n:,} {name}" for name, n in counts.items())
    settings = ", ".join(f"{name} {value}" for name, value in parameters.items())
    echo_rows(
        [
            ("model", f"{model_path} ({n_bytes:,} bytes, verified)"),
            ("trained", f"{sum(counts.values()):,} rows ({shown})"),
            ("target", schema.target),
            *(("column", str(column)) for column in schema.columns),
            ("settings", ", ".join(filter(None, (classifier.name, settings)))),
        ]
    )


def factor_lines(classifier: Any, row: Any, as_json: bool) -> Iterator[str]:
    """Yield the factors of one row, and after each the product so far, class by class."""
    import numpy as np

    from nbspam.printing import printable

    log = np.concatenate([row.log_prior[None], row.log_factors])
    with np.errstate(invalid="ignore"):
        # After a zero the product stays zero, whatever follows.
        product = np.exp(np.where(np.isnan(log), 0.0, log).cumsum(axis=0)).tolist()
    factor = np.exp(log).tolist()
    names = [f"({classifier.schema.target})", *row.values]
    if as_json:
        rows = [
            {
                "value": name,
                "factor": dict(zip(classifier.classes, map(_number, each), strict=True)),
                "product": dict(zip(classifier.classes, so_far, strict=True)),
            }
            for name, each, so_far in zip(names, factor, product, strict=True)
        ]
        yield json_line({**verdict_json(row.verdict), "factors": rows})
        return
    verdict = row.verdict
    yield printable(f"{verdict.label}  probability {verdict.probability:.4f}  {verdict.name}")
    heads = [f"{what} {name}" for what in ("factor", "product") for name in classifier.classes]
    lines = [(*map(printable, heads), "value")]
    for name, each, so_far in zip(names, factor, product, strict=True):
        lines.append((*(_shown(value) for value in (*each, *so_far)), printable(name)))
    width = [max(map(len, column)) for column in zip(*lines, strict=True)]
    for line in lines:
        cells = [f"{cell:>{w}}" for cell, w in zip(line[:-1], width[:-1], strict=True)]
        yield "  ".join([*cells, line[-1]])


def _number(value: float) -> float | None:
    return value if value == value else None


def _shown(value: float) -> str:
    """Return a probability or density; a factor after a zero is not defined."""
    return f"{value:.6g}" if value == value else "-"

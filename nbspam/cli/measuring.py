"""nbspam eval, tune and doubts: models judged by labelled mail, and labels judged by models."""

import os
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, NamedTuple, TypeVar

import click

from nbspam.cli import inputs, options, output
from nbspam.cli.frame import Decorator, subcommand, titled
from nbspam.cli.training_options import training_options
from nbspam.errors import UsageError
from nbspam.printing import amount_text
from nbspam.settings import SettingsChoices, as_learned, decisions_made, option_name

if TYPE_CHECKING:
    from nbspam.evaluation.choosing import TradeOff, Tuning
    from nbspam.evaluation.doubts import Doubt, Doubts
    from nbspam.evaluation.evaluation import Trial
    from nbspam.evaluation.witness import Witness
    from nbspam.workers import Workers

T = TypeVar("T")
_SHOWN = 3  # tokens of a doubt in a line
_MOST = 10  # tokens of a doubt in JSON


class TrainingWay(NamedTuple):
    """How a new model is trained and judged; without any of it a model file is judged."""

    cv: int | str | None = None
    test: str | None = None
    online: bool = False
    policy: str | None = None
    order: str | None = None

    @property
    def stated(self) -> dict[str, str]:
        """The options that choose a way, and their values; not more than one may be given."""
        ways = {"--cv": self.cv, "--test": self.test, "--online": "" if self.online else None}
        return {name: str(value) for name, value in ways.items() if value is not None}


class TrialForm(NamedTuple):
    """The form in which a trial is shown, and the files that show it."""

    intervals: bool
    seed: int
    errors: str | None
    plot: str | None
    report: str | None
    per_week: int | None
    as_json: bool


class JudgingOptions(NamedTuple):
    """How documents are judged, and what pictures and pages need of it."""

    way: TrainingWay
    seed: int
    with_curve: bool  # of learning
    witness: "Witness | None"  # for a page

    def watched(self, items: "Iterable[T]") -> "Iterable[T]":
        """Return items or rows, which the witness sees if there is one."""
        return items if self.witness is None else self.witness.watched(items)


cv_option = click.option(
    "--cv",
    type=options.FOLDS,
    metavar="K|loo",
    help="Cross-validate a new model in K stratified folds.  loo leaves out one document at a"
    " time.",
)
test_option = click.option(
    "--test", metavar="SOURCE", help="Train on the first SOURCE, test on this one."
)
way_options = options.filling(
    TrainingWay,
    "way",
    options.JUDGING,
    cv_option,
    test_option,
    click.option(
        "--online",
        is_flag=True,
        help="Start with a model that knows nothing; classify each message, then learn it.",
    ),
    click.option(
        "--policy",
        type=click.Choice(["everything", "error", "near"]),
        help="With --online: learn every message, those that were classified wrongly, or those"
        " and the near misses.  [default: everything]",
    ),
    click.option(
        "--order",
        type=click.Choice(["given", "name", "date", "shuffled"]),
        help="With --online: the order of messages, as given, by the number in the file name, by"
        " date, or drawn by --seed.  [default: given in an index, a table or a mailbox; of"
        " folders by name if that mixes the classes, else shuffled]",
    ),
)


def trial_form_options(what: str) -> Decorator:
    """Return the options that say how a trial is shown; what: the seed draws."""
    return options.filling(
        TrialForm,
        "form",
        options.JUDGING,
        click.option("--intervals", is_flag=True, help="Add 95 % intervals."),
        options.seed_option(what),
        click.option(
            "--errors",
            type=options.FILE,
            metavar="FILE",
            help="Write the wrong answers to FILE, or with - below the report.  A line"
            " has answer, true class, probability of the answer, and name; the surest mistakes"
            " come first.",
        ),
        click.option(
            "--plot",
            metavar="FILE",
            help="Draw curves into a .png or .svg file, or with - on this terminal.  They show"
            " errors, calibration, scores and learning.",
        ),
        *options.report_options(
            "how often each class is recognised, what that means per week, and the mistakes"
        ),
        options.json_option,
    )


@subcommand("eval", "--cv", "--test", "--report", "--model-file")
@inputs.corpus_and_sent_options
@options.model_option
@way_options
@options.decision_options
@options.prior_or_estimated_option
@training_options
@options.workers_options
@options.strict_option
@trial_form_options("folds, orders and intervals")
def eval_command(
    corpus: inputs.LabelledSources,
    model_path: str,
    way: TrainingWay,
    form: TrialForm,
    decision: options.Decision,
    prior: options.PriorShares | str | None,
    training: SettingsChoices,
    jobs: "Workers",
    strict: bool,
) -> None:
    """Measure the accuracy of a model on labelled mail, and print a classification report.

    Without --cv, --test or --online, the model file is judged.  With one of them a new model
    is trained by the options of `nbspam train`, and no model file is read or written.  The
    options of costs and --prior mean the same as for `nbspam classify`.

    \b
    nbspam eval mails/
    nbspam eval mails/ --cv 10 --intervals
    nbspam eval mails/train --test mails/test --plot picture.png
    nbspam eval mails/ --cv 10 --report report.html --per-week 300
    nbspam eval trec/index --online --plot -
    """

    def judged(how: JudgingOptions) -> "Trial":
        if is_new(way):
            return _trial_of_items(corpus, training, how, jobs)
        given = [*decisions_made(training), *(["sent"] if corpus.sent else [])]
        refuse_training(given, "--cv K, --test SOURCE or --online")
        return trial_of_model(model_path, corpus, how, jobs)

    print_trial(judged, corpus.sources, way, form, prior, decision, strict)


def print_trial(
    judged: "Callable[[JudgingOptions], Trial]",
    sources: tuple[str, ...],
    way: TrainingWay,
    form: TrialForm,
    prior: options.PriorShares | str | None,
    decision: options.Decision,
    strict: bool,
) -> None:
    """Judge, and show the trial in a form; files that cannot be written are refused first."""
    _check_places(form)
    stated = (f"{name} {value}".strip() for name, value in way.stated.items())
    what = " ".join([*sources, *stated])  # the title of pictures
    witness = None
    if form.report is not None:
        from nbspam.evaluation.witness import Witness

        witness = Witness()
    how = JudgingOptions(way, form.seed, bool(form.plot or form.report), witness)
    trial = options.trial_under(judged(how), prior, decision)
    if trial.n_known:
        output.warn(_known_text(trial))
    output.report_skipped(trial.skipped, strict)
    interval_seed = form.seed if form.intervals else None
    _show(trial, form, interval_seed)
    if form.plot is not None:
        from nbspam.evaluation.figures import sketch, views_of
        from nbspam.evaluation.pictures import sheet

        views = views_of(trial)
        if form.plot == "-":
            click.echo("\n" + sketch(views))
        else:
            output.write_picture(sheet(views, what), form.plot)
    if form.report is not None and witness is not None:
        from nbspam.evaluation.pages import quality_page

        page = quality_page(trial, witness, what, form.per_week, interval_seed)
        output.write_text([page], "--report", form.report)


def _check_places(form: TrialForm) -> None:
    """Raise UsageError, before any work is done, for files that cannot be written."""
    for option, path in (("--plot", form.plot), ("--errors", form.errors)):
        if path == "-" and form.as_json:
            raise UsageError(f"{option} -: not beside --json; give a file's name")
    if form.errors is not None:
        output.check_place("--errors", form.errors)
    if form.plot not in (None, "-"):
        output.check_picture(form.plot)
    output.check_page(form.report)


def _show(trial: "Trial", form: TrialForm, interval_seed: int | None) -> None:
    """Print a trial, and the wrong answers into their file or below it."""
    from nbspam.evaluation.report import trial_json, trial_text

    if form.as_json:
        output.echo_json(trial_json(trial, interval_seed))
    else:
        click.echo(trial_text(trial, interval_seed), nl=form.errors == "-")
    rows = trial.mistakes() if form.errors else []
    if form.errors == "-":
        output.echo_rows(rows)
    elif form.errors is not None:
        lines = (f"{line}\n" for line in output.row_lines(rows))
        output.write_text(lines, "--errors", form.errors)


def is_new(way: TrainingWay) -> bool:
    """Return whether a new model is judged, in one of three ways; raises UsageError."""
    if len(way.stated) > 1:
        raise UsageError(f"{' and '.join(way.stated)}: two ways to judge; give one of them")
    for name in ("policy", "order"):
        # `table eval` has an --order of its model's.
        if getattr(way, name) and output.is_named(name) and not way.online:
            raise UsageError(f"--{name}: only online; add --online")
    return bool(way.stated)


def refuse_training(given: Iterable[str], instead: str) -> None:
    """Raise UsageError for options of training, where a model file is judged."""
    if names := ", ".join(map(option_name, given)):
        raise UsageError(f"{names}: only for training; add {instead}")


def trial_of_model(
    model_path: str, corpus: inputs.LabelledSources, how: JudgingOptions, jobs: "Workers"
) -> "Trial":
    """Return the trial of the model in a file."""
    from nbspam.evaluation.judging import judge_classifier, knowing, smaller_models
    from nbspam.store.tables import model_with_messages

    classifier = inputs.loaded_model(model_path)
    output.report_lack(classifier)
    given = inputs.inputs_of(classifier, corpus.sources, corpus.reading, corpus.labels)
    items = how.watched(given)
    learned = model_with_messages(model_path)
    smaller = smaller_models(learned.whole()) if learned is not None and how.with_curve else ()
    knows = None if learned is None else knowing(learned.has, learned.settings)
    return judge_classifier(classifier, items, jobs, smaller, how.witness, knows)


def _known_text(trial: "Trial") -> str:
    """Return a warning that says how many documents the model has learned, and of the others."""
    knows = f"the model has learned {trial.n_known:,} of these {len(trial.y):,} {trial.noun}"
    better = "--cv 10 judges models by what they do not know"
    accuracy = trial.accuracy_of_unknown
    if accuracy is None:
        return f"{knows}, so this says nothing of others; {better}"
    return f"{knows}; of the others it gets {100 * accuracy:.2f} % right; {better}"


def _trial_of_items(
    corpus: inputs.LabelledSources,
    training: SettingsChoices,
    how: JudgingOptions,
    jobs: "Workers",
) -> "Trial":
    from nbspam.evaluation import judging, online

    way, seed, with_curve, witness = how
    settings, items = corpus.settings_and_items(training)
    if way.online:
        policy, seen = way.policy or "everything", how.watched(items)
        return online.judge_online(seen, settings, policy, way.order, seed, jobs, witness)
    if way.cv is not None:
        seen = how.watched(items)
        return judging.judge_folds(seen, settings, way.cv, seed, jobs, with_curve, witness)
    reading = corpus.reading._replace(learned=settings.columns)
    test_items = how.watched(inputs.items_of_sources([str(way.test)], reading))
    return judging.judge_split(items, test_items, settings, jobs, with_curve, witness)


# --- cutoffs ---------------------------------------------------------------------------------


@subcommand("tune", "--fp-cost", "--unsure-cost", "--save", "--model-file")
@inputs.corpus_and_sent_options
@options.model_option
@titled(options.COSTS, options.fp_cost_option, options.unsure_cost_option)
@titled(options.JUDGING, options.folds_option, options.seed_option("the folds"))
@click.option(
    "--save",
    "is_kept",
    is_flag=True,
    help="Keep the cutoffs in the model file, for `nbspam classify`.",
)
@options.workers_options
@options.strict_option
@options.json_option
def tune_command(
    corpus: inputs.LabelledSources,
    model_path: str,
    fp_cost: float | None,
    unsure_cost: float | None,
    cv: int | str,
    seed: int,
    is_kept: bool,
    jobs: "Workers",
    strict: bool,
    as_json: bool,
) -> None:
    """Find the cutoffs with the least cost on labelled mail, and show the trade-off.

    The mail may be the training mail of the model: it is judged by cross-validation with the
    settings of the model.  The cutoffs that follow from the costs are chosen, unless others
    are cheaper on held-out mail: those found on all folds but one, applied to that fold.
    With --save the model keeps the chosen cutoffs and their costs until it is tuned again.

    \b
    nbspam tune mails/ --fp-cost 20
    nbspam tune mails/ --fp-cost 20 --unsure-cost 0.2 --save
    """
    from nbspam.decision import FP_COST, cutoffs
    from nbspam.evaluation.choosing import check_tunable, tune
    from nbspam.evaluation.judging import judge_folds
    from nbspam.store.open import keep_cutoffs, of_tokens

    classifier = of_tokens(model_path, inputs.loaded_model(model_path))
    check_tunable(classifier.classes)
    corpus = corpus._replace(reading=as_learned(corpus.reading, classifier.settings))
    settings, items = corpus.knowing_sent_mail(classifier.settings), corpus.items()
    derived = cutoffs(FP_COST if fp_cost is None else fp_cost, unsure_cost)
    trial = judge_folds(items, settings, cv, seed, jobs)
    tuning = tune(trial, derived)
    output.report_skipped(trial.skipped, strict)
    if is_kept:
        keep_cutoffs(model_path, tuning.chosen.cutoffs)
    if as_json:
        output.echo_json(_tuning_json(tuning))
        return
    click.echo(_tuning_text(tuning, classifier.noun))
    output.echo_summary(f"kept in {model_path}" if is_kept else "--save keeps them in the model")


def _tuning_text(tuning: "Tuning", noun: str) -> str:
    """Return a tuning as text; noun: what was judged, in the plural."""
    derived, found, costs = tuning.derived, tuning.found, tuning.derived.cutoffs
    priced = "" if costs.unsure_cost is None else f", unsure {costs.unsure_cost:g}"
    lines = [
        f"{amount_text(tuning.n_docs, noun)}; a miss costs 1, ham called spam"
        f" {costs.fp_cost:g}{priced}",
        "",
        f"{'spam from':>10}{'ham up to':>11}{'fp':>8}{'fn':>8}{'unsure':>8}{'cost':>12}",
    ]
    lines += [_trade_off_row(row, tuning) for row in tuning.table]
    lines += [
        "",
        f"by the costs  {derived.cutoffs.in_words}   cost {derived.cost:,.1f}",
        f"found         {found.cutoffs.in_words}   cost {found.cost:,.1f};"
        f" {tuning.held_out_cost:,.1f} on held-out mail",
        f"chosen        {tuning.chosen.cutoffs.in_words}",
    ]
    return "\n".join(lines)


def _trade_off_row(row: "TradeOff", tuning: "Tuning") -> str:
    """Return a row, with a remark if its cutoffs are those of the costs, or those found."""
    cutoffs, false_positives, false_negatives, unsure, cost = row
    names = {"by the costs": tuning.derived, "found": tuning.found}
    marks = [name for name, each in names.items() if each == row]
    return (
        f"{cutoffs.spam:>10.6f}{cutoffs.ham:>11.6f}{false_positives:>8,}{false_negatives:>8,}"
        f"{unsure:>8,}{cost:>12,.1f}  {', '.join(marks)}"
    ).rstrip()


def _tuning_json(tuning: "Tuning") -> dict[str, object]:
    def values(row: "TradeOff") -> dict[str, object]:
        return {**row._asdict(), "cutoffs": row.cutoffs._asdict()}

    return {
        "n_docs": tuning.n_docs,
        "by_costs": values(tuning.derived),
        "found": values(tuning.found),
        "held_out_cost": tuning.held_out_cost,
        "chosen": values(tuning.chosen),
        "table": [values(row) for row in tuning.table],
    }


# --- labels that are probably wrong ----------------------------------------------------------


@subcommand("doubts", "--spam", "--ham", "--label", "--model-file")
@inputs.corpus_and_sent_options
@options.model_option
@options.jobs_option
@options.strict_option
@options.json_option
@options.null_option
def doubts_command(
    corpus: inputs.LabelledSources,
    model_path: str,
    jobs: int,
    strict: bool,
    as_json: bool,
    null: bool,
) -> None:
    """List the messages that are probably filed wrongly, the surest first.

    SOURCE, --spam, --ham and --label are as for `nbspam train`.  Every message is judged by
    models of other messages, so the list needs no training, and no model file is changed.  A
    message is listed if its label is more probably wrong than right, given how many labels seem
    to be wrong.

    The columns are the label it has, the label that the evidence gives, the probability that
    its label is wrong, the strongest evidence in nats, and its name.  Look through the list
    before you change anything: it also has messages that nobody can tell apart.

    If there is a model, labels that a person gave it (see `nbspam update`) are believed and not
    listed.  So a message disappears from the list once `nbspam relabel` has moved it or
    confirmed the label it has.

    \b
    nbspam doubts mails/
    nbspam doubts tickets.csv --label-column queue
    nbspam doubts --spam ~/Maildir/.Junk --ham ~/Maildir/cur
    """
    from nbspam.evaluation.doubts import find_doubts

    output.refuse_two({"--json": as_json, "-0": null})
    settings, items = corpus.settings_and_items(SettingsChoices())
    found = find_doubts(items, settings, _labels_told(model_path), jobs)
    output.report_skipped(found.skipped, strict)
    if not found.found:
        output.warn("no label is probably wrong")
    if as_json:
        output.echo_each_as_json(_doubt_json(each, found) for each in found.found)
    else:
        output.echo_named(map(_doubt_row, found.found), null)


def _labels_told(model_path: str) -> dict[int, str]:
    """Return the labels that a person has told a model, by digest; raises NbspamError.

    There are none without a model, unless the command line names one.
    """
    if not output.is_named("model_path") and not os.path.exists(model_path):
        return {}
    from nbspam.store.tables import model_with_messages

    model = model_with_messages(model_path)
    return {} if model is None else model.told()


def _doubt_row(doubt: "Doubt") -> tuple[str, ...]:
    reasons = [f"{row.token} {row.contribution:+.1f}" for row in doubt.evidence[:_SHOWN]]
    probability = f"{doubt.probability:.6f}"
    return doubt.filed, doubt.label, probability, ", ".join(reasons), doubt.name


def _doubt_json(doubt: "Doubt", found: "Doubts") -> dict[str, object]:
    values = doubt._asdict()
    del values["evidence"]
    tokens = [output.evidence_json(row, found.classes) for row in doubt.evidence[:_MOST]]
    return {**values, "tokens": tokens}

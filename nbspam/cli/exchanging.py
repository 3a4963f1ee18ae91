"""nbspam export, import, merge and share: models as text, models as one, and shared lessons.

Other commands take the options by which they share their lessons from here.
"""

import sys
from collections.abc import Callable, Mapping
from contextlib import closing, suppress
from typing import TYPE_CHECKING, Any, cast

import click

from nbspam.arrays import today
from nbspam.cli import inputs, options, output
from nbspam.cli.frame import subcommand, titled
from nbspam.errors import SharedLogError, UsageError
from nbspam.printing import amount_text

if TYPE_CHECKING:
    from nbspam.classifier.classifier import Classifier
    from nbspam.server.choices import ShareChoices
    from nbspam.sharing.logs import SharedLog
    from nbspam.store.merging import Merged
    from nbspam.store.model import StoredModel


@subcommand("export", "--format", "--model-file")
@options.model_option
@click.option(
    "--format",
    "form",
    type=click.Choice(["jsonl", "bogoutil"]),
    default="jsonl",
    show_default=True,
    help="JSON lines, or counts for `bogoutil -l`.",
)
def export_command(model_path: str, form: str) -> None:
    """Print a whole model as text.

    There is one line per token.  JSON lines have the settings and classes first, then the
    tokens, then the digests of the messages that were learned.  `nbspam import` turns them
    back into the same model file, byte for byte.  The format of bogoutil has the counts only,
    and is for models of ham and spam.

    \b
    nbspam export > model.jsonl
    nbspam export -m mail.nbspam --format bogoutil | bogoutil -l wordlist.db
    """
    inputs.loaded_model(model_path)  # which is refused if it is the model of a table
    from nbspam.store import text
    from nbspam.store.model import StoredModel

    lines = text.bogofilter_lines if form == "bogoutil" else text.model_lines
    sys.stdout.buffer.writelines(lines(StoredModel(model_path).whole()))


@subcommand("import", "--model-file", "--json")
@click.argument("file")
@options.model_option
@options.json_option
def import_command(file: str, model_path: str, as_json: bool) -> None:
    """Make a model from the output of `nbspam export` or `bogoutil -d`.

    FILE may be -, for standard input, or compressed (.gz, .bz2, .xz or .zst).  If the import
    would lose any part of an existing model, that model is kept beside the new one, with ~
    after its name.

    The tags of bogofilter are translated (rtrn to return-path:, subj to subject:, rcvd to
    received: and so on).  A model from bogofilter has counts but no messages, so a message
    that bogofilter had learned is counted again if it is learned again.  Teach such a model
    ham and spam alike: it knows the tokens that bogofilter does not have from new messages
    only.  A backup of sa-learn or an export of spamprobe cannot become a model; train from the
    mail.

    \b
    nbspam import model.jsonl -m mail.nbspam
    bogoutil -d ~/.bogofilter/wordlist.db | nbspam import -
    """
    from nbspam.store.open import read_text_model

    output.tell_waiting([file])
    classifier = read_text_model(file)
    kept = output.save_model(classifier, model_path)
    output.report_lack(classifier)
    table = classifier.table
    n_docs = output.class_counts_of(table.classes, table.class_count)
    n_tokens = len(table.vocabulary)
    n_read = output.total_text(n_docs, classifier.noun)
    output.echo_result(
        as_json,
        {"model": model_path, "kept": kept, "read": n_docs, "tokens": n_tokens},
        f"imported {amount_text(n_tokens, 'tokens')} of {n_read}; model in {model_path}",
    )


@subcommand("merge", "--output", "--day", "--json")
@click.argument("models", nargs=-1, required=True, metavar="MODEL MODEL...")
@options.output_option("The model file to write.")
@click.option(
    "--day",
    type=options.DAY,
    metavar="YYYY-MM-DD",
    help="The day on which the messages of parts are learned.  [default: today]",
)
@options.json_option
def merge_command(
    models: tuple[str, ...], output_path: str, day: int | None, as_json: bool
) -> None:
    """Add models: the result is the model of all their messages.

    A message that several models know counts once.  If they know it as different classes,
    the one that a person told is kept, else the later one, else that of the model named later.
    All models must have the same settings for tokens; other settings are those of the first.

    The parts of one training, from `nbspam shard`, add up to the model that training on
    everything at once would make.  All of them must be named.

    Locks, journals and FILE~ that a shell's pattern also matches are ignored.

    \b
    nbspam merge home.nbspam office.nbspam -o both.nbspam
    nbspam merge part.* -o model.nbspam
    """
    merged = inputs.merged_models(models, today() if day is None else day)
    if day is not None and not merged.is_training:
        raise UsageError("--day: for parts of a training; models know the days of their messages")
    kept = output.save_model(merged.classifier, output_path)
    _show_merged(merged, output_path, kept, as_json)


def _show_merged(merged: "Merged", path: str, kept: str | None, as_json: bool) -> None:
    """Print the number of models and messages added, and of messages that several models knew."""
    classifier = cast("Classifier", merged.classifier)
    if classifier.memory and not classifier.memory.has_ledger:
        output.warn("a model without a ledger: messages that it shares with others count again")
    n_docs = output.class_counts_of(classifier.classes, classifier.table.class_count)
    loss, n_tokens = classifier.table.loss, len(classifier.table.vocabulary)
    facts: dict[str, object] = {"model": path, "kept": kept, "read": n_docs}
    facts |= {"tokens": n_tokens, "forgotten": output.loss_json(loss)}
    read = output.total_text(n_docs, classifier.noun)
    if merged.is_training:
        facts |= {"parts": merged.n_added, "repeated": merged.repeated}
        again = f", {merged.repeated:,} more than once" if merged.repeated else ""
        lines = [f"added {amount_text(merged.n_added, 'parts')}: {read}{again}"]
    else:
        facts |= {"in_both": merged.repeated, "disputed": merged.disputed}
        both = f"{merged.repeated:,} known to several, {merged.disputed:,} as different classes"
        lines = [f"added {merged.n_added} models: {read}", both]
    lines += [f"forgot {output.loss_text(loss, classifier.noun)}"] if loss else []
    lines.append(f"learned {amount_text(n_tokens, 'tokens')}; model in {path}")
    output.echo_result(as_json, facts, *lines)


# --- lessons shared with other servers ---------------------------------------------------------

SHARING = "Sharing lessons with other servers"
_SILENT = 60  # seconds after which a host that lags is not compared with the others

share_option = titled(
    SHARING,
    click.option(
        "--share",
        metavar="URL",
        help="Share lessons through the log at redis://[USER@]HOST[:PORT]/KEY (rediss:// with"
        " TLS) or postgresql://[USER@]HOST[:PORT]/DATABASE/TABLE.",
    ),
    click.option(
        "--share-password-command",
        metavar="COMMAND",
        help="Take the password of the log from the output of COMMAND.",
    ),
)
share_options = titled(
    SHARING,
    share_option,
    click.option(
        "--share-sync",
        is_flag=True,
        help="Acknowledge a lesson when the log has it, too, and not only this machine's disk.",
    ),
)


def share_choices(
    share: str | None, share_password_command: str | None, share_sync: bool = False
) -> "ShareChoices | None":
    """Return how lessons are shared, None if not at all; raises UsageError and InputError."""
    if share is None:
        if share_sync or share_password_command:
            raise UsageError(
                "--share-sync, --share-password-command: no log; give --share URL, too"
            )
        return None
    from nbspam.imap.accounts import printed_secret
    from nbspam.server.choices import ShareChoices
    from nbspam.sharing.logs import open_log

    password = None
    if share_password_command:
        password = printed_secret("--share-password-command", share_password_command, share)
    open_log(share, password).close()  # a wrong address is said now
    return ShareChoices(share, password, share_sync)


sharing_options = options.filling(share_choices, "sharing", share_options)


def with_sharing(
    choices: "ShareChoices | None",
    model: "StoredModel",
    learn: Callable[[], Any],
    of_users: "Mapping[str, StoredModel] | None" = None,
) -> Any:
    """Learn, and share the lessons; return the outcome.  Raises NbspamError.

    Lessons that the log does not take now stay in the outbox, with a warning; with --share-sync,
    that is an error.  of_users: as in `shared_lessons`.
    """
    from nbspam.sharing.sharer import shared_lessons

    if choices is None:
        with shared_lessons(model, of_users=of_users):
            return learn()
    from nbspam.server.judge import check_served
    from nbspam.server.lessons import sharer_for

    check_served(model.path, model.base)
    with shared_lessons(model, True, of_users), closing(sharer_for(choices, model.path)) as sharer:
        with suppress(SharedLogError):  # the second attempt reports it
            sharer.exchange()
        outcome = learn()
        try:
            sharer.exchange()
            sharer.report()
        except SharedLogError as error:
            if choices.is_sync:
                raise
            output.warn(str(error))
    return outcome


@subcommand("share", "--share", "--model-file", "--users", "--json")
@click.argument("action", type=click.Choice(["status", "snapshot", "join"]))
@click.argument("folder", required=False)
@options.model_option
@share_option
@click.option(
    "--users", metavar="DIR", help="With join: put the models of users into DIR, if there are any."
)
@options.json_option
def share_command(
    action: str,
    folder: str | None,
    model_path: str,
    share: str | None,
    share_password_command: str | None,
    users: str | None,
    as_json: bool,
) -> None:
    """Show servers that share their lessons, or add one.

    status prints each host: how many records of the log it has not learned yet (lag), how many of
    its lessons wait for the log (outbox), and a digest of the site's model; equal digests mean
    equal models.  Users' models are not compared.  snapshot writes the models of this host into a
    new FOLDER, and join starts another host from a copy of that folder.

    \b
    nbspam share status --share redis://log.example.org/nbspam
    nbspam share snapshot FOLDER --share redis://log.example.org/nbspam
    nbspam share join FOLDER -m new.nbspam
    """
    _check_use(action, folder)
    if action == "join":
        from nbspam.sharing.sharer import join_log

        assert folder is not None
        place = join_log(folder, model_path, users)
        said = f"joined at record {place.n_read:,}; model in {model_path}"
        output.echo_result(as_json, {"model": model_path, "records": place.n_read}, said)
        return
    choices = share_choices(share, share_password_command)
    if choices is None:
        raise UsageError(f"share {action}: no log; give --share URL")
    if action == "status":  # which makes no outbox: the model here may share nothing
        from nbspam.sharing.logs import open_log

        with closing(open_log(choices.url, choices.password)) as log:
            _print_status(log, as_json)
        return
    from nbspam.server.judge import users_in
    from nbspam.server.lessons import sharer_for
    from nbspam.sharing.sharer import snapshot

    with closing(sharer_for(choices, model_path)) as sharer:
        of_users = sharer.outbox.users_folder()
        place = snapshot(sharer, str(folder), users_in(of_users) if of_users else [])
    said = f"{folder}: the models as of record {place.n_read:,} of the log"
    output.echo_result(as_json, {"folder": folder, "records": place.n_read}, said)


def _check_use(action: str, folder: str | None) -> None:
    """Raise UsageError if an action lacks a folder, or gets a word that it would ignore."""
    if (folder is None) != (action == "status"):
        wrong = "no FOLDER; name one" if folder is None else f"needs no folder; leave {folder} out"
        raise UsageError(f"share {action}: {wrong}")
    if action != "join" and output.is_named("users"):
        raise UsageError(f"share {action}: --users is for join; leave it out")


def _print_status(log: "SharedLog", as_json: bool) -> None:
    end, hosts = log.end(), log.hosts()
    if as_json:
        output.echo_json({"log": log.name, "records": end.n_records, "hosts": hosts})
        return
    rows = [("host", "lag", "outbox", "skipped", "model", "heard")]
    models: set[str] = set()  # "-": lessons to read or send
    for name, facts in sorted(hosts.items()):
        read, told = facts.get("read"), facts.get("time")
        lag = max(end.n_records - read, 0) if isinstance(read, int) else "?"
        ago = max(end.seconds - told, 0) if isinstance(told, int) else "?"
        shown = (facts.get("outbox", "?"), facts.get("skipped", "?"), facts.get("model", "-"))
        outbox, skipped, model = (str(value)[:20] for value in shown)
        rows.append((name, str(lag), outbox, skipped, model, f"{ago} s ago"))
        if lag == 0:
            models.add(model)
        elif isinstance(ago, int) and ago <= _SILENT:  # a host that has gone keeps its line
            models.add("-")
    output.echo_rows(rows)
    equal = "equal" if models and "-" not in models else "not compared yet"
    equal = "not equal now" if len(models - {"-"}) > 1 else equal
    output.echo_summary(f"{log.name}: {amount_text(end.n_records, 'records')}; models {equal}")

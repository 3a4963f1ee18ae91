"""nbspam update, unlearn, relabel, prune, allow and deny: learning and forgetting."""

import os
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import chain, islice
from typing import TYPE_CHECKING

import click

from nbspam.arrays import today
from nbspam.cli import inputs, options, output
from nbspam.cli.exchanging import sharing_options, with_sharing
from nbspam.cli.frame import subcommand
from nbspam.errors import UsageError
from nbspam.settings import SettingsChoices, as_learned, settings_for
from nbspam.sources.files import holds_many
from nbspam.sources.items import Item, SourceOptions, read_items

if TYPE_CHECKING:
    from nbspam.server.choices import ShareChoices
    from nbspam.store.model import StoredModel


@subcommand("update", "--spam", "--ham", "--policy", "--model-file")
@inputs.corpus_and_sent_options
@options.model_option
@click.option(
    "--policy",
    type=click.Choice(["everything", "error", "near"]),
    default="everything",
    show_default=True,
    help="Learn every message, those the model gets wrong, or those and the near misses.",
)
@options.new_class_option
@sharing_options
@options.jobs_option
@options.json_option
def update_command(
    corpus: inputs.LabelledSources,
    model_path: str,
    policy: str,
    new_class: bool,
    sharing: "ShareChoices | None",
    jobs: int,
    as_json: bool,
) -> int:
    """Learn more labelled mail.

    SOURCE, --spam, --ham and --label are as for `nbspam train`.  A message that the model
    knows is not counted again; if it was learned as another class, it moves to the new one.

    The class that an option states for a single message counts as a person's word: it is never
    doubted.  Labels of many messages may be, if all other evidence contradicts them.

    Without a model file, the command makes one, which answers unsure until it knows spam and
    ham.  If a message has a class that the model does not have, nothing is learned without
    --new-class; a model of mail learns ham and spam without it.

    The weights of evidence are fitted again when a class has changed by a twentieth, or after
    2,000 changes.  With --policy error or near, the order of messages matters: see `nbspam eval`.

    \b
    nbspam update --spam ~/Maildir/.Junk
    nbspam update --ham - < message.eml
    nbspam update --policy near mails/
    """
    model = inputs.stored_model(model_path) if os.path.exists(model_path) else None
    sources, reading, labels, sent = corpus
    reading = reading if model is None else as_learned(reading, model.settings)
    if sent and not corpus.paths:
        sources = inputs.CompleteSources()  # nothing else is read
    items = _told_one(inputs.items_of_sources(sources, reading, labels), sources, labels)
    if model is None:
        from nbspam.store.model import StoredModel

        settings, items = settings_for(items, SettingsChoices(), reading.listener)
        model = StoredModel(model_path, new=settings)
    known = learn_sent_mail(model, corpus)
    stated = None if sources or not labels.paths else {name for name, _ in labels.paths}
    learn = partial(model.learn, items, policy=policy, classes=stated, new_class=new_class)
    outcome = with_sharing(sharing, model, partial(learn, day=today(), jobs=jobs))
    besides = "" if known is None else f"learned sent mail; {known} in all"
    status = output.report_outcome(outcome, model_path, as_json, besides=besides)
    if outcome.only_lacks_labels:
        output.warn("update: state their class by --spam PATH, --ham PATH or --label NAME=PATH")
    return status


def learn_sent_mail(model: "StoredModel", corpus: inputs.LabelledSources) -> str | None:
    """Learn sent mail, and return in words all that is known; None if nothing of it is new."""
    known = model.settings.sent_mail
    found = corpus.knowing_sent_mail(model.settings).sent_mail
    is_new = found is not None and found is not known and model.learn_sent_mail(found)
    return model.settings.sent_mail.in_words if is_new and model.settings.sent_mail else None


def _told_one(
    items: Iterator[Item], sources: Sequence[str], labels: inputs.Labels
) -> Iterator[Item]:
    """Return the items; a single one whose class an option states counts as told by a person.

    A mail reader pipes such a message in, or a person names its file.  A message in a folder,
    mailbox or table has been filed there, even if it is alone.
    """
    if len(sources) or len(labels.paths) != 1 or holds_many(labels.paths[0][1]):
        return items
    first = list(islice(items, 2))
    if len(first) == 1 and first[0].series is None:
        first = [first[0]._replace(told=True)]
    return chain(first, items)


@subcommand("unlearn", "--model-file", "--json", "--format", "--jobs")
@inputs.sources_argument
@options.model_option
@click.option("--sent", multiple=True, metavar="PATH", help="Forget mail at PATH that you sent.")
@inputs.reading_options
@sharing_options
@options.jobs_option
@options.json_option
def unlearn_command(
    sources: tuple[str, ...],
    model_path: str,
    sent: tuple[str, ...],
    reading: SourceOptions,
    sharing: "ShareChoices | None",
    jobs: int,
    as_json: bool,
) -> int:
    """Take messages out of the model, as if it had never learned them.

    The model remembers the class that each message was learned as.  Messages that it never
    learned change nothing.

    \b
    nbspam unlearn message.eml
    nbspam unlearn ~/Maildir/.Trash
    """
    model: StoredModel = inputs.stored_model(model_path)
    # Not if the configuration file sets it, for the commands that learn it.
    if names_sent := output.is_named("sent"):
        sources = inputs.CompleteSources(sources)
    items = inputs.items_of_sources(sources, as_learned(reading, model.settings))
    besides = ""
    if names_sent and model.unlearn_sent_mail(read_items(sent)):
        left = model.settings.sent_mail
        besides = f"forgot sent mail; {left.in_words if left else 'none'} left"
    unlearn = partial(model.unlearn, items, day=today(), jobs=jobs)
    outcome = with_sharing(sharing, model, unlearn)
    return output.report_outcome(outcome, model_path, as_json, besides=besides)


@subcommand("relabel", "--to", "--new-class", "--model-file", "--json")
@inputs.sources_argument
@options.model_option
@click.option("--to", required=True, metavar="CLASS", help="Move them to this class.")
@inputs.reading_options
@options.new_class_option
@sharing_options
@options.jobs_option
@options.json_option
def relabel_command(
    sources: tuple[str, ...],
    model_path: str,
    to: str,
    reading: SourceOptions,
    new_class: bool,
    sharing: "ShareChoices | None",
    jobs: int,
    as_json: bool,
) -> int:
    """Move messages to the class they belong to.

    SOURCE is a message or a whole folder.  Messages that the model never learned are learned
    as that class.  The model never doubts a class given by this command, so it also confirms
    the class that messages have already.

    \b
    nbspam relabel --to ham message.eml
    nbspam relabel --to spam ~/Maildir/.Junk
    """
    model: StoredModel = inputs.stored_model(model_path)
    items = inputs.items_of_sources(sources, as_learned(reading, model.settings))
    relabel = partial(model.relabel, items, to, day=today(), jobs=jobs)
    outcome = with_sharing(sharing, model, partial(relabel, new_class=new_class))
    return output.report_outcome(outcome, model_path, as_json, " that the model did not know")


@subcommand("prune", "--min-df", "--older-than", "--half-life", "--model-file")
@options.model_option
@options.count_option("--min-df", help="Drop tokens that occur in fewer than N messages.")
@click.option(
    "--older-than",
    type=click.IntRange(min=0),
    metavar="DAYS",
    help="Drop tokens that were last learned more than DAYS days ago.",
)
@click.option(
    "--half-life",
    type=options.FiniteRange(min=0, min_open=True),
    metavar="DAYS",
    help="Let counts fade: halve them every DAYS days.",
)
@options.json_option
def prune_command(
    model_path: str,
    min_df: int | None,
    older_than: int | None,
    half_life: float | None,
    as_json: bool,
) -> None:
    """Drop tokens that are rare and old, and let counts fade.

    With both --min-df and --older-than, a token must be rare and old to be dropped.  Without
    any option, prune drops tokens that only one message had and that were last learned over
    a year ago.  Counts fade from the day they last faded, or else from the days on which the
    messages were learned.

    Afterwards, un-learning an earlier message takes out only those of its tokens that the
    model still knows.  If more than half of the tokens go, the model of before is kept beside
    the new one, with ~ after its name.

    \b
    nbspam prune
    nbspam prune --min-df 3 --older-than 90
    nbspam prune --half-life 180
    """
    from nbspam.store.upkeep import DEFAULT, PruningRule, prune_model

    given = (min_df, older_than, half_life)
    rule = DEFAULT if given == (None, None, None) else PruningRule(*given)
    before, after, kept = prune_model(model_path, rule, today())
    output.report_kept(kept)
    output.echo_result(
        as_json,
        {"model": model_path, "kept": kept, "before": before._asdict(), "after": after._asdict()},
        f"tokens {before.tokens:,} before, {after.tokens:,} after",
        f"bytes {before.bytes:,} before, {after.bytes:,} after; model in {model_path}",
    )


# --- lists of senders --------------------------------------------------------------------------

addresses_argument = click.argument("addresses", metavar="[ADDRESS]...", nargs=-1)
forget_option = click.option(
    "--forget", "forgets", is_flag=True, help="Take the addresses off the list again."
)


@subcommand("allow", "--model-file", "--trust", "--forget", "--json")
@addresses_argument
@options.model_option
@click.option(
    "--trust",
    metavar="SERVER",
    help="Believe the Authentication-Results of SERVER, which must be your own.",
)
@forget_option
@options.json_option
def allow_command(
    addresses: tuple[str, ...], model_path: str, trust: str | None, forgets: bool, as_json: bool
) -> None:
    """Call mail of these senders ham, if your mail server says that it is genuine.

    ADDRESS is a sender, a domain with all below it, list:ID for a mailing list by its List-Id,
    or to:ADDRESS for a recipient that the mail system names to nbspam serve.  Anybody can forge
    a sender; so without an aligned DKIM or SPF result of the trusted server, the line is a hint
    of one nat.  Without an address, the list is printed.

    \b
    nbspam allow --trust mail.example.org ann@example.com
    nbspam allow list:dev.lists.example.org
    """
    print_changed_lists("allow", addresses, model_path, trust, forgets, as_json)


@subcommand("deny", "--model-file", "--forget", "--json")
@addresses_argument
@options.model_option
@forget_option
@options.json_option
def deny_command(
    addresses: tuple[str, ...], model_path: str, forgets: bool, as_json: bool
) -> None:
    """Call mail of these senders spam.

    ADDRESS is a sender, a domain with all below it, list:ID for a mailing list by its List-Id,
    or to:ADDRESS for a recipient that the mail system names to nbspam serve.  Without an
    address, the list is printed.

    \b
    nbspam deny news@shop.example
    nbspam deny --forget shop.example
    """
    print_changed_lists("deny", addresses, model_path, None, forgets, as_json)


def print_changed_lists(
    verb: str,
    given: tuple[str, ...],
    model_path: str,
    trust: str | None,
    forgets: bool,
    as_json: bool,
) -> None:
    """Write addresses into the lists beside a model, and print the lists."""
    from nbspam.mail import addresses

    if forgets and not given:
        raise UsageError("--forget: no address; name those to take off the list")
    keys = [addresses.checked_address(text) for text in given]
    path = addresses.lists_path(model_path)
    lists = addresses.read_lists(model_path) or addresses.AddressLists({})
    unknown = [key for key in keys if forgets and key not in lists.verbs]
    if keys or trust is not None:
        lists = addresses.change_lists(model_path, keys, None if forgets else verb, trust)
    if as_json:
        by_verb = {
            name: sorted(key for key, each in lists.verbs.items() if each == name)
            for name in ("allow", "deny")
        }
        output.echo_json({"lists": path, "trust": lists.trusted, **by_verb})
    else:
        lines = [(each, key) for key, each in sorted(lists.verbs.items())]
        lines += [("trust", lists.trusted)] if lists.trusted is not None else []
        output.echo_rows(line for line in lines if line[0] == verb or not keys)
    if not os.path.exists(model_path):
        output.warn(f"{model_path}: no such model yet; check its name")
    for key in unknown:
        output.warn(f"--forget {key}: not on the lists")
    if verb == "allow" and keys and not forgets and lists.trusted is None:
        output.warn(
            "no server is trusted, so that allowed senders are a hint only; give --trust SERVER"
        )

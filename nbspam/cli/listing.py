"""nbspam allow and deny: senders, domains, mailing lists and recipients, whatever they write."""

import click

from nbspam.cli import options
from nbspam.cli.frame import Command
from nbspam.cli.output import echo_json, warn
from nbspam.errors import UsageError

addresses_argument = click.argument("addresses", metavar="[ADDRESS]...", nargs=-1)
forget_option = click.option(
    "--forget", "forgets", is_flag=True, help="Take the addresses off the list again."
)
trust_option = click.option(
    "--trust",
    metavar="SERVER",
    help="Believe what this server of yours writes into Authentication-Results.",
)


@click.command("allow", cls=Command, first=("--model-file", "--trust", "--forget", "--json"))
@addresses_argument
@options.model_option
@trust_option
@forget_option
@options.json_option
def allow_command(
    addresses: tuple[str, ...], model_path: str, trust: str | None, forgets: bool, as_json: bool
) -> None:
    """Call mail of these senders ham, if your mail server says that it is genuine.

    ADDRESS is a sender, a domain with all below it, list:ID for a mailing list by its List-Id,
    or to:ADDRESS for a recipient that the mail system names to nbspam serve.  Anybody can write
    any sender; so without an aligned DKIM or SPF result of the trusted server, the line is a
    hint of one nat.  Without an address, the list is printed.

    \b
    nbspam allow --trust mail.example.org ann@example.com
    nbspam allow list:dev.lists.example.org
    """
    print_changed_lists("allow", addresses, model_path, trust, forgets, as_json)


@click.command("deny", cls=Command, first=("--model-file", "--forget", "--json"))
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
    addresses: tuple[str, ...],
    model_path: str,
    trust: str | None,
    forgets: bool,
    as_json: bool,
) -> None:
    """Write addresses into the lists beside a model, and print what the lists say then."""
    from nbspam.mail import address_lists

    if forgets and not addresses:
        raise UsageError("--forget: no address; name those to take off the list")
    keys = [address_lists.checked_address(text) for text in addresses]
    path = address_lists.lists_path(model_path)
    lists = address_lists.read_lists(model_path) or address_lists.AddressLists({})
    unknown = [key for key in keys if forgets and key not in lists.verbs]
    if keys or trust is not None:
        lists = address_lists.change_lists(model_path, keys, None if forgets else verb, trust)
    if as_json:
        echo_json({"lists": path, "trust": lists.trusted, **_by_verb(lists.verbs)})
        return
    for key, each in sorted(lists.verbs.items()):
        if each == verb or not keys:
            click.echo(f"{each}\t{key}")
    if lists.trusted is not None and not keys:
        click.echo(f"trust\t{lists.trusted}")
    for key in unknown:
        warn(f"--forget {key}: not on the lists")
    if verb == "allow" and keys and not forgets and lists.trusted is None:
        warn("no server is trusted, so that allowed senders are a hint only; give --trust SERVER")


def _by_verb(verbs: dict[str, str]) -> dict[str, list[str]]:
    return {
        verb: sorted(key for key, each in verbs.items() if each == verb)
        for verb in ("allow", "deny")
    }

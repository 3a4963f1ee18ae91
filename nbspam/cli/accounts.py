"""Mail accounts on the command line: the tables [account.NAME] of the configuration file."""

import os
from typing import TYPE_CHECKING

import click

from nbspam.cli.frame import (
    ACCOUNT_TABLE,
    ADVICE,
    config_path,
    configured_tables,
    near,
    running_call,
)

if TYPE_CHECKING:
    from nbspam.imap.secrets import AccessBook

# Of a table [account.NAME].
_KEYS = (
    "url",
    "model-file",
    "password-command",
    "token-command",
    "tls-ca",
    "spam-folder",
    "unsure-folder",
)


def accounts() -> dict[str, dict[str, str]]:
    """Return the mail accounts in the configuration file, by name; raises click.UsageError."""
    path, keys = config_path(), _KEYS
    if not running_call().reads_config:
        return {}
    found = configured_tables(path).get(ACCOUNT_TABLE, {})
    if not isinstance(found, dict):
        raise click.UsageError(f"{path}: {ACCOUNT_TABLE}: in no table; write [account.NAME]")
    for name, table in found.items():
        where = f"{path}: [{ACCOUNT_TABLE}.{name}]"
        if not isinstance(table, dict) or not isinstance(table.get("url"), str):
            raise click.UsageError(f'{where}: no account; give it url = "imaps://USER@HOST/"')
        for key, value in table.items():
            if key not in keys:
                raise click.UsageError(f"{where} {key}: {near('no such key', key, keys)}")
            if not isinstance(value, str):
                raise click.UsageError(f"{where} {key}: not a string; {ADVICE}")
    return {
        name: {key: os.path.expanduser(value) for key, value in table.items()}
        for name, table in found.items()
    }


def access_book(
    password_command: str | None, token_command: str | None, tls_ca: str | None
) -> "AccessBook":
    """Return the ways to all mail accounts: those of options, and of the configuration file."""
    from nbspam.imap.secrets import AccessBook, AccountAccess
    from nbspam.imap.urls import imap_url

    own = {
        imap_url(each["url"]).account: AccountAccess(
            *(each.get(key) for key in ("password-command", "token-command", "tls-ca"))
        )
        for each in accounts().values()
    }
    return AccessBook(AccountAccess(password_command, token_command, tls_ca), own)

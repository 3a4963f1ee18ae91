"""nbspam doctor: verify a model file and its journal."""

import click

from nbspam.cli.command import Command
from nbspam.cli.options import json_option, model_option
from nbspam.cli.output import echo_json, echo_rows


@click.command("doctor", cls=Command)
@model_option
@click.option(
    "--repair",
    "repairs",
    is_flag=True,
    help="First save what is good in a damaged journal; the damaged file is kept.",
)
@json_option
def command(model_path: str, repairs: bool, as_json: bool) -> int:
    """Verify a model and its journal, and print the findings.

    The exit status is 0 if all is well, and 1 if something is bad.  A finding that is only
    a note costs no data.  One finding says who else can read the words of your mail that the
    model holds.  Without --repair nothing is changed.

    \b
    nbspam doctor
    nbspam doctor -m mail.nbspam --json
    nbspam doctor --repair
    """
    from nbspam.store.health.check import BAD
    from nbspam.store.health.repair import examine

    found = examine(model_path, repairs)
    if as_json:
        echo_json({"model": model_path, "findings": [finding._asdict() for finding in found]})
    else:
        echo_rows(found)
    return int(any(finding.state == BAD for finding in found))

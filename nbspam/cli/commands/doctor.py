"""nbspam doctor: verify a model file and its journal."""

import click

from nbspam.cli.command import Command
from nbspam.cli.options import json_option, model_option
from nbspam.cli.output import echo_json, echo_rows


@click.command("doctor", cls=Command)
@model_option
@json_option
def command(model_path: str, as_json: bool) -> int:
    """Verify a model and its journal, and print the findings.

    The exit status is 0 if all is well, and 1 if something is bad.  A finding that is only
    a note costs no data.  Nothing is changed.

    \b
    nbspam doctor
    nbspam doctor -m mail.nbspam --json
    """
    from nbspam.store.check import BAD, findings

    found = list(findings(model_path))
    if as_json:
        echo_json({"model": model_path, "findings": [finding._asdict() for finding in found]})
    else:
        echo_rows(found)
    return int(any(finding.state == BAD for finding in found))

"""nbspam serve: verdicts and lessons for mail systems, over their own protocols."""

from functools import partial
from typing import Any

import click

from nbspam.cli.command import Command
from nbspam.cli.decisions import rule_of
from nbspam.cli.options import Decision, decision_options, jobs_option, model_option
from nbspam.cli.output import warn
from nbspam.cli.values import complaint
from nbspam.errors import UsageError

_PASS, _TEMPFAIL = "pass", "tempfail"


class Serve(Command):
    """The command, which can read its options again while it runs."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Keep the arguments, and parse them."""
        ctx.obj = list(args)
        return super().parse_args(ctx, args)


def _again(ctx: click.Context) -> dict[str, Any]:
    """Return the options as the configuration file says them now; raises UsageError."""
    try:
        return ctx.command.make_context("serve", list(ctx.obj), parent=ctx.parent).params
    except click.ClickException as error:
        raise UsageError(complaint(error)) from error


@click.command("serve", cls=Serve)
@model_option
@click.option(
    "--spamd", metavar="ADDRESS", help="Speak the protocol of SpamAssassin's spamd at ADDRESS."
)
@click.option("--allow-tell", is_flag=True, help="Let clients of --spamd teach the model.")
@click.option(
    "--when-busy",
    type=click.Choice([_PASS, _TEMPFAIL]),
    default=_TEMPFAIL,
    show_default=True,
    help="Beyond the limits: let mail pass unjudged, or ask its sender to try again.",
)
@click.option(
    "--log",
    type=click.Choice(["text", "json", "none"]),
    default="text",
    show_default=True,
    help="How each answer is told on standard error.",
)
@decision_options
@jobs_option
def command(
    model_path: str,
    spamd: str | None,
    allow_tell: bool,
    when_busy: str,
    log: str,
    decision: Decision,
    jobs: int,
) -> None:
    """Answer mail systems that ask for verdicts, until a signal says to end.

    ADDRESS is HOST:PORT, a PORT of this machine, or the PATH of a socket.  There is one worker
    process for each core.

    \b
    nbspam serve --spamd 127.0.0.1:783
    nbspam serve --spamd /run/nbspam/spamd.sock --allow-tell
    """
    from nbspam.server.addresses import listen
    from nbspam.server.service import Options, serve

    def options(
        model_path: str, allow_tell: bool, when_busy: str, log: str, decision: Decision, **_: Any
    ) -> Options:
        rule = partial(rule_of, decision)
        return Options(model_path, rule, allow_tell, when_busy == _PASS, log)

    listeners = listen({"spamd": spamd})
    for address in listeners.open_to_others:
        if allow_tell:
            warn(f"{address}: reachable from other machines, which can teach the model")
    context = click.get_current_context()
    first = options(model_path, allow_tell, when_busy, log, decision)
    serve(first, listeners.sockets, jobs, lambda: options(**_again(context)))

"""nbspam serve: verdicts and lessons for mail systems, over their own protocols."""

from contextlib import closing
from typing import Any

import click

from nbspam.cli.command import Command, titled
from nbspam.cli.options import decision_options, jobs_option, model_option
from nbspam.cli.serving import PASS, TEMPFAIL, listeners_of, service_options, values_again
from nbspam.server.logs import FORMATS

# Titles under which help lists options.
LISTENING = "Where it listens: HOST:PORT, a PORT of this machine, or the PATH of a socket"
PAGE = "What the page shows"
TEACHING = "Who may teach, and what"
MAIL = "What becomes of mail"


class Serve(Command):
    """The command, which can read its options again while it runs."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Keep the arguments, and parse them."""
        ctx.obj = list(args)
        return super().parse_args(ctx, args)


@click.command("serve", cls=Serve)
@model_option
@titled(
    LISTENING,
    click.option("--spamd", metavar="ADDRESS", help="Speak the protocol of SpamAssassin's spamd."),
    click.option("--http", metavar="ADDRESS", help="Speak rspamd's protocol, over HTTP."),
    click.option(
        "--milter", metavar="ADDRESS", help="Speak the milter protocol of Postfix and Sendmail."
    ),
    click.option(
        "--web",
        metavar="ADDRESS",
        help="Show a page to who is on this machine and has the token that is printed first.",
    ),
)
@titled(
    PAGE,
    click.option(
        "--review",
        metavar="MAILBOX",
        help="The mail of a Maildir, mbox or folder: verdicts, reasons, and lessons by clicks."
        "  With --users, the folder of all users' mailboxes.",
    ),
    click.option(
        "--move",
        is_flag=True,
        help="Move what is told to be spam or ham between the folders of a Maildir, like sort.",
    ),
)
@titled(
    TEACHING,
    click.option("--allow-tell", is_flag=True, help="Let clients of --spamd teach the model."),
    click.option(
        "--password-file",
        metavar="FILE",
        help="Let clients of --http teach the model if they know the password, FILE's first line.",
    ),
    click.option(
        "--users",
        metavar="DIR",
        help="Let each user teach a model of their own in DIR, which counts on top of -m.",
    ),
)
@titled(
    MAIL,
    click.option(
        "--reject-above",
        type=click.FloatRange(0, 1),
        metavar="P",
        help="Reject mail through --milter whose probability of spam is above P.",
    ),
    click.option(
        "--quarantine-above",
        type=click.FloatRange(0, 1),
        metavar="P",
        help="Let Postfix hold mail whose probability of spam is above P.",
    ),
    click.option(
        "--when-busy",
        type=click.Choice([PASS, TEMPFAIL]),
        default=TEMPFAIL,
        show_default=True,
        help="Beyond the limits: let mail pass unjudged, or ask its sender to try again.",
    ),
)
@click.option(
    "--log",
    type=click.Choice(FORMATS),
    default="text",
    show_default=True,
    help="How each answer is told on standard error.",
)
@decision_options
@jobs_option
def command(**values: Any) -> None:
    """Answer mail systems that ask for verdicts, until a signal says to end.

    There is one worker process for each core.  What any process teaches the model counts from the
    next message on.  SIGHUP reads the configuration file again; SIGTERM ends the server after it
    has answered what it has accepted.

    \b
    nbspam serve --spamd 127.0.0.1:783
    nbspam serve --spamd /run/nbspam/spamd.sock --allow-tell
    """
    from nbspam.server.service import serve

    context = click.get_current_context()
    options = service_options(**values)
    with closing(listeners_of(values, options.policy)) as listeners:
        serve(
            options,
            listeners.sockets,
            values["jobs"],
            lambda: service_options(**values_again(context)),
        )

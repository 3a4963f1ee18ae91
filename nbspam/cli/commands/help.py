"""nbspam help: what a command does, and its options."""

import click

from nbspam.cli.command import Command


@click.command("help", cls=Command)
@click.argument("name", required=False, metavar="[COMMAND]")
@click.pass_context
def command(ctx: click.Context, name: str | None) -> None:
    """Show what a command does and its options, or list all commands.

    \b
    nbspam help
    nbspam help train
    """
    parent = ctx.parent
    assert parent is not None  # the group that this command is of
    if name is not None:
        assert isinstance(parent.command, click.Group)
        _, asked, _ = parent.command.resolve_command(parent, [name])
        assert asked is not None  # else it is refused
        parent = click.Context(asked, info_name=name, parent=parent)
    click.echo(parent.get_help())

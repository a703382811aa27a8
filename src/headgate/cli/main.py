"""The command `headgate`. Commands are imported when they are called, so that `headgate --help` answers at once."""

from __future__ import annotations

import sys
from importlib import import_module

import click

from headgate.errors import ErrorGroup, HeadgateError

# Command -> the module and object that hold it, and the line of help that the list shows.
COMMANDS = {
    "apply": (
        "headgate.cli.commands",
        "apply",
        "Make what a script describes, and leave alone what is so already.",
    ),
    "doctor": ("headgate.cli.commands", "doctor", "Check what Headgate needs, and say how to repair it."),
    "plan": ("headgate.cli.commands", "plan", "Show what `apply` would do, and do nothing."),
    "run": ("headgate.cli.run", "run", "Apply a script, and run it in the foreground."),
    "serve": ("headgate.cli.serve", "serve", "Run the engine: take statements, and keep tasks running."),
    "sql": ("headgate.cli.commands", "sql", "Send statements, or open a shell for them."),
    "test": ("headgate.cli.test", "test", "Run executable specs."),
    "world": ("headgate.cli.world", "world", "Start, stop and show an embedded world."),
}

# Exit status by family of error; 1 is any other failure, 2 is click's for wrong usage.
EXIT_STATUS = {
    "SQL": 10,
    "SCH": 11,
    "PLN": 12,
    "CAT": 13,
    "CON": 14,
    "RUN": 15,
    "REG": 16,
    "WLD": 17,
    "CLI": 18,
}


class Commands(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        module, name, _ = COMMANDS[cmd_name]
        command: click.Command = getattr(import_module(module), name)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, help_) for name, (_, _, help_) in sorted(COMMANDS.items())])


@click.group(cls=Commands)
@click.version_option(package_name="headgate")
def headgate() -> None:
    """Schema-first streaming SQL on Spark."""


def exit_status(error: HeadgateError) -> int:
    return exit_status_of(error.errors[0].code if isinstance(error, ErrorGroup) else error.code)


def exit_status_of(code: str) -> int:
    return EXIT_STATUS.get(code.partition("-")[0], 1)


def main() -> None:
    try:
        headgate(standalone_mode=True)
    except HeadgateError as error:
        click.echo(error.diagnostic().render(), err=True)
        sys.exit(exit_status(error))

"""The command `headgate`. A command is imported when it is called, so that `headgate --help` is quick."""

from __future__ import annotations

import sys
from importlib import import_module

import click

from headgate.errors import ErrorGroup, HeadgateError

# Command -> its module, its name there, and its line in the list of commands.
COMMANDS = {
    "apply": ("headgate.cli.commands", "apply", "Create and change what a script describes."),
    "catalog": ("headgate.cli.commands", "catalog", "Work on a project's catalog while no engine runs."),
    "doctor": ("headgate.cli.commands", "doctor", "Check what Headgate needs, and say how to repair it."),
    "plan": ("headgate.cli.commands", "plan", "Show what `apply` would do, without doing it."),
    "run": ("headgate.cli.run", "run", "Apply a script, and watch its tasks in the foreground."),
    "serve": ("headgate.cli.serve", "serve", "Run the engine: accept statements, and keep tasks running."),
    "sql": ("headgate.cli.commands", "sql", "Send statements, or open a shell for them."),
    "test": ("headgate.cli.test", "test", "Run executable specs."),
    "world": ("headgate.cli.commands", "world", "Start, stop and show an embedded world."),
}

# Exit status by family of errors. Any other failure is 1; click uses 2 for wrong usage.
EXIT_STATUS = {"SQL": 10, "SCH": 11, "PLN": 12, "CAT": 13, "CON": 14, "RUN": 15, "REG": 16, "WLD": 17, "CLI": 18}


class Commands(click.Group):
    """A group that imports the module of a command when the command is called."""

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
    """The exit status for the code of an error."""
    return EXIT_STATUS.get(code.partition("-")[0], 1)


def main() -> None:
    try:
        headgate(standalone_mode=True)
    except HeadgateError as error:
        click.echo(error.diagnostic().render(), err=True)
        sys.exit(exit_status(error))


if __name__ == "__main__":
    main()

"""Write the pages that are made from the code: errors, types, grammar, command line. `--check` compares instead."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from headgate.cli.main import COMMANDS, headgate as command_line
from headgate.sql.grammar import OPTION_LISTS, all_rules, all_synopses
from headgate.sql.options import rules
from tools.error_page import error_page
from tools.type_tables import FORMATS, loss_table, reading_table, type_table

DOCS = Path(__file__).resolve().parent.parent / "docs"
GENERATED = "<!-- Made by tools/generate_docs.py from the code. Do not edit. -->\n\n"


def main(check: bool) -> int:
    pages = {
        "errors.md": GENERATED + error_page(),
        "types.md": types(),
        "grammar.md": grammar(),
        "cli.md": commands(),
    }
    stale = []
    for name, text in pages.items():
        path = DOCS / name
        if not path.exists() or path.read_text() != text:
            stale.append(name)
            if not check:
                path.write_text(text)
    if stale and check:
        print(f"out of date: {', '.join(stale)}. Run `.venv/bin/python -m tools.generate_docs` and commit.")
        return 1
    return 0


def types() -> str:
    parts = [GENERATED, "# Types\n\n", TYPES_INTRO, type_table(), "\n"]
    for format_ in FORMATS:
        parts.append(f"\n## {format_}\n\nWhat does not come back as it went in:\n\n{loss_table(format_)}\n")
        if reading := reading_table(format_):
            parts.append(f"\nWhat is read as something more general:\n\n{reading}\n")
    return "".join(parts)


TYPES_INTRO = """One type system, whatever format a value came in and whatever target it goes to. The table is made by really mapping
every type; what stands in it is what happens.

"""


def grammar() -> str:
    parts = [GENERATED, "# Statements\n\n", GRAMMAR_INTRO]
    for name, synopsis in sorted(all_synopses().items()):
        parts.append(f"\n## {name}\n\n```text\n{wrapped(synopsis)}\n```\n")
    parts.append("\n## Parts\n")
    for name, rule in sorted(all_rules().items()):
        parts.append(f"\n### {name}\n\n```text\n{wrapped(rule)}\n```\n")
    parts.append(
        "\n## Options\n\nOptions are `NAME [=] value`. Names may be written with `_` for a blank, in any case.\n"
    )
    for name, cls in sorted(OPTION_LISTS.items()):
        parts.append(f"\n### {name}s\n\n| option | takes |\n|---|---|\n")
        for rule_ in rules(cls):
            takes = " \\| ".join(rule_.choices) if rule_.choices else rule_.kind.value
            parts.append(f"| `{rule_.name}` | {takes} |\n")
    return "".join(parts)


def wrapped(synopsis: str, width: int = 100) -> str:
    """The synopsis with line breaks before outer brackets and in long choices."""
    lines: list[str] = [""]
    for part in _split(synopsis, " "):
        if lines[-1] and len(lines[-1]) + len(part) > width:
            lines.append("   ")
        if len(part) > width - 4 and part.startswith("{"):
            part = "\n    | ".join(alternative.strip() for alternative in _split(part[1:-1], "|")).join("{}")
        lines[-1] += (" " if lines[-1] else "") + part
    return "\n".join(lines)


def _split(text: str, separator: str) -> list[str]:
    """Split the text at separators that are outside of all brackets."""
    parts, depth = [""], 0
    for before, character in zip(" " + text, text, strict=False):
        if before + character != "->":
            depth += (character in "[{(<") - (character in "]})>")
        if character == separator and depth == 0:
            parts.append("")
        else:
            parts[-1] += character
    return parts


GRAMMAR_INTRO = """Keywords may be written in any case, and any of them can be a name when quoted. `[x]` is optional, `{a | b}` is a choice,
`<x>` stands for something of your own or for a part below, `[, ...]` means that more may follow. A test expands every
line here and gives it to the parser.
"""


def commands() -> str:
    parts = [GENERATED, "# Command line\n"]
    context = click.Context(command_line, info_name="headgate")
    for name in sorted(COMMANDS):
        command = command_line.get_command(context, name)
        assert command is not None
        parts += _help(command, context, f"headgate {name}", 2)
    return "".join(parts)


def _help(command: click.Command, parent: click.Context, title: str, depth: int) -> list[str]:
    context = click.Context(command, info_name=title.rpartition(" ")[2], parent=parent, max_content_width=100)
    parts = [f"\n{'#' * depth} {title}\n\n```text\n{command.get_help(context)}\n```\n"]
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            inner = command.get_command(context, name)
            assert inner is not None
            parts += _help(inner, context, f"{title} {name}", depth + 1)
    return parts


if __name__ == "__main__":
    sys.exit(main("--check" in sys.argv[1:]))

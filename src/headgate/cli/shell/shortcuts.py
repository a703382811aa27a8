r"""Commands of the shell that begin with a backslash. All but `\q` and `\?` stand for a statement."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

HELP = r"""statements end with a semicolon and may go over several lines
  \d            list all objects             \d name   describe one
  \t            list tasks, and how each does
  \q, Ctrl-D    leave                        \?        this help
  Ctrl-C        cancel the running statement, or what is typed
  Tab           complete keywords, names and columns
  Esc, Enter    send as it is"""


@dataclass(frozen=True, slots=True)
class Leave:
    pass


@dataclass(frozen=True, slots=True)
class Say:
    text: str


@dataclass(frozen=True, slots=True)
class Send:
    sql: str


Shortcut: TypeAlias = Leave | Say | Send


def shortcut(text: str) -> Shortcut | None:
    """What a line means that begins with a backslash; None for anything else."""
    line = text.strip().rstrip(";").rstrip()
    if not line.startswith("\\"):
        return None
    command, _, argument = line.partition(" ")
    match command, argument.strip():
        case ("\\q", _):
            return Leave()
        case ("\\?" | "\\h", _):
            return Say(HELP)
        case ("\\d", ""):
            return Send("SHOW OBJECTS;")
        case ("\\d", name):
            return Send(f"DESCRIBE {name};")
        case ("\\t", ""):
            return Send("SHOW TASKS;")
        case _:
            return Say(f'there is no command "{command}"; \\? lists them')

"""Clauses that several families of statements share."""

from __future__ import annotations

from headgate.schema.parse import read_type
from headgate.schema.types import Type
from headgate.sql.errors import ReplaceIfNotExists
from headgate.sql.parser.options import OptionRule, OptionTable, ValueKind
from headgate.text.cursor import Cursor, Identifier

ON_ERROR = OptionRule("ON ERROR", ValueKind.CHOICE, ("HALT", "QUARANTINE", "SKIP"), aliases=("ON INVALID",))
ON_SCHEMA_CHANGE = OptionRule("ON SCHEMA CHANGE", ValueKind.CHOICE, ("PIN", "FOLLOW", "HALT"))
CONFIRM = OptionRule("CONFIRM", ValueKind.BOOLEAN)

# A change that narrows or rewrites asks first; this is the answer.
CHANGE_OPTIONS = OptionTable("the change", (CONFIRM,))


def if_not_exists(cursor: Cursor, or_replace: bool = False) -> bool:
    start = cursor.token.start
    found = cursor.take("IF NOT EXISTS")
    if found and or_replace:
        raise ReplaceIfNotExists().at(cursor.span_from(start))
    return found


def optional_columns(cursor: Cursor) -> tuple[Identifier, ...]:
    """``[(column, …)]``."""
    if cursor.at("("):
        return cursor.identifiers()
    cursor.expecting("(")
    return ()


def strings(cursor: Cursor) -> tuple[str, ...]:
    """Strings in parentheses."""
    cursor.expect("(")
    found = [cursor.string()]
    while cursor.take(","):
        found.append(cursor.string())
    cursor.expect(")")
    return tuple(found)


def column_type(cursor: Cursor) -> Type:
    """Read a type. Something that cannot be one is an error of the statement, which lists what else may stand here."""
    if not cursor.at_name():
        cursor.expecting("a type")
        raise cursor.unexpected()
    return read_type(cursor)

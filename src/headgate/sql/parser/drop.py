"""DROP."""

from __future__ import annotations

from headgate.sql.ast.drop import DropObject
from headgate.sql.ast.names import object_name
from headgate.sql.ast.values import BooleanLiteral, option
from headgate.sql.parser.kinds import kind
from headgate.sql.parser.options import OptionRule, OptionTable, ValueKind
from headgate.sql.parser.values import with_options
from headgate.text.cursor import Cursor

DROP_OPTIONS = OptionTable("the statement", (OptionRule("DROP TARGET", ValueKind.BOOLEAN),))

TABLES = {"drop option": DROP_OPTIONS}
SYNOPSES = {
    "DROP": (
        "DROP {<kind> [IF EXISTS] <name> [CASCADE] | {STREAM | TABLE} [IF EXISTS] <name> [DELETE TOPIC] [CASCADE]"
        " | MATERIALIZATION [IF EXISTS] <name> [CASCADE] [WITH (<drop option>)]}"
    )
}


def drop(cursor: Cursor) -> DropObject:
    cursor.expect("DROP")
    kind_ = kind(cursor)
    exists = cursor.take("IF EXISTS")
    name = object_name(cursor)
    owns_topic = kind_ in ("STREAM", "TABLE")
    delete_topic = owns_topic and cursor.take("DELETE TOPIC")
    cascade = cursor.take("CASCADE")
    delete_topic = delete_topic or (owns_topic and cursor.take("DELETE TOPIC"))
    options = with_options(cursor, DROP_OPTIONS) if kind_ == "MATERIALIZATION" else ()
    drop_target = option(options, "DROP TARGET") == BooleanLiteral(True)
    return DropObject(kind_, name, exists, cascade, delete_topic, drop_target)

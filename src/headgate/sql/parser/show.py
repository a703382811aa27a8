"""SHOW, DESCRIBE and REPLAY QUARANTINE."""

from __future__ import annotations

from headgate.sql.ast.names import object_name
from headgate.sql.ast.session import ShowSearchPath
from headgate.sql.ast.show import (
    CollectionSchema,
    Describe,
    Listing,
    ReplayQuarantine,
    ShowCollectionSchema,
    ShowCreate,
    ShowLineage,
    ShowObjects,
    ShowSchemaHistory,
)
from headgate.sql.ast.statement import Statement
from headgate.sql.parser.kinds import kind, kind_before_name, take_listing
from headgate.text.cursor import Cursor

_SCHEMAS: tuple[CollectionSchema, ...] = ("WRITE", "READ", "INFERRED")

SYNOPSES = {
    "SHOW": "SHOW <listing> [FROM <schema>] [FOR <name>] [LIKE <string>]",
    "SHOW CREATE": "SHOW CREATE <kind> <name>",
    "SHOW LINEAGE": "SHOW LINEAGE FOR [<kind>] <name>",
    "SHOW SCHEMA FOR COLLECTION": "SHOW {WRITE | READ | INFERRED} SCHEMA FOR COLLECTION <name>",
    "SHOW SCHEMA HISTORY": "SHOW SCHEMA HISTORY FOR [<kind>] <name>",
    "SHOW SINK POLICY": "SHOW SINK POLICY <name>",
    "SHOW search_path": "SHOW search_path",
    "DESCRIBE": "DESCRIBE [EXTENDED] [<kind>] <name>",
    "REPLAY QUARANTINE": "REPLAY QUARANTINE FOR [<kind>] <name>",
}


def show(cursor: Cursor) -> Statement:
    cursor.expect("SHOW")
    if cursor.take("CREATE"):
        kind_ = kind(cursor)
        return ShowCreate(kind_, object_name(cursor))
    if cursor.take("LINEAGE FOR"):
        kind_or_none = kind_before_name(cursor)
        return ShowLineage(object_name(cursor), kind_or_none)
    if cursor.take("SCHEMA HISTORY FOR"):
        kind_or_none = kind_before_name(cursor)
        return ShowSchemaHistory(object_name(cursor), kind_or_none)
    if cursor.take("SEARCH_PATH"):
        return ShowSearchPath()
    for which in _SCHEMAS:
        if cursor.take(which):
            cursor.expect("SCHEMA FOR COLLECTION")
            return ShowCollectionSchema(which, object_name(cursor))
    return _show_objects(cursor)


def _show_objects(cursor: Cursor) -> Statement:
    listing = take_listing(cursor)
    if listing is not None:
        return _listing(cursor, listing)
    if cursor.take("SINK POLICY"):
        return (
            ShowObjects("SINK POLICIES")
            if cursor.at_end()
            else ShowCreate("SINK POLICY", object_name(cursor))
        )
    raise cursor.unexpected()


def _listing(cursor: Cursor, listing: Listing) -> ShowObjects:
    within = object_name(cursor, most=2) if cursor.take("FROM") or cursor.take("IN") else None
    subject = object_name(cursor) if cursor.take("FOR") else None
    like = cursor.string() if cursor.take("LIKE") else None
    return ShowObjects(listing, within, subject, like)


def describe(cursor: Cursor) -> Describe:
    cursor.expect("DESCRIBE")
    extended = cursor.at("EXTENDED") and cursor.at_name(1)
    if extended:
        cursor.step()
    kind_ = kind_before_name(cursor)
    if kind_ is None and not extended:
        cursor.expecting("EXTENDED")
    name = object_name(cursor)
    return Describe(name, kind_, cursor.take("EXTENDED") or extended)


def replay_quarantine(cursor: Cursor) -> ReplayQuarantine:
    cursor.expect("REPLAY QUARANTINE FOR")
    kind_ = kind_before_name(cursor)
    return ReplayQuarantine(object_name(cursor), kind_)

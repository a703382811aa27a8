"""Change events as Debezium writes them: the row before and after a change, in one record. The same for every format."""

from __future__ import annotations

from dataclasses import replace

from headgate.schema.types import Field, Record

BEFORE, AFTER = "before", "after"
ROW = "row"  # the name of the record of a row inside an event

EVENT_DOC = "A change of one row."
BEFORE_DOC = "The row before the change. Null if the change added the row."
AFTER_DOC = "The row after the change. Null if the change removed the row."


def change_event(row: Record) -> Record:
    """The record of a change of such rows. The doc of the rows stays with them."""
    named = replace(row, name=ROW)
    return Record((Field(BEFORE, named, True, BEFORE_DOC), Field(AFTER, named, True, AFTER_DOC)), doc=EVENT_DOC)

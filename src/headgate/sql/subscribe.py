"""SUBSCRIBE: the changes of a relation, until the client stops."""

from __future__ import annotations

from dataclasses import dataclass

from headgate.sql import options as o, statement as s
from headgate.text.cursor import Cursor


@dataclass(frozen=True, slots=True)
class SubscribeOptions(o.Options, owner="the subscription"):
    """Options of SUBSCRIBE. With SNAPSHOT the rows that there are come first."""

    snapshot: bool = o.option(True)


@dataclass(frozen=True, slots=True)
class Subscribe(s.Statement):
    """SUBSCRIBE TO relation."""

    words = "SUBSCRIBE"
    relation: s.ObjectName
    with_options: SubscribeOptions = SubscribeOptions()

    def sql(self) -> str:
        return s.words(f"SUBSCRIBE TO {s.print_name(self.relation)}", o.print_with_options(self.with_options))


def subscribe(cursor: Cursor) -> Subscribe:
    cursor.expect("SUBSCRIBE")
    if cursor.at("TO") and cursor.at_name(1):
        cursor.step()
    return Subscribe(s.object_name(cursor), o.with_options(cursor, SubscribeOptions))

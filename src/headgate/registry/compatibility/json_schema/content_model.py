"""What an object or array says about members that it does not name: open, partially open or closed.

Open: anything may be there. Partially open: what is there must match a schema. Closed: nothing may be there.
"""

from __future__ import annotations

from collections.abc import Iterator

import jsonschema_rs

from headgate.registry.compatibility.json_schema.kinds import Difference, changed
from headgate.registry.compatibility.json_schema.nodes import Anything, Array, Node, Nothing, Object
from headgate.registry.compatibility.json_schema.pairs import Pairs


def is_open(node: Object | Array) -> bool:
    if isinstance(node, Object) and node.patterns:
        return False
    return (
        node.permits_additional and node.additional is None and isinstance(node.unevaluated, Anything | None)
    )


def schema_for_property(node: Object, name: str) -> Node | None:
    """What a partially open object demands of a property that it does not name; None when it is closed to it."""
    for pattern, schema in node.patterns.items():
        if jsonschema_rs.Draft7Validator({"pattern": pattern}).is_valid(name):
            return schema
    return schema_for_rest(node)


def schema_for_rest(node: Object | Array) -> Node | None:
    if node.additional is not None:
        return node.additional
    if node.permits_additional and not isinstance(node.unevaluated, Anything | Nothing):
        return node.unevaluated
    return None


def compare_additional(
    old: Object | Array, new: Object | Array, keyword: str, kind: str, pairs: Pairs
) -> Iterator[Difference]:
    if old.permits_additional != new.permits_additional:
        yield changed(f"{kind}_ADDED" if new.permits_additional else f"{kind}_REMOVED", keyword)
    elif old.additional is None and new.additional is not None:
        yield changed(f"{kind}_NARROWED", keyword)
    elif new.additional is None and old.additional is not None:
        yield changed(f"{kind}_EXTENDED", keyword)
    else:
        yield from (found.below(keyword) for found in pairs.compare(old.additional, new.additional))


def compare_unevaluated(
    old: Node | None, new: Node | None, keyword: str, kind: str, pairs: Pairs
) -> Iterator[Difference]:
    """An absent keyword permits everything; ``false`` permits nothing; a schema is in between."""
    before, after = _openness(old), _openness(new)
    if before == after == 1:
        yield from (found.below(keyword) for found in pairs.compare(old, new))
    elif before == 0 < after:
        yield changed(f"{kind}_ADDED", keyword)
    elif after == 0 < before:
        yield changed(f"{kind}_REMOVED", keyword)
    elif before != after:
        yield changed(f"{kind}_NARROWED" if after < before else f"{kind}_EXTENDED", keyword)


def _openness(node: Node | None) -> int:
    match node:
        case Nothing():
            return 0
        case None | Anything():
            return 2
        case _:
            return 1

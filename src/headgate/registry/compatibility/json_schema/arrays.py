"""Arrays: items, tuples under content models, sizes.

Known to be too kind, as Confluent's registry is: the schema of ``contains`` does not count, only how often it must
match. Known to be too strict: a tuple may not take the place of ``items`` for all even where each place accepts what
``items`` did, for the two are compared apart.
"""

from __future__ import annotations

from collections.abc import Iterator

from headgate.registry.compatibility.json_schema.content_model import (
    compare_additional,
    compare_unevaluated,
    is_open,
    schema_for_rest,
)
from headgate.registry.compatibility.json_schema.kinds import Difference, all_compatible, changed
from headgate.registry.compatibility.json_schema.nodes import Anything, Array, Node, Nothing, describe
from headgate.registry.compatibility.json_schema.pairs import Pairs
from headgate.registry.compatibility.json_schema.scalars import bound


def compare_arrays(old: Array, new: Array, pairs: Pairs) -> Iterator[Difference]:
    yield from (found.below("items") for found in pairs.compare(old.every, new.every))
    yield from _tuples(old, new, pairs)
    yield from compare_additional(old, new, "additionalItems", "ADDITIONAL_ITEMS", pairs)
    yield from compare_unevaluated(
        old.unevaluated, new.unevaluated, "unevaluatedItems", "UNEVALUATED_ITEMS", pairs
    )
    yield from bound("maxItems", "MAX_ITEMS", old.max_items, new.max_items)
    yield from bound("minItems", "MIN_ITEMS", old.min_items, new.min_items)
    if old.is_unique != new.is_unique:
        yield changed("UNIQUE_ITEMS_ADDED" if new.is_unique else "UNIQUE_ITEMS_REMOVED", "uniqueItems")
    yield from bound("maxContains", "MAX_CONTAINS", old.max_contains, new.max_contains)
    yield from bound("minContains", "MIN_CONTAINS", old.min_contains, new.min_contains)


def _tuples(old: Array, new: Array, pairs: Pairs) -> Iterator[Difference]:
    for index in range(max(len(old.tuple_), len(new.tuple_))):
        if index >= len(new.tuple_):
            found = _removed(old.tuple_[index], new, pairs)
        elif index >= len(old.tuple_):
            found = _added(new.tuple_[index], old, pairs)
        else:
            found = iter(pairs.compare(old.tuple_[index], new.tuple_[index]))
        yield from (difference.below("items", str(index)) for difference in found)


def _removed(before: Node, new: Array, pairs: Pairs) -> Iterator[Difference]:
    if is_open(new):
        yield changed("ITEM_REMOVED_FROM_OPEN_CONTENT_MODEL")
        return
    rest = schema_for_rest(new)
    if rest is not None:
        found = pairs.compare(before, rest)
        yield from found
        covered = "IS" if all_compatible(found) else "NOT"
        yield changed(f"ITEM_REMOVED_{covered}_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL")
    elif isinstance(before, Nothing):
        yield changed("ITEM_WITH_FALSE_REMOVED_FROM_CLOSED_CONTENT_MODEL")
    else:
        yield changed("ITEM_REMOVED_FROM_CLOSED_CONTENT_MODEL", detail=f"it was {describe(before)}")


def _added(after: Node, old: Array, pairs: Pairs) -> Iterator[Difference]:
    if is_open(old):
        kind = "ITEM_WITH_EMPTY_SCHEMA" if isinstance(after, Anything) else "ITEM"
        yield changed(f"{kind}_ADDED_TO_OPEN_CONTENT_MODEL", detail=f"it is {describe(after)}")
        return
    rest = schema_for_rest(old)
    if rest is not None:
        found = pairs.compare(rest, after)
        yield from found
        covered = "IS" if all_compatible(found) else "NOT"
        yield changed(f"ITEM_ADDED_{covered}_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL")
    else:
        yield changed("ITEM_ADDED_TO_CLOSED_CONTENT_MODEL")

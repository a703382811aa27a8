"""Objects, arrays and plain values compared.

A content model says what an object or array allows beside the members that it names. Open: anything. Partially open:
what matches a schema. Closed: nothing.

Known to be too lenient, like Confluent's registry: `required` counts only for properties that both schemas name; a
required property with a default counts as present, although validators do not fill in defaults; `patternProperties`
count only as part of a content model; `propertyNames`, the schema of `contains`, `format` and draft 4's boolean
`exclusiveMaximum` do not count; and adding a type is no difference for a schema that already has keywords of that
type (`{"minLength": 1}` to `{"type": "string", "minLength": 1}`).

Known to be too strict: an optional property that is added to an open content model is refused, because older data
may contain anything under its name; and a tuple cannot replace `items`, even where each position accepts what
`items` did, because the two are compared separately.
"""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal

import jsonschema_rs

from headgate.registry.compatibility import json_nodes as n


def compare_objects(old: n.Object, new: n.Object, pairs: n.Pairs) -> Iterator[n.Difference]:
    """Properties one by one, then what holds for the object as a whole."""
    yield from _required(old, new)
    for name in dict.fromkeys((*old.properties, *new.properties)):
        yield from (found.below("properties", name) for found in _property(name, old, new, pairs))
    yield from _property_dependencies(old, new)
    yield from _schema_dependencies(old, new, pairs)
    yield from _compare_additional(old, new, "additionalProperties", pairs)
    yield from _compare_unevaluated(old.unevaluated, new.unevaluated, "unevaluatedProperties", pairs)
    yield from _limits(old, new, "maxProperties", "minProperties")


def _required(old: n.Object, new: n.Object) -> Iterator[n.Difference]:
    for name in old.properties:
        became_required = name in new.properties and name in new.required and name not in old.required
        if became_required and new.properties[name].common.default is None:
            yield n.changed("REQUIRED_ATTRIBUTE_ADDED", "required", name, detail=f'"{name}" has no default')


def _property(name: str, old: n.Object, new: n.Object, pairs: n.Pairs) -> Iterator[n.Difference]:
    """A property that both schemas name, or only one of them."""
    before, after = old.properties.get(name), new.properties.get(name)
    if before is None and after is not None:
        yield from _added_property(name, after, old, new, pairs)
    elif before is not None and after is None:
        rest, detail = _schema_for_property(new, name), f'"{name}" was {n.describe(before)}'
        yield from _removed("PROPERTY", before, new, rest, detail, pairs)
    else:
        yield from pairs.compare(before, after)


def _added_property(name: str, after: n.Node, old: n.Object, new: n.Object, pairs: n.Pairs) -> Iterator[n.Difference]:
    """Only the old content model counts: it says what data may already contain under that name."""
    detail = f'"{name}" is {n.describe(after)}'
    is_required, has_default = name in new.required, after.common.default is not None
    if _is_open(old):
        if not isinstance(after, n.Anything):
            demand = "REQUIRED_PROPERTY" if is_required else "OPTIONAL_PROPERTY"
            demand += "_WITH_DEFAULT" if is_required and has_default else ""
            yield n.changed(f"{demand}_ADDED_TO_OPEN_CONTENT_MODEL", detail=detail)
        return
    yield from _covered("PROPERTY_ADDED", _schema_for_property(old, name), after, detail, pairs)
    if is_required and not has_default:
        yield n.changed("REQUIRED_PROPERTY_ADDED_TO_UNOPEN_CONTENT_MODEL", detail=detail)


def _removed(
    what: str, before: n.Node, new: n.Object | n.Array, rest: n.Node | None, detail: str, pairs: n.Pairs
) -> Iterator[n.Difference]:
    """A property or item was removed. Only the new content model counts: it must accept what the member contained.
    ``rest`` is the schema that a partially open model has for it."""
    if rest is not None and not _is_open(new):
        yield from _covered(f"{what}_REMOVED", before, rest, detail, pairs)
    elif not _is_open(new) and not isinstance(before, n.Nothing):
        yield n.changed(f"{what}_REMOVED_FROM_CLOSED_CONTENT_MODEL", detail=detail)


def _covered(kind: str, before: n.Node | None, after: n.Node, detail: str, pairs: n.Pairs) -> Iterator[n.Difference]:
    """A member moved into or out of a partially open content model: its schemas before and after are compared. A model
    without a schema for it is closed, so no data has the member."""
    found = pairs.compare(before, after) if before is not None else []
    yield from found
    if found:
        yield n.changed(f"{kind}_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL", detail=detail)


def _property_dependencies(old: n.Object, new: n.Object) -> Iterator[n.Difference]:
    """A property that is present may need others. More of them refuse more."""
    for name, after in new.property_dependencies.items():
        before = old.property_dependencies.get(name)
        more = ", ".join(f'"{other}"' for other in sorted(after - (before or frozenset())))
        if before is None or more:
            kind = "ADDED" if before is None else "EXTENDED" if before < after else "CHANGED"
            detail = f"needs also {more}" if more else ""
            yield n.changed(f"DEPENDENCY_ARRAY_{kind}", "dependencies", name, detail=detail)


def _schema_dependencies(old: n.Object, new: n.Object, pairs: n.Pairs) -> Iterator[n.Difference]:
    """A property that is present may put a schema on the whole object."""
    for name, after in new.schema_dependencies.items():
        before = old.schema_dependencies.get(name)
        if before is None:
            yield n.changed("DEPENDENCY_SCHEMA_ADDED", "dependencies", name)
        else:
            yield from (found.below("dependencies", name) for found in pairs.compare(before, after))


def compare_arrays(old: n.Array, new: n.Array, pairs: n.Pairs) -> Iterator[n.Difference]:
    """Items, then what holds for the array as a whole."""
    yield from (found.below("items") for found in pairs.compare(old.every, new.every))
    yield from _tuples(old, new, pairs)
    yield from _compare_additional(old, new, "additionalItems", pairs)
    yield from _compare_unevaluated(old.unevaluated, new.unevaluated, "unevaluatedItems", pairs)
    yield from _limits(old, new, "maxItems", "minItems")
    if new.is_unique and not old.is_unique:
        yield n.changed("UNIQUE_ITEMS_ADDED", "uniqueItems")
    yield from _limits(old, new, "maxContains", "minContains")


def _tuples(old: n.Array, new: n.Array, pairs: n.Pairs) -> Iterator[n.Difference]:
    """Items by position. One schema may name more positions than the other."""
    for index in range(max(len(old.tuple_), len(new.tuple_))):
        if index >= len(new.tuple_):
            before = old.tuple_[index]
            found = _removed("ITEM", before, new, _schema_for_rest(new), f"it was {n.describe(before)}", pairs)
        elif index >= len(old.tuple_):
            found = _added_item(new.tuple_[index], old, pairs)
        else:
            found = iter(pairs.compare(old.tuple_[index], new.tuple_[index]))
        yield from (difference.below("items", str(index)) for difference in found)


def _added_item(after: n.Node, old: n.Array, pairs: n.Pairs) -> Iterator[n.Difference]:
    if not _is_open(old):
        yield from _covered("ITEM_ADDED", _schema_for_rest(old), after, "", pairs)
    elif not isinstance(after, n.Anything):
        yield n.changed("ITEM_ADDED_TO_OPEN_CONTENT_MODEL", detail=f"it is {n.describe(after)}")


def _is_open(node: n.Object | n.Array) -> bool:
    """Whether members that are not named may be anything."""
    if isinstance(node, n.Object) and node.patterns:
        return False
    return node.permits_additional and node.additional is None and isinstance(node.unevaluated, n.Anything | None)


def _schema_for_property(node: n.Object, name: str) -> n.Node | None:
    """What a partially open object requires of a property that it does not name. None if it is closed."""
    for pattern, schema in node.patterns.items():
        if jsonschema_rs.Draft7Validator({"pattern": pattern}).is_valid(name):
            return schema
    return _schema_for_rest(node)


def _schema_for_rest(node: n.Object | n.Array) -> n.Node | None:
    """What a partially open object or array requires of the other members. None if it is open or closed."""
    if node.additional is not None:
        return node.additional
    if node.permits_additional and not isinstance(node.unevaluated, n.Anything | n.Nothing):
        return node.unevaluated
    return None


def _compare_additional(
    old: n.Object | n.Array, new: n.Object | n.Array, keyword: str, pairs: n.Pairs
) -> Iterator[n.Difference]:
    """What the members that are not named may be: anything, what a schema accepts, or nothing."""
    if old.permits_additional and not new.permits_additional:
        yield n.changed(f"{n.upper_snake(keyword)}_REMOVED", keyword)
    elif old.permits_additional == new.permits_additional and new.additional is not None:
        if old.additional is None:
            yield n.changed(f"{n.upper_snake(keyword)}_NARROWED", keyword)
        else:
            yield from (found.below(keyword) for found in pairs.compare(old.additional, new.additional))


def _compare_unevaluated(
    old: n.Node | None, new: n.Node | None, keyword: str, pairs: n.Pairs
) -> Iterator[n.Difference]:
    """A missing keyword permits everything, `false` nothing, and a schema something in between."""
    before, after = _openness(old), _openness(new)
    if before == after == 1:
        yield from (found.below(keyword) for found in pairs.compare(old, new))
    elif after < before:
        yield n.changed(f"{n.upper_snake(keyword)}_{'NARROWED' if after else 'REMOVED'}", keyword)


def _openness(node: n.Node | None) -> int:
    """0: nothing, 1: what a schema accepts, 2: anything."""
    match node:
        case n.Nothing():
            return 0
        case None | n.Anything():
            return 2
        case _:
            return 1


def compare_strings(old: n.String, new: n.String) -> Iterator[n.Difference]:
    """Lengths and patterns."""
    yield from _limits(old, new, "maxLength", "minLength")
    if new.pattern is None or old.pattern == new.pattern:
        return
    if old.pattern is None:
        yield n.changed("PATTERN_ADDED", "pattern", detail=f'"{new.pattern}"')
    else:
        # We do not try to decide whether one regular expression accepts everything that another one does.
        yield n.changed("PATTERN_CHANGED", "pattern", detail=f'"{old.pattern}" to "{new.pattern}"')


def compare_numbers(old: n.Number, new: n.Number) -> Iterator[n.Difference]:
    yield from _limits(old, new, "maximum", "minimum", "exclusiveMaximum", "exclusiveMinimum")
    yield from _multiple_of(old.multiple_of, new.multiple_of)
    if new.is_integer and not old.is_integer:
        yield n.changed("TYPE_NARROWED", detail="number to integer")


def compare_enums(old: n.Enum, new: n.Enum) -> Iterator[n.Difference]:
    if gone := ", ".join(sorted(old.values - new.values)):
        kind = "ENUM_ARRAY_NARROWED" if new.values < old.values else "ENUM_ARRAY_CHANGED"
        yield n.changed(kind, "enum", detail=f"without {gone}")


def compare_constants(old: n.Const, new: n.Const) -> Iterator[n.Difference]:
    if old.value != new.value:
        yield n.changed("ENUM_ARRAY_CHANGED", "const", detail=f"{old.value} to {new.value}")


def _limits(old: n.Node, new: n.Node, *keywords: str) -> Iterator[n.Difference]:
    """Limits that became tighter. A node has the limit `maxLength` as its attribute `max_length`."""
    for keyword in keywords:
        kind = n.upper_snake(keyword)
        before: Decimal | None = getattr(old, kind.lower())
        after: Decimal | None = getattr(new, kind.lower())
        if after is None or before == after:
            continue
        if before is None:
            yield n.changed(f"{kind}_ADDED", keyword, detail=f"{after}")
        elif (after < before) == ("MAX" in kind):
            word = "DECREASED" if after < before else "INCREASED"
            yield n.changed(f"{kind}_{word}", keyword, detail=f"{before} to {after}")


def _multiple_of(old: Decimal | None, new: Decimal | None) -> Iterator[n.Difference]:
    """Values were multiples of the old number, so the new one must divide it."""
    if new is None or old == new:
        return
    if old is None:
        yield n.changed("MULTIPLE_OF_ADDED", "multipleOf", detail=f"{new}")
    elif old % new != 0:
        kind = "MULTIPLE_OF_EXPANDED" if new % old == 0 else "MULTIPLE_OF_CHANGED"
        yield n.changed(kind, "multipleOf", detail=f"{old} to {new}")

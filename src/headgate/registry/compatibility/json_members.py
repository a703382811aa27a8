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
        if name not in new.properties or (name in old.required) == (name in new.required):
            continue
        if name in old.required:
            yield n.changed("REQUIRED_ATTRIBUTE_REMOVED", "required", name)
        elif new.properties[name].common.default is not None:
            yield n.changed("REQUIRED_ATTRIBUTE_WITH_DEFAULT_ADDED", "required", name)
        else:
            yield n.changed("REQUIRED_ATTRIBUTE_ADDED", "required", name, detail=f'"{name}" has no default')


def _property(name: str, old: n.Object, new: n.Object, pairs: n.Pairs) -> Iterator[n.Difference]:
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
    demand = "REQUIRED_PROPERTY" if is_required else "OPTIONAL_PROPERTY"
    demand += "_WITH_DEFAULT" if is_required and has_default else ""
    if _is_open(old):
        if isinstance(after, n.Anything):
            demand = "PROPERTY_WITH_EMPTY_SCHEMA"
        yield n.changed(f"{demand}_ADDED_TO_OPEN_CONTENT_MODEL", detail=detail)
        return
    rest = _schema_for_property(old, name)
    if rest is not None:
        yield from _covered("PROPERTY_ADDED", rest, after, detail, pairs)
    yield n.changed(f"{demand}_ADDED_TO_UNOPEN_CONTENT_MODEL", detail=detail)


def _removed(
    what: str, before: n.Node, new: n.Object | n.Array, rest: n.Node | None, detail: str, pairs: n.Pairs
) -> Iterator[n.Difference]:
    """A property or item was removed. Only the new content model counts: it must accept what the member contained.
    ``rest`` is the schema that a partially open model has for it."""
    if _is_open(new):
        yield n.changed(f"{what}_REMOVED_FROM_OPEN_CONTENT_MODEL")
    elif rest is not None:
        yield from _covered(f"{what}_REMOVED", before, rest, detail, pairs)
    elif isinstance(before, n.Nothing):
        yield n.changed(f"{what}_WITH_FALSE_REMOVED_FROM_CLOSED_CONTENT_MODEL")
    else:
        yield n.changed(f"{what}_REMOVED_FROM_CLOSED_CONTENT_MODEL", detail=detail)


def _covered(kind: str, before: n.Node, after: n.Node, detail: str, pairs: n.Pairs) -> Iterator[n.Difference]:
    """A member moved into or out of a partially open content model: its schemas before and after are compared."""
    found = pairs.compare(before, after)
    yield from found
    covered = "IS" if n.all_compatible(found) else "NOT"
    yield n.changed(f"{kind}_{covered}_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL", detail=detail)


def _property_dependencies(old: n.Object, new: n.Object) -> Iterator[n.Difference]:
    for name in dict.fromkeys((*old.property_dependencies, *new.property_dependencies)):
        before, after = old.property_dependencies.get(name), new.property_dependencies.get(name)
        if before == after:
            continue
        if after is None:
            kind = "REMOVED"
        elif before is None:
            kind = "ADDED"
        else:
            kind = "EXTENDED" if before < after else "NARROWED" if after < before else "CHANGED"
        more = ", ".join(f'"{other}"' for other in sorted((after or frozenset()) - (before or frozenset())))
        detail = f"needs also {more}" if more else ""
        yield n.changed(f"DEPENDENCY_ARRAY_{kind}", "dependencies", name, detail=detail)


def _schema_dependencies(old: n.Object, new: n.Object, pairs: n.Pairs) -> Iterator[n.Difference]:
    for name in dict.fromkeys((*old.schema_dependencies, *new.schema_dependencies)):
        before, after = old.schema_dependencies.get(name), new.schema_dependencies.get(name)
        if after is None:
            yield n.changed("DEPENDENCY_SCHEMA_REMOVED", "dependencies", name)
        elif before is None:
            yield n.changed("DEPENDENCY_SCHEMA_ADDED", "dependencies", name)
        else:
            yield from (found.below("dependencies", name) for found in pairs.compare(before, after))


def compare_arrays(old: n.Array, new: n.Array, pairs: n.Pairs) -> Iterator[n.Difference]:
    yield from (found.below("items") for found in pairs.compare(old.every, new.every))
    yield from _tuples(old, new, pairs)
    yield from _compare_additional(old, new, "additionalItems", pairs)
    yield from _compare_unevaluated(old.unevaluated, new.unevaluated, "unevaluatedItems", pairs)
    yield from _limits(old, new, "maxItems", "minItems")
    if old.is_unique != new.is_unique:
        yield n.changed("UNIQUE_ITEMS_ADDED" if new.is_unique else "UNIQUE_ITEMS_REMOVED", "uniqueItems")
    yield from _limits(old, new, "maxContains", "minContains")


def _tuples(old: n.Array, new: n.Array, pairs: n.Pairs) -> Iterator[n.Difference]:
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
    rest = _schema_for_rest(old)
    if _is_open(old):
        kind = "ITEM_WITH_EMPTY_SCHEMA" if isinstance(after, n.Anything) else "ITEM"
        yield n.changed(f"{kind}_ADDED_TO_OPEN_CONTENT_MODEL", detail=f"it is {n.describe(after)}")
    elif rest is not None:
        yield from _covered("ITEM_ADDED", rest, after, "", pairs)
    else:
        yield n.changed("ITEM_ADDED_TO_CLOSED_CONTENT_MODEL")


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
    kind = n.upper_snake(keyword)
    if old.permits_additional != new.permits_additional:
        yield n.changed(f"{kind}_ADDED" if new.permits_additional else f"{kind}_REMOVED", keyword)
    elif old.additional is None and new.additional is not None:
        yield n.changed(f"{kind}_NARROWED", keyword)
    elif new.additional is None and old.additional is not None:
        yield n.changed(f"{kind}_EXTENDED", keyword)
    else:
        yield from (found.below(keyword) for found in pairs.compare(old.additional, new.additional))


def _compare_unevaluated(
    old: n.Node | None, new: n.Node | None, keyword: str, pairs: n.Pairs
) -> Iterator[n.Difference]:
    """A missing keyword permits everything, `false` nothing, and a schema something in between."""
    before, after, kind = _openness(old), _openness(new), n.upper_snake(keyword)
    if before == after == 1:
        yield from (found.below(keyword) for found in pairs.compare(old, new))
    elif before == 0 < after:
        yield n.changed(f"{kind}_ADDED", keyword)
    elif after == 0 < before:
        yield n.changed(f"{kind}_REMOVED", keyword)
    elif before != after:
        yield n.changed(f"{kind}_NARROWED" if after < before else f"{kind}_EXTENDED", keyword)


def _openness(node: n.Node | None) -> int:
    match node:
        case n.Nothing():
            return 0
        case None | n.Anything():
            return 2
        case _:
            return 1


def compare_strings(old: n.String, new: n.String) -> Iterator[n.Difference]:
    yield from _limits(old, new, "maxLength", "minLength")
    if old.pattern == new.pattern:
        return
    if old.pattern is None:
        yield n.changed("PATTERN_ADDED", "pattern", detail=f'"{new.pattern}"')
    elif new.pattern is None:
        yield n.changed("PATTERN_REMOVED", "pattern")
    else:
        # We do not try to decide whether one regular expression accepts everything that another one does.
        yield n.changed("PATTERN_CHANGED", "pattern", detail=f'"{old.pattern}" to "{new.pattern}"')


def compare_numbers(old: n.Number, new: n.Number) -> Iterator[n.Difference]:
    yield from _limits(old, new, "maximum", "minimum", "exclusiveMaximum", "exclusiveMinimum")
    yield from _multiple_of(old.multiple_of, new.multiple_of)
    if old.is_integer and not new.is_integer:
        yield n.changed("TYPE_EXTENDED", detail="integer to number")
    elif new.is_integer and not old.is_integer:
        yield n.changed("TYPE_NARROWED", detail="number to integer")


def compare_enums(old: n.Enum, new: n.Enum) -> Iterator[n.Difference]:
    if old.values == new.values:
        return
    gone = ", ".join(sorted(old.values - new.values))
    if old.values < new.values:
        yield n.changed("ENUM_ARRAY_EXTENDED", "enum")
    elif new.values < old.values:
        yield n.changed("ENUM_ARRAY_NARROWED", "enum", detail=f"without {gone}")
    else:
        yield n.changed("ENUM_ARRAY_CHANGED", "enum", detail=f"without {gone}")


def compare_constants(old: n.Const, new: n.Const) -> Iterator[n.Difference]:
    if old.value != new.value:
        yield n.changed("ENUM_ARRAY_CHANGED", "const", detail=f"{old.value} to {new.value}")


def _limits(old: n.Node, new: n.Node, *keywords: str) -> Iterator[n.Difference]:
    """How limits changed. A node has the limit `maxLength` as its attribute `max_length`."""
    for keyword in keywords:
        kind = n.upper_snake(keyword)
        yield from _limit(keyword, kind, getattr(old, kind.lower()), getattr(new, kind.lower()))


def _limit(keyword: str, kind: str, old: Decimal | None, new: Decimal | None) -> Iterator[n.Difference]:
    """How a limit changed. The kind says whether that is compatible."""
    if old == new:
        return
    if old is None:
        yield n.changed(f"{kind}_ADDED", keyword, detail=f"{new}")
    elif new is None:
        yield n.changed(f"{kind}_REMOVED", keyword)
    else:
        word = "INCREASED" if old < new else "DECREASED"
        yield n.changed(f"{kind}_{word}", keyword, detail=f"{old} to {new}")


def _multiple_of(old: Decimal | None, new: Decimal | None) -> Iterator[n.Difference]:
    if old is None or new is None or old == new:
        yield from _limit("multipleOf", "MULTIPLE_OF", old, new)
        return
    detail = f"{old} to {new}"
    if new % old == 0:
        yield n.changed("MULTIPLE_OF_EXPANDED", "multipleOf", detail=detail)
    elif old % new == 0:
        yield n.changed("MULTIPLE_OF_REDUCED", "multipleOf", detail=detail)
    else:
        yield n.changed("MULTIPLE_OF_CHANGED", "multipleOf", detail=detail)

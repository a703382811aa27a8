"""Objects: properties under content models, required, dependencies.

Known to be too kind, as Confluent's registry is, which looks at the same places: ``required`` counts only for
properties that both schemas name, a required property with a default counts as there (validators do not fill in
defaults), ``patternProperties`` count only as part of a content model, and ``propertyNames`` does not count. Known to
be too strict: a property added to an open content model is refused even when it is optional, because older data may
hold anything under its name.
"""

from __future__ import annotations

from collections.abc import Iterator

from headgate.registry.compatibility.json_schema.content_model import (
    compare_additional,
    compare_unevaluated,
    is_open,
    schema_for_property,
)
from headgate.registry.compatibility.json_schema.kinds import Difference, all_compatible, changed
from headgate.registry.compatibility.json_schema.nodes import Anything, Node, Nothing, Object, describe
from headgate.registry.compatibility.json_schema.pairs import Pairs
from headgate.registry.compatibility.json_schema.scalars import bound


def compare_objects(old: Object, new: Object, pairs: Pairs) -> Iterator[Difference]:
    yield from _required(old, new)
    for name in dict.fromkeys((*old.properties, *new.properties)):
        yield from (found.below("properties", name) for found in _property(name, old, new, pairs))
    yield from _property_dependencies(old, new)
    yield from _schema_dependencies(old, new, pairs)
    yield from compare_additional(old, new, "additionalProperties", "ADDITIONAL_PROPERTIES", pairs)
    unevaluated = "unevaluatedProperties", "UNEVALUATED_PROPERTIES"
    yield from compare_unevaluated(old.unevaluated, new.unevaluated, *unevaluated, pairs)
    yield from bound("maxProperties", "MAX_PROPERTIES", old.max_properties, new.max_properties)
    yield from bound("minProperties", "MIN_PROPERTIES", old.min_properties, new.min_properties)


def _required(old: Object, new: Object) -> Iterator[Difference]:
    for name in old.properties:
        if name not in new.properties or (name in old.required) == (name in new.required):
            continue
        if name in old.required:
            yield changed("REQUIRED_ATTRIBUTE_REMOVED", "required", name)
        elif new.properties[name].common.default is not None:
            yield changed("REQUIRED_ATTRIBUTE_WITH_DEFAULT_ADDED", "required", name)
        else:
            yield changed("REQUIRED_ATTRIBUTE_ADDED", "required", name, detail=f'"{name}" has no default')


def _property(name: str, old: Object, new: Object, pairs: Pairs) -> Iterator[Difference]:
    before, after = old.properties.get(name), new.properties.get(name)
    if before is None and after is not None:
        yield from _added(name, after, old, new, pairs)
    elif before is not None and after is None:
        yield from _removed(name, before, new, pairs)
    else:
        yield from pairs.compare(before, after)


def _removed(name: str, before: Node, new: Object, pairs: Pairs) -> Iterator[Difference]:
    """Only the newer content model counts: it must accept what the property held."""
    if is_open(new):
        yield changed("PROPERTY_REMOVED_FROM_OPEN_CONTENT_MODEL")
        return
    rest = schema_for_property(new, name)
    if rest is not None:
        found = pairs.compare(before, rest)
        yield from found
        covered = "IS" if all_compatible(found) else "NOT"
        yield changed(
            f"PROPERTY_REMOVED_{covered}_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL", detail=f'"{name}"'
        )
    elif isinstance(before, Nothing):
        yield changed("PROPERTY_WITH_FALSE_REMOVED_FROM_CLOSED_CONTENT_MODEL")
    else:
        yield changed("PROPERTY_REMOVED_FROM_CLOSED_CONTENT_MODEL", detail=f'"{name}" was {describe(before)}')


def _added(name: str, after: Node, old: Object, new: Object, pairs: Pairs) -> Iterator[Difference]:
    """Only the older content model counts: it says what may already be under that name."""
    detail = f'"{name}" is {describe(after)}'
    is_required, has_default = name in new.required, after.common.default is not None
    demand = "REQUIRED_PROPERTY" if is_required else "OPTIONAL_PROPERTY"
    demand += "_WITH_DEFAULT" if is_required and has_default else ""
    if is_open(old):
        if isinstance(after, Anything):
            demand = "PROPERTY_WITH_EMPTY_SCHEMA"
        yield changed(f"{demand}_ADDED_TO_OPEN_CONTENT_MODEL", detail=detail)
        return
    rest = schema_for_property(old, name)
    if rest is not None:
        found = pairs.compare(rest, after)
        yield from found
        covered = "IS" if all_compatible(found) else "NOT"
        yield changed(f"PROPERTY_ADDED_{covered}_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL", detail=detail)
    yield changed(f"{demand}_ADDED_TO_UNOPEN_CONTENT_MODEL", detail=detail)


def _property_dependencies(old: Object, new: Object) -> Iterator[Difference]:
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
        yield changed(f"DEPENDENCY_ARRAY_{kind}", "dependencies", name, detail=detail)


def _schema_dependencies(old: Object, new: Object, pairs: Pairs) -> Iterator[Difference]:
    for name in dict.fromkeys((*old.schema_dependencies, *new.schema_dependencies)):
        before, after = old.schema_dependencies.get(name), new.schema_dependencies.get(name)
        if after is None:
            yield changed("DEPENDENCY_SCHEMA_REMOVED", "dependencies", name)
        elif before is None:
            yield changed("DEPENDENCY_SCHEMA_ADDED", "dependencies", name)
        else:
            yield from (found.below("dependencies", name) for found in pairs.compare(before, after))

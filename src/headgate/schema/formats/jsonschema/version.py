"""The next version of a JSON Schema that `to_json_schema` made.

What both versions have keeps the description that it was published with. A property that the old version lacks is never
required, because old documents lack it, and has its own default if the source's field has one.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TypeAlias, cast

from headgate.schema import types as t

Schema: TypeAlias = dict[str, object]

_INNER = ("items", "additionalProperties")  # keywords whose value may be a schema
_BRANCHES = ("oneOf", "allOf")  # lists of schemas; the last one is the schema of the value
_NAMED = ("properties", "$defs")  # schemas by name


def next_version(old: Schema, new: Schema, defaults: t.Type | None = None, *, keep_docs: bool = True) -> Schema:
    """The new schema as the next version of the old one. ``defaults`` is the type with the defaults of its fields. Without
    ``keep_docs`` the descriptions are those of the new schema."""
    made = _with_definitions(_next(old, new, defaults), old, new)
    return made if keep_docs else cast(Schema, _with_docs_of(made, new))


def _with_definitions(made: Schema, old: Schema, new: Schema) -> Schema:
    known, defined = _schemas(old, "$defs"), _schemas(new, "$defs")
    if defined:
        made["$defs"] = {
            name: _next(known[name], schema, None) if name in known else schema for name, schema in defined.items()
        }
    return made


def differs(old: Schema, new: Schema) -> bool:
    """Whether two versions differ in more than their descriptions."""
    return _without_docs(old) != _without_docs(new)


def _next(old: Schema, new: Schema, defaults: t.Type | None) -> Schema:
    kept: Schema = {key: old[key] for key in ("description", "default") if key in old}
    made: Schema = {**kept, **{key: value for key, value in new.items() if key != "description"}}
    for word in _BRANCHES:
        if word in new:
            *others, value = cast(list[Schema], new[word])
            made[word] = [*others, _next(_value(old), value, defaults)]
    body = _body(old)
    for word, inner in zip(_INNER, _inner_defaults(defaults), strict=True):
        if isinstance(new.get(word), dict) and isinstance(body.get(word), dict):
            made[word] = _next(cast(Schema, body[word]), cast(Schema, new[word]), inner)
    if "properties" in new and "properties" in body:
        _set_properties(made, body, new, defaults)
    return made


def _set_properties(made: Schema, old: Schema, new: Schema, defaults: t.Type | None) -> None:
    known = _schemas(old, "properties")
    given = {f.name: f for f in defaults.fields} if isinstance(defaults, t.Record) else {}
    properties: dict[str, Schema] = {}
    for name, schema in _schemas(new, "properties").items():
        field = given.get(name)
        if name in known:
            properties[name] = _next(known[name], schema, field.type if field is not None else None)
        else:
            properties[name] = _added(schema, field)
    made["properties"] = properties
    before = cast(list[str], old.get("required", []))
    required = [name for name in cast(list[str], new.get("required", [])) if name in before]
    made.pop("required", None)
    if required:
        made["required"] = required


def _added(schema: Schema, field: t.Field | None) -> Schema:
    """A property that the old version lacks."""
    if field is None or field.default is None:
        return schema
    return {**schema, "default": json.loads(field.default)}


def _value(schema: Schema) -> Schema:
    """The schema inside oneOf or allOf; without these the schema itself, whose description belongs to the field."""
    for word in _BRANCHES:
        if word in schema:
            return cast(list[Schema], schema[word])[-1]
    return {key: value for key, value in schema.items() if key not in ("description", "default")}


def _body(schema: Schema) -> Schema:
    """The innermost schema of the value."""
    while any(word in schema for word in _BRANCHES):
        schema = _value(schema)
    return schema


def _inner_defaults(defaults: t.Type | None) -> tuple[t.Type | None, t.Type | None]:
    """The types of elements and of values of a map."""
    element = defaults.element if isinstance(defaults, t.Array) else None
    return element, defaults.value if isinstance(defaults, t.Map) else None


def _schemas(schema: Mapping[str, object], word: str) -> dict[str, Schema]:
    return cast(dict[str, Schema], schema.get(word, {}))


def _with_docs_of(made: object, new: object) -> object:
    """A schema that was made from another one, with the descriptions of that one. The rest of both has the same form."""
    match made, new:
        case dict(), dict():
            # A property may be called "description": its value is a schema.
            rest = {
                k: _with_docs_of(v, new.get(k)) for k, v in made.items() if k != "description" or isinstance(v, dict)
            }
            return {"description": new["description"], **rest} if isinstance(new.get("description"), str) else rest
        case list(), list() if len(made) == len(new):
            return [_with_docs_of(one, other) for one, other in zip(made, new, strict=True)]
        case _:
            return made


def _without_docs(schema: Schema) -> Schema:
    """The schema without descriptions. The names of properties are no keywords."""
    made: Schema = {}
    for key, value in schema.items():
        if key in _NAMED:
            made[key] = {name: _without_docs(one) for name, one in _schemas(schema, key).items()}
        elif key in _BRANCHES:
            made[key] = [_without_docs(one) for one in cast(list[Schema], value)]
        elif key in _INNER and isinstance(value, dict):
            made[key] = _without_docs(value)
        elif key == "required":
            made[key] = sorted(cast(list[str], value))
        elif key != "description":
            made[key] = value
    return made

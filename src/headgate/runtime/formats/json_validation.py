"""Checks of JSON documents: by the schema of their writer, and that pyarrow makes columns of them without a loss.

A validator finds what its schema refers to among the references of the schema, and nowhere else.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import Any, TypeAlias

import jsonschema_rs
import pyarrow as pa
import pyarrow.compute as pc

from headgate.runtime.formats.arrow_reader import NeedsExactRead
from headgate.schema.names import ROOT, field_path, value_path
from headgate.schema.types import Array, Bigint, Double, Enum, Integer, Map, Real, Record, Type
from headgate.schema.written import WrittenSchema

Check: TypeAlias = Callable[[list[Any]], None]

_NULL: type = type(None)
_WHOLE: frozenset[type] = frozenset((int, _NULL))
_NUMBER: frozenset[type] = frozenset((int, float, _NULL))


def check_kinds(type_: Type) -> Check:
    """A check that raises NeedsExactRead if any value is not of a kind that pyarrow turns into the type without a loss.
    Texts and booleans need no check: pyarrow takes nothing else for them."""
    match type_:
        case Integer() | Bigint():
            return lambda values: _of_kinds(values, _WHOLE)
        case Real() | Double():
            return lambda values: _of_kinds(values, _NUMBER)
        case Enum(symbols):
            known = frozenset((*symbols, None))
            return lambda values: _among(values, known)
        case Record(fields):
            inner = [(f.name, check_kinds(f.type)) for f in fields if _needs_check(f.type)]
            return lambda values: _records(values, inner)
        case Array(element):
            of_elements = check_kinds(element)
            return lambda values: of_elements(list(chain.from_iterable(_present(values, list))))
        case Map(value):
            of_values = check_kinds(value)
            return lambda values: of_values(list(chain.from_iterable([one.values() for one in _present(values, dict)])))
        case _:
            return lambda _: None


def check_exact(made: pa.Array, type_: Type, nullable: bool) -> None:
    """Raises NeedsExactRead for a null where none is allowed, and for a number that has become infinite."""
    if made.null_count and not nullable:
        raise NeedsExactRead
    match type_:
        case Real() | Double():
            if not pc.all(pc.is_finite(made), min_count=0).as_py():
                raise NeedsExactRead
        case Record(fields):
            present = made.filter(made.is_valid()) if made.null_count else made
            for number, field in enumerate(fields):
                check_exact(present.field(number), field.type, field.nullable)
        case Array(element, element_nullable):
            check_exact(made.flatten(), element, element_nullable)
        case Map(value, value_nullable):
            present = made.filter(made.is_valid()) if made.null_count else made
            check_exact(present.items, value, value_nullable)
        case _:
            pass


def _needs_check(type_: Type) -> bool:
    return isinstance(type_, Integer | Bigint | Real | Double | Enum | Record | Array | Map)


def _of_kinds(values: list[Any], kinds: frozenset[type]) -> None:
    if not kinds.issuperset(map(type, values)):
        raise NeedsExactRead


def _among(values: list[Any], known: frozenset[str | None]) -> None:
    if not known.issuperset(values):
        raise NeedsExactRead


def _records(values: list[Any], inner: list[tuple[str, Check]]) -> None:
    present = _present(values, dict)
    for name, check in inner:
        check([one.get(name) for one in present])


def _present(values: list[Any], kind: type) -> list[Any]:
    kinds = set(map(type, values))
    if kinds == {kind}:
        return values
    if not kinds <= {kind, _NULL}:
        raise NeedsExactRead
    return [value for value in values if value is not None]


_BASE = "json-schema:///"  # the address that the library gives to a schema without one
_ONE = "headgate-one-of-many"
DRAFT_7 = "http://json-schema.org/draft-07/schema#"
_OWN_NAMES = {"$id", "id", "$anchor", "$dynamicRef", "$dynamicAnchor", "$recursiveRef", "$recursiveAnchor"}

# Drafts before 2019-09 check formats. For these formats the type of the column decides instead: its times have no zone.
_FORMATS: Mapping[str, Callable[[str], bool]] = dict.fromkeys(("date", "time", "date-time", "uuid"), lambda _: True)


def validator(schema: WrittenSchema) -> jsonschema_rs.Validator:
    """A validator of documents. Without `$schema` the schema is of the newest draft that it is valid in, among 2020-12 and 7.

    Raises ValueError, jsonschema_rs.ValidationError or jsonschema_rs.ReferencingError if there can be none.
    """
    document = json.loads(schema.text)
    try:
        return _validator(schema, document)
    except jsonschema_rs.ValidationError:
        if not isinstance(document, dict) or "$schema" in document:
            raise
        return _validator(schema, {"$schema": DRAFT_7, **document})


def _validator(schema: WrittenSchema, document: Any) -> jsonschema_rs.Validator:
    documents = {name: json.loads(text) for name, text in schema.references}
    named = {str(d["$id"]): d for d in documents.values() if isinstance(d, dict) and "$id" in d}

    def retrieve(uri: str) -> Any:
        address = uri.partition("#")[0]
        for name, document in (*documents.items(), *named.items()):
            if address == name or address.endswith(f"/{name}"):
                return document
        raise ValueError("a reference leads nowhere")

    return jsonschema_rs.validator_for(document, formats=dict(_FORMATS), retriever=retrieve, base_uri=_BASE)


def batch_validator(schema: WrittenSchema) -> jsonschema_rs.Validator | None:
    """A validator of a list of documents. It takes a third of the time that they take one by one.

    None if the schema has `$id` or anchors (references inside it would change their meaning) or is invalid.
    """
    document = json.loads(schema.text)
    if not isinstance(document, dict) or _OWN_NAMES & _keys(document):
        return None
    one = {"$ref": f"{_BASE}{_ONE}"}
    try:
        draft = DRAFT_7 if isinstance(validator(schema), jsonschema_rs.Draft7Validator) else document.get("$schema")
        version = {} if draft is None else {"$schema": draft}
        many = {**version, "type": "array", "items": one}
        named = replace(schema, text=json.dumps(many), references=(*schema.references, (_ONE, schema.text)))
        return validator(named)
    except (ValueError, jsonschema_rs.ReferencingError):
        return None


def _keys(node: object) -> set[str]:
    """The keywords of a schema and of the schemas inside it. A key whose value is an object is left out: it may be the name
    of a property."""
    match node:
        case dict():
            own = {key for key, value in node.items() if not isinstance(value, dict)}
            return own.union(*(_keys(value) for value in node.values()))
        case list():
            return {key for value in node for key in _keys(value)}
        case _:
            return set()


def instance_path(steps: Sequence[str | int], type_: Type) -> str:
    """The path of a value by the names of its type. The keys of a map are data, so they are left out."""
    path = ROOT
    for step in steps:
        match type_:
            case Record() if (field := type_.field(str(step))) is not None:
                path, type_ = field_path(path, field.name), field.type
            case Array():
                path, type_ = f"{path}[{step}]", type_.element
            case Map():
                path, type_ = value_path(path), type_.value
            case _:
                break
    return path

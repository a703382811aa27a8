"""A registered schema as a value, and how it is parsed: with its references, and into a canonical form."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, replace
from typing import Generic, TypeVar, cast

from headgate.errors import HeadgateError
from headgate.registry.errors import Fault, MalformedSchema, ReferenceCycle, UnknownReference
from headgate.registry.json_documents import check_json_schema, read_json
from headgate.schema.errors import RefusedProto, SchemaError
from headgate.schema.formats.avro import parse as avro
from headgate.schema.formats.avro.tree import AvroType, Named, canonical_text
from headgate.schema.formats.protobuf import print_proto, read_files
from headgate.schema.written import Json, SchemaFormat, WrittenSchema, compact


@dataclass(frozen=True, slots=True, order=True)
class Reference:
    """A schema used by another: the name under which it is used there, and the version that it is."""

    name: str
    subject: str
    version: int


@dataclass(frozen=True, slots=True)
class Schema:
    """A schema's text as its author wrote it, or as the registry returned it."""

    text: str
    type: SchemaFormat = SchemaFormat.AVRO
    references: tuple[Reference, ...] = ()


def to_register(schema: WrittenSchema) -> Schema:
    """The schema in the form that a registry takes. It must have no references, because their subjects are not known
    here."""
    assert not schema.references
    return Schema(schema.text, schema.format)


@dataclass(frozen=True, slots=True)
class ParsedSchema:
    """A well-formed schema with everything it refers to.

    `schema` is the one given, except that normalizing sorts its references. Two schemas are the same if their
    `canonical` texts are. `definition` is the parsed JSON of an Avro or JSON schema; for Protobuf it is a tuple of
    `FileDescriptorProto`, the file and then all that it imports. `dependencies` are all schemas that it refers to, also
    indirectly, each once and after its own dependencies. `name` is the name under which a dependency is used. It is
    empty for the outermost schema.
    """

    schema: Schema
    canonical: str
    definition: object
    dependencies: tuple[ParsedSchema, ...] = ()
    name: str = ""


def parse(schema: Schema, resolve: Callable[[Reference], Schema | None], *, normalize: bool = False) -> ParsedSchema:
    """Parse a schema and everything it refers to.

    `resolve` returns the schema that a reference means. If it returns None or raises a HeadgateError, the reference
    is unknown. With `normalize`, the canonical text does not depend on formatting, on the order of JSON keys or on
    the order of references. Raises MalformedSchema, UnknownReference or ReferenceCycle.
    """
    if normalize:
        schema = replace(schema, references=tuple(sorted(set(schema.references))))
    return _read(schema, _Dependencies(resolve).of(schema), "", normalize)


def avro_types(parsed: ParsedSchema) -> AvroType:
    """The linked nodes of an Avro schema, with the types of its references in place."""
    return _parse_avro(cast(Json, parsed.definition), _known_names(parsed.dependencies)).type


class _Dependencies:
    """Collects the schemas that references mean, each once, inner ones first."""

    def __init__(self, resolve: Callable[[Reference], Schema | None]) -> None:
        self._resolve = resolve
        self._read: dict[Reference, ParsedSchema] = {}
        self._open: list[Reference] = []

    def of(self, schema: Schema) -> tuple[ParsedSchema, ...]:
        """Everything that a schema refers to, also indirectly, each once and after its own dependencies."""
        found: dict[int, ParsedSchema] = {}
        for reference in schema.references:
            parsed = self._one(reference)
            for each in (*parsed.dependencies, parsed):
                found.setdefault(id(each), each)
        return tuple(found.values())

    def _one(self, reference: Reference) -> ParsedSchema:
        """One dependency. `_open` holds the references on the way to it, so that a cycle is noticed."""
        place = (reference.subject, reference.version)
        subjects = [(other.subject, other.version) for other in self._open]
        if place in subjects:
            around = [subject for subject, _ in subjects[subjects.index(place) :]]
            raise ReferenceCycle((*around, reference.subject))
        if reference not in self._read:
            schema = self._look_up(reference)
            self._open.append(reference)
            self._read[reference] = _read(schema, self.of(schema), reference.name, normalize=False)
            self._open.pop()
        return self._read[reference]

    def _look_up(self, reference: Reference) -> Schema:
        unknown = UnknownReference(reference.name, reference.subject, reference.version)
        try:
            schema = self._resolve(reference)
        except HeadgateError as wrong:
            raise unknown from wrong
        if schema is None:
            raise unknown
        return schema


def _read(schema: Schema, dependencies: tuple[ParsedSchema, ...], name: str, normalize: bool) -> ParsedSchema:
    """Parse one schema whose dependencies are parsed. All of them must be of its type."""
    strangers = [other for other in dependencies if other.schema.type is not schema.type]
    if strangers:
        reason = f'reference "{strangers[0].name}" is a schema of another type, {strangers[0].schema.type}'
        raise MalformedSchema(schema.type.value, (Fault("", reason),))
    try:
        canonical, definition = _READERS[schema.type](schema.text, dependencies, normalize)
    except RecursionError:
        raise MalformedSchema(schema.type.value, (Fault("", "nested too deeply"),)) from None
    return ParsedSchema(schema, canonical, definition, dependencies, name)


def _read_avro(text: str, dependencies: tuple[ParsedSchema, ...], normalize: bool) -> tuple[str, object]:
    definition = read_json(text, "AVRO")
    known = _known_names(dependencies)
    node = _parse_avro(definition, known).type
    return canonical_text(node, frozenset(known), normalize=normalize), definition


def _parse_avro(definition: Json, known: Mapping[str, Named]) -> avro.Parsed:
    parsed = avro.parse(definition, known)
    if parsed.faults:
        raise MalformedSchema("AVRO", tuple(Fault(fault.path, fault.reason) for fault in parsed.faults))
    return parsed


def _known_names(dependencies: tuple[ParsedSchema, ...]) -> dict[str, Named]:
    """The types that dependencies define. A dependency that is used under two names defines its types once."""
    names: dict[str, Named] = {}
    for definition in {other.canonical: other.definition for other in dependencies}.values():
        names = _parse_avro(cast(Json, definition), names).names
    return names


def _read_json_schema(text: str, dependencies: tuple[ParsedSchema, ...], normalize: bool) -> tuple[str, object]:
    definition = read_json(text, "JSON")
    check_json_schema(definition, [(other.name, cast(Json, other.definition)) for other in dependencies])
    return compact(definition, sort_keys=normalize), definition


def _read_protobuf(text: str, dependencies: tuple[ParsedSchema, ...], normalize: bool) -> tuple[str, object]:
    """A text is .proto or the base64 of a serialized descriptor."""
    del normalize  # Printing the descriptor leaves out what is formatting only.
    if not text.strip():
        raise MalformedSchema("PROTOBUF", (Fault("", "the text is empty"),))
    try:
        files = read_files(text, [(other.name, other.schema.text) for other in dependencies])
    except RefusedProto as wrong:
        others = (other.split(": ", 1) for other in wrong.others)
        first = Fault(f"{wrong.file}:{wrong.line}:{wrong.column}", wrong.problem)
        faults = (first, *(Fault(place, problem) for place, problem in others))
        raise MalformedSchema("PROTOBUF", faults, wrong.line, wrong.column) from wrong
    except SchemaError as wrong:
        raise MalformedSchema("PROTOBUF", (Fault("", wrong.message()),)) from wrong
    return print_proto(files[0], files[1:]), tuple(files)


# Each returns the canonical text and the definition.
_READERS: dict[SchemaFormat, Callable[[str, tuple[ParsedSchema, ...], bool], tuple[str, object]]] = {
    SchemaFormat.AVRO: _read_avro,
    SchemaFormat.JSON: _read_json_schema,
    SchemaFormat.PROTOBUF: _read_protobuf,
}

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class SchemaCache(Generic[K, V]):
    """Keeps schemas that never change, by id or by reference: at most `capacity`, those used last.

    Safe to use from several threads. Two threads may fetch the same schema at the same time.
    """

    def __init__(self, capacity: int = 1000) -> None:
        self._capacity = capacity
        self._values: OrderedDict[K, V] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, key: K, fetch: Callable[[], V]) -> V:
        """The value that is kept, or that `fetch` returns. If `fetch` raises, nothing is kept."""
        with self._lock:
            if key in self._values:
                self._values.move_to_end(key)
                return self._values[key]
        # The lock is not held here: a slow registry must not block threads that need other schemas.
        value = fetch()
        with self._lock:
            self._values[key] = value
            if len(self._values) > self._capacity:
                self._values.popitem(last=False)
        return value

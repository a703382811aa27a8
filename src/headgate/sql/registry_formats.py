"""Formats with a schema registry: their options, strategies, frozen schemas and docs (`DOC ON …`)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, TypeAlias, assert_never

from headgate.errors import Span
from headgate.schema.names import FieldNames
from headgate.sql import options as o, statement as s
from headgate.sql.errors import DocNotText, MissingRegistry, RegistryGivenTwice, RepeatedClause, RepeatedOption
from headgate.text.cursor import Cursor, Identifier

Side: TypeAlias = Literal["KEY", "VALUE"]
RegistryKind: TypeAlias = Literal["AVRO", "PROTOBUF", "JSON SCHEMA"]
SIDES: tuple[Side, ...] = ("KEY", "VALUE")
REGISTRY_KINDS: tuple[RegistryKind, ...] = ("AVRO", "PROTOBUF", "JSON SCHEMA")


def subject_name(topic: str, side: Side) -> str:
    """The subject of the registry that has the schemas of a topic's keys or values."""
    return f"{topic}-{side.lower()}"


@dataclass(frozen=True, slots=True)
class LatestStrategy:
    """The latest schema of the subject at the time of the statement."""

    def sql(self) -> str:
        return "LATEST"


@dataclass(frozen=True, slots=True)
class IdStrategy:
    """The schema with this id."""

    id: int

    def sql(self) -> str:
        return f"ID {self.id}"


@dataclass(frozen=True, slots=True)
class InlineStrategy:
    """A schema that is written in the statement."""

    schema: str

    def sql(self) -> str:
        return f"INLINE {s.print_string(self.schema)}"


@dataclass(frozen=True, slots=True)
class SchemaStrategy:
    """``KEY|VALUE STRATEGY``: which schema of a subject the reader uses."""

    side: Side
    strategy: LatestStrategy | IdStrategy | InlineStrategy


@dataclass(frozen=True, slots=True)
class PendingId:
    """The id that a registry will give to the schema that an earlier statement of the script registers for a subject.
    ``registry`` is the id of the connection's object, or an address."""

    registry: int | str
    subject: str


@dataclass(frozen=True, slots=True)
class FrozenSchema:
    """A schema as the registry returned it: ``SEED KEY SCHEMA ID 3 '…'``.

    ``references`` are pairs of name and schema. A schema comes after those that it needs. ``past`` marks an earlier
    version than the one that the source was created with; it is kept for the defaults of its fields. ``names`` are the
    fields that a schema of a sink calls by other names than SQL. ``single`` marks the generated schema of a stream whose values are
    one column without a record around it. The id is pending only between planning and doing; the catalog never stores a pending one.
    """

    side: Side
    id: int | PendingId
    schema: str
    references: tuple[tuple[str, str], ...] = ()
    past: bool = False
    names: FieldNames = ()
    single: bool = False

    @property
    def known_id(self) -> int | None:
        """The id; None while it is pending."""
        return self.id if isinstance(self.id, int) else None

    def sql(self) -> str:
        past = " PAST" if self.past else ""
        seed = f"SEED {self.side}{past} SCHEMA ID {self.known_id or 0} {s.print_string(self.schema)}"
        references = f"REFERENCES {o.print_map(self.references)}" if self.references else ""
        names = ", ".join(f"{_print_field(path)} = {s.print_string(name)}" for path, name in self.names)
        return s.words(seed, references, f"NAMES ({names})" if names else "")


@dataclass(frozen=True, slots=True)
class DocTarget:
    """The target of ``[KEY|VALUE] DOC ON TYPE|COLUMN``. Without a side it is in both schemas.

    ``name`` is a type or a relation. ``column`` is one of its columns, followed by fields of records in that column; it
    is empty for the type or relation itself.
    """

    side: Side | None
    name: s.ObjectName = field(metadata=s.names(s.Kind.TYPE, *s.RELATIONS))
    column: tuple[Identifier, ...] = ()

    def sql(self) -> str:
        if not self.column:
            return s.words(self.side or "", f"DOC ON TYPE {s.print_name(self.name)}")
        first = s.ObjectName((*self.name.parts, self.column[0]))
        return s.words(self.side or "", f"DOC ON COLUMN {s.print_column(first, self.column[1:])}")


@dataclass(frozen=True, slots=True)
class DocOn:
    """The doc of one type or column in the schema that a sink publishes.

    ``frozen`` marks a comment that was taken when the sink was made. REFRESH DOCS replaces it. It is printed like a doc
    that the user gave.
    """

    target: DocTarget
    doc: str
    frozen: bool = False

    def sql(self) -> str:
        return f"{self.target.sql()} = {s.print_string(self.doc)}"


# Items of the list that are no plain options. An error for an unknown option names them too.
_SEEDS = ("CONFLUENT SCHEMA REGISTRY", "SEED KEY SCHEMA", "SEED VALUE SCHEMA")
Level: TypeAlias = Literal[
    "BACKWARD_TRANSITIVE", "BACKWARD", "FORWARD_TRANSITIVE", "FORWARD", "FULL_TRANSITIVE", "FULL", "NONE"
]


@dataclass(frozen=True, slots=True)
class InlineFormatOptions(o.Options, owner="the format"):
    """CONFLUENT WIRE FORMAT says whether values begin with the id of a schema."""

    confluent_wire_format: bool = o.option(True)


@dataclass(frozen=True, slots=True)
class ReadFormatOptions(InlineFormatOptions):
    """Options of a source's format."""

    also: ClassVar[tuple[str, ...]] = ("KEY STRATEGY", "VALUE STRATEGY", *_SEEDS)


@dataclass(frozen=True, slots=True)
class WriteFormatOptions(o.Options, owner="the format"):
    """Options of a sink's format, for the schemas that it publishes."""

    also: ClassVar[tuple[str, ...]] = (
        "DOC ON TYPE", "DOC ON COLUMN", "KEY DOC ON TYPE", "KEY DOC ON COLUMN", "VALUE DOC ON TYPE",
        "VALUE DOC ON COLUMN", *_SEEDS,
    )  # fmt: skip
    avro_key_fullname: str | None = o.option(aliases=("KEY FULLNAME",))
    avro_value_fullname: str | None = o.option(aliases=("VALUE FULLNAME",))
    null_defaults: bool = o.option(False)
    key_compatibility_level: Level | None = o.option()
    value_compatibility_level: Level | None = o.option()
    key_schema_id: int | None = o.option()
    value_schema_id: int | None = o.option()
    ignore_comments: bool = o.option(False)


FormatOptions: TypeAlias = ReadFormatOptions | WriteFormatOptions


@dataclass(frozen=True, slots=True)
class RegistryUrl:
    """A registry without a connection object."""

    url: str


@dataclass(frozen=True, slots=True)
class RegistryFormat:
    """A format whose schemas are in a registry, given by connection or URL. ``message`` picks one of a Protobuf
    file."""

    kind: RegistryKind
    registry: s.ObjectName | RegistryUrl = field(metadata=s.names(s.Kind.CONNECTION))
    options: FormatOptions
    strategies: tuple[SchemaStrategy, ...] = ()
    docs: tuple[DocOn, ...] = ()
    frozen: tuple[FrozenSchema, ...] = ()
    message: str | None = None

    def strategy(self, side: Side) -> LatestStrategy | IdStrategy | InlineStrategy | None:
        """The strategy of a side; None if the statement gives none."""
        return next((given.strategy for given in self.strategies if given.side == side), None)

    @property
    def write_options(self) -> WriteFormatOptions:
        """The options of a sink's format."""
        assert isinstance(self.options, WriteFormatOptions)
        return self.options

    def sql(self) -> str:
        message = f"MESSAGE {s.print_string(self.message)}" if self.message is not None else ""
        registry = (
            s.print_string(self.registry.url)
            if isinstance(self.registry, RegistryUrl)
            else f"CONNECTION {s.print_name(self.registry)}"
        )
        listed = [
            *o.print_each_option(self.options),
            *(f"{given.side} STRATEGY = {given.strategy.sql()}" for given in self.strategies),
            *(each.sql() for each in self.docs),
            *(each.sql() for each in self.frozen),
        ]
        shown = s.block(listed) if listed else ""
        return s.words(self.kind, message, "USING CONFLUENT SCHEMA REGISTRY", registry, shown)


def registry_kind(cursor: Cursor) -> RegistryKind:
    return cursor.one_of(REGISTRY_KINDS)


def side(cursor: Cursor) -> Side:
    return cursor.one_of(SIDES)


def registry_format(
    cursor: Cursor, kind: RegistryKind, cls: type[FormatOptions], message: str | None = None
) -> RegistryFormat:
    """Read what follows the kind of the format: the registry, after USING or among the options, and the options."""
    start = cursor.tokens[cursor.index - 1].start
    registry = _registry(cursor, listed=False) if cursor.take("USING CONFLUENT SCHEMA REGISTRY") else None
    if registry is None and not cursor.at("("):
        cursor.expecting("(")
        raise cursor.unexpected()
    listed = _FormatOptions(cls)
    if cursor.at("("):
        listed.read(cursor)
    if registry is not None and listed.registry is not None:
        raise RegistryGivenTwice().at(cursor.span_from(start))
    registry = registry or listed.registry
    if registry is None:
        raise MissingRegistry(kind).at(cursor.span_from(start))
    # Materialize writes strategies behind the list, without commas.
    while cursor.at("KEY", "STRATEGY") or cursor.at("VALUE", "STRATEGY"):
        span = cursor.token.span
        listed.add(_strategy(cursor), span)
    return listed.format(kind, registry, message)


def _registry(cursor: Cursor, listed: bool) -> s.ObjectName | RegistryUrl:
    """Read a connection or a URL. In an option list the word CONNECTION is optional."""
    url = cursor.take_string()
    if url is not None:
        return RegistryUrl(url)
    if not listed:
        cursor.expect("CONNECTION")
    elif cursor.at("CONNECTION") and cursor.at_name(1):
        cursor.step()
    return s.object_name(cursor)


class _FormatOptions:
    """Collects the items of a format's list. Refuses an item that may occur only once and is there already."""

    def __init__(self, cls: type[FormatOptions]) -> None:
        self.cls = cls
        self.registry: s.ObjectName | RegistryUrl | None = None
        self.options: dict[str, Any] = {}
        self.others: list[SchemaStrategy | DocOn | FrozenSchema] = []

    def read(self, cursor: Cursor) -> None:
        """Read the list in parentheses."""
        for _ in cursor.items():
            start = cursor.token.start
            if cursor.take("CONFLUENT SCHEMA REGISTRY"):
                cursor.take("=")
                if self.registry is not None:
                    raise RepeatedClause("CONFLUENT SCHEMA REGISTRY").at(cursor.span_from(start))
                self.registry = _registry(cursor, listed=True)
            elif (other := self._other(cursor)) is not None:
                self.add(other, cursor.span_from(start))
            else:
                o.take_option(cursor, self.cls, self.options)

    def _other(self, cursor: Cursor) -> SchemaStrategy | DocOn | FrozenSchema | None:
        """Read an item that is no plain option; None if a plain option comes next."""
        if cursor.at("SEED"):
            return _seed(cursor)
        # Only sinks publish schemas, so only they have docs.
        if self.cls is WriteFormatOptions and at_doc(cursor):
            return doc_on(cursor)
        if self.cls is ReadFormatOptions and (cursor.at("KEY", "STRATEGY") or cursor.at("VALUE", "STRATEGY")):
            return _strategy(cursor)
        return None

    def add(self, item: SchemaStrategy | DocOn | FrozenSchema, span: Span) -> None:
        """Add a strategy, a doc or a frozen schema."""
        if any(self._clash(item, other) for other in self.others):
            raise RepeatedOption(_item_name(item), self.cls.owner).at(span)
        self.others.append(item)

    def _clash(self, item: object, other: object) -> bool:
        """Whether only one of the two items may be in the list."""
        match item, other:
            case DocOn(target), DocOn(same):
                return target == same
            case SchemaStrategy(side), SchemaStrategy(same_side):
                return side == same_side
            case FrozenSchema(side, number), FrozenSchema(same_side, same_number):
                # A source keeps every schema that it followed.
                reads = self.cls is ReadFormatOptions
                return side == same_side and (number == same_number or not reads)
            case _:
                return False

    def format(self, kind: RegistryKind, registry: s.ObjectName | RegistryUrl, message: str | None) -> RegistryFormat:
        return RegistryFormat(
            kind,
            registry,
            self.cls(**self.options),
            tuple(one for one in self.others if isinstance(one, SchemaStrategy)),
            tuple(one for one in self.others if isinstance(one, DocOn)),
            tuple(one for one in self.others if isinstance(one, FrozenSchema)),
            message,
        )


def _item_name(item: SchemaStrategy | DocOn | FrozenSchema) -> str:
    """The item as an error names it."""
    match item:
        case DocOn(target):
            return target.sql()
        case SchemaStrategy(side):
            return f"{side} STRATEGY"
        case FrozenSchema(side):
            return f"SEED {side} SCHEMA"
        case _:
            assert_never(item)


def _strategy(cursor: Cursor) -> SchemaStrategy:
    """Read KEY or VALUE STRATEGY and the strategy."""
    of = side(cursor)
    cursor.expect("STRATEGY")
    cursor.take("=")
    match cursor.choose("LATEST", "ID", "INLINE"):
        case "LATEST":
            return SchemaStrategy(of, LatestStrategy())
        case "ID":
            return SchemaStrategy(of, IdStrategy(cursor.whole_number()))
        case "INLINE":
            return SchemaStrategy(of, InlineStrategy(cursor.string()))
        case _:
            raise cursor.unexpected()


def _seed(cursor: Cursor) -> FrozenSchema:
    """Read a frozen schema. Users do not write SEED; SHOW CREATE prints it, so that the text creates the same
    source."""
    cursor.expect("SEED")
    of = side(cursor)
    past = bool(cursor.take("PAST"))
    cursor.expect("SCHEMA ID")
    number = cursor.whole_number()
    schema = cursor.string()
    references = o.read_map(cursor) if cursor.take("REFERENCES") else ()
    names = tuple(_field_name(cursor) for _ in cursor.items()) if cursor.take("NAMES") else ()
    return FrozenSchema(of, number, schema, references, past, names)


def _field_name(cursor: Cursor) -> tuple[tuple[str, ...], str]:
    """Read a field, which may lie in a record, and its name in a schema."""
    path = [cursor.identifier().name]
    while cursor.take("."):
        path.append(cursor.identifier().name)
    cursor.expect("=")
    return tuple(path), cursor.string()


def _print_field(path: tuple[str, ...]) -> str:
    return ".".join(s.print_identifier(Identifier(name, quoted=True)) for name in path)


def at_doc(cursor: Cursor) -> bool:
    return cursor.at("DOC") or cursor.at("KEY", "DOC") or cursor.at("VALUE", "DOC")


def doc_on(cursor: Cursor) -> DocOn:
    target = doc_target(cursor)
    cursor.take("=")
    doc = cursor.take_string()
    if doc is None:
        raise DocNotText(target.sql()).at(cursor.token.span)
    return DocOn(target, doc)


def doc_target(cursor: Cursor) -> DocTarget:
    """Read what a doc is about."""
    of = None if cursor.at("DOC") else side(cursor)
    cursor.expect("DOC ON")
    if cursor.take("COLUMN"):
        column, fields = s.column_path(cursor)
        *above, last = column.parts
        return DocTarget(of, s.ObjectName(tuple(above), span=column.span), (last, *fields))
    cursor.expect("TYPE")
    return DocTarget(of, s.object_name(cursor))

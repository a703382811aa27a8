"""The docs of a sink's schemas: what can have one, where it comes from, and how it gets into a record.

For each side, a doc is searched for in this order: `KEY DOC ON` or `VALUE DOC ON`, `DOC ON`, the comment. Docs are found by
the SQL names of types and columns, whatever the format calls them. When a sink is made, the comments that it uses are
frozen into its statement as `DOC ON`; from then on only its statement counts.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from headgate.catalog.catalog import Catalog, column_comment, field_comment, object_comment
from headgate.catalog.graph import type_by_path
from headgate.catalog.names import owned_column, resolve_fields
from headgate.catalog.objects import Column, Object
from headgate.errors import InternalError, similar_names
from headgate.plan import doc_errors as errors
from headgate.plan.definitions import RecordEncoding, SinkDefinition
from headgate.plan.publish.given import is_given
from headgate.resolve.definitions import spelled
from headgate.resolve.statements import object_id
from headgate.schema.names import ROOT, element_path, field_path, print_name, value_path
from headgate.schema.types import Array, DocumentedPart, Enum, Field, Map, Named, Record, Type, map_inner
from headgate.sql.formats import Format, Formats, format_of
from headgate.sql.registry_formats import SIDES, DocOn, DocTarget, RegistryFormat, Side
from headgate.sql.sinks import CreateSink
from headgate.sql.statement import Kind, ObjectName

MOST_BYTES = 65_536  # of one doc in UTF-8; a registry stores it again with every version of the schema
FieldPath = tuple[str, ...]
"""SQL names of fields from the outermost record on. Arrays and maps on the way add nothing."""


@dataclass(frozen=True, slots=True)
class DocKey:
    """What a doc is about: a type or a relation, or one of its columns, followed by fields of records in the column."""

    object: int
    column: FieldPath = ()


@dataclass(frozen=True, slots=True)
class DocSlot:
    """A record, an enum or a field of a schema that can have a doc, and the comment that the catalog has for it.

    ``key`` is None for a record or enum without a name of its own, which no statement can document. A named type that is
    used several times has its slots where it is used first, because schemas define it there.
    """

    key: DocKey | None
    part: DocumentedPart
    path: FieldPath
    shown: str
    comment: str | None


def doc_slots(catalog: Catalog, relation: Object, columns: Sequence[Column]) -> tuple[DocSlot, ...]:
    """Everything in a record of these columns that can have a doc, the record first."""
    walk = _Slots(catalog)
    walk.add(DocKey(relation.id), DocumentedPart.TYPE, (), ROOT, object_comment(relation))
    for column in columns:
        walk.column(relation.id, column, (), ROOT)
    return tuple(walk.found)


@dataclass(slots=True)
class _Slots:
    """Walks the types of columns."""

    catalog: Catalog
    found: list[DocSlot] = field(default_factory=list)
    seen: set[int] = field(default_factory=set)

    def add(self, key: DocKey | None, part: DocumentedPart, path: FieldPath, shown: str, comment: str | None) -> None:
        self.found.append(DocSlot(key, part, path, shown, comment))

    def column(self, owner: int, column: Column, path: FieldPath, shown: str) -> None:
        key, inner, text = DocKey(owner, (column.name,)), (*path, column.name), field_path(shown, column.name)
        self.add(key, DocumentedPart.FIELD, inner, text, column_comment(self.catalog, column))
        self.type(column.type, key, column, inner, text)

    def type(self, type_: Type, key: DocKey, column: Column, path: FieldPath, shown: str) -> None:
        """The slots in a type. ``key`` and ``column`` are the column, and the field of it, that has the type."""
        match type_:
            case Named():
                self._named(catalog_type(self.catalog, type_), key, column, path, shown)
            case Record():
                self.add(None, DocumentedPart.TYPE, path, shown, type_.doc)
                for inner in type_.fields:
                    self._field(inner, DocKey(key.object, (*key.column, inner.name)), column, path, shown)
            case Enum():
                self.add(None, DocumentedPart.TYPE, path, shown, type_.doc)
            case Array():
                self.type(type_.element, key, column, path, element_path(shown))
            case Map():
                self.type(type_.value, key, column, path, value_path(shown))
            case _:
                return

    def _named(self, found: Object, key: DocKey, column: Column, path: FieldPath, shown: str) -> None:
        if not has_doc(found):
            self.type(found.as_type(), key, column, path, shown)
        elif found.id not in self.seen:
            self.seen.add(found.id)
            self.add(DocKey(found.id), DocumentedPart.TYPE, path, shown, object_comment(found))
            for inner in found.columns:
                self.column(found.id, inner, path, shown)

    def _field(self, inner: Field, key: DocKey, column: Column, path: FieldPath, shown: str) -> None:
        comment = field_comment(self.catalog, column, key.column[1:], inner.doc)
        deeper, text = (*path, inner.name), field_path(shown, inner.name)
        self.add(key, DocumentedPart.FIELD, deeper, text, comment.text if comment else None)
        self.type(inner.type, key, column, deeper, text)


def catalog_type(catalog: Catalog, named: Named) -> Object:
    found = type_by_path(catalog, named.parts)
    if found is None:
        raise InternalError(f"type {print_name(named.parts)} is not in the catalog")
    return found


def has_doc(found: Object) -> bool:
    """Whether a type of the catalog has a doc in schemas. Lists, maps and other names of a type have none."""
    return found.body is None or isinstance(found.body, Enum)


# docs in records


@dataclass(frozen=True, slots=True)
class DocumentedTypes:
    """Puts the docs of one side into records. ``imported`` keeps the docs that records and enums without a name of their
    own have from the schema of a source."""

    catalog: Catalog
    docs: Mapping[DocKey, str]
    imported: bool = True

    def record(self, relation: Object, columns: Sequence[Column]) -> Record:
        """The columns of a relation as one record with docs. Named types in it stay names: see `resolve`."""
        fields = tuple(self._column(relation.id, column) for column in columns)
        return Record(fields, doc=self.docs.get(DocKey(relation.id)))

    def resolve(self, named: Named) -> Type:
        """The definition of a type of the catalog, with docs."""
        found = catalog_type(self.catalog, named)
        doc = self.docs.get(DocKey(found.id))
        if isinstance(found.body, Enum):
            return replace(found.body, doc=doc)
        if found.body is not None:
            return self._type(found.body, DocKey(found.id))
        return Record(tuple(self._column(found.id, column) for column in found.columns), doc=doc)

    def expanded(self, record: Record) -> Record:
        """The record with the definitions of named types in place of their names, for formats that have no names."""
        made = self._expanded(record)
        assert isinstance(made, Record)
        return made

    def _expanded(self, type_: Type) -> Type:
        return map_inner(self.resolve(type_) if isinstance(type_, Named) else type_, self._expanded)

    def _column(self, owner: int, column: Column) -> Field:
        key = DocKey(owner, (column.name,))
        return Field(column.name, self._type(column.type, key), column.nullable, self.docs.get(key))

    def _type(self, type_: Type, key: DocKey) -> Type:
        match type_:
            case Named():
                found = catalog_type(self.catalog, type_)
                return type_ if has_doc(found) else self._type(found.as_type(), key)
            case Record():
                fields = tuple(self._field(inner, key) for inner in type_.fields)
                return replace(type_, fields=fields, doc=type_.doc if self.imported else None)
            case Enum():
                return type_ if self.imported else replace(type_, doc=None)
            case _:
                return map_inner(type_, lambda inner: self._type(inner, key))

    def _field(self, inner: Field, owner: DocKey) -> Field:
        key = DocKey(owner.object, (*owner.column, inner.name))
        return replace(inner, type=self._type(inner.type, key), doc=self.docs.get(key))


def documented_types(
    catalog: Catalog, relation: Object, columns: Sequence[Column], formats: Formats, side: Side, *, comments: bool
) -> DocumentedTypes:
    """The types of one side of a sink with the docs of its statement. ``comments`` adds those of the catalog where the
    statement has none, unless the statement says IGNORE COMMENTS."""
    docs = statement_docs(formats, side)
    ignored = ignores_comments(format_of(formats, side))
    if comments and not ignored:
        slots = doc_slots(catalog, relation, columns)
        docs = {s.key: s.comment for s in slots if s.key is not None and s.comment} | docs
    return DocumentedTypes(catalog, docs, imported=not ignored)


def ignores_comments(format_: Format) -> bool:
    return isinstance(format_, RegistryFormat) and format_.write_options.ignore_comments


def statement_docs(formats: Formats, side: Side) -> dict[DocKey, str]:
    """The docs that a statement has for a side. One with KEY or VALUE wins over one without."""
    format_ = format_of(formats, side)
    given = format_.docs if isinstance(format_, RegistryFormat) else ()
    both = {doc_key(each.target): each.doc for each in given if each.target.side is None}
    return both | {doc_key(each.target): each.doc for each in given if each.target.side == side}


def doc_key(target: DocTarget) -> DocKey:
    """What the target of a resolved statement is, once its columns have their exact names."""
    return DocKey(object_id(target.name), tuple(part.name for part in target.column))


# docs in statements


def with_full_names(catalog: Catalog, statement: CreateSink) -> CreateSink:
    """The sink with full names of types and relations and exact names of columns in its docs. Raises for a column that does
    not exist, a doc that is given twice, is empty or too long."""
    formats, name = statement.formats, str(statement.name.parts[-1].name)
    for format_ in formats.each():
        if isinstance(format_, RegistryFormat):
            docs = [replace(each, target=full_target(catalog, each.target)) for each in format_.docs]
            known: set[object] = set()
            for each in docs:
                check_text(each.target.sql(), each.doc)
                if (meant := (each.target.side, doc_key(each.target))) in known:
                    raise errors.DocTwice(each.target.sql(), name).at(each.target.name.span)
                known.add(meant)
            formats = with_docs(formats, format_, docs)
    return replace(statement, formats=formats)


def with_docs(formats: Formats, old: RegistryFormat, docs: Sequence[DocOn]) -> Formats:
    """The formats with other docs in one of them."""
    new = replace(old, docs=tuple(docs))
    return replace(formats, key=new) if old is formats.key else replace(formats, value=new)


def full_target(catalog: Catalog, target: DocTarget) -> DocTarget:
    """The target with the full name of its object and the exact names of its column and fields."""
    owner = catalog.get(object_id(target.name))
    full = replace(full_name(catalog, owner.id), span=target.name.span)
    if not target.column:
        return replace(target, name=full)
    first, *fields = target.column
    column = owned_column(catalog, owner, ObjectName((*target.name.parts, first), span=target.name.span))
    names = (column.name, *resolve_fields(catalog, column, fields))
    return replace(target, name=full, column=tuple(map(spelled, names)))


def full_name(catalog: Catalog, id_: int) -> ObjectName:
    return ObjectName(tuple(map(spelled, catalog.path(id_))), id_)


def check_text(target: str, text: str) -> None:
    if not text.strip():
        raise errors.DocEmpty(target)
    check_length(target, text)


def check_length(target: str, text: str) -> None:
    if (found := len(text.encode("utf-8", "surrogatepass"))) > MOST_BYTES:
        raise errors.DocTooLong(target, found, MOST_BYTES)


# which docs belong to a sink


@dataclass(frozen=True, slots=True)
class SinkSlots:
    """The slots of each side of a sink, and what they are about. ``key`` is None for a sink without a key."""

    value: tuple[DocSlot, ...]
    key: tuple[DocSlot, ...] | None
    about: Mapping[Side, frozenset[DocKey]]

    def of(self, side: Side) -> tuple[DocSlot, ...]:
        return self.value if side == "VALUE" else self.key or ()


def sink_slots(catalog: Catalog, sink: SinkDefinition) -> SinkSlots:
    """The slots of the schemas that a sink publishes."""
    relation = catalog.get(sink.relation)

    def slots(side: RecordEncoding) -> tuple[DocSlot, ...]:
        written = set(side.columns)
        found = doc_slots(catalog, relation, [c for c in relation.columns if c.name in written])
        return tuple(slot for slot in found if not _is_below(slot.path, side.left_out))

    value, key = slots(sink.value), None if sink.key is None else slots(sink.key)
    sides: dict[Side, tuple[DocSlot, ...]] = {"KEY": key or (), "VALUE": value}
    about = {side: frozenset(s.key for s in found if s.key is not None) for side, found in sides.items()}
    return SinkSlots(value, key, about)


def _is_below(path: FieldPath, others: Collection[FieldPath]) -> bool:
    """Whether a path is one of the others or leads through one of them."""
    return any(path[: len(other)] == other for other in others)


def doc_lists(formats: Formats) -> Iterator[tuple[RegistryFormat, tuple[Side, ...]]]:
    """The formats that have docs, each with the sides that it is for."""
    lists: list[tuple[Format | None, tuple[Side, ...]]] = [
        (formats.value, SIDES if formats.key is None else ("VALUE",)), (formats.key, ("KEY",)),
    ]  # fmt: skip
    for format_, sides in lists:
        if isinstance(format_, RegistryFormat):
            generated = tuple(side for side in sides if not is_given(format_, side))
            if generated:
                yield format_, generated


def check_docs(catalog: Catalog, statement: CreateSink, sink: SinkDefinition) -> None:
    """Check that every doc of a statement with full names is about a part of the sink's schemas."""
    slots = sink_slots(catalog, sink)
    for format_, sides in doc_lists(statement.formats):
        for each in format_.docs:
            if not each.frozen:
                check_target(catalog, each.target, sides, sink, slots)


def check_target(
    catalog: Catalog, target: DocTarget, sides: tuple[Side, ...], sink: SinkDefinition, slots: SinkSlots
) -> None:
    """Check a target of a format that is for these sides."""
    text, key, span = target.sql(), doc_key(target), target.name.span
    if target.side is not None and target.side not in sides:
        raise errors.DocOfOtherSide(text, sink.name, sides[0].lower()).at(span)
    if target.side == "KEY" and slots.key is None:
        raise errors.KeyDocWithoutKey(text, sink.name).at(span)
    meant = sides if target.side is None else (target.side,)
    if any(key in slots.about[side] for side in meant):
        return
    if meant == ("KEY",) and key in slots.about["VALUE"] and sink.key is not None:
        raise errors.KeyDocOutsideKey(text, sink.name, sink.key.columns).at(span)
    known = [
        _shown(catalog, each) for side in meant for each in slots.about[side] if bool(each.column) is bool(key.column)
    ]
    near = similar_names(_shown(catalog, key), sorted(known))
    raise errors.DocNotInSink(text, sink.name, meant[0].lower() if len(meant) == 1 else "", near).at(span)


def _shown(catalog: Catalog, key: DocKey) -> str:
    name = catalog.display_name(key.object)
    return f"{name}.{print_name(key.column)}" if key.column else name


# freezing


def with_frozen_docs(
    catalog: Catalog, statement: CreateSink, sink: SinkDefinition, below: Collection[FieldPath] | None = None
) -> CreateSink:
    """The sink with every comment that its schemas use as an explicit doc, after those that it has. ``below`` limits that to
    the slots at and below some fields of the value."""
    slots, formats = sink_slots(catalog, sink), statement.formats
    for format_, sides in doc_lists(formats):
        if not ignores_comments(format_):
            found = [
                s for side in sides for s in slots.of(side) if below is None or (s.path and _is_below(s.path, below))
            ]
            prefix = sides[0] if len(sides) == 1 else None
            new = _frozen(catalog, sink.relation, format_.docs, found, prefix)
            formats = with_docs(formats, format_, (*format_.docs, *new))
    return replace(statement, formats=formats)


def _frozen(
    catalog: Catalog, relation: int, given: Sequence[DocOn], slots: Sequence[DocSlot], prefix: Side | None
) -> Iterator[DocOn]:
    """The comments of slots as docs, those of types before those of the relation. A comment that a doc of the statement
    hides on every side is left out."""
    hidden = {doc_key(each.target) for each in given if each.target.side in (None, prefix)}
    comments = {slot.key: slot.comment for slot in slots if slot.key is not None and slot.key not in hidden}
    for key in sorted(comments, key=lambda key: (key.object == relation, key.object)):
        comment = comments[key]
        if comment:
            target = DocTarget(prefix, full_name(catalog, key.object), tuple(map(spelled, key.column)))
            check_length(target.sql(), comment)
            yield DocOn(target, comment, frozen=True)


def without_frozen_docs(statement: CreateSink) -> CreateSink:
    formats = statement.formats
    for format_, _ in doc_lists(formats):
        formats = with_docs(formats, format_, [each for each in format_.docs if not each.frozen])
    return replace(statement, formats=formats)


def types_named(catalog: Catalog, statement: CreateSink) -> tuple[int, ...]:
    """The types that the docs of a sink name. They cannot be dropped while the sink names them."""
    named = [object_id(doc.target.name) for format_, _ in doc_lists(statement.formats) for doc in format_.docs]
    return tuple(id_ for id_ in dict.fromkeys(named) if catalog.get(id_).kind is Kind.TYPE)


def without_foreign_docs(catalog: Catalog, statement: CreateSink, sink: SinkDefinition) -> CreateSink:
    """The sink without the docs of types and columns that are no part of its schemas, as after SET FROM."""
    slots, formats = sink_slots(catalog, sink), statement.formats
    for format_, sides in doc_lists(formats):
        about = frozenset().union(*(slots.about[side] for side in sides))
        formats = with_docs(formats, format_, [each for each in format_.docs if doc_key(each.target) in about])
    return replace(statement, formats=formats)

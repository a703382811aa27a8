"""The fields of a materialization: those of its statement, or the recommended ones, resolved against its relation's columns.

The result is one tree for every kind of target (`plan.target_definitions`). A pointer starts at the row as a JSON document: its
first step is a column, the next ones are fields of records, positions in lists and keys of maps, and below a column of type json anything.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NoReturn

from headgate.catalog.catalog import Catalog, column_comment, field_comment
from headgate.catalog.errors import ReservedColumnName
from headgate.catalog.objects import Column, Object
from headgate.errors import HeadgateError, raise_all, similar_names
from headgate.plan import materialization_errors as errors
from headgate.plan.json_schema_fields import why_not
from headgate.plan.relations import named_types
from headgate.plan.target_definitions import Fields, TargetField, ValuePath
from headgate.schema import types as t
from headgate.schema.names import Found, find, is_internal
from headgate.schema.render import print_type
from headgate.sql import materializations as m
from headgate.sql.statement import Kind

Tokens = tuple[str, ...]


def resolve_fields(
    catalog: Catalog, relation: Object, name: str, given: m.Fields | None, *, flat: bool = True
) -> Fields:
    """The fields of the materialization of this name. ``flat`` says whether recommended records are taken apart. Raises everything
    that is wrong with them at once."""
    resolver = _Resolver(
        name, _row_type(catalog, relation), {c.name for c in relation.columns if c.key}, catalog, relation
    )
    match given:
        case m.FieldList(fields):
            found = resolver.listed(fields)
        case m.RecommendedFields():
            found = resolver.recommended(given.depth or (None if flat else 1), _excluded(given))
        case None:
            found = resolver.recommended(None if flat else 1, ())
    reserved = [
        ReservedColumnName(Kind.MATERIALIZATION, name, field.name) for field in found if is_internal(field.name)
    ]
    raise_all([*resolver.problems, *reserved])
    if not found:
        raise errors.NoFields(name)
    return found


def pointer_tokens(text: str) -> Tokens:
    """The steps of a JSON pointer. Raises MalformedPointer."""
    steps = text.split("/")
    if len(steps) < 2 or steps[0] or any("~" in step.replace("~0", "").replace("~1", "") for step in steps):
        raise errors.MalformedPointer(text)
    return tuple(step.replace("~1", "/").replace("~0", "~") for step in steps[1:])


def print_pointer(tokens: Tokens) -> str:
    return "".join("/" + token.replace("~", "~0").replace("/", "~1") for token in tokens)


def _excluded(given: m.RecommendedFields) -> tuple[Tokens, ...]:
    return tuple(
        pointer_tokens(each.text) if isinstance(each, m.Pointer) else tuple(part.name for part in each.parts)
        for each in given.exclude
    )


# The row


def _row_type(catalog: Catalog, relation: Object) -> t.Record:
    """The columns of a relation with their docs, and with the definitions of the types that they name."""
    return t.Record(tuple(_documented_column(catalog, column) for column in relation.columns))


def _documented_column(catalog: Catalog, column: Column) -> t.Field:
    type_ = _documented(catalog, column, _expanded(catalog, column.type), ())
    return t.Field(column.name, type_, column.nullable, column_comment(catalog, column))


def _expanded(catalog: Catalog, type_: t.Type) -> t.Type:
    resolve = named_types(catalog)
    found = t.map_named(type_, resolve)
    return found if found == type_ else _expanded(catalog, found)


def _documented(catalog: Catalog, column: Column, type_: t.Type, path: Tokens) -> t.Type:
    """The type with the comments that the catalog has on its fields."""
    if not isinstance(type_, t.Record):
        return type_
    fields = []
    for field in type_.fields:
        inner = (*path, field.name)
        comment = field_comment(catalog, column, inner, field.doc)
        documented = _documented(catalog, column, field.type, inner)
        fields.append(replace(field, type=documented, doc=comment.text if comment else None))
    return replace(type_, fields=tuple(fields))


@dataclass(frozen=True, slots=True)
class _Place:
    """What a pointer leads to. ``document`` is the type of the list or map that it leads into, whose JSON text is read then."""

    path: ValuePath
    type: t.Type
    nullable: bool
    doc: str | None
    document: t.Type | None = None


class _Resolver:
    """Resolves the fields of one materialization and collects what is wrong with them."""

    def __init__(self, name: str, row: t.Record, keys: set[str], catalog: Catalog, relation: Object) -> None:
        self._name = name
        self._relation = relation
        self._row = row
        self._keys = keys
        self._catalog = catalog
        self.problems: list[HeadgateError] = []

    # FIELDS (…)

    def listed(self, fields: Sequence[m.MaterializedField], above: Tokens = ()) -> Fields:
        """The fields of a list. ``above`` leads to the object that has them, for those without a pointer."""
        seen: set[str] = set()
        found: list[TargetField] = []
        for field in fields:
            name = field.name.name
            if name in seen:
                self.problems.append(errors.FieldTwice(self._name, name))
            seen.add(name)
            try:
                found.append(self._listed(field, above))
            except HeadgateError as error:
                self.problems.append(error)
        return tuple(found)

    def _listed(self, field: m.MaterializedField, above: Tokens) -> TargetField:
        tokens = self._tokens(field, above)
        if isinstance(field.type, m.ObjectType):
            return self._object(field, field.type, tokens)
        place = self._place(field.name.name, tokens)
        if field.required and place.path.inside:
            raise errors.RequiredFieldUnknown(self._name, field.name.name, print_pointer(tokens))
        type_ = _expanded(self._catalog, field.type)
        if isinstance(type_, t.Record):
            return self._record(field, type_, place)
        self._check_place(field.name.name, place, type_)
        self._check_schema(field.name.name, place, type_)
        made = self._target_field(field.name.name, place, type_, field.nullable)
        return replace(made, native=field.native)

    def _tokens(self, field: m.MaterializedField, above: Tokens) -> Tokens:
        """Where a field's value is. Without a pointer it is the field of the same name; an unquoted name of a column is found in
        any case."""
        if field.pointer is not None:
            return pointer_tokens(field.pointer)
        name = field.name.name
        if not above:
            column = find(name, field.name.quoted, [each.name for each in self._row.fields])
            name = column.name if isinstance(column, Found) else name
        return (*above, name)

    def _object(self, field: m.MaterializedField, type_: m.ObjectType, tokens: Tokens) -> TargetField:
        """An object. If it has no pointer and the row has nothing of its name, it only groups its fields."""
        name = field.name.name
        place = self._place(name, tokens) if field.pointer is not None else self._find(tokens)
        inner = self.listed(type_.fields, tokens)
        record = t.Record(tuple(t.Field(each.name, each.type, each.nullable, each.doc) for each in inner))
        doc = None if place is None else place.doc
        source = None if place is None else place.type
        path = None if place is None else place.path
        return TargetField(name, path, record, source, field.nullable, doc=doc, fields=inner)

    def _record(self, field: m.MaterializedField, type_: t.Record, place: _Place) -> TargetField:
        """A field whose type is a record: an object whose fields have the places that their names say."""
        inner = tuple(self._typed_field(each, place) for each in type_.fields)
        return TargetField(
            field.name.name, place.path, type_, place.type, field.nullable, None, place.doc, fields=inner
        )

    def _typed_field(self, field: t.Field, above: _Place) -> TargetField:
        place = self._place(field.name, (*above.path.tokens, field.name))
        if isinstance(field.type, t.Record):
            inner = tuple(self._typed_field(each, place) for each in field.type.fields)
            return TargetField(
                field.name, place.path, field.type, place.type, field.nullable, None, place.doc, False, inner
            )
        self._check_place(field.name, place, field.type)
        return self._target_field(field.name, place, field.type, field.nullable)

    def _target_field(self, name: str, place: _Place, type_: t.Type, nullable: bool) -> TargetField:
        path = place.path
        is_cast = _shape(place.type) != _shape(type_) and not isinstance(type_, t.Json)
        if path.inside is None and is_cast and t.holds_json(place.type):
            path = replace(path, inside=())  # its text is read again, because Spark would take json for text
        key = path.column in self._keys and not path.inside
        return TargetField(name, path, type_, place.document or place.type, nullable, doc=place.doc, key=key)

    def _check_place(self, field: str, place: _Place, type_: t.Type) -> None:
        source = place.type
        refused = refused_cast(source, type_)
        if refused is None and place.document is not None and not _is_cast_in_json(source, type_):
            refused = Refused(
                f"A pointer into a list or a map gives a {_short(source)} as itself alone.", "Cast it in a view."
            )
        if refused is not None:
            words = print_type(t.plain(source)), print_type(t.plain(type_))
            raise errors.ImpossibleCast(self._name, field, *words, refused.reason, refused.cure)

    def _check_schema(self, field: str, place: _Place, type_: t.Type) -> None:
        """Where a JSON Schema allows several types, only json holds all of them; and where it allows one, no other holds any."""
        if not t.holds_json(place.type) or isinstance(type_, t.Json):
            return
        if why := why_not(self._catalog, self._relation, place.path.tokens, type_):
            words = print_type(t.plain(type_))
            raise errors.ImpossibleCast(self._name, field, "of other types", words, why, "Write json as its type.")

    # Pointers

    def _find(self, tokens: Tokens) -> _Place | None:
        try:
            return self._place("", tokens)
        except errors.UnknownPointer:
            return None

    def _place(self, field: str, tokens: Tokens) -> _Place:
        at = self._row.field(tokens[0])
        if at is None:
            names = [each.name for each in self._row.fields]
            self._unknown(field, tokens, 1, f'The relation has no column "{tokens[0]}".', names)
        nullable, doc, type_ = at.nullable, at.doc, at.type
        for number, token in enumerate(tokens[1:], start=1):
            match type_:
                case t.Json():
                    path = ValuePath(tokens[0], tokens[1:number], tokens[number:])
                    return _Place(path, type_, True, None)
                case t.Record():
                    inner = type_.field(token)
                    if inner is None:
                        names = [each.name for each in type_.fields]
                        self._unknown(field, tokens, number + 1, f'The record has no field "{token}".', names)
                    nullable, doc, type_ = nullable or inner.nullable, inner.doc, inner.type
                case t.Array() | t.Map():
                    path = ValuePath(tokens[0], tokens[1:number], tokens[number:])
                    return _Place(path, self._part(field, tokens, number, type_), True, None, type_)
                case _:
                    words = print_type(t.plain(type_))
                    self._unknown(field, tokens, number, f"A pointer does not lead into a value of type {words}.", ())
        return _Place(ValuePath(tokens[0], tokens[1:]), type_, nullable, doc)

    def _part(self, field: str, tokens: Tokens, start: int, type_: t.Type) -> t.Type:
        """The type of a part of a list or map, to which the tokens from ``start`` on lead."""
        for number, token in enumerate(tokens[start:], start=start):
            match type_:
                case t.Json():
                    return type_
                case t.Map():
                    type_ = type_.value
                case t.Array() if token.isascii() and token.isdigit():
                    type_ = type_.element
                case t.Record() if (inner := type_.field(token)) is not None:
                    type_ = inner.type
                case t.Record():
                    names = [each.name for each in type_.fields]
                    self._unknown(field, tokens, number + 1, f'The record has no field "{token}".', names)
                case _:
                    reason = f"A pointer does not lead to {token} in a value of type {_short(type_)}."
                    self._unknown(field, tokens, number, reason, ())
        return type_

    def _unknown(self, field: str, tokens: Tokens, at: int, reason: str, names: Sequence[str]) -> NoReturn:
        similar = tuple(
            print_pointer((*tokens[: at - 1], name)) for name in similar_names(tokens[min(at, len(tokens)) - 1], names)
        )
        raise errors.UnknownPointer(self._name, field, print_pointer(tokens), reason, similar)

    # FIELDS RECOMMENDED

    def recommended(self, depth: int | None, excluded: Sequence[Tokens]) -> Fields:
        """All columns, and the fields of records down to ``depth``, which is 1 for the columns alone."""
        known = set(_paths(self._row, ()))
        for one in excluded:
            if one not in known:
                similar = similar_names(print_pointer(one), [print_pointer(path) for path in known])
                self.problems.append(errors.UnknownExcluded(self._name, print_pointer(one), similar))
        return tuple(self._recommended(self._row, (), depth, set(excluded)))

    def _recommended(
        self, record: t.Record, above: Tokens, depth: int | None, excluded: set[Tokens]
    ) -> Iterator[TargetField]:
        for field in record.fields:
            tokens = (*above, field.name)
            if tokens in excluded:
                continue
            path = ValuePath(tokens[0], tokens[1:])
            key = tokens[0] in self._keys
            if not isinstance(field.type, t.Record) or not field.type.fields:
                yield TargetField(field.name, path, field.type, field.type, field.nullable, None, field.doc, key)
            elif depth is not None and len(tokens) >= depth:
                yield TargetField(field.name, path, t.Json(), field.type, field.nullable, None, field.doc, key)
            elif inner := tuple(self._recommended(field.type, tokens, depth, excluded)):
                type_ = t.Record(tuple(t.Field(each.name, each.type, each.nullable, each.doc) for each in inner))
                yield TargetField(field.name, path, type_, field.type, field.nullable, None, field.doc, key, inner)


def _shape(type_: t.Type) -> t.Type:
    """The type without docs, and as if nothing in it could be null."""
    match t.plain(type_):
        case t.Array(element):
            return t.Array(_shape(element))
        case t.Map(value):
            return t.Map(_shape(value))
        case plain:
            return plain


def _paths(record: t.Record, above: Tokens) -> Iterator[Tokens]:
    for field in record.fields:
        path = (*above, field.name)
        yield path
        if isinstance(field.type, t.Record):
            yield from _paths(field.type, path)


_WHOLE = (t.Integer, t.Bigint)
_NUMBERS = (*_WHOLE, t.Real, t.Double, t.Decimal)
# Types whose values are the same in JSON, so that they can be cast from there.
_IN_JSON = (t.Boolean, *_WHOLE, t.Double, t.Text, t.Enum, t.Json)
_FROM_TEXT = (t.Uuid, t.Date, t.Time, t.Timestamp, t.TimestampTz)


@dataclass(frozen=True, slots=True)
class Refused:
    """Why a cast is impossible, and what to write instead."""

    reason: str
    cure: str = ""


def refused_cast(source: t.Type, type_: t.Type) -> Refused | None:
    """Why no value of the source can become one of the type; None if values are checked one by one."""
    if t.plain(source) == t.plain(type_) or isinstance(source, t.Json) or isinstance(type_, t.Json):
        return None
    match source, type_:
        case t.Array(), t.Array():
            return refused_cast(source.element, type_.element)
        case t.Map(), t.Map():
            return refused_cast(source.value, type_.value)
        case t.Record(), t.Record():
            return _refused_record(source, type_)
        case t.Array() | t.Map() | t.Record(), _:
            return Refused(f"A value of type {_short(source)} is not a single value.", "Write json as its type.")
        case _, t.Array() | t.Map() | t.Record():
            return Refused(f"A value of type {_short(source)} has no parts.")
        case _, t.Boolean():
            return Refused("Only booleans are true or false.", "Compare the value in a view.")
        case _, t.Text():
            return Refused("Bytes are no text.", "Encode them in a view.") if isinstance(source, t.Bytes) else None
        case _, t.Enum():
            return None if isinstance(source, t.Text | t.Enum) else Refused("A symbol is a text.")
        case ((t.Text() | t.Enum()), _):
            return _from_text(type_)
        case _, t.Real():
            return Refused("Most numbers would lose digits in a real.", "Write f64 as its type.")
        case _, t.Integer() | t.Bigint() | t.Double() | t.Decimal():
            return None if isinstance(source, _NUMBERS) else Refused(f"A value of type {_short(source)} is no number.")
        case _:
            return Refused(f"No value of type {_short(source)} is one of type {_short(type_)}.", "Cast it in a view.")


def _is_cast_in_json(source: t.Type, type_: t.Type) -> bool:
    """Whether the JSON of every value can be cast as the value itself is."""
    match source, type_:
        case _, t.Json():
            return True
        case t.Array(), t.Array():
            return _is_cast_in_json(source.element, type_.element)
        case t.Map(), t.Map():
            return _is_cast_in_json(source.value, type_.value)
        case t.Record(), t.Record():
            held = {field.name: field.type for field in source.fields}
            return all(_is_cast_in_json(held[field.name], field.type) for field in type_.fields)
        case _:
            return isinstance(source, _IN_JSON) or type(source) is type(type_)


def _refused_record(source: t.Record, type_: t.Record) -> Refused | None:
    """Fields are found by their names. Those that are not wanted are left out."""
    for field in type_.fields:
        held = source.field(field.name)
        if held is None:
            return Refused(f'A value of type {_short(source)} has no field "{field.name}".')
        if (refused := refused_cast(held.type, field.type)) is not None:
            return refused
    return None


def _from_text(type_: t.Type) -> Refused:
    if isinstance(type_, _FROM_TEXT):
        name = print_type(type_)
        return Refused(f"A text need not be a {name}.", f"Write string AS '{name}', which checks every text.")
    return Refused("A text is no number, whatever its characters are.", "Cast it in a view.")


def _short(type_: t.Type) -> str:
    return print_type(t.plain(type_))

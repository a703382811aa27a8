"""What one change of a schema does to one target: a level and the reason for it.

A verdict is about the field that changed. The planner knows whether a view or a sink uses that field at all: a change
of a field that nothing uses breaks nothing. `_ROWS` is the table: one row per change, one column per target. A
change of a type depends on both types, so each target has a function for it.

`arriving` judges a whole schema that arrives with a record: what it changes for the side that reads it, and whether the
side follows. This is the one answer to "may this change be followed?". The engine asks it when a record has a new
schema, and the planner asks it before a schema is taken into a source.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum, IntEnum
from functools import lru_cache, partial
from itertools import takewhile
from typing import NamedTuple, assert_never

from headgate.schema import types as t
from headgate.schema.encodings import FieldPath, SchemaEncoding, decoded_type, known_fields, names_in, type_in
from headgate.schema.errors import SchemaError
from headgate.schema.evolve import changes as c
from headgate.schema.evolve.merge import is_number, widen
from headgate.schema.evolve.renames import new_names
from headgate.schema.formats.elasticsearch import to_elasticsearch_field
from headgate.schema.formats.postgres import to_postgres
from headgate.schema.names import Path, Step
from headgate.schema.render import print_type
from headgate.schema.written import WrittenSchema


class Target(Enum):
    """What a change can affect. The values are the words of the docs."""

    READER = "a source that follows"  # ON SCHEMA CHANGE = FOLLOW
    AVRO_SINK = "an avro sink"  # its subject has the level BACKWARD, the usual one
    POSTGRES = "a postgres table"
    ELASTICSEARCH = "an elasticsearch index"  # a field, once in the mapping, cannot be altered
    VIEW = "a view"  # a view that uses the field
    KEY = "the key of a source that follows"
    AVRO_KEY = "the key of an avro sink"  # a new version has a new schema id, which is part of the bytes
    TEXT_KEY = "the key of a json or text sink"


class Level(IntEnum):
    """Worse is greater, so the level of several changes is the greatest."""

    SAFE = 0  # nothing has to be done
    IN_PLACE = 1  # the target is changed where it stands
    REBUILD = 2  # a new target is made beside the old one, and filled
    BREAKING = 3  # tasks halt, or the statement is refused


@dataclass(frozen=True, slots=True)
class Verdict:
    """`reason` is a phrase for people."""

    level: Level
    reason: str


def verdict(change: c.Change, target: Target) -> Verdict:
    """What the change does to the target."""
    unseen = _unseen(change.path, target)
    if unseen is not None:
        return unseen
    if target in (Target.KEY, Target.AVRO_KEY, Target.TEXT_KEY):
        return _key(change, target)
    if isinstance(change, c.TypeWidened | c.TypeNarrowed | c.TypeChanged):
        return _type(change, target)
    return _row(change)[_COLUMNS.index(target)]


_safe = partial(Verdict, Level.SAFE)
_in_place = partial(Verdict, Level.IN_PLACE)
_rebuild = partial(Verdict, Level.REBUILD)
_breaking = partial(Verdict, Level.BREAKING)


def _unseen(path: Path, target: Target) -> Verdict | None:
    """The verdict on a change inside a column that has no fields of its own in the target. None elsewhere."""
    if target is Target.POSTGRES and _is_inside_json(path):
        return _safe("the column is jsonb, which holds it")
    if target is Target.ELASTICSEARCH and Step.VALUE in path[:-1]:
        return _safe("the field holds any object")
    return None


def _is_inside_json(path: Path) -> bool:
    """Below a map's value, or below an element of an array that is itself an array or a record: jsonb in PostgreSQL."""
    return Step.VALUE in path or Step.ELEMENT in path[:-1]


class Row(NamedTuple):
    """The verdicts on one change, one for each target."""

    reader: Verdict
    avro_sink: Verdict
    postgres: Verdict
    elasticsearch: Verdict
    view: Verdict


# The targets in the order of the columns of a row.
_COLUMNS = (Target.READER, Target.AVRO_SINK, Target.POSTGRES, Target.ELASTICSEARCH, Target.VIEW)
_NEW_VERSION = _in_place("a new version is registered")
# Reasons that several changes share.
_KEPT_COLUMN = "the column stays, and is null from then on"
_KEPT_SYMBOLS = _safe("the column keeps its symbols")


def _symbols(reader: Verdict) -> Row:
    """The row of a change of an enum. All targets but the reader treat symbols as text."""
    return Row(
        reader=reader,
        avro_sink=_NEW_VERSION,
        postgres=_safe("the column is text, which holds every symbol"),
        elasticsearch=_safe("the field is a keyword, which holds every symbol"),
        view=_safe("symbols are computed with as text"),
    )


_ROWS: dict[type, Row] = {
    c.FieldAdded: Row(
        reader=_in_place("the field appears at the end, nullable unless it has a default"),
        avro_sink=_in_place("a new version has the field, with its default or null"),
        postgres=_in_place("a column is added, nullable unless it has a default"),
        elasticsearch=_in_place("the field is put into the mapping"),
        view=_in_place("a view with * gains the column; one that names its columns does not change"),
    ),
    c.FieldRemoved: Row(
        reader=_safe(_KEPT_COLUMN),
        avro_sink=_in_place("a new version lacks the field"),
        postgres=_safe(_KEPT_COLUMN),
        elasticsearch=_safe("the field stays in the mapping"),
        view=_breaking("the query names a column that is no longer there"),
    ),
    c.FieldRenamed: Row(
        reader=_in_place("the column keeps its name, and is filled from the renamed field"),
        avro_sink=_breaking("readers find a field by its name"),
        postgres=_in_place("the column is renamed"),
        elasticsearch=_rebuild("a field keeps its name: a new index is filled behind the alias"),
        view=_breaking("the query names the column as it was"),
    ),
    c.FieldMoved: Row(
        reader=_safe("fields are found by name"),
        avro_sink=_NEW_VERSION,
        postgres=_safe("columns are found by name"),
        elasticsearch=_safe("fields are found by name"),
        view=_safe("columns are found by name"),
    ),
    c.NullabilityRelaxed: Row(
        reader=_in_place("the column becomes nullable"),
        avro_sink=_in_place("a new version has a union with null"),
        postgres=_in_place("NOT NULL is dropped"),
        elasticsearch=_safe("any field may be missing"),
        view=_in_place("columns computed from it become nullable"),
    ),
    c.NullabilityTightened: Row(
        reader=_safe("the column stays nullable"),
        avro_sink=_breaking("nulls in old records cannot be read"),
        postgres=_safe("the column stays nullable"),
        elasticsearch=_safe("any field may be missing"),
        view=_safe("columns computed from it stay nullable"),
    ),
    c.EnumSymbolsAdded: _symbols(_breaking("the column's type does not have the new symbols")),
    c.EnumSymbolsRemoved: _symbols(_KEPT_SYMBOLS),
    c.EnumReordered: _symbols(_KEPT_SYMBOLS),
    c.EnumDefaultChanged: _symbols(_KEPT_SYMBOLS),
    c.TypeRenamed: Row(
        reader=_safe("a type's name is not part of the column"),
        avro_sink=_safe("names are frozen when the sink is made"),
        postgres=_safe("the table does not have the name"),
        elasticsearch=_safe("the index does not have the name"),
        view=_safe("a type's name is not part of the column"),
    ),
    c.DocChanged: Row(
        reader=_safe("docs are taken when a column is added"),
        avro_sink=_safe("docs are frozen until they are refreshed"),
        postgres=_in_place("the comment is set"),
        elasticsearch=_in_place("the mapping's _meta is put"),
        view=_safe("nothing is computed from a doc"),
    ),
}


def _row(change: c.Change) -> Row:
    """The row of the change, with the cells that depend on more than its class."""
    row = _ROWS[type(change)]
    match change:
        case c.FieldAdded() if not change.field.nullable and change.field.default is None:
            no_default = "a field that is not null has no default, so that old records cannot be read"
            return row._replace(avro_sink=_breaking(no_default))
        case c.FieldRemoved() if change.field.default is not None:
            kept = _safe("the column stays, and has its default from then on")
            return row._replace(reader=kept, postgres=kept)
        case c.FieldRemoved() if not change.field.nullable:
            return row._replace(reader=_in_place(_KEPT_COLUMN), postgres=_in_place(_KEPT_COLUMN))
        case c.NullabilityRelaxed() if change.path[-1:] == (Step.ELEMENT,):
            return row._replace(postgres=_safe("elements of an array may be null"))
        case c.EnumSymbolsRemoved(default=None):
            return row._replace(avro_sink=_breaking("symbols in old records cannot be read"))
        case _:
            return row


_TypeChange = c.TypeWidened | c.TypeNarrowed | c.TypeChanged


def _type(change: _TypeChange, target: Target) -> Verdict:
    """The verdict on a change of a type, by target."""
    match target:
        case Target.READER | Target.KEY:
            return _reader_type(change.old, change.new)
        case Target.AVRO_SINK | Target.AVRO_KEY:
            return _avro_type(change.old, change.new)
        case Target.POSTGRES:
            return _postgres_type(change)
        case Target.ELASTICSEARCH:
            return _elasticsearch_type(change)
        case Target.VIEW:
            return _view_type(change.old, change.new)
        case Target.TEXT_KEY:
            return _text_key_type(change.old, change.new)
        case _:
            assert_never(target)


def _reader_type(old: t.Type, new: t.Type) -> Verdict:
    """A source follows a number that widens, and nothing else."""
    bound = widen(old, new)
    if not (is_number(old) and is_number(bound)):
        return _breaking(f"{print_type(old)} cannot become {print_type(new)}: only numbers widen by themselves")
    if bound == old:
        return _safe("every value fits the column")
    return _in_place(f"the column becomes {print_type(bound)}")


# keys

_FieldsChange = c.FieldAdded | c.FieldRemoved


def _key(change: c.Change, target: Target) -> Verdict:
    """A key is the same one as long as it has the same fields. A topic finds records by the bytes of their keys, so a
    sink's key must keep its bytes."""
    if isinstance(change, _FieldsChange):
        return _breaking("a key with other fields is another key")
    if isinstance(change, c.TypeWidened | c.TypeNarrowed | c.TypeChanged):
        found = _type(change, target)
    else:
        found = _row(change).reader if target is Target.KEY else _row(change).avro_sink
    if target is Target.AVRO_KEY and found.level is not Level.SAFE:
        return _breaking("the schema id is part of the key's bytes, and a new version has another one")
    if target is Target.TEXT_KEY and isinstance(change, c.NullabilityRelaxed | c.NullabilityTightened | c.FieldMoved):
        return _safe("the text of the key stays the same")
    return found


def _text_key_type(old: t.Type, new: t.Type) -> Verdict:
    """Whether a value of the old type has the same text as a value of the new one."""
    match old, new:
        case t.Integer() | t.Bigint(), t.Integer() | t.Bigint():
            return _safe("the text of the key stays the same")
        case t.Decimal(), t.Decimal() if old.scale == new.scale:
            return _safe("the text of the key stays the same")
        case _:
            return _breaking(f"{print_type(new)} has another text in the key than {print_type(old)}")


# What a reader accepts for what was written: Avro's promotions, and what is a string in Avro as text.
_PROMOTED: dict[type, tuple[type, ...]] = {
    t.Integer: (t.Bigint, t.Real, t.Double),
    t.Bigint: (t.Real, t.Double),
    t.Real: (t.Double,),
    t.Uuid: (t.Text,),
    t.Json: (t.Text,),
}


def _avro_type(old: t.Type, new: t.Type) -> Verdict:
    """A sink follows where readers of the new schema can still read the old records."""
    if isinstance(new, _PROMOTED.get(type(old), ())):
        return _in_place("a new version has the wider type, to which readers promote")
    if isinstance(old, t.Decimal) and isinstance(new, t.Decimal) and _only_more_digits(old, new):
        return _in_place("a new version has the greater precision")
    return _breaking(f"{print_type(old)} in old records cannot be read as {print_type(new)}")


def _only_more_digits(old: t.Decimal, new: t.Decimal) -> bool:
    """Only the precision may grow, because the scale says what the bytes mean."""
    return old.scale == new.scale and old.precision < new.precision


def _postgres_type(change: _TypeChange) -> Verdict:
    """A column follows where ALTER TABLE keeps every value."""
    old, new = change.old, change.new
    if isinstance(old, t.Named) or isinstance(new, t.Named):
        return _breaking("a type that is not resolved cannot be compared")
    if isinstance(old, t.Record) or isinstance(new, t.Record):
        return _rebuild("a record has a column for each leaf: the table is filled anew")
    if to_postgres(old) == to_postgres(new):
        return _safe(f"both are {to_postgres(new)}")
    if isinstance(change, c.TypeWidened):
        return _in_place(f"the column becomes {to_postgres(new)}")
    if isinstance(change, c.TypeChanged) and _widens_to_number(old, new):
        return _in_place(f"the column becomes {to_postgres(widen(old, new))}")
    return _breaking(f"{to_postgres(old)} cannot become {to_postgres(new)} with every value kept")


def _elasticsearch_type(change: _TypeChange) -> Verdict:
    """A field of an index never changes its type, so a wider type needs a new index."""
    old, new = change.old, change.new
    if isinstance(old, t.Named) or isinstance(new, t.Named):
        return _breaking("a type that is not resolved cannot be compared")
    if to_elasticsearch_field(old) == to_elasticsearch_field(new):
        return _safe("the mapping is the same")
    if isinstance(change, c.TypeWidened) or (_widens_to_number(old, new) and widen(old, new) != old):
        return _rebuild("a field keeps its type: a new index is filled behind the alias")
    return _breaking("values in the index do not fit the new type")


def _view_type(old: t.Type, new: t.Type) -> Verdict:
    """A view follows a number that widens; its types are computed again."""
    if is_number(new) and _widens_to_number(old, new):
        return _in_place("columns computed from it get their types anew")
    return _breaking(f"what the query computes on {print_type(old)} may not be defined on {print_type(new)}")


def _widens_to_number(old: t.Type, new: t.Type) -> bool:
    return is_number(old) and is_number(widen(old, new))


# Arriving schemas


@dataclass(frozen=True, slots=True)
class ArrivingSchema:
    """What a schema changes for one side of a source, each change with its verdict.

    ``error`` says why no value can be read with the schema. There are no changes then.
    """

    changes: tuple[tuple[c.Change, Verdict], ...] = ()
    error: SchemaError | None = None

    @property
    def is_readable(self) -> bool:
        return self.error is None

    @property
    def level(self) -> Level:
        """The worst verdict on any of the changes."""
        return max((found.level for _, found in self.changes), default=Level.SAFE)

    @property
    def breaks(self) -> bool:
        """Whether the side cannot follow. It follows a schema as a whole or not at all."""
        return self.level is Level.BREAKING

    @property
    def grows(self) -> bool:
        """Whether the side follows, and has another type then."""
        return Level.SAFE < self.level < Level.BREAKING

    def breaking_fields(self) -> tuple[FieldPath, ...]:
        """The fields that cannot be read if the schema is not followed, from the outermost record inwards. These
        include fields that could be followed alone but do not fit the present type."""
        if not self.breaks:
            return ()
        paths = [_field_path(change.path) for change, found in self.changes if found.level > Level.SAFE]
        return tuple(dict.fromkeys(paths))

    def describe(self) -> tuple[str, ...]:
        """One sentence per change that a reader of the source can notice."""
        if self.error is not None:
            return (f"it cannot be read: {self.error.message()}",)
        unseen = c.DocChanged | c.TypeRenamed | c.FieldMoved
        return tuple(change.describe() for change, _ in self.changes if not isinstance(change, unseen))


@lru_cache(maxsize=1024)
def arriving(encoding: SchemaEncoding, schema: WrittenSchema, target: Target = Target.READER) -> ArrivingSchema:
    """What following the schema would change. ``target`` says whether the side is a source's value or its key."""
    try:
        new = type_in(encoding, schema)
    except SchemaError as wrong:
        return ArrivingSchema(error=wrong)
    # A change that was accepted with an earlier schema may arrive again.
    taken = [_changed_paths(type_in(encoding, one), new, target) for one in encoding.schemas]
    known = decoded_type(encoding)
    judged = _judged(known, new, target)
    renamed = [
        c.FieldRenamed(path, str(path[-1]), name)
        for path, name in new_names(known_fields(encoding), names_in(encoding, schema), known.type)
    ]
    return ArrivingSchema(
        (
            *((change, verdict(change, target)) for change in renamed),
            *(
                (change, found)
                for change, found in judged
                if found.level is Level.SAFE or all(_overlaps(change.path, paths) for paths in taken)
            ),
        )
    )


def _judged(old: t.Field, new: t.Field, target: Target) -> list[tuple[c.Change, Verdict]]:
    """The changes from one type to another, each with its verdict."""
    return [(change, verdict(change, target)) for change in c.diff_values(old, new)]


def _changed_paths(old: t.Field, new: t.Field, target: Target) -> list[Path]:
    """The paths of changes that need something to be done."""
    return [change.path for change, found in _judged(old, new, target) if found.level > Level.SAFE]


def _overlaps(path: Path, others: Iterable[Path]) -> bool:
    """Whether one of the parts is the part at the path, inside it or around it."""
    return any(all(a == b for a, b in zip(path, other, strict=False)) for other in others)


def _field_path(path: Path) -> FieldPath:
    """The path as far as it leads through records. Inside an array or a map, fields are not told apart."""
    return tuple(str(step) for step in takewhile(lambda step: not isinstance(step, Step), path))

"""Rows of a relation -> the fields of a materialization, as columns of Spark, and what is wrong with a row that does not fit.

It is the same for every target: each leaf becomes one column of its type. Values inside JSON documents are cast by Python workers
(`runtime.json_fields`), all others in the JVM (`runtime.checked_casts`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from pyspark.sql import Column, DataFrame, functions as F

from headgate.plan.target_definitions import Fields, TargetField, ValuePath
from headgate.runtime.checked_casts import checked_cast
from headgate.runtime.formats.json_text import json_text
from headgate.runtime.formats.write_checks import document_rule, field_checks
from headgate.runtime.json_fields import MISSING, PROBLEM, JsonField, json_fields
from headgate.schema import types as t
from headgate.schema.formats.postgres import to_postgres
from headgate.schema.names import ROOT, field_path, internal_name
from headgate.schema.render import print_type, spark_identifier

Root = tuple[str, ...]  # the column and the fields that lead to a JSON document


@dataclass(frozen=True, slots=True)
class Leaf:
    """A leaf of a materialization and the objects around it."""

    field: TargetField
    above: Fields

    @property
    def place(self) -> ValuePath:
        assert self.field.path is not None, "only objects group fields"
        return self.field.path

    @property
    def is_json(self) -> bool:
        """Whether the target keeps it as JSON text."""
        return to_postgres(self.field.type) == "jsonb"


@dataclass(slots=True)
class Document:
    """A value that is read as JSON: its type, which is json or holds some, and the fields in it."""

    type: t.Type
    fields: list[JsonField] = field(default_factory=list)


@dataclass(slots=True)
class FieldColumns:
    """The columns of the leaves of some fields. ``values`` has the value of each leaf, in order, ``problems`` what may be wrong with
    any of them: struct<path, expected, reason>, NULL if it fits. ``problems_of`` has those of each leaf."""

    leaves: Sequence[Leaf]
    documents: dict[Root, Document] = field(init=False)
    values: list[Column] = field(init=False)
    problems: list[Column] = field(init=False)
    problems_of: list[list[Column]] = field(init=False)

    def __post_init__(self) -> None:
        self.documents, at = {}, {}
        for number, leaf in enumerate(self.leaves):
            if leaf.place.inside is not None:
                root = (leaf.place.column, *leaf.place.fields)
                group = self.documents.setdefault(root, Document(leaf.field.source or t.Json()))
                at[number] = (root, len(group.fields))
                group.fields.append(_json_field(leaf))
        names = {root: _parsed(number) for number, root in enumerate(self.documents)}
        self.values, self.problems, self.problems_of = [], [], []
        for number, leaf in enumerate(self.leaves):
            if number in at:
                root, position = at[number]
                self.values.append(F.col(names[root])[f"v{position}"])
                problem = [F.col(names[root])[PROBLEM]]
                self.problems += problem if position == 0 else []
            else:
                value, problem = _typed(leaf)
                self.values.append(value)
                self.problems += problem
            self.problems_of.append(problem)

    def with_documents(self, rows: DataFrame) -> DataFrame:
        """The rows with the parsed documents, each as a column that `values` uses."""
        if not self.documents:
            return rows
        return rows.withColumns(
            {
                _parsed(number): json_fields(json_text(_path(root), document.type), document.fields)
                for number, (root, document) in enumerate(self.documents.items())
            }
        )

    @property
    def problem(self) -> Column:
        """The first problem of a row; NULL if all of it fits."""
        nothing = F.lit(None).cast("struct<path: string, expected: string, reason: string>")
        return F.coalesce(*self.problems, nothing) if self.problems else nothing


def pieces(frame: DataFrame, most: int, by: Sequence[str]) -> Iterator[DataFrame]:
    """The frame in pieces of about ``most`` rows. Rows with the same values of ``by`` are in one piece."""
    kept = frame.persist()
    try:
        number = -(-kept.count() // most)
        if number <= 1:
            yield kept
            return
        values = F.xxhash64(*[F.col(spark_identifier(name)).cast("string") for name in by])
        for piece in range(number):
            yield kept.where(F.pmod(values, F.lit(number)) == piece)
    finally:
        kept.unpersist()


def leaves_of(fields: Fields) -> list[Leaf]:
    """All leaves of a materialization, in order."""
    return [Leaf(leaf, above) for one in fields for above, leaf in one.leaves()]


def _parsed(number: int) -> str:
    """The column with the fields of a JSON document."""
    return internal_name(f"json_{number}")


def _path(steps: Sequence[str]) -> Column:
    column = F.col(spark_identifier(steps[0]))
    for step in steps[1:]:
        column = column.getField(step)
    return column


def value_at(place: ValuePath) -> Column:
    """The typed value, or the JSON text, that a path leads to."""
    return _path((place.column, *place.fields))


def _printed(steps: Sequence[str]) -> str:
    path = ROOT
    for step in steps:
        path = field_path(path, step)
    return path


def _json_field(leaf: Leaf) -> JsonField:
    place = leaf.place
    root = (place.column, *place.fields)
    optional = []
    for around in leaf.above:
        if around.nullable and around.path is not None:
            inside = around.path.inside if (around.path.column, *around.path.fields) == root else ()
            optional.append(inside or ())
    return JsonField(
        place.inside or (), leaf.field.type, leaf.field.nullable, leaf.is_json, tuple(optional), _printed(root)
    )


def _typed(leaf: Leaf) -> tuple[Column, list[Column]]:
    """The value of a leaf that has a type, and its problem if it can have one."""
    assert leaf.field.source is not None
    place = leaf.place
    steps = (place.column, *place.fields)
    value = _path(steps)
    cast = checked_cast(value, leaf.field.source, leaf.field.type)
    made = cast.value
    if leaf.is_json and not isinstance(leaf.field.type, t.Json):
        made = checked_cast(cast.value, leaf.field.type, t.Json()).value
    path, type_ = F.lit(_printed(steps)), print_type(t.plain(leaf.field.type))
    expected = type_ if leaf.field.nullable else f"{type_} not null"
    found: list[Column] = []
    if not leaf.field.nullable:
        missing = value.isNull()
        for around in leaf.above:
            if around.nullable and around.path is not None:
                missing = missing & _path((around.path.column, *around.path.fields)).isNotNull()
        found.append(F.when(missing, _problem(path, expected, MISSING)))
    if cast.fits is not None:
        wrong = value.isNotNull() & ~F.coalesce(cast.fits, F.lit(False))
        found.append(F.when(wrong, _problem(path, expected, cast.reason)))
    if leaf.is_json:
        is_made = isinstance(leaf.field.type, t.Json)
        found += document_problems(*((value, leaf.field.source) if is_made else (cast.value, leaf.field.type)), steps)
    return made, found


def document_problems(value: Column, type_: t.Type, steps: Sequence[str]) -> list[Column]:
    """What keeps a value from being JSON."""
    at = _printed(steps)
    checks = field_checks(t.Field("v", type_), document_rule)
    expected = print_type(t.plain(type_))
    return [
        F.when(one.fails(value), _problem(F.lit(at + one.path.removeprefix("$.v")), expected, one.reason))
        for one in checks
    ]


def _problem(path: Column, expected: str, reason: str) -> Column:
    return F.struct(path.alias("path"), F.lit(expected).alias("expected"), F.lit(reason).alias("reason"))

"""Columns as the catalog has them: of a source, and of a relation that changes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import count

from headgate.catalog.objects import Column, Comment, Object
from headgate.plan.source import SourcePlan
from headgate.schema.render import print_type


def source_columns(planned: SourcePlan) -> tuple[Column, ...]:
    """Those of a new source, with the docs that its schemas bring."""
    return tuple(
        Column(
            position,
            c.name,
            print_type(c.type, full=True),
            c.nullable,
            c.key,
            comment=Comment(imported=c.doc),
        )
        for position, c in enumerate(planned.columns, start=1)
    )


def withheld_facts(planned: SourcePlan) -> list[tuple[str, ...]]:
    """The fields without a column, as a source's facts keep them for `withheld_fields`."""
    return [(w.column, w.field, w.other, w.cure) for w in planned.withheld]


def evolved_columns(old: Object, columns: Sequence[Column]) -> tuple[Column, ...]:
    """A column that keeps its name is the old one; new ones get ids never used."""
    ids = {c.name: c.id for c in old.columns}
    numbers = count(old.next_column)
    return tuple(replace(c, id=ids.get(c.name) or next(numbers)) for c in columns)

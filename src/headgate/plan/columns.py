"""Columns as the catalog has them: of a source, and of a relation that changes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import count

from headgate.catalog.objects import Column, Comment, Object
from headgate.plan.source import SourcePlan
from headgate.schema.types import without_defaults


def source_columns(planned: SourcePlan) -> tuple[Column, ...]:
    """Those of a new source, with the docs that its schemas bring."""
    return tuple(
        Column(
            position,
            c.name,
            without_defaults(c.type),
            c.nullable,
            c.key,
            comment=Comment(imported=c.doc),
        )
        for position, c in enumerate(planned.columns, start=1)
    )


def evolved_columns(old: Object, columns: Sequence[Column]) -> tuple[Column, ...]:
    """A column that keeps its name is the old one; new ones get ids never used."""
    ids = {c.name: c.id for c in old.columns}
    numbers = count(old.next_column)
    return tuple(replace(c, id=ids.get(c.name) or next(numbers)) for c in columns)

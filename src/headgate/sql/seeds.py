"""The schemas that are frozen into a statement's formats (`SEED … SCHEMA`): read, put in and taken out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TypeVar

from headgate.sql.ast.formats import Format, Formats, RegistryFormat, SeedSchema, Side
from headgate.sql.ast.sinks import CreateSink
from headgate.sql.ast.sources import CreateSource

S = TypeVar("S", CreateSource, CreateSink)


def seeds_of(format_: Format, side: Side) -> tuple[SeedSchema, ...]:
    """The schemas that the format holds for a side, in the order in which they came."""
    options = format_.options if isinstance(format_, RegistryFormat) else ()
    return tuple(o for o in options if isinstance(o, SeedSchema) and o.side == side)


def format_of(formats: Formats, side: Side) -> Format:
    """The format that a side's schemas stand in: one that is given alone holds for the key too."""
    return formats.key if side == "KEY" and formats.key is not None else formats.value


def seeded(format_: RegistryFormat, *seeds: SeedSchema) -> RegistryFormat:
    """The format with these schemas behind what it has."""
    return replace(format_, options=(*format_.options, *seeds))


def with_seeds(statement: S, side: Side, seeds: Sequence[SeedSchema]) -> S:
    """The statement with these schemas for one side in place of those it has."""
    formats = statement.formats
    format_ = format_of(formats, side)
    assert isinstance(format_, RegistryFormat)
    kept = tuple(o for o in format_.options if not (isinstance(o, SeedSchema) and o.side == side))
    made = seeded(replace(format_, options=kept), *seeds)
    return replace(
        statement,
        formats=replace(formats, key=made) if format_ is formats.key else replace(formats, value=made),
    )


def unseeded(statement: S) -> S:
    """The statement without any frozen schema."""
    key = statement.formats.key
    return replace(statement, formats=Formats(_bare(statement.formats.value), _bare(key) if key else None))


def _bare(format_: Format) -> Format:
    if not isinstance(format_, RegistryFormat):
        return format_
    return replace(format_, options=tuple(o for o in format_.options if not isinstance(o, SeedSchema)))

"""The schemas that are frozen into a statement's formats (`SEED … SCHEMA`): read, put in and taken out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from headgate.sql.ast.formats import Format, Formats, RegistryFormat, SeedSchema, Side


def frozen_schemas(format_: Format, side: Side) -> tuple[SeedSchema, ...]:
    """The schemas that the format holds for a side, oldest first."""
    options = format_.options if isinstance(format_, RegistryFormat) else ()
    return tuple(o for o in options if isinstance(o, SeedSchema) and o.side == side)


def format_of(formats: Formats, side: Side) -> Format:
    """The format that holds the schemas of a side. One that is given without KEY and VALUE holds those of both."""
    return formats.key if side == "KEY" and formats.key is not None else formats.value


def with_frozen_schemas(formats: Formats, side: Side, schemas: Sequence[SeedSchema]) -> Formats:
    """Replace the schemas of one side."""
    format_ = format_of(formats, side)
    assert isinstance(format_, RegistryFormat)
    kept = tuple(o for o in format_.options if not (isinstance(o, SeedSchema) and o.side == side))
    changed = replace(format_, options=(*kept, *schemas))
    return replace(formats, key=changed) if format_ is formats.key else replace(formats, value=changed)


def without_frozen_schemas(formats: Formats) -> Formats:
    return Formats(_without_frozen(formats.value), _without_frozen(formats.key) if formats.key else None)


def _without_frozen(format_: Format) -> Format:
    if not isinstance(format_, RegistryFormat):
        return format_
    return replace(format_, options=tuple(o for o in format_.options if not isinstance(o, SeedSchema)))

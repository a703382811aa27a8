"""A type of the catalog got another name: the stored types that mention it, written anew."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from headgate.catalog.objects import Column, Object, read_type
from headgate.schema.render import print_type
from headgate.schema.types import Named, map_named

Path = tuple[str, ...]


def retype(user: Object, names: Mapping[Path, Path]) -> Object:
    """The object with every mention of an old full name replaced by the new one."""
    columns = tuple(_column(c, names) for c in user.columns)
    body = None if user.body is None else _text(user.body, names)
    return replace(user, columns=columns, body=body)


def _column(column: Column, names: Mapping[Path, Path]) -> Column:
    return replace(column, type=_text(column.type, names))


def _text(text: str, names: Mapping[Path, Path]) -> str:
    before = read_type(text)
    after = map_named(before, lambda named: Named(names.get(named.parts, named.parts)))
    return text if after == before else print_type(after, full=True)

"""Which comment holds: what `COMMENT ON` says, else what the source's schema says, else what was said upstream.

`COMMENT … IS NULL` silences the latter two. "Upstream" is the column of which a column is a plain projection, so
that a doc written once reaches every relation and target that carries the column on.
"""

from __future__ import annotations

import enum
from collections.abc import Iterator
from dataclasses import dataclass

from headgate.catalog.catalog import Catalog
from headgate.catalog.objects import Column, Comment, Object


class Origin(enum.StrEnum):
    EXPLICIT = "explicit"
    IMPORTED = "imported"
    FOLLOWED = "followed"


@dataclass(frozen=True, slots=True)
class Effective:
    text: str
    origin: Origin


def object_comment(target: Object) -> str | None:
    """The comment that is shown for the object."""
    found = own_comment(target.comment)
    return None if found is None else found.text


def column_comment(catalog: Catalog, column: Column) -> str | None:
    """The comment that is shown for the column."""
    found = effective_comment(catalog, column)
    return None if found is None else found.text


def effective_comment(catalog: Catalog, column: Column) -> Effective | None:
    here = own_comment(column.comment)
    if here is not None or column.comment.suppressed:
        return here
    for upstream in _upstream(catalog, column):
        said = own_comment(upstream.comment)
        if said is not None:
            return Effective(said.text, Origin.FOLLOWED)
        if upstream.comment.suppressed:
            return None
    return None


def own_comment(comment: Comment) -> Effective | None:
    """The comment without those of columns upstream."""
    if comment.explicit is not None:
        return Effective(comment.explicit, Origin.EXPLICIT)
    if comment.imported is not None and not comment.suppressed:
        return Effective(comment.imported, Origin.IMPORTED)
    return None


def _upstream(catalog: Catalog, column: Column) -> Iterator[Column]:
    """The columns that this one is a projection of, nearest first. Stops at an origin that was dropped."""
    seen = set()
    at: Column | None = column
    while at is not None and at.origin is not None and at.origin not in seen:
        seen.add(at.origin)
        above = catalog.objects.get(at.origin.object)
        at = None if above is None else above.column(at.origin.column)
        if at is not None:
            yield at

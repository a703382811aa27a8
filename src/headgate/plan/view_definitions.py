"""What the runtime is given of a materialized view: how it is kept. Data only, as in `headgate.plan.definitions`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from headgate.plan.definitions import MaterializedDefinition, QueryDefinition, Relations, SourceDefinition


@dataclass(frozen=True, slots=True)
class VersionRead:
    """A version of a relation that a query names: its rows after a batch or before it, its signed changes, or the keys that
    changed. ``name`` is what the query calls it."""

    relation: int
    version: Literal["now", "before", "changes", "keys"]
    name: str


@dataclass(frozen=True, slots=True)
class ViewTaskDefinition:
    """A materialized view with everything that keeps it equal to its query.

    ``first`` and ``changed`` are Spark SQL for the changes of its stored rows in the first batch and in later ones
    (`headgate.sql.query.maintenance`). ``inputs`` are the relations whose changes it reads. ``first_reads`` and ``reads`` are
    the versions of relations that the two queries name. ``stored_name`` is what the second one calls the stored rows of the
    view itself; None if it does not read them. ``not_null`` are columns in which NULL is an error.
    ``copies`` are stored copies among the inputs that stand for sources, by the ids of these. ``definition`` differs if
    stored rows are no longer what the query gives. It begins with ``query_name``, which differs if the query was replaced. ``query`` is the query as it was written, by which a value that cannot be computed is found.
    """

    id: int
    name: str
    view: MaterializedDefinition
    first: str
    changed: str
    inputs: tuple[SourceDefinition | MaterializedDefinition, ...]
    first_reads: tuple[VersionRead, ...]
    reads: tuple[VersionRead, ...]
    stored_name: str | None
    relations: Relations
    not_null: tuple[str, ...] = ()
    copies: Mapping[int, int] = field(default_factory=dict)
    definition: str = ""
    query: QueryDefinition | None = None
    query_name: str = ""

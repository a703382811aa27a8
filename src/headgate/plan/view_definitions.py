"""What the runtime is given of a materialized view: how it is kept. Data only, as in `headgate.plan.definitions`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from headgate.plan.definitions import MaterializedDefinition, QueryDefinition, Relations, SourceDefinition

Clock: TypeAlias = Literal["second", "day"]
"""How often the result of a query changes because of the time alone."""


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
    ``copies`` has the inputs that are stored copies of a source, by the id of the source. ``definition`` names what the stored
    rows were computed by: it changes when they are no longer what the query gives. It begins with ``query_name``, which changes
    when the query is replaced. ``query`` is the query as it was written, for finding a value that cannot be computed.
    ``anew`` is a query that gives the same as ``changed`` from the versions that ``first`` reads and the stored rows, and what it
    calls these; the query is empty where there is no other way.
    ``clock`` says how often the view is computed because of the time alone; None for never. ``time`` is then the
    relation, and the column of it, from which its queries take the time of the batch.
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
    clock: Clock | None = None
    time: tuple[str, str] = ("", "")
    anew: tuple[str, str] = ("", "")

"""The context of a statement: everything that planning may look at besides the statement itself."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import TypeAlias

from headgate.catalog.apply import apply
from headgate.catalog.catalog import Catalog
from headgate.catalog.changes import Change
from headgate.catalog.names import SearchPath
from headgate.catalog.secrets import SecretSource
from headgate.errors import InternalError
from headgate.schema.types import Type
from headgate.schema.written import WrittenSchema
from headgate.sql.query.scope import AnalysedQuery
from headgate.sql.registry_formats import Side

TakenSchema: TypeAlias = tuple[Side, WrittenSchema]
"""A schema of a source's keys or values that the source takes up."""

SparkTypes: TypeAlias = Callable[[Catalog, AnalysedQuery], Sequence[Type]]
"""The types of a query's columns as Spark finds them, where our own table of functions does not know them all."""


def _no_types(_catalog: Catalog, _analysed: AnalysedQuery) -> Sequence[Type]:
    raise InternalError("nobody is there to say the types of a query's columns")


@dataclass(frozen=True, slots=True)
class Answers:
    """Answers from outside that have no place in the statement itself.

    ``secret`` is the sealed value of a secret. ``schemas`` are the schemas that ACCEPT SCHEMA CHANGE takes up.
    """

    secret: SecretSource | None = None
    schemas: tuple[TakenSchema, ...] = ()
    types: SparkTypes = field(default=_no_types, compare=False)


@dataclass(frozen=True, slots=True)
class Context:
    """``now`` is the time of the whole script, and ``text`` the statement as it is stored, without secrets."""

    catalog: Catalog
    path: SearchPath
    now: datetime
    text: str = ""
    answers: Answers = field(default_factory=Answers)

    def after(self, changes: Sequence[Change]) -> Context:
        """The context of the next statement."""
        return replace(self, catalog=apply(self.catalog, *changes), answers=replace(self.answers, schemas=()))

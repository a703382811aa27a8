"""EXPLAIN, EXPLAIN … SCHEMA and EXPLAIN CHANGE."""

from __future__ import annotations

from dataclasses import dataclass

from headgate.sql.ast.formats import Side
from headgate.sql.ast.names import ObjectName
from headgate.sql.ast.sinks import CreateSink
from headgate.sql.ast.statement import ObjectKind, Statement


@dataclass(frozen=True, slots=True)
class Explain(Statement):
    """How a query, or the query of a statement, would be run."""

    statement: Statement


@dataclass(frozen=True, slots=True)
class ExplainObject(Statement):
    """How an object that exists is run."""

    kind: ObjectKind
    name: ObjectName


@dataclass(frozen=True, slots=True)
class ExplainSchema(Statement):
    """The schema that a sink publishes, or would publish."""

    side: Side
    sink: ObjectName | CreateSink


@dataclass(frozen=True, slots=True)
class ExplainChange(Statement):
    """What an ALTER or CREATE OR REPLACE would do to everything that depends on the object."""

    statement: Statement


@dataclass(frozen=True, slots=True)
class ExplainSubjectChange(Statement):
    """What a new schema of a registry's subject would do."""

    subject: str
    schema: str

"""Relations as Spark's temporary views: sources from their topics, views by their queries, system relations as rows."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TypeAlias

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import to_arrow_type
from pyspark.sql.types import StructType

from headgate.errors import InternalError
from headgate.plan import definitions as d
from headgate.runtime.failures import translated
from headgate.runtime.quarantine import FolderRows
from headgate.schema.formats.spark import from_spark, to_spark
from headgate.schema.types import Record, Type

SourceFrame: TypeAlias = Callable[[d.SourceDefinition], DataFrame]
MaterializedFrame: TypeAlias = Callable[[d.MaterializedDefinition], DataFrame]


@dataclass(frozen=True, slots=True)
class SystemRows:
    """The columns and rows of a system relation. ``more`` has further rows, which Spark reads from folders."""

    columns: Record
    rows: Sequence[Sequence[object]]
    more: FolderRows | None = None


def _no_system_relations(name: str) -> SystemRows:
    raise InternalError(f"a task reads the system relation {name}")


def _no_materialized_views(view: d.MaterializedDefinition) -> DataFrame:
    raise InternalError(f"a chain reads the materialized view {view.name} as a whole")


class RelationFrames:
    """Registers the relations that a query reads, each of them once, in the session that it is given."""

    def __init__(
        self,
        session: SparkSession,
        relations: d.Relations,
        source: SourceFrame,
        system_rows: Callable[[str], SystemRows] = _no_system_relations,
        materialized: MaterializedFrame = _no_materialized_views,
    ) -> None:
        """``system_rows`` knows system relations by `schema.table`."""
        self._session = session
        self._relations = relations
        self._source = source
        self._system_rows = system_rows
        self._materialized = materialized
        self._registered: set[str] = set()

    def query(self, query: d.QueryDefinition) -> DataFrame:
        """The rows of a query."""
        for name in query.system_relations:
            self._register(d.system_name(name), lambda name=name: self._system(name))  # type: ignore[misc]
        for id_ in query.relations:
            self._register(d.spark_name(id_), lambda id_=id_: self.relation(id_))  # type: ignore[misc]
        return self._session.sql(query.sql)

    def relation(self, relation_id: int) -> DataFrame:
        """The rows of one relation."""
        relation = self._relations[relation_id]
        match relation:
            case d.SourceDefinition():
                return self._source(relation)
            case d.MaterializedDefinition():
                return self._materialized(relation)
            case d.ViewDefinition():
                found = self.query(relation.query)
                names = tuple(name for name, _ in relation.query.columns)
                return found if names == relation.columns else found.toDF(*relation.columns)

    def close(self) -> None:
        """Forget the registered relations. Frames that were made from them stay valid. A session serves many tasks, and would
        otherwise keep the last batch of each of them."""
        for name in self._registered:
            self._session.catalog.dropTempView(name)

    def _register(self, name: str, frame: Callable[[], DataFrame]) -> None:
        if name not in self._registered:
            self._registered.add(name)
            frame().createOrReplaceTempView(name)

    def _system(self, name: str) -> DataFrame:
        found = self._system_rows(name)
        frame = _frame(self._session, found)
        return frame if found.more is None else frame.unionByName(found.more.frame(self._session))


class QueryTypes:
    """Asks Spark for the types of a query's columns. Nothing is run.

    All queries share one session, one after another: a session for each would stay in Spark's memory.
    """

    def __init__(self, session: Callable[[], SparkSession]) -> None:
        self._root = session
        self._guard = threading.Lock()
        self._session: SparkSession | None = None

    def types(self, sql: str, relations: dict[str, Record]) -> tuple[Type, ...]:
        """The types over relations with these columns. Raises what Spark says against the query."""
        root = self._root()
        with self._guard:
            session = self._session = self._session or root.newSession()
            try:
                for name, columns in relations.items():
                    session.createDataFrame([], _struct(columns)).createOrReplaceTempView(name)
                schema = session.sql(sql).schema
            except Exception as error:
                raise translated(error) from error
            finally:
                with suppress(Exception):  # Spark may be gone
                    for name in relations:
                        session.catalog.dropTempView(name)
        return tuple(from_spark(field.dataType) for field in schema.fields)


def _frame(session: SparkSession, found: SystemRows) -> DataFrame:
    """The rows as Spark's, by way of Arrow: a list would go through Python workers, in eight tasks."""
    schema = _struct(found.columns)
    types = [to_arrow_type(field.dataType, timezone="UTC") for field in schema.fields]
    columns = [pa.array([row[at] for row in found.rows], type_) for at, type_ in enumerate(types)]
    return session.createDataFrame(pa.Table.from_arrays(columns, names=schema.names), schema)


def _struct(columns: Record) -> StructType:
    type_ = to_spark(columns)
    assert isinstance(type_, StructType)
    return type_

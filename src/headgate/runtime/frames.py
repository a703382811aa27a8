"""Relations as Spark's temporary views: sources from their topics, views by their queries, system relations as data."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from headgate.catalog.information_schema import SYSTEM_RELATIONS
from headgate.catalog.objects import Kind, Object
from headgate.catalog.snapshot import Catalog
from headgate.catalog.store import Reader
from headgate.plan.chain import sound_query
from headgate.plan.definitions import spark_name
from headgate.plan.errors import NotSupportedYet
from headgate.plan.relations import relations_read, system_relations_read
from headgate.schema.formats.spark import to_spark
from headgate.sql.query.scope import AnalysedQuery

SourceFrame = Callable[[Object], DataFrame]


class Frames:
    """Registers what a query reads, each relation once, in a session of its own."""

    def __init__(
        self,
        session: SparkSession,
        catalog: Catalog,
        reader: Reader,
        source: SourceFrame,
        views: dict[int, AnalysedQuery] | None = None,
    ) -> None:
        """``views`` keeps what was analysed, for whoever makes the same frames again."""
        self._session = session
        self._catalog = catalog
        self._reader = reader
        self._source = source
        self._views = {} if views is None else views
        self._done: set[str] = set()

    def query(self, analysed: AnalysedQuery) -> DataFrame:
        self._register(relations_read(analysed), system_relations_read(analysed))
        return self._session.sql(analysed.spark_sql)

    def relation(self, relation_id: int) -> DataFrame:
        return self._frame(self._catalog.get(relation_id))

    def _register(self, relations: Iterable[int], system: Iterable[str]) -> None:
        for name in system:
            if name not in self._done:
                self._done.add(name)
                self._system(name)
        for id_ in relations:
            if spark_name(id_) not in self._done:
                self._done.add(spark_name(id_))
                self._frame(self._catalog.get(id_)).createOrReplaceTempView(spark_name(id_))

    def _frame(self, relation: Object) -> DataFrame:
        match relation.kind:
            case Kind.SOURCE:
                return self._source(relation)
            case Kind.VIEW:
                if relation.id not in self._views:
                    self._views[relation.id] = sound_query(self._catalog, relation)
                analysed, names = self._views[relation.id], [c.name for c in relation.columns]
                found = self.query(analysed)
                return found if [c.name for c in analysed.columns] == names else found.toDF(*names)
            case _:
                raise NotSupportedYet(f"reading a {relation.kind}")

    def _system(self, name: str) -> None:
        schema, _, table = name.partition(".")
        relation = next(r for r in SYSTEM_RELATIONS if (r.schema, r.name) == (schema, table))
        type_ = to_spark(relation.columns)
        assert isinstance(type_, StructType)
        rows = [tuple(row) for row in relation.read(self._catalog, self._reader).rows]
        self._session.createDataFrame(rows, type_).createOrReplaceTempView(f"{schema}_{table}")

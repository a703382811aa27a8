"""Reading a source's topic: which schemas its records may be written with, and its rows as a DataFrame."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce

from pyspark.sql import Column, DataFrame, Observation, Row, SparkSession
from pyspark.sql import functions as F

from headgate.catalog.positions import KafkaRecord
from headgate.connectors.connections import Clients
from headgate.connectors.kafka import KafkaCluster, Topic
from headgate.plan.definitions import AT, ConnectionRef, RecordSide, SourceDefinition, SourceLayout
from headgate.registry.client import RegistryClient
from headgate.runtime.decode import Decoder
from headgate.runtime.formats import frame
from headgate.runtime.formats.side import WriterSchemas
from headgate.runtime.schemas import SideSchemas
from headgate.schema.encodings import CsvEncoding, JsonEncoding, RegexEncoding, SchemaEncoding, TextEncoding
from headgate.schema.evolve.verdicts import Target
from headgate.schema.written import WrittenSchema

MOST_IDS = 1000  # that one look at the records takes up

# 500 ms by default, for which every idle partition blocks its task (RUNTIME: 10.3 s -> 0.5 s with many topics).
READER = {
    "kafka.fetch.max.wait.ms": "10",
    "kafka.isolation.level": "read_committed",
    # RUNTIME: together with the writer's settings these bring 205 to 350 thousand records a second.
    "kafka.max.partition.fetch.bytes": "4194304",
    "kafka.max.poll.records": "5000",
    "failOnDataLoss": "true",
    # A broker that is away is told after 20 s and tried again; by default Spark waits three times a minute in silence.
    "kafka.request.timeout.ms": "10000",
    "kafka.default.api.timeout.ms": "10000",
    "fetchOffset.numRetries": "2",
    "kafkaConsumer.pollTimeoutMs": "30000",
}

POSITION = ("topic", "partition", "offset", "timestamp")  # of a record, as Spark's reader names them

Suspect = tuple[str, int]  # side and schema id
FirstSuspect = tuple[int, Suspect]  # with its offset

LATEST = """
SELECT hg_last.* FROM (
  SELECT max_by(hg_last, struct(hg_last.timestamp, hg_partition)) AS hg_last FROM (
    SELECT hg_group, hg_last.partition AS hg_partition, max_by(hg_last, hg_last.offset) AS hg_last
    FROM {keyed} GROUP BY hg_group, hg_last.partition
  ) GROUP BY hg_group
)"""


class SourceReader:
    """One source of the catalog. Keeps what it learned of the registry, so that it asks once for each schema."""

    def __init__(self, source: SourceDefinition, clients: Clients) -> None:
        self.id = source.id
        self.name = source.name
        self.layout = source.layout
        self.topic_name = source.topic
        self.start_at = source.start_offsets
        self.cluster: KafkaCluster = clients.kafka(source.connection)
        self._made: tuple[tuple[WriterSchemas, WriterSchemas], Decoder] | None = None
        self._raw: DataFrame | None = None  # decoded last
        self.schemas: Mapping[str, SideSchemas] = {
            "key": SideSchemas(
                self.layout.key,
                self.layout.on_key_change,
                _registry(clients, source.key_registry),
                f"{self.topic_name}-key",
                Target.KEY,
            ),
            "value": SideSchemas(
                self.layout.value,
                self.layout.on_schema_change,
                _registry(clients, source.value_registry),
                f"{self.topic_name}-value",
            ),
        }

    # where to read

    def start_offsets(self, topic: Topic) -> dict[int, int]:
        """Where the statement says to begin: the earliest offsets unless told otherwise. A partition that was added later
        begins at its start, and one whose first records are gone at what is left."""
        earliest = self.cluster.offsets(topic, latest=False)
        return {p: max(self.start_at.get(p, first), first) for p, first in earliest.items()}

    def options(self) -> dict[str, str]:
        wants_headers = any(c.origin.name == "HEADERS" or c.origin.section == "header" for c in self.layout.columns)
        return {**self.cluster.spark(), **READER, "includeHeaders": str(wants_headers).lower()}

    # what is there

    def raw(self, session: SparkSession) -> DataFrame:
        """Everything that is in the topic now. Offsets are fixed when the frame is made."""
        topic = self.cluster.topic(self.topic_name)
        start, end = self.start_offsets(topic), self.cluster.offsets(topic, latest=True)
        start = {p: min(offset, end[p]) for p, offset in start.items()}
        return self.between(session, start, end)

    def between(
        self,
        session: SparkSession,
        start: Mapping[int, int],
        end: Mapping[int, int],
        group: str | None = None,
    ) -> DataFrame:
        """The raw records from ``start`` up to, and without, ``end``; both tell of every partition. Whoever reads again
        and again names a ``group``: Spark keeps consumers by group and partition, and insists on one's same settings."""
        options = self.options()
        reader = session.read.format("kafka").options(**options).option("subscribe", self.topic_name)
        if group is not None:
            settings = hashlib.sha256(json.dumps(options, sort_keys=True).encode()).hexdigest()
            reader = reader.option("kafka.group.id", f"{group}-{settings[:8]}")
        reader = reader.option("startingOffsets", offsets_json(self.topic_name, start))
        return reader.option("endingOffsets", offsets_json(self.topic_name, end)).load()

    def decode(self, raw: DataFrame) -> DataFrame:
        """Raw records, decoded with the schemas that were known at the last ``refresh``."""
        self._raw = raw
        return self._decoder().decode(raw)

    def _decoder(self) -> Decoder:
        """Made anew only when there are other schemas than before."""
        writers = self.schemas["key"].writers(), self.schemas["value"].writers()
        if self._made is None or self._made[0] != writers:
            self._made = writers, Decoder(self.layout, *writers, self.id)
        return self._made[1]

    def problem(self, partition: int, offset: int) -> Row | None:
        """What is wrong with one record of what was decoded last: side, reason and schema id."""
        assert self._raw is not None
        ends = self.cluster.offsets(self.cluster.topic(self.topic_name), latest=False)
        start = {**ends, partition: offset}
        raw = self.between(self._raw.sparkSession, start, {**start, partition: offset + 1})
        decoder = self._decoder()
        problems = decoder.with_problems(decoder.decode(raw)).where("hg_problem IS NOT NULL")
        return problems.select("hg_problem.*").first()

    def rows(self, decoded: DataFrame) -> DataFrame:
        """The source's columns of the good records; for a keyed source its current state, the last row per key."""
        return self.current(self.changes(decoded))

    def changes(self, decoded: DataFrame) -> DataFrame:
        """The good records; of a keyed source the last of every key, deletions included."""
        good = self._decoder().accepted(decoded)
        return good if self.layout.envelope == "NONE" else latest_per_key(good, self.layout)

    def count_rejected(self, decoded: DataFrame, observation: Observation) -> DataFrame:
        """The same records, counted by the job that reads them if they are not accepted."""
        return self._decoder().count_rejected(decoded, observation)

    def with_problems(self, decoded: DataFrame) -> DataFrame:
        """Decoded records with what is wrong with each, as the column `hg_problem`."""
        return self._decoder().with_problems(decoded)

    def current(self, changes: DataFrame) -> DataFrame:
        return self.columns(self._decoder().not_deleted(changes))

    def columns(self, records: DataFrame) -> DataFrame:
        return self._decoder().columns(records)

    def positioned(self, changes: DataFrame) -> DataFrame:
        """The source's columns of records that are rows, and the position of each record as the column `AT`."""
        decoder = self._decoder()
        return decoder.columns(decoder.not_deleted(changes), F.struct(*POSITION).alias(AT))

    def marked(self, changes: DataFrame) -> DataFrame | None:
        """The source's columns of all changes, and whether each is a row or a deletion. None if a column can fail the job,
        which must then not be computed for rows that a query leaves out."""
        decoder = self._decoder()
        return None if decoder.guards_columns else decoder.marked(changes)

    def expected(self, side: str) -> str:
        """What a record's key or value should have been, for the quarantine."""
        if side == "header":
            return "text"
        encoding = self.layout.key if side == "key" else self.layout.value
        if isinstance(encoding, SchemaEncoding):
            return encoding.format.words.lower()
        names = {JsonEncoding: "json", TextEncoding: "text", CsvEncoding: "csv", RegexEncoding: "regex"}
        return names.get(type(encoding), "bytes")

    # schemas

    def refresh(self) -> None:
        """Look at the subjects' versions: every id that records up to now can hold is known after it."""
        for side in self.schemas.values():
            side.refresh()

    def learn(self, schema_id: int) -> None:
        """Take up a schema that a record names and that no version of the subject has; and with it every other such of
        the records at hand, each of which would fail the job once more."""
        for name, side in self.schemas.items():
            side.learn(schema_id)
            if side.asks and self._raw is not None:
                ids = self._raw.select(frame.schema_id(F.col(name)).alias("id")).distinct().limit(MOST_IDS)
                for row in ids.where("id IS NOT NULL").collect():
                    side.learn(row["id"])

    def ask_again(self) -> None:
        """Forget which ids the registry did not know: it may know them now."""
        for side in self.schemas.values():
            side.ask_again()

    def writer(self, schema_id: int, side: str) -> WrittenSchema | None:
        return self.schemas[side].schema(schema_id)

    def arrived(self, raw: Callable[[], DataFrame]) -> list[Arrived]:
        """The schemas that would change what the source gives and that raw records have, each with the first such
        record. They are read for it only while there is such a schema."""
        found = []
        for name, side in self.schemas.items():
            growing = {schema.id or 0: schema for schema in side.growing()}
            found += self._first_records(raw, name, growing) if growing else []
        return found

    def _first_records(
        self, raw: Callable[[], DataFrame], name: str, schemas: Mapping[int, WrittenSchema]
    ) -> list[Arrived]:
        place = F.struct("partition", "offset")
        found = raw().where(frame.has_schema_id(F.col(name), schemas)).groupBy(frame.schema_id(F.col(name)).alias("id"))
        side: RecordSide = "key" if name == "key" else "value"
        first = {row["id"]: row["first"] for row in found.agg(F.min(place).alias("first")).collect()}
        return [
            Arrived(schema, KafkaRecord(self.topic_name, first[id_]["partition"], first[id_]["offset"]), side)
            for id_, schema in schemas.items()
            if id_ in first
        ]

    def suspects(self, raw: Callable[[], DataFrame], proven: Collection[Suspect]) -> dict[int, FirstSuspect]:
        """For each partition the first raw record with a schema that stops whoever uses what it changed, without those
        that are ``proven`` to stop nobody. They are read for it only while there is such a schema."""
        ids = {
            side: {*writers.unreadable_fields, *writers.halting} - {id_ for known, id_ in proven if known == side}
            for side, schemas in self.schemas.items()
            for writers in [schemas.writers()]
        }
        found = [
            raw()
            .where(frame.has_schema_id(F.col(side), each))
            .select("partition", "offset", F.lit(side).alias("side"), frame.schema_id(F.col(side)).alias("id"))
            for side, each in ids.items()
            if each
        ]
        if not found:
            return {}
        first = reduce(DataFrame.union, found).groupBy("partition")
        rows = first.agg(F.min_by(F.struct("offset", "side", "id"), "offset").alias("first")).collect()
        return {r["partition"]: (r["first"]["offset"], (r["first"]["side"], r["first"]["id"])) for r in rows}


@dataclass(frozen=True, slots=True)
class Arrived:
    """A schema, and the first record that has it."""

    schema: WrittenSchema
    record: KafkaRecord
    side: RecordSide = "value"


Follow = Callable[[int, Sequence[Arrived]], None]  # the source's id, and what its records have


def latest_per_key(decoded: DataFrame, layout: SourceLayout) -> DataFrame:
    """The last record of every key. Offsets order within a partition; between partitions, which a key changes only
    when partitions are added, the time of the record does. All records of a key are brought together first: both
    steps then need one shuffle and one sort. In SQL, because `groupBy` does not go by the session's settings in a thread
    that is not the session's own, and without them Spark has no times of day."""
    keys = [c for c in layout.columns if c.key]
    key: Column = (
        F.struct(*[F.col("hg_value").getField(c.origin.name) for c in keys]) if layout.key_in_value else F.col("hg_key")
    )
    whole = F.struct(*[F.col(name) for name in decoded.columns]).alias("hg_last")
    keyed = decoded.select(key.alias("hg_group"), whole).repartition("hg_group")
    return decoded.sparkSession.sql(LATEST, keyed=keyed)


def _registry(clients: Clients, connection: ConnectionRef | None) -> Callable[[], RegistryClient | None]:
    """Opens the client of a registry when it is needed."""
    return lambda: None if connection is None else clients.registry(connection)


def offsets_json(topic: str, offsets: Mapping[int, int]) -> str:
    return json.dumps({topic: {str(partition): offset for partition, offset in sorted(offsets.items())}})

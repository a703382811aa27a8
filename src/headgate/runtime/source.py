"""Reading a source's topic: which schemas its records may be written with, and its rows as a DataFrame."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce

from pyspark.sql import Column, DataFrame, Observation, Row, SparkSession, functions as F

from headgate.catalog.positions import KafkaPosition, KafkaRecord
from headgate.connectors.connections import Clients
from headgate.connectors.kafka import KafkaCluster, Topic
from headgate.plan.definitions import AT, ConnectionRef, RecordSide, SchemaChangePolicy, SourceDefinition, SourceLayout
from headgate.registry.client import RegistryClient
from headgate.registry.errors import SchemaIdNotFound, SubjectDeleted, SubjectNotFound
from headgate.registry.wire import MAX_ID
from headgate.runtime.decode import Decoder
from headgate.runtime.formats import frame
from headgate.runtime.formats.side import WriterSchemas
from headgate.schema.encodings import CsvEncoding, Encoding, JsonEncoding, RegexEncoding, SchemaEncoding, TextEncoding
from headgate.schema.evolve.verdicts import ArrivingSchema, Target, arriving
from headgate.schema.written import WrittenSchema

MAX_NEW_IDS = 1000  # schema ids that one look at the records learns
MAX_REFUSED = 5000  # ids that no schema has and that are remembered; bytes that are no frames may name ever new ones

# By default an idle partition blocks its task for 500 ms. With many topics a batch took 10.3 s, and 0.5 s with this.
READER = {
    "kafka.fetch.max.wait.ms": "10",
    "kafka.isolation.level": "read_committed",
    # Together with the writer's settings these raise 205 thousand records a second to 350 thousand.
    "kafka.max.partition.fetch.bytes": "4194304",
    "kafka.max.poll.records": "5000",
    "failOnDataLoss": "true",
    # A broker that does not answer is reported after 20 s. By default Spark tries three times, a minute each, before it says so.
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
        self.kind = source.kind
        self.layout = source.layout
        self.topic_name = source.topic
        self.start_at = source.start_offsets
        self.cluster: KafkaCluster = clients.kafka(source.connection)
        self.record_count = 0  # of what `raw` gave last
        self.read_until: KafkaPosition | None = None  # where the topic ended then
        self._made: tuple[tuple[WriterSchemas, WriterSchemas], Decoder] | None = None
        self._raw: DataFrame | None = None  # decoded last
        self.schemas: Mapping[str, KnownSchemas] = {
            "key": KnownSchemas(
                self.layout.key,
                self.layout.on_key_change,
                _registry(clients, source.key_registry),
                f"{self.topic_name}-key",
                Target.KEY,
            ),
            "value": KnownSchemas(
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
        self.record_count = sum(end.values()) - sum(start.values())
        self.read_until = KafkaPosition(topic.name, topic.id, tuple(end[p] for p in sorted(end)))
        return self.between(session, start, end)

    def between(
        self, session: SparkSession, start: Mapping[int, int], end: Mapping[int, int], group: str | None = None
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
            if side.uses_registry and self._raw is not None:
                ids = self._raw.select(frame.schema_id(F.col(name)).alias("id")).distinct().limit(MAX_NEW_IDS)
                for row in ids.where("id IS NOT NULL").collect():
                    side.learn(row["id"])

    def ask_again(self) -> None:
        """Forget which ids the registry did not know: it may know them now."""
        for side in self.schemas.values():
            side.ask_again()

    def writer(self, schema_id: int, side: str) -> WrittenSchema | None:
        return self.schemas[side].schema(schema_id)

    def arrived(self, raw: Callable[[], DataFrame], *, few: bool = False) -> list[ArrivedSchema]:
        """The schemas that would change what the source gives and that raw records have, each with the first such
        record. They are read for it only while there is such a schema. ``few`` says that there are only some thousands."""
        found = []
        for name, side in self.schemas.items():
            followable = {schema.id or 0: schema for schema in side.followable()}
            found += self._first_records(raw, name, followable, few) if followable else []
        return found

    def _first_records(
        self, raw: Callable[[], DataFrame], name: str, schemas: Mapping[int, WrittenSchema], few: bool
    ) -> list[ArrivedSchema]:
        """A few places are collected as they are: an aggregation is a second stage, which costs more than to read them."""
        place, id_of = F.struct("partition", "offset").alias("place"), frame.schema_id(F.col(name)).alias("id")
        found = raw().where(frame.has_schema_id(F.col(name), schemas)).select(id_of, place)
        rows = (found if few else found.groupBy("id").agg(F.min("place").alias("place"))).collect()
        first = {row["id"]: row["place"] for row in sorted(rows, key=lambda row: row["place"], reverse=True)}
        side: RecordSide = "key" if name == "key" else "value"
        return [
            ArrivedSchema(schema, KafkaRecord(self.topic_name, first[id_]["partition"], first[id_]["offset"]), side)
            for id_, schema in schemas.items()
            if id_ in first
        ]

    def suspects(self, raw: Callable[[], DataFrame], proven: Collection[Suspect]) -> dict[int, FirstSuspect]:
        """The first record of each partition whose schema may halt the task. Schemas that are ``proven`` to halt nothing
        are skipped. Reads nothing if no other such schema is known."""
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
class ArrivedSchema:
    """A schema, and the first record that has it."""

    schema: WrittenSchema
    record: KafkaRecord
    side: RecordSide = "value"


Follow = Callable[[int, Sequence[ArrivedSchema]], None]  # the source's id, and what its records have


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


MAX_ASKED_AGAIN = 5  # ids that the registry did not know, and that one look asks for again


class KnownSchemas:
    """Asks the registry once for each schema. Under FOLLOW and HALT an id of a later version than the frozen schema's,
    or of none, may change what the side gives."""

    def __init__(
        self,
        side: Encoding | None,
        policy: SchemaChangePolicy,
        client: Callable[[], RegistryClient | None],
        subject: str,
        target: Target = Target.READER,
    ) -> None:
        self.side = side if isinstance(side, SchemaEncoding) and side.framed else None
        self._policy = policy
        self._target = target
        self._client = client() if self.side is not None else None
        self._subject = subject
        self._versions: dict[int, int] = {}  # version -> id
        self._known: dict[int, WrittenSchema] = {}
        self._refused: dict[int, None] = {}  # in the order in which they were asked for
        for schema in self.side.schemas if self.side is not None else ():
            if schema.id:
                self._known[schema.id] = schema

    # what is there

    @property
    def uses_registry(self) -> bool:
        """Whether its records name schemas of a registry."""
        return self.side is not None and self._client is not None

    def ask_again(self) -> None:
        """Forget which ids the registry did not know: it may know them now."""
        self._refused.clear()

    def refresh(self) -> None:
        """Look at the subject's versions: every id that records up to now can hold is known after it."""
        if self.side is None or self._client is None:
            return
        self._ask_for_refused()
        try:
            versions = self._client.versions(self._subject)
        except (SubjectNotFound, SubjectDeleted):
            return
        for version in versions:
            if version not in self._versions:
                schema_id = self._client.version(self._subject, version).schema_id
                self._refused.pop(schema_id, None)
                self.learn(schema_id)
                self._versions[version] = schema_id

    def has_new_version(self) -> bool:
        """Whether the subject has a version that no `refresh` has seen. Any thread may ask. Raises if the registry does not
        answer."""
        if self.side is None or self._client is None:
            return False
        try:
            return any(version not in self._versions for version in self._client.versions(self._subject))
        except (SubjectNotFound, SubjectDeleted):
            return False

    def _ask_for_refused(self) -> None:
        """An id may be registered after the first record that names it, also under another subject."""
        for schema_id in [*self._refused][:MAX_ASKED_AGAIN]:
            del self._refused[schema_id]
            self.learn(schema_id)

    def learn(self, schema_id: int) -> None:
        """Take up a schema that a record names, also one that no version of the subject has."""
        if self.side is None or self._client is None or schema_id in self._known or schema_id in self._refused:
            return
        if schema_id > MAX_ID:  # a registry would not even take it for an id
            self._refuse(schema_id)
            return
        try:
            self._known[schema_id] = self._client.written(self._client.schema_by_id(schema_id), schema_id)
        except SchemaIdNotFound:
            self._refuse(schema_id)

    def _refuse(self, schema_id: int) -> None:
        self._refused[schema_id] = None
        if len(self._refused) > MAX_REFUSED:
            del self._refused[next(iter(self._refused))]

    def schema(self, schema_id: int) -> WrittenSchema | None:
        return self._known.get(schema_id)

    # what they change

    def writers(self) -> WriterSchemas:
        if self.side is None or self._policy == "PIN":
            return WriterSchemas(dict(self._known), frozenset(self._refused))
        judged = self._judged()
        newer = {id_ for id_, one in judged.items() if one.is_readable}
        broken = {id_: judged[id_].breaking_fields() for id_ in newer if judged[id_].breaks}
        halting = {id_ for id_ in newer if judged[id_].grows or judged[id_].breaks} if self._policy == "HALT" else set()
        halting |= judged.keys() - newer  # nobody can follow those
        if self._target is Target.KEY:  # another key concerns every row
            halting |= broken.keys()
        return WriterSchemas(dict(self._known), frozenset(self._refused), frozenset(newer), broken, frozenset(halting))

    def followable(self) -> list[WrittenSchema]:
        """The schemas that FOLLOW takes up once a record has them, in the order of their versions."""
        if self.side is None or self._policy != "FOLLOW":
            return []
        return [self._known[id_] for id_, one in self._judged().items() if one.grows]

    def changed(self) -> list[WrittenSchema]:
        """The schemas that change what the side gives, whether it can follow or not. Raises if there is only one that has
        no type at all."""
        if self.side is None:
            return []
        judged = self._judged()
        if self._target is Target.KEY:  # another key cannot be accepted
            return [self._known[id_] for id_, one in judged.items() if one.grows]
        changed = [self._known[id_] for id_, one in judged.items() if one.grows or one.breaks]
        unreadable = [one.error for one in judged.values() if one.error is not None]
        if unreadable and not changed:
            raise unreadable[0]
        return changed

    def describe(self, schema_id: int) -> tuple[str, ...]:
        """What an id changes, in words."""
        schema = self._known.get(schema_id)
        return () if schema is None or self.side is None else self._judge(schema).describe()

    def _judge(self, schema: WrittenSchema) -> ArrivingSchema:
        assert self.side is not None
        return arriving(self.side, schema, self._target)

    def _judged(self) -> dict[int, ArrivingSchema]:
        """What each newer schema changes, by id."""
        return {id_: self._judge(self._known[id_]) for id_ in self._newer()}

    def _newer(self) -> list[int]:
        """Ids that are not of the frozen schema's version or an earlier one."""
        assert self.side is not None
        frozen = [v for v, id_ in self._versions.items() if id_ == self.side.first.id]
        past = {id_ for v, id_ in self._versions.items() if frozen and v <= min(frozen)}
        past |= {self.side.first.id or 0}
        order = {id_: version for version, id_ in sorted(self._versions.items())}
        newer = [id_ for id_ in self._known if id_ not in past]
        return sorted(newer, key=lambda id_: (order.get(id_, len(order) + 1), id_))

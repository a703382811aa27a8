"""A session of Spark and a broker beside it: topics filled from frames, and read as the runtime reads them."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]
from pyspark.sql import DataFrame, SparkSession

from headgate.embedded.spark import open_spark
from headgate.embedded.world import World
from headgate.runtime.source import READER

PARTITIONS = 4


@dataclass(frozen=True, slots=True)
class Topics:
    session: SparkSession
    brokers: str

    def fill(self, name: str, records: DataFrame) -> None:
        admin = AdminClient({"bootstrap.servers": self.brokers})
        admin.create_topics([NewTopic(name, PARTITIONS)])[name].result(30)
        writer = records.write.mode("append").format("kafka").option("topic", name)
        writer.option("kafka.bootstrap.servers", self.brokers).save()

    def read(self, name: str, *, bare: bool = False) -> DataFrame:
        """As the runtime reads it, or as one who says no more than he must."""
        reader = self.session.read.format("kafka").options(**({} if bare else READER))
        return reader.option("subscribe", name).option("kafka.bootstrap.servers", self.brokers).load()


@contextmanager
def open_topics() -> Iterator[Topics]:
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        Path(folder).chmod(0o755)
        session = open_spark(master="local[2]", warehouse=Path(folder))
        try:
            with World.open(Path(folder) / "world", idle_timeout=1.0) as world:
                try:
                    yield Topics(session, world.ensure("kafka")["kafka"])
                finally:
                    world.shut_down()
        finally:
            session.stop()

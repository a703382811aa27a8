"""Schema changes in flight: how much longer than an ordinary batch the flow stops for one.

A source that follows, a sink over it, and a record every 50 ms. Now and then the producer registers a version with one more
field and goes on with it. A stop is the longest time from sending to having among the records sent in the seconds
after a change; the peer is the same for the seconds before it.
"""

from __future__ import annotations

import json
import statistics
import time

import fastavro
from confluent_kafka import Producer

from bench.engines import Receiver, Site, execute, framed, open_site
from bench.figures import Report, Row, Size
from headgate.registry.client import RegistryClient
from headgate.registry.schemas import Schema

MORE = 2.0  # seconds, promised
EVERY = 0.05
TOPIC = "changing"
PIPELINE = f"""
CREATE SOURCE {TOPIC} FROM KAFKA CONNECTION kafka (TOPIC '{TOPIC}')
  FORMAT AVRO USING CONFLUENT SCHEMA REGISTRY CONNECTION registry WITH (ON SCHEMA CHANGE = FOLLOW);
CREATE SINK {TOPIC}_sink FROM {TOPIC} INTO KAFKA CONNECTION kafka (TOPIC '{TOPIC}_out')
  FORMAT AVRO USING CONFLUENT SCHEMA REGISTRY CONNECTION registry;
"""


def run(size: Size) -> Report:
    changes, warm, span = (1, 15.0, 10.0) if size == "small" else (8, 60.0, 15.0)
    with open_site() as site:
        row = _measured(site, changes, warm, span)
    note = f"The median of {changes} changes, each in the middle of {2 * span:.0f} s with 20 records a second."
    return Report("Schema changes", (row,), (note,))


def _measured(site: Site, changes: int, warm: float, span: float) -> Row:
    for topic in (TOPIC, f"{TOPIC}_out"):
        site.create_topic(topic)
    at: list[float] = []
    with RegistryClient([site.registry]) as client:
        first = client.register(f"{TOPIC}-value", Schema(_version(0)))
        with site.engine("engine") as engine:
            execute(engine, PIPELINE)
            receiver = Receiver(site.brokers, [f"{TOPIC}_out"])
            receiver.start()
            producer = Producer({"bootstrap.servers": site.brokers, "linger.ms": 0})
            _send(producer, first, 0, warm + span)
            for number in range(1, changes + 1):
                id_ = client.register(f"{TOPIC}-value", Schema(_version(number)))
                at.append(time.time())
                _send(producer, id_, number, 2 * span)
            producer.flush(30)
            receiver.finish(20)
    before = [_longest(receiver, moment - span, moment) for moment in at]
    after = [_longest(receiver, moment, moment + span) for moment in at]
    more = statistics.median(b - a for a, b in zip(before, after, strict=True))
    return Row(
        "the flow stops at a new field for", f"{statistics.median(after):.2f} s",
        f"{statistics.median(before):.2f} s without one", None, f"at most {MORE:.0f} s more", more <= MORE,
    )  # fmt: skip


def _version(number: int) -> str:
    new = [{"name": f"f{n}", "type": ["null", "string"], "default": None} for n in range(1, number + 1)]
    return json.dumps({"type": "record", "name": "change", "fields": [{"name": "sent", "type": "double"}, *new]})


def _send(producer: Producer, schema_id: int, number: int, seconds: float) -> None:
    schema = fastavro.parse_schema(json.loads(_version(number)))
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        record = {"sent": time.time(), **{f"f{n}": "new" for n in range(1, number + 1)}}
        producer.produce(TOPIC, framed(schema_id, schema, record))
        producer.poll(0)
        time.sleep(EVERY)


def _longest(receiver: Receiver, start: float, end: float) -> float:
    return max(had - sent for sent, had in receiver.seen if start <= sent < end)

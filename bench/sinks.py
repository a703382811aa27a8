"""Kafka Avro -> filter and projection -> a topic in each format that has a schema, against the job by hand that writes Avro.

The job by hand has the same client settings as Headgate here, so that the code is compared and not the settings. Rates are
the best of three runs, with the spread of all, from the end of the first batch to the end of the last.

`HEADGATE_BENCH_RECORDS` sets the number of records.
"""

from __future__ import annotations

from collections.abc import Iterator

from bench.engines import Site, execute, open_site
from bench.figures import Report, Row, Size, wanted_records
from bench.pipeline import PARTITIONS, ROUNDS, Bench, Course, spread

DOCUMENTED, OTHERS = 0.9, 0.3  # promises
NAMES = {"AVRO": "avro", "JSON SCHEMA": "json_schema", "PROTOBUF": "protobuf"}

COMMENTS = """
COMMENT ON VIEW {name}_dear IS 'orders of a hundred and more';
COMMENT ON COLUMN {name}_dear.what IS 'the goods, in capitals';
COMMENT ON COLUMN {name}_dear.price IS 'in EUR';
"""


def run(size: Size) -> Report:
    records = wanted_records(size == "small")
    with open_site() as site:
        rows = tuple(Formats(site).rates(records))
    notes = (
        f"{records:,} records in {PARTITIONS} partitions; the job by hand writes Avro with Headgate's client settings.",
        "By hand: readStream, from_avro with a fixed schema, writeStream; no registry, no ledger, no check of left-over bytes.",
    )
    return Report("Sinks by format", rows, notes)


class Formats:
    def __init__(self, site: Site) -> None:
        self._site = site
        self._bench = Bench(site)

    def rates(self, records: int) -> Iterator[Row]:
        self._bench.fill("whole", records)
        ours = {format_: self._by_headgate(format_) for format_ in NAMES}
        peers = [self._bench.by_hand("whole", f"by_hand{n}", tuned=True) for n in range(ROUNDS)]
        for format_, runs in ours.items():
            yield _row(format_, runs, peers)

    def _by_headgate(self, format_: str) -> list[Course]:
        name = NAMES[format_]
        with self._site.engine(name) as engine:
            execute(engine, "SELECT 1;")
            return [self._bench.follow(engine, "whole", f"{name}{n}", format_, COMMENTS) for n in range(ROUNDS)]


def _row(format_: str, runs: list[Course], peers: list[Course]) -> Row:
    ours, peer = max(runs, key=lambda c: c.rate), max(peers, key=lambda c: c.rate)
    promise = DOCUMENTED if format_ == "AVRO" else OTHERS
    documented = " with docs" if format_ == "AVRO" else ""
    return Row(
        f"Kafka Avro -> Kafka {format_}{documented}, best of {ROUNDS}", f"{ours.rate:,.0f} rows/s ({spread(runs)})",
        f"{peer.rate:,.0f} rows/s Avro by hand ({spread(peers)})", ours.rate / peer.rate, f"at least {promise}",
        ours.rate / peer.rate >= promise,
    )  # fmt: skip

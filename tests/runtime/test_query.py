"""A query over sources that grow: all of them are looked at before it is begun anew."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import cast
from unittest.mock import MagicMock

import pytest

from headgate.connectors.connections import Clients, ServerOptions
from headgate.plan.definitions import QueryDefinition, SelectDefinition, SourceDefinition
from headgate.runtime import query as module
from headgate.runtime.errors import QueryCancelled
from headgate.runtime.query import BatchQuery, Failed, Grown, QueryRequest
from headgate.runtime.spool import Receiver

pytestmark = pytest.mark.unit

JOINED = [SimpleNamespace(id=number) for number in range(1, 6)]
GROWING = (1, 2, 4, 5)


class Joined:
    """The frames of a query that reads five sources."""

    def __init__(self, _: object, __: object, source: Callable[[object], object], *_rest: object) -> None:
        self._source = source

    def query(self, _: object) -> None:
        for source in JOINED:
            self._source(source)


class Reader:
    def __init__(self, source: SourceDefinition, _: Clients) -> None:
        self._id = source.id
        self.layout = SimpleNamespace(on_error="HALT")

    def refresh(self) -> None:
        return

    def raw(self, _: object) -> None:
        return

    def arrived(self, _: object) -> list[str]:
        return ["a schema"] if self._id in GROWING else []

    def decode(self, _: None) -> MagicMock:
        return MagicMock()

    def rows(self, decoded: MagicMock) -> MagicMock:
        return decoded


@pytest.fixture
def query(tmp_path: Path) -> Iterator[BatchQuery]:
    """A query whose Spark does nothing."""
    select = SelectDefinition(QueryDefinition("SELECT 1", (("one", None),)), {})
    receiver = Receiver(tmp_path, 1 << 20)
    spool = receiver.open()
    yield BatchQuery(MagicMock(), QueryRequest(select, ServerOptions({}, {}), {}), cast("Clients", None), spool)
    spool.close()
    receiver.close()


def test_all_sources_of_a_query_grow_before_it_is_begun_anew(
    monkeypatch: pytest.MonkeyPatch, query: BatchQuery
) -> None:
    monkeypatch.setattr(module, "RelationFrames", Joined)
    monkeypatch.setattr(module, "SourceReader", Reader)
    query.run(("127.0.0.1", 0), "pool")
    assert list(query.answers()) == [Grown(tuple((number, ("a schema",)) for number in GROWING))]  # type: ignore[misc]


def test_what_spark_says_of_a_cancelled_query_is_that_it_was_cancelled(
    monkeypatch: pytest.MonkeyPatch, query: BatchQuery
) -> None:
    def interrupted(*_: object) -> None:
        query.cancel()
        raise RuntimeError("Job 7 cancelled part of cancelled job tags")

    monkeypatch.setattr(module, "RelationFrames", interrupted)
    query.run(("127.0.0.1", 0), "pool")
    (answer,) = query.answers()
    assert isinstance(answer, Failed)
    assert isinstance(answer.error, QueryCancelled)

"""A query over sources that grow: all of them are looked at before it is begun anew."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import cast
from unittest.mock import MagicMock

import pytest

from headgate.connectors.connections import Clients
from headgate.plan.definitions import QueryDefinition, SelectDefinition, SourceDefinition
from headgate.runtime import select
from headgate.runtime.errors import QueryCancelled
from headgate.runtime.select import BatchQuery, SourceGrew
from headgate.runtime.source import Follow

pytestmark = pytest.mark.unit

JOINED = [SimpleNamespace(id=number) for number in range(1, 6)]
GROWING = {1, 2, 4, 5}


class Joined:
    """The frames of a query that reads five sources."""

    def __init__(self, _: object, __: object, source: Callable[[object], object], ___: object) -> None:
        self._source = source

    def query(self, _: object) -> None:
        for source in JOINED:
            self._source(source)


class Reader:
    def __init__(self, source: SourceDefinition, _: Clients) -> None:
        self._id = source.id
        self.layout = SimpleNamespace(on_error="QUARANTINE")

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


def batch_query(follow: Follow) -> BatchQuery:
    """A query whose Spark does nothing."""
    definition = SelectDefinition(QueryDefinition("SELECT 1", (("one", None),)), {})
    return BatchQuery(MagicMock(), definition, cast("Clients", None), MagicMock(), follow)


def test_all_sources_of_a_query_grow_before_it_is_begun_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(select, "RelationFrames", Joined)
    monkeypatch.setattr(select, "SourceReader", Reader)
    followed: list[int] = []
    with pytest.raises(SourceGrew):
        batch_query(lambda source, _: followed.append(source)).run()
    assert followed == sorted(GROWING)


def test_what_spark_says_of_a_cancelled_query_is_that_it_was_cancelled(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    query = batch_query(lambda *_: None)

    def interrupted(*_: object) -> None:
        query.cancel()
        raise RuntimeError("Job 7 cancelled part of cancelled job tags")

    monkeypatch.setattr(select, "RelationFrames", interrupted)
    with pytest.raises(QueryCancelled):
        query.run()

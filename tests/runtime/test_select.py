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
from headgate.runtime.select import BatchQuery, SourceGrew

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


def test_all_sources_of_a_query_grow_before_it_is_begun_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(select, "RelationFrames", Joined)
    monkeypatch.setattr(select, "SourceReader", Reader)
    followed: list[int] = []
    query = BatchQuery(
        MagicMock(),
        SelectDefinition(QueryDefinition("SELECT 1", (("one", None),)), {}),
        cast("Clients", None),
        MagicMock(),
        lambda source, _: followed.append(source),
    )
    with pytest.raises(SourceGrew):
        query.run()
    assert followed == sorted(GROWING)

"""A query over sources that grow: all of them are looked at before it is begun anew."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import cast
from unittest.mock import MagicMock

import pytest

from headgate.catalog.names import DEFAULT_PATH
from headgate.catalog.objects import Object
from headgate.catalog.snapshot import Catalog
from headgate.connectors.connections import Connections
from headgate.runtime import select
from headgate.runtime.select import BatchQuery, SourceGrew
from headgate.sql.queries import Select
from headgate.sql.script import parse_statement

pytestmark = pytest.mark.unit

JOINED = [SimpleNamespace(id=number) for number in range(1, 6)]
GROWING = {1, 2, 4, 5}


class Joined:
    """The frames of a query that reads five sources."""

    def __init__(self, *given: object) -> None:
        self._source = cast("Callable[[object], object]", given[-1])

    def query(self, _: object) -> None:
        for source in JOINED:
            self._source(source)


class Reader:
    def __init__(self, _: Catalog, source: Object, __: Connections) -> None:
        self._id = source.id
        self.plan = SimpleNamespace(on_error="QUARANTINE")

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
    monkeypatch.setattr(select, "Frames", Joined)
    monkeypatch.setattr(select, "SourceReader", Reader)
    statement = parse_statement("SELECT 1 AS one")
    assert isinstance(statement, Select)
    followed: list[int] = []
    connections, reader = cast("Connections", None), MagicMock()
    query = BatchQuery(
        MagicMock(), Catalog(0, 1, {}), DEFAULT_PATH, statement.query, connections, reader,
        lambda source, _: followed.append(source),
    )  # fmt: skip
    with pytest.raises(SourceGrew):
        query.run()
    assert followed == sorted(GROWING)

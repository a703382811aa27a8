"""Documents that do not fit the fields of a materialization any more, in a real OpenSearch, without Spark."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from itertools import count

import orjson
import pytest

from headgate.catalog.positions import KafkaPosition
from headgate.connectors.elasticsearch import SearchClient
from headgate.embedded.world import World
from headgate.plan.target_definitions import IncompatibleChange, IndexDefinition
from headgate.runtime.ports import Ledger
from headgate.runtime.targets.errors import FieldsIncompatible, IndexGone
from headgate.runtime.targets.search import SearchTarget
from headgate.runtime.targets.search_bulk import BulkWriter, Item, index_lines
from tests.runtime.search_targets import definition, field

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]

_names = count()
KEY = field("k", "text", key=True)
LEDGER = Ledger(7, 1, 3, 1, {1: KafkaPosition("topic", "id", (5,))}, "k/r")


@pytest.fixture(scope="module")
def client(world: World) -> Iterator[SearchClient]:
    with SearchClient(world.ensure("elasticsearch")["opensearch"]) as opened:
        yield opened


@pytest.fixture
def held(client: SearchClient) -> IndexDefinition:
    """An index with one document, whose field `n` is a text."""
    made = definition(f"incompatible{next(_names)}", KEY, field("n", "text"))
    target = SearchTarget(made, client, "t")
    target.begin(1)
    document = orjson.dumps({"k": "a", "n": "sesame"})
    assert BulkWriter(client, target.index.alias).write([Item("a", index_lines("a", 3, document))]) == []
    return made


def narrower(
    held: IndexDefinition, policy: IncompatibleChange | None = None, *, adopt: bool = False
) -> IndexDefinition:
    return replace(held, fields=(KEY, field("n", "bigint")), on_incompatible=policy, adopt=adopt)


def begin(client: SearchClient, made: IndexDefinition, name: str = "k/r", ledger: Ledger = LEDGER) -> Ledger | None:
    with closing(SearchTarget(made, client, "t", lambda: ledger, name=name)) as target:
        return target.begin(2)


def documents(client: SearchClient, made: IndexDefinition) -> list[str]:
    client.call("POST", f"/{made.index}/_refresh", "refresh", {})
    return [hit.id for hit in client.documents(made.index)]


def test_fields_that_fit_leave_the_ledger_to_the_catalog(client: SearchClient, held: IndexDefinition) -> None:
    assert begin(client, held) is None
    wider = replace(held, fields=(*held.fields, field("more", "bigint")))
    assert begin(client, wider) is None


@pytest.mark.parametrize("policy", [None, "BACKFILL"])
def test_the_ledger_forgets_its_definition_before_documents_are_deleted(
    client: SearchClient, held: IndexDefinition, policy: IncompatibleChange | None
) -> None:
    made = narrower(held, policy)
    found = begin(client, made)
    assert found == replace(LEDGER, definition="")
    assert documents(client, held) == ["a"]
    assert begin(client, made, ledger=replace(LEDGER, definition="")) is None  # after a crash the task fills it anew


@pytest.mark.parametrize(("policy", "disables"), [("ABORT", False), ("DISABLE TASK", True), ("DISABLE BINDING", True)])
def test_a_policy_that_forbids_it_keeps_the_documents(
    client: SearchClient, held: IndexDefinition, policy: IncompatibleChange, disables: bool
) -> None:
    made = narrower(held, policy)
    with pytest.raises(FieldsIncompatible) as raised:
        begin(client, made)
    assert (raised.value.changes, raised.value.disables) == (("n from text to bigint",), disables)
    assert documents(client, held) == ["a"]
    assert begin(client, made, name="k2/r") is None  # a statement has asked for all documents again


@pytest.mark.parametrize("name", ["k/r", "k2/r"])
def test_an_adopted_index_is_never_emptied(client: SearchClient, name: str) -> None:
    """Also if a statement has asked for all documents again."""
    made = definition(f"incompatible{next(_names)}", KEY, field("n", "text"), adopt=True)
    client.call("PUT", f"/{made.index}", "create", {"mappings": {"properties": {"k": {"type": "text"}}}})
    client.call("PUT", f"/{made.index}/_doc/theirs", "put", {"k": "b"})
    with closing(SearchTarget(made, client, "t")) as target:
        target.begin(1)
        target.index.migrate(1)
    with pytest.raises(FieldsIncompatible):
        begin(client, narrower(made, adopt=True), name=name)
    assert documents(client, made) == ["theirs"]


def test_an_index_that_was_deleted_is_made_again_if_a_statement_asks_for_all_documents(
    client: SearchClient, held: IndexDefinition
) -> None:
    client.call("DELETE", f"/{held.index}-v1", "delete", None)
    with pytest.raises(IndexGone):
        begin(client, held)
    assert begin(client, held, name="k2/r") is None
    assert documents(client, held) == []

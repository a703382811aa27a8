"""An index on a real OpenSearch, without Spark: who may write it, how it gets wider, and crashes at every step."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from itertools import count
from typing import Any

import orjson
import pytest

from headgate.connectors.elasticsearch import SearchClient
from headgate.connectors.errors import ConnectorError, SearchFailed
from headgate.embedded.world import World
from headgate.plan.target_definitions import TargetField
from headgate.registry.transport import Retries
from headgate.runtime.errors import Fenced
from headgate.runtime.targets.errors import (
    ForeignIndex,
    IndexConflict,
    IndexGone,
    IndexTaken,
    NameTakenByIndex,
    WideningFailed,
)
from headgate.runtime.targets.search_bulk import BulkWriter, Conflict, Item, RefusedItem, delete_lines, index_lines
from headgate.runtime.targets.search_index import SearchIndex, release_index
from tests.runtime.search_targets import definition, field

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]

Documents = Mapping[str, Mapping[str, Any] | None]
STEPS = ("widen_created", "widen_moved", "widen_copied", "widen_swapped")
_names = count()


class Crash(Exception):
    """Stands for the death of the engine."""


def crash_at(step: str) -> Callable[[str, int], None]:
    def crash(point: str, _: int) -> None:
        if point == step:
            raise Crash(point)

    return crash


def never(point: str, number: int) -> None:
    """No crash."""


class Place:
    """One name on the server, and writers for it."""

    def __init__(self, client: SearchClient) -> None:
        self.client = client
        self.name = f"place{next(_names)}"

    def index(self, *fields: TargetField, task: str = "t", adopt: bool = False) -> SearchIndex:
        return SearchIndex(self.client, definition(self.name, *fields, adopt=adopt), task)

    def begun(self, *fields: TargetField, epoch: int = 1) -> SearchIndex:
        made = self.index(*fields)
        made.provision()
        made.begin(epoch)
        return made

    def write(self, index: SearchIndex, documents: Documents, number: int) -> list[RefusedItem]:
        """Write a batch; None deletes."""
        version = index.base + number
        items = [
            Item(i, delete_lines(i, version) if d is None else index_lines(i, version, orjson.dumps(d)))
            for i, d in documents.items()
        ]
        return BulkWriter(self.client, index.alias).write(items)

    def held(self) -> dict[str, dict[str, Any]]:
        """What readers see."""
        self.client.call("POST", f"/{self.name}/_refresh", "refresh", {})
        return {hit.id: dict(hit.source) for hit in self.client.documents(self.name)}

    def mapping(self) -> dict[str, Any]:
        [found] = self.client.describe(self.name).values()
        return dict(found.mapping)

    def indexes(self) -> set[str]:
        return {*self.client.describe(f"{self.name}*")}

    def foreign(self, mapping: Mapping[str, Any], documents: Documents) -> None:
        """An index that somebody else has made."""
        self.client.call("PUT", f"/{self.name}", "create", {"mappings": mapping})
        for id_, document in documents.items():
            self.client.call("PUT", f"/{self.name}/_doc/{id_}?refresh=true", "put", document)


@pytest.fixture(scope="module")
def client(world: World) -> Iterator[SearchClient]:
    with SearchClient(world.ensure("elasticsearch")["opensearch"]) as opened:
        yield opened


@pytest.fixture
def place(client: SearchClient) -> Place:
    return Place(client)


INTEGER, BIGINT, TEXT = (field("n", type_) for type_ in ("integer", "bigint", "text"))


def test_the_index_is_made_behind_an_alias_and_only_once(place: Place) -> None:
    for _ in range(2):
        place.begun(field("id", "bigint", key=True), field("name", "text"))
    assert place.indexes() == {f"{place.name}-v1"}
    [index] = place.client.describe(place.name).values()
    assert index.aliases == {place.name, f"{place.name}--w1"}
    assert place.mapping()["dynamic"] == "strict"
    assert index.meta["task"] == "t"


def test_values_are_not_coerced_and_unknown_fields_are_refused(place: Place) -> None:
    index = place.begun(INTEGER)
    refused = place.write(index, {"a": {"n": 1}, "b": {"n": 1.5}, "c": {"n": "1"}, "d": {"x": 1}, "e": {"n": 2**31}}, 1)
    assert {one.id: one.field for one in refused} == {"b": "n", "c": "n", "d": "x", "e": "n"}
    assert place.held() == {"a": {"n": 1}}


def test_a_batch_that_is_written_again_ends_in_the_same_documents(place: Place) -> None:
    index = place.begun(INTEGER)
    place.write(index, {"a": {"n": 1}, "b": {"n": 1}}, 1)
    for _ in range(2):
        place.write(index, {"a": {"n": 2}, "b": None, "c": None}, 2)
    assert place.held() == {"a": {"n": 2}}


def test_an_older_batch_does_not_replace_a_newer_document(place: Place) -> None:
    index = place.begun(INTEGER)
    place.write(index, {"a": {"n": 2}}, 2)
    with pytest.raises(Conflict):
        place.write(index, {"a": {"n": 1}}, 1)
    assert place.held() == {"a": {"n": 2}}


def test_a_zombie_finds_no_alias(place: Place) -> None:
    """It writes a key that its successor has deleted, and one that it does not touch."""
    old = place.begun(INTEGER, epoch=5)
    place.write(old, {"a": {"n": 1}}, 1)
    new = place.begun(INTEGER, epoch=6)
    place.write(new, {"a": None}, 2)
    with pytest.raises(Conflict):
        place.write(old, {"a": {"n": 1}, "b": {"n": 1}}, 2)
    fenced = old.fenced()
    assert isinstance(fenced, Fenced)
    assert (fenced.held, fenced.epoch) == (6, 5)
    assert place.held() == {}
    with pytest.raises(Fenced):
        old.begin(5)
    assert f"{place.name}--w5" not in place.client.describe(f"{place.name}*")


def test_new_fields_are_added_and_what_others_wrote_into_meta_stays(place: Place) -> None:
    index = place.begun(INTEGER)
    place.write(index, {"a": {"n": 1}}, 1)
    about = {**place.mapping()["_meta"], "mine": 1}
    place.client.call("PUT", f"/{place.name}/_mapping", "change", {"_meta": about})
    wider = place.begun(INTEGER, field("home", "record(street text)"), field("m", "map<text, bigint>"), epoch=2)
    wider.migrate(2, never)
    assert place.write(wider, {"b": {"n": 2, "home": {"street": "x"}, "m": {"k": 1}}}, 2) == []
    mapping = place.mapping()
    assert mapping["_meta"]["mine"] == 1
    assert mapping["properties"]["home"]["properties"]["street"]["type"] == "text"
    assert mapping["properties"]["m"]["properties"]["k"] == {"type": "long"}
    assert place.indexes() == {f"{place.name}-v1"}


def test_an_index_has_as_many_fields_as_it_needs(place: Place) -> None:
    """Servers refuse more than 1,000 fields unless they are told, and count two for a text."""
    many = [field(f"t{number}", "text") for number in range(600)]
    index = place.begun(*many[:550])
    assert place.write(index, {"a": {"t549": "x"}}, 1) == []
    more = [field(f"n{number}", "bigint") for number in range(1000)]
    grown = place.begun(*many, *more, epoch=2)
    grown.migrate(2, never)
    assert place.write(grown, {"b": {"t599": "y", "n999": 1}}, 2) == []
    assert place.held() == {"a": {"t549": "x"}, "b": {"t599": "y", "n999": 1}}


@pytest.mark.parametrize(("wide", "value"), [(BIGINT, 7), (TEXT, "7"), (field("n", "decimal(38,0)"), "7")])
def test_a_wider_type_gets_a_new_index_with_the_same_documents(place: Place, wide: TargetField, value: object) -> None:
    index = place.begun(INTEGER)
    place.write(index, {str(n): {"n": 7} for n in range(1500)}, 1)
    place.write(index, {"0": None}, 2)
    wider = place.begun(wide, epoch=2)
    wider.migrate(3, never)
    place.write(wider, {"1": None, "new": {"n": value}}, 3)
    assert place.held() == {str(n): {"n": value} for n in range(2, 1500)} | {"new": {"n": value}}
    assert place.indexes() == {f"{place.name}-v2"}
    wider.migrate(4, never)
    assert place.indexes() == {f"{place.name}-v2"}


@pytest.mark.parametrize("wide", [BIGINT, TEXT], ids=["by-the-server", "by-the-client"])
@pytest.mark.parametrize("step", STEPS)
def test_a_crash_at_any_step_of_a_widening_loses_and_revives_nothing(
    place: Place, step: str, wide: TargetField
) -> None:
    index = place.begun(INTEGER)
    place.write(index, {str(n): {"n": n} for n in range(300)}, 1)
    place.write(index, {"1": None}, 2)
    first = place.begun(wide, epoch=2)
    with pytest.raises(Crash):
        first.migrate(3, crash_at(step))
    before = place.held()
    assert before.keys() == {str(n) for n in range(300)} - {"1"}, "readers see all documents meanwhile"
    # What a second writer does before it goes on with the copy, as an engine may that is killed once more.
    second = place.begun(wide, epoch=3)
    made: Callable[[int], object] = (lambda n: n) if wide is BIGINT else str
    if step != "widen_created":  # otherwise the old index is still written, and has the old type
        place.write(second, {"2": None, "3": {"n": made(-3)}, "1": None}, 3)
    second.migrate(3, never)
    place.write(second, {"2": None, "3": {"n": made(-3)}, "1": None}, 3)
    expected = {str(n): {"n": made(n)} for n in range(300)} | {"3": {"n": made(-3)}}
    del expected["1"], expected["2"]
    assert place.held() == expected
    assert len(place.indexes()) == 1


def test_readers_see_every_document_while_the_index_is_copied(place: Place) -> None:
    index = place.begun(INTEGER)
    place.write(index, {str(n): {"n": n} for n in range(3000)}, 1)
    place.held()
    seen: set[int] = set()
    ended = threading.Event()

    def read() -> None:
        while not ended.is_set():
            answer = place.client.call("GET", f"/{place.name}/_count", "count")
            seen.add(answer.body["count"])

    reader = threading.Thread(target=read)
    reader.start()
    try:
        place.begun(TEXT, epoch=2).migrate(2, never)
    finally:
        ended.set()
        reader.join()
    assert seen == {3000}


def test_a_copy_that_the_new_index_refuses_leaves_the_old_one(place: Place) -> None:
    index = place.begun(field("t", "text"))
    place.write(index, {"a": {"t": "10.0.0.1"}, "b": {"t": "sesame"}}, 1)
    with pytest.raises(WideningFailed) as raised:
        place.begun(field("t", "text", "ip"), epoch=2).migrate(2, never)
    assert "sesame" not in raised.value.diagnostic().render()
    assert place.held() == {"a": {"t": "10.0.0.1"}, "b": {"t": "sesame"}}


def test_a_narrower_type_gets_an_empty_index_that_is_filled_anew(place: Place) -> None:
    """The planner asks for a confirmation before."""
    index = place.begun(TEXT)
    place.write(index, {"a": {"n": "sesame"}}, 1)
    narrow = place.begun(INTEGER, epoch=2)
    narrow.migrate(2, never)
    place.write(narrow, {"a": {"n": 1}}, 2)
    assert place.held() == {"a": {"n": 1}}
    assert place.indexes() == {f"{place.name}-v2"}


def test_an_index_of_somebody_else_is_not_touched(place: Place) -> None:
    place.foreign({"properties": {"n": {"type": "integer"}}}, {"a": {"n": 1}})
    index = place.index(INTEGER)
    for refused in (index.check_free, index.provision):
        with pytest.raises(ForeignIndex):
            refused()
    assert place.mapping() == {"properties": {"n": {"type": "integer"}}}
    with pytest.raises(IndexTaken):
        index.begin(1)


def test_an_adopted_index_keeps_its_documents_and_is_replaced_by_an_alias_when_it_widens(place: Place) -> None:
    place.foreign({"properties": {"n": {"type": "integer"}, "old": {"type": "keyword"}}}, {"a": {"n": 1, "old": "x"}})
    for _ in range(5):  # its own versions are not below those of the first batch
        place.client.call("PUT", f"/{place.name}/_doc/b?refresh=true", "put", {"n": 1})
    index = place.index(INTEGER, field("more", "bigint"), adopt=True)
    index.check_free()
    index.provision()
    index.begin(1)
    place.write(index, {"b": {"n": 2, "more": 3}, "c": {"n": 4}}, 1)
    assert place.held() == {"a": {"n": 1, "old": "x"}, "b": {"n": 2, "more": 3}, "c": {"n": 4}}
    assert place.indexes() == {place.name}
    wider = place.index(BIGINT, adopt=True)
    wider.begin(2)
    wider.migrate(2, never)
    place.write(wider, {"c": {"n": 2**40}}, 2)
    assert place.held() == {"a": {"n": 1, "old": "x"}, "b": {"n": 2, "more": 3}, "c": {"n": 2**40}}
    assert place.indexes() == {f"{place.name}-v1"}


def test_an_index_with_other_types_is_not_adopted(place: Place) -> None:
    place.foreign({"properties": {"n": {"type": "keyword"}}}, {})
    with pytest.raises(IndexConflict) as raised:
        place.index(INTEGER, adopt=True).check_free()
    assert raised.value.differences == ('"n" is keyword there and integer here',)


def test_an_alias_for_several_indexes_is_refused(place: Place) -> None:
    for suffix in ("x", "y"):
        place.client.call("PUT", f"/{place.name}-{suffix}", "create", {"aliases": {place.name: {}}})
    with pytest.raises(NameTakenByIndex) as raised:
        place.index(INTEGER).check_free()
    assert raised.value.indexes == (f"{place.name}-x", f"{place.name}-y")


def test_a_field_that_somebody_added_with_another_type_gets_the_wanted_one(place: Place) -> None:
    index = place.begun(INTEGER)
    place.write(index, {"a": {"n": 1}}, 1)
    place.client.call("PUT", f"/{place.name}/_mapping", "add", {"properties": {"m": {"type": "keyword"}}})
    wide = place.begun(INTEGER, field("m", "bigint"), epoch=2)
    wide.migrate(2, never)
    place.write(wide, {"b": {"n": 2, "m": 3}}, 2)
    assert place.held() == {"a": {"n": 1}, "b": {"n": 2, "m": 3}}
    assert place.mapping()["properties"]["m"] == {"type": "long"}


def test_values_that_somebody_wrote_and_the_wanted_type_does_not_take_are_named(place: Place) -> None:
    place.begun(INTEGER)
    place.client.call("PUT", f"/{place.name}/_mapping", "add", {"properties": {"m": {"type": "keyword"}}})
    place.client.call("PUT", f"/{place.name}/_doc/z?refresh=true", "put", {"m": "sesame"})
    with pytest.raises(WideningFailed) as raised:
        place.begun(INTEGER, field("m", "bigint"), epoch=2).migrate(2, never)
    assert "sesame" not in raised.value.diagnostic().render()
    assert place.held() == {"z": {"m": "sesame"}}


def test_two_tasks_do_not_write_one_index(place: Place) -> None:
    place.begun(INTEGER)
    other = place.index(INTEGER, task="other")
    for refused in (other.check_free, other.provision):
        with pytest.raises(IndexTaken):
            refused()


def test_the_index_of_a_dropped_materialization_is_filled_anew_by_the_next_one(place: Place) -> None:
    index = place.begun(INTEGER)
    place.write(index, {"a": {"n": 1}}, 7)
    release_index(place.client, place.name, "t", drop=False)
    assert place.held() == {"a": {"n": 1}}
    with pytest.raises(Conflict):
        place.write(index, {"b": {"n": 1}}, 8)
    other = place.index(BIGINT, task="other")
    other.check_free()
    other.provision()
    other.begin(1)
    place.write(other, {"c": {"n": 1}}, 1)
    assert place.held() == {"c": {"n": 1}}
    release_index(place.client, place.name, "t", drop=True)
    assert place.held() == {"c": {"n": 1}}
    release_index(place.client, place.name, "other", drop=True)
    assert place.indexes() == set()


def test_documents_of_others_stay_in_an_adopted_index_whose_materialization_is_made_again(place: Place) -> None:
    key = field("n", "integer", key=True)
    place.foreign({"properties": {"n": {"type": "integer"}}}, {"a": {"n": 1}})
    first = place.index(key, adopt=True)
    first.provision()
    first.begin(1)
    place.write(first, {"2": {"n": 2}}, 1)
    release_index(place.client, place.name, "t", drop=False)
    with pytest.raises(ForeignIndex):  # without a key, its rows would be written twice
        place.index(INTEGER, task="second").provision()
    second = place.index(key, task="second")
    second.check_free()
    second.provision()
    second.begin(2)
    assert second.adopted
    place.write(second, {"2": {"n": 2}, "3": {"n": 3}}, 1)
    assert place.held() == {"a": {"n": 1}, "2": {"n": 2}, "3": {"n": 3}}


def test_an_index_that_headgate_made_is_its_own_whatever_the_statement_says(place: Place) -> None:
    made = place.index(INTEGER, adopt=True)
    made.provision()
    made.begin(1)
    assert not made.adopted


def test_an_index_that_was_deleted_is_missed(place: Place) -> None:
    index = place.begun(INTEGER)
    place.client.call("DELETE", f"/{place.name}-v1", "delete")
    with pytest.raises(Conflict):
        place.write(index, {"a": {"n": 1}}, 1)
    assert isinstance(index.fenced(), IndexGone)
    with pytest.raises(IndexGone):
        index.begin(2)
    assert place.indexes() == set()


def test_an_index_that_is_blocked_may_be_written_later(place: Place) -> None:
    """As a server does itself when its disk is full."""
    index = place.begun(INTEGER)
    blocked = {"index.blocks.read_only_allow_delete": True}
    place.client.call("PUT", f"/{place.name}/_settings", "block", blocked)
    item = Item("a", index_lines("a", 1, b'{"n":1}'))
    writer = BulkWriter(place.client, index.alias, retries=Retries(attempts=3, sleep=lambda _: None))
    with pytest.raises(SearchFailed) as raised:
        writer.write([item])
    assert raised.value.retryable
    place.client.call("PUT", f"/{place.name}/_settings", "unblock", {"index.blocks.read_only_allow_delete": None})
    assert writer.write([item]) == []
    assert place.held() == {"a": {"n": 1}}


def test_a_server_that_is_killed_in_the_middle_of_bulks_has_every_document_in_the_end(
    world: World, place: Place
) -> None:
    index = place.begun(INTEGER)
    started = threading.Event()

    def items() -> Iterator[Item]:
        for n in range(40_000):
            if n == 20_000:
                started.set()
                time.sleep(1.0)  # so that the kill meets bulks under way
            yield Item(str(n), index_lines(str(n), 1, orjson.dumps({"n": n})))

    def kill() -> None:
        started.wait()
        world.stop_hard("elasticsearch")
        world.start("elasticsearch")

    killer = threading.Thread(target=kill)
    killer.start()
    try:
        for _ in range(20):  # a task tries its batch again
            try:
                assert BulkWriter(place.client, index.alias, bulk_bytes=100_000).write(items()) == []
                break
            except ConnectorError as error:
                if not error.retryable:
                    raise
    finally:
        killer.join()
    assert {int(id_) for id_ in place.held()} == set(range(40_000))

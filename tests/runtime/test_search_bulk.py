"""What becomes of the items of a bulk: every status, whole answers, and threads. A real server gives few of them when asked."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from threading import Lock

import pytest
from hypothesis import given, strategies as st
from starlette.responses import JSONResponse, Response

from headgate.connectors.elasticsearch import Answer, SearchClient
from headgate.connectors.errors import SearchFailed, SearchRefused, SearchUnreachable
from headgate.registry.transport import Retries
from headgate.runtime.targets.search_bulk import (
    BulkWriter,
    Conflict,
    Item,
    RefusedItem,
    delete_lines,
    index_lines,
    refused_item,
)
from tests.connectors.scripted import failure, scripted
from tests.laws import examples
from tests.registry.test_transport import nobody

pytestmark = pytest.mark.unit

QUICK = Retries(attempts=5, sleep=lambda _: None)
Outcome = tuple[int, Mapping[str, object] | None]


def item(id_: str) -> Item:
    return Item(id_, index_lines(id_, 3, b'{"a":1}'))


def ids_of(body: bytes) -> list[str]:
    """The ids of a bulk, in their order."""
    lines = [json.loads(line) for line in body.splitlines()]
    return [line[verb]["_id"] for line in lines for verb in ("index", "delete") if isinstance(line.get(verb), dict)]


def outcomes(answer: Callable[[str], Outcome]) -> Callable[[str, bytes], Response]:
    """A server that gives each document the outcome that ``answer`` says."""

    def reply(_: str, body: bytes) -> Response:
        found = [(id_, *answer(id_)) for id_ in ids_of(body)]
        items = [{"index": {"_id": i, "status": s, **({"error": e} if e else {})}} for i, s, e in found]
        return JSONResponse({"errors": any(s >= 400 for _, s, _ in found), "items": items})

    return reply


DONE = outcomes(lambda _: (200, None))


def write(client: SearchClient, items: Sequence[Item], *, bulk_bytes: int = 1 << 20) -> list[RefusedItem]:
    return BulkWriter(client, "i--w5", retries=QUICK, bulk_bytes=bulk_bytes).write(items)


def test_the_lines_name_the_document_its_version_and_its_kind() -> None:
    assert index_lines('a"b', 7, b'{"x":1}') == (
        b'{"index":{"_id":"a\\"b","version":7,"version_type":"external_gte"}}\n{"x":1}\n'
    )
    assert delete_lines("ü", 7) == '{"delete":{"_id":"ü","version":7,"version_type":"external_gte"}}\n'.encode()
    assert b'"version_type":"external"}' in index_lines("a", 7, b"{}", "external")


def test_every_item_is_sent_once_through_the_alias() -> None:
    with scripted(DONE) as (client, script):
        assert write(client, [item("a"), item("b")]) == []
    assert script.paths == ["POST /i--w5/_bulk"]
    assert ids_of(script.bodies[0]) == ["a", "b"]


def test_nothing_is_sent_for_no_items() -> None:
    with scripted(DONE) as (client, script):
        assert write(client, []) == []
    assert script.paths == []


def test_a_deletion_of_what_is_not_there_is_done() -> None:
    answer = {
        "errors": True,
        "items": [{"delete": {"status": 404}}, {"index": {"status": 429, "error": {"type": "x"}}}],
    }
    with scripted(JSONResponse(answer), DONE) as (client, script):
        assert write(client, [Item("a", delete_lines("a", 3)), item("b")]) == []
    assert [ids_of(body) for body in script.bodies] == [["a", "b"], ["b"]]


@pytest.mark.parametrize(
    ("status", "kind"),
    [(429, "opensearch_rejected_execution_exception"), (503, "unavailable_shards_exception"), (500, ""),
     (403, "cluster_block_exception")],
)  # fmt: skip
def test_only_the_items_that_may_pass_later_are_sent_again(status: int, kind: str) -> None:
    busy = outcomes(lambda id_: (status, {"type": kind}) if id_ == "b" else (201, None))
    with scripted(busy, busy, DONE) as (client, script):
        assert write(client, [item("a"), item("b"), item("c")]) == []
    assert [ids_of(body) for body in script.bodies] == [["a", "b", "c"], ["b"], ["b"]]


def test_items_that_never_pass_end_with_an_error_that_can_be_tried_again() -> None:
    with (
        scripted(outcomes(lambda _: (429, {"type": "busy"}))) as (client, script),
        pytest.raises(SearchFailed) as raised,
    ):
        write(client, [item("a")])
    assert (raised.value.status, raised.value.reason, len(script.paths)) == (429, "busy.", 5)


@pytest.mark.parametrize(
    "answer", [failure(503), failure(429), failure(500), Response("<html>", 502), Response("", 200)]
)
def test_a_bulk_that_fails_as_a_whole_is_sent_again(answer: Response) -> None:
    with scripted(answer, DONE) as (client, script):
        assert write(client, [item("a")]) == []
    assert len(script.paths) == 2


def test_a_server_that_is_away_is_waited_for_and_then_given_up() -> None:
    with SearchClient(nobody()) as client, pytest.raises(SearchUnreachable):
        write(client, [item("a")])


@pytest.mark.parametrize(
    "outcome",
    [(409, {"type": "version_conflict_engine_exception"}), (404, {"type": "index_not_found_exception"})],
    ids=["newer-document", "no-alias"],
)
def test_a_newer_document_or_a_missing_alias_means_another_writer(outcome: Outcome) -> None:
    with scripted(outcomes(lambda _: outcome)) as (client, script), pytest.raises(Conflict):
        write(client, [item("a")])
    assert len(script.paths) == 1


def test_an_alias_that_is_missing_for_the_whole_bulk_means_another_writer_too() -> None:
    with scripted(failure(404, "index_not_found_exception")) as (client, _), pytest.raises(Conflict):
        write(client, [item("a")])


def test_a_copy_leaves_documents_that_are_there_already() -> None:
    with scripted(outcomes(lambda _: (409, {"type": "version_conflict_engine_exception"}))) as (client, _):
        assert BulkWriter(client, "i--w5", may_exist=True, retries=QUICK).write([item("a")]) == []


def test_a_bulk_that_is_refused_as_a_whole_is_not_repeated() -> None:
    with (
        scripted(failure(400, "action_request_validation_exception", "id is too long: sesame")) as (client, script),
        pytest.raises(SearchRefused) as raised,
    ):
        write(client, [item("a")])
    assert len(script.paths) == 1
    assert "sesame" not in raised.value.diagnostic().render()


def test_a_bulk_that_is_too_large_is_halved_until_it_fits() -> None:
    def at_most_two(_: str, body: bytes) -> Response:
        return DONE(_, body) if len(ids_of(body)) <= 2 else Response("", 413)

    with scripted(at_most_two) as (client, script):
        assert write(client, [item(str(n)) for n in range(7)]) == []
    taken = [id_ for body in script.bodies if len(ids_of(body)) <= 2 for id_ in ids_of(body)]
    assert sorted(taken) == [str(n) for n in range(7)]


def test_a_document_that_is_too_large_by_itself_is_refused() -> None:
    def without_b(_: str, body: bytes) -> Response:
        return Response("", 413) if "b" in ids_of(body) else DONE(_, body)

    with scripted(without_b) as (client, _):
        assert write(client, [item("a"), item("b"), item("c")]) == [
            RefusedItem("b", "the document is larger than the server takes")
        ]


def test_bulks_have_a_bound_and_a_larger_document_goes_alone() -> None:
    big = Item("big", index_lines("big", 3, b'{"a":"%b"}' % (b"x" * 5000)))
    with scripted(DONE) as (client, script):
        write(client, [*[item(str(n)) for n in range(50)], big, item("last")], bulk_bytes=1000)
    assert all(len(body) <= 1000 for body in script.bodies if ids_of(body) != ["big"])
    assert sorted(id_ for body in script.bodies for id_ in ids_of(body)) == sorted(
        [*map(str, range(50)), "big", "last"]
    )


def test_nothing_more_is_sent_after_a_conflict() -> None:
    fenced = outcomes(lambda _: (409, {"type": "version_conflict_engine_exception"}))
    with scripted(fenced) as (client, script), pytest.raises(Conflict):
        write(client, [item(str(n)) for n in range(1000)], bulk_bytes=200)
    assert len(script.paths) < 100


REASONS = {
    "failed to parse field [a.b] of type [ip] in document with id '1'. Preview of field's value: 'sesame'": (
        "a.b",
        "ip",
    ),
    "[1:20] failed to parse field [n] of type [long] in document with id '1'": ("n", "long"),
    "mapping set to strict, dynamic introduction of [x] within [_doc] is not allowed": ("x", None),
    "mapping set to strict, dynamic introduction of [x] within [home] is not allowed": ("home.x", None),
    'Document contains at least one immense term in field="t" sesame': (None, None),
}


@pytest.mark.parametrize(("reason", "found"), REASONS.items())
def test_a_refused_document_names_its_field_and_not_its_value(
    reason: str, found: tuple[str | None, str | None]
) -> None:
    refused = refused_item("1", {"type": "mapper_parsing_exception", "reason": reason})
    assert (refused.field, refused.expected) == found
    assert "sesame" not in refused.reason


def test_refused_documents_do_not_hinder_others() -> None:
    error = {"type": "mapper_parsing_exception", "reason": "failed to parse field [a] of type [long]"}
    with scripted(outcomes(lambda id_: (400, error) if id_ == "b" else (201, None))) as (client, script):
        assert write(client, [item("a"), item("b"), item("c")]) == [
            RefusedItem("b", "the index refuses it (mapper_parsing_exception)", "a", "long")
        ]
    assert len(script.paths) == 1


class Flaky:
    """A server in memory that settles, refuses or puts off every document as it is told, once for each try."""

    url = "http://memory"

    def __init__(self, plans: Mapping[str, list[int]]) -> None:
        self._plans = {id_: list(statuses) for id_, statuses in plans.items()}
        self._lock = Lock()
        self.settled: list[str] = []

    def bulk(self, alias: str, lines: bytes) -> Answer:
        items = []
        with self._lock:
            for id_ in ids_of(lines):
                status = self._plans[id_].pop(0) if self._plans[id_] else 201
                if status == 201:
                    self.settled.append(id_)
                items.append({"index": {"status": status, **({"error": {"type": "x"}} if status >= 400 else {})}})
        return Answer(200, {"errors": True, "items": items})


@examples(50)
@given(st.dictionaries(st.integers(0, 99).map(str), st.lists(st.sampled_from([429, 503, 400]), max_size=3)))
def test_every_item_is_settled_or_refused_once(plans: dict[str, list[int]]) -> None:
    server = Flaky(plans)
    writer = BulkWriter(server, "i--w1", retries=QUICK, bulk_bytes=500)
    refused = writer.write([item(id_) for id_ in plans])
    expected = {id_ for id_, statuses in plans.items() if 400 in statuses}
    assert {one.id for one in refused} == expected
    assert len(refused) == len(expected)
    assert sorted(server.settled) == sorted(plans.keys() - expected)

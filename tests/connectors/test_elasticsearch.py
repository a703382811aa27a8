"""The client of Elasticsearch: what it makes of answers, and what it never shows."""

from __future__ import annotations

import pytest
from starlette.responses import HTMLResponse, JSONResponse, Response

from headgate.connectors.connections import search_client
from headgate.connectors.elasticsearch import SearchClient, Server
from headgate.connectors.errors import (
    InvalidOption,
    NoSearchServer,
    OptionMissing,
    SearchFailed,
    SearchNotAllowed,
    SearchRefused,
    SearchRefusedLogin,
    SearchUnreachable,
    SearchVersionNotSupported,
)
from headgate.connectors.options import ConnectionOptions
from headgate.registry.transport import Credentials, Retries
from tests.connectors.scripted import Pauses, Script, failure, scripted
from tests.registry.running import serving
from tests.registry.test_transport import nobody

pytestmark = pytest.mark.unit

SECRET = "s3cret"
OPENSEARCH = {"version": {"distribution": "opensearch", "number": "2.19.1"}}


def _options(url: str, **more: str) -> ConnectionOptions:
    named = {"URL": url, **more}
    return ConnectionOptions("es", tuple((name, (value,)) for name, value in named.items()))


@pytest.mark.parametrize(
    ("product", "version", "supported"),
    [
        ("opensearch", "2.19.1", True),
        ("opensearch", "2.7.0", True),
        ("opensearch", "2.6.0", False),
        ("opensearch", "3.1.0", True),
        ("opensearch", "4.0.0", False),
        ("elasticsearch", "7.17.29", True),
        ("elasticsearch", "7.10.2", False),
        ("elasticsearch", "8.15.0", True),
        ("elasticsearch", "9.0.0", False),
        ("solr", "9.0.0", False),
        ("opensearch", "nonsense", False),
    ],
)
def test_the_supported_versions_are_known(product: str, version: str, supported: bool) -> None:
    assert Server(product, version).is_supported is supported


def test_the_product_is_elasticsearch_if_it_does_not_say() -> None:
    with scripted(JSONResponse({"version": {"number": "8.15.0"}})) as (client, _):
        assert client.check() == Server("elasticsearch", "8.15.0")


def test_a_version_that_is_not_supported_is_named() -> None:
    with (
        scripted(JSONResponse({"version": {"number": "6.8.0"}})) as (client, _),
        pytest.raises(SearchVersionNotSupported) as raised,
    ):
        client.check()
    assert (raised.value.product, raised.value.version) == ("Elasticsearch", "6.8.0")


@pytest.mark.parametrize(
    "answer", [HTMLResponse("<html>"), JSONResponse({"hello": "world"}), JSONResponse([1]), Response("")]
)
def test_what_is_no_search_server_is_told_apart(answer: Response) -> None:
    with scripted(answer) as (client, _), pytest.raises(NoSearchServer):
        client.check()


def test_a_login_that_is_refused_shows_the_user_and_no_password() -> None:
    script = Script(failure(401, "security_exception"))
    with (
        serving(script.app) as url,
        SearchClient(url, Credentials("ann", SECRET)) as client,
        pytest.raises(SearchRefusedLogin) as raised,
    ):
        client.check()
    text = raised.value.diagnostic().render()
    assert "ann" in text
    assert SECRET not in text
    assert script.logins[0].startswith("Basic ")


def test_a_url_with_a_password_is_shown_without_it() -> None:
    script = Script(failure(401, "security_exception"))
    with serving(script.app) as url:
        with_password = url.replace("http://", f"http://ann:{SECRET}@")
        with search_client(_options(with_password)) as client, pytest.raises(SearchRefusedLogin) as raised:
            client.check()
    assert SECRET not in raised.value.diagnostic().render() + repr(client.__dict__["url"])
    assert script.logins[0].startswith("Basic ")


def test_the_login_comes_from_the_options() -> None:
    script = Script(JSONResponse(OPENSEARCH))
    with serving(script.app) as url, search_client(_options(url, USERNAME="ann", PASSWORD=SECRET)) as client:
        assert client.check().is_opensearch
    assert script.logins[0].startswith("Basic ")


def test_what_the_login_may_not_do_is_named() -> None:
    with scripted(failure(403, "security_exception")) as (client, _), pytest.raises(SearchNotAllowed) as raised:
        client.describe("orders")
    assert raised.value.what == 'describe index "orders"'
    assert raised.value.detail() == "The connection has no USERNAME."


def test_a_blocked_index_may_be_tried_again() -> None:
    blocked = failure(403, "cluster_block_exception", "index [i] blocked by: [FORBIDDEN/12/index read-only]")
    with scripted(blocked) as (client, script), pytest.raises(SearchFailed):
        client.call("PUT", "/i", "create an index", {})
    assert len(script.paths) == 4


@pytest.mark.parametrize("status", [429, 500, 502, 503])
def test_a_server_that_is_busy_is_asked_again(status: int) -> None:
    with scripted(failure(status), JSONResponse(OPENSEARCH)) as (client, script):
        assert client.check().version == "2.19.1"
    assert len(script.paths) == 2


def test_a_server_that_stays_busy_is_given_up() -> None:
    with scripted(failure(503)) as (client, script), pytest.raises(SearchFailed) as raised:
        client.check()
    assert (raised.value.status, raised.value.reason, raised.value.retryable) == (503, "It is so.", True)
    assert len(script.paths) == 4


def test_a_request_that_is_refused_is_not_repeated() -> None:
    with (
        scripted(failure(400, "illegal_argument_exception", "no.")) as (client, script),
        pytest.raises(SearchRefused) as raised,
    ):
        client.call("PUT", "/i", "create an index", {})
    assert (raised.value.kind, raised.value.detail()) == (
        "illegal_argument_exception",
        "illegal_argument_exception: no.",
    )
    assert len(script.paths) == 1


def test_nobody_listens() -> None:
    pauses = Pauses()
    with SearchClient(nobody(), retries=pauses.retries()) as client, pytest.raises(SearchUnreachable):
        client.check()
    assert len(pauses) == 3


def test_no_attempt_begins_after_some_time() -> None:
    with SearchClient(nobody(), retries=Retries(attempts=99, within=0.0)) as client, pytest.raises(SearchUnreachable):
        client.check()


@pytest.mark.parametrize("url", ["es:9200", "ftp://es", "http://", "http://h:port", "es"])
def test_a_url_that_is_none_is_refused(url: str) -> None:
    with pytest.raises(InvalidOption):
        search_client(_options(url))


def test_a_connection_needs_a_url() -> None:
    with pytest.raises(OptionMissing):
        search_client(ConnectionOptions("es", ()))


def test_indexes_that_are_not_there_are_left_out() -> None:
    about = {
        "aliases": {"i": {}},
        "mappings": {"_meta": {"headgate": {"task": "t"}}},
        "settings": {"index": {"a": "1"}},
    }
    with scripted(JSONResponse({"i-v1": about}), failure(404, "index_not_found_exception")) as (client, script):
        [index] = client.describe("i", "i-v*").values()
        assert client.describe("gone") == {}
    assert (index.name, index.aliases, index.meta, index.settings) == (
        "i-v1",
        frozenset({"i"}),
        {"task": "t"},
        {"a": "1"},
    )
    assert script.paths[0] == "GET /i,i-v*"


def page(*sources: bytes, scroll: str = "s", failed: int = 0) -> Response:
    """A page of documents as the server writes it, with the ids 1, 2 and so on."""
    hits = b",".join(b'{"_id":"%d","_version":7,"_source":%b}' % (n, source) for n, source in enumerate(sources, 1))
    text = b'{"_scroll_id":"%b","_shards":{"failed":%d},"hits":{"hits":[%b]}}' % (scroll.encode(), failed, hits)
    return Response(text, media_type="application/json")


def test_documents_of_every_page_keep_every_digit() -> None:
    source = b'{"a":9007199254740993,"b":1.10,"c":123456789012345678901234567890}'
    with scripted(page(source), page(source, scroll="t"), page(), JSONResponse({})) as (client, script):
        found = list(client.documents("i"))
    assert [(hit.id, hit.version) for hit in found] == [("1", 7), ("1", 7)]
    for hit in found:
        assert {name: str(value) for name, value in hit.source.items()} == {
            "a": "9007199254740993", "b": "1.10", "c": "123456789012345678901234567890",
        }  # fmt: skip
    assert script.paths == ["POST /i/_search", "POST /_search/scroll", "POST /_search/scroll", "DELETE /_search/scroll"]
    assert b'"scroll_id":"t"' in script.bodies[2]


@pytest.mark.parametrize("answer", [failure(503), failure(429), failure(404, "search_context_missing_exception")])
def test_a_page_of_documents_is_never_asked_for_twice(answer: Response) -> None:
    """The server may have gone on, and would give the page after the one that is missing."""
    with scripted(page(b"{}"), answer, page(b"{}"), page()) as (client, script), pytest.raises(SearchFailed):
        list(client.documents("i"))
    assert script.paths == ["POST /i/_search", "POST /_search/scroll", "DELETE /_search/scroll"]


@pytest.mark.parametrize("pages", [[page(b"{}", failed=1)], [page(b"{}"), page(failed=1)]])
def test_documents_of_which_a_part_is_missing_are_an_error(pages: list[Response]) -> None:
    with scripted(*pages, JSONResponse({})) as (client, _), pytest.raises(SearchFailed):
        list(client.documents("i"))


def test_a_copy_that_a_restarted_server_has_forgotten_is_made_again() -> None:
    started = [JSONResponse({"task": f"n:{number}"}) for number in (1, 2)]
    lost = failure(404, "resource_not_found_exception")
    done = JSONResponse({"completed": True, "response": {"failures": []}})
    with scripted(started[0], lost, started[1], done) as (client, script):
        assert client.reindex("i-v1", "i-v2") is None
    assert script.paths == ["POST /_reindex", "GET /_tasks/n:1", "POST /_reindex", "GET /_tasks/n:2"]


def test_a_copy_that_somebody_cancels_is_not_taken_for_whole() -> None:
    done = JSONResponse({"completed": True, "response": {"canceled": "by user request", "failures": []}})
    with scripted(JSONResponse({"task": "n:1"}), done) as (client, _):
        assert client.reindex("i-v1", "i-v2") == "task_cancelled_exception"


@pytest.mark.parametrize(
    "task",
    [
        {"completed": True, "error": {"type": "x_exception", "reason": SECRET}},
        {"completed": True, "response": {"failures": [{"cause": {"type": "x_exception", "reason": SECRET}}]}},
    ],
)
def test_a_copy_that_fails_names_the_kind_of_the_error_alone(task: dict[str, object]) -> None:
    with scripted(JSONResponse({"task": "n:1"}), JSONResponse(task)) as (client, _):
        assert client.reindex("i-v1", "i-v2") == "x_exception"

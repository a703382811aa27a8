from __future__ import annotations

import base64
from collections.abc import Sequence
from pathlib import Path

import pytest

from headgate.registry.schemas import ParsedSchema
from headgate.registry.server.requests import User, Users
from headgate.schema.written import CompatibilityLevel
from tests.registry import running
from tests.registry.running import RegistryApi, avro

pytestmark = pytest.mark.unit

OWN_TYPE = "application/vnd.schemaregistry.v1+json"


@pytest.mark.parametrize(
    ("accept", "answered"),
    [
        ("*/*", OWN_TYPE),
        ("application/json", "application/json"),
        (f"application/json;q=0.5, {OWN_TYPE}", OWN_TYPE),
        ("application/vnd.schemaregistry+json", "application/vnd.schemaregistry+json"),
        ("text/html, */*;q=0.1", OWN_TYPE),
    ],
)
def test_the_answer_comes_in_a_type_that_the_client_takes(api: RegistryApi, accept: str, answered: str) -> None:
    answer = api.send("GET", "/subjects", headers={"Accept": accept})
    assert (answer.status_code, answer.headers["content-type"]) == (200, answered)


def test_a_client_that_takes_none_of_our_types_is_told_so(api: RegistryApi) -> None:
    answer = api.send("GET", "/subjects", headers={"Accept": "text/html"})
    assert (answer.status_code, answer.json()["error_code"]) == (406, 406)


@pytest.mark.parametrize("content_type", [OWN_TYPE, "application/json; charset=utf-8", "application/octet-stream"])
def test_a_body_may_come_in_any_of_our_types(api: RegistryApi, content_type: str) -> None:
    answer = api.send("POST", "/subjects/a/versions", avro("x"), headers={"Content-Type": content_type})
    assert answer.json() == {"id": 1}


def test_a_body_of_another_type_is_refused(api: RegistryApi) -> None:
    answer = api.send("POST", "/subjects/a/versions", content=b"<x/>", headers={"Content-Type": "text/xml"})
    assert (answer.status_code, answer.json()["error_code"]) == (415, 415)


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b"\xff", b"null", b'{"schema":' + b"[" * 100_000])
def test_a_body_that_is_no_json_object_is_refused(api: RegistryApi, body: bytes) -> None:
    answer = api.send("POST", "/subjects/a/versions", content=body, headers={"Content-Type": OWN_TYPE})
    assert (answer.status_code, answer.json()["error_code"]) == (400, 400)
    assert api.ok("GET", "/subjects") == []


def test_a_body_beyond_ten_megabytes_is_refused_before_it_is_read_whole(api: RegistryApi) -> None:
    body = {"schema": "x" * 10_000_000}
    answer = api.send("POST", "/subjects/a/versions", body)
    assert (answer.status_code, answer.json()["error_code"]) == (413, 413)
    assert answer.json()["message"] == "request body is larger than 10 MB"


def test_a_path_or_method_that_is_not_there_is_answered_in_json(api: RegistryApi) -> None:
    assert api.refused("GET", "/nix") == (404, 404)
    assert api.refused("GET", "/subjects/") == (404, 404)
    assert api.refused("PATCH", "/subjects") == (405, 405)


@pytest.mark.parametrize("query", ["offset=x", "limit=1.5"])
def test_a_page_that_is_no_number_is_refused(api: RegistryApi, query: str) -> None:
    assert api.refused("GET", f"/subjects?{query}") == (400, 400)


def test_a_bug_is_an_answer_that_does_not_tell_what_it_was(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    def broken(
        subject: str, new: ParsedSchema, earlier: Sequence[ParsedSchema], level: CompatibilityLevel
    ) -> tuple[str, ...]:
        raise RuntimeError("inside")

    with running.in_process(tmp_path, check=broken) as api:
        answer = api.send("POST", "/subjects/a/versions", avro("x"))
        assert (answer.status_code, answer.json()["error_code"]) == (500, 500)
        assert answer.json()["message"] == "the registry failed; its log says more"
        assert api.ok("GET", "/subjects") == []
    assert "POST /subjects/a/versions failed: RuntimeError" in caplog.text


def test_users_are_told_apart_by_what_they_may_do(tmp_path: Path) -> None:
    users = Users({"ada": User("ada", "pässword:1"), "bob": User("bob", "b", read_only=True)})
    with running.in_process(tmp_path, users) as api:
        assert _register(api, "ada", "pässword:1") == 200
        assert _register(api, "ada", "guess") == 401
        assert _register(api, "eve", "") == 401
        assert _register(api, "bob", "b") == 403
        for method, path in (
            ("GET", "/subjects"),
            ("POST", "/subjects/a"),
            ("POST", "/compatibility/subjects/a/versions"),
        ):
            answer = api.send(method, path, avro("x") if method == "POST" else None, headers=_basic("bob", "b"))
            assert answer.status_code == 200
        for method, path in (("DELETE", "/subjects/a"), ("PUT", "/config"), ("PUT", "/mode/a")):
            answer = api.send(method, path, {}, headers=_basic("bob", "b"))
            assert (answer.status_code, answer.json()["error_code"]) == (403, 403)


@pytest.mark.parametrize(
    "header",
    ["", "Basic", "Basic ???", "Basic YWRh", "Bearer x", "Basic /////w=="],
    ids=lambda h: h or "none",
)
def test_credentials_that_cannot_be_read_are_wrong_ones(tmp_path: Path, header: str) -> None:
    with running.in_process(tmp_path, Users({"ada": User("ada", "p")})) as api:
        answer = api.send("GET", "/subjects", headers={"Authorization": header} if header else {})
        assert (answer.status_code, answer.json()["error_code"]) == (401, 401)
        assert answer.headers["www-authenticate"].startswith("Basic")


def test_a_password_is_not_part_of_what_is_printed() -> None:
    assert "s3cret" not in repr(Users({"ada": User("ada", "s3cret")}))


def _basic(name: str, password: str) -> dict[str, str]:
    return {"Authorization": "Basic " + base64.b64encode(f"{name}:{password}".encode()).decode()}


def _register(api: RegistryApi, name: str, password: str) -> int:
    status = api.send("POST", "/subjects/a/versions", avro("x"), headers=_basic(name, password)).status_code
    assert isinstance(status, int)
    return status

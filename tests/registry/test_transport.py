"""The way to a registry: time-outs, retries, several addresses, TLS, credentials, and answers that are none."""

from __future__ import annotations

import ssl
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, RedirectResponse, Response
from starlette.routing import Route

from headgate.registry.client import RegistryClient
from headgate.registry.errors import (
    InvalidRegistrySetting,
    NotAllowed,
    RegistryAnswerUnreadable,
    RegistryError,
    RegistryFailed,
    RegistryUnreachable,
    RequestRefused,
    WrongCredentials,
)
from headgate.registry.schemas import Reference, Schema
from headgate.registry.server.__main__ import listen
from headgate.registry.server.requests import User, Users
from headgate.registry.server.routes import create_app
from headgate.registry.server.store import Store
from headgate.registry.transport import Credentials, Retries, Tls
from tests.registry.certificates import Authority
from tests.registry.running import avro, registry, serving

pytestmark = pytest.mark.unit

RECORD = Schema(avro("x")["schema"])
SECRET = "s3cret"


def nobody() -> str:
    """An address where nobody listens."""
    with listen("127.0.0.1", 0) as listening:
        port = listening.getsockname()[1]
    return f"http://127.0.0.1:{port}"


class Script:
    """A server that gives these answers in turn, the last one for ever, and counts."""

    def __init__(self, *answers: Response | Callable[[], Response]) -> None:
        self._answers = list(answers)
        self.requests: list[tuple[str, str]] = []
        methods = ["GET", "POST", "PUT", "DELETE"]
        self.app = Starlette(routes=[Route("/{path:path}", self._answer, methods=methods)])

    def _answer(self, request: Request) -> Response:
        self.requests.append((request.method, request.headers.get("authorization", "")))
        answer = self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]
        return answer if isinstance(answer, Response) else answer()


class Pauses(list[float]):
    """Instead of sleeping: what would have been slept."""

    def retries(self, attempts: int = 4) -> Retries:
        return Retries(attempts=attempts, sleep=self.append)


def broken(status: int = 503, **headers: str) -> Response:
    return JSONResponse({"error_code": 50003, "message": "no leader"}, status, headers)


def test_a_registry_that_is_down_is_unreachable_after_all_attempts() -> None:
    pauses, url = Pauses(), nobody()
    with (
        RegistryClient([url], retries=pauses.retries()) as client,
        pytest.raises(RegistryUnreachable) as failed,
    ):
        client.subjects()
    assert failed.value.message() == f"could not reach the registry at {url}"
    assert "Connection refused" in str(failed.value.detail())
    assert len(pauses) == 3
    assert all(base / 2 <= pause <= base for pause, base in zip(pauses, (0.2, 0.4, 0.8), strict=True))


def test_a_registry_that_does_not_answer_in_time_is_unreachable() -> None:
    def slow() -> Response:
        time.sleep(0.5)
        return JSONResponse([])

    with (
        serving(Script(slow).app) as url,
        RegistryClient([url], timeout=0.1, retries=Pauses().retries(1)) as client,
        pytest.raises(RegistryUnreachable) as failed,
    ):
        client.subjects()
    assert failed.value.detail() == "It did not answer in time."


def test_a_registry_that_hangs_is_asked_no_longer_than_it_may_take() -> None:
    def slow() -> Response:
        time.sleep(0.2)
        return broken()

    script = Script(slow)
    retries = Retries(sleep=Pauses().append, within=0.1)
    with (
        serving(script.app) as url,
        RegistryClient([url], retries=retries) as client,
        pytest.raises(RegistryFailed),
    ):
        client.subjects()
    assert len(script.requests) == 1


def test_a_registry_that_is_away_is_not_an_unknown_reference() -> None:
    person = Schema("{}", references=(Reference("address", "address", 1),))
    with (
        RegistryClient([nobody()], retries=Pauses().retries(1)) as client,
        pytest.raises(RegistryUnreachable),
    ):
        client.resolved(person)


def test_a_failure_that_passes_is_not_seen() -> None:
    pauses, script = Pauses(), Script(broken(), broken(500), broken(429), JSONResponse(["a"]))
    with serving(script.app) as url, RegistryClient([url], retries=pauses.retries()) as client:
        assert client.subjects() == ("a",)
    assert len(pauses) == 3


def test_a_failure_that_stays_is_told_with_status_and_reason() -> None:
    with (
        serving(Script(broken()).app) as url,
        RegistryClient([url], retries=Pauses().retries()) as client,
        pytest.raises(RegistryFailed) as failed,
    ):
        client.latest("orders")
    assert failed.value.message() == (
        f'the registry at {url} could not read the latest version of subject "orders" (HTTP 503)'
    )
    assert failed.value.detail() == "no leader"


def test_a_gateways_error_page_is_a_failure_of_the_registry() -> None:
    script = Script(HTMLResponse("<h1>Bad gateway</h1>", 502))
    with (
        serving(script.app) as url,
        RegistryClient([url], retries=Pauses().retries(2)) as client,
        pytest.raises(RegistryFailed) as failed,
    ):
        client.subjects()
    assert failed.value.status == 502
    assert len(script.requests) == 2


@pytest.mark.parametrize(
    ("asked", "low", "high"),
    [
        ("7", 7, 7),
        ("86400", 30, 30),
        (format_datetime(datetime.now(UTC) + timedelta(hours=1)), 30, 30),
        ("soon", 0.1, 0.2),
        ("-5", 0.1, 0.2),
    ],
    ids=["seconds", "too long", "a date", "not understood", "in the past"],
)
def test_a_registry_that_asks_for_a_pause_gets_it_within_reason(asked: str, low: float, high: float) -> None:
    pauses, script = Pauses(), Script(broken(429, **{"Retry-After": asked}), JSONResponse([]))
    with serving(script.app) as url, RegistryClient([url], retries=pauses.retries()) as client:
        client.subjects()
    assert len(pauses) == 1
    assert low <= pauses[0] <= high


def test_a_deletion_whose_outcome_is_not_known_is_not_repeated() -> None:
    script = Script(broken(500), JSONResponse([1]))
    with (
        serving(script.app) as url,
        RegistryClient([url, url], retries=Pauses().retries()) as client,
        pytest.raises(RegistryFailed),
    ):
        client.delete_subject("orders")
    assert len(script.requests) == 1


def test_a_deletion_that_was_not_begun_is_repeated() -> None:
    script = Script(broken(429), JSONResponse([1]))
    with (
        serving(script.app) as url,
        RegistryClient([nobody(), url], retries=Pauses().retries()) as client,
    ):
        assert client.delete_subject("orders") == (1,)


def test_the_next_address_is_tried_and_then_preferred(tmp_path: Path) -> None:
    dead, pauses, failing = nobody(), Pauses(), Script(broken())
    with (
        registry(tmp_path) as alive,
        serving(failing.app) as ill,
        RegistryClient([dead, ill, alive], retries=pauses.retries()) as client,
    ):
        client.register("orders", RECORD)
        assert client.subjects() == ("orders",)
    assert len(failing.requests) == 1
    assert pauses == []


def test_a_wrong_password_is_not_a_missing_right(tmp_path: Path) -> None:
    users = Users({"ada": User("ada", SECRET), "bob": User("bob", "b", read_only=True)})
    with registry(tmp_path, users) as url:
        with RegistryClient([url], credentials=Credentials("ada", SECRET)) as ada:
            ada.register("orders", RECORD)
        with (
            RegistryClient([url], credentials=Credentials("ada", "guess")) as guessing,
            pytest.raises(WrongCredentials) as wrong,
        ):
            guessing.subjects()
        with RegistryClient([url]) as anonymous, pytest.raises(WrongCredentials) as missing:
            anonymous.subjects()
        with RegistryClient([url], credentials=Credentials("bob", "b")) as bob:
            assert bob.subjects() == ("orders",)
            with pytest.raises(NotAllowed) as forbidden:
                bob.delete_subject("orders")
    assert wrong.value.message() == f'the registry at {url} does not accept user "ada"'
    assert missing.value.message() == f"the registry at {url} does not accept these credentials"
    assert forbidden.value.message() == f'user "bob" may not delete subject "orders" in the registry at {url}'
    assert len({type(e.value).code for e in (wrong, forbidden)}) == 2


def test_credentials_in_the_url_are_used_and_never_shown(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("DEBUG")
    with (
        registry(tmp_path, Users({"ada": User("ada", "s3cret/")})) as url,
        RegistryClient([url.replace("//", "//ada:s3cret%2F@")]) as client,
    ):
        assert client.subjects() == ()
        assert repr(client) == f"RegistryClient({url})"
    with (
        RegistryClient([nobody().replace("//", f"//ada:{SECRET}@")], retries=Pauses().retries(1)) as lost,
        pytest.raises(RegistryUnreachable) as failed,
    ):
        lost.subjects()
    shown = failed.value.diagnostic().render() + repr(failed.value) + caplog.text
    assert SECRET not in shown


@pytest.mark.parametrize("secret", [Credentials("ada", SECRET), Tls(key_password=SECRET)], ids=repr)
def test_a_secret_is_not_part_of_what_is_printed(secret: Credentials | Tls) -> None:
    assert SECRET not in repr(secret)


@pytest.mark.parametrize(
    ("answer", "problem"),
    [
        (HTMLResponse("<form>Password: <input></form>"), "it is an HTML page"),
        (HTMLResponse("<h1>Not found</h1>", 404), "it is an HTML page"),
        (RedirectResponse("/login"), "it sends the client elsewhere"),
        (Response("hello", media_type="text/plain"), "it is not JSON"),
        (JSONResponse({"detail": "Not Found"}, 404), "it is an error that is not the registry's"),
        (JSONResponse({"subjects": []}), "a list was asked for"),
        (JSONResponse([1, 2]), "a list of names was asked for"),
    ],
)
def test_an_answer_that_is_not_a_registrys_is_told_as_such(answer: Response, problem: str) -> None:
    with (
        serving(Script(answer).app) as url,
        RegistryClient([url]) as client,
        pytest.raises(RegistryAnswerUnreadable) as unread,
    ):
        client.subjects()
    assert unread.value.problem == problem
    assert "/apis/ccompat/v7" in str(unread.value.hint())


def test_a_registry_that_is_not_at_this_path_is_told_from_a_call_it_does_not_have() -> None:
    missing = JSONResponse({"error_code": 404, "message": "not found"}, 404)
    with serving(Script(missing).app) as url, RegistryClient([url]) as lost:
        for call in (lost.subjects, lost.types, lost.level):
            with pytest.raises(RegistryAnswerUnreadable) as unread:
                call()
            assert unread.value.problem == "there are no subjects at this path"
    with (
        serving(Script(missing, JSONResponse([])).app) as url,
        RegistryClient([url]) as limited,
        pytest.raises(RequestRefused) as refused,
    ):
        limited.level()
    assert refused.value.registry_code == 404


CALLS: tuple[Callable[[RegistryClient], object], ...] = (
    lambda client: client.latest("orders"),
    lambda client: client.schema_by_id(1),
    lambda client: client.versions("orders"),
    lambda client: client.compatibility("orders", RECORD),
    lambda client: client.register("orders", RECORD),
    lambda client: client.delete_version("orders", 1),
    lambda client: client.level(),
)


@pytest.mark.parametrize(
    "body",
    [
        None,
        [],
        [None],
        {},
        "x",
        True,
        {"id": "1", "schema": 1, "compatibilityLevel": "UP"},
        {"schema": "{}", "schemaType": "XML"},
        {"schema": "{}", "references": {}},
        {"schema": "{}", "references": [{"name": "a"}]},
    ],
)
def test_a_shape_that_is_not_the_apis_is_unreadable_and_never_a_crash(body: object) -> None:
    def outcome(call: Callable[[RegistryClient], object]) -> object:
        try:
            return call(client)
        except RegistryError as failure:
            return type(failure)

    with serving(Script(JSONResponse(body)).app) as url, RegistryClient([url]) as client:
        outcomes = [outcome(call) for call in CALLS]
    an_empty_list_is_a_list = [()] if body == [] else []
    assert [found for found in outcomes if found is not RegistryAnswerUnreadable] == an_empty_list_is_a_list


def test_a_registry_behind_tls_is_trusted_by_its_authority(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    server, own = authority.issue("server"), authority.issue("client")
    store = Store(tmp_path / "data")
    settings = {
        "ssl_certfile": server.certificate,
        "ssl_keyfile": server.key,
        "ssl_ca_certs": authority.certificate,
        "ssl_cert_reqs": ssl.CERT_REQUIRED,
    }
    with serving(create_app(store), "https", **settings) as url:
        with RegistryClient([url], tls=Tls(authority.certificate, own.certificate, own.key)) as client:
            assert client.subjects() == ()
        with (
            RegistryClient([url], retries=Pauses().retries(1)) as stranger,
            pytest.raises(RegistryUnreachable) as distrusted,
        ):
            stranger.subjects()
        with (
            RegistryClient([url], tls=Tls(authority.certificate), retries=Pauses().retries(1)) as nameless,
            pytest.raises(RegistryUnreachable),
        ):
            nameless.subjects()
    store.close()
    assert "CERTIFICATE_VERIFY_FAILED" in str(distrusted.value.detail())


def test_certificates_that_cannot_be_used_are_refused_at_once(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    one, other = authority.issue("one"), authority.issue("other")
    (tmp_path / "text").write_text("no certificate")
    for tls, setting in (
        (Tls(ca=tmp_path / "nix"), "ca"),
        (Tls(ca=tmp_path / "text"), "ca"),
        (Tls(certificate=one.certificate, key=other.key), "certificate"),
        (Tls(key=one.key), "key"),
    ):
        with pytest.raises(InvalidRegistrySetting) as refused:
            RegistryClient(["https://127.0.0.1"], tls=tls)
        assert refused.value.setting == setting


@pytest.mark.parametrize("urls", [[], [""], ["registry:8081"], ["ftp://registry"], ["http://"], ["http://a\x00b"]])
def test_what_is_no_url_is_refused_at_once(urls: list[str]) -> None:
    with pytest.raises(InvalidRegistrySetting) as refused:
        RegistryClient(urls)
    assert refused.value.setting == "url"

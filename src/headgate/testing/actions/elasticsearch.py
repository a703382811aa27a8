"""`elasticsearch-execute`, `elasticsearch-verify` and `elasticsearch-mapping`."""

from __future__ import annotations

import json
from collections.abc import Hashable, Sequence
from decimal import Decimal

import httpx

from headgate.testing.compare import align, as_written, differences
from headgate.testing.context import Action, Deadline, GiveUp, Invocation, SpecContext
from headgate.testing.errors import Mismatch, ServiceFailed
from headgate.testing.notation import Json, canonical, equal, is_part, read_json, without_nulls, write_json

PAGE = 1000


def execute(call: Invocation, context: SpecContext) -> None:
    """`elasticsearch-execute`: a request to the server, as somebody else would send it. Only GET and HEAD are tried again."""
    method, path = call.positional
    body, status = "\n".join(context.fill(call.body)), call.number("status")

    def attempt(deadline: Deadline) -> None:
        response = _send(method.upper(), f"{context.elasticsearch}{path}", body.encode() or None, deadline)
        if response.status_code != status if status is not None else not response.is_success:
            error = ServiceFailed("elasticsearch", f"status {response.status_code}: {_shortened(response)}")
            if method.upper() in ("GET", "HEAD"):  # others may have changed something
                raise error
            raise GiveUp(error)

    context.eventually(attempt)


def verify(call: Invocation, context: SpecContext) -> None:
    """`elasticsearch-verify`: the documents of an index, in any order. `_id` counts if the spec writes one."""
    expected = [_document(call, line) for line in context.fill(call.body)]
    with_ids = any("_id" in one for one in expected)
    sort = call.optional("sort")

    def attempt(deadline: Deadline) -> None:
        hits = _all(call.text("index"), context, deadline)
        actual = [{**({"_id": id_} if with_ids else {}), **source} for id_, source in hits]
        missing, extra = differences(expected, actual, _identity, _same)
        if missing or extra:
            raise _mismatch(call.text("index"), expected, sorted(actual, key=lambda one: _place(one, sort)))

    context.eventually(attempt, call.body)


def mapping(call: Invocation, context: SpecContext) -> None:
    """`elasticsearch-mapping`: the mapping has the expected fields; with `exact`, no others."""
    wanted = read_json("\n".join(context.fill(call.body)))
    if not isinstance(wanted, dict):
        raise call.wrong("wants a JSON object")
    whole = isinstance(wanted.get("properties"), dict) or "_meta" in wanted
    expected: dict[str, Json] = wanted if whole else {"properties": wanted}
    exact = call.flag("exact")

    def attempt(deadline: Deadline) -> None:
        actual = _mapping(call.text("index"), context, deadline)
        holds = is_part(expected, actual)
        if exact and "properties" in expected:
            holds = holds and equal(expected["properties"], actual.get("properties", {}))
        if not holds:
            shown = actual if whole else actual.get("properties", {})
            what = f'the mapping of index "{call.text("index")}" is another one'
            raise Mismatch(what, _lines(expected if whole else wanted), _lines(shown), (write_json(shown),))

    context.eventually(attempt, call.body)


def _all(index: str, context: SpecContext, deadline: Deadline) -> list[tuple[str, dict[str, Json]]]:
    """All documents, read in pages. The index is refreshed first, so that what was written is found."""
    base = f"{context.elasticsearch}/{index}"
    _ask("POST", f"{base}/_refresh", None, deadline)
    found: list[tuple[str, dict[str, Json]]] = []
    after: Json = None
    while True:
        body: dict[str, object] = {"size": PAGE, "query": {"match_all": {}}, "sort": [{"_id": "asc"}]}
        if after is not None:
            body["search_after"] = after
        hits = _hits(_ask("POST", f"{base}/_search", body, deadline))
        found += [(id_, source) for id_, source, _ in hits]
        if len(hits) < PAGE:
            return found
        after = hits[-1][2]


def _hits(answer: Json) -> list[tuple[str, dict[str, Json], Json]]:
    match answer:
        case {"hits": {"hits": list(hits)}}:
            return [_hit(hit) for hit in hits]
        case _:
            raise ServiceFailed("elasticsearch", "its answer to a search cannot be read")


def _hit(hit: Json) -> tuple[str, dict[str, Json], Json]:
    match hit:
        case {"_id": str(id_), "_source": dict(source), "sort": list(place)}:
            return id_, source, place
        case _:
            raise ServiceFailed("elasticsearch", "a document of its answer cannot be read")


def _mapping(index: str, context: SpecContext, deadline: Deadline) -> dict[str, Json]:
    """The mapping of the one index behind the name, which may be an alias."""
    answer = _ask("GET", f"{context.elasticsearch}/{index}/_mapping", None, deadline)
    if not isinstance(answer, dict) or len(answer) != 1:
        raise ServiceFailed("elasticsearch", f'"{index}" is not one index')
    [found] = answer.values()
    inner = found.get("mappings") if isinstance(found, dict) else None
    return inner if isinstance(inner, dict) else {}


def _ask(method: str, url: str, body: object, deadline: Deadline) -> Json:
    """One request. Raises ServiceFailed for any answer but success."""
    response = _send(method, url, None if body is None else json.dumps(body).encode(), deadline)
    if not response.is_success:
        raise ServiceFailed("elasticsearch", _shortened(response))
    return read_json(response.text)


def _send(method: str, url: str, content: bytes | None, deadline: Deadline) -> httpx.Response:
    headers = {"Content-Type": "application/json"} if content is not None else {}
    timeout = max(1.0, min(30.0, deadline.left))
    try:
        return httpx.request(method, url, content=content, headers=headers, timeout=timeout, trust_env=False)
    except httpx.HTTPError as error:
        raise ServiceFailed("elasticsearch", "it does not answer") from error


def _shortened(response: httpx.Response) -> str:
    return " ".join(response.text.split())[:500]


def _document(call: Invocation, line: str) -> dict[str, Json]:
    found = read_json(line)
    if not isinstance(found, dict):
        raise call.wrong("wants one JSON object in each line")
    return found


def _comparable(document: dict[str, Json]) -> Json:
    return without_nulls({name: value for name, value in document.items() if name != "_id"})


def _same(expected: dict[str, Json], actual: dict[str, Json]) -> bool:
    id_ = expected.get("_id", actual.get("_id"))
    return id_ == actual.get("_id") and equal(_comparable(expected), _comparable(actual))


def _identity(document: dict[str, Json]) -> Hashable:
    return canonical(_comparable(document))


def _place(document: dict[str, Json], sort: str | None) -> tuple[bool, int, float | Decimal, str]:
    """The sort key: the field that ``sort`` names, numbers before text; without one, the text of the document."""
    value: Json = document
    for name in sort.split(".") if sort else ():
        value = value.get(name) if isinstance(value, dict) else None
    is_number = isinstance(value, int | float | Decimal) and not isinstance(value, bool)
    number = value if is_number and isinstance(value, int | float | Decimal) else 0
    return value is None, not is_number, number, write_json(value)


def _mismatch(index: str, expected: Sequence[dict[str, Json]], actual: Sequence[dict[str, Json]]) -> Mismatch:
    lines = as_written(expected, actual, _same, write_json)
    wanted = [write_json(one) for one in expected]
    what = f'the documents of index "{index}" are not the expected ones'
    return Mismatch(what, tuple(wanted), tuple(align(wanted, lines)), tuple(lines))


def _lines(value: Json) -> tuple[str, ...]:
    """One member per line at the first two levels, so that a diff shows what differs."""
    if not isinstance(value, dict):
        return (write_json(value),)
    lines: list[str] = []
    for name, member in value.items():
        if isinstance(member, dict):
            lines += [f"{name}.{inner}: {write_json(content)}" for inner, content in sorted(member.items())]
        else:
            lines.append(f"{name}: {write_json(member)}")
    return tuple(lines)


ACTIONS = (
    Action("elasticsearch-execute", execute, options=("status",), positional=2, body="optional"),
    Action("elasticsearch-verify", verify, required=("index",), options=("sort",), body="optional"),
    Action("elasticsearch-mapping", mapping, required=("index",), options=("exact",), body="required"),
)

"""Verdicts on generated pairs of schemas beside those of others: Avro's own library, and Apicurio's registry.

Agreement is the figure; the time of a verdict is shown beside it where the peer is in this process. A disagreement is
never hidden: each falls into a class with a reason (`disagreements`), and the classes are printed with their sizes.
"""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import avro.compatibility
import avro.schema
import httpx

from bench.disagreements import Disagreement, Reason
from bench.figures import Report, Row, Size, compared, cpu_seconds
from bench.pairs import TextPair, pairs
from headgate.registry.compatibility import incompatibilities
from headgate.registry.errors import Incompatibility, MalformedSchema
from headgate.registry.schemas import ParsedSchema, Schema, parse
from headgate.schema.written import SchemaFormat
from tests.registry.apicurio import BASE_PATH, apicurio

PROMISE = "every disagreement explained"


def avro_library(size: Size) -> Report:
    count, rounds = (100, 1) if size == "small" else (3000, 2)
    found = pairs(SchemaFormat.AVRO, count)
    different = [pair for pair in found if _library_accepts(pair) is not (ours(pair) == ())]
    seconds = cpu_seconds(lambda: [ours(pair) for pair in found], rounds) / len(found)
    peer = cpu_seconds(lambda: [_library_accepts(pair) for pair in found], rounds) / len(found)
    rows = (
        _agreement("Avro", len(found) - len(different), len(found), "avro.compatibility", len(different)),
        compared("Avro: one verdict, both schemas parsed", seconds, peer, "avro.compatibility"),
    )
    # The pairs have none of the three things in which the library is known to differ from Java's, and so from
    # registries in use: aliases relative to a namespace, a field that may stand for two, errors outside of protocols.
    notes = [f"not explained: reader {pair.new} writer {pair.old}" for pair in different]
    accepted = sum(ours(pair) == () for pair in found)
    return Report("Compatibility: Avro", rows, (f"{accepted} of the pairs are compatible.", *notes))


def registry(size: Size) -> Report:
    count = 20 if size == "small" else 500
    rows: list[Row] = []
    notes: list[str] = []
    with tempfile.TemporaryDirectory() as folder, apicurio(Path(folder)) as url:
        for type_, name in ((SchemaFormat.JSON, "JSON Schema"), (SchemaFormat.PROTOBUF, "Protobuf")):
            answers = [*_asked(url, pairs(type_, count))]
            row, more = _judged(name, answers)
            rows.append(row)
            notes += more
    return Report("Compatibility: JSON Schema and Protobuf at BACKWARD", tuple(rows), tuple(notes))


@dataclass(frozen=True, slots=True)
class Answer:
    """Both verdicts on a pair. ``theirs`` is empty when Apicurio accepts, None when it could not answer."""

    pair: TextPair
    ours: tuple[Incompatibility, ...]
    theirs: str | None


def ours(pair: TextPair) -> tuple[Incompatibility, ...]:
    return incompatibilities(_read(pair.new, pair.type), _read(pair.old, pair.type))


def _read(text: str, type_: SchemaFormat) -> ParsedSchema:
    return parse(Schema(text, type_), lambda reference: None)


def _library_accepts(pair: TextPair) -> bool:
    checker = avro.compatibility.ReaderWriterCompatibilityChecker()  # type: ignore[no-untyped-call]
    reader, writer = avro.schema.parse(pair.new), avro.schema.parse(pair.old)
    verdict = checker.get_compatibility(reader, writer).compatibility
    return verdict is avro.compatibility.SchemaCompatibilityType.compatible


def _asked(url: str, asked: Iterable[TextPair]) -> Iterator[Answer]:
    """Each old version registered under a subject of its own, and the new one put to it."""
    with httpx.Client(base_url=url + BASE_PATH, trust_env=False, timeout=60) as http:
        http.put("/config", json={"compatibility": "BACKWARD"}).raise_for_status()
        for number, pair in enumerate(asked):
            subject = f"{pair.type}-{number}"
            try:
                found = ours(pair)
            except MalformedSchema:
                continue  # the strategy made two fields of one number, or the like
            body = {"schemaType": pair.type.value}
            http.post(f"/subjects/{subject}/versions", json={**body, "schema": pair.old}).raise_for_status()
            path = f"/compatibility/subjects/{subject}/versions/latest"
            answer = http.post(path, params={"verbose": "true"}, json={**body, "schema": pair.new})
            yield Answer(pair, found, _verdict(answer))


def _verdict(answer: httpx.Response) -> str | None:
    """It breaks, with status 500, on a combination whose only member is `true`."""
    if answer.status_code != 200:
        return None
    body = answer.json()
    return "" if body["is_compatible"] else str(body["reason"])


def _judged(name: str, answers: list[Answer]) -> tuple[Row, list[str]]:
    answered = [answer for answer in answers if answer.theirs is not None]
    different = [
        Disagreement(answer.pair, answer.ours, answer.theirs)
        for answer in answered
        if answer.theirs is not None and (answer.theirs == "") is not (answer.ours == ())
    ]
    classes = Counter((bool(each.theirs), each.reason()) for each in different)
    unexplained = [each for each in different if each.reason() is Reason.UNEXPLAINED]
    row = _agreement(name, len(answered) - len(different), len(answered), "Apicurio", len(unexplained))
    notes = [_class_note(name, accepts, reason, size) for (accepts, reason), size in classes.most_common()]
    if len(answers) > len(answered):
        notes.append(f"{name}: {len(answers) - len(answered)} pairs on which Apicurio fails (status 500).")
    notes += [f"not explained: new {each.pair.new} old {each.pair.old}: {each.theirs}" for each in unexplained]
    return row, notes


def _class_note(name: str, we_accept: bool, reason: Reason, size: int) -> str:
    verdict = "we accept, it refuses" if we_accept else "we refuse, it accepts"
    return f"{name}: {size} × {verdict}: {reason.value}."


def _agreement(name: str, agreed: int, pairs_: int, peer: str, unexplained: int) -> Row:
    ratio = agreed / pairs_ if pairs_ else None
    what = f"{name}: verdicts that agree"
    return Row(what, f"{agreed:,}", f"{pairs_:,} of {peer}", ratio, PROMISE, unexplained == 0)

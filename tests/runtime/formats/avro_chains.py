"""Random Avro schemas, the versions that come after them, and records of each."""

from __future__ import annotations

import copy
import datetime as dt
from decimal import Decimal
from random import Random
from typing import Any

MILLIS = {"type": "long", "logicalType": "timestamp-millis"}
MICROS = {"type": "long", "logicalType": "timestamp-micros"}
LOCAL = {"type": "long", "logicalType": "local-timestamp-micros"}
TIME_MILLIS = {"type": "int", "logicalType": "time-millis"}
TIME_MICROS = {"type": "long", "logicalType": "time-micros"}
DATE = {"type": "int", "logicalType": "date"}
DECIMAL = {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}
FINER = {"type": "bytes", "logicalType": "decimal", "precision": 12, "scale": 4}
LEAVES: list[Any] = [
    "boolean", "int", "int", "long", "float", "double", "string", "bytes", MILLIS, MILLIS, MICROS, LOCAL, TIME_MILLIS, DATE,
    DECIMAL,
]  # fmt: skip
# Other meanings of the same bytes, or of those that Avro makes of them: the same values, and others.
EXACT = [(MILLIS, MICROS), (MICROS, MILLIS), (TIME_MILLIS, TIME_MICROS), (DECIMAL, FINER)]
INEXACT: list[tuple[Any, Any]] = [
    ("int", DATE), ("long", MILLIS), ("bytes", DECIMAL), (MICROS, LOCAL), (DATE, "int"), (TIME_MILLIS, "long"),
]  # fmt: skip
WIDER = {"int": ("long", "double"), "float": ("double",)}
DEFAULTS: dict[str, Any] = {"boolean": True, "int": 7, "long": 8, "double": 1.5, "string": "none"}


class Chain:
    """Versions of one record. Those up to ``frozen`` are resolved by Avro's rules; those behind it are read as written,
    and change only what can be followed."""

    def __init__(self, random: Random, versions: int, frozen: int) -> None:
        self._random = random
        self._frozen = frozen
        self._count = 0
        self.versions: list[Any] = [self._record(depth=2)]
        while len(self.versions) < versions:
            later = copy.deepcopy(self.versions[-1])
            for _ in range(random.randint(1, 3)):
                self._edit(later)
            self.versions.append(later)

    def _name(self, prefix: str) -> str:
        self._count += 1
        return f"{prefix}{self._count}"

    def _record(self, depth: int) -> dict[str, Any]:
        fields = [self._field(depth) for _ in range(self._random.randint(1, 4))]
        return {"type": "record", "name": self._name("r"), "namespace": "chain", "fields": fields}

    def _field(self, depth: int) -> dict[str, Any]:
        return {"name": self._name("f"), "type": self._type(depth)}

    def _type(self, depth: int) -> Any:
        kind = self._random.choice(["leaf", "leaf", "leaf", "enum", "array", "map", "record", "nullable"])
        if kind == "enum":
            return {"type": "enum", "name": self._name("e"), "symbols": ["A", "B"]}
        if kind == "leaf" or depth == 0:
            return copy.deepcopy(self._random.choice(LEAVES))
        if kind == "record":
            return self._record(depth - 1)
        inner = self._type(depth - 1)
        if kind == "nullable":
            return inner if isinstance(inner, list) else ["null", inner]
        return {"type": kind, "items" if kind == "array" else "values": inner}

    def _edit(self, record: dict[str, Any]) -> None:
        target = self._random.choice(_records(record))
        fields = target["fields"]
        place = self._random.randrange(len(fields))
        match self._random.choice(
            ["add", "add", "drop", "widen", "null", "symbol", "order", "doc", "name", "mean", "mean"]
        ):
            case "add":
                fields.insert(place, self._added())
            case "drop" if len(fields) > 1:
                del fields[place]
            case "widen":
                self._widen(fields[place])
            case "null" if not isinstance(fields[place]["type"], list):
                fields[place].pop("default", None)
                fields[place]["type"] = ["null", fields[place]["type"]]
            case "symbol" if isinstance(fields[place]["type"], dict) and "symbols" in fields[place]["type"]:
                fields[place]["type"]["symbols"].insert(self._random.randint(0, 2), self._name("S"))
            case "order":
                self._random.shuffle(fields)
            case "name" if self._is_resolved():
                fields[place]["aliases"] = [fields[place]["name"], *fields[place].get("aliases", ())]
                fields[place]["name"] = self._name("f")
            case "mean":
                self._mean(record)
            case _:
                target["doc"] = self._name("version ")

    def _added(self) -> dict[str, Any]:
        field = self._field(1)
        kind = field["type"]
        if isinstance(kind, str) and kind in DEFAULTS:
            return {**field, "default": DEFAULTS[kind]}
        if self._random.random() < 0.3:
            return field
        return {**field, "type": ["null", kind[1] if isinstance(kind, list) else kind], "default": None}

    def _widen(self, field: dict[str, Any]) -> None:
        kind = field["type"]
        if isinstance(kind, str) and kind in WIDER:
            field["type"] = self._random.choice(WIDER[kind])

    def _is_resolved(self) -> bool:
        """Whether the version that is made now is, in which Avro finds another name by its alias."""
        return len(self.versions) <= self._frozen

    def _mean(self, record: dict[str, Any]) -> None:
        """Another meaning of the same bytes, which Avro does not see."""
        exact = not self._is_resolved() or self._random.random() < 0.8
        changes = EXACT if exact else INEXACT
        fields = [f for inner in _records(record) for f in inner["fields"] if f.get("default") is None]
        can = [f for f in fields if self._meant(f["type"], changes) != f["type"]]
        if can:
            chosen = self._random.choice(can)
            chosen["type"] = self._meant(chosen["type"], changes)

    def _meant(self, schema: Any, changes: list[tuple[Any, Any]]) -> Any:
        """The schema with another meaning of the leaf that it is or holds, if there is one."""
        if isinstance(schema, list):
            return [self._meant(branch, changes) for branch in schema]
        part = next((key for key in ("items", "values") if key in schema), None)
        if part is not None:
            # Whether an empty array of what cannot be resolved can be read, is not the same everywhere.
            alike = [(old, new) for old, new in changes if _primitive(old) == _primitive(new)]
            return {**schema, part: self._meant(schema[part], alike)}
        return copy.deepcopy(next((new for old, new in changes if old == schema), schema))

    def value(self, schema: Any) -> Any:
        random = self._random
        if isinstance(schema, list):
            return self.value(random.choice(schema))
        kind = schema["type"] if isinstance(schema, dict) else schema
        match kind:
            case "record":
                return {field["name"]: self.value(field["type"]) for field in schema["fields"]}
            case "enum":
                return random.choice(schema["symbols"])
            case "array":
                return [self.value(schema["items"]) for _ in range(random.randint(0, 3))]
            case "map":
                return {f"k{n}": self.value(schema["values"]) for n in range(random.randint(0, 3))}
            case _:
                return self._leaf(kind, schema.get("logicalType") if isinstance(schema, dict) else None)

    def _leaf(self, kind: str, logical: str | None) -> Any:
        random = self._random
        match kind, logical:
            case _, "date":
                return dt.date(2000, 1, 1) + dt.timedelta(days=random.randint(-9000, 9000))
            case _, "decimal":
                return Decimal(random.randint(-99_999, 99_999)).scaleb(-2)
            case _, "time-millis" | "time-micros":
                return dt.time(random.randrange(24), 59, random.randrange(60), random.randrange(1000) * 1000)
            case _, str():
                zone = None if logical.startswith("local") else dt.UTC
                fraction = random.randrange(1000) * 1000 if logical.endswith("millis") else random.randrange(10**6)
                past = dt.timedelta(seconds=random.randint(0, 10**6), microseconds=fraction)
                return dt.datetime(2026, 1, 1, tzinfo=zone) + past
            case "null", _:
                return None
            case "boolean", _:
                return random.random() < 0.5
            case "int", _:
                return random.randint(-(2**31), 2**31 - 1)
            case "long", _:
                return random.randint(-(2**63), 2**63 - 1)
            case "float" | "double", _:
                return random.randint(-1000, 1000) / 4
            case "string", _:
                return "é" * random.randint(0, 5)
            case _:
                return bytes(random.randint(0, 5))


def _records(schema: Any) -> list[dict[str, Any]]:
    """A record and those in it."""
    if isinstance(schema, list):
        return [record for branch in schema for record in _records(branch)]
    if not isinstance(schema, dict):
        return []
    parts = [schema.get("items"), schema.get("values"), *(f["type"] for f in schema.get("fields", ()))]
    return [*([schema] if "fields" in schema else []), *(r for part in parts for r in _records(part))]


def _primitive(leaf: Any) -> str:
    return str(leaf["type"] if isinstance(leaf, dict) else leaf)


def other_meaning(writer: Any, reader: Any, path: str = "$") -> str | None:
    """The first place of two versions where values of the one are none of the other's, though Avro resolves them."""
    writer, reader = _not_null(writer), _not_null(reader)
    if "fields" in writer and "fields" in reader:
        theirs = {field["name"]: field["type"] for field in writer["fields"]}
        for field in reader["fields"]:
            name = next((n for n in (field["name"], *field.get("aliases", ())) if n in theirs), None)
            found = name and other_meaning(theirs[name], field["type"], f"{path}.{field['name']}")
            if found:
                return found
        return None
    for part, step in (("items", "[]"), ("values", "{}")):
        if part in writer and part in reader:
            return other_meaning(writer[part], reader[part], path + step)
    same = _values(writer) == _values(reader) or (writer == DECIMAL and reader == FINER)
    return None if same or (_primitive(writer), _primitive(reader)) not in RESOLVED else path


PLAIN = ("boolean", "int", "long", "float", "double", "string", "bytes")
RESOLVED = {
    *((kind, kind) for kind in PLAIN), ("int", "long"), ("int", "float"), ("int", "double"), ("long", "float"),
    ("long", "double"), ("float", "double"),
}  # fmt: skip


def _values(leaf: Any) -> Any:
    """What kind of thing a leaf is."""
    match leaf:
        case {"logicalType": "decimal"}:
            return leaf
        case {"logicalType": str(logical)}:
            return logical.removesuffix("-millis").removesuffix("-micros")
        case _:
            return "plain"


def _not_null(schema: Any) -> Any:
    return next(b for b in schema if b != "null") if isinstance(schema, list) else schema

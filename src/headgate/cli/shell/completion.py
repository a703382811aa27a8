"""Completion of keywords, of the names of objects, and of their columns."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document

from headgate.catalog.objects import RELATIONS
from headgate.catalog.snapshot import DEFAULT_SCHEMA
from headgate.schema.names import print_name
from headgate.serve.client import EngineClient
from headgate.serve.protocol import Columns, Done, Event, Failed, Rows, Value
from headgate.sql.parser.synopses import all_option_tables, all_rules, all_synopses

# Words of queries; those of statements are in their synopses.
_OF_QUERIES = """AND AS ASC BETWEEN BY CASE CAST CROSS DESC DISTINCT ELSE END EXISTS FALSE FROM FULL GROUP HAVING IN INNER
INTERVAL IS JOIN LEFT LIKE LIMIT NOT NULL OFFSET ON OR ORDER OUTER RIGHT SELECT THEN TRUE UNION USING VALUES WHEN WHERE
WITH"""
_WORD = re.compile(r"[\w\"`]*$")
_OWNER = re.compile(r"([\w.\"`]+)\.[\w\"`]*$")
MOST_DESCRIBED = 500  # relations whose columns are completed


def _keywords() -> frozenset[str]:
    texts = [*all_synopses().values(), *all_rules().values()]
    found = {
        word
        for text in texts
        for word in re.findall(r"(?<![<\w])[A-Z][A-Z]+\b", re.sub(r"<[^>]*>", " ", text))
    }
    options = (rule.name for table in all_option_tables().values() for rule in table.rules)
    of_options = (word.upper() for name in options for word in name.split())
    return frozenset({*found, *of_options, *_OF_QUERIES.split()})


KEYWORDS = _keywords()


@dataclass(frozen=True, slots=True)
class Names:
    """Objects as they can be written, with the columns of those that have some."""

    objects: Mapping[str, str] = field(default_factory=dict)  # name -> kind
    columns: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


class SqlCompleter(Completer):
    """``names`` may be replaced at any time."""

    def __init__(self, names: Names | None = None) -> None:
        self.names = names or Names()

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterator[Completion]:
        before = document.text_before_cursor
        found = _WORD.search(before)
        word = found[0] if found else ""
        owner = _OWNER.search(before)
        if owner is not None:
            yield from _fitting(word, self._columns_of(owner[1]), "column")
            yield from _fitting(word, self._objects_in(owner[1]), "object")
        elif word:
            yield from self._anything(word)

    def _anything(self, word: str) -> Iterator[Completion]:
        for name, kind in sorted(self.names.objects.items()):
            yield from _fitting(word, [name], kind)
        columns = {column for columns in self.names.columns.values() for column in columns}
        yield from _fitting(word, sorted(columns), "column")
        if not word.startswith(('"', "`")):
            written = str.lower if word.islower() else str.upper
            yield from _fitting(word, (written(keyword) for keyword in sorted(KEYWORDS)), "")

    def _columns_of(self, owner: str) -> tuple[str, ...]:
        folded = {name.lower(): columns for name, columns in self.names.columns.items()}
        return folded.get(owner.lower(), ())

    def _objects_in(self, schema: str) -> list[str]:
        start = f"{schema.lower()}."
        return [name[len(start) :] for name in self.names.objects if name.lower().startswith(start)]


def _fitting(word: str, candidates: Iterable[str], what: str) -> Iterator[Completion]:
    for candidate in candidates:
        if candidate.lower().startswith(word.lower()) and candidate != word:
            yield Completion(candidate, -len(word), display_meta=what)


def read_names(client: EngineClient) -> Names:
    """The names of an engine's catalog, asked without Spark: SHOW, and DESCRIBE of all relations at once."""
    objects = dict(_objects(client.run("SHOW OBJECTS;")))
    relations = [name for name, kind in objects.items() if kind in RELATIONS][:MOST_DESCRIBED]
    if not relations:
        return Names(objects)
    script = "".join(f"DESCRIBE {name};\n" for name in relations)
    return Names(objects, dict(zip(relations, _columns(client.run(script)), strict=False)))


def _objects(events: Iterable[Event]) -> Iterator[tuple[str, str]]:
    for row in _rows(events):
        schema, name = str(row["schema"] or ""), str(row["name"])
        qualified = (name,) if schema in ("", DEFAULT_SCHEMA) else (schema, name)
        yield print_name(qualified), str(row["kind"])


def _columns(events: Iterable[Event]) -> Iterator[tuple[str, ...]]:
    """The columns of each relation that was described."""
    found: list[str] = []
    for event in events:
        match event:
            case Rows(rows):
                found += [print_name((str(row[0]),)) for row in rows]
            case Done():
                yield tuple(found)
                found = []
            case _:
                pass


def _rows(events: Iterable[Event]) -> Iterator[dict[str, Value]]:
    names: list[str] = []
    for event in events:
        match event:
            case Columns(columns):
                names = [column.name for column in columns]
            case Rows(rows):
                yield from (dict(zip(names, row, strict=True)) for row in rows)
            case Failed():
                return
            case _:
                pass

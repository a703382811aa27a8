"""The statement behind an object: how it is stored, how it is read back, and when two of them are the same one.

`Object.purified` is JSON text: the statement, and beside it facts that the statement does not say, such as the search
path by which a view's query finds what it names. Every other statement is stored with names that the default search
path finds.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from functools import lru_cache
from typing import TypeVar, cast

from headgate.catalog.names import DEFAULT_PATH, SearchPath
from headgate.catalog.objects import Object
from headgate.errors import InternalError
from headgate.sql.json import Json, from_json, to_json
from headgate.sql.statement import Statement

S = TypeVar("S", bound=Statement)

STATEMENT, SEARCH_PATH, MARK = "statement", "search_path", "mark"


def purified_text(statement: Statement, facts: Mapping[str, object] | None = None) -> str:
    """What is stored for a statement."""
    return json.dumps({STATEMENT: to_json(statement), **(facts or {})})


def facts_of(entry: Object) -> dict[str, object]:
    """What is stored beside the statement, but for the mark of what it was."""
    return {name: value for name, value in entry.purified_json().items() if name not in (STATEMENT, MARK)}


def stored_statement(entry: Object) -> Statement | None:
    """The statement that made the object; None for one that has none: a secret, and what every catalog begins with."""
    return _statement(entry.purified)


@lru_cache(maxsize=4096)
def _statement(purified: str) -> Statement | None:
    """Kept by its text: a script that makes many sinks looks at all of them for each."""
    stored = json.loads(purified).get(STATEMENT)
    return from_json(cast("dict[str, Json]", stored)) if isinstance(stored, dict) else None


def statement_of(entry: Object, kind: type[S]) -> S:
    """The statement that made the object, which must be of this class."""
    found = stored_statement(entry)
    if not isinstance(found, kind):
        raise InternalError(f'{entry.kind} "{entry.name}" was not made by {kind.__name__}')
    return found


def search_path_of(entry: Object) -> SearchPath:
    """By which the names in the object's statement are found."""
    entries = cast("list[list[str]]", entry.purified_json().get(SEARCH_PATH) or [])
    return SearchPath(tuple((database, schema) for database, schema in entries)) if entries else DEFAULT_PATH


def respelled_text(entry: Object, statement: Statement, path: SearchPath) -> str:
    """What is stored when the statement only calls things by other names: it keeps the mark of what it was."""
    facts = facts_of(entry)
    if SEARCH_PATH in facts:
        facts[SEARCH_PATH] = path.entries
    return purified_text(statement, {**facts, MARK: definition_mark(entry)})


def definition_mark(entry: Object) -> str:
    """The same as long as the statement means the same, whatever the things that it names are called."""
    return _mark(entry.purified)


@lru_cache(maxsize=4096)
def _mark(purified: str) -> str:
    stored = json.loads(purified)
    mark = stored.get(MARK) if isinstance(stored, dict) else None
    return str(mark) if mark is not None else hashlib.sha256(purified.encode()).hexdigest()

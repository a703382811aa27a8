"""A script as desired state: which of its objects exist, which must be created, which can be changed.

Only the statements that have something to do are planned: those whose object exists as they describe it are left out,
`CREATE VIEW` with another query becomes `CREATE OR REPLACE VIEW`, `CREATE SECRET` with another value `ALTER SECRET`.
They are planned as a whole and run like any other script. Objects that the script does not name are left alone, and a
second run has nothing to do.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

from headgate.catalog.catalog import Catalog
from headgate.catalog.errors import CatalogError, UnknownObject
from headgate.catalog.names import (
    DEFAULT_PATH,
    SearchPath,
    owned_column,
    resolve_fields,
    resolve_owner,
    search_path,
)
from headgate.catalog.objects import Column, Comment, DesiredTaskState, Object
from headgate.catalog.secrets import EncryptedSecret, FromEnvironment, FromFile, Secret
from headgate.errors import HeadgateError
from headgate.plan.errors import NotDesiredState, ObjectDiffers
from headgate.plan.relations import analyse_query, resolved_query
from headgate.resolve.definitions import differences, with_current_names
from headgate.resolve.statements import find_object, named_object, resolve_names
from headgate.schema.names import print_name
from headgate.sql import connections
from headgate.sql.objects import ChangeTaskState, CommentOn
from headgate.sql.queries import SetSearchPath
from headgate.sql.script import parse_script
from headgate.sql.sources import AcceptSchemaChange
from headgate.sql.statement import Create, Kind, ObjectName, Statement
from headgate.sql.views import CreateView
from headgate.text.cursor import Identifier

Action: TypeAlias = Literal["create", "change", "keep"]
Reveal: TypeAlias = Callable[[Catalog, Object], Secret]


@dataclass(frozen=True, slots=True)
class ScriptItem:
    """One statement of the script: the object that it is about, what must be done for it, and why."""

    name: str
    kind: str
    action: Action
    detail: str = ""


@dataclass(frozen=True, slots=True)
class DesiredState:
    """The items of a script in order, and the statements that make them true. Spans are those of the script."""

    items: tuple[ScriptItem, ...]
    statements: tuple[Statement, ...]


def desired_state(catalog: Catalog, text: str, reveal: Reveal) -> DesiredState:
    """Compare the script with the catalog. Raises ObjectDiffers if an object exists with another definition and cannot be
    altered, NotDesiredState for statements such as DROP or INSERT."""
    items: list[ScriptItem] = []
    statements: list[Statement] = []
    comparison = _Comparison(catalog, reveal)
    for statement in parse_script(text):
        item = comparison.item(statement)
        if item is not None:
            items.append(item)
        if item is None or item.action != "keep":
            changes = item is not None and item.action == "change"
            statements.append(_changing(statement) if changes else statement)
    return DesiredState(tuple(items), tuple(statements))


def _changing(statement: Statement) -> Statement:
    """The statement that changes an existing object to what this one describes."""
    match statement:
        case CreateView():
            return replace(statement, or_replace=True)
        case connections.CreateSecret():
            return connections.AlterSecret(Kind.SECRET, statement.name, statement.value, span=statement.span)
        case _:
            return statement


class _Comparison:
    """Compares the statements of a script in order. ``path`` is the search path of the next one."""

    def __init__(self, catalog: Catalog, reveal: Reveal) -> None:
        self.catalog = catalog
        self.path = DEFAULT_PATH
        self._reveal = reveal

    def item(self, statement: Statement) -> ScriptItem | None:
        """None for SET search_path."""
        match statement:
            case SetSearchPath():
                self.path = self._set(statement)
                return None
            case CommentOn():
                return self._comment(statement)
            case ChangeTaskState():
                return self._task_state(statement)
            case AcceptSchemaChange():
                return ScriptItem(_shown(statement.name), statement.kind.value, "change", "accept schema change")
            case Create():
                return self._object(statement)
            case _:
                raise NotDesiredState(statement.words).at(statement.span)

    def _set(self, statement: SetSearchPath) -> SearchPath:
        try:
            return search_path(self.catalog, self.path, statement.path)
        except UnknownObject:  # a schema that the script itself makes, so nothing is in it yet
            database = self.path.databases()[0]
            names = [tuple(part.name for part in name.parts) for name in statement.path]
            return SearchPath(tuple((name[0] if len(name) > 1 else database, name[-1]) for name in names))

    # objects

    def _object(self, statement: Create) -> ScriptItem:
        kind, name = statement.kind, statement.name
        existing = self._existing(kind, name)
        if existing is None:
            return ScriptItem(self._new_name(kind, name), kind.value, "create")
        action, detail = self._action(statement, existing)
        return ScriptItem(self.catalog.display_name(existing.id), kind.value, action, detail)

    def _action(self, statement: Create, existing: Object) -> tuple[Action, str]:
        if isinstance(statement, connections.CreateSecret):
            same = self._is_secret(existing, statement.value)
            return ("keep", "") if same else ("change", "another value")
        parts = self._differences(statement, existing)
        if not parts:
            return "keep", ""
        if statement.if_not_exists:
            return "keep", f"differs in {', '.join(parts)}, and is left as it is because of IF NOT EXISTS"
        if isinstance(statement, CreateView):
            return "change", f"another {' and '.join(parts)}"
        raise ObjectDiffers(existing.kind.value, self.catalog.display_name(existing.id), parts).at(statement.span)

    def _differences(self, statement: Create, existing: Object) -> tuple[str, ...]:
        found = existing.definition
        if found is None:
            return ()
        wanted = resolve_names(statement, self.catalog, self.path, must_exist=False)
        if isinstance(found, CreateView) and isinstance(wanted, CreateView):
            try:
                analysed = analyse_query(self.catalog, self.path, wanted.query)
            except HeadgateError:  # it means nothing now, so only the texts can be compared
                found = with_current_names(self.catalog, existing, found)
            else:
                query = resolved_query(self.catalog, self.path, wanted.query, analysed)
                wanted = replace(wanted, query=query)
        return differences(found, wanted)

    def _is_secret(self, existing: Object, wanted: connections.SecretValue) -> bool:
        source = self.catalog.secrets.get(existing.id)
        match wanted:
            case connections.SecretFromEnv(variable):
                return source == FromEnvironment(variable)
            case connections.SecretFromFile(path):
                return source == FromFile(path)
            case connections.SecretText(text):
                try:
                    return isinstance(source, EncryptedSecret) and self._reveal(self.catalog, existing) == Secret(text)
                except CatalogError:  # its key is lost: the script has the value still
                    return False

    def _new_name(self, kind: Kind, name: ObjectName) -> str:
        """With the schema that it will be in, where that is not the one of every project."""
        here = self.path.entries[0]
        if len(name.parts) > 1 or kind in (Kind.DATABASE, Kind.SCHEMA) or here == DEFAULT_PATH.entries[0]:
            return _shown(name)
        return print_name((here[1], name.parts[0].name))

    def _existing(self, kind: Kind, name: ObjectName) -> Object | None:
        """The object of the name where the statement would make it: in the first schema of the search path."""
        above = kind in (Kind.DATABASE, Kind.SCHEMA)
        path = self.path if above else SearchPath(self.path.entries[:1])
        return find_object(self.catalog, path, kind, name)

    # what is said of objects

    def _comment(self, statement: CommentOn) -> ScriptItem:
        action: Action = "change"
        current = self._current_comment(statement)
        if current is not None and current.explicit == statement.comment:
            action = "keep" if statement.comment is not None or current.suppressed else "change"
        kind = f"comment on {statement.kind or 'column'}"
        return ScriptItem(_shown(statement.name), kind, action)

    def _current_comment(self, statement: CommentOn) -> Comment | None:
        """None if there is nothing yet to comment on."""
        try:
            if statement.kind is None:
                owner = resolve_owner(self.catalog, self.path, statement.name)
                column = owned_column(self.catalog, owner, statement.name)
                return _field_comment(column, statement.fields) if statement.fields else column.comment
            found = self._named(statement.kind, statement.name)
        except CatalogError:
            return None
        return found.comment

    def _task_state(self, statement: ChangeTaskState) -> ScriptItem:
        wanted = DesiredTaskState.PAUSED if statement.action == "PAUSE" else DesiredTaskState.RUNNING
        action: Action = "change"
        try:
            found = self._named(statement.kind, statement.name)
            wanted_now = self.catalog.desired.get(found.id)
        except CatalogError:
            wanted_now = None
        if statement.binding is None and wanted_now is wanted:
            action = "keep"
        return ScriptItem(_shown(statement.name), statement.kind.value, action, statement.action.lower())

    def _named(self, kind: Kind, name: ObjectName) -> Object:
        return named_object(self.catalog, self.path, kind, name)


def _field_comment(column: Column, fields: Sequence[Identifier]) -> Comment | None:
    path = resolve_fields(column, fields)
    said = next((known for known in column.fields if known.path == path), None)
    return None if said is None else Comment(said.text, suppressed=said.text is None)


def _shown(name: ObjectName) -> str:
    return print_name(tuple(part.name for part in name.parts))

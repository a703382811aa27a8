"""A script as desired state: what of it is there already, what must be made, what can be changed.

The script is rewritten to one that does only what is missing: statements whose object is there as they describe it
are blanked out, `CREATE VIEW` with another query becomes `CREATE OR REPLACE VIEW`, `CREATE SECRET` with another value
`ALTER SECRET`. That script is then planned as a whole and done like any other. Objects that the script does not name
are left alone, and a second run has nothing to do.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, TypeAlias

from headgate.catalog.catalog import Catalog
from headgate.catalog.definitions import search_path_of, stored_statement
from headgate.catalog.errors import CatalogError, UnknownObject
from headgate.catalog.names import DEFAULT_PATH, SearchPath, resolve, resolve_column_of, search_path
from headgate.catalog.objects import RELATIONS, Comment, DesiredTaskState, Object
from headgate.catalog.secrets import EncryptedSecret, FromEnvironment, FromFile, Secret
from headgate.control.likeness import differences
from headgate.errors import HeadgateError, Span
from headgate.plan.errors import NotDesiredState, ObjectDiffers
from headgate.plan.statements import CREATED, find_object, named_object
from headgate.schema.names import print_name
from headgate.sql.connections import CreateSecret, SecretFromEnv, SecretFromFile, SecretText, SecretValue
from headgate.sql.objects import ChangeTaskState, CommentOn
from headgate.sql.queries import SetSearchPath
from headgate.sql.script import parse_script
from headgate.sql.sinks import CreateSink
from headgate.sql.statement import Kind, ObjectName, Statement
from headgate.sql.views import CreateView
from headgate.text.cursor import Identifier

Action: TypeAlias = Literal["create", "change", "keep"]
Reveal: TypeAlias = Callable[[Catalog, Object], Secret]

OR_REPLACE = " OR REPLACE"


@dataclass(frozen=True, slots=True)
class Wish:
    """One statement of the script: the object that it speaks of, what is to be done for it, and why."""

    name: str
    kind: str
    action: Action
    span: Span
    detail: str = ""


@dataclass(frozen=True, slots=True)
class DesiredState:
    """The wishes of a script in order, and the script that makes them true. ``inserted`` tells where it is longer than
    the one that was written."""

    wishes: tuple[Wish, ...]
    script: str
    inserted: tuple[int, ...] = ()

    def written(self, span: Span) -> Span:
        """The place in the script as it was written."""
        return Span(self._written(span.start), self._written(span.end))

    def placed(self, error: HeadgateError) -> HeadgateError:
        """The error, found in ``script``, pointing at the script as it was written."""
        if error.span is not None:
            error.span = self.written(error.span)
        return error

    def _written(self, offset: int) -> int:
        longer = 0
        for at in self.inserted:
            if offset >= at + longer + len(OR_REPLACE):
                longer += len(OR_REPLACE)
            elif offset > at + longer:
                return at
        return offset - longer


def desired(catalog: Catalog, text: str, reveal: Reveal) -> DesiredState:
    """What the script asks for beyond what the catalog holds. Raises ObjectDiffers where no statement leads there, and
    NotDesiredState for a statement that only does something."""
    parts: list[str] = []
    wishes: list[Wish] = []
    inserted: list[int] = []
    end = 0
    comparing = _Comparing(catalog, reveal)
    for statement in parse_script(text):
        wish = comparing.wish(statement)
        start = statement.span.start
        kept = text[start : statement.span.end]
        if wish is not None:
            wishes.append(wish)
            kept = _rewritten(statement, wish.action, kept)
            if len(kept) > statement.span.end - start:
                inserted.append(start + len("CREATE"))
        parts += [text[end:start], kept]
        end = statement.span.end
    return DesiredState(tuple(wishes), "".join([*parts, text[end:]]), tuple(inserted))


def _rewritten(statement: Statement, action: Action, text: str) -> str:
    """The statement that does what is to be done; places stay, but for OR REPLACE."""
    if action == "keep":
        return "".join(c if c == "\n" else " " for c in text)
    word, rest = text[: len("CREATE")], text[len("CREATE") :]
    match statement:
        case CreateView(or_replace=False) if action == "change":
            return word + OR_REPLACE + rest
        case CreateSecret() if action == "change":
            return "ALTER " + rest
        case _:
            return text


class _Comparing:
    """Goes through a script's statements; ``path`` is the search path at each."""

    def __init__(self, catalog: Catalog, reveal: Reveal) -> None:
        self.catalog = catalog
        self.path = DEFAULT_PATH
        self._reveal = reveal

    def wish(self, statement: Statement) -> Wish | None:
        """None for what only sets the stage."""
        match statement:
            case SetSearchPath():
                self.path = self._set(statement)
                return None
            case CommentOn():
                return self._comment(statement)
            case ChangeTaskState():
                return self._task_state(statement)
            case _ if type(statement).__name__.startswith("Create"):
                return self._object(statement)
            case _:
                raise NotDesiredState(_spoken(statement)).at(statement.span)

    def _set(self, statement: SetSearchPath) -> SearchPath:
        try:
            return search_path(self.catalog, self.path, statement.path)
        except UnknownObject:  # a schema that the script itself makes, so nothing is in it yet
            database = self.path.databases()[0]
            names = [tuple(part.name for part in name.parts) for name in statement.path]
            return SearchPath(tuple((name[0] if len(name) > 1 else database, name[-1]) for name in names))

    # objects

    def _object(self, statement: Statement) -> Wish:
        kind = CREATED.get(type(statement))
        if kind is None:
            return Wish(_spoken(statement), "object", "create", statement.span)
        name = self._name(statement)
        there = self._there(kind, name)
        if there is None:
            return Wish(self._new_name(kind, name), kind.value, "create", statement.span)
        action, detail = self._action(statement, there)
        return Wish(self.catalog.shown(there.id), kind.value, action, statement.span, detail)

    def _action(self, statement: Statement, there: Object) -> tuple[Action, str]:
        if isinstance(statement, CreateSecret):
            same = self._is_secret(there, statement.value)
            return ("keep", "") if same else ("change", "another value")
        parts = self._differences(statement, there)
        if not parts:
            return "keep", ""
        if getattr(statement, "if_not_exists", False):
            return "keep", f"differs in {', '.join(parts)}, and is left as it is because of IF NOT EXISTS"
        if isinstance(statement, CreateView):
            return "change", f"another {' and '.join(parts)}"
        raise ObjectDiffers(there.kind.value, self.catalog.shown(there.id), parts).at(statement.span)

    def _differences(self, statement: Statement, there: Object) -> tuple[str, ...]:
        found, path = stored_statement(there), search_path_of(there)
        if found is None:
            return ()
        parts = differences(found, path, statement, self.path, self.catalog)
        moved = there.kind is Kind.VIEW and path != self.path
        return (*parts, "search path") if moved else parts

    def _is_secret(self, there: Object, wanted: SecretValue) -> bool:
        source = self.catalog.secrets.get(there.id)
        match wanted:
            case SecretFromEnv(variable):
                return source == FromEnvironment(variable)
            case SecretFromFile(path):
                return source == FromFile(path)
            case SecretText(text):
                try:
                    return isinstance(source, EncryptedSecret) and self._reveal(
                        self.catalog, there
                    ) == Secret(text)
                except CatalogError:  # its key is lost: the script has the value still
                    return False

    def _name(self, statement: Statement) -> ObjectName:
        name = getattr(statement, "name", None)
        if isinstance(name, ObjectName):
            return name
        assert isinstance(statement, CreateSink)  # which is called after its relation where it has no name
        *above, last = statement.relation.parts
        try:
            exact = resolve(self.catalog, self.path, statement.relation, *sorted(RELATIONS)).name
        except CatalogError:
            exact = last.name
        return ObjectName((*above, Identifier(f"{exact}_sink", quoted=True)))

    def _new_name(self, kind: Kind, name: ObjectName) -> str:
        """With the schema that it will be in, where that is not the one of every project."""
        here = self.path.entries[0]
        if len(name.parts) > 1 or kind in (Kind.DATABASE, Kind.SCHEMA) or here == DEFAULT_PATH.entries[0]:
            return _shown(name)
        return print_name((here[1], name.parts[0].name))

    def _there(self, kind: Kind, name: ObjectName) -> Object | None:
        """The object of the name where the statement would make it: in the first schema of the search path."""
        above = kind in (Kind.DATABASE, Kind.SCHEMA)
        path = self.path if above else SearchPath(self.path.entries[:1])
        return find_object(self.catalog, path, kind, name)

    # what is said of objects

    def _comment(self, statement: CommentOn) -> Wish:
        action: Action = "change"
        said = self._said(statement)
        if said is not None and said.explicit == statement.comment:
            action = "keep" if statement.comment is not None or said.suppressed else "change"
        kind = f"comment on {statement.kind or 'column'}"
        return Wish(_shown(statement.name), kind, action, statement.span)

    def _said(self, statement: CommentOn) -> Comment | None:
        """None if there is nothing yet to comment on."""
        try:
            if statement.kind is None:
                return resolve_column_of(self.catalog, self.path, statement.name)[1].comment
            found = self._named(statement.kind, statement.name)
        except CatalogError:
            return None
        return found.comment

    def _task_state(self, statement: ChangeTaskState) -> Wish:
        wanted = DesiredTaskState.PAUSED if statement.action == "PAUSE" else DesiredTaskState.RUNNING
        action: Action = "change"
        try:
            found = self._named(statement.kind, statement.name)
            told = self.catalog.desired.get(found.id)
        except CatalogError:
            told = None
        if statement.binding is None and told is wanted:
            action = "keep"
        return Wish(
            _shown(statement.name), statement.kind.value, action, statement.span, statement.action.lower()
        )

    def _named(self, kind: Kind, name: ObjectName) -> Object:
        return named_object(self.catalog, self.path, kind, name)


def _shown(name: ObjectName) -> str:
    return print_name(tuple(part.name for part in name.parts))


def _spoken(statement: Statement) -> str:
    """The statement by its class, in the words of SQL: `DropObject` is DROP."""
    name = type(statement).__name__
    first = "".join(f" {c}" if c.isupper() else c.upper() for c in name).split()
    return " ".join(first[:1] if first[0] != "CREATE" else first)

"""ALTER … RENAME TO: the object gets its name, and whatever names it is written anew. Nothing else changes: whoever
uses the object uses it by id, and goes on."""

from __future__ import annotations

from collections.abc import Iterator

from headgate.catalog.apply import apply
from headgate.catalog.catalog import Catalog
from headgate.catalog.changes import Change, ObjectRenamed, StatementRespelled
from headgate.catalog.definitions import respelled_text, search_path_of, stored_statement
from headgate.catalog.errors import AlreadyExists
from headgate.catalog.objects import Object
from headgate.plan.errors import NameShadowed
from headgate.plan.respell import respell
from headgate.plan.respell_query import Captured
from headgate.plan.spelling import Spelling, renamed_path
from headgate.sql.statement import Kind, print_statement
from headgate.text.cursor import Identifier


def rename(catalog: Catalog, target: Object, new: Identifier) -> tuple[Change, ...]:
    """The changes: the name, and the statement of everything that would not find by its old name what it uses."""
    _check_free(catalog, target, new)
    renamed = ObjectRenamed(target.id, new.name)
    after = apply(catalog, renamed)
    respelled = [
        _respelled(catalog, after, user, target, new.name) for user in _touched(catalog, target, new.name)
    ]
    return (renamed, *(change for change in respelled if change is not None))


def _check_free(catalog: Catalog, target: Object, new: Identifier) -> None:
    """A name without quotes is taken if it finds something already, whatever the case: as when it is created."""
    if new.quoted:
        return
    for other in catalog.same_folded(target.parent, target.namespace, new.name):
        if other.id != target.id:
            raise AlreadyExists(other.kind, new.name, other.name)


def _respelled(
    before: Catalog, after: Catalog, user: Object, target: Object, name: str
) -> StatementRespelled | None:
    written = stored_statement(user)
    if written is None:
        return None
    path = search_path_of(user)  # only a view has one of its own, which goes along with its schemas
    path_after = renamed_path(before, after, path) if user.kind is Kind.VIEW else path
    spelling = Spelling(before, after, path, path_after)
    try:
        statement = respell(written, spelling)
    except Captured:
        raise NameShadowed(
            target.kind, before.shown(target.id), name, user.kind, before.shown(user.id)
        ) from None
    if statement is written and spelling.path_after == spelling.path:
        return None
    return StatementRespelled(
        user.id, print_statement(statement), respelled_text(user, statement, spelling.path_after)
    )


def _touched(catalog: Catalog, target: Object, name: str) -> Iterator[Object]:
    """Objects whose statements may have to be written anew: users of what is renamed, whatever is looked for in a
    schema that is, and whatever writes the old name or the new one, which may come to mean something else."""
    renamed = {target.id, *_below(catalog, target)}
    users = {user for id_ in renamed for user in catalog.users.get(id_, ())}
    for entry in catalog.objects.values():
        if entry.id in users or any(_may_write(entry, word) for word in (target.name, name)):
            yield entry


def _may_write(entry: Object, name: str) -> bool:
    if not name.isascii() or '"' in name or "\\" in name:  # which is stored in more than one way
        return True
    return name.lower() in entry.purified.lower()


def _below(catalog: Catalog, target: Object) -> Iterator[int]:
    if target.kind in (Kind.DATABASE, Kind.SCHEMA):
        for child in catalog.children(target.id):
            yield child.id
            yield from _below(catalog, child)

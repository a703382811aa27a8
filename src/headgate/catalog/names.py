"""Find the object that a name means, by the search path and the rules of case.

A name has one to three parts: `object`, `schema.object`, `database.schema.object`. One part is looked for in each
schema of the search path in turn, two in the databases of the search path. Each part follows the rule of
`headgate.schema.names`: without quotes any case matches if there is one candidate, in quotes only the exact name matches.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from headgate.catalog import errors
from headgate.catalog.catalog import DEFAULT_DATABASE, DEFAULT_SCHEMA, SYSTEM_SCHEMAS, Catalog, fold
from headgate.catalog.errors import CatalogError, UnknownObject, WrongKind
from headgate.catalog.graph import without_aliases
from headgate.catalog.objects import ROOT, Column, Namespace, Object, namespace_of
from headgate.errors import Span, if_few, similar_names
from headgate.schema.names import Ambiguous, Found, NotFound, find as find_name, force_quotes, print_name
from headgate.schema.parse import SPELLINGS
from headgate.schema.types import Array, Map, Named, Record
from headgate.sql.statement import NO_SPAN, RELATIONS, Kind, ObjectName
from headgate.text.cursor import Identifier

Name = Sequence[Identifier]


@dataclass(frozen=True, slots=True)
class SearchPath:
    """Schemas by exact database and name, in the order in which they are searched. New objects go into the first."""

    entries: tuple[tuple[str, str], ...] = ((DEFAULT_DATABASE, DEFAULT_SCHEMA),)

    def databases(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(database for database, _ in self.entries)) or (DEFAULT_DATABASE,)


DEFAULT_PATH = SearchPath()


def resolve(catalog: Catalog, path: SearchPath, name: ObjectName, *kinds: Kind) -> Object:
    """The object that the name means. It must be of one of the kinds, if any are given. Raises if there is none."""
    with _at(name):
        schemas = list(_schemas(catalog, path, name.parts, must_exist=True))
        found = _find_in(catalog, schemas, name.parts, kinds)
        if found is not None:
            return found
        other = _find_in(catalog, schemas, name.parts, ())
        if other is not None:
            raise WrongKind(catalog.display_name(other.id), other.kind, tuple(k.value for k in kinds))
        raise UnknownObject(_kind_word(kinds), str(name), _similar(catalog, schemas, name.parts[-1], kinds))


def find(catalog: Catalog, path: SearchPath, name: ObjectName, *kinds: Kind) -> Object | None:
    """Like `resolve`, but returns None if no object of these kinds has the name. It is for IF EXISTS."""
    with _at(name):
        return _find_in(catalog, _schemas(catalog, path, name.parts, must_exist=False), name.parts, kinds)


def resolve_schema(catalog: Catalog, path: SearchPath, name: ObjectName) -> Object:
    """A schema named by `schema` or `database.schema`."""
    with _at(name):
        return _schema(catalog, path, name.parts)


def resolve_database(catalog: Catalog, name: ObjectName) -> Object:
    with _at(name):
        return _database(catalog, name.parts)


def search_path(catalog: Catalog, path: SearchPath, names: Iterable[ObjectName]) -> SearchPath:
    """The search path that SET search_path sets. No names mean the default. Every schema must exist."""
    entries = []
    for name in names:
        if len(name.parts) == 1 and fold(name.parts[0].name) in SYSTEM_SCHEMAS:
            entries.append((path.databases()[0], fold(name.parts[0].name)))
        else:
            schema = resolve_schema(catalog, path, name)
            entries.append((catalog.get(schema.parent).name, schema.name))
    return SearchPath(tuple(entries)) if entries else DEFAULT_PATH


def resolve_owner(catalog: Catalog, path: SearchPath, name: ObjectName) -> Object:
    """The object in ``object.column``, as in COMMENT ON COLUMN."""
    return resolve(catalog, path, ObjectName(name.parts[:-1], span=name.span))


def owned_column(catalog: Catalog, owner: Object, name: ObjectName) -> Column:
    """The column in ``object.column``."""
    with _at(name):
        return resolve_column(catalog, owner, name.parts[-1])


def resolve_column(catalog: Catalog, relation: Object, column: Identifier) -> Column:
    """The column of a relation or record type that the identifier means."""
    if not relation.columns:
        raise errors.NoColumns(relation.kind, catalog.display_name(relation.id))
    match find_name(column.name, column.quoted, (c.name for c in relation.columns)):
        case Found(name):
            return next(c for c in relation.columns if c.name == name)
        case Ambiguous(candidates):
            quoted = tuple(force_quotes(c) for c in candidates)
            raise errors.AmbiguousColumn(column.name, relation.kind, catalog.display_name(relation.id), quoted)
        case NotFound() as missing:
            columns = if_few(c.name for c in relation.columns)
            shown = catalog.display_name(relation.id)
            raise errors.UnknownColumn(column.name, relation.kind, shown, missing.similar, columns=columns)


def resolve_fields(catalog: Catalog, column: Column, fields: Sequence[Identifier]) -> tuple[str, ...]:
    """The names of the fields that ``(object.column).field`` means. Fields of a named record are columns of that type."""
    path: list[str] = []
    type_ = without_aliases(catalog, column.type)
    for field in fields:
        while isinstance(type_, Array | Map):
            type_ = type_.element if isinstance(type_, Array) else type_.value
        shown = print_name((column.name, *path))
        if isinstance(type_, Named):
            raise errors.UnknownField(field.name, shown, type=print_name(type_.parts))
        known = {inner.name: inner.type for inner in type_.fields} if isinstance(type_, Record) else {}
        match find_name(field.name, field.quoted, known):
            case Found(name):
                path.append(name)
                type_ = known[name]
            case Ambiguous(candidates):
                raise errors.UnknownField(field.name, shown, tuple(force_quotes(c) for c in candidates))
            case NotFound() as missing:
                raise errors.UnknownField(field.name, shown, missing.similar)
    return tuple(path)


def parent_and_name(catalog: Catalog, path: SearchPath, name: ObjectName, kind: Kind) -> tuple[int, str]:
    """The parent and the exact name of a new object. Raises if its schema does not exist or the name is taken.

    A name without quotes is taken if it finds an object of that namespace in the schema in any case, because it already
    means that object. A name in quotes is taken only by an object of exactly that name.
    """
    with _at(name):
        parent, new = _parent(catalog, path, name.parts, kind), name.parts[-1]
        if kind is Kind.SCHEMA and fold(new.name) in SYSTEM_SCHEMAS:
            raise errors.ReservedName(kind, new.name)
        same = catalog.find_any_case(parent, namespace_of(kind), new.name)
        taken = [o for o in same if o.name == new.name] or ([] if new.quoted else same)
        if taken:
            raise errors.AlreadyExists(taken[0].kind, new.name, taken[0].name)
        return parent, new.name


def _parent(catalog: Catalog, path: SearchPath, name: Name, kind: Kind) -> int:
    if kind is Kind.DATABASE:
        _check_parts(name, most=1)
        return ROOT
    if kind is Kind.SCHEMA:
        _check_parts(name, most=2)
        return _database(catalog, name[:1] if len(name) == 2 else _quoted(path.databases()[:1])).id
    _check_parts(name, most=3)
    if len(name) == 1:
        first = path.entries[0] if path.entries else DEFAULT_PATH.entries[0]
        return _schema(catalog, path, _quoted(first)).id
    if fold(name[-2].name) in SYSTEM_SCHEMAS:
        raise errors.ReservedName("schema", name[-2].name)
    return _schema(catalog, path, name[:-1]).id


def _schema(catalog: Catalog, path: SearchPath, name: Name) -> Object:
    _check_parts(name, most=2)
    databases = [_database(catalog, name[:1])] if len(name) == 2 else _databases(catalog, path)
    for database in databases:
        found = _match_case(catalog, catalog.find_any_case(database.id, Namespace.SCHEMA, name[-1].name), name[-1])
        if found is not None:
            return found
    known = (o.name for database in databases for o in catalog.children(database.id))
    raise UnknownObject("schema", _text(name), similar_names(name[-1].name, known))


def _database(catalog: Catalog, name: Name) -> Object:
    _check_parts(name, most=1)
    found = _match_case(catalog, catalog.find_any_case(ROOT, Namespace.DATABASE, name[0].name), name[0])
    if found is None:
        known = (o.name for o in catalog.children(ROOT))
        raise UnknownObject("database", name[0].name, similar_names(name[0].name, known))
    return found


def _schemas(catalog: Catalog, path: SearchPath, name: Name, *, must_exist: bool) -> Iterator[Object]:
    """The schemas to search. Entries of the search path that do not exist are skipped."""
    _check_parts(name, most=3)
    if len(name) == 1:
        for database, schema in path.entries:
            above = catalog.find_exact(ROOT, Namespace.DATABASE, database)
            found = above and catalog.find_exact(above.id, Namespace.SCHEMA, schema)
            if found:
                yield found
        return
    try:
        yield _schema(catalog, path, name[:-1])
    except UnknownObject:
        if must_exist:
            raise


def _find_in(catalog: Catalog, schemas: Iterable[Object], name: Name, kinds: Sequence[Kind]) -> Object | None:
    """The object in the first schema that has the name. Raises WrongKind if that object is of another kind."""
    namespaces = tuple(dict.fromkeys(namespace_of(k) for k in kinds)) or tuple(Namespace)
    for schema in schemas:
        same = (catalog.find_any_case(schema.id, namespace, name[-1].name) for namespace in namespaces)
        found = [o for o in (_match_case(catalog, candidates, name[-1]) for candidates in same) if o is not None]
        fitting = [o for o in found if not kinds or o.kind in kinds]
        if fitting:
            return fitting[0]
        if found:
            raise WrongKind(catalog.display_name(found[0].id), found[0].kind, tuple(k.value for k in kinds))
    return None


def _match_case(catalog: Catalog, same: Sequence[Object], written: Identifier) -> Object | None:
    if not same:
        return None
    match find_name(written.name, written.quoted, (o.name for o in same)):
        case Found(name):
            return next(o for o in same if o.name == name)
        case Ambiguous():
            raise errors.AmbiguousName(written.name, tuple(_quoted_name(catalog, o) for o in same))
        case NotFound():
            return None


def _databases(catalog: Catalog, path: SearchPath) -> list[Object]:
    found = (catalog.find_exact(ROOT, Namespace.DATABASE, database) for database in path.databases())
    return [database for database in found if database is not None]


def _similar(
    catalog: Catalog, schemas: Sequence[Object], written: Identifier, kinds: Sequence[Kind]
) -> tuple[str, ...]:
    """Similar names in the schemas that were searched, otherwise the same name in other schemas. A type may be a built-in one."""
    ids, wanted = {s.id for s in schemas}, kinds or tuple(Kind)
    built_in = SPELLINGS if wanted == (Kind.TYPE,) else ()
    near = similar_names(written.name, (*built_in, *(o.name for o in catalog.of_kind(*wanted) if o.parent in ids)))
    if near:
        return near
    elsewhere = (o for o in catalog.of_kind(*wanted) if fold(o.name) == fold(written.name))
    return tuple(catalog.display_name(o.id) for o in elsewhere)[:3]


def _quoted_name(catalog: Catalog, candidate: Object) -> str:
    """The candidate's name, its last part in quotes, so that it can be copied into the statement."""
    above = catalog.display_name(candidate.id)
    bare = print_name((candidate.name,))
    return above[: len(above) - len(bare)] + force_quotes(candidate.name)


def _kind_word(kinds: Sequence[Kind]) -> str:
    if len(kinds) == 1:
        return kinds[0].value
    return "relation" if kinds and all(k in RELATIONS for k in kinds) else "object"


def _quoted(names: Iterable[str]) -> list[Identifier]:
    return [Identifier(name, quoted=True) for name in names]


@contextmanager
def _at(name: ObjectName) -> Iterator[None]:
    """Give errors that are raised inside the span of the name."""
    try:
        yield
    except CatalogError as error:
        error.at(span_of(name))
        raise


def span_of(name: ObjectName) -> Span | None:
    """The span of a name in the statement; None for a name that was not written by a user."""
    return None if name.span == NO_SPAN else name.span


def type_name(named: Named) -> ObjectName:
    """The name of a type as it stands in a statement."""
    parts = tuple(map(Identifier, named.parts, named.quoted or (False,) * len(named.parts)))
    return ObjectName(parts, span=named.span or NO_SPAN)


def _text(name: Name) -> str:
    return ".".join(part.name for part in name)


def _check_parts(name: Name, most: int) -> None:
    if len(name) > most:
        raise errors.NameTooLong(_text(name), most)


def is_name_of(written: ObjectName, shown: str) -> bool:
    """Whether a name in a statement means the object that is shown by this name. Only quoted names mind the case."""
    quoted = any(part.quoted for part in written.parts)
    return str(written) == shown if quoted else fold(str(written)) == fold(shown)

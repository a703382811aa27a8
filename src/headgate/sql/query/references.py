"""Names in expressions: columns, fields of records, and how Spark is told which one is meant."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from headgate.errors import HeadgateError, Span, similar_names
from headgate.schema.names import Ambiguous, Found, find
from headgate.schema.render import print_type
from headgate.schema.types import Record
from headgate.sql.query.errors import AmbiguousColumn, NotARecord, UnknownField, UnsupportedQuery
from headgate.sql.query.normalise import FUNCTION_MARK
from headgate.sql.query.relation import Column, Mention, NamePart
from headgate.sql.query.scope import Scope, Source, qualified
from headgate.sql.query.typing import UNKNOWN, Typed
from headgate.sql.query.visitor import Visitor, call


def identifier(name: str) -> exp.Identifier:
    return exp.to_identifier(name, quoted=True)


def name_part(node: exp.Expr) -> NamePart:
    """A name as it was written. One that stood before a parenthesis got a function's mark; here it is none."""
    return NamePart(node.name.removeprefix(FUNCTION_MARK), bool(node.args.get("quoted")))


def reference(source: Source | None, column: Column) -> exp.Expr:
    """The column as Spark finds it: exact and qualified; one that USING merged is the first side that is not NULL."""
    if source is None:
        return exp.column(identifier(column.name))
    owners = source.merges.get(column.name, (source.alias,))
    sides = [exp.column(identifier(column.name), table=identifier(owner)) for owner in owners]
    return sides[0] if len(sides) == 1 else call("coalesce", *sides)


def resolve(parts: list[NamePart], scope: Scope) -> tuple[Source | None, Column, list[NamePart]]:
    """alias.column[.field ..] if there is such an alias, otherwise column[.field ..]."""
    owner = scope.owner(parts)
    if owner is not None:
        source, used = owner
        return source, qualified(source, parts[used]), parts[used + 1 :]
    found = scope.column(parts[0])
    if found is None:
        raise scope.missing(parts[0].name) if len(parts) == 1 else scope.missing_alias(parts[0].name)
    return found[0], found[1], parts[1:]


def column(visitor: Visitor, node: exp.Column, scope: Scope) -> Typed:
    if isinstance(node.this, exp.Star):
        raise UnsupportedQuery("x.* inside an expression", "Name the columns.")
    parts = [name_part(part) for part in node.parts]
    source, found, fields = resolve(parts, scope)
    mention_owner(visitor, node, scope.owner(parts))
    typed = Typed(found.type, found.nullable, found.null)
    replaced = reference(source, found)
    if isinstance(replaced, exp.Column):  # for errors that are found later
        replaced.this.meta.update(node.parts[-1].meta)
    for part in fields:
        field, typed = take_field(part, typed)
        replaced = exp.Dot(this=replaced, expression=identifier(field))
    node.replace(replaced)
    return typed


def mention_owner(visitor: Visitor, node: exp.Column, owner: tuple[Source, int] | None) -> None:
    """Write down that the first parts of a dotted name are a relation's, if they are no alias."""
    if owner is None or owner[0].mention is None:
        return
    (source, used), parts = owner, node.parts
    span = written_span(visitor, parts[:used])
    if span is not None and source.mention is not None:
        names = tuple(name_part(part) for part in parts[:used])
        visitor.mentions[span.start] = Mention(span, names, source.mention.relation, of=source.mention.span)


def written_span(visitor: Visitor, parts: Sequence[exp.Expr]) -> Span | None:
    """From the first to the last part of a name; None if the name was not written."""
    spans = [visitor.span(part) for part in parts]
    first, last = spans[0], spans[-1]
    return Span(first.start, last.end) if first is not None and last is not None else None


def dot(visitor: Visitor, node: exp.Dot, scope: Scope) -> Typed:
    owner = visitor.visit(node.this, scope)
    if not isinstance(node.expression, exp.Identifier):
        raise UnsupportedQuery("a call after a dot")
    try:
        field, typed = take_field(name_part(node.expression), owner)
    except HeadgateError as error:
        raise error.at(visitor.span(node.expression)) from None
    node.set("expression", identifier(field))
    return typed


def variable(_visitor: Visitor, node: exp.Identifier, scope: Scope) -> Typed:
    """Inside a lambda sqlglot leaves its variables as identifiers."""
    found = scope.variable(NamePart(node.name, False))
    return UNKNOWN if found is None else Typed(found.type, found.nullable)


def take_field(part: NamePart, owner: Typed) -> tuple[str, Typed]:
    """The exact name and the type of a field of a record; a NULL record has NULL fields."""
    if owner.type is None:
        return part.name, UNKNOWN
    if not isinstance(owner.type, Record):
        raise NotARecord(part.name, print_type(owner.type))
    names = [field.name for field in owner.type.fields]
    match find(part.name, part.quoted, names):
        case Found(exact):
            field = owner.type.field(exact)
            assert field is not None
            return exact, Typed(field.type, field.nullable or owner.nullable, doc=field.doc)
        case Ambiguous(candidates):
            raise UnknownField(part.name, "the record", candidates)
    raise UnknownField(part.name, "the record", similar_names(part.name, names))


def every_column(sources: Sequence[Source]) -> list[tuple[exp.Expr, Column]]:
    """What `*` means over these sources; columns that USING merged are there once."""
    for source in sources:
        names = [column.name for column in source.columns]
        for name in names:
            if names.count(name) > 1:
                raise AmbiguousColumn(name, (f"one of {names.count(name)} columns of {source.alias}",))
    return [(reference(s, c), c) for s in sources for c in s.columns if c.name not in s.merged]

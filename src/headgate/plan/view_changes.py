"""What a schema change below a materialized view does to its stored rows.

They stay where they are if the query gives the same values for old records: new columns have their default in old rows, and
widened ones are cast when they are read. A view that is computed anew with every batch corrects itself. Any other view would
have to be filled anew: it stays as it is, and halts with the reason.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from headgate.catalog.catalog import Catalog
from headgate.catalog.objects import Column, Object, definition_of
from headgate.errors import HeadgateError
from headgate.plan.chain import view_query
from headgate.plan.errors import ViewNoLongerValid
from headgate.plan.materialized_views import asserted_columns, kept_view, query_tree
from headgate.plan.relations import named_types
from headgate.plan.stored_copies import copies_among
from headgate.plan.stored_defaults import StoredDefaults
from headgate.schema import types as t
from headgate.schema.render import print_type
from headgate.sql.query import tree as n
from headgate.sql.query.casts import expanded
from headgate.sql.query.tree_sql import quoted
from headgate.sql.statement import Kind
from headgate.sql.views import CreateMaterializedView


def with_asserted(view: Object, columns: Sequence[Column]) -> tuple[Column, ...]:
    """Columns of ASSERT NOT NULL are never null, whatever the query says."""
    if view.kind is not Kind.MATERIALIZED_VIEW:
        return tuple(columns)
    asserted = asserted_columns(definition_of(view, CreateMaterializedView), columns)
    return tuple(replace(column, nullable=column.nullable and column.name not in asserted) for column in columns)


def check_stored_rows(before: Catalog, after: Catalog, view: Object, columns: Sequence[Column]) -> None:
    """Raises ViewNoLongerValid if stored rows would differ from what the query gives for the same records now. In ``after``
    everything below the view has changed, and it would have ``columns``."""
    if view.kind is not Kind.MATERIALIZED_VIEW:
        return
    old, new = _form_before(before, view), stored_form(after, view, columns)
    if old is not None and old.hidden != new.hidden:
        raise ViewNoLongerValid(
            after.display_name(view.id), "it is stored in another way now, and would have to be filled anew"
        )
    known_types = new.computed_from if old is None else old.computed_from
    changed = [name for name, type_ in new.computed_from if (name, type_) not in known_types]
    if changed:
        reason = f"{changed[0]} has another type, and stored rows were computed from it as it was"
        raise ViewNoLongerValid(after.display_name(view.id), reason)
    if not new.incremental:
        return
    known = {column.id: column.type for column in view.columns}
    defaults = StoredDefaults(after).of_query(view_query(after, view).tree)
    for column, found in zip(columns, defaults, strict=True):
        is_new, is_wider = column.id not in known, column.type != known.get(column.id)
        if (is_new and len(found) > 1) or (is_wider and len({default.inner for default in found}) > 1):
            reason = f"what is new in column {column.name} has another default on each side of UNION, so that stored rows do not say theirs"
            raise ViewNoLongerValid(after.display_name(view.id), reason)


def _form_before(before: Catalog, view: Object) -> StoredForm | None:
    """The form of the stored rows; None if the query did not fit then either, as that of a UNION while only one of its sides has
    gained a column. The ledger of such a view names the form: its task compares it when it begins (RUN-0414)."""
    try:
        return stored_form(before, view, view.columns)
    except HeadgateError:
        return None


@dataclass(frozen=True, slots=True)
class StoredForm:
    """What the stored rows of a view depend on beside its statement. As long as it stays the same, they stay true.

    ``hidden`` are the columns that it stores for itself. ``computed_from`` are columns of its inputs with their types, from
    which something is computed; a view that is computed anew with every batch has none, because it corrects itself.
    """

    hidden: tuple[str, ...]
    computed_from: tuple[tuple[str, str], ...]
    incremental: bool


def stored_form(catalog: Catalog, view: Object, columns: Sequence[Column]) -> StoredForm:
    analysed = view_query(catalog, view)
    copies = copies_among(catalog, (dependency.on for dependency in view.dependencies))
    made = kept_view(catalog, view.name, analysed, columns, copies).maintenance
    hidden = tuple(column.name for column in made.stored if column.hidden)
    if not made.incremental:
        return StoredForm(hidden, (), incremental=False)
    computed: set[_Part] = set()
    _passed_on(query_tree(catalog, analysed), computed)
    return StoredForm(hidden, tuple(sorted({_named_type(catalog, *part) for part in computed})), incremental=True)


_Part: TypeAlias = tuple[n.ColumnRef, tuple[str, ...]]
"""A column of a relation, or the field inside of it to which the names lead."""


def _named_type(catalog: Catalog, ref: n.ColumnRef, path: tuple[str, ...]) -> tuple[str, str]:
    """Integers of any size give the same values, texts included, so they count as one type."""
    relation = catalog.get(ref.object)
    column = relation.column(ref.column)
    assert column is not None
    type_ = _inside(named_types(catalog), column.type, path)
    type_ = t.Bigint() if isinstance(type_, t.Integer) else type_
    return f"column {'.'.join((column.name, *path))} of {catalog.display_name(relation.id)}", print_type(type_)


def _inside(named: Callable[[t.Named], t.Type], type_: t.Type, path: tuple[str, ...]) -> t.Type:
    for name in path:
        type_ = expanded(type_, named)
        field = type_.field(name) if isinstance(type_, t.Record) else None
        if field is None:
            break
        type_ = field.type
    return type_


def _parts(expression: n.Expr, ref: n.Ref) -> set[tuple[str, ...]]:
    """What an expression computes with of a column: the fields that it names, or all of it."""
    found = re.findall(re.escape(quoted(ref)) + r"((?:\.`(?:[^`]|``)+`)*)", expression.sql)
    paths = {tuple(name.replace("``", "`") for name in re.findall(r"\.`((?:[^`]|``)+)`", path)) for path in found}
    return paths or {()}


_WORDS = frozenset(["AND", "OR", "NOT", "IS", "NULL", "BETWEEN", "IN", "TRUE", "FALSE"])
_TOKEN = re.compile(r"`[^`]*`|'[^']*'|\d+(?:\.\d+)?|[A-Za-z_]\w*|<=>|<>|<=|>=|[=<>(),+*-]|\s+|.")
_SIGNS = frozenset(("<=>", "<>", "<=", ">=", "=", "<", ">", "(", ")", ",", "+", "-", "*"))


def _compares_numbers(node: n.Node, condition: n.Expr) -> bool:
    """Whether an expression is a condition of comparisons only, whose truth is the same for a number of a wider type."""
    if not isinstance(node, n.Filter | n.Join) or condition.subqueries:
        return False
    tokens = [token for token in _TOKEN.findall(condition.sql) if token.strip()]
    return all(token[0] in "`'" or token[0].isdigit() or token.upper() in _WORDS or token in _SIGNS for token in tokens)


def _passed_on(node: n.Node, computed: set[_Part]) -> Mapping[n.Ref, n.ColumnRef]:
    """The columns of a node that are columns of what it reads, unchanged. Notes those that something is computed from."""
    if isinstance(node, n.Scan):
        return {output.ref: output.origin for output in node.columns if output.origin is not None}
    below = [_passed_on(each, computed) for each in n.inputs_of(node)]
    known = {ref: origin for each in below for ref, origin in each.items()}
    for expression in n.expressions_of(node):
        if expression.column is None and not _compares_numbers(node, expression):
            used = (ref for ref in expression.uses if ref in known)
            computed |= {(known[ref], path) for ref in used for path in _parts(expression, ref)}
        for subquery in expression.subqueries:
            computed |= {(ref, ()) for ref in _passed_on(subquery, computed).values()}
    match node:
        case n.Project():
            return _renamed(known, [(output.value.column, output.ref) for output in node.columns])
        case n.Aggregate():
            return _renamed(known, [(key.value.column, key.ref) for key in node.keys])
        case n.Subquery() | n.SetOperation():
            pairs = [zip(n.columns_of(each), node.columns, strict=False) for each in n.inputs_of(node)]
            return _renamed(known, [pair for each in pairs for pair in each])
        case _:
            return known


def _renamed(
    known: Mapping[n.Ref, n.ColumnRef], pairs: Iterable[tuple[n.Ref | None, n.Ref]]
) -> dict[n.Ref, n.ColumnRef]:
    return {new: known[old] for old, new in pairs if old is not None and old in known}

"""What an output column is called where no alias says so: as PostgreSQL calls it."""

from __future__ import annotations

from sqlglot import exp

from headgate.sql.query.normalise import FUNCTION_MARK

_NAMED: dict[type, str] = {
    exp.Case: "case",
    exp.CurrentDate: "current_date",
    exp.CurrentTimestamp: "current_timestamp",
    exp.Localtimestamp: "localtimestamp",
    exp.CurrentUser: "current_user",
    exp.Extract: "extract",
    exp.Exists: "exists",
    exp.Trim: "btrim",
    exp.Substring: "substring",
    exp.StrPosition: "position",
    exp.Array: "array",
}
_SAME_AS_INNER = (
    exp.Cast,
    exp.Paren,
    exp.Window,
    exp.Filter,
    exp.WithinGroup,
    exp.IgnoreNulls,
    exp.RespectNulls,
)


def written_name(node: exp.Expr) -> str | None:
    """The name that an expression has before names are found: alias, function; of a cast its operand's."""
    match node:
        case exp.Alias():
            return str(node.alias).removeprefix(FUNCTION_MARK)
        case exp.Anonymous():
            return str(node.name).removeprefix(FUNCTION_MARK).lower()
        case _ if isinstance(node, _SAME_AS_INNER):
            inner = node.this
            return str(inner.name) if isinstance(inner, exp.Column) else written_name(inner)
        case _:
            return _NAMED.get(type(node))


def accessed_name(value: exp.Expr) -> str | None:
    """A field gives its name to the column, an element the name of its array."""
    match value:
        case exp.Dot():
            return str(value.expression.name)
        case exp.Bracket():
            return accessed_name(value.this)
        case exp.Column():
            return str(value.name)
        case _:
            return None

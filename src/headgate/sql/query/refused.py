"""Clauses of other dialects. sqlglot reads them and Spark has no such thing, so that a query with one would lose it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from sqlglot import exp

from headgate.sql.errors import UnsupportedQuery

_SAMPLE = ("TABLESAMPLE", None)
_PAST = ("a relation as it was at another time", None)
_TOP = "Number the rows with row_number() or rank() OVER (ORDER BY …) in a subquery, and choose by that number."
_BY_POSITION = "Columns correspond by position: list them in the same order on both sides."

# What an argument of a node is called by a user, and what to write instead.
_REFUSED: dict[type[exp.Expr], dict[str, tuple[str, str | None]]] = {
    exp.Query: {
        "connect": ("CONNECT BY", None),
        "match": ("MATCH_RECOGNIZE", None),
        "prewhere": ("PREWHERE", "Write WHERE."),
        "settings": ("SETTINGS", None),
        "format": ("FORMAT after a query", None),
        "for_": ("FOR after a query", None),
        "options": ("OPTION", None),
        "sample": _SAMPLE,
    },
    exp.Select: {"kind": ("SELECT AS", "Write struct(…)."), "exclude": ("EXCLUDE", "Write * EXCEPT (…).")},
    exp.SetOperation: {
        "by_name": ("a set operation BY NAME", _BY_POSITION),
        "on": ("CORRESPONDING BY", _BY_POSITION),
        "side": ("an outer set operation", _BY_POSITION),
    },
    exp.Values: dict.fromkeys(
        ("order", "limit", "offset"), ("ORDER BY or LIMIT of VALUES", "Write SELECT * FROM (VALUES …) AS t.")
    ),
    exp.Limit: {"expressions": ("LIMIT … BY", _TOP)},
    exp.LimitOptions: {"percent": ("LIMIT by percent", _TOP), "with_ties": ("WITH TIES", _TOP)},
    exp.Group: {"totals": ("WITH TOTALS", "Write GROUP BY ROLLUP (…).")},
    exp.WindowSpec: {"exclude": ("EXCLUDE in a window", None)},
    exp.Window: {"first": ("KEEP", None)},
    exp.Ordered: {"with_fill": ("WITH FILL", None)},
    exp.Table: {
        "version": _PAST,
        "when": _PAST,
        "system_time": _PAST,
        "changes": ("CHANGES of a relation", "Write SELECT … EMIT CHANGES."),
        "partition": ("PARTITION of a relation", "Write WHERE."),
        "only": ("ONLY", None),
    },
    exp.Join: {"match_condition": ("MATCH_CONDITION", None)},
    exp.Lateral: {"cross_apply": ("APPLY", "Write CROSS JOIN LATERAL, or LEFT JOIN LATERAL … ON true.")},
    exp.Star: {name: (f"* {name.upper()}", "List the columns.") for name in ("ilike", "replace", "rename")},
    exp.Cast: {"format": ("CAST with FORMAT", "Write to_date or to_timestamp with the format.")},
    exp.In: {"unnest": ("IN UNNEST", "Write = ANY (array).")},
}


def _with_subclasses(kinds: Iterable[type[exp.Expr]]) -> Iterator[type[exp.Expr]]:
    for kind in kinds:
        yield kind
        yield from _with_subclasses(kind.__subclasses__())


_BY_KIND = {
    kind: [
        (name, *refusal)
        for base, parts in _REFUSED.items()
        if issubclass(kind, base)
        for name, refusal in parts.items()
    ]
    for kind in _with_subclasses(_REFUSED)
}


def refuse_foreign_parts(nodes: Iterable[exp.Expr]) -> None:
    """Refuse what a query would lose. ``nodes`` are all nodes of the query as sqlglot has read it."""
    for node in nodes:
        for name, what, instead in _BY_KIND.get(type(node), ()):
            value = node.args.get(name)
            if value or (name == "cross_apply" and value is not None):  # false for OUTER APPLY
                raise UnsupportedQuery(what, instead)
        if isinstance(node, exp.WindowSpec) and node.args.get("kind") == "GROUPS":
            raise UnsupportedQuery("GROUPS in a window", "Write ROWS or RANGE.")

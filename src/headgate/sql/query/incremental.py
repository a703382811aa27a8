"""The changes of a query's result, from the changes of the relations that it reads.

Changes are a signed bag: rows with the column `WEIGHT`, +1 for a row that came and -1 for one that went. The changes of the
relations have these two weights only. Then so have those of every node, because no rule adds or multiplies weights.

`changes` has a rule for each kind of node that can be kept by its changes. `obstacle` says why a node is none of these. The
rules were found and corrected by a test that drives random changes through random queries.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from headgate.schema import names, types as t
from headgate.schema.render import spark_identifier
from headgate.sql.query import tree as n
from headgate.sql.query.tree_sql import quoted

# The columns of a query are numbered from 1, so that a number below makes a column that no query has.
WEIGHT = n.Ref(names.WEIGHT, 0)


@dataclass(frozen=True, slots=True)
class Obstacle:
    """Why a node cannot be kept by its changes, and what to write instead, as sentences. ``instead`` may be empty."""

    why: str
    instead: str = ""


def column(ref: n.Ref) -> n.Expr:
    """The expression that is a column."""
    return n.Expr(quoted(ref), uses=frozenset((ref,)), column=ref)


def passed_on(refs: Iterable[n.Ref]) -> tuple[n.Output, ...]:
    """Columns that a projection passes on."""
    return tuple(n.Output(ref, column(ref)) for ref in refs)


def computed(ref: n.Ref, sql: str) -> n.Output:
    return n.Output(ref, n.Expr(sql))


def weighted(node: n.Node, weight: str = "1") -> n.Node:
    """The rows of a node with a weight."""
    return n.Project(node, (*passed_on(n.columns_of(node)), computed(WEIGHT, weight)))


def with_inputs(node: n.Node, inputs: Sequence[n.Node]) -> n.Node:
    """The node over other inputs, which have the columns that it needs."""
    match node:
        case n.Scan() | n.Values():
            return node
        case n.Join() | n.SetOperation():
            return replace(node, left=inputs[0], right=inputs[1])
        case _:
            return replace(node, input=inputs[0])


def at_version(node: n.Node, version: n.Version) -> n.Node:
    """The node over another version of all relations. It must not have subqueries in expressions."""
    if isinstance(node, n.Scan):
        return replace(node, version=version)
    return with_inputs(node, [at_version(each, version) for each in n.inputs_of(node)])


def prepared(node: n.Node) -> n.Node:
    """The same rows with fewer kinds of nodes: DISTINCT and UNION are groups without aggregates, an order that no LIMIT uses is
    dropped, and groups by a window of the time are groups by a column that has it."""
    inputs = [prepared(each) for each in n.inputs_of(node)]
    match node:
        case n.Sort():
            return inputs[0]
        case n.Limit(input=n.Sort() as sort):
            return replace(node, input=replace(sort, input=prepared(sort.input)))
        case n.Distinct():
            return _distinct(inputs[0])
        case n.Aggregate() if any(_is_window(key.value) for key in node.keys):
            return _with_window_columns(replace(node, input=inputs[0]))
        case n.SetOperation(operator="union", all=False):
            return _distinct(replace(node, all=True, left=inputs[0], right=inputs[1]))
        case _:
            return with_inputs(node, inputs)


def _is_window(value: n.Expr) -> bool:
    """Whether a value is made from a window of the time, and from no session, which depends on other rows."""
    return value.windows == {"window"} and value.type is not None


def _with_window_columns(node: n.Aggregate) -> n.Node:
    """Groups over rows that have their windows as columns. Spark computes a window in no join, and a join finds the rows of
    groups."""
    refs = {key.ref: n.Ref("hg_window", -key.ref.number) for key in node.keys if _is_window(key.value)}
    own = zip(passed_on(n.columns_of(node.input)), types_of(node.input), strict=True)
    passed = [replace(output, value=replace(output.value, type=type_)) for output, type_ in own]
    windows = [n.Output(refs[key.ref], key.value) for key in node.keys if key.ref in refs]
    keys = tuple(
        replace(key, value=replace(column(refs[key.ref]), type=key.value.type)) if key.ref in refs else key
        for key in node.keys
    )
    return replace(node, input=n.Project(node.input, (*passed, *windows)), keys=keys)


def _distinct(node: n.Node) -> n.Node:
    columns, types = n.columns_of(node), types_of(node)
    values = [replace(column(ref), type=type_) for ref, type_ in zip(columns, types, strict=True)]
    refs = [n.Ref(ref.name, -ref.number) for ref in columns]
    keys = tuple(n.Output(ref, value) for ref, value in zip(refs, values, strict=True))
    return n.Subquery(n.Aggregate(node, keys, ()), "distinct_rows", columns)


def types_of(node: n.Node) -> tuple[t.Type | None, ...]:
    """The types of a node's columns as far as they are known."""
    match node:
        case n.Scan() | n.Project():
            return tuple(output.value.type for output in node.columns)
        case n.Values():
            return tuple(value.type for value in node.rows[0])
        case n.Aggregate():
            return (*(key.value.type for key in node.keys), *(call.value.type for call in node.calls))
        case n.Generate():
            return (*types_of(node.input), *(None for _ in node.columns))
        case n.Window():
            return (*types_of(node.input), *(call.value.type for call in node.calls))
        case n.Join() if node.kind not in ("semi", "anti"):
            return (*types_of(node.left), *types_of(node.right))
        case _:
            return types_of(n.inputs_of(node)[0])


# what can be kept

# Aggregates whose result depends on nothing but the values, and is exact.
_EXACT_NAMES = """
count count_if regr_count min max median percentile percentile_cont percentile_disc bool_and bool_or every some any bit_and bit_or bit_xor grouping grouping_id
approx_count_distinct
"""
# Aggregates that add floating-point numbers: the last digits depend on the order of the rows.
_FLOATING_NAMES = """
stddev std stddev_samp stddev_pop variance var_samp var_pop skewness kurtosis corr covar_pop covar_samp regr_avgx
regr_avgy regr_r2 regr_slope regr_intercept regr_sxx regr_sxy regr_syy
"""
_EXACT, _FLOATING = (frozenset(names.split()) for names in (_EXACT_NAMES, _FLOATING_NAMES))
_SUMS = frozenset(("sum", "avg", "mean", "try_sum", "try_avg"))
# Window functions whose result does not depend on the order of rows that are equal in the order of the window.
_RANKS = frozenset(("rank", "dense_rank", "percent_rank", "cume_dist"))


def is_exact(call: n.Call) -> bool:
    """Whether an aggregate gives the same result for the same rows in any order, to the last digit."""
    if call.function in _SUMS:
        given = call.arguments[0].type if call.arguments else None
        adds_integers = isinstance(given, t.Integer) or (isinstance(given, t.Bigint) and call.function == "sum")
        return adds_integers or isinstance(given, t.Decimal)
    return call.settled or call.function in _EXACT


def is_determined(call: n.Call) -> bool:
    """Whether the rows of a group determine the result of an aggregate, but for the last digits of a sum."""
    return call.settled or call.function in _EXACT | _FLOATING | _SUMS


def is_determined_window(call: n.Call) -> bool:
    """Whether the rows determine the result of a window function. A frame of ROWS depends on the order of equal rows."""
    return call.function in _RANKS or (is_determined(call) and " ROWS " not in call.value.sql.upper())


def has_map(type_: t.Type | None) -> bool:
    """Whether values of a type may not be compared, because there is a map in it. An unknown type counts as one."""
    match type_:
        case None | t.Map():
            return True
        case t.Array(element, _):
            return has_map(element)
        case t.Record(fields):
            return any(has_map(field.type) for field in fields)
        case _:
            return False


_EVERY_ROW = "One row of it depends on all rows below."
_MARKED_SIDES = (
    "Give the rows of each side a mark, put them together with UNION ALL, and GROUP BY all columns with the sums of the "
    "marks in HAVING."
)


def obstacle(node: n.Node) -> Obstacle | None:
    """Why the changes of a node cannot be computed from those of its inputs; None if they can."""
    if (found := subquery_obstacle(node) or _clock_obstacle(node)) is not None:
        return found
    if (found := _session_obstacle(node)) is not None:
        return found
    match node:
        case n.Join(kind="inner" | "cross", lateral=False):
            return None
        case n.Join(lateral=True):
            return Obstacle("A LATERAL join is computed anew for every row.", "Write it as a join with a condition.")
        case n.Join():
            return Obstacle(
                f"A row of a {node.kind} join comes or goes with its first or last partner.",
                "Write an inner JOIN if rows without a partner are not needed.",
            )
        case n.Aggregate():
            return groups_obstacle(node) or _inner_groups_obstacle(node)
        case n.SetOperation(operator="union", all=True):
            return None
        case n.SetOperation():
            return Obstacle(
                f"A row of {node.operator.upper()} depends on how often it is on both sides.",
                "" if node.all else _MARKED_SIDES,
            )
        case n.Window():
            return Obstacle(
                "A window function changes for all rows of its partition when one of them changes.",
                "Write GROUP BY with an aggregate, for example max(struct(…)) for the first row of each partition.",
            )
        case n.Limit():
            return Obstacle(
                "LIMIT drops a row when another one comes.", "Write ORDER BY and LIMIT in what reads the view."
            )
        case _:
            return None


def subquery_obstacle(node: n.Node) -> Obstacle | None:
    """A subquery in an expression is fixed text, which reads its relations as they are after the batch."""
    if not any(expression.subqueries for expression in n.expressions_of(node)):
        return None
    return Obstacle("An expression of it has a subquery.", "Write the subquery as a join.")


def _clock_obstacle(node: n.Node) -> Obstacle | None:
    """A condition on the time changes the result although nothing below changes. Other unstable functions are refused before."""
    if not any(expression.unstable for expression in n.expressions_of(node)):
        return None
    return Obstacle("Rows come and go as time passes.")


def _session_obstacle(node: n.Node) -> Obstacle | None:
    """Spark remembers that a column is a session, and merges the rows of sessions wherever they are grouped by it."""
    if not any("session_window" in expression.windows for expression in n.expressions_of(node)):
        return None
    return Obstacle("A session becomes longer, or two become one, when a row comes.", "Use window instead.")


def groups_obstacle(node: n.Aggregate) -> Obstacle | None:
    """Why groups cannot be kept anywhere in a query."""
    if (found := _session_obstacle(node)) is not None:
        return found
    if node.sets:
        return Obstacle(
            "A row belongs to a group of every grouping set.",
            "Write one GROUP BY for each grouping set, and UNION ALL.",
        )
    if any(has_map(key.value.type) for key in node.keys):
        return Obstacle("Groups with a map, or a value of unknown type, as their key cannot be found again.")
    return None


def _inner_groups_obstacle(node: n.Aggregate) -> Obstacle | None:
    """Why groups cannot be kept below other nodes, where their old rows are computed again."""
    if not node.keys:
        return Obstacle(_EVERY_ROW, "Make the aggregate a materialized view of its own.")
    if not all(is_exact(call) for call in node.calls):
        return Obstacle(
            "A sum of floating-point numbers depends on the order of the rows.",
            "Cast to decimal before adding, or make the GROUP BY a materialized view of its own.",
        )
    return None


# the rules


def changes(node: n.Node) -> n.Node:
    """The changes of a node: its columns, and the weight as the last one. The node and all below it have no obstacle."""
    if not any(isinstance(each, n.Scan) for each in n.walk(node)):
        never = n.Filter(node, n.Expr("false"))  # typed like the node, which a UNION with another side needs
        return weighted(never)
    match node:
        case n.Scan():
            weight = n.Output(WEIGHT, n.Expr(spark_identifier(WEIGHT.name)))
            names = (*node.names, WEIGHT.name)
            return replace(node, version="changes", names=names, columns=(*node.columns, weight))
        case n.Filter():
            return replace(node, input=changes(node.input))
        case n.Project():
            return replace(node, input=changes(node.input), columns=(*node.columns, *passed_on((WEIGHT,))))
        case n.Generate():
            return _weight_last(node, replace(node, input=changes(node.input)))
        case n.Subquery():
            return replace(node, input=changes(node.input), columns=(*node.columns, WEIGHT))
        case n.SetOperation():
            left, right = changes(node.left), changes(node.right)
            return replace(node, left=left, right=right, columns=(*node.columns, WEIGHT))
        case n.Join():
            came = replace(node, left=changes(node.left))
            met = replace(node, left=at_version(node.left, "before"), right=changes(node.right))
            return both(_weight_last(node, came), _weight_last(node, met))
        case n.Aggregate():
            return _changed_groups(node)
        case _:
            raise AssertionError("a node with an obstacle has no changes")


def _weight_last(node: n.Node, made: n.Node) -> n.Node:
    return n.Project(made, passed_on((*n.columns_of(node), WEIGHT)))


def both(left: n.Node, right: n.Node) -> n.Node:
    """The rows of two nodes with the same columns."""
    return n.SetOperation("union", True, left, right, n.columns_of(left))


def _changed_groups(node: n.Aggregate) -> n.Node:
    """The groups in which something changed, computed after the batch and before it."""
    touched = touched_keys(node)
    now = replace(node, input=in_groups(node.input, [key.value.sql for key in node.keys], touched))
    before = replace(
        node, input=in_groups(at_version(node.input, "before"), [key.value.sql for key in node.keys], touched)
    )
    return both(weighted(now), weighted(before, "-1"))


def touched_keys(node: n.Aggregate) -> n.Node:
    """The keys of the groups in which something changed, each once."""
    columns = tuple(n.Output(n.Ref("hg_touched", -at), key.value) for at, key in enumerate(node.keys, start=1))
    return n.Distinct(n.Project(changes(node.input), columns))


def in_groups(node: n.Node, keys: Sequence[str], touched: n.Node) -> n.Node:
    """The rows of a node whose keys are among the touched ones. Two NULLs are the same key."""
    pairs = zip(keys, n.columns_of(touched), strict=True)
    on = " AND ".join(f"({key}) <=> {quoted(other)}" for key, other in pairs)
    return n.Join(node, touched, "semi", n.Expr(on)) if keys else node

"""Functions whose result differs each time a query is computed, and how `now()` and the like get the time of a batch.

A materialized view must equal its query at a time that is known. `pin_time` makes the query read that time from a relation.
(Spark has parameters too, but with Delta's parser it does not find their values.)
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from headgate.schema import types as t
from headgate.sql.query.casts import cast_to, typed_literal
from headgate.sql.query.functions import CLOCK, RANDOM
from headgate.sql.query.scope import Notes, call, note, notes
from headgate.sql.query.text import every_node
from headgate.sql.query.types import Typed

NOW, TIME = "hg_now", "time"
"""The relation with one row that has the time of the batch, and its column. Spark puts the value in the place of the subquery."""
DAYS = frozenset(("current_date", "curdate"))  # functions whose result changes once a day
PINNED = DAYS | {"now", "current_timestamp", "localtimestamp", "unix_timestamp"}
"""The functions that can have the time of a batch."""


def unstable_function(node: exp.Expr) -> str | None:
    """The name of a function whose result may differ when it is computed again; a cast of 'now' is one too."""
    match node:
        case exp.Anonymous():
            name = str(node.this).lower()
            clock = name in CLOCK and not (name == "unix_timestamp" and node.expressions)
            return name if clock or name in RANDOM else None
        case exp.CurrentDate():
            return "current_date"
        case exp.CurrentTimestamp():
            return "current_timestamp"
        case exp.Cast() if isinstance(node.this.unnest(), exp.Literal) and _is_time(node.to):
            return _clock_word(node.this.unnest().name)
        case exp.Var() if (written := notes(node).literal) is not None:
            return _clock_word(written)
        case _:
            return None


def _clock_word(literal: str) -> str | None:
    """The word that Spark reads as a time of its own in a literal, such as 'today UTC'."""
    word = literal.strip().lower()[:9].split(" ")[0]
    return word if word in CLOCK else None


def _is_time(type_: exp.Expr) -> bool:
    return str(type_.sql(dialect="spark")).upper().startswith(("DATE", "TIMESTAMP"))


_DATE_FUNCTIONS = """
to_date date date_add date_sub dateadd datediff date_diff add_months last_day next_day trunc unix_date year month quarter
day dayofmonth dayofweek dayofyear weekday weekofyear dayname monthname
"""
_TIME_FUNCTIONS = """
to_timestamp to_timestamp_ltz try_to_timestamp timestamp hour minute second date_trunc date_format months_between
unix_seconds unix_millis unix_micros from_utc_timestamp to_utc_timestamp
"""
_DATES, _TIMES = (frozenset(names.split()) for names in (_DATE_FUNCTIONS, _TIME_FUNCTIONS))
_WITH_FORMAT = frozenset(("to_date", "to_timestamp", "to_timestamp_ltz", "try_to_timestamp"))
_SAME_TYPE = frozenset(("coalesce", "nvl", "ifnull", "nvl2", "if", "nullif", "greatest", "least", "array"))


def type_time_words(operands: Sequence[exp.Expr], typed: list[Typed]) -> None:
    """Spark takes 'now', 'today', 'tomorrow' and 'yesterday' for times where it parses a text to compare it with a time, or to
    combine the two. So they become literals with that type, in ``operands`` and in ``typed``."""
    time = next((each.type for each in typed if isinstance(each.type, t.Date | t.Timestamp | t.TimestampTz)), None)
    for at, operand in enumerate(operands if time is not None else ()):
        assert time is not None
        typed[at] = _typed_word(operand, time) or typed[at]


def type_time_arguments(function: str, arguments: Sequence[exp.Expr], typed: list[Typed]) -> None:
    """The same for the arguments of a function that takes times, or several values of one type."""
    if function in _SAME_TYPE:
        type_time_words(arguments, typed)
    if function in _WITH_FORMAT and len(arguments) > 1:  # a text is read by the format
        return
    if function in _DATES or function in _TIMES:
        time = t.Date() if function in _DATES else t.TimestampTz()
        for at, argument in enumerate(arguments):
            typed[at] = _typed_word(argument, time) or typed[at]


def _typed_word(operand: exp.Expr, time: t.Type) -> Typed | None:
    """Make a literal with a type of a word that means a time. None if it is none."""
    word = operand.unnest()
    if not (isinstance(word, exp.Literal) and word.is_string and _clock_word(word.name) is not None):
        return None
    return typed_literal(word, time)


def may_read_clock(text: str) -> bool:
    """Whether a name of a function that can have the time of a batch occurs in the text of a query at all, which is quick to
    find out."""
    lowered = text.lower()
    return any(name in lowered for name in PINNED)


def pinned_functions(tree: exp.Expr) -> list[exp.Expr]:
    """The calls and words in a query that can have the time of a batch."""
    return [node for node in every_node(tree) if unstable_function(node) in PINNED]


def pin_time(tree: exp.Expr) -> None:
    """Put the time of the batch in place of the functions of a query that has been analysed."""
    for node in pinned_functions(tree):
        pinned = _pinned(node)
        if not notes(pinned).literal:
            note(pinned, notes(node))
        node.replace(pinned)


def _pinned(node: exp.Expr) -> exp.Expr:
    now = exp.Var(this=f"(SELECT `{TIME}` FROM {NOW})")
    note(now, Notes(typed=Typed(t.TimestampTz(), False), literal="now"))
    if isinstance(node, exp.Cast):
        return type(node)(this=now, to=node.to)
    if isinstance(node, exp.Var):
        return cast_to(now, notes(node).typed.type or t.TimestampTz())
    match unstable_function(node):
        case "current_date" | "curdate":
            return cast_to(now, t.Date())
        case "localtimestamp":
            return cast_to(now, t.Timestamp())
        case "unix_timestamp":
            return call("unix_timestamp", now)
        case _:
            return now

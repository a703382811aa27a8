"""A query's normalised text -> sqlglot's tree. What it does not understand becomes our own error at its place."""

from __future__ import annotations

import re

import sqlglot
from sqlglot import exp
from sqlglot.errors import ParseError, TokenError

from headgate.errors import HeadgateError
from headgate.sql.query.errors import MalformedQuery
from headgate.sql.query.normalise import FUNCTION_MARK, Normalised

_STARTS = re.compile(r"\s*(?:\(\s*)*(?:SELECT|WITH|VALUES)\b", re.IGNORECASE)


def parse(normalised: Normalised) -> exp.Expr:
    if not _STARTS.match(normalised.text):
        raise MalformedQuery("it begins with no SELECT, VALUES or WITH")
    try:
        tree = sqlglot.parse_one(normalised.text, read="postgres")
    except ParseError as error:
        raise _malformed(error, normalised) from None
    except TokenError as error:
        raise MalformedQuery(str(error).splitlines()[0]) from None
    if not isinstance(tree, exp.Query | exp.Values):
        raise MalformedQuery("it is no SELECT, VALUES or WITH")
    return tree


def _malformed(error: ParseError, normalised: Normalised) -> HeadgateError:
    if not error.errors:
        return MalformedQuery(str(error).splitlines()[0])
    first = error.errors[0]
    # line and column are those of the last character of the token that was not understood
    lines = normalised.text.split("\n")
    line, column = int(first.get("line") or 1), int(first.get("col") or 1)
    end = sum(len(text) + 1 for text in lines[: line - 1]) + column
    highlight = first.get("highlight") or " "
    start = max(0, end - len(highlight))
    return MalformedQuery(_reason(first, highlight)).at(normalised.span(start, end))


def _reason(first: dict[str, object], highlight: str) -> str:
    reason = str(first.get("description") or "").rstrip(".").lower().replace(FUNCTION_MARK, "")
    reason = re.sub(r"but got <token.*sentinel.*>", "but the query ends", reason)
    reason = re.sub(r"required keyword: '.*' missing for <class .*>", "something is missing", reason)
    shown = highlight.replace(FUNCTION_MARK, "").strip()
    return f'{reason} near "{shown}"' if shown and "near" not in reason else reason

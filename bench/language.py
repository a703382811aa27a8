"""Statements per second: parsed and printed, against sqlglot on the statements that it knows too.

The statements are those of the golden files, good ones only, repeated to a thousand.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import cycle, islice

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from bench.figures import Report, Size, compared, cpu_seconds
from headgate.errors import HeadgateError
from headgate.sql.script import parse_script, parse_statement
from headgate.sql.statement import print_statement
from tests.sql.golden_files import texts

LIMIT = 2e-3  # seconds per statement


def run(size: Size) -> Report:
    count, rounds = (40, 1) if size == "small" else (1000, 5)
    known = _statements()
    mixed = list(islice(cycle(known), count))
    with _quiet_sqlglot():
        shared = list(islice(cycle([text for text in known if _sqlglot_knows(text)]), count))
        peer = cpu_seconds(lambda: _each(_sqlglot, shared), rounds) / count
    ours_on_shared = cpu_seconds(lambda: _each(_ours, shared), rounds) / count
    ours = cpu_seconds(lambda: _each(_ours, mixed), rounds) / count
    slowest = max((cpu_seconds(lambda text=text: _ours(text), rounds), text) for text in known)  # type: ignore[misc]
    rows = (
        compared(f"parse and print, each of {count} mixed statements", ours, limit=LIMIT),
        compared(f"the slowest of {len(known)} kinds: {_start(slowest[1])}", slowest[0], limit=LIMIT),
        compared("statements that sqlglot reads too", ours_on_shared, peer, "sqlglot"),
    )
    return Report("Language: statements", rows, ("CPU time per statement, best of the rounds.",))


def _statements() -> list[str]:
    found: list[str] = []
    for text in texts():
        try:
            statements = parse_script(text)
        except HeadgateError:
            continue
        found += [text[one.span.start : one.span.end] for one in statements]
    return found


def _sqlglot_knows(text: str) -> bool:
    """Whether it really reads the statement: what it does not know it keeps as a command without looking inside."""
    try:
        return not isinstance(sqlglot.parse_one(text, read="postgres"), exp.Command)
    except SqlglotError:
        return False


def _ours(text: str) -> None:
    print_statement(parse_statement(text))


def _sqlglot(text: str) -> None:
    sqlglot.parse_one(text, read="postgres").sql("postgres")


def _each(work: Callable[[str], None], statements: list[str]) -> None:
    for text in statements:
        work(text)


def _start(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= 40 else f"{line[:39]}…"


@contextmanager
def _quiet_sqlglot() -> Iterator[None]:
    """It warns of every statement that it keeps as a command."""
    logger = logging.getLogger("sqlglot")
    before = logger.level
    logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        logger.setLevel(before)

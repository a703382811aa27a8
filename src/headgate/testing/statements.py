"""The steps that are SQL: `>` must succeed, `!` must fail, `?` must print."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass

from headgate.errors import Diagnostic, HeadgateError
from headgate.serve.client import EngineClient
from headgate.serve.protocol import Column, Columns, Done, Failed, Notice, Progress, Row, Rows, table_lines, value_text
from headgate.testing.compare import Result, check_rows, read_rows
from headgate.testing.context import SETTLED, Deadline, GiveUp, SpecContext
from headgate.testing.errors import Mismatch, StepFailed
from headgate.testing.parse import Fails, Prints, Succeeds
from headgate.text.lexer import tokenize

_READ_ONLY = ("SELECT", "WITH", "VALUES", "SHOW", "DESCRIBE", "EXPLAIN", "(")
TASKS = "SELECT name, state, lag FROM headgate_catalog.tasks;"
WAITED_FOR = ("starting", "running")
_CHECK = re.compile(r"(code|contains|detail|hint): ?(.*)")


class StatementFailed(Exception):
    """The engine answered with an error."""

    def __init__(self, diagnostic: Diagnostic) -> None:
        super().__init__(diagnostic.message)
        self.diagnostic = diagnostic


@dataclass(frozen=True, slots=True)
class StatementKind:
    """What the runner must know of a statement: whether it only reads, orders its rows, and never ends."""

    is_query: bool
    is_ordered: bool
    is_endless: bool


def statement_kind(sql: str) -> StatementKind:
    """What kind of statement it is, from the words outside of brackets."""
    words = _top_level_words(sql)
    text = " ".join(words)
    endless = words[:1] == ["SUBSCRIBE"] or "EMIT CHANGES" in text
    return StatementKind(
        words[:1] != [] and words[0] in _READ_ONLY, "ORDER BY" in text, endless and "LIMIT" not in words
    )


def expect_rows(step: Succeeds, context: SpecContext) -> None:
    """`>`: the statement succeeds with the expected rows. Only what reads or never ends is tried again."""
    sql = context.variables.fill(step.sql)
    expected = read_rows(context.fill(step.block))
    kind = statement_kind(sql)

    most = len(expected.rows or ()) if kind.is_endless else None

    def attempt(deadline: Deadline) -> None:
        check_rows(expected, query(context.engine.client, sql, deadline, most), kind.is_ordered and not kind.is_endless)

    context.eventually(attempt if kind.is_query or kind.is_endless else _once(attempt), step.block)


def expect_error(step: Fails, context: SpecContext) -> None:
    """`!`: the statement fails with an error for which all checks hold."""
    sql = context.variables.fill(step.sql)
    checks = context.fill(step.block)
    watch = _ErrorWatch(context)

    def attempt(deadline: Deadline) -> None:
        try:
            result = execute(context.engine.client, sql, deadline)
        except StatementFailed as failed:
            mismatch = _other_error(failed.diagnostic, checks)
            if mismatch is not None:
                raise GiveUp(mismatch) if watch.is_final(failed.diagnostic, deadline) else mismatch from None
        else:
            rows = (f"{len(result.rows)} rows", *result.lines()[:20]) if result.columns else ()
            raise StepFailed("the statement succeeded, and had to fail", "\n".join(rows) or None)

    again = statement_kind(sql).is_query
    context.retry(attempt if again else _once(attempt))


class _ErrorWatch:
    """Decides whether an error that is not the expected one can still become another one.

    An error in the text of the statement never changes. One that comes from the catalog changes only when a task
    follows a schema, so it is final when it has stayed the same for a while in which no task had work. Everything else
    depends on data and services, and may change at any time."""

    def __init__(self, context: SpecContext) -> None:
        self._context = context
        self._seen: Diagnostic | None = None
        self._since = 0.0

    def is_final(self, error: Diagnostic, deadline: Deadline) -> bool:
        if is_about_text(error.code):
            return True
        if not _is_about_catalog(error.code):
            return False
        if error != self._seen or self._has_work(deadline):
            self._seen, self._since = error, time.monotonic()
        return time.monotonic() - self._since >= SETTLED

    def _has_work(self, deadline: Deadline) -> bool:
        try:
            return bool(busy_tasks(self._context, deadline))
        except (HeadgateError, GiveUp):  # the engine cannot say, and may be starting
            return True


def is_about_text(code: str) -> bool:
    """Whether an error comes from the text of a statement alone. SQL-04.. are about names and types of a query."""
    return code.startswith("SQL-") and not code.startswith("SQL-04")


def _is_about_catalog(code: str) -> bool:
    return code.startswith(("SQL-04", "PLN-", "CAT-", "SCH-"))


def busy_tasks(context: SpecContext, deadline: Deadline, task: str | None = None) -> list[str]:
    """A line for every task, or for this one, that has records left to process."""
    rows = query(context.engine.client, TASKS, deadline).rows
    if task is not None and task not in [row[0] for row in rows]:
        return [f"there is no task {task}"]
    return [
        f"{value_text(name)} is {value_text(state)} with a lag of {value_text(lag)}"
        for name, state, lag in rows
        if (name == task if task is not None else state in WAITED_FOR) and (state != "running" or lag != 0)
    ]


def expect_text(step: Prints, context: SpecContext) -> None:
    """`?`: the statement prints the expected text."""
    sql = context.variables.fill(step.sql)
    expected = [line.rstrip() for line in context.fill(step.block)]

    def attempt(deadline: Deadline) -> None:
        actual = text_of(query(context.engine.client, sql, deadline))
        if not matches(expected, actual):
            raise Mismatch("the text is not the expected one", tuple(expected), tuple(actual), _as_block(actual))

    again = statement_kind(sql).is_query
    context.eventually(attempt if again else _once(attempt), step.block)


def execute(client: EngineClient, sql: str, deadline: Deadline, most: int | None = None) -> Result:
    """Run a script and return the result of its last statement that has one. Raises StatementFailed.

    ``most`` is for a query that never ends: it is cancelled when so many rows have come.
    """
    columns: tuple[Column, ...] = ()
    rows: list[Row] = []
    with closing(client.run(sql, max(1.0, deadline.left))) as events:
        for event in events:
            match event:
                case Columns(found):
                    columns, rows = found, []
                case Rows(more):
                    rows += more
                case Failed(diagnostic):
                    raise StatementFailed(diagnostic)
                case Notice() | Progress() | Done():
                    pass
            if most is not None and columns and len(rows) >= most:
                break
    return Result(columns, tuple(rows))


def query(client: EngineClient, sql: str, deadline: Deadline, most: int | None = None) -> Result:
    """Like ``execute``, but an error of the engine is a failed step, and final if it is about the text."""
    try:
        return execute(client, sql, deadline, most)
    except StatementFailed as failed:
        error = StepFailed("the statement failed, and had to succeed", failed.diagnostic.render())
        raise GiveUp(error) if is_about_text(failed.diagnostic.code) else error from failed


def text_of(result: Result) -> list[str]:
    """The text that `?` compares: `create_sql`, the only column, or the table as the shell prints it."""
    names = [column.name for column in result.columns]
    if len(names) == 1 or "create_sql" in names:
        index = 0 if len(names) == 1 else names.index("create_sql")
        lines = [line for row in result.rows for line in value_text(row[index]).split("\n")]
    else:
        lines = table_lines(result.columns, result.rows)
    lines = [line.rstrip() for line in lines]
    while lines and not lines[-1]:
        lines.pop()
    return lines


def matches(expected: Sequence[str], actual: Sequence[str]) -> bool:
    """Whether the text is the expected one. `...` on a line of its own matches any number of lines. Empty lines do not
    count, because a block cannot hold them."""
    pattern = [line if line.strip() != "..." else None for line in expected]
    text = [line for line in actual if line.strip()]
    reachable = {0}
    for line in pattern:
        if line is None:
            reachable = set(range(min(reachable, default=len(text) + 1), len(text) + 1))
        else:
            reachable = {at + 1 for at in reachable if at < len(text) and text[at] == line}
    return len(text) in reachable


def _once(attempt: Callable[[Deadline], None]) -> Callable[[Deadline], None]:
    """For a statement that changes something: its first failure ends the step."""

    def tried(deadline: Deadline) -> None:
        try:
            attempt(deadline)
        except HeadgateError as error:
            raise GiveUp(error) from error

    return tried


def _other_error(found: Diagnostic, checks: Sequence[str]) -> Mismatch | None:
    """The first check that does not hold, as an error."""
    parts = {
        "detail": found.detail or "",
        "hint": found.hint or "",
        "contains": "\n".join(filter(None, (found.message, found.detail, found.hint))),
    }
    for line in checks:
        matched = _CHECK.match(line)
        if matched is None:
            continue
        kind, text = matched[1], matched[2].rstrip()
        holds = found.code == text if kind == "code" else text in parts[kind]
        if not holds:
            actual = tuple(found.render().splitlines())
            return Mismatch(f"the error is another one: {line}", tuple(checks), actual)
    return None


def _as_block(lines: Sequence[str]) -> tuple[str, ...]:
    return tuple(line for line in lines if line)


def _top_level_words(sql: str) -> list[str]:
    """The words outside of brackets in upper case. An opening bracket counts if the statement begins with it."""
    try:
        tokens = tokenize(sql)
    except HeadgateError:
        return sql.upper().split()
    words: list[str] = []
    depth = 0
    for token in tokens:
        if token.word in ("(", "[", "{"):
            if not words:
                words.append(token.word)
            depth += 1
        elif token.word in (")", "]", "}"):
            depth -= 1
        elif depth == 0 and token.word:
            words.append(token.word)
    return words

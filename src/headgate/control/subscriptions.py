"""SUBSCRIBE and SELECT … EMIT CHANGES: one query after the other for the changes since the last, until the client stops."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime

import orjson

from headgate.control import sessions as results
from headgate.errors import InternalError
from headgate.plan.plans import FollowChanges
from headgate.runtime import query as answers
from headgate.runtime.query_process import Queries

POLL = 0.2  # seconds between two looks for another batch


def follow(
    plan: FollowChanges,
    request: answers.QueryRequest,
    queries: Queries,
    reached: Callable[[], int | None],
    cancellation: results.Cancellation,
) -> Iterator[results.Result]:
    """``reached`` is the last batch of the view; None if it was dropped, which ends the answer."""
    read, count, named = 0 if plan.snapshot else reached() or 0, 0, False
    while not cancellation.cancelled and (number := reached()) is not None and count != plan.limit:
        if number <= read:
            time.sleep(POLL)
            continue
        between = answers.ChangesBetween(plan.view, read, number, datetime.now(UTC))
        for result in _changes(replace(request, changes=between), queries, cancellation):
            if isinstance(result, results.ResultColumns):
                if not named:
                    yield result
                named = True
                continue
            rows = orjson.loads(result.json)
            rows = rows if plan.limit is None else rows[: plan.limit - count]
            count += len(rows)
            yield results.JsonRows(orjson.dumps(rows))
        read = number
    yield results.Done(f"SELECT {count}")


def _changes(
    request: answers.QueryRequest, queries: Queries, cancellation: results.Cancellation
) -> Iterator[results.ResultColumns | results.JsonRows]:
    running = queries.open(request)
    with closing(running), cancellation.stops(running.cancel):
        for answer in running.answers():
            match answer:
                case answers.Columns(columns):
                    yield results.ResultColumns(columns)
                case answers.Rows(_, text):
                    yield results.JsonRows(text)
                case answers.Failed(error):
                    raise error
                case answers.Grown():
                    raise InternalError("a materialized view reads no source while it is followed")
                case answers.Finished():
                    return

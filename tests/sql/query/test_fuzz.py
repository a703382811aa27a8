"""Mutated queries: whatever is done to them, only our own errors come out, and they point into the text.

HEADGATE_FUZZ sets how many texts are tried; the seed is printed when one fails.
"""

from __future__ import annotations

import os
import random

import pytest

from headgate.errors import HeadgateError
from headgate.sql.query.functions import signatures
from headgate.sql.query.select import analyse
from tests.sql.query.corpus import QUERIES
from tests.sql.query.relations import find_relation, resolve
from tests.sql.test_fuzz import mutated

pytestmark = pytest.mark.unit

COUNT = int(os.environ.get("HEADGATE_FUZZ", "400"))
WORDS = sorted({word for query in QUERIES for word in query.split(" ")} | signatures().keys())


def check(text: str) -> None:
    try:
        found = analyse(text, find_relation, resolve)
    except HeadgateError as problem:
        _check_error(problem, text)
        return
    assert found.columns
    assert not any(column.null for column in found.columns)


def _check_error(problem: HeadgateError, text: str) -> None:
    if problem.span is not None:
        assert 0 <= problem.span.start <= problem.span.end <= len(text) + 1
    assert problem.diagnostic(text).render().startswith(f"error {problem.code}: ")


@pytest.mark.timeout(300 + COUNT // 50)
def test_mutated_queries_raise_only_our_own_errors() -> None:
    seed = random.randrange(2**32)
    source = random.Random(seed)
    for number in range(COUNT):
        text = mutated(source, source.choice(QUERIES), WORDS)
        try:
            check(text)
        except Exception as problem:
            raise AssertionError(f"seed {seed}, text {number}: {text!r}") from problem

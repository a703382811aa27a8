"""Results as tables of text."""

from __future__ import annotations

import pytest

from headgate.serve.protocol import Column, table_lines

pytestmark = pytest.mark.unit

COLUMNS = (Column("name", "text"), Column("error", "text"), Column("lag", "bigint"))
LONG = "could not reach the registry, and tries again until it answers"


def test_a_table_is_as_wide_as_its_values_where_there_is_no_width() -> None:
    assert table_lines(COLUMNS, [("a", LONG, 3)])[2] == f"a     {LONG}    3"


def test_the_widest_column_is_folded_to_the_width_of_the_terminal() -> None:
    assert table_lines(COLUMNS, [("a", f"{LONG}\nhint: wait", 3), ("b", None, 10)], 50) == [
        "name  error                                    lag",
        "----  ---------------------------------------  ---",
        "a     could not reach the registry, and tries    3",
        "      again until it answers",
        "      hint: wait",
        "b     <null>                                    10",
    ]


def test_a_word_that_does_not_fit_is_broken_and_nothing_of_it_is_lost() -> None:
    word = "x" * 100
    lines = table_lines((Column("v", "text"),), [(word,)], 40)
    assert "".join(lines[2:]) == word
    assert max(map(len, lines)) == 40


def test_a_table_has_numbers_to_the_right_and_keeps_lines() -> None:
    columns = [Column("id", "bigint"), Column("note", "text"), Column("m", "map<text, integer>")]
    assert table_lines(columns, [(1, "a\nb", {"k": 1}), (200, None, {})]) == [
        "id   note    m",
        "---  ------  --------",
        '  1  a       {"k": 1}',
        "     b",
        "200  <null>  {}",
    ]

"""The grammar in the docs is the grammar of the parser."""

from __future__ import annotations

import re

import pytest

from headgate.errors import HeadgateError
from headgate.sql.grammar import OPTION_LISTS, all_rules, all_synopses
from headgate.sql.options import rules
from headgate.sql.script import ALTER, CREATE, CREATE_OR_REPLACE, STATEMENTS, parse_statement
from headgate.sql.statement import print_statement
from tests.sql.expander import FILLED, Expander
from tools.generate_docs import wrapped

pytestmark = pytest.mark.unit


@pytest.mark.parametrize("statement", all_synopses())
def test_the_parser_reads_all_that_a_synopsis_allows(statement: str) -> None:
    texts = Expander(all_rules()).expand(all_synopses()[statement])
    refused = [text for text in texts if not _reads(text)]
    assert refused == []
    assert texts


def _reads(text: str) -> bool:
    try:
        parsed = parse_statement(text)
    except HeadgateError:
        return False
    return parse_statement(print_statement(parsed)) == parsed


def test_every_statement_has_a_synopsis() -> None:
    names = set(all_synopses())
    created = {f"CREATE {kind.words}" for kind in (*CREATE, *CREATE_OR_REPLACE)}
    altered = {f"ALTER {kind.words}" for kind in ALTER}
    assert created | altered <= names
    others = set(STATEMENTS) - {"CREATE", "ALTER", "WITH", "VALUES", "("}
    assert others <= {name.split(" ")[0] for name in names}


def test_every_rule_of_a_synopsis_exists_and_every_rule_is_used() -> None:
    texts = [*all_synopses().values(), *all_rules().values()]
    used = {name for text in texts for name in re.findall(r"(?<!-)<([^<>]+)>", text)}
    assert used - set(FILLED) == set(all_rules())
    assert set(FILLED) <= used


def test_every_option_of_every_table_is_in_a_rule() -> None:
    written = all_rules()
    for name, cls in OPTION_LISTS.items():
        for rule in rules(cls):
            assert f"{rule.name} = " in written[name]


def test_long_synopses_have_line_breaks() -> None:
    assert wrapped(all_synopses()["SUBSCRIBE"]) == "SUBSCRIBE [TO] <name> [WITH (<subscribe option>)]"
    assert all(len(line) <= 110 for synopsis in all_synopses().values() for line in wrapped(synopsis).splitlines())

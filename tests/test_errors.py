from __future__ import annotations

import pickle

import pytest

from headgate.errors import (
    ErrorGroup,
    HeadgateError,
    InternalError,
    Span,
    did_you_mean,
    error,
    locate,
    raise_all,
    similar_names,
)

pytestmark = pytest.mark.unit


@error
class NoSuchGate(HeadgateError):
    code = "TST-0001"
    name: str
    similar: tuple[str, ...] = ()

    def message(self) -> str:
        return f'gate "{self.name}" does not exist'


def test_an_error_pickles_with_its_fields_and_its_place() -> None:
    before = NoSuchGate("mian", similar=("main",)).at(Span(3, 7))
    after = pickle.loads(pickle.dumps(before))
    assert isinstance(after, NoSuchGate)
    assert (after.name, after.similar, after.span) == ("mian", ("main",), Span(3, 7))


def test_a_place_that_is_known_already_is_not_overwritten() -> None:
    assert NoSuchGate("x").at(Span(1, 2)).at(Span(5, 6)).span == Span(1, 2)


def test_an_error_is_drawn_with_a_caret_under_its_place() -> None:
    source = "SELECT 1;\nOPEN mian;\n"
    shown = NoSuchGate("mian", similar=("main",)).at(Span(15, 19)).diagnostic(source)
    assert (shown.line, shown.column) == (2, 6)
    assert shown.render() == (
        'error TST-0001: gate "mian" does not exist\n2 | OPEN mian;\n         ^^^^\nhint: Did you mean "main"?'
    )


def test_a_diagnostic_without_text_has_no_place() -> None:
    assert NoSuchGate("x").at(Span(0, 1)).diagnostic().as_json() == {
        "code": "TST-0001",
        "message": 'gate "x" does not exist',
    }


def test_tabs_keep_the_caret_under_its_word() -> None:
    assert locate("\tOPEN x", Span(6, 7)) == (1, 7, "1 | \tOPEN x\n    \t     ^")


def test_a_megabyte_on_one_line_is_cut_around_the_place() -> None:
    line, column, excerpt = locate("a" * 600_000 + "!" + "b" * 600_000, Span(600_000, 600_001))
    assert (line, column) == (1, 600_001)
    assert len(excerpt) < 400
    text, carets = excerpt.split("\n")
    assert text[carets.index("^")] == "!"


def test_a_span_at_the_end_of_the_text_still_gets_a_caret() -> None:
    assert locate("SELECT", Span(6, 6)) == (1, 7, "1 | SELECT\n          ^")


def test_a_span_over_several_lines_is_drawn_on_its_first() -> None:
    assert locate("ab\ncd", Span(1, 5)) == (1, 2, "1 | ab\n     ^")


def test_near_names_ignore_case_and_keep_the_spelling_of_the_candidate() -> None:
    assert similar_names("orderz", ["Orders", "customers"]) == ("Orders",)


def test_several_near_names_are_joined_with_or() -> None:
    assert did_you_mean(("a", "b", "c")) == 'Did you mean "a", "b" or "c"?'


def test_nothing_collected_raises_nothing() -> None:
    raise_all([])


def test_one_finding_is_raised_as_itself() -> None:
    with pytest.raises(NoSuchGate):
        raise_all([NoSuchGate("a")])


def test_several_findings_are_raised_together_with_each_named() -> None:
    with pytest.raises(ErrorGroup) as caught:
        raise_all([NoSuchGate("a"), NoSuchGate("b")])
    assert caught.value.message() == 'gate "a" does not exist (and 1 more)'
    assert 'gate "b" does not exist' in caught.value.detail()


def test_a_bug_says_that_it_is_one() -> None:
    assert "bug" in (InternalError("x").diagnostic().hint or "")

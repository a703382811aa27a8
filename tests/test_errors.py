from __future__ import annotations

import pickle

import pytest

from headgate.errors import (
    Diagnostic,
    ErrorGroup,
    HeadgateError,
    InternalError,
    Span,
    did_you_mean,
    locate,
    raise_all,
    similar_names,
)

pytestmark = pytest.mark.unit


class NoSuchGate(HeadgateError, code="TST-0001"):
    name: str
    similar: tuple[str, ...] = ()
    MESSAGE = 'gate "{name}" does not exist'


class GateShut(HeadgateError, code="TST-0002"):
    kind: str = "gate"
    keys: tuple[str, ...] = ("a", "b", "c")
    users: tuple[tuple[str, str], ...] = (("lock", "x"), ("weir", "y"))
    count: int = 1
    reason: str | None = None
    MESSAGE = "{upper} with {count:key|keys} is {kind:a}"
    DETAIL = "It takes {keys:or}, {keys:list}, {keys:quoted and}, {users:object list} or {keys:path}."
    HINT = "Turn {keys[0]}, because {reason}."

    @property
    def upper(self) -> str:
        return self.kind.upper()


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


def test_similar_names_ignore_case_and_keep_the_spelling_of_the_candidate() -> None:
    assert similar_names("orderz", ["Orders", "customers"]) == ("Orders",)


def test_several_similar_names_are_joined_with_or() -> None:
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


def test_a_template_prints_lists_alternatives_names_objects_numbers_and_articles() -> None:
    assert GateShut(count=2).message() == "GATE with 2 keys is a gate"
    assert GateShut(kind="inlet").message() == "INLET with 1 key is an inlet"
    assert GateShut().detail() == ('It takes a, b or c, a, b, c, "a", "b" and "c", lock "x", weir "y" or a -> b -> c.')
    assert GateShut(keys=("a",)).detail() == 'It takes a, a, "a", lock "x", weir "y" or a.'


def test_a_sentence_with_an_empty_value_is_left_out() -> None:
    assert GateShut().hint() is None
    assert GateShut(reason="").hint() is None
    assert GateShut(reason="it sticks").hint() == "Turn a, because it sticks."
    assert GateShut(reason="it sticks", keys=()).detail() is None


def test_similar_names_come_before_the_hint_of_the_class() -> None:
    class Unknown(NoSuchGate, code="TST-0003"):
        HINT = "Build it."

    assert Unknown("x").hint() == "Build it."
    assert Unknown("x", ("y",)).hint() == 'Did you mean "y"?'


def test_a_template_that_names_no_field_is_refused_when_its_class_is_made() -> None:
    with pytest.raises(TypeError, match="has no field colour"):

        class Wrong(HeadgateError, code="TST-0004"):
            name: str
            MESSAGE = "gate {name} is {colour}"


def test_a_template_with_an_unknown_format_is_refused_when_its_class_is_made() -> None:
    with pytest.raises(TypeError, match="has an unknown format lst"):

        class Wrong(HeadgateError, code="TST-0005"):
            names: tuple[str, ...]
            MESSAGE = "gates {names:lst}"


def test_braces_in_a_value_stay_as_they_are() -> None:
    assert NoSuchGate("{name} {0}").message() == 'gate "{name} {0}" does not exist'


def test_the_fields_of_an_error_are_checked_where_it_is_made() -> None:
    """mypy fails on an ignore that it does not need, so these lines prove that it finds both mistakes."""
    with pytest.raises(TypeError):
        NoSuchGate()  # type: ignore[call-arg]
    NoSuchGate(3)  # type: ignore[arg-type]


def test_an_error_shows_its_code_and_message_and_has_no_equal() -> None:
    assert str(NoSuchGate("x")) == 'TST-0001: gate "x" does not exist'
    assert repr(NoSuchGate("x")).endswith("NoSuchGate(name='x', similar=())")
    assert NoSuchGate("x") != NoSuchGate("x")


def test_a_family_has_no_code_and_a_failure_keeps_its_own() -> None:
    class Family(HeadgateError):
        retryable = True

    class One(Family, code="TST-0006"):
        MESSAGE = "one"

    assert (Family.code, One.code, One.retryable) == ("", "TST-0006", True)
    assert One().at(None).diagnostic().as_json() == {"code": "TST-0006", "message": "one"}


def test_lines_of_a_detail_stand_below_each_other() -> None:
    shown = Diagnostic("PLN-0001", "no", "columns | schema\na text  | a integer", "Change it.")
    assert shown.render() == (
        "error PLN-0001: no\n"
        "detail: columns | schema\n"
        "        a text  | a integer\n"
        "hint: Change it."
    )  # fmt: skip

"""Scripts as desired state: what is kept, created and changed, and that a second run does nothing."""

from __future__ import annotations

import pytest

from headgate.catalog.objects import DesiredTaskState
from headgate.connectors.kafka import NewTopicOptions
from headgate.control.apply import DesiredState, Scripts, desired_state
from headgate.control.sessions import Done, ResultRows
from headgate.errors import HeadgateError
from headgate.plan.errors import NotDesiredState, ObjectDiffers
from headgate.sql.connections import AlterSecret
from headgate.sql.statement import Kind
from tests.control.scripts import Shell

pytestmark = pytest.mark.unit

AVRO = "FORMAT AVRO USING CONFLUENT SCHEMA REGISTRY CONNECTION registry"
ORDER = (
    '{"type":"record","name":"o","fields":[{"name":"id","type":"long"},{"name":"item","type":"string","doc":"what"}]}'
)
LATER = (
    '{"type":"record","name":"o","fields":[{"name":"id","type":"long"},{"name":"item","type":"string"},'
    '{"name":"note","type":["null","string"],"default":null}]}'
)
TYPE = "CREATE TYPE money AS (amount decimal(10,2), currency text)"
VIEW = "CREATE VIEW v AS SELECT 1 AS a, 'x' AS b"


def pipeline(topic: str) -> str:
    return (
        f"CREATE SOURCE orders FROM KAFKA CONNECTION kafka (TOPIC '{topic}') {AVRO};\n"
        "CREATE VIEW big AS SELECT id, upper(item) AS item FROM orders WHERE id > 5;\n"
        f"CREATE SINK bigs FROM big INTO KAFKA CONNECTION kafka (TOPIC '{topic}-big') {AVRO};\n"
    )


class Project:
    def __init__(self, sql: Shell) -> None:
        self.sql = sql
        self.scripts = Scripts(sql.store, sql.connections, sql.executor)

    def plan(self, text: str) -> list[tuple[object, ...]]:
        return [tuple(row) for r in self.scripts.plan(text) if isinstance(r, ResultRows) for row in r.rows]

    def actions(self, text: str) -> list[object]:
        return [row[2] for row in self.plan(text)]

    def apply(self, text: str) -> str:
        *_, last = self.scripts.apply(text)
        assert isinstance(last, Done)
        return last.tag

    def desired(self, text: str) -> DesiredState:
        return desired_state(self.sql.store.load(), text, self.sql.store.keys.reveal)


@pytest.fixture
def project(sql: Shell) -> Project:
    return Project(sql)


@pytest.fixture
def with_orders(project: Project, request: pytest.FixtureRequest) -> tuple[Project, str]:
    """A topic of the test's own, with a schema."""
    topic = request.node.name
    project.sql.topics[topic] = NewTopicOptions()
    project.sql.subject(f"{topic}-value", ORDER)
    return project, pipeline(topic)


# nothing twice


def test_a_plan_changes_nothing(project: Project) -> None:
    before = project.sql.version
    assert project.actions(f"{TYPE}; {VIEW}") == ["create", "create"]
    assert project.sql.version == before


def test_a_second_apply_does_nothing(project: Project) -> None:
    script = f"{TYPE}; {VIEW}; COMMENT ON VIEW v IS 'why'; COMMENT ON COLUMN v.a IS 'one'; CREATE SECRET s AS 'x'"
    assert project.apply(script) == "APPLY: 3 created, 2 changed, 0 kept"
    version = project.sql.version
    assert project.apply(script) == "APPLY: 0 created, 0 changed, 5 kept"
    assert project.sql.version == version


def test_a_pipeline_is_created_once(with_orders: tuple[Project, str]) -> None:
    project, script = with_orders
    assert project.apply(script) == "APPLY: 3 created, 0 changed, 0 kept"
    assert project.apply(script) == "APPLY: 0 created, 0 changed, 3 kept"


def test_the_plan_of_a_pipeline_tells_columns_topics_schemas_and_missing_docs(
    with_orders: tuple[Project, str],
) -> None:
    project, script = with_orders
    source, view, sink = (str(row[3]) for row in project.plan(script))
    assert "columns id bigint not null, item text not null" in source
    assert "without docs: id" in source
    assert "columns id bigint not null, item text not null" in view
    topic = next(name for name in project.sql.topics)
    assert f'creates topic "{topic}-big" with 1 partition' in " ".join(sink.split())
    assert f'registers a schema for subject "{topic}-big-value"' in " ".join(sink.split())
    assert f"{topic}-big" not in project.sql.topics


def test_a_source_stays_as_it_is_when_its_registry_has_a_newer_schema(
    with_orders: tuple[Project, str],
) -> None:
    project, script = with_orders
    project.apply(script)
    topic = next(name for name in project.sql.topics)
    project.sql.subject(f"{topic}-value", LATER)
    assert project.actions(script) == ["keep", "keep", "keep"]


def test_what_is_kept_is_not_asked_for_outside(with_orders: tuple[Project, str]) -> None:
    project, script = with_orders
    project.apply(script)
    project.sql.topics.clear()
    assert project.apply(script) == "APPLY: 0 created, 0 changed, 3 kept"


def test_objects_that_the_script_does_not_name_are_left_alone(project: Project) -> None:
    project.apply(f"{TYPE}; {VIEW}")
    project.apply("CREATE VIEW w AS SELECT a FROM v")
    assert {o.name for o in project.sql.store.load().of_kind(Kind.VIEW, Kind.TYPE)} == {"money", "v", "w"}


@pytest.mark.parametrize(
    "other",
    [
        "create   view V as\nselect 1 AS a, -- the first\n 'x' as B",
        "CREATE VIEW public.v AS SELECT 1 AS a, 'x' AS b",
        "CREATE VIEW headgate.public.\"v\" AS SELECT 1 AS a, 'x' AS b",
        "CREATE OR REPLACE VIEW v AS SELECT 1 AS a, 'x' AS b",
        "CREATE VIEW IF NOT EXISTS v AS SELECT 1 AS a, 'x' AS b;;",
    ],
)
def test_layout_case_and_qualification_make_no_difference(project: Project, other: str) -> None:
    project.apply(VIEW)
    assert project.actions(other) == ["keep"]


def test_options_may_stand_in_any_order_and_references_be_qualified(with_orders: tuple[Project, str]) -> None:
    project, script = with_orders
    project.apply(script)
    qualified = script.replace("CONNECTION kafka", "CONNECTION public.KAFKA").replace("FROM big", "FROM public.big")
    assert project.actions(qualified) == ["keep", "keep", "keep"]


def test_a_sink_without_a_name_is_found_again(with_orders: tuple[Project, str]) -> None:
    project, script = with_orders
    unnamed = script.replace("CREATE SINK bigs FROM", "CREATE SINK FROM")
    project.apply(unnamed)
    assert project.apply(unnamed) == "APPLY: 0 created, 0 changed, 3 kept"


# changes


def test_a_view_with_another_query_is_replaced_and_keeps_its_id(project: Project) -> None:
    project.apply(VIEW)
    before = next(project.sql.store.load().of_kind(Kind.VIEW))
    ((_, _, action, detail),) = project.plan("CREATE VIEW v AS SELECT 1 AS a, 2 AS c")
    assert action == "change"
    assert str(detail).splitlines() == [
        "another query",
        "adds column c integer not null",
        "takes column b away",
    ]
    assert project.apply("CREATE VIEW v AS SELECT 1 AS a, 2 AS c") == "APPLY: 0 created, 1 changed, 0 kept"
    after = next(project.sql.store.load().of_kind(Kind.VIEW))
    assert (after.id, [c.name for c in after.columns]) == (before.id, ["a", "c"])


def test_a_comment_is_changed_taken_away_and_kept(project: Project) -> None:
    project.apply(f"{VIEW}; COMMENT ON VIEW v IS 'one'")
    assert project.actions("COMMENT ON VIEW v IS 'two'") == ["change"]
    assert project.actions("COMMENT ON VIEW v IS NULL") == ["change"]
    project.apply("COMMENT ON VIEW v IS NULL")
    assert project.actions("COMMENT ON VIEW v IS NULL") == ["keep"]


def test_a_secret_is_compared_by_its_value_which_is_never_told(project: Project) -> None:
    project.apply("CREATE SECRET s AS 'hunter2'; CREATE SECRET e FROM ENV 'PASSWORD'")
    assert project.actions("CREATE SECRET s AS 'hunter2'; CREATE SECRET e FROM ENV 'PASSWORD'") == [
        "keep",
        "keep",
    ]
    state = project.desired("CREATE SECRET s AS 'hunter3'; CREATE SECRET e FROM FILE 'f'")
    assert [item.action for item in state.items] == ["change", "change"]
    assert all(isinstance(statement, AlterSecret) for statement in state.statements)
    assert not any("hunter" in item.detail for item in state.items)


def test_the_state_of_a_task_is_desired_too(with_orders: tuple[Project, str]) -> None:
    project, script = with_orders
    project.apply(script)
    paused = f"{script} ALTER SINK bigs PAUSE"
    assert project.actions(paused) == ["keep", "keep", "keep", "change"]
    project.apply(paused)
    assert set(project.sql.store.load().desired.values()) == {DesiredTaskState.PAUSED}
    assert project.actions(paused) == ["keep"] * 4


def test_a_new_schema_and_what_is_made_in_it_come_in_one_script(project: Project) -> None:
    script = f"{VIEW}; CREATE SCHEMA s; SET search_path = s, public; CREATE VIEW v AS SELECT a FROM public.v"
    assert [row[0] for row in project.plan(script)] == ["v", "s", "s.v"]
    assert project.apply(script) == "APPLY: 3 created, 0 changed, 0 kept"
    assert project.apply(script) == "APPLY: 0 created, 0 changed, 3 kept"


# what cannot be


@pytest.mark.parametrize(
    ("there", "wanted", "kind", "parts"),
    [
        (TYPE, TYPE.replace("10,2", "12,2"), "type", ("definition",)),
        (
            "CREATE CONNECTION c TO KAFKA (BROKER 'a:1') WITH (VALIDATE = false)",
            "CREATE CONNECTION c TO KAFKA (BROKER 'b:1') WITH (VALIDATE = false)",
            "connection",
            ("options",),
        ),
    ],
)
def test_what_no_statement_alters_is_an_error_that_says_what_to_write(
    project: Project, there: str, wanted: str, kind: str, parts: tuple[str, ...]
) -> None:
    project.apply(there)
    with pytest.raises(ObjectDiffers) as raised:
        project.plan(f"{VIEW};\n{wanted}")
    assert (raised.value.kind, raised.value.parts) == (kind, parts)
    assert f"DROP {kind.upper()} {raised.value.name};" in str(raised.value.hint())
    assert raised.value.diagnostic(f"{VIEW};\n{wanted}").line == 2


def test_a_sink_to_another_topic_differs(with_orders: tuple[Project, str]) -> None:
    project, script = with_orders
    project.apply(script)
    with pytest.raises(ObjectDiffers) as raised:
        project.plan(script.replace("-big'", "-other'"))
    assert raised.value.parts == ("topic or connection",)


def test_if_not_exists_leaves_what_differs_and_says_so(project: Project) -> None:
    project.apply(TYPE)
    ((_, _, action, detail),) = project.plan(TYPE.replace("TYPE", "TYPE IF NOT EXISTS").replace("10,2", "12,2"))
    assert action == "keep"
    assert "differs in definition" in " ".join(str(detail).split())


@pytest.mark.parametrize(
    "statement",
    ["DROP VIEW v", "SELECT 1", "SHOW VIEWS", "DESCRIBE v", "EXPLAIN SELECT 1", "ALTER VIEW v RENAME TO w"],
)
def test_a_statement_that_only_does_something_is_no_desired_state(project: Project, statement: str) -> None:
    with pytest.raises(NotDesiredState):
        project.plan(f"{VIEW}; {statement}")


def test_nothing_is_done_if_one_statement_cannot_be(project: Project) -> None:
    version = project.sql.version
    with pytest.raises(HeadgateError):
        project.apply(f"{VIEW}; CREATE VIEW w AS SELECT nosuch FROM v")
    assert project.sql.version == version


def test_an_empty_script_asks_for_nothing(project: Project) -> None:
    assert project.apply(" -- nothing\n;") == "APPLY: 0 created, 0 changed, 0 kept"


# places


def test_an_error_behind_a_replaced_view_points_at_the_script_as_written(project: Project) -> None:
    project.apply(VIEW)
    script = "CREATE VIEW v AS SELECT 2 AS a;\nCREATE VIEW w AS SELECT a FROM nosuch"
    with pytest.raises(HeadgateError) as raised:
        project.plan(script)
    told = raised.value.diagnostic(script)
    assert (told.line, told.column) == (2, script.split("\n")[1].index("nosuch") + 1)

"""Levels and modes, and laws under any history of registering and deleting."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

import pytest
from hypothesis import settings, strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from headgate.registry.schemas import Schema
from headgate.registry.server.errors import Refusal
from headgate.registry.server.rules import (
    PostedSchema,
    Registration,
    check_level,
    delete_subject,
    delete_version,
    look_up,
)
from headgate.registry.server.store import LATEST, Store, Visibility
from headgate.schema.written import CompatibilityLevel
from tests.registry.running import RegistryApi, avro

pytestmark = pytest.mark.unit


def test_the_level_is_backward_until_it_is_set(api: RegistryApi) -> None:
    assert api.ok("GET", "/config") == {"compatibilityLevel": "BACKWARD"}
    assert api.ok("PUT", "/config", {"compatibility": "full_transitive"}) == {"compatibility": "FULL_TRANSITIVE"}
    assert api.ok("GET", "/config") == {"compatibilityLevel": "FULL_TRANSITIVE"}
    assert api.ok("DELETE", "/config") == {"compatibilityLevel": "FULL_TRANSITIVE"}
    assert api.ok("GET", "/config") == {"compatibilityLevel": "BACKWARD"}


def test_a_subject_has_the_level_of_the_registry_until_it_has_its_own(api: RegistryApi) -> None:
    assert api.refused("GET", "/config/a") == (404, 40408)
    assert api.ok("GET", "/config/a?defaultToGlobal=true") == {"compatibilityLevel": "BACKWARD"}
    api.ok("PUT", "/config/a", {"compatibility": "NONE"})
    assert api.ok("GET", "/config/a") == {"compatibilityLevel": "NONE"}
    assert api.ok("GET", "/config") == {"compatibilityLevel": "BACKWARD"}
    assert api.ok("DELETE", "/config/a") == {"compatibilityLevel": "NONE"}
    assert api.refused("DELETE", "/config/a") == (404, 40401)


@pytest.mark.parametrize("body", [{"compatibility": "UP"}, {"compatibility": ""}])
def test_what_is_no_level_is_refused(api: RegistryApi, body: dict[str, str]) -> None:
    assert api.refused("PUT", "/config", body) == (422, 42203)


@pytest.mark.parametrize("body", [{"compatibility": 1}, {"normalize": "yes"}])
def test_settings_of_a_wrong_type_are_refused(api: RegistryApi, body: dict[str, object]) -> None:
    assert api.refused("PUT", "/config", body) == (400, 400)


def test_settings_for_data_contracts_are_refused_and_others_let_through(api: RegistryApi) -> None:
    contracts = {"compatibility": "FULL", "defaultRuleSet": {"domainRules": [{}]}}
    assert api.refused("PUT", "/config", contracts) == (422, 42201)
    assert api.ok("GET", "/config") == {"compatibilityLevel": "BACKWARD"}
    api.ok("PUT", "/config", {"compatibility": "FULL", "alias": "a", "compatibilityGroup": "g"})
    assert api.ok("GET", "/config") == {"compatibilityLevel": "FULL"}


def test_a_subject_set_to_normalize_does_so_without_being_asked(api: RegistryApi) -> None:
    assert api.ok("PUT", "/config/j", {"normalize": True}) == {"normalize": True}
    assert api.ok("GET", "/config/j?defaultToGlobal=true") == {
        "compatibilityLevel": "BACKWARD",
        "normalize": True,
    }
    one = {"schemaType": "JSON", "schema": '{"type": "object", "title": "t"}'}
    two = {"schemaType": "JSON", "schema": '{"title": "t", "type": "object"}'}
    assert api.register("j", one) == api.register("j", two)
    assert json.loads(api.ok("GET", "/subjects/j/versions/1")["schema"]) == {"type": "object", "title": "t"}
    assert api.register("k", one) != api.register("k", two)


def test_setting_one_thing_keeps_the_other(api: RegistryApi) -> None:
    api.ok("PUT", "/config/a", {"normalize": True})
    api.ok("PUT", "/config/a", {"compatibility": "FORWARD"})
    assert api.ok("GET", "/config/a") == {"compatibilityLevel": "FORWARD", "normalize": True}


def test_the_mode_is_readwrite_until_it_is_set(api: RegistryApi) -> None:
    assert api.ok("GET", "/mode") == {"mode": "READWRITE"}
    assert api.refused("GET", "/mode/a") == (404, 40409)
    assert api.ok("GET", "/mode/a?defaultToGlobal=true") == {"mode": "READWRITE"}
    assert api.ok("PUT", "/mode/a", {"mode": "readonly"}) == {"mode": "READONLY"}
    assert api.ok("GET", "/mode/a") == {"mode": "READONLY"}
    assert api.ok("DELETE", "/mode/a") == {"mode": "READONLY"}
    assert api.refused("DELETE", "/mode/a") == (404, 40401)
    assert api.refused("PUT", "/mode", {"mode": "SLOW"}) == (422, 42204)
    assert api.refused("PUT", "/mode", {}) == (422, 42204)
    assert api.refused("PUT", "/mode/a", {"mode": "READONLY_OVERRIDE"}) == (422, 42204)


def test_a_read_only_subject_changes_in_no_way(api: RegistryApi) -> None:
    api.register("a", avro("x"))
    api.ok("PUT", "/mode/a", {"mode": "READONLY"})
    assert api.refused("POST", "/subjects/a/versions", avro("x", "y")) == (422, 42205)
    assert api.refused("DELETE", "/subjects/a/versions/1") == (422, 42205)
    assert api.refused("DELETE", "/subjects/a") == (422, 42205)
    assert api.refused("PUT", "/config/a", {"compatibility": "NONE"}) == (422, 42205)
    assert api.ok("GET", "/subjects/a/versions/1")["id"] == 1
    assert api.ok("POST", "/subjects/a", avro("x"))["id"] == 1
    api.register("b", avro("x"))


def test_a_subject_may_stay_writable_unless_the_registry_overrides_it(api: RegistryApi) -> None:
    api.ok("PUT", "/mode", {"mode": "READONLY"})
    api.ok("PUT", "/mode/a", {"mode": "READWRITE"})
    api.register("a", avro("x"))
    assert api.refused("POST", "/subjects/b/versions", avro("x")) == (422, 42205)
    api.ok("PUT", "/mode", {"mode": "READONLY_OVERRIDE"})
    assert api.refused("POST", "/subjects/a/versions", avro("x", "y")) == (422, 42205)


def test_import_takes_ids_and_versions_as_they_come(api: RegistryApi) -> None:
    api.ok("PUT", "/mode/a", {"mode": "IMPORT"})
    assert api.register("a", {**avro("x"), "id": 100, "version": 7}) == 100
    assert api.register("a", {**avro("x", "y", defaults=False), "id": 42, "version": 3}) == 42
    assert api.ok("GET", "/subjects/a/versions") == [3, 7]
    api.ok("PUT", "/mode/a", {"mode": "READWRITE"})
    assert api.register("b", avro("z")) == 101


def test_import_is_repeatable_but_does_not_overwrite(api: RegistryApi) -> None:
    api.ok("PUT", "/mode", {"mode": "IMPORT"})
    once = {**avro("x"), "id": 5, "version": 1}
    assert api.register("a", once) == api.register("a", once) == 5
    assert api.refused("POST", "/subjects/a/versions", {**avro("y"), "id": 5, "version": 2}) == (422, 42207)
    assert api.refused("POST", "/subjects/a/versions", {**avro("y"), "id": 6, "version": 1}) == (422, 42205)
    assert api.refused("POST", "/subjects/a/versions", avro("y")) == (422, 42205)
    assert api.ok("GET", "/subjects/a/versions") == [1]


def test_an_id_of_ones_own_needs_import_mode(api: RegistryApi) -> None:
    assert api.refused("POST", "/subjects/a/versions", {**avro("x"), "id": 9}) == (422, 42205)
    assert api.register("a", {**avro("x"), "id": -1, "version": 0}) == 1
    assert api.register("a", {**avro("x", "y"), "version": 2}) == 2
    assert api.refused("POST", "/subjects/a/versions", {**avro("z"), "version": 9}) == (422, 42201)


def test_import_needs_an_empty_subject_unless_it_is_forced(api: RegistryApi) -> None:
    api.register("a", avro("x"))
    assert api.refused("PUT", "/mode/a", {"mode": "IMPORT"}) == (422, 42205)
    assert api.refused("PUT", "/mode", {"mode": "IMPORT"}) == (422, 42205)
    assert api.ok("PUT", "/mode/a?force=true", {"mode": "IMPORT"}) == {"mode": "IMPORT"}
    assert api.ok("GET", "/subjects/a/versions") == [1]


def test_import_clears_what_was_softly_deleted(api: RegistryApi) -> None:
    api.register("a", avro("x"))
    api.ok("DELETE", "/subjects/a")
    api.ok("PUT", "/mode/a", {"mode": "IMPORT"})
    assert api.ok("GET", "/subjects?deleted=true") == []
    assert api.ok("GET", "/mode/a") == {"mode": "IMPORT"}


def test_ids_end_where_the_frame_ends(api: RegistryApi) -> None:
    api.ok("PUT", "/mode/a", {"mode": "IMPORT"})
    last = 2**31 - 1
    assert api.register("a", {**avro("x"), "id": last, "version": 1}) == last
    assert api.refused("POST", "/subjects/b/versions", avro("y")) == (500, 50001)
    assert api.register("b", avro("x")) == last
    assert api.refused("POST", "/subjects/a/versions", {**avro("y"), "id": 2**31}) == (400, 400)


subjects = st.sampled_from(["a", "b"])
schemas = st.sampled_from([Schema(f'"{name}"') for name in ("int", "long", "string", "bytes")])
versions = st.sampled_from([LATEST, 1, 2, 3, 4])


class History(RuleBasedStateMachine):
    """Remembers what ids and numbers meant, and never lets them mean anything else."""

    def __init__(self) -> None:
        super().__init__()
        self._folder = tempfile.TemporaryDirectory()
        self._store = Store(Path(self._folder.name))
        self._registration = Registration(check_level)
        self._meaning: dict[int, str] = {}
        with self._store.writing() as tables:
            tables.put_config(None, CompatibilityLevel.NONE, None)

    def teardown(self) -> None:
        self._store.close()
        self._folder.cleanup()

    @rule(subject=subjects, schema=schemas)
    def register(self, subject: str, schema: Schema) -> None:
        with self._store.writing() as tables:
            before = tables.latest(subject, Visibility.ALL)
            known = {v.version for v in tables.versions(subject, Visibility.LIVE) if v.schema == schema}
            made = self._registration.register(tables, subject, PostedSchema(schema), normalize=False)
        assert self._meaning.setdefault(made.schema_id, schema.text) == schema.text
        assert made.version in known if known else before is None or made.version > before.version

    @rule(subject=subjects, version=versions, permanent=st.booleans())
    def delete_version(self, subject: str, version: int, permanent: bool) -> None:
        try:
            with self._store.writing() as tables:
                deleted = delete_version(tables, subject, version, permanent=permanent)
        except Refusal:
            return
        with self._store.reading() as tables:
            found = tables.version(subject, deleted, Visibility.ALL)
        assert (found is None) is permanent
        assert found is None or found.deleted

    @rule(subject=subjects, permanent=st.booleans())
    def delete_subject(self, subject: str, permanent: bool) -> None:
        try:
            with self._store.writing() as tables:
                delete_subject(tables, subject, permanent=permanent)
        except Refusal:
            return
        with self._store.reading() as tables:
            assert tables.latest(subject, Visibility.ALL if permanent else Visibility.LIVE) is None

    @rule(subject=subjects, schema=schemas)
    def look_up(self, subject: str, schema: Schema) -> None:
        with self._store.reading() as tables:
            live = [v.schema for v in tables.versions(subject, Visibility.LIVE)]
            try:
                found = look_up(tables, subject, schema, normalize=False, visibility=Visibility.LIVE)
            except Refusal:
                assert schema not in live
            else:
                assert found.schema == schema

    @invariant()
    def an_id_means_one_text_and_is_readable_while_a_version_has_it(self) -> None:
        with self._store.reading() as tables:
            kept = {v.schema_id: v.schema.text for v in tables.all_versions("", Visibility.ALL)}
            for schema_id, text in self._meaning.items():
                found = tables.schema(schema_id)
                assert (found.text if found is not None else None) == kept.get(schema_id)
                assert kept.get(schema_id) in (None, text)

    @invariant()
    def no_live_schema_is_twice_in_a_subject(self) -> None:
        with self._store.reading() as tables:
            for subject in ("a", "b"):
                live = [v.schema_id for v in tables.versions(subject, Visibility.LIVE)]
                assert len(live) == len(set(live))


TestHistory = History.TestCase
TestHistory.settings = settings(max_examples=25, stateful_step_count=20, deadline=None)

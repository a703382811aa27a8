"""Laws of the registry under any history of registering and deleting."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
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

pytestmark = pytest.mark.unit

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
            tables.settings.put_config(None, CompatibilityLevel.NONE, None)

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

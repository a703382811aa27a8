"""Laws of the registry under any history of registering and deleting."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from headgate.registry.server.rules import PostedSchema, Registration, check_level
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from headgate.registry.schemas import Schema
from headgate.registry.server import rules as deletion
from headgate.registry.server import rules as registration
from headgate.registry.server.errors import Refusal
from headgate.registry.server.store import LATEST, ParsedVersions, Store, Visibility
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
        self._registrar = Registration(check_level, ParsedVersions())
        self._meaning: dict[int, str] = {}
        with self._store.writing() as rows:
            rows.settings.put_config(None, CompatibilityLevel.NONE, None)

    def teardown(self) -> None:
        self._store.close()
        self._folder.cleanup()

    @rule(subject=subjects, schema=schemas)
    def register(self, subject: str, schema: Schema) -> None:
        with self._store.writing() as rows:
            before = rows.latest(subject, Visibility.ALL)
            known = {v.version for v in rows.versions(subject, Visibility.LIVE) if v.schema == schema}
            made = self._registrar.register(rows, subject, PostedSchema(schema), normalize=False)
        assert self._meaning.setdefault(made.schema_id, schema.text) == schema.text
        assert made.version in known if known else before is None or made.version > before.version

    @rule(subject=subjects, version=versions, permanent=st.booleans())
    def delete_version(self, subject: str, version: int, permanent: bool) -> None:
        try:
            with self._store.writing() as rows:
                deleted = deletion.delete_version(rows, subject, version, permanent=permanent)
        except Refusal:
            return
        with self._store.reading() as rows:
            found = rows.version(subject, deleted, Visibility.ALL)
        assert (found is None) is permanent
        assert found is None or found.deleted

    @rule(subject=subjects, permanent=st.booleans())
    def delete_subject(self, subject: str, permanent: bool) -> None:
        try:
            with self._store.writing() as rows:
                deletion.delete_subject(rows, subject, permanent=permanent)
        except Refusal:
            return
        with self._store.reading() as rows:
            assert rows.latest(subject, Visibility.ALL if permanent else Visibility.LIVE) is None

    @rule(subject=subjects, schema=schemas)
    def look_up(self, subject: str, schema: Schema) -> None:
        with self._store.reading() as rows:
            live = [v.schema for v in rows.versions(subject, Visibility.LIVE)]
            try:
                found = registration.look_up(rows, subject, schema, normalize=False, show=Visibility.LIVE)
            except Refusal:
                assert schema not in live
            else:
                assert found.schema == schema

    @invariant()
    def an_id_means_one_text_and_is_readable_while_a_version_has_it(self) -> None:
        with self._store.reading() as rows:
            kept = {v.schema_id: v.schema.text for v in rows.all_versions("", Visibility.ALL)}
            for schema_id, text in self._meaning.items():
                found = rows.schema(schema_id)
                assert (found.text if found is not None else None) == kept.get(schema_id)
                assert kept.get(schema_id) in (None, text)

    @invariant()
    def no_live_schema_is_twice_in_a_subject(self) -> None:
        with self._store.reading() as rows:
            for subject in ("a", "b"):
                live = [v.schema_id for v in rows.versions(subject, Visibility.LIVE)]
                assert len(live) == len(set(live))


TestHistory = History.TestCase
TestHistory.settings = settings(max_examples=25, stateful_step_count=20, deadline=None)

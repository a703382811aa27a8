"""The schemas of one side of a topic: which ids its records may have, and what those newer than the frozen one change."""

from __future__ import annotations

from collections.abc import Callable

from headgate.plan.definitions import SchemaChangePolicy
from headgate.registry.client import RegistryClient
from headgate.registry.errors import SchemaIdNotFound, SubjectDeleted, SubjectNotFound
from headgate.registry.wire import MAX_ID
from headgate.runtime.formats.side import WriterSchemas
from headgate.schema.encodings import Encoding, SchemaEncoding
from headgate.schema.evolve.arriving import adds_to, breaking_fields, describe_changes, is_readable
from headgate.schema.written import WrittenSchema

MOST_AGAIN = 5  # ids which the registry did not know that one look asks for again


class SideSchemas:
    """Asks the registry once for each schema. Under FOLLOW and HALT an id of a later version than the frozen schema's,
    or of none, may change what the side gives."""

    def __init__(
        self,
        side: Encoding | None,
        policy: SchemaChangePolicy,
        client: Callable[[], RegistryClient | None],
        subject: str,
    ) -> None:
        self.side = side if isinstance(side, SchemaEncoding) and side.framed else None
        self._policy = policy
        self._client = client() if self.side is not None else None
        self._subject = subject
        self._versions: dict[int, int] = {}  # version -> id
        self._known: dict[int, WrittenSchema] = {}
        self._refused: dict[int, None] = {}  # in the order in which they were asked for
        for schema in self.side.schemas if self.side is not None else ():
            if schema.id:
                self._known[schema.id] = schema

    # what is there

    @property
    def asks(self) -> bool:
        """Whether its records name schemas of a registry."""
        return self.side is not None and self._client is not None

    def ask_again(self) -> None:
        """Forget which ids the registry did not know: it may know them now."""
        self._refused.clear()

    def refresh(self) -> None:
        """Look at the subject's versions: every id that records up to now can hold is known after it."""
        if self.side is None or self._client is None:
            return
        self._ask_for_refused()
        try:
            versions = self._client.versions(self._subject)
        except (SubjectNotFound, SubjectDeleted):
            return
        for version in versions:
            if version not in self._versions:
                schema_id = self._client.version(self._subject, version).schema_id
                self._refused.pop(schema_id, None)
                self.learn(schema_id)
                self._versions[version] = schema_id

    def _ask_for_refused(self) -> None:
        """An id may be registered after the first record that names it, also under another subject."""
        for schema_id in [*self._refused][:MOST_AGAIN]:
            del self._refused[schema_id]
            self.learn(schema_id)

    def learn(self, schema_id: int) -> None:
        """Take up a schema that a record names, also one that no version of the subject has."""
        if self.side is None or self._client is None or schema_id in {*self._known, *self._refused}:
            return
        if schema_id > MAX_ID:  # a registry would not even take it for an id
            self._refused[schema_id] = None
            return
        try:
            self._known[schema_id] = self._client.written(self._client.schema_by_id(schema_id), schema_id)
        except SchemaIdNotFound:
            self._refused[schema_id] = None

    def schema(self, schema_id: int) -> WrittenSchema | None:
        return self._known.get(schema_id)

    # what they change

    def writers(self) -> WriterSchemas:
        if self.side is None or self._policy == "PIN":
            return WriterSchemas(dict(self._known), frozenset(self._refused))
        newer = [id_ for id_ in self._newer() if is_readable(self.side, self._known[id_])]
        broken = {id_: fields for id_ in newer if (fields := breaking_fields(self.side, self._known[id_]))}
        growing = {id_ for id_ in newer if id_ not in broken and adds_to(self.side, self._known[id_])}
        halting = {*broken, *growing} if self._policy == "HALT" else set()
        halting |= {*self._newer()} - {*newer}  # nobody can follow those
        return WriterSchemas(
            dict(self._known), frozenset(self._refused), frozenset(newer), broken, frozenset(halting)
        )

    def growing(self) -> list[WrittenSchema]:
        """The schemas that FOLLOW takes up once a record has them, in the order of their versions."""
        if self.side is None or self._policy != "FOLLOW":
            return []
        side = self.side
        new = [schema for id_ in self._newer() if is_readable(side, schema := self._known[id_])]
        return [schema for schema in new if not breaking_fields(side, schema) and adds_to(side, schema)]

    def changed(self) -> list[WrittenSchema]:
        """The schemas that change what the side gives, whether it can follow or not. Raises if there is only one that has
        no type at all."""
        if self.side is None:
            return []
        side = self.side
        new = [self._known[id_] for id_ in self._newer()]
        some = [s for s in new if is_readable(side, s)]
        changed = [schema for schema in some if breaking_fields(side, schema) or adds_to(side, schema)]
        return changed or [schema for schema in new if breaking_fields(side, schema)]

    def describe(self, schema_id: int) -> tuple[str, ...]:
        """What an id changes, in words."""
        schema = self._known.get(schema_id)
        return () if schema is None or self.side is None else describe_changes(self.side, schema)

    def _newer(self) -> list[int]:
        """Ids that are not of the frozen schema's version or an earlier one."""
        assert self.side is not None
        frozen = [v for v, id_ in self._versions.items() if id_ == self.side.first.id]
        past = {id_ for v, id_ in self._versions.items() if frozen and v <= min(frozen)}
        past |= {self.side.first.id or 0}
        order = {id_: version for version, id_ in sorted(self._versions.items())}
        newer = [id_ for id_ in self._known if id_ not in past]
        return sorted(newer, key=lambda id_: (order.get(id_, len(order) + 1), id_))

"""The schemas of one side of a topic: which ids its records may have, and what those newer than the frozen one change."""

from __future__ import annotations

from collections.abc import Callable

from headgate.plan.definitions import SchemaChangePolicy
from headgate.registry.client import RegistryClient
from headgate.registry.errors import SchemaIdNotFound, SubjectDeleted, SubjectNotFound
from headgate.registry.wire import MAX_ID
from headgate.runtime.formats.side import WriterSchemas
from headgate.schema.encodings import Encoding, SchemaEncoding
from headgate.schema.evolve.verdicts import ArrivingSchema, Target, arriving
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
        target: Target = Target.READER,
    ) -> None:
        self.side = side if isinstance(side, SchemaEncoding) and side.framed else None
        self._policy = policy
        self._target = target
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
        judged = self._judged()
        newer = {id_ for id_, one in judged.items() if one.is_readable}
        broken = {id_: judged[id_].breaking_fields() for id_ in newer if judged[id_].breaks}
        halting = {id_ for id_ in newer if judged[id_].grows or judged[id_].breaks} if self._policy == "HALT" else set()
        halting |= judged.keys() - newer  # nobody can follow those
        if self._target is Target.KEY:  # another key concerns every row
            halting |= broken.keys()
        return WriterSchemas(dict(self._known), frozenset(self._refused), frozenset(newer), broken, frozenset(halting))

    def growing(self) -> list[WrittenSchema]:
        """The schemas that FOLLOW takes up once a record has them, in the order of their versions."""
        if self.side is None or self._policy != "FOLLOW":
            return []
        return [self._known[id_] for id_, one in self._judged().items() if one.grows]

    def changed(self) -> list[WrittenSchema]:
        """The schemas that change what the side gives, whether it can follow or not. Raises if there is only one that has
        no type at all."""
        if self.side is None:
            return []
        judged = self._judged()
        if self._target is Target.KEY:  # another key cannot be accepted
            return [self._known[id_] for id_, one in judged.items() if one.grows]
        changed = [self._known[id_] for id_, one in judged.items() if one.grows or one.breaks]
        unreadable = [one.error for one in judged.values() if one.error is not None]
        if unreadable and not changed:
            raise unreadable[0]
        return changed

    def describe(self, schema_id: int) -> tuple[str, ...]:
        """What an id changes, in words."""
        schema = self._known.get(schema_id)
        return () if schema is None or self.side is None else self._judge(schema).describe()

    def _judge(self, schema: WrittenSchema) -> ArrivingSchema:
        assert self.side is not None
        return arriving(self.side, schema, self._target)

    def _judged(self) -> dict[int, ArrivingSchema]:
        """What each newer schema changes, by id."""
        return {id_: self._judge(self._known[id_]) for id_ in self._newer()}

    def _newer(self) -> list[int]:
        """Ids that are not of the frozen schema's version or an earlier one."""
        assert self.side is not None
        frozen = [v for v, id_ in self._versions.items() if id_ == self.side.first.id]
        past = {id_ for v, id_ in self._versions.items() if frozen and v <= min(frozen)}
        past |= {self.side.first.id or 0}
        order = {id_: version for version, id_ in sorted(self._versions.items())}
        newer = [id_ for id_ in self._known if id_ not in past]
        return sorted(newer, key=lambda id_: (order.get(id_, len(order) + 1), id_))

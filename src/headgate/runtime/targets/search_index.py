"""The index of a materialization: how it is made, who may write it, and how its fields get wider.

Readers use the alias `i`. The documents are in the index `i-v1`, later `i-v2` and so on. Writers use the alias
`i--w<epoch>`, and only one of these exists: an engine that begins removes the older ones and adds its own in one call, and
every bulk insists on its alias. An epoch inside the versions of documents would not fence a writer off from documents that
the new one does not touch: with one shared alias, deleted documents came back.

A field gets a wider type by a new index, in this order:

    1. create the new index                   a crash leaves an empty index, which the next attempt removes
    2. move the write alias to it             from here on nothing is written to the old one
    3. refresh the old one, copy it           a copy never replaces what was written meanwhile, because its versions are older
    4. refresh the new one, swap `i`          one call that also removes the old index

After a crash in 3 or 4, the write alias is on another index than `i`; then 3 and 4 are done again. Each step that is left
out or comes in another order lost documents, or brought deleted ones back. Readers see the old index until the swap.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from headgate.connectors.elasticsearch import Index, SearchClient, Server
from headgate.connectors.errors import SearchRefused
from headgate.plan.indexes import Mapped, narrowed_types, wanted_mapping
from headgate.plan.target_definitions import IndexDefinition
from headgate.runtime.errors import Fenced
from headgate.runtime.targets import errors
from headgate.runtime.targets.search_bulk import BulkWriter, Conflict, Item, index_lines
from headgate.runtime.targets.search_convert import converter
from headgate.runtime.targets.search_mapping import (
    Changed,
    difference,
    field_limit,
    merged,
    merged_templates,
)
from headgate.schema.parse import parse_type
from headgate.schema.types import Record
from headgate.schema.values import dumps

# An index forgets the versions of deleted documents after this time. It must be longer than a copy takes.
GC_DELETES = "6h"
# Versions of a task that takes an index over begin above all that anybody has written. The number is far above 2^30 batches.
VERSION_STEP = 1 << 30
RELEASED = "released"  # in `_meta.headgate` of an index whose materialization was dropped
ADOPTED = "adopted"  # there, whether the index may hold documents of somebody else


def _goes_on(point: str, number: int) -> None:
    """What happens at the steps of a widening, unless a test crashes there."""


@dataclass(frozen=True, slots=True)
class IndexState:
    """The indexes of one name. ``read`` is the one that readers see, ``write`` the one that is written."""

    all: Mapping[str, Index]
    read: Index | None
    write: Index | None


class SearchIndex:
    """The index of one materialization. ``task`` is the uuid of its task. Used by one thread at a time. ``on_notice`` is told what was
    done to the index."""

    def __init__(
        self,
        client: SearchClient,
        definition: IndexDefinition,
        task: str,
        on_notice: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._client = client
        self._on_notice = on_notice
        self._definition = definition
        self._name = definition.index
        self._task = task
        self._server: Server | None = None
        self._numbered = re.compile(re.escape(self._name) + r"-v(\d+)")
        self._writer = re.compile(re.escape(self._name) + r"--w(\d+)")
        self.epoch = 0
        self.base = 0  # versions of documents are this and the number of the batch
        self.adopted = False  # whether the index may hold documents of somebody else

    @property
    def alias(self) -> str:
        """The alias of this writer."""
        return f"{self._name}--w{self.epoch}"

    @property
    def wanted(self) -> Mapped:
        """The mapping for the fields as they are now, and who writes the index."""
        if self._server is None:
            self._server = self._client.check()
        mapping = wanted_mapping(self._definition, opensearch=self._server.is_opensearch)
        mapping["_meta"]["headgate"] |= {"task": self._task, "version": self.base, ADOPTED: self.adopted}
        return mapping

    # What is there

    def state(self) -> IndexState:
        described = self._client.describe(self._name, f"{self._name}-v*")
        found = {
            name: index
            for name, index in described.items()
            if name == self._name or self._numbered.fullmatch(name) or self._name in index.aliases
        }
        readable = [index for index in found.values() if self._name in (index.name, *index.aliases)]
        if len(readable) > 1:
            names = tuple(sorted(index.name for index in readable))
            raise errors.NameTakenByIndex(self._name, self._definition.name, names)
        written = [index for index in found.values() if self._epoch_of(index) is not None]
        read = readable[0] if readable else None
        return IndexState(found, read, max(written, key=self._number, default=read))

    def _epoch_of(self, index: Index) -> int | None:
        """The newest epoch that has a write alias on the index."""
        epochs = [int(found[1]) for alias in index.aliases if (found := self._writer.fullmatch(alias))]
        return max(epochs, default=None)

    def _number(self, index: Index) -> int:
        found = self._numbered.fullmatch(index.name)
        return int(found[1]) if found else 0

    def _held(self, state: IndexState) -> int:
        """The newest epoch that may write; 0 if none may."""
        return max((self._epoch_of(index) or 0 for index in state.all.values()), default=0)

    # Making it

    def check_free(self) -> None:
        """Raise if the materialization may not write the index. Nothing is changed."""
        read = self.state().read
        if read is not None and read.meta.get("task") != self._task:
            self._check_adoptable(read)

    def provision(self) -> None:
        """Make the index, or take over the one that is there. Does nothing if the index is this task's already."""
        state = self.state()
        if state.read is None:
            self._create(state)
        elif state.read.meta.get("task") != self._task:
            self._check_adoptable(state.read)
            if _is_free(state.read):
                self._replace(state.read, state)
            else:
                self._adopt(state.read)

    def _check_adoptable(self, index: Index) -> None:
        """The index that a dropped materialization has left is free, and its documents are written anew. One that was adopted holds those
        of others too. Without a key nobody knows which these are, so that it must be adopted again."""
        if _is_free(index):
            return
        released = bool(index.meta.get(RELEASED))
        if not self._definition.adopt and not (released and self._definition.merges):
            if index.meta.get("task") and not released:
                raise errors.IndexTaken(self._name, self._definition.name)
            raise errors.ForeignIndex(self._name, self._definition.name)
        changed = difference(index.mapping, self.wanted, foreign=True).changed
        if changed:
            texts = tuple(f'"{one.path}" is {one.held} there and {one.wanted} here' for one in changed)
            raise errors.IndexConflict(self._name, self._definition.name, texts)

    def _adopt(self, index: Index) -> None:
        """Become the writer of an index with documents of others. They have versions of their own, which the versions of this
        task must be above: otherwise a row could not replace the document with its `_id`."""
        self.adopted = True
        known = int(index.meta.get("version", 0))
        self.base = max(int(time.time()) * VERSION_STEP, known + VERSION_STEP)
        self._put_mapping(index)
        self._on_notice(f"Index {self._name} was adopted.")

    def _create(self, state: IndexState) -> None:
        wanted = self.wanted
        body = {"aliases": {self._name: {}}, "mappings": wanted, "settings": {"index": _settings(wanted, None)}}
        self._create_index(self._next_name(state), body)
        self._on_notice(f"Index {self._name} was created with {len(self._definition.fields)} fields.")

    def _replace(self, old: Index, state: IndexState, *, writers: bool = False) -> None:
        """Put an empty index in the place of one that a dropped materialization has left, or whose documents do not fit any
        more. ``writers`` says that this writer has begun."""
        self._remove_leftovers(state)
        name = self._next_name(state)
        wanted = self.wanted
        self._create_index(name, {"mappings": wanted, "settings": {"index": _settings(wanted, old)}})
        aliases = (self._name, self.alias) if writers else (self._name,)
        added: list[Mapped] = [{"add": {"index": name, "alias": alias}} for alias in aliases]
        self._change_aliases([{"remove_index": {"index": old.name}}, *added])
        self._on_notice(f"Index {self._name} was emptied, and all documents are written anew.")

    def _next_name(self, state: IndexState) -> str:
        return f"{self._name}-v{1 + max(map(self._number, state.all.values()), default=0)}"

    def _create_index(self, name: str, body: Mapped) -> None:
        """A repeated call finds the index that an earlier one has made, although its answer was lost."""
        try:
            self._client.call("PUT", f"/{name}", f'create index "{name}"', body)
        except SearchRefused as refused:
            if refused.kind != "resource_already_exists_exception":
                raise

    # Who writes it

    def begin(self, epoch: int) -> None:
        """Become the only writer. Raises Fenced if a larger epoch writes, and IndexGone if there is no index of this task."""
        state = self.state()
        read, write = self._both(state)
        if read.meta.get("task") != self._task:
            raise errors.IndexTaken(self._name, self._definition.name)
        if (held := self._held(state)) > epoch:
            raise self._fenced(held, epoch)
        self.epoch, self.base = epoch, int(read.meta.get("version", 0))
        self.adopted = bool(read.meta.get(ADOPTED, self._definition.adopt))
        old = [(i.name, a) for i in state.all.values() for a in i.aliases if self._writer.fullmatch(a)]
        actions: list[Mapped] = [{"remove": {"index": index, "alias": alias}} for index, alias in old]
        actions.append({"add": {"index": write.name, "alias": self.alias}})
        self._change_aliases(actions)
        # Somebody may have begun at the same moment, and neither has seen the other's alias. The larger epoch stays.
        if (held := self._held(self.state())) > epoch:
            self._change_aliases([{"remove": {"index": write.name, "alias": self.alias}}])
            raise self._fenced(held, epoch)

    def fenced(self) -> Exception:
        """Why a bulk found no alias of this writer, or a newer document."""
        state = self.state()
        if state.read is None:
            return errors.IndexGone(self._name, self._definition.name)
        return self._fenced(self._held(state), self.epoch)

    def _fenced(self, held: int, epoch: int) -> Fenced:
        return Fenced(f'index "{self._name}"', f'materialization "{self._definition.name}"', held, epoch)

    def _change_aliases(self, actions: list[Mapped]) -> None:
        self._client.call("POST", "/_aliases", f'change the aliases of index "{self._name}"', {"actions": actions})

    # Its fields

    def migrate(self, number: int, crash: Callable[[str, int], None] = _goes_on) -> None:
        """Give the index the fields that it lacks and the types that are wanted, before batch ``number`` is written. Goes on
        with a copy that a crash has interrupted."""
        state = self.state()
        read, write = self._both(state)
        if write.name != read.name:
            self._finish_widening(read, write, number, crash)
            state = self.state()
            _, write = self._both(state)
        found = difference(write.mapping, self.wanted, foreign=self._is_foreign(write))
        if found.changed and self._narrowed(write):
            self._replace(write, state, writers=True)
        elif found.changed:
            self._widen(write, state, number, crash)
        elif found.added or write.meta != self.wanted["_meta"]["headgate"]:
            self._put_mapping(write)
            if found.added:
                self._on_notice(f"Index {self._name} was changed: {', '.join(found.added)} added.")

    def narrowed(self) -> tuple[str, ...]:
        """The fields whose documents do not fit the wanted types, each with its types. They would have to be written anew."""
        _, write = self._both(self.state())
        changed = difference(write.mapping, self.wanted, foreign=self._is_foreign(write)).changed
        return self._narrowed(write) if changed else ()

    def refreshed(self) -> str:
        """The index that is written, in which searches find all that was written."""
        _, write = self._both(self.state())
        self._refresh(write.name)
        return write.name

    def _both(self, state: IndexState) -> tuple[Index, Index]:
        """The index that readers see and the one that is written. Raises IndexGone."""
        if state.read is None or state.write is None:
            raise errors.IndexGone(self._name, self._definition.name)
        return state.read, state.write

    def _narrowed(self, index: Index) -> tuple[str, ...]:
        if "type" not in index.meta:
            return ()
        old = parse_type(index.meta["type"])
        assert isinstance(old, Record), "the type of a document is a record"
        return narrowed_types(old, self._definition.document)

    def _is_foreign(self, index: Index) -> bool:
        """Whether somebody else has made the index: ours have numbers."""
        return self._numbered.fullmatch(index.name) is None

    def _put_mapping(self, index: Index) -> None:
        """Add fields and replace what `_meta` says of the materialization. A put replaces `_meta` and templates as a whole."""
        wanted = self.wanted
        body: Mapped = {"properties": difference(index.mapping, wanted, foreign=True).added}
        body["_meta"] = {**index.mapping.get("_meta", {}), "headgate": wanted["_meta"]["headgate"]}
        if templates := merged_templates(index.mapping, wanted):
            body["dynamic_templates"] = templates
        if limit := field_limit(merged(index.mapping, wanted), index.settings):
            what = f'change the settings of index "{index.name}"'
            self._client.call("PUT", f"/{index.name}/_settings", what, {"index.mapping.total_fields.limit": limit})
        self._change_mapping(index, body)

    def _change_mapping(self, index: Index, body: Mapped) -> None:
        self._client.call("PUT", f"/{index.name}/_mapping", f'change the mapping of index "{index.name}"', body)

    # Wider types

    def _widen(self, old: Index, state: IndexState, number: int, crash: Callable[[str, int], None]) -> None:
        self._remove_leftovers(state)
        name = self._next_name(state)
        mapping = merged(old.mapping, self.wanted)
        self._create_index(name, {"mappings": mapping, "settings": {"index": _settings(mapping, old)}})
        crash("widen_created", number)
        self._change_aliases(
            [{"remove": {"index": old.name, "alias": self.alias}}, {"add": {"index": name, "alias": self.alias}}]
        )
        crash("widen_moved", number)
        after = self.state()
        assert after.write is not None, "the write alias has just been moved to it"
        self._finish_widening(old, after.write, number, crash)

    def _remove_leftovers(self, state: IndexState) -> None:
        """Remove what attempts have left that ended before they had an alias."""
        for index in state.all.values():
            if not index.aliases and index.name != self._name and index.meta.get("task") == self._task:
                self._remove(index)

    def _remove(self, index: Index) -> None:
        self._client.call("DELETE", f"/{index.name}", f'remove index "{index.name}"', missing=True)

    def _finish_widening(self, old: Index, new: Index, number: int, crash: Callable[[str, int], None]) -> None:
        """Copy the old index and let readers see the new one."""
        self._refresh(old.name)
        changed = difference(old.mapping, new.mapping).changed
        if all(one.same_json for one in changed):
            self._reindex(old.name, new.name)
        else:
            self._copy(old, new, changed)
        crash("widen_copied", number)
        self._refresh(new.name)
        self._change_aliases([{"remove_index": {"index": old.name}}, {"add": {"index": new.name, "alias": self._name}}])
        crash("widen_swapped", number)
        said = ", ".join(f"{one.path} from {one.held} to {one.wanted}" for one in changed)
        self._on_notice(f"Index {self._name} was copied for wider types: {said}.")

    def _refresh(self, index: str) -> None:
        self._client.call("POST", f"/{index}/_refresh", f'refresh index "{index}"', {})

    def _reindex(self, old: str, new: str) -> None:
        """Let the server copy documents whose JSON stays as it is. A document that the new index has in a newer version is left
        as it is."""
        if stopped := self._client.reindex(old, new):
            raise self._widening_failed(f"The server stopped with {stopped}")

    def _copy(self, old: Index, new: Index, changed: tuple[Changed, ...]) -> None:
        """Copy documents through this process, with values of the new types: a number that becomes a text is a JSON string in
        the new documents, which the server alone would leave a number."""
        convert = converter(old.meta, new.meta, changed)

        def items() -> Iterator[Item]:
            for hit in self._client.documents(old.name):
                document = convert(dict(hit.source))
                yield Item(hit.id, index_lines(hit.id, hit.version, dumps(document).encode(), "external"))

        try:
            refused = BulkWriter(self._client, self.alias, may_exist=True).write(items())
        except Conflict as conflict:
            raise self.fenced() from conflict
        if refused:
            raise self._widening_failed(f"The new index refuses {len(refused)} documents: {refused[0].reason}")

    def _widening_failed(self, reason: str) -> errors.WideningFailed:
        return errors.WideningFailed(self._name, self._definition.name, reason)


def _is_free(index: Index) -> bool:
    """Whether all documents of the index are those of a materialization that was dropped."""
    return bool(index.meta.get(RELEASED)) and not index.meta.get(ADOPTED)


def release_index(client: SearchClient, name: str, task: str, *, drop: bool) -> None:
    """Give up the index of a task whose materialization is dropped: remove it, or leave it to readers and to the next
    materialization. Does nothing to an index of another task."""
    for index in client.describe(name, f"{name}-v*").values():
        is_left = index.meta.get(RELEASED) and name in (index.name, *index.aliases)
        if index.meta.get("task") != task and not is_left:
            continue
        if drop:
            client.call("DELETE", f"/{index.name}", f'remove index "{index.name}"', missing=True)
            continue
        writers = [alias for alias in index.aliases if alias.startswith(f"{name}--w")]
        actions = [{"remove": {"index": index.name, "alias": alias}} for alias in writers]
        if actions:
            client.call("POST", "/_aliases", f'change the aliases of index "{name}"', {"actions": actions})
        about = {**index.mapping["_meta"], "headgate": {**index.meta, RELEASED: True}}
        client.call("PUT", f"/{index.name}/_mapping", f'change the mapping of index "{index.name}"', {"_meta": about})


def _settings(mapping: Mapped, old: Index | None) -> dict[str, Any]:
    """The settings of a new index: as many shards and copies as the one that it replaces. Values are not coerced: otherwise a
    fraction would enter a field of whole numbers."""
    kept = {} if old is None else {name: old.settings[name] for name in ("number_of_shards", "number_of_replicas") if name in old.settings}  # fmt: skip
    limit = {"limit": field_limit(mapping)}
    return {"mapping": {"coerce": False, "total_fields": limit}, "gc_deletes": GC_DELETES, **kept}

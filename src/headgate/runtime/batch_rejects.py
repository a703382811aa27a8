"""What a batch has rejected: records that its inputs could not decode, and rows that its target did not take. Stored before the
ledger moves or together with it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, islice

from headgate.catalog.tasks import Quarantined, QuarantineFolder
from headgate.runtime.ports import Batch, LedgerStore, Rejected
from headgate.runtime.quarantine import new_folder

REJECTED_WITH_LEDGER = 500  # rejected records that are stored in the transaction of the ledger; more go before it


class BatchRejects:
    """The rejected records of one task's batches. ``count`` are those of the last attempt: only a batch that is committed counts."""

    def __init__(
        self,
        task: int,
        store: LedgerStore,
        crash: Callable[[str, int], None],
    ) -> None:
        self._task = task
        self._store = store
        self._crash = crash
        self.count = 0

    def for_ledger(
        self, batch: Batch, rejected: Sequence[Rejected]
    ) -> tuple[Sequence[Quarantined] | None, Sequence[QuarantineFolder]]:
        """The records and the folders to store with the ledger. If there are more records than a transaction should hold, all are
        stored at once, and None is returned for them."""
        records, folders = self._records(batch, rejected)
        few = list(islice(records, REJECTED_WITH_LEDGER + 1))
        if len(few) <= REJECTED_WITH_LEDGER:
            return few, folders
        self._store.reject(self._task, batch.number, chain(few, records), folders)
        return None, ()

    def store(self, batch: Batch, rejected: Sequence[Rejected]) -> None:
        """Store them before the ledger moves."""
        self._store.reject(self._task, batch.number, *self._records(batch, rejected))

    def _records(
        self, batch: Batch, rejected: Sequence[Rejected]
    ) -> tuple[Iterator[Quarantined], Sequence[QuarantineFolder]]:
        """The rejected records, counted as they are taken, and folders with those that are many."""
        many = [one.many for one in rejected if one.many is not None]
        folders = [new_folder(one.object, self._task, batch.number, one.count) for one in many]
        if folders:
            self._store.open_folders(self._task, folders)
        for one, folder in zip(many, folders, strict=True):
            one.write(folder)
            self._crash("after_quarantine", batch.number)
        self.count = sum(one.not_kept for one in rejected) + sum(one.count for one in many)
        return self._counted(rejected), folders

    def _counted(self, rejected: Iterable[Rejected]) -> Iterator[Quarantined]:
        for record in chain.from_iterable(one.records for one in rejected):
            self.count += 1
            yield record

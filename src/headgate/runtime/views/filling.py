"""The ledger of a view that is filled anew beside its old rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from headgate.catalog.positions import Positions, lag
from headgate.catalog.tasks import Ledger, Mark, ProgressSlot, Quarantined, QuarantineFolder
from headgate.runtime.ports import LedgerStore


class FillingStore:
    """Keeps the ledger of a new generation of a view away from the catalog until that has caught up. Readers take the view's
    generation from the ledger in the catalog, so that one transaction shows them the new rows in place of the old ones.

    ``ends`` gives the ends of the inputs. It is asked once, so that filling comes to an end while inputs grow.
    """

    def __init__(self, store: LedgerStore, view: int, ends: Callable[[], Positions]) -> None:
        self._store = store
        self._view = view
        self._ask_for_ends = ends
        self._ends: Positions | None = None
        self._own: Ledger | None = None
        self.is_filling = True

    def ledger(self, task: int) -> Ledger | None:
        return self._own if self.is_filling and task == self._view else self._store.ledger(task)

    def advance(
        self,
        expected: Ledger | None,
        new: Ledger,
        rejected: Sequence[Quarantined] | None = (),
        folders: Sequence[QuarantineFolder] = (),
    ) -> None:
        if not self.is_filling:
            self._store.advance(expected, new, rejected, folders)
        elif self._has_caught_up(new):
            self._store.advance(self._store.ledger(self._view), new, rejected, folders)
            self.is_filling = False
        else:
            self._own = new

    def _has_caught_up(self, ledger: Ledger) -> bool:
        if self._ends is None:
            self._ends = self._ask_for_ends()
        return ledger.number > 0 and lag(ledger.positions, self._ends) == 0

    # what is the same for every generation

    def task_uuid(self, task: int) -> str:
        return self._store.task_uuid(task)

    def progress_slot(self, task: int) -> ProgressSlot:
        return self._store.progress_slot(task)

    def next_epoch(self, task: int) -> int:
        return self._store.next_epoch(task)

    def raise_epoch(self, above: int) -> None:
        self._store.raise_epoch(above)

    def reject(
        self, task: int, number: int, records: Iterable[Quarantined], folders: Sequence[QuarantineFolder] = ()
    ) -> None:
        self._store.reject(task, number, records, folders)

    def count_in_catalog(self, task: int) -> int:
        return self._store.count_in_catalog(task)

    def open_folders(self, task: int, folders: Sequence[QuarantineFolder]) -> None:
        self._store.open_folders(task, folders)

    def mark(self, task: int) -> Mark | None:
        return self._store.mark(task)

    def save_mark(self, task: int, mark: Mark) -> None:
        self._store.save_mark(task, mark)

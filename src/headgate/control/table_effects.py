"""Effects on the tables of materializations. Tables are made by their tasks, so making one is only checked here."""

from __future__ import annotations

from headgate.connectors.connections import Clients
from headgate.plan.plans import ProvisionTable, ReleaseTable
from headgate.runtime.targets.postgres_tables import check_table, release


class Tables:
    """Checks that a table can be written."""

    def check(self, effect: ProvisionTable, clients: Clients) -> None:
        database = clients.postgres(effect.table.connection)
        database.check()
        with database.connected() as connection:
            check_table(connection, effect.table, new=effect.new)

    def do(self, effect: ProvisionTable, clients: Clients) -> None:
        """The task makes the table when it starts. Somebody else may have made one since the statement was planned."""
        self.check(effect, clients)

    def undo(self, effect: ProvisionTable, done: None, clients: Clients) -> None:
        """Nothing was done."""


class Releases:
    """Gives tables up, after the catalog has committed. A database that is gone must not keep a materialization from being dropped,
    unless its table is to be dropped too."""

    def check(self, effect: ReleaseTable, clients: Clients) -> None:
        if effect.drop:
            clients.postgres(effect.connection).check()

    def do(self, effect: ReleaseTable, clients: Clients) -> None:
        with clients.postgres(effect.connection).connected() as connection:
            release(connection, effect.table, drop=effect.drop)

    def undo(self, effect: ReleaseTable, done: None, clients: Clients) -> None:
        """There is no way back."""

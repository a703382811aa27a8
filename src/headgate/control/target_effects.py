"""Effects on the tables and indexes of materializations. Their tasks make them, so making one is only checked here."""

from __future__ import annotations

from headgate.connectors.connections import Clients
from headgate.plan.plans import ProvisionIndex, ProvisionTable, ReleaseIndex, ReleaseTable
from headgate.runtime.targets.postgres_tables import check_table, release
from headgate.runtime.targets.search_index import SearchIndex, release_index


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

    def give_up(self, effect: ReleaseTable, clients: Clients, uuid: str) -> None:
        """There is no way back. ``uuid`` is that of the task."""
        with clients.postgres(effect.connection).connected() as connection:
            release(connection, effect.table, uuid, drop=effect.drop)


class Indexes:
    """Checks that an index can be written."""

    def check(self, effect: ProvisionIndex, clients: Clients) -> None:
        client = clients.elasticsearch(effect.index.connection)
        client.check()
        if effect.new:
            SearchIndex(client, effect.index, task="").check_free()

    def do(self, effect: ProvisionIndex, clients: Clients) -> None:
        """The task makes the index when it starts. Somebody else may have made one since the statement was planned."""
        self.check(effect, clients)

    def undo(self, effect: ProvisionIndex, done: None, clients: Clients) -> None:
        """Nothing was done."""


class IndexReleases:
    """Gives indexes up, after the catalog has committed. A server that is gone must not keep a materialization from being dropped,
    unless its index is to be dropped too."""

    def check(self, effect: ReleaseIndex, clients: Clients) -> None:
        if effect.drop:
            clients.elasticsearch(effect.connection).check()

    def give_up(self, effect: ReleaseIndex, clients: Clients, uuid: str) -> None:
        """There is no way back. ``uuid`` is that of the task."""
        release_index(clients.elasticsearch(effect.connection), effect.index, uuid, drop=effect.drop)

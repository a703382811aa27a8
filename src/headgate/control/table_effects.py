"""Effects on the tables of materializations. Tables are made by their tasks, so making one is only checked here."""

from __future__ import annotations

import logging

from headgate.connectors.connections import Clients
from headgate.errors import HeadgateError
from headgate.plan.plans import ProvisionTable, ReleaseTable
from headgate.runtime.targets.postgres_tables import check_table, release

log = logging.getLogger(__name__)


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
    """Gives tables up. That cannot be undone: if the statement then fails, the task finds its progress gone, and halts."""

    def check(self, effect: ReleaseTable, clients: Clients) -> None:
        if effect.drop:
            clients.postgres(effect.connection).check()

    def do(self, effect: ReleaseTable, clients: Clients) -> None:
        """A table that stays need not be told: a database that is gone must not keep a materialization from being dropped."""
        try:
            with clients.postgres(effect.connection).connected() as connection:
                release(connection, effect.table, drop=effect.drop)
        except HeadgateError as error:
            if effect.drop:
                raise
            log.warning('table "%s" was not given up: %s', effect.table, error)

    def undo(self, effect: ReleaseTable, done: None, clients: Clients) -> None:
        """There is no way back."""

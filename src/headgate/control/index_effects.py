"""Effects on the indexes of materializations. Indexes are made by their tasks, so making one is only checked here."""

from __future__ import annotations

from headgate.connectors.connections import Clients
from headgate.plan.plans import ProvisionIndex, ReleaseIndex
from headgate.runtime.targets.search_index import SearchIndex, release_index


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

    def do(self, effect: ReleaseIndex, clients: Clients) -> None:
        client = clients.elasticsearch(effect.connection)
        release_index(client, effect.index, effect.materialization, drop=effect.drop)

    def undo(self, effect: ReleaseIndex, done: None, clients: Clients) -> None:
        """There is no way back."""

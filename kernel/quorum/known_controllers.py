"""Shell: what a controller's own log says of controllers, told all the channels of its node: who votes, and who leads.

.. versionadded:: 0.1
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import trio

from ..cluster.controller_nodes import voter_addresses

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from ..cluster.controller_nodes import ControllerNodes
    from ..records.control import KRaftVoters
    from .replica_views import VotersView


class KnownControllers:
    """Life: made, `run` as a task beside the election's."""

    def __init__(
        self,
        log: VotersView,
        nodes: ControllerNodes,
        *,
        listener_name: str,
        retain: Callable[[Collection[int]], object],
    ) -> None:
        """Make it; tells nothing yet.

        Args:
            log: Of this controller.
            nodes: Told of voters and leaders.
            listener_name: Of the listener by which controllers are reached.
            retain: Told who votes, of others channels end.
        """
        self._log, self._nodes = log, nodes
        self._listener_name, self._retain = listener_name, retain

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Tell of each change until cancelled; the first is told before this says that it runs."""
        told: KRaftVoters | None = None
        while True:
            voters = self._log.voters
            if voters is not None and voters is not told:
                told = voters
                self._nodes.know_voters(voter_addresses(voters, self._listener_name))
                self._retain([each.voter_id for each in voters.voters])
            self._nodes.learn(self._log.leader_id, self._log.leader_epoch)
            task_status.started()
            task_status = trio.TASK_STATUS_IGNORED
            await self._log.wait_changed()

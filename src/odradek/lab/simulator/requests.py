"""Shell: what clients ask of the brokers of a run: noted with its time, and refused where somebody wants that.

requests = Requests(cluster, "FindCoordinator", "OffsetCommit")        before the brokers live
with requests.refuse("OffsetCommit", ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, times=3):
    ...
requests.noted      [Noted(time_s=5000.25, node_id=1, client_id="a", request=OffsetCommitRequest(...)), ...]
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import attrs

from odradek.testing.faulty_handlers import FaultyHandlers
from odradek.testing.request_faults import Fault, FaultPlan, Treatment, apis_named

if TYPE_CHECKING:
    from odradek.kernel.errors import ErrorCode

    from .cluster import Cluster


@attrs.frozen
class Noted:
    """A request that a broker was given.

    Attributes:
        time_s: When, as trio counts.
        node_id: The broker.
        client_id: Whose it was.
        request: What it said.
    """

    time_s: float
    node_id: int
    client_id: str | None
    request: Any


class Requests:
    """Requests to all brokers of a cluster, whichever lives on their hosts.

    Attributes:
        noted: Those of the APIs that are noted, in their order, refused or not.
    """

    def __init__(self, cluster: Cluster, *apis: str) -> None:
        """Be there for every broker that begins to live from now on.

        Args:
            cluster: Its hosts are there, and nothing lives on them.
            apis: What is noted, by the names of Kafka's protocol.
        """
        self.noted: list[Noted] = []
        self._world = cluster.world
        self._handlers: list[FaultyHandlers] = []
        for node_id, broker in cluster.brokers.items():
            plan = FaultPlan()
            for api in apis:
                plan.add(Fault(apis_named(api), Treatment(), on_met=partial(self._note, node_id)))
            handlers = FaultyHandlers(plan)
            self._handlers.append(handlers)
            broker.on_parts = handlers.attach

    def _note(self, node_id: int, client_id: str | None, request: Any) -> None:
        self.noted.append(Noted(self._world.seconds, node_id, client_id, request))

    def of(self, kind: type, client_id: str | None = None) -> list[Noted]:
        """Return what was noted of a kind of request, of this client alone if one is given."""
        return [
            noted for noted in self.noted if isinstance(noted.request, kind) and client_id in (None, noted.client_id)
        ]

    def refuse(self, api: str, error: ErrorCode, times: int | None = None) -> Fault:
        """Have brokers that live refuse the next requests of an API, whoever of them is asked.

        Args:
            api: Its name in Kafka's protocol.
            error: What is answered.
            times: How many; None for all until the fault is stopped, or its `with` block ends.
        """
        fault = Fault(apis_named(api), Treatment(error=error), times)
        for handlers in self._handlers:
            handlers.plan.add(fault)
            handlers.exchange()
        return fault.stopped_by(self._let_through)

    def _let_through(self, fault: Fault) -> None:
        for handlers in self._handlers:
            handlers.plan.remove(fault)
            handlers.exchange()

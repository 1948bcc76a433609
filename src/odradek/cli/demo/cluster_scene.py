"""Shell: what the chapters about a cluster share: its brokers, the data set, and what was acknowledged."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING, Final

import attrs

from ..cluster_plan import plan_brokers
from ..serve_many import free_port
from .broker_process import BrokerProcess

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from .data import DemoRecord
    from .stage import Stage

TOPIC: Final = "clock-changes"
PARTITIONS: Final = 6
BROKERS: Final = 3


class BrokerProcesses:
    """Three brokers of one cluster, as `odradek serve --brokers 3` plans them, but each started by itself.

    Attributes:
        by_id: The brokers; all of them keep the metadata together.
    """

    def __init__(self, folder: Path, settings: Mapping[str, str]) -> None:
        """Plan brokers that are not started.

        Args:
            folder: Their data and their logs lie in it.
            settings: For all of them.
        """
        options = [f"{key}={value}" for key, value in settings.items()]
        with ExitStack() as held:
            plans = plan_brokers(
                BROKERS,
                listen=["127.0.0.1:0"],
                data_dir=folder / "data",
                options=options,
                free_port=lambda host: free_port(host, held),
                voters=BROKERS,
            )
        self.by_id = {
            plan.node_id: BrokerProcess(
                folder / "data" / str(plan.node_id),
                folder / f"broker-{plan.node_id}.log",
                dict(option.split("=", 1) for option in plan.options),
            )
            for plan in plans
        }

    def start(self) -> dict[int, str]:
        """Start all at once; return where each serves.

        Raises:
            OdradekError: One did not start.
        """
        for broker in self.by_id.values():
            broker.launch()
        return {node_id: broker.wait_until_ready() for node_id, broker in self.by_id.items()}

    def stop(self) -> None:
        """Have those end that run, one after the other."""
        for broker in reversed(self.by_id.values()):
            broker.stop()


@attrs.define
class ClusterScene:
    """One run of the demo; each chapter finds here what those before it left.

    Attributes:
        stage: Where it is shown.
        brokers: Their processes.
        data_dir: Below which each keeps its logs.
        now_s: Seconds since the Unix epoch: changes of clocks after this are left out.
        addresses: Where each broker serves; empty until they do.
        thirds: The data set, in the three parts in which it is produced.
        acknowledged: What was acknowledged: by partition and offset.
        killed: The broker that is killed; 0 until that is known.
    """

    stage: Stage
    brokers: BrokerProcesses
    data_dir: Path
    now_s: int
    addresses: dict[int, str] = attrs.field(factory=dict)
    thirds: tuple[Sequence[DemoRecord], ...] = ()
    acknowledged: dict[tuple[int, int], DemoRecord] = attrs.field(factory=dict)
    killed: int = 0

    @property
    def drained(self) -> int:
        """The broker that is drained: another one than was killed."""
        return max(node_id for node_id in self.brokers.by_id if node_id != self.killed)

    @property
    def bootstrap(self) -> str:
        """`HOST:PORT` of every broker, for clients."""
        return ",".join(self.addresses.values())

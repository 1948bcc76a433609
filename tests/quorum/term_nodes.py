"""Controllers of a quorum around fake replicas: who leads, and what of its log goes on, is what the test says."""

from __future__ import annotations

from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, NoReturn, cast

import trio

from odradek.kernel.contracts.election import Role
from odradek.kernel.controller.snapshots import SnapshotSettings, SnapshotStore
from odradek.kernel.errors import ErrorCode, KafkaError
from odradek.kernel.machine.files import OsFiles
from odradek.kernel.machine.system.threads import SystemThreads
from odradek.kernel.machine.threads import Workers
from odradek.kernel.quorum.committed_images import CommittedImages
from odradek.kernel.quorum.terms import ControllerTerms
from tests.controller.metadata_helpers import CLUSTER_ID, make_rules, registration
from tests.machines import machine_with

from .fake_replica import FakeReplica

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable
    from pathlib import Path

    from odradek.kernel.controller.brokers import Registration
    from odradek.kernel.controller.controller import Controller
    from odradek.kernel.controller.metadata_log import MetadataLog
    from odradek.kernel.controller.rules import Steps
    from odradek.kernel.wire.message import Message


class DarkNetwork:
    """Reaches nobody: brokers are left to their sessions."""

    def host_name(self) -> str:
        return "here"

    async def resolve(self, _host: str, _port: int) -> NoReturn:
        raise OSError("nobody is reached")


class Node:
    """A controller over a replica; `running` has it follow, and lead when its replica does."""

    def __init__(
        self,
        directory: Path | None = None,
        *,
        replica: FakeReplica | None = None,
        bytes_between: int = 1 << 30,
        seed: int = 1,
        **settings: str,
    ) -> None:
        self.replica = replica or FakeReplica(directory)
        self.services: list[str] = []
        machine = machine_with(network=cast("Any", DarkNetwork()))
        self.rules = make_rules(seed, **settings)
        loaded = None if directory is None else SnapshotStore(directory=directory, files=OsFiles()).load_newest()[0]
        worker = Workers(SystemThreads(), 1)
        self.images = CommittedImages(
            self.replica,
            snapshot=loaded,
            config=self.rules.config,
            cluster_id=CLUSTER_ID,
            settings=SnapshotSettings(bytes_between=bytes_between, interval_ms=0),
            worker=worker,
            machine=machine,
        )
        self.terms = ControllerTerms(
            self.replica,
            self.images,
            self.rules,
            machine,
            cluster_id=CLUSTER_ID,
            features={},
            worker=worker,
            supervise=self.supervised,
        )

    def supervised(self, name: str, run: Callable[..., Awaitable[None]]) -> Callable[..., Awaitable[None]]:
        self.services.append(name)
        return run

    @asynccontextmanager
    async def running(self) -> AsyncIterator[Node]:
        async with trio.open_nursery() as nursery:
            await nursery.start(self.images.run)
            await nursery.start(self.terms.run)
            yield self
            nursery.cancel_scope.cancel()

    async def lead(self, leader_epoch: int) -> MetadataLog:
        """Win, and wait until the term has begun."""
        self.replica.win(leader_epoch)
        return await self.led()

    async def led(self) -> MetadataLog:
        while self.terms.active is None:
            await self.terms.wait_changed()
        return self.terms.active

    async def ended(self) -> None:
        while self.terms.active is not None:
            await self.terms.wait_changed()

    async def caught_up(self) -> None:
        await self.images.wait_for(self.replica.high_watermark - 1)


async def register(metadata: MetadataLog, *broker_ids: int) -> None:
    """Have brokers that serve."""
    for broker_id in broker_ids:
        await metadata.submit(partial(_registered, registration(broker_id)))


def _registered(wanted: Registration, controller: Controller, _now_ms: int) -> Steps[int]:
    return controller.register_broker(wanted)


async def ask(*nodes: Node, request: Message) -> Any:
    """Ask whoever is the controller, as a broker does for its clients: again until one answers."""
    while True:
        for node in nodes:
            try:
                return await node.terms.ask(request)
            except KafkaError as error:
                if error.code is not ErrorCode.NOT_CONTROLLER:
                    raise
        await trio.lowlevel.checkpoint()


def replicate(source: Node, *others: Node) -> None:
    """Have others hold what a leader's log holds, committed as far as it is there."""
    for other in others:
        replica = other.replica
        replica.batches_here, replica.named = [*source.replica.batches_here], [*source.replica.named]
        if replica.role is not Role.LEADER:
            replica.lose(1, source.replica.leader_epoch)
        replica.high_watermark = source.replica.high_watermark
        replica.tell_change()

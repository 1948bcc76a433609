"""Controllers in a simulated world, each with images and terms: what clients ask, and what becomes of it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import Any, TypeVar, cast

import attrs
import trio

from odradek.kernel.contracts.storage import LogConfig
from odradek.kernel.controller.snapshots import SnapshotId, SnapshotSettings, SnapshotStore
from odradek.kernel.errors import CorruptionError, ErrorCode, KafkaError
from odradek.kernel.machine.files import read_file
from odradek.kernel.machine.threads import Workers
from odradek.kernel.metadata.image import MetadataImage
from odradek.kernel.metadata.record_makers import image_records
from odradek.kernel.quorum.committed_images import CommittedImages
from odradek.kernel.quorum.log_epochs import NO_SNAPSHOT
from odradek.kernel.quorum.quorum_log import QuorumLog
from odradek.kernel.quorum.terms import ControllerTerms
from odradek.kernel.records.control import KRaftVoters
from odradek.kernel.wire.message import Message
from odradek.lab.simulator.machine import Process
from odradek.lab.simulator.running import run_in_world
from odradek.lab.simulator.seeds import Seeds
from odradek.lab.simulator.world import SECOND, World
from tests.controller.metadata_helpers import CLUSTER_ID, make_rules
from tests.plugins.election_quorum.nodes import voters_of

from .quorum_world import Answer, Controller, Quorum
from .term_nodes import DarkNetwork

T = TypeVar("T")

DIRECTORY = Path("/data/__cluster_metadata-0")
LIMIT_S = 600


@attrs.frozen
class TermSettings:
    """What controllers of a world are set to.

    Attributes:
        snapshot_bytes: So many of records are between snapshots.
        session_ms: So long a broker may be silent.
        log_config: How their logs are kept.
    """

    snapshot_bytes: int = 600
    session_ms: int = 600_000
    log_config: LogConfig | None = None


class TermController(Controller):
    """A controller whose log is read and written: the metadata is there, and changed where it leads.

    Attributes:
        images: What is committed, None while no process lives.
        terms: When it is the controller.
    """

    images: CommittedImages | None = None
    terms: ControllerTerms | None = None

    def __init__(
        self,
        quorum: Quorum,
        node_id: int,
        founding: KRaftVoters | tuple[int, ...],
        settings: TermSettings = TermSettings(),
    ) -> None:
        super().__init__(quorum, node_id, founding)
        self.settings = settings
        self.log_config = settings.log_config or self.log_config

    async def _run(self, process: Process) -> None:
        self.images = self.terms = None
        try:
            store = SnapshotStore(directory=DIRECTORY, files=process.machine.files)
            loaded = store.load_newest()[0] if self.partition_log is not None else None
            if loaded is not None:
                identifier = SnapshotId(loaded.image.offset + 1, loaded.image.epoch)
                self.snapshot = (identifier, None if loaded.quorum is None else loaded.quorum.voters)
            else:
                self.snapshot = (NO_SNAPSHOT, None)
            log = self.log = self.opened(process)
            rules = make_rules(self.node_id, broker_session_timeout_ms=str(self.settings.session_ms))
            rules = attrs.evolve(rules, ids=process.machine.ids, random=process.machine.random)
            machine = attrs.evolve(process.machine, network=cast("Any", DarkNetwork()))
            worker = Workers(machine.threads, 1)
            images = CommittedImages(
                log,
                snapshot=loaded,
                config=rules.config,
                cluster_id=CLUSTER_ID,
                settings=SnapshotSettings(bytes_between=self.settings.snapshot_bytes, interval_ms=0),
                worker=worker,
                machine=machine,
            )
            terms = ControllerTerms(
                log,
                images,
                rules,
                machine,
                cluster_id=CLUSTER_ID,
                features={},
                worker=worker,
                supervise=lambda _name, run: run,
            )
            self.images, self.terms = images, terms
            async with trio.open_nursery() as nursery:
                nursery.start_soon(log.run, partial(self._send, nursery, log))
                nursery.start_soon(self._follow, log)
                nursery.start_soon(images.run)
                nursery.start_soon(terms.run)
        except Exception as error:
            if process.is_dead:
                raise
            self.failure = error
            self.crash()

    async def _take(self, log: QuorumLog, leader: Controller, answer: Answer) -> None:
        if answer.snapshot is None or not log.follows(answer.leader_epoch) or self.images is None:
            await super()._take(log, leader, answer)
            return
        assert leader.host.process is not None
        try:
            data = read_file(leader.host.process.machine.files, DIRECTORY / answer.snapshot.file_name)
            await self.images.take_snapshot(answer.snapshot, data)
        except (FileNotFoundError, KafkaError, CorruptionError):
            return  # the leader has a newer one, or is none any more


class TermQuorum(Quorum):
    """Controllers with terms, and a client of theirs."""

    controllers: dict[int, TermController]  # type: ignore[assignment]

    def __init__(
        self, world: World, nursery: trio.Nursery, *founding: int, settings: TermSettings = TermSettings()
    ) -> None:
        super().__init__(world, nursery)
        named = voters_of(*founding)
        self.controllers.update({each: TermController(self, each, named, settings) for each in founding})

    async def ask(self, request: Message) -> tuple[Any, int]:
        """Ask until whoever is the controller answers; return that, and how often it was asked before in vain."""
        failures = 0
        while True:
            for controller in [*self.controllers.values()]:
                terms, gone = controller.terms, controller.gone
                if controller.log is None or terms is None or not terms.is_active:
                    continue
                answer = await _before(gone, partial(terms.ask, request))
                if answer is not None:
                    return answer, failures
                failures += 1
            await trio.sleep(0.005)

    @property
    def images(self) -> dict[int, MetadataImage]:
        """What those that live know."""
        return {
            node_id: each.images.image
            for node_id, each in self.controllers.items()
            if each.log is not None and each.images is not None
        }

    async def agreed(self) -> MetadataImage:
        """Wait until all live, have what the leader has, and know it."""
        while True:
            leader = await self.settled()
            images = [each.images for each in self.controllers.values() if each.log is not None and each.images]
            if len(images) == len(self.controllers) and all(each.next_offset >= leader.end_offset for each in images):
                return images[0].image
            await trio.sleep(0.01)


async def _before(gone: trio.Event, ask: Callable[[], Awaitable[Any]]) -> Any:
    """Return an answer, None when its giver is gone before, or is not the controller."""
    answers: list[Any] = []
    async with trio.open_nursery() as nursery:

        async def answered() -> None:
            try:
                answers.append(await ask())
            except KafkaError as error:
                if error.code is not ErrorCode.NOT_CONTROLLER:
                    raise
            nursery.cancel_scope.cancel()

        nursery.start_soon(answered)
        await gone.wait()
        nursery.cancel_scope.cancel()
    return answers[0] if answers else None


def said(image: MetadataImage) -> list[object]:
    """What an image says, to be compared."""
    return [image.offset, image.epoch, *image_records(image)]


def in_terms(
    main: Callable[[TermQuorum], Awaitable[T]], *founding: int, seed: int = 1, settings: TermSettings = TermSettings()
) -> T:
    """Run a task in a world with these controllers, and return what it returns."""
    world = World(Seeds(seed))

    async def root() -> T:
        async with trio.open_nursery() as nursery:
            quorum = TermQuorum(world, nursery, *(founding or (1, 2, 3)), settings=settings)
            for controller in quorum.controllers.values():
                controller.start()
            result = await main(quorum)
            for controller in quorum.controllers.values():
                controller.crash()
            nursery.cancel_scope.cancel()
        return result

    return run_in_world(world, root, limit_ns=LIMIT_S * SECOND)

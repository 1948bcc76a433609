"""Shell: how a controller whose directory may be empty comes to be one of a cluster, before anything of it is opened.

    directory ──look──> founded, or an observer ────────────────────────────────────────> served
                 └────> unfounded, or holds a founding: rounds of questions ──founding──>

In a round every candidate is asked over a connection of its own, so no answer of an earlier round can be taken for one
of this. Meanwhile the node answers the same questions by `handlers`, on the controllers' listener alone.
`founding.py` has what follows from the answers.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

import attrs
import trio

from ..classes import frozen
from ..cluster.controller_nodes import CONTROLLERS
from ..cluster.joining import CLUSTER_ID
from ..cluster.peer_settings import controller_tls, peer_settings
from ..config.broker import Setting
from ..config.roles import parse_roles
from ..controller.founding_checkpoint import FoundingCheckpoint, decode_founding, encode_founding
from ..errors import ConfigError, CorruptionError, KafkaError, StorageError
from ..network.configure import network_settings
from ..network.server import NetworkServer
from ..peers.backoff import Backoff
from ..peers.connection import open_connection
from ..peers.errors import ClientError
from ..peers.lifetime import single_error
from ..types import id_text
from ..wire.messages.api_60_describe_cluster import DescribeClusterRequest
from .founding import (
    UNKNOWN_ID,
    Candidate,
    Founding,
    FoundingNode,
    FoundingSteps,
    FoundingVoter,
    Keep,
    Observe,
    Serve,
)
from .founding_directory import FoundingDirectory, Standing
from .founding_handlers import DescribeFoundingHandler, FetchFoundingHandler
from .founding_messages import describe_quorum, fetch_founding, founding_bytes, is_founded, told_by
from .voters_record import voters_record

if TYPE_CHECKING:
    import ssl
    from collections.abc import Callable, Iterable

    from ..config.broker import BrokerConfig
    from ..contracts.api_handler import ApiHandler
    from ..machine.machine import Machine
    from ..network.frame_receiver import FrameReceiver
    from ..peers.connection import Connection
    from .founding import Step, Told

log = logging.getLogger(__name__)

ANSWER_MS: Final = 1000
"""How long an answer is waited for; the next round asks again."""
QUIET_S: Final = 2.0
"""How long nothing is said of who is waited for."""
PAUSE_MS_MIN: Final = 20
PAUSE_MS_MAX: Final = 1000
_KEPT_ALONE: Final = (
    "the metadata in {} was kept by one node alone, so nothing there says who votes: if it was this one, "
    "`odradek format --cluster-id {} --standalone --ignore-formatted` makes it the first of several"
)


@frozen
class FoundingOutcome:
    """As what a controller is to be started.

    Attributes:
        cluster_id: Its cluster's; empty where only its metadata log says it.
        has_static_voters: Whether `controller.quorum.voters` says who votes, by kraft.version 0.
    """

    cluster_id: str
    has_static_voters: bool = False


class FoundingShell:
    """One controller on its way into a cluster. Life: made, `look`; if `is_needed`, `run` while `handlers` answer.

    Attributes:
        outcome: As what it is to be started; None while its cluster is not founded.
        handlers: What answers others meanwhile, once `look` has found that it is needed.
    """

    def __init__(self, config: BrokerConfig, machine: Machine) -> None:
        """Take the configuration; reads nothing.

        Args:
            config: Of a controller; it names several controllers.
            machine: Its disk, its network, ids and chance.
        """
        self._config, self._machine = config, machine
        self._directory = FoundingDirectory(config, machine)
        self._candidates = candidates_of(config)
        self._listener = config.get_list("controller.listener.names")[0].upper()
        self._settings = peer_settings(config)
        self._tls: ssl.SSLContext | None = None
        self._data: dict[Founding, bytes] = {}
        self._steps: FoundingSteps | None = None
        self._rounds_in_vain = 0
        self._asked = trio.Event()
        self._waits_for, self._waits_since_s, self._is_told = "", 0.0, False
        self.outcome: FoundingOutcome | None = None
        self.handlers: tuple[FetchFoundingHandler | DescribeFoundingHandler, ...] = ()

    @property
    def is_needed(self) -> bool:
        """Whether the cluster of this node is not founded yet, as far as it knows."""
        return self.outcome is None

    def look(self) -> FoundingOutcome | None:
        """Look at the directories; return as what this node is to be started if they say it already. Blocks.

        Raises:
            StorageError: They cannot be read or taken, or are no voter's; nothing was changed.
            CorruptionError: What they hold is damaged.
            ConfigError: They are another cluster's, or a certificate cannot be used.
        """
        found = self._directory.look()
        if found.standing not in (Standing.UNFOUNDED, Standing.HOLDS):
            self._check_cluster(found.cluster_id, str(self._directory))
            if not found.names_voters:
                log.warning("%s", _KEPT_ALONE.format(self._directory, found.cluster_id))
            self.outcome = FoundingOutcome(found.cluster_id, found.standing is Standing.STATIC)
            return self.outcome
        self._tls = controller_tls(self._config)
        self._directory.take()
        own, held = self._directory.identify(), None
        if found.held is not None:
            held = self._read(found.held, str(self._directory))
            if held is None:
                raise CorruptionError(f"{self._directory}: the founding that is held says not whose it is")
            self._check_cluster(held.cluster_id, str(self._directory))
        self._steps = FoundingSteps(own, self._candidates, held=held, new_cluster_id=self._new_cluster_id)
        self.handlers = (
            FetchFoundingHandler(on_asked=self._note_asker, data=self._kept_data),
            DescribeFoundingHandler(steps=self._steps, candidates=self._candidates, listener=self._listener),
        )
        return None

    def _new_cluster_id(self) -> str:
        return self._config.get_text(CLUSTER_ID) or id_text(self._machine.ids.new_id())

    def _check_cluster(self, cluster_id: str, whose: str) -> None:
        wanted = self._config.get_text(CLUSTER_ID)
        if wanted and cluster_id and wanted != cluster_id:
            hint = "give this node a directory of its own, or leave it out"
            what = f"{whose}: the cluster is {cluster_id}, and not {wanted}"
            raise ConfigError(what, where=self._config.where(CLUSTER_ID), hint=hint)

    def _note_asker(self, node: FoundingNode) -> None:
        assert self._steps is not None, "who answers has looked"
        if self._steps.asked_by(node):  # it is there now: the next round may be the one that decides
            self._rounds_in_vain = 0
            self._asked.set()

    @property
    def _held(self) -> Founding | None:
        return None if self._steps is None else self._steps.held

    def _kept_data(self) -> bytes | None:
        return None if self._held is None else self._data[self._held]

    # -- rounds --------------------------------------------------------------------------------------------------------

    async def run(self) -> FoundingOutcome:
        """Ask the others until there is a cluster, and return as what this node is to be started in it.

        Cancelled, the directory keeps what it has, and the next start goes on from there.

        Raises:
            StorageError: The disk is full or failing.
            ConfigError: The others are of a cluster that this one is configured not to be of.
        """
        steps = self._steps
        assert steps is not None, "looked, and found that it is needed"
        pauses = Backoff(PAUSE_MS_MIN, PAUSE_MS_MAX, self._machine.random)
        try:
            while self.outcome is None:
                self._asked = trio.Event()
                step = steps.decide((await self._ask_all(steps.own)).items())
                if step is not None:
                    await self._take(steps, step)
                    self._rounds_in_vain = 0
                    continue
                self._tell(steps.waits_for)
                self._rounds_in_vain += 1
                with trio.move_on_after(pauses.pause_ms(self._rounds_in_vain) / 1000):
                    await self._asked.wait()
        finally:
            self.close()
        return self.outcome

    def close(self) -> None:
        """Let the directory go; may be called again."""
        self._directory.release()

    def _tell(self, waits_for: str) -> None:
        """Say for whom it waits, once that has lasted: nodes that are started together are not there at once."""
        now_s = trio.current_time()
        if waits_for != self._waits_for:
            self._waits_for, self._waits_since_s, self._is_told = waits_for, now_s, False
        if not self._is_told and now_s - self._waits_since_s >= QUIET_S:
            log.warning("%s", waits_for)
            self._is_told = True

    async def _take(self, steps: FoundingSteps, step: Step) -> None:
        on_disk = self._machine.threads.run_sync
        if isinstance(step, Keep):
            await self._keep(steps, step.founding)
        elif isinstance(step, Serve):
            cluster_id = step.founding.cluster_id
            await on_disk(self._directory.complete, cluster_id, self._data[step.founding])
            self._tell_of(step.founding, steps.own)
            self.outcome = FoundingOutcome(cluster_id)
        else:
            assert isinstance(step, Observe)
            self._check_cluster(step.cluster_id, "the others are founded")
            await on_disk(self._directory.join, step.cluster_id)
            log.warning("%s", _observes(step.cluster_id))
            self.outcome = FoundingOutcome(step.cluster_id)

    async def _keep(self, steps: FoundingSteps, founding: Founding) -> None:
        self._check_cluster(founding.cluster_id, "the others hold a founding")
        data = self._data.get(founding)
        if data is None:  # it is this node's own
            log.info("cluster %s is founded: voters %s", founding.cluster_id, _names_of(founding))
            data = self._data[founding] = self._write(founding)
        await self._machine.threads.run_sync(self._directory.hold, data)
        steps.kept(founding)

    def _tell_of(self, founding: Founding, own: FoundingNode) -> None:
        if founding.names(own):
            log.info("all voters hold the founding of cluster %s", founding.cluster_id)
        else:
            log.warning("%s", _observes(founding.cluster_id))

    async def _ask_all(self, own: FoundingNode) -> dict[Candidate, Told]:
        answers: dict[Candidate, Told] = {}
        self._data = {founding: data for founding, data in self._data.items() if founding == self._held}

        async def ask(candidate: Candidate) -> None:
            with trio.move_on_after(ANSWER_MS / 1000):
                try:
                    told = await self._ask(candidate, own)
                except (ClientError, KafkaError, StorageError) as error:
                    log.debug("voter %s: %s", candidate, error)
                    return
                if told is not None:
                    answers[candidate] = told

        async with trio.open_nursery() as nursery:
            for candidate in self._candidates:
                if candidate.node_id != own.node_id:
                    nursery.start_soon(ask, candidate)
        return {each: answers[each] for each in self._candidates if each in answers}

    async def _ask(self, candidate: Candidate, own: FoundingNode) -> Told | None:
        async with open_connection(
            candidate.host,
            candidate.port,
            self._settings,
            network=self._machine.network,
            context=self._tls,
            setup_timeout_ms=ANSWER_MS,
        ) as connection:
            data = founding_bytes(await connection.request(fetch_founding(own), timeout_ms=ANSWER_MS))
            founding = None if data is None else self._read(data, f"voter {candidate}")
            answer = await connection.request(describe_quorum(), timeout_ms=ANSWER_MS)
            if founding is None and is_founded(answer):
                return told_by(answer, None, await self._cluster_id(connection))
            return told_by(answer, founding)

    @staticmethod
    async def _cluster_id(connection: Connection) -> str:
        request = DescribeClusterRequest(endpoint_type=CONTROLLERS)
        cluster_id: str = (await connection.request(request, timeout_ms=ANSWER_MS)).cluster_id
        return cluster_id

    # -- checkpoints ---------------------------------------------------------------------------------------------------

    def _read(self, data: bytes, where: str) -> Founding | None:
        """Return what a checkpoint says, and keep its bytes: they are passed on as they are.

        None: it was written by hand, and does not say whose it is; who has it is founded.

        Raises:
            CorruptionError: It is damaged.
        """
        read = decode_founding(data, where)
        if not read.cluster_id or not all(voter.endpoints for voter in read.voters.voters):
            return None
        voters = sorted(
            FoundingVoter(each.voter_id, each.voter_directory_id, each.endpoints[0].host, each.endpoints[0].port)
            for each in read.voters.voters
        )
        founding = Founding(read.cluster_id, tuple(voters))
        self._data.setdefault(founding, data)
        return founding

    def _write(self, founding: Founding) -> bytes:
        checkpoint = FoundingCheckpoint(voters_record(founding.voters, self._listener), founding.cluster_id)
        return encode_founding(checkpoint, self._machine.clock.now_ms())


async def founded_config(
    config: BrokerConfig, machine: Machine, make_receiver: Callable[[Iterable[ApiHandler]], FrameReceiver]
) -> tuple[BrokerConfig, FoundingOutcome | None]:
    """Return the configuration of a controller among several with its cluster's id, once that is founded.

    Any other node's is returned as it is, with None. Until then its controllers' listeners are served by two handlers.

    Args:
        config: The node's.
        machine: Its disk, its network, ids and chance.
        make_receiver: Returns what takes the frames that such handlers answer, and ApiVersions.

    Raises:
        StorageError: The directories cannot be read or taken, or are no voter's; or the disk fails.
        CorruptionError: What they hold is damaged.
        ConfigError: A port is taken; or the node is configured to be of another cluster than its directories or others.
    """
    roles = parse_roles(config)
    if not (roles.is_controller and roles.names_several):
        return config, None
    shell = FoundingShell(config, machine)
    outcome = shell.look()
    if outcome is None:
        outcome = await _serve(shell, config, machine, make_receiver(shell.handlers))
    if not outcome.cluster_id or config.get_text(CLUSTER_ID):
        return config, outcome
    found = Setting(outcome.cluster_id, "the cluster's founding")
    return attrs.evolve(config, static={**config.static, CLUSTER_ID: found}), outcome


async def _serve(
    shell: FoundingShell, config: BrokerConfig, machine: Machine, receiver: FrameReceiver
) -> FoundingOutcome:
    settings = network_settings(config)
    controllers = tuple(listener for listener in settings.listeners if listener.goes_first)
    network = NetworkServer(receiver, attrs.evolve(settings, listeners=controllers), machine)
    try:
        async with single_error(), trio.open_nursery() as nursery:
            await nursery.start(network.run)
            outcome = await shell.run()
            nursery.cancel_scope.cancel()
    finally:
        network.close()
        shell.close()
    return outcome


def candidates_of(config: BrokerConfig) -> tuple[Candidate, ...]:
    """Return who is to found the cluster: the voters that are named, otherwise who is at the bootstrap servers."""
    roles = parse_roles(config)
    if roles.voters:
        return tuple(Candidate(node_id, *address) for node_id, address in sorted(roles.voters.items()))
    return tuple(Candidate(UNKNOWN_ID, *address) for address in sorted(set(roles.bootstrap)))


def _names_of(founding: Founding) -> str:
    return ", ".join(str(Candidate(each.node_id, each.host, each.port)) for each in founding.voters)


def _observes(cluster_id: str) -> str:
    return (
        f"cluster {cluster_id} was founded without this directory, so it is an observer: it votes once it is added, by "
        "`odradek cluster add-controller` or by itself with controller.quorum.auto.join.enable"
    )

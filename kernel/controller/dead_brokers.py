"""Shell: notices at once that a broker's process is dead: its connection ended, and its listener refuses a new one.

Only a refusal counts (ECONNREFUSED): the machine answers, and nobody listens there. Who cannot be reached, or answers
late, may well be alive behind a network that is cut, and is left to his session.
"""

from __future__ import annotations

import errno
import logging
from typing import TYPE_CHECKING, Final, NamedTuple

import trio

from ..config.listeners import inter_broker_listener
from ..errors import KafkaError
from .session_watch import level_of

if TYPE_CHECKING:
    from ..config.broker import BrokerConfig
    from ..machine.network import Network
    from ..metadata.image import BrokerImage
    from .broker_sessions import BrokerSessions
    from .metadata_log import MetadataLog

log = logging.getLogger(__name__)

PAUSES_S: Final = (0.0, 0.005, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0)
"""Before each try: a process that is killed may close its connections before its listener."""
TRY_S_MAX: Final = 1.0


class _Suspect(NamedTuple):
    broker_id: int
    broker_epoch: int


class DeadBrokers:
    """Life: made, `run` as a service of the node that has the controller; `suspect` by the reactor's task."""

    def __init__(self, metadata: MetadataLog, sessions: BrokerSessions, config: BrokerConfig, network: Network) -> None:
        """Suspect nobody yet.

        Args:
            metadata: Says where brokers listen; told who is dead.
            sessions: Say who was heard of again.
            config: Which listener brokers reach each other by.
            network: By which they are tried.
        """
        self._metadata = metadata
        self._sessions = sessions
        self._network = network
        self._listener = inter_broker_listener(config)
        self._suspected: dict[int, int] = {}
        self._woken = trio.Event()

    def suspect(self, broker_id: int, broker_epoch: int) -> None:
        """Have it looked at whether a broker is alive whose connection has ended."""
        self._sessions.note_gone(broker_id, broker_epoch)
        if self._sessions.is_gone(broker_id, broker_epoch):
            self._suspected[broker_id] = broker_epoch
            self._woken.set()

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Look at those who are suspected, each for some time, until cancelled."""
        looked_at: set[int] = set()
        async with trio.open_nursery() as nursery:
            task_status.started()
            while True:
                for broker_id in [each for each in self._suspected if each not in looked_at]:
                    looked_at.add(broker_id)
                    nursery.start_soon(self._look_on, broker_id, looked_at, name=f"look at broker {broker_id}")
                await self._woken.wait()
                self._woken = trio.Event()

    async def _look_on(self, broker_id: int, looked_at: set[int]) -> None:
        """Look at a broker, and again where it was suspected again meanwhile: one task for each, however often."""
        while broker_id in self._suspected:
            await self._look_safely(_Suspect(broker_id, self._suspected.pop(broker_id)))
        looked_at.discard(broker_id)

    async def _look_safely(self, suspect: _Suspect) -> None:
        try:
            await self._look_at(suspect)
        except Exception:  # what a broker says of itself can be anything: the others are looked at all the same
            log.exception("broker %d could not be looked at, and is left to its session", suspect.broker_id)

    async def _look_at(self, suspect: _Suspect) -> None:
        for pause_s in PAUSES_S:
            await trio.sleep(pause_s)
            broker = self._metadata.image.brokers.get(suspect.broker_id)
            if broker is None or not broker.listeners or not self._sessions.is_gone(*suspect):
                return
            if await self._refuses(broker):
                await self._fence(suspect)
                return

    async def _refuses(self, broker: BrokerImage) -> bool:
        """Return whether all addresses of a broker refuse: not, if one is not to be reached, which may pass."""
        # A node that is no broker need not know how brokers name their listeners.
        listener = broker.listeners.get(self._listener) or next(iter(broker.listeners.values()))
        try:
            with trio.fail_after(TRY_S_MAX):
                for address in await self._network.resolve(listener.host, listener.port):
                    try:
                        stream = await self._network.connect(address, send_buffer_bytes=-1, receive_buffer_bytes=-1)
                    except ConnectionRefusedError:
                        continue
                    await trio.aclose_forcefully(stream)
                    return False
        except (OSError, trio.TooSlowError) as error:
            return isinstance(error, OSError) and error.errno == errno.ECONNREFUSED
        return True

    async def _fence(self, suspect: _Suspect) -> None:
        try:
            if await self._metadata.submit(lambda controller, _now_ms: controller.fence_dead(*suspect)):
                log.warning(
                    "broker %d is dead, and fenced: its connection ended, and its listener refuses", suspect.broker_id
                )
        except KafkaError as error:
            log.log(level_of(error), "broker %d, which is dead, could not be fenced: %s", suspect.broker_id, error)

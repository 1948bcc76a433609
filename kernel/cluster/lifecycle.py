"""Pure core: the life of a broker as its controller sees it, by registration and heartbeats.

| state | what its heartbeats want | until |
| --- | --- | --- |
| `STARTING` | to stay fenced | the broker is ready to serve |
| `READY` | to be unfenced | the controller says so |
| `LIVE` | nothing | it is to stop |
| `STOPPING` | to end: leaders move away meanwhile | the controller lets it |
| `STOPPED` | | |

*Source:* KIP-631; Kafka's `BrokerLifecycleManager`.
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Final

from ..errors import ErrorCode
from ..wire.messages.api_63_broker_heartbeat import BrokerHeartbeatRequest

if TYPE_CHECKING:
    from collections.abc import Sequence
    from uuid import UUID

    from ..wire.messages.api_63_broker_heartbeat import BrokerHeartbeatResponse

SOON_MS: Final = 20
"""The pause after a heartbeat whose answer leads on to something that is waited for."""


class BrokerState(Enum):
    """Where a broker stands."""

    STARTING = "starting"
    READY = "ready"
    LIVE = "live"
    STOPPING = "stopping"
    STOPPED = "stopped"


class BrokerLifecycle:
    """Life: made when the broker is registered; `heartbeat` and `answered` in turns. Owned by who sends heartbeats.

    Attributes:
        state: Where it stands.
        is_fenced: What the controller said last.
        cordoned: The ids of its log directories that are cordoned, for its heartbeats; None where they say nothing.
    """

    def __init__(self, *, broker_id: int, broker_epoch: int, interval_ms: int, failure_timeout_ms: int) -> None:
        """Begin fenced.

        Args:
            broker_id: The broker.
            broker_epoch: Of its registration.
            interval_ms: `broker.heartbeat.interval.ms`.
            failure_timeout_ms: `log.dir.failure.timeout.ms`.
        """
        self._broker_id = broker_id
        self._broker_epoch = broker_epoch
        self._interval_ms = interval_ms
        self._failure_timeout_ms = failure_timeout_ms
        self._failures: dict[UUID, int] = {}
        self._told: set[UUID] = set()
        self._being_told: Sequence[UUID] = ()
        self.state = BrokerState.STARTING
        self.is_fenced = True
        self.cordoned: Sequence[UUID] | None = None

    def __repr__(self) -> str:
        return f"BrokerLifecycle({self.state.value}, {'fenced' if self.is_fenced else 'unfenced'})"

    def ready(self) -> None:
        """Want to be unfenced from now on: the broker's replicas are open."""
        if self.state is BrokerState.STARTING:
            self.state = BrokerState.READY

    def stop(self) -> None:
        """Want to end."""
        if self.state is not BrokerState.STOPPED:
            self.state = BrokerState.STOPPING

    def note_failures(self, directories: Sequence[UUID], now_ms: int) -> None:
        """Take note of which log directories have failed by now, all of them every time.

        Args:
            directories: Their ids.
            now_ms: The monotonic clock.
        """
        self._failures = {directory: self._failures.get(directory, now_ms) for directory in directories}

    def untold_failure(self, now_ms: int) -> UUID | None:
        """Return a log directory that failed and that the controller could not be told of in time, if there is one.

        Nobody else leads what lies in it, so its broker is of more use to the cluster when it ends.

        *Source:* KIP-858; `OfflineDirBrokerFailureEvent` of Kafka 4.3.
        """
        failed = self._failures.items()
        late = (each for each, since_ms in failed if now_ms - since_ms >= self._failure_timeout_ms)
        return next((each for each in late if each not in self._told), None)

    def heartbeat(self, metadata_offset: int) -> BrokerHeartbeatRequest:
        """Return the next heartbeat of a broker.

        Args:
            metadata_offset: Up to where it has replayed the metadata.
        """
        self._being_told = tuple(self._failures)
        is_starting = self.state is BrokerState.STARTING
        return BrokerHeartbeatRequest(
            broker_id=self._broker_id,
            broker_epoch=self._broker_epoch,
            current_metadata_offset=metadata_offset,
            want_fence=is_starting,
            want_shut_down=self.state is BrokerState.STOPPING,
            offline_log_dirs=list(self._being_told),
            # Before it is ready, its own configuration may not be known yet.
            cordoned_log_dirs=None if self.cordoned is None or is_starting else list(self.cordoned),
        )

    def answered(self, response: BrokerHeartbeatResponse) -> int:
        """Take the answer to a heartbeat; return how long to wait before the next one, in milliseconds."""
        if response.error_code != ErrorCode.NONE:
            return self._interval_ms if self.state is not BrokerState.STOPPING else SOON_MS
        self.is_fenced = response.is_fenced
        self._told.update(self._being_told)
        if self.state is BrokerState.STOPPING:
            if response.should_shut_down:
                self.state = BrokerState.STOPPED
            return SOON_MS
        if self.state is BrokerState.READY and not response.is_fenced:
            self.state = BrokerState.LIVE
        elif self.state is BrokerState.LIVE and response.is_fenced:
            self.state = BrokerState.READY  # its session was over: it asks to be let in again
        return SOON_MS if self.state is BrokerState.READY else self._interval_ms

"""Shell: a controller has the active one know it: its process, where it listens, and which features it supports.

*Source:* KIP-919; Kafka's `ControllerRegistrationManager`.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, Final, Protocol

import trio

from ..config.listeners import SECURITY_PROTOCOLS, controller_endpoints, controller_protocol
from ..errors import ErrorCode, KafkaError, error_code
from ..metadata.features import supported_ranges
from ..peers.errors import ClientError
from ..wire.messages.api_70_controller_registration import ControllerRegistrationRequest, Feature, Listener

if TYPE_CHECKING:
    from uuid import UUID

    from ..config.broker import BrokerConfig
    from ..metadata.image import MetadataDelta, MetadataImage
    from ..metadata.image_source import PublishedImages
    from ..wire.message import Message

log = logging.getLogger(__name__)

RETRY_S: Final = 1.0
"""After how long somebody asks again whom nobody answered, or who was refused: others may have changed by then."""


def registration_of(config: BrokerConfig, incarnation_id: UUID, machine: str = "") -> ControllerRegistrationRequest:
    """Return what a controller says of itself.

    Args:
        config: The node's.
        incarnation_id: Of its process.
        machine: Its machine's name.
    """
    return ControllerRegistrationRequest(
        controller_id=config.node_id,
        incarnation_id=incarnation_id,
        listeners=[
            Listener(
                name=name, host=host, port=port, security_protocol=SECURITY_PROTOCOLS[controller_protocol(config, name)]
            )
            for name, host, port in controller_endpoints(config, machine)
        ],
        features=[
            Feature(name=name, min_supported_version=lowest, max_supported_version=highest)
            for name, (lowest, highest) in supported_ranges(config).items()
        ],
    )


class Channel(Protocol):
    """A way to the active controller: `ControllerChannel`."""

    async def run(self, *, task_status: trio.TaskStatus[None]) -> None:
        """Be connected when it is wanted, until cancelled."""
        ...

    async def request(self, message: Message, *, timeout_ms: int) -> Any:
        """Ask the active controller."""
        ...


async def said_of(channel: Channel, request: Message, *, timeout_ms: int) -> tuple[ErrorCode, str] | None:
    """Ask the active controller; return what it says of that and why, None where nobody answers.

    Cancelled: it may be done.

    Args:
        channel: To it.
        request: One that is answered with an error's code.
        timeout_ms: How long an answer is waited for.
    """
    try:
        answer = await channel.request(request, timeout_ms=timeout_ms)
    except KafkaError as error:
        return error.code, error.detail
    except ClientError as error:
        log.debug("%s: %s", type(request).__name__, error)
        return None
    return error_code(answer.error_code), getattr(answer, "error_message", None) or ""


class ControllerRegistrar:
    """Life: made with the node, `run` as a task. Owned by one trio run."""

    def __init__(
        self,
        request: ControllerRegistrationRequest,
        source: PublishedImages,
        channel: Channel,
        *,
        timeout_ms: int,
    ) -> None:
        """Make it.

        Args:
            request: What this controller says of itself.
            source: Says whether it is known.
            channel: To the active controller, whoever that is; nobody else asks by it.
            timeout_ms: How long an answer is waited for.
        """
        self._request, self._source = request, source
        self._channel, self._timeout_ms = channel, timeout_ms
        self._changed = trio.Event()
        self._told = ErrorCode.NONE
        source.add_listener(self._look)

    def __repr__(self) -> str:
        return f"ControllerRegistrar({self._request.controller_id}, {'known' if self.is_known else 'not known'})"

    @property
    def is_known(self) -> bool:
        """Whether the metadata has this process."""
        known = self._source.image.controllers.get(self._request.controller_id)
        return known is not None and known.incarnation_id == self._request.incarnation_id

    def _look(self, _delta: MetadataDelta, _image: MetadataImage) -> None:
        self._changed.set()
        self._changed = trio.Event()

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Have this controller be known whenever it is not, until cancelled."""
        async with trio.open_nursery() as nursery:
            await nursery.start(self._channel.run)
            task_status.started()
            await self._be_known()

    async def _be_known(self) -> None:
        while True:
            changed = self._changed
            if not self.is_known:
                await self._register()
                with trio.move_on_after(RETRY_S):
                    await changed.wait()
            else:
                await changed.wait()

    async def _register(self) -> None:
        said = await said_of(self._channel, self._request, timeout_ms=self._timeout_ms)
        if said is None:
            return
        code, detail = said
        if code not in (ErrorCode.NONE, ErrorCode.NOT_CONTROLLER, self._told):
            log.warning("the active controller does not register this one: %s: %s", code.name, detail or code.text)
        self._told = code

"""A controller has the active one know it, whoever that is, whenever it does not."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import attrs
import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from odradek.kernel.config.broker import BrokerConfig, Setting
from odradek.kernel.config.registry import builtin_registry
from odradek.kernel.errors import ErrorCode, KafkaError
from odradek.kernel.metadata.image import ControllerImage, MetadataDelta, MetadataImage
from odradek.kernel.metadata.image_listeners import MetadataListener
from odradek.kernel.peers.errors import RequestTimeoutError
from odradek.kernel.quorum.registration import RETRY_S, ControllerRegistrar, registration_of
from odradek.kernel.wire.messages.api_70_controller_registration import ControllerRegistrationResponse

OURS, ANOTHER = UUID(int=5), UUID(int=6)


def config(**settings: str) -> BrokerConfig:
    chosen = {
        "node.id": "2",
        "process.roles": "controller",
        "controller.listener.names": "CONTROLLER,SECOND",
        "listener.security.protocol.map": "CONTROLLER:SSL,SECOND:PLAINTEXT",
        "listeners": "CONTROLLER://:9093,SECOND://two:9094",
        "controller.quorum.bootstrap.servers": "one:9093,two:9093",
        **settings,
    }
    return BrokerConfig(builtin_registry(), {key: Setting(text, "test") for key, text in chosen.items()})


@attrs.define
class Cluster:
    """The active controller, and the metadata as this node has it."""

    refusals: list[ErrorCode] = attrs.field(factory=list)
    takes: bool = True
    image: MetadataImage = attrs.field(factory=MetadataImage)
    asked_s: list[float] = attrs.field(factory=list)
    listeners: list[MetadataListener] = attrs.field(factory=list)

    def add_listener(self, listener: MetadataListener) -> None:
        self.listeners.append(listener)

    def show(self, incarnation: UUID) -> None:
        """Publish an image that has controller 2 like this."""
        self.image = MetadataImage(controllers={2: ControllerImage(2, incarnation, {}, {})})
        for listener in self.listeners:
            listener(MetadataDelta(), self.image)

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        task_status.started()
        await trio.sleep_forever()

    async def request(self, message: Any, *, timeout_ms: int) -> ControllerRegistrationResponse:
        self.asked_s.append(trio.current_time())
        if self.refusals:
            code = self.refusals.pop(0)
            if code is ErrorCode.REQUEST_TIMED_OUT:
                raise RequestTimeoutError("nobody answers")
            if code is ErrorCode.NOT_CONTROLLER:
                raise KafkaError(code)
            return ControllerRegistrationResponse(error_code=code, error_message="no")
        if self.takes:
            self.show(message.incarnation_id)
        return ControllerRegistrationResponse(error_message=None)


def asked(cluster: Cluster, *shown: UUID) -> list[float]:
    """Run a registrar while images are shown one by one; return when it asked, in seconds from the start."""

    async def main() -> float:
        started_s = trio.current_time()
        registrar = ControllerRegistrar(registration_of(config(), OURS), cluster, cluster, timeout_ms=1000)
        async with trio.open_nursery() as nursery:
            await nursery.start(registrar.run)
            for incarnation in shown:
                await wait_all_tasks_blocked()
                cluster.show(incarnation)
            await trio.sleep(4.5 * RETRY_S)
            nursery.cancel_scope.cancel()
        return started_s

    started_s = trio.run(main, clock=MockClock(autojump_threshold=0))
    return [at_s - started_s for at_s in cluster.asked_s]


def test_a_controller_tells_where_it_listens_how_and_what_it_supports() -> None:
    request = registration_of(config(), OURS, "this-machine")

    assert [(each.name, each.host, each.port, each.security_protocol) for each in request.listeners] == [
        ("CONTROLLER", "this-machine", 9093, 1),
        ("SECOND", "two", 9094, 0),
    ]
    assert ("kraft.version", 0, 1) in [
        (each.name, each.min_supported_version, each.max_supported_version) for each in request.features
    ]


def test_it_asks_once_and_is_known_from_then_on() -> None:
    assert asked(Cluster(), OURS) == [0]


def test_it_asks_again_when_another_process_has_its_place() -> None:
    assert asked(Cluster(), OURS, ANOTHER) == [0, 0]


@pytest.mark.parametrize("code", [ErrorCode.REQUEST_TIMED_OUT, ErrorCode.NOT_CONTROLLER, ErrorCode.UNSUPPORTED_VERSION])
def test_who_is_not_answered_or_refused_asks_again_and_says_once_why(
    code: ErrorCode, caplog: pytest.LogCaptureFixture
) -> None:
    assert asked(Cluster(refusals=[code, code])) == [0, RETRY_S, 2 * RETRY_S]
    assert [record.levelname for record in caplog.records] == ["WARNING"] * (code is ErrorCode.UNSUPPORTED_VERSION)


def test_who_is_answered_and_does_not_see_it_yet_waits_before_it_asks_again() -> None:
    assert asked(Cluster(takes=False)) == [0, RETRY_S, 2 * RETRY_S, 3 * RETRY_S, 4 * RETRY_S]

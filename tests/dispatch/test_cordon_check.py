"""Only a broker itself cordons its log directories; whoever else is asked may give them free."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import attrs
import pytest
import trio

from odradek.kernel.config.alter import Alteration, AlterConfigOp
from odradek.kernel.config.broker import BrokerConfig, Setting
from odradek.kernel.config.cordons import CORDONED
from odradek.kernel.config.registry import builtin_registry
from odradek.kernel.contracts.api_handler import RequestContext
from odradek.kernel.dispatch.cordon_check import CordonCheck
from odradek.kernel.dispatch.forwarded import InnerRequest
from odradek.kernel.dispatch.handlers.api_33_alter_configs import AlterConfigsHandler
from odradek.kernel.dispatch.handlers.api_44_incremental_alter_configs import IncrementalAlterConfigsHandler
from odradek.kernel.dispatch.long_requests import PieceContext, TaskPlace
from odradek.kernel.errors import ErrorCode
from odradek.kernel.metadata.image import MetadataImage, ResourceType
from odradek.kernel.wire.messages import api_33_alter_configs as replacing
from odradek.kernel.wire.messages import api_44_incremental_alter_configs as incremental
from tests.waiting_aside import wait_here

DIRECT: Any = None
FORWARDED: Any = InnerRequest(None, 44, 1, 7, None, None, None, None)  # type: ignore[arg-type]
SET, APPEND, SUBTRACT, DELETE = (
    AlterConfigOp.SET,
    AlterConfigOp.APPEND,
    AlterConfigOp.SUBTRACT,
    AlterConfigOp.DELETE,
)
MISSING = (
    "requirement failed: All entries in cordoned.log.dirs must be present in log.dirs or log.dir. Missing entries : "
)
ALONE = "requirement failed: When cordoned.log.dirs is set to *, it must not contain other values"
ANOTHER = "Unexpected broker id, expected 1, but received 2"


def check(cordoned: str = "") -> CordonCheck:
    """Return that of broker 1, whose directories are /a and /b; broker 2 has cordoned its /x and /y."""
    config = BrokerConfig(builtin_registry(), {"log.dirs": Setting("/a,/b", "here")})
    mine = config.with_dynamic(cluster={}, broker={CORDONED: cordoned})
    image = attrs.evolve(MetadataImage(), configs={(ResourceType.BROKER, "2"): {CORDONED: "/x,/y"}})
    return CordonCheck(1, lambda: mine, lambda: image)


def refused(
    name: str, operation: int, text: str | None, *, cordoned: str = "", context: RequestContext = DIRECT
) -> str | None:
    alterations = [Alteration("num.partitions", SET, "3"), Alteration(CORDONED, operation, text)]
    refusal = check(cordoned).refusal(ResourceType.BROKER, name, alterations, context)
    assert refusal is None or refusal.code is ErrorCode.INVALID_REQUEST
    return None if refusal is None else refusal.detail


@pytest.mark.parametrize("context", [DIRECT, FORWARDED], ids=["asked itself", "sent on"])
@pytest.mark.parametrize(
    ("operation", "text", "cordoned", "detail"),
    [
        (SET, "/a", "", None),
        (SET, "/a,/b,/a", "", None),
        (SET, "*", "", None),
        (SET, "", "*", None),
        (SET, "/c,/a,/d", "", f"{MISSING}/c, /d"),
        (SET, "/a/", "", f"{MISSING}/a/"),
        (SET, "*,/a", "", ALONE),
        (APPEND, "/b", "/a", None),
        (APPEND, "/c", "/a", f"{MISSING}/c"),
        (APPEND, "*", "/a", ALONE),
        (SUBTRACT, "/a", "/a,/b", None),
        (DELETE, None, "/a", None),
        (SET, None, "", None),  # the controller refuses it, and what is no list
        (SET, "/a,,/b", "", None),
    ],
)
def test_a_broker_refuses_what_names_none_of_its_own_directories(
    operation: int, text: str | None, cordoned: str, detail: str | None, context: RequestContext
) -> None:
    assert refused("1", operation, text, cordoned=cordoned, context=context) == detail


@pytest.mark.parametrize(
    ("operation", "text", "detail"),
    [
        (SET, "/x", None),
        (SET, "", None),
        (SUBTRACT, "/y", None),
        (DELETE, None, None),
        (APPEND, "/x", None),
        (SET, "/x,/z", ANOTHER),
        (SET, "*", ANOTHER),
        (APPEND, "/z", ANOTHER),
    ],
)
def test_another_brokers_directories_can_only_be_given_free(
    operation: int, text: str | None, detail: str | None
) -> None:
    assert refused("2", operation, text) == detail
    assert refused("2", operation, text, context=FORWARDED) is None  # it has looked itself


def test_other_keys_and_resources_are_the_controllers_business() -> None:
    wanted = [Alteration(CORDONED, SET, "/nowhere")]

    assert check().refusal(ResourceType.TOPIC, "1", wanted, DIRECT) is None
    assert check().refusal(ResourceType.BROKER, "", wanted, DIRECT) is None
    assert check().refusal(ResourceType.BROKER, "1", [Alteration("num.partitions", SET, "x")], DIRECT) is None


class Controller:
    """Answers that all is well, and remembers what it was asked."""

    def __init__(self, response: type, row: type) -> None:
        self.names: list[str] = []
        self._response, self._row = response, row

    async def ask(self, request: Any, timeout_ms: int | None = None) -> Any:
        self.names += [resource.resource_name for resource in request.resources]
        rows = [
            self._row(resource_type=each.resource_type, resource_name=each.resource_name) for each in request.resources
        ]
        return self._response(responses=rows)


@pytest.mark.parametrize(
    ("messages", "request_type", "response_type", "config", "handler"),
    [
        (
            incremental,
            incremental.IncrementalAlterConfigsRequest,
            incremental.IncrementalAlterConfigsResponse,
            incremental.AlterableConfig,
            IncrementalAlterConfigsHandler,
        ),
        (
            replacing,
            replacing.AlterConfigsRequest,
            replacing.AlterConfigsResponse,
            replacing.AlterableConfig,
            AlterConfigsHandler,
        ),
    ],
    ids=["IncrementalAlterConfigs", "AlterConfigs"],
)
def test_the_rest_of_a_request_is_asked_all_the_same_and_answered_in_its_order(
    messages: Any, request_type: Any, response_type: Any, config: Any, handler: Any
) -> None:
    controller = Controller(response_type, messages.AlterConfigsResourceResponse)

    def resource(kind: int, name: str) -> Any:
        return messages.AlterConfigsResource(
            resource_type=kind, resource_name=name, configs=[config(name=CORDONED, value="/c")]
        )

    request = request_type(
        resources=[
            resource(ResourceType.TOPIC, "t"),
            resource(ResourceType.BROKER, "1"),
            resource(ResourceType.TOPIC, "u"),
        ]
    )
    cordons = check()
    asked = handler(calls=controller, broker_id=1, config=cordons.config, image=cordons.image)
    context: Any = SimpleNamespace(wait_aside=wait_here)
    answer = trio.run(asked.handle_async, request, context)

    assert controller.names == ["t", "u"]
    assert [(row.resource_name, row.error_code) for row in answer.responses] == [
        ("t", ErrorCode.NONE),
        ("1", ErrorCode.INVALID_REQUEST),
        ("u", ErrorCode.NONE),
    ]


@pytest.mark.parametrize("is_long", [False, True])
def test_what_another_broker_has_looked_at_is_asked_also_when_it_is_long(*, is_long: bool) -> None:
    controller = Controller(incremental.IncrementalAlterConfigsResponse, incremental.AlterConfigsResourceResponse)
    wanted = incremental.AlterConfigsResource(
        resource_type=ResourceType.BROKER,
        resource_name="2",
        configs=[incremental.AlterableConfig(name=CORDONED, value="/z")],
    )
    cordons = check()
    handler = IncrementalAlterConfigsHandler(calls=controller, broker_id=1, config=cordons.config, image=cordons.image)
    nothing: Any = None
    envelope: Any = SimpleNamespace(wait_aside=wait_here)
    sent_on: Any = InnerRequest(nothing, 44, 1, 7, None, nothing, envelope=envelope, place=TaskPlace(None))
    context: Any = PieceContext(sent_on, 0.0) if is_long else sent_on
    request = incremental.IncrementalAlterConfigsRequest(resources=[wanted])
    answer: Any = trio.run(handler.handle_async, request, context)

    assert controller.names == ["2"]
    assert [row.error_code for row in answer.responses] == [ErrorCode.NONE]

"""Shell: what a broker that begins asks before it is one: which cluster it has come to, and which id is free there.

    DescribeCluster ──> a controller: the cluster's id
                    ──> a broker's listener for clients: refused; DescribeQuorum says where the controllers are
    BrokerRegistration without listeners, of one id after the other, until one was free

Who is given an id has it by a record of the metadata log, so no two have the same. It is asked for as often as needed:
the same process is told the same again. One that ends before its directories say its id has taken it for nobody: it is
shown as fenced until somebody unregisters it.

.. versionadded:: 0.1
"""

from __future__ import annotations

import logging
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Final

import trio

from ..classes import frozen
from ..config.definitions.drawn_ids import RESERVED_MAX
from ..config.roles import BOOTSTRAP, VOTERS, ControllerAddress
from ..errors import ConfigError, ErrorCode, KafkaError, UnansweredError, error_code
from ..metadata.features import supported_ranges
from ..peers.errors import ClientError
from ..types import METADATA_TOPIC
from ..wire.messages.api_55_describe_quorum import DescribeQuorumRequest, PartitionData, TopicData
from ..wire.messages.api_60_describe_cluster import DescribeClusterRequest
from ..wire.messages.api_62_broker_registration import BrokerRegistrationRequest, Feature
from .controller_channel import ControllerChannel
from .controller_nodes import CONTROLLERS
from .member import FINAL_REFUSALS

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from uuid import UUID

    from ..config.broker import BrokerConfig
    from ..machine.machine import Machine
    from ..wire.messages.api_55_describe_quorum import DescribeQuorumResponse
    from .controller_nodes import ControllerNodes

log = logging.getLogger(__name__)

ASK_MS: Final = 2000
"""How long one controller has to answer before the next is asked."""
QUIET_S: Final = 5.0
"""How long nobody need answer before that is told: nodes that are started together are not there at once."""
RETRY_S: Final = 0.05
LIMIT: Final = "initial.broker.registration.timeout.ms"
BROKER_ID_MAX: Final = 2**31 - 1


@frozen
class FoundCluster:
    """What was found.

    Attributes:
        cluster_id: The cluster's.
        controllers: Where its controllers are, if a broker that was taken for one said it.
    """

    cluster_id: str
    controllers: tuple[ControllerAddress, ...] = ()


async def find_cluster(config: BrokerConfig, machine: Machine, nodes: ControllerNodes) -> FoundCluster:
    """Ask any controller which cluster it has: a broker that begins has no other way to know.

    Args:
        config: The broker's.
        machine: Network, clock and chance.
        nodes: Where controllers are, or brokers that know it: then it is told.

    Raises:
        UnansweredError: None answers within `initial.broker.registration.timeout.ms`.
        ConfigError: It is a broker alone, which takes nobody in.
    """
    search = _Search(config, nodes)
    found = FoundCluster("")
    async with _asking("the cluster's id", config, machine, nodes) as channel:
        while not found.cluster_id and not search.refusal:
            found = await search.ask(channel)
    if search.refusal:
        hint = "it can become the first of several: docs/how-to/run-a-cluster.md, From one broker to three"
        raise ConfigError(search.refusal, where=config.where(BOOTSTRAP) or config.where(VOTERS), hint=hint)
    if not found.cluster_id:
        raise _unanswered(config, nodes, "no controller answered")
    return found


async def take_broker_id(config: BrokerConfig, machine: Machine, nodes: ControllerNodes, cluster_id: str) -> int:
    """Take the first id that is free, above `reserved.broker.max.id`. Cancelled: one may be taken for nobody.

    Args:
        config: Of the broker, which has no id.
        machine: Network, clock and chance.
        nodes: Where controllers are.
        cluster_id: Of the cluster.

    Raises:
        UnansweredError: There is no active controller within `initial.broker.registration.timeout.ms`.
        ConfigError: It refuses this broker; or all ids are taken.
    """
    broker_id, incarnation_id = config.get_int(RESERVED_MAX) + 1, machine.ids.new_id()
    code = ErrorCode.NOT_CONTROLLER
    async with _asking("a broker id", config, machine, nodes) as channel:
        while code is not ErrorCode.NONE and code not in FINAL_REFUSALS and broker_id <= BROKER_ID_MAX:
            request = _registration(config, broker_id, incarnation_id, cluster_id)
            try:
                code = error_code((await channel.request(request, timeout_ms=ASK_MS)).error_code)
            except (ClientError, KafkaError) as error:
                log.debug("a broker id: %s", error)
                channel.leave(channel.asked)
                await channel.rest()
                continue
            if code is ErrorCode.DUPLICATE_BROKER_REGISTRATION:
                broker_id += 1
            elif code is not ErrorCode.NONE:
                await trio.sleep(RETRY_S)
    if code in FINAL_REFUSALS:
        raise ConfigError(f"the controller refuses this broker: {code.name}: {code.text}")
    if broker_id > BROKER_ID_MAX:
        raise ConfigError("no broker id is free", where=config.where(RESERVED_MAX), hint="set node.id")
    if code is not ErrorCode.NONE:
        raise _unanswered(config, nodes, "no controller gave this broker an id")
    return broker_id


class _Search:
    """Finds controllers. Life: one `find_cluster`.

    Attributes:
        refusal: Why asking again is in vain; empty while it is not.
    """

    def __init__(self, config: BrokerConfig, nodes: ControllerNodes) -> None:
        self._nodes = nodes
        self._listener = config.get_list("controller.listener.names")[0].upper()
        self._told: tuple[ControllerAddress, ...] = ()
        self._began_s = trio.current_time()
        self._is_told = False
        self.refusal = ""

    async def ask(self, channel: ControllerChannel) -> FoundCluster:
        """Ask one address, and go on to the next, unless it has answered."""
        try:
            answer = await channel.request_of_any(DescribeClusterRequest(endpoint_type=CONTROLLERS), timeout_ms=ASK_MS)
            if answer.error_code == ErrorCode.MISMATCHED_ENDPOINT_TYPE:
                await self._ask_for_controllers(channel)
            elif answer.error_code == ErrorCode.NONE and answer.cluster_id:
                known = {each.broker_id: ControllerAddress(each.host, each.port) for each in answer.brokers}
                self._nodes.know_voters(known)
                return FoundCluster(answer.cluster_id, self._told)
        except (ClientError, KafkaError) as error:
            self._tell(error)
        channel.leave(channel.asked)
        await channel.rest()
        return FoundCluster("")

    async def _ask_for_controllers(self, channel: ControllerChannel) -> None:
        """Have a broker say where the controllers of its cluster are."""
        where = channel.asked
        topic = TopicData(topic_name=METADATA_TOPIC, partitions=[PartitionData(partition_index=0)])
        answer = await channel.request_of_any(DescribeQuorumRequest(topics=[topic]), timeout_ms=ASK_MS)
        found = self._addresses(answer)
        if where is not None and ControllerAddress(*where) in found.values():
            self.refusal = f"the broker at {ControllerAddress(*where)} keeps its metadata alone, and takes nobody in"
        elif found:
            self._told = tuple(found.values())
            self._nodes.know_voters(found)

    def _addresses(self, answer: DescribeQuorumResponse) -> dict[int, ControllerAddress]:
        found = {}
        for node in answer.nodes:
            named = [each for each in node.listeners if each.name.upper() == self._listener]
            for listener in (*named, *node.listeners)[:1]:
                found[node.node_id] = ControllerAddress(listener.host, listener.port)
        return found

    def _tell(self, error: Exception) -> None:
        if not self._is_told and trio.current_time() - self._began_s >= QUIET_S:
            log.warning("no controller answers yet at %s: %s", self._nodes, error)
            self._is_told = True


@asynccontextmanager
async def _asking(
    name: str, config: BrokerConfig, machine: Machine, nodes: ControllerNodes
) -> AsyncIterator[ControllerChannel]:
    """Give a channel for as long as a broker that begins may wait; when that is over, the block ends."""
    channel = ControllerChannel(name, config=config, machine=machine, nodes=nodes)
    with trio.move_on_after(config.get_int(LIMIT) / 1000):
        async with trio.open_nursery() as nursery:
            await nursery.start(channel.run)
            yield channel
            nursery.cancel_scope.cancel()


def _registration(
    config: BrokerConfig, broker_id: int, incarnation_id: UUID, cluster_id: str
) -> BrokerRegistrationRequest:
    return BrokerRegistrationRequest(
        broker_id=broker_id,
        cluster_id=cluster_id,
        incarnation_id=incarnation_id,
        features=[
            Feature(name=name, min_supported_version=low, max_supported_version=high)
            for name, (low, high) in supported_ranges(config).items()
        ],
        rack=config.get_text("broker.rack") or None,
    )


def _unanswered(config: BrokerConfig, nodes: ControllerNodes, what: str) -> UnansweredError:
    return UnansweredError(
        f"{what} at {nodes} within {config.get_int(LIMIT)} ms",
        where=config.where(VOTERS) or config.where(BOOTSTRAP),
        hint="does the node run that has the role of controller?",
    )

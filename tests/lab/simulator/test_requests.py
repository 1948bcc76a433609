"""What clients ask of simulated brokers, noted and refused on demand."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest
import trio

from odradek.client import NewTopic
from odradek.client.errors import BrokerError
from odradek.kernel.errors import ErrorCode
from odradek.kernel.wire.messages.api_19_create_topics import CreateTopicsRequest
from odradek.kernel.wire.messages.api_20_delete_topics import DeleteTopicsRequest
from odradek.lab.simulator.cluster import Cluster
from odradek.lab.simulator.requests import Requests
from odradek.lab.simulator.running import run_in_world
from odradek.lab.simulator.seeds import Seeds
from odradek.lab.simulator.world import SECOND, World


def beside_a_broker(test: Callable[[Cluster, Requests], Awaitable[None]]) -> None:
    """Run a test beside one broker that serves, whose requests to create topics are noted."""
    world = World(Seeds(1))

    async def main() -> None:
        async with trio.open_nursery() as nursery:
            cluster = Cluster(world, nursery)
            broker = cluster.add_broker({})
            requests = Requests(cluster, "CreateTopics")
            await cluster.start()
            await test(cluster, requests)
            broker.crash()
            nursery.cancel_scope.cancel()

    run_in_world(world, main, limit_ns=1000 * SECOND)


def test_requests_are_noted_with_their_time_and_client_and_others_are_not() -> None:
    async def test(cluster: Cluster, requests: Requests) -> None:
        async with cluster.admin("one") as one, cluster.admin("other") as other:
            await one.create_topic(NewTopic("a", 1, 1))
            await trio.sleep(60)
            await other.create_topic(NewTopic("b", 1, 1))
            await other.delete_topic("b")

        first, second = requests.of(CreateTopicsRequest)
        assert (first.node_id, first.client_id, first.request.topics[0].name) == (1, "one", "a")
        assert second.time_s - first.time_s == pytest.approx(60, abs=0.1)
        assert requests.of(CreateTopicsRequest, "other") == [second]
        assert requests.of(DeleteTopicsRequest) == []

    beside_a_broker(test)


def test_requests_are_refused_so_often_one_after_the_other() -> None:
    async def test(cluster: Cluster, requests: Requests) -> None:
        requests.refuse("CreateTopics", ErrorCode.POLICY_VIOLATION, times=1)
        requests.refuse("CreateTopics", ErrorCode.INVALID_CONFIG, times=1)
        codes = []
        async with cluster.admin("admin") as admin:
            for _ in range(2):
                with pytest.raises(BrokerError) as caught:
                    await admin.create_topic(NewTopic("a", 1, 1))
                codes.append(caught.value.code)
            await admin.create_topic(NewTopic("a", 1, 1))

        assert codes == [ErrorCode.POLICY_VIOLATION, ErrorCode.INVALID_CONFIG]
        assert len(requests.of(CreateTopicsRequest)) == 3

    beside_a_broker(test)


def test_refusals_outlive_their_broker_and_end_with_their_block() -> None:
    async def test(cluster: Cluster, requests: Requests) -> None:
        broker = cluster.brokers[1]
        async with cluster.admin("admin") as admin:
            with requests.refuse("DeleteTopics", ErrorCode.TOPIC_DELETION_DISABLED) as refusal:
                await admin.create_topic(NewTopic("a", 1, 1))
                broker.crash()
                await broker.wait_ended()
                broker.start()
                await broker.wait_serving()
                with pytest.raises(BrokerError, match="TOPIC_DELETION_DISABLED"):
                    await admin.delete_topic("a")
            await admin.delete_topic("a")

        assert refusal.met_count == 1

    beside_a_broker(test)

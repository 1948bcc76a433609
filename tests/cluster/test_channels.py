"""Channels from broker to broker: found by the metadata, made when asked for, and again after a death."""

from __future__ import annotations

import itertools
import logging

import pytest
import trio

from odradek.kernel.cluster.broker_channels import BrokerChannels
from odradek.kernel.cluster.peer_channel import PeerChannel
from odradek.kernel.cluster.peer_settings import peer_settings
from odradek.kernel.errors import ErrorCode, KafkaError
from odradek.kernel.peers.errors import ConnectionFailedError
from odradek.kernel.wire.messages.api_03_metadata import MetadataRequest
from odradek.kernel.wire.messages.api_63_broker_heartbeat import BrokerHeartbeatRequest
from odradek.lab.simulator.cluster import Cluster

from .simulated import fenced_in, in_cluster, until

TIMEOUT_MS = 1000


def channels_of(cluster: Cluster, node_id: int) -> BrokerChannels:
    """The channels of a broker that lives."""
    broker = cluster.brokers[node_id].broker
    assert broker is not None
    channels = broker.parts.metadata.channels
    assert channels is not None
    return channels


def test_a_broker_asks_another_one_and_again_when_that_is_back() -> None:
    async def main(cluster: Cluster) -> tuple[list[str], str]:
        channels = channels_of(cluster, 2)
        told = []
        for _ in range(2):
            answer = await channels.request(3, MetadataRequest(topics=[]), timeout_ms=TIMEOUT_MS, purpose="metadata")
            told.append(answer.cluster_id)
        cluster.brokers[3].crash()
        with pytest.raises(ConnectionFailedError) as refusal:
            await channels.request(3, MetadataRequest(topics=[]), timeout_ms=TIMEOUT_MS)
        await until(lambda: fenced_in(cluster)[3])
        cluster.brokers[3].start()
        await cluster.brokers[3].wait_serving()
        answer = await channels.request(3, MetadataRequest(topics=[]), timeout_ms=TIMEOUT_MS)
        return [*told, answer.cluster_id], str(refusal.value)

    told, refusal = in_cluster(main)

    assert len(set(told)) == 1
    assert len(told) == 3
    assert refusal.startswith("no connection for broker 3 within 1000 ms: cannot connect to broker-3:9092")


def test_a_broker_that_nobody_knows_is_not_reached_and_one_that_cannot_answer_says_so() -> None:
    async def main(cluster: Cluster) -> tuple[str, ErrorCode]:
        channels = channels_of(cluster, 2)
        with pytest.raises(ConnectionFailedError) as unknown:
            await channels.request(9, MetadataRequest(topics=[]), timeout_ms=TIMEOUT_MS)
        heartbeat = BrokerHeartbeatRequest(broker_id=2, broker_epoch=1, current_metadata_offset=0)
        with pytest.raises(KafkaError) as refused:
            await channels.request(3, heartbeat, timeout_ms=TIMEOUT_MS)
        return str(unknown.value), refused.value.code

    unknown, code = in_cluster(main)

    assert unknown.endswith("its address is not known")
    assert code is ErrorCode.UNSUPPORTED_VERSION


def test_channels_that_run_again_ask_whom_they_asked_before() -> None:
    async def main(cluster: Cluster) -> list[str]:
        broker = cluster.brokers[2].broker
        assert broker is not None
        machine = cluster.client_machine("restarted")
        channels = BrokerChannels(broker.options.config, machine, broker.parts.published)
        told = []
        for _ in range(2):
            async with trio.open_nursery() as nursery:
                await nursery.start(channels.run)
                answer = await channels.request(3, MetadataRequest(topics=[]), timeout_ms=TIMEOUT_MS)
                told.append(answer.cluster_id)
                nursery.cancel_scope.cancel()
        return told

    first, second = in_cluster(main)

    assert first == second


def test_addresses_that_refuse_in_turns_are_told_once_each_until_one_is_reached(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO, "odradek.kernel.cluster.peer_channel")

    async def main(cluster: Cluster) -> None:
        broker = cluster.brokers[2].broker
        assert broker is not None
        machine = cluster.client_machine("asking")
        addresses = itertools.cycle([("broker-3", 1), ("broker-3", 2)])
        channel = PeerChannel(
            "a test",
            address=lambda: next(addresses),
            settings=peer_settings(broker.options.config),
            network=machine.network,
            random_source=machine.random,
        )
        async with trio.open_nursery() as nursery:
            await nursery.start(channel.run)
            with pytest.raises(ConnectionFailedError):
                await channel.request(MetadataRequest(topics=[]), timeout_ms=30 * TIMEOUT_MS)
            nursery.cancel_scope.cancel()

    in_cluster(main)

    told = sorted(line for line in caplog.messages if line.startswith("channel for a test"))
    assert len(told) == 2
    assert "broker-3:1" in told[0]
    assert "broker-3:2" in told[1]

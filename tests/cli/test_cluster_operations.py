"""`odradek cluster brokers`, `drain`, `unregister`, `doctor`, against three brokers on virtual time and one alone."""

from __future__ import annotations

import json
from typing import Any

import pytest

from odradek.cli import cluster_brokers, cluster_doctor, cluster_drain
from odradek.client import NewTopic, ResourceType, TopicPartition
from odradek.kernel.errors import ConfigError
from odradek.testing.running_broker import RunningBroker

from .conftest import Odradek
from .on_cluster import Commands, on_three_brokers


async def make(commands: Commands, *assignments: list[int]) -> None:
    await commands.admin.create_topic(NewTopic("t", assignments=assignments))


async def partitions_of(commands: Commands) -> list[tuple[int, tuple[int, ...]]]:
    """Leader and replicas of each partition."""
    found = (await commands.admin.describe_topic("t")).partitions
    return [(found[number].leader_id, found[number].replicas) for number in sorted(found)]


async def crash(commands: Commands, broker_id: int) -> None:
    """Crash a broker, and wait until the cluster takes it for away."""
    commands.cluster.brokers[broker_id].crash()
    while not any(node.is_fenced for node in (await commands.admin.describe_cluster(with_fenced=True)).nodes):
        pass


def test_what_each_broker_has_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    async def test(commands: Commands) -> None:
        await make(commands, [1, 2], [1, 3], [2, 1])
        await commands.run(cluster_brokers._brokers, "cluster", "brokers", "--json")
        told = json.loads(capsys.readouterr().out)

        assert [(each["id"], each["state"], each["leaders"], each["replicas"]) for each in told] == [
            (1, "serves", 2, 3),
            (2, "serves", 1, 2),
            (3, "serves", 0, 1),
        ]
        await crash(commands, 3)
        await commands.run(cluster_brokers._brokers, "cluster", "brokers")
        assert capsys.readouterr().out.splitlines()[-1].split()[:7] == ["3", "-", "away", "0", "0", "1", "1"]

    on_three_brokers(test)


def test_a_broker_that_is_drained_leads_nothing_and_what_was_leads_back(capsys: pytest.CaptureFixture[str]) -> None:
    async def test(commands: Commands) -> None:
        await make(commands, [1, 2], [1, 3], [2, 1])
        assert await commands.run(cluster_drain._drain, "cluster", "drain", "1", "--json") == 0
        told = json.loads(capsys.readouterr().out)

        assert (told["moved"], told["left"]) == (2, [])
        assert [each["replicas"] for each in told["before"]["partitions"]] == [[1, 2], [1, 3]]
        assert await partitions_of(commands) == [(2, (2, 1)), (3, (3, 1)), (2, (2, 1))]

    on_three_brokers(test)


def test_what_nobody_else_can_lead_stays_and_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    async def test(commands: Commands) -> None:
        await make(commands, [2], [1])

        assert await commands.run(cluster_drain._drain, "cluster", "drain", "2") == 1
        assert "t-0 stays: no other replica is in sync" in capsys.readouterr().err
        assert await partitions_of(commands) == [(2, (2,)), (1, (1,))]

    on_three_brokers(test)


def test_a_broker_that_is_drained_of_all_has_nothing_and_gets_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    async def test(commands: Commands) -> None:
        await make(commands, [3, 2], [3, 1], [1, 2])
        assert await commands.run(cluster_drain._drain, "cluster", "drain", "3", "--replicas", "--json") == 0
        told = json.loads(capsys.readouterr().out)

        assert (told["cordoned"], told["votes"]) == (True, False)
        assert await partitions_of(commands) == [(1, (1, 2)), (2, (2, 1)), (1, (1, 2))]
        cordoned = await commands.admin.describe_configs(ResourceType.BROKER, "3", keys=["cordoned.log.dirs"])
        assert cordoned["cordoned.log.dirs"].value == "*"

    on_three_brokers(test)


def test_a_dead_broker_is_drained_and_unregistered(capsys: pytest.CaptureFixture[str]) -> None:
    async def test(commands: Commands) -> None:
        await make(commands, [3, 2], [1, 3])
        await crash(commands, 3)
        with pytest.raises(ConfigError, match="broker 3 has 2 replicas"):
            await commands.run(cluster_brokers._unregister, "cluster", "unregister", "3")
        assert await commands.run(cluster_drain._drain, "cluster", "drain", "3", "--replicas") == 0
        assert "odradek cluster unregister 3" in capsys.readouterr().out
        await commands.run(cluster_brokers._unregister, "cluster", "unregister", "3")

        described = await commands.admin.describe_cluster(with_fenced=True)
        assert [node.node_id for node in described.nodes] == [1, 2]

    on_three_brokers(test)


def test_what_cannot_be_drained_is_told_and_changes_nothing() -> None:
    async def test(commands: Commands) -> None:
        await make(commands, [1, 2, 3])
        for words, told in (
            (("9",), "there is no broker 9"),
            (("3", "--throttle", "5"), "leaders move without a copy"),
            (("3", "--replicas"), "there is no broker left for another replica of t-0"),
        ):
            with pytest.raises(ConfigError, match=told):
                await commands.run(cluster_drain._drain, "cluster", "drain", *words)
        with pytest.raises(ConfigError, match="broker 3 is there"):
            await commands.run(cluster_brokers._unregister, "cluster", "unregister", "3")
        cordoned = await commands.admin.describe_configs(ResourceType.BROKER, "3", keys=["cordoned.log.dirs"])
        assert not cordoned["cordoned.log.dirs"].value
        assert await partitions_of(commands) == [(1, (1, 2, 3))]

    on_three_brokers(test)


def test_a_doctor_finds_a_broker_that_is_down_and_nothing_when_it_is_back(capsys: pytest.CaptureFixture[str]) -> None:
    async def found(commands: Commands) -> tuple[int, list[tuple[str, Any]]]:
        status = await commands.run(cluster_doctor._doctor, "cluster", "doctor", "--json")
        findings = json.loads(capsys.readouterr().out)["findings"]
        return status, [(each["finding"], each["broker"]) for each in findings]

    async def test(commands: Commands) -> None:
        await make(commands, [1, 2], [2, 3], [3, 1])
        assert await found(commands) == (0, [])
        await crash(commands, 3)
        assert await found(commands) == (1, [("broker-down", 3)])
        commands.cluster.brokers[3].start()
        await commands.cluster.brokers[3].wait_serving()
        while len((await commands.admin.describe_topic("t")).partitions[1].isr) == 1:
            pass
        await commands.admin.elect_leaders([TopicPartition("t", 2)])
        assert await found(commands) == (0, [])

    on_three_brokers(test)


def test_a_doctor_looks_at_a_real_broker_and_at_its_host(odradek: Odradek, cli_broker: RunningBroker) -> None:
    done = odradek("cluster", "doctor", "--pause", "0", "--json")
    told = done.json

    assert told["brokers"] == 1
    assert {each["finding"] for each in told["findings"]} <= {"disk-full", "host-swaps", "disk-slow", "files-limit"}

"""`odradek reassign` and `odradek elect`, against three brokers on virtual time and against one alone."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
import trio

from odradek.cli import elect, reassign
from odradek.cli.cluster_calls import ClusterCalls
from odradek.cli.placing import carrying_out
from odradek.cli.placing.carrying_out import progress_text
from odradek.cli.placing.moves import Move, State, moves_of
from odradek.client import Admin, NewTopic, ResourceType, TopicPartition
from odradek.client.admin_values import Reassignment
from odradek.client.cluster import PartitionInfo, TopicInfo
from odradek.client.errors import BrokerError
from odradek.kernel.errors import ConfigError, ErrorCode
from odradek.kernel.peers.errors import RequestTimeoutError

from .conftest import Odradek
from .on_cluster import Commands, on_three_brokers, parsed

MOVED = [[2, 3], [3, 1]]


def plan_of(path: Path, *replicas: list[int], topic: str = "t") -> str:
    partitions = [
        {"topic": topic, "partition": number, "replicas": replicas[number]} for number in range(len(replicas))
    ]
    path.write_text(json.dumps({"version": 1, "partitions": partitions}), encoding="utf-8")
    return str(path)


async def make(commands: Commands, *assignments: list[int]) -> None:
    await commands.admin.create_topic(NewTopic("t", assignments=assignments))


async def replicas_of(commands: Commands, topic: str = "t") -> list[list[int]]:
    partitions = (await commands.admin.describe_topic(topic)).partitions
    return [[*partitions[number].replicas] for number in sorted(partitions)]


async def rates(commands: Commands, broker_id: int) -> list[str | None]:
    """The two rates of a broker, those that are set."""
    keys = ("leader.replication.throttled.rate", "follower.replication.throttled.rate")
    told = await commands.admin.describe_configs(ResourceType.BROKER, str(broker_id), keys=keys)
    return [told[key].value for key in keys if key in told]


def test_a_plan_is_made_executed_and_verified(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    async def test(commands: Commands) -> None:
        await make(commands, [1], [1], [1])
        await commands.run(reassign._generate, "reassign", "generate", "t")
        printed = capsys.readouterr()
        path = tmp_path / "plan.json"
        path.write_text(printed.out, encoding="utf-8")

        assert "2 partitions to change, 2 replicas to copy" in printed.err
        assert await commands.run(reassign._verify, "reassign", "verify", str(path)) == 1
        assert await commands.run(reassign._execute, "reassign", "execute", str(path)) == 0
        told = capsys.readouterr().out
        assert '"partition":1,"replicas":[1]' in told, "what leads back"
        assert "2 partitions are as they were asked for" in told
        assert sorted(await replicas_of(commands)) == [[1], [2], [3]]
        assert await commands.run(reassign._verify, "reassign", "verify", str(path)) == 0
        await commands.run(reassign._generate, "reassign", "generate", "t")
        again = capsys.readouterr()
        assert json.loads(again.out.splitlines()[-1]) == {"version": 1, "partitions": []}
        assert "nothing to move" in again.err

    on_three_brokers(test)


def test_a_plan_for_scripts_tells_what_was_and_what_each_broker_has(capsys: pytest.CaptureFixture[str]) -> None:
    async def test(commands: Commands) -> None:
        await make(commands, [1], [2])
        await commands.run(
            reassign._generate, "reassign", "generate", "t", "--replicas", "2", "--brokers", "2,3", "--json"
        )
        told = json.loads(capsys.readouterr().out)

        assert [{*each["replicas"]} for each in told["partitions"]] == [{2, 3}, {2, 3}]
        assert [each["replicas"] for each in told["before"]["partitions"]] == [[1], [2]]
        assert [(each["id"], each["after"]["replicas"], each["after"]["leaders"]) for each in told["brokers"]] == [
            (1, 0, 0),
            (2, 2, 1),
            (3, 2, 1),
        ]

    on_three_brokers(test)


def test_a_throttle_stands_while_it_moves_and_verify_takes_it_away(tmp_path: Path) -> None:
    async def test(commands: Commands) -> None:
        await make(commands, [1, 2], [2, 1])
        path = plan_of(tmp_path / "plan.json", *MOVED)
        words = ("reassign", "execute", path, "--throttle", "1000", "--no-wait")

        assert await commands.run(reassign._execute, *words) == 0
        assert await rates(commands, 3) == ["1000", "1000"]
        while await commands.admin.list_partition_reassignments():
            pass
        topic = await commands.admin.describe_configs(ResourceType.TOPIC, "t")
        assert topic["follower.replication.throttled.replicas"].value == "0:3,1:3"
        assert topic["leader.replication.throttled.replicas"].value == "0:1,0:2,1:2,1:1"
        assert await commands.run(reassign._verify, "reassign", "verify", path) == 0
        assert await rates(commands, 3) == []
        topic = await commands.admin.describe_configs(ResourceType.TOPIC, "t")
        assert not topic["follower.replication.throttled.replicas"].value

    on_three_brokers(test)


def test_what_moves_is_seen_and_cancelled_and_nothing_else_begins_meanwhile(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    async def test(commands: Commands) -> None:
        await make(commands, [1], [1])
        commands.cluster.brokers[3].crash()  # so that the move does not end
        path = plan_of(tmp_path / "plan.json", [3], [2])
        await commands.run(reassign._execute, "reassign", "execute", path, "--no-wait")
        capsys.readouterr()

        assert await commands.run(reassign._verify, "reassign", "verify", path, "--json") == 1
        told = json.loads(capsys.readouterr().out)["partitions"]
        assert (told[0]["state"], told[0]["replicas"]) == ("moving", [3, 1])
        for refused, words in ((reassign._execute, ("execute", path)), (reassign._generate, ("generate",))):
            with pytest.raises(ConfigError, match="partitions are moving already: t-0"):
                await commands.run(refused, "reassign", *words)
        assert await commands.run(reassign._cancel, "reassign", "cancel", path, "--json") == 0
        told = json.loads(capsys.readouterr().out)
        assert {"topic": "t", "partition": 0} in told["cancelled"]
        assert (await replicas_of(commands))[0] == [1]

    on_three_brokers(test)


def test_what_does_not_exist_is_told_before_anything_moves(tmp_path: Path) -> None:
    async def test(commands: Commands) -> None:
        await make(commands, [1], [1])
        unknown_broker = plan_of(tmp_path / "a.json", [2], [9])
        unknown_partition = plan_of(tmp_path / "b.json", [2], [2], [2])
        unknown_topic = plan_of(tmp_path / "c.json", [2], topic="tt")

        with pytest.raises(ConfigError, match=r"there is no broker 9, which t-1 is to go to"):
            await commands.run(reassign._execute, "reassign", "execute", unknown_broker)
        with pytest.raises(BrokerError, match="there is no 2"):
            await commands.run(reassign._execute, "reassign", "execute", unknown_partition)
        with pytest.raises(BrokerError, match="did you mean 't'"):
            await commands.run(reassign._execute, "reassign", "execute", unknown_topic)
        with pytest.raises(ConfigError, match="there is no broker 7"):
            await commands.run(reassign._generate, "reassign", "generate", "--brokers", "1,7")
        assert await replicas_of(commands) == [[1], [1]]

    on_three_brokers(test)


def test_preferred_leaders_are_elected_and_told(capsys: pytest.CaptureFixture[str]) -> None:
    async def test(commands: Commands) -> None:
        await make(commands, [1, 2], [2, 1])
        await commands.admin.alter_partition_reassignments({TopicPartition("t", 0): (2, 1)})

        assert await commands.run(elect._elect, "elect", "t:0", "--json") == 0
        told = json.loads(capsys.readouterr().out)
        assert told == {"elected": [{"topic": "t", "partition": 0, "before": 1, "leader": 2}], "failed": []}
        assert await commands.run(elect._elect, "elect", "t") == 0
        assert "elected 0 leaders" in capsys.readouterr().out

    on_three_brokers(test)


def test_who_cannot_lead_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    async def test(commands: Commands) -> None:
        await make(commands, [3, 1])
        commands.cluster.brokers[3].crash()
        while (await commands.admin.describe_topic("t")).partitions[0].leader_id != 1:
            pass

        assert await commands.run(elect._elect, "elect") == 1
        assert "PREFERRED_LEADER_NOT_AVAILABLE" in capsys.readouterr().out

    on_three_brokers(test)


def test_an_unclean_election_wants_to_know_of_what(command: Any) -> None:
    done = command.run("elect", "--unclean")

    assert done.status == 2
    assert "an unclean election loses records" in done.err


def test_a_cancel_wants_to_know_of_what(odradek: Odradek) -> None:
    assert odradek("reassign", "cancel").status == 2
    assert odradek.ok("reassign", "cancel", "--all", "--json").json == {"cancelled": [], "failed": []}


def test_one_broker_alone_has_nothing_to_move(odradek: Odradek) -> None:
    done = odradek.ok("reassign", "generate", "--json")

    assert done.json["partitions"] == []
    assert odradek("reassign", "generate", "--brokers", "one").status == 2


def test_how_far_moves_are_is_told_on_a_line() -> None:
    one = Move(TopicPartition("t", 0), (1,), (1,), State.DONE)
    two = Move(TopicPartition("t", 1), (1,), (2, 1), State.MOVING, 250_000, 1_000_000)

    assert progress_text([one, two], 4) == " 25%  1 of 2 partitions done, 250 kB of 1 MB of the others, 4 s"
    assert progress_text([one], 4) == "1 of 1 partition done"


def test_what_an_earlier_plan_was_copying_is_not_waited_for() -> None:
    partition = TopicPartition("t", 0)
    info = PartitionInfo("t", 0, 1, 0, (4, 1, 3), (1,))
    topics = {"t": TopicInfo("t", UUID(int=1), is_internal=False, partitions={0: info})}
    moving = {partition: Reassignment((4, 1, 3), (3, 4), (1, 3))}
    sizes = {1: {partition: 100}, 3: {partition: 90}, 4: {partition: 10}}
    (move,) = moves_of({partition: (4,)}, topics, moving, sizes)

    assert (move.state, move.copied_bytes, move.total_bytes) == (State.MOVING, 10, 100)


async def throttled(commands: Commands, topic: str) -> tuple[str | None, str | None]:
    """The replicas of a topic that are throttled, as leaders and as followers."""
    told = await commands.admin.describe_configs(ResourceType.TOPIC, topic)
    return tuple(told[f"{side}.replication.throttled.replicas"].value for side in ("leader", "follower"))  # type: ignore[return-value]


async def lose_a_broker(commands: Commands) -> None:
    """Let broker 3 die, and everybody know: what moves to it does not end."""
    commands.cluster.brokers[3].crash()
    while 3 in {node.node_id for node in (await commands.admin.describe_cluster()).nodes}:
        pass


async def begin_one_that_does_not_end(commands: Commands, path: Path) -> None:
    """Move `t-0` under a throttle to a broker that is dead."""
    await make(commands, [1], [1])
    await lose_a_broker(commands)
    plan = plan_of(path, [3])
    assert await commands.run(reassign._execute, "reassign", "execute", plan, "--throttle", "1000", "--no-wait") == 0


def test_the_throttle_of_others_that_move_stays_when_one_has_ended(tmp_path: Path) -> None:
    async def test(commands: Commands) -> None:
        await begin_one_that_does_not_end(commands, tmp_path / "long.json")
        await commands.admin.create_topic(NewTopic("tt", assignments=[[1]]))
        other = plan_of(tmp_path / "other.json", [2], topic="tt")
        words = ("reassign", "execute", other, "--additional", "--throttle", "2000")

        assert await commands.run(reassign._execute, *words) == 0
        assert await rates(commands, 1) == ["2000", "2000"]
        assert await rates(commands, 2) == ["2000", "2000"]
        assert await throttled(commands, "tt") == ("", "")

        same = plan_of(tmp_path / "same.json", [3], [2])
        words = ("reassign", "execute", same, "--additional", "--throttle", "2000")
        assert await commands.run(reassign._execute, *words, "--no-wait") == 0
        assert await throttled(commands, "t") == ("0:1,1:1", "0:3,1:2")
        while [*await commands.admin.list_partition_reassignments()] != [TopicPartition("t", 0)]:
            pass
        assert await commands.run(reassign._verify, "reassign", "verify", same) == 1
        assert await rates(commands, 2) == ["2000", "2000"]
        assert await throttled(commands, "t") == ("0:1", "0:3")

        assert await commands.run(reassign._cancel, "reassign", "cancel", "--all") == 0
        assert await rates(commands, 1) == []
        assert await throttled(commands, "t") == ("", "")

    on_three_brokers(test)


def test_rates_that_stay_are_told_with_what_takes_them_away(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What moves last may not have been throttled: when it ends nobody looks for rates."""

    async def test(commands: Commands) -> None:
        await make(commands, [1], [1])
        await lose_a_broker(commands)
        endless = plan_of(tmp_path / "endless.json", [3])
        assert await commands.run(reassign._execute, "reassign", "execute", endless, "--no-wait") == 0
        await commands.admin.create_topic(NewTopic("tt", assignments=[[1]]))
        await trio.sleep(1)  # of virtual time: every broker knows it
        other = plan_of(tmp_path / "other.json", [2], topic="tt")
        capsys.readouterr()

        words = ("reassign", "execute", other, "--additional", "--throttle", "2000")
        assert await commands.run(reassign._execute, *words) == 0
        assert "brokers stay throttled, as others move: `odradek reassign verify --all`" in capsys.readouterr().err
        assert await rates(commands, 1) == ["2000", "2000"]
        assert await commands.run(reassign._verify, "reassign", "verify", other) == 0
        assert "brokers stay throttled" in capsys.readouterr().err

        assert await commands.run(reassign._cancel, "reassign", "cancel", endless, "--preserve-throttles") == 0
        assert await commands.run(reassign._verify, "reassign", "verify", "--all") == 0
        done = capsys.readouterr()
        assert "throttles are taken away" in done.out
        assert not done.err
        assert await rates(commands, 1) == []

    on_three_brokers(test)


def test_where_others_move_and_no_broker_is_throttled_nothing_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    async def test(commands: Commands) -> None:
        await make(commands, [1], [1])
        await lose_a_broker(commands)
        endless = plan_of(tmp_path / "endless.json", [3])
        assert await commands.run(reassign._execute, "reassign", "execute", endless, "--no-wait") == 0
        capsys.readouterr()

        assert await commands.run(reassign._verify, "reassign", "verify", endless) == 1
        assert not capsys.readouterr().err

    on_three_brokers(test)


def test_what_was_throttled_for_moves_that_are_refused_is_not_any_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def refuse(*_: Any) -> None:
        raise BrokerError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED, "no")

    async def test(commands: Commands) -> None:
        await make(commands, [1], [1])
        plan = plan_of(tmp_path / "plan.json", [3], [2])
        monkeypatch.setattr(Admin, "alter_partition_reassignments", refuse)
        with pytest.raises(BrokerError, match="no"):
            await commands.run(reassign._execute, "reassign", "execute", plan, "--throttle", "1000")

        assert [await rates(commands, broker_id) for broker_id in (1, 2, 3)] == [[], [], []]
        assert await throttled(commands, "t") == ("", "")

    on_three_brokers(test)


@pytest.mark.parametrize("call", ["alter_partition_reassignments", "list_topics"])
def test_where_nobody_knows_whether_it_moves_what_stays_is_told_and_can_be_taken_away(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], call: str
) -> None:
    async def fail(*_: Any, **__: Any) -> None:
        raise RequestTimeoutError("no answer within 30000 ms")

    async def test(commands: Commands) -> None:
        await make(commands, [1], [1])
        plan = plan_of(tmp_path / "plan.json", [3], [2])
        topics = {topic.name: topic for topic in await commands.admin.list_topics()}
        with monkeypatch.context() as patched:
            patched.setattr(Admin, call, fail)
            with pytest.raises(RequestTimeoutError):
                await reassign._execute(
                    parsed("reassign", "execute", plan, "--throttle", "1000"), ClusterCalls(commands.admin, topics)
                )
        assert "odradek reassign verify --all" in capsys.readouterr().err
        assert await rates(commands, 3) == ["1000", "1000"]
        assert await throttled(commands, "t") == ("0:1,1:1", "0:3,1:2")
        while await commands.admin.list_partition_reassignments():
            pass

        assert await commands.run(reassign._verify, "reassign", "verify", "--all") == 0
        assert "nothing moves\nthrottles are taken away" in capsys.readouterr().out
        assert await rates(commands, 3) == []
        assert await throttled(commands, "t") == ("", "")

    on_three_brokers(test)


def test_all_that_moves_can_be_verified(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    async def test(commands: Commands) -> None:
        await begin_one_that_does_not_end(commands, tmp_path / "long.json")
        capsys.readouterr()

        assert await commands.run(reassign._verify, "reassign", "verify", "--all", "--json") == 1
        told = json.loads(capsys.readouterr().out)
        assert [(each["state"], each["wanted"]) for each in told["partitions"]] == [("moving", [3])]
        assert not told["throttles_cleared"]
        assert await rates(commands, 1) == ["1000", "1000"]

    on_three_brokers(test)


@pytest.mark.parametrize(("ends_first", "expected"), [(True, (1, True)), (False, (1, False))])
def test_where_the_last_move_ends_while_all_are_verified_throttles_go_whole_or_stay(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    ends_first: bool,
    expected: tuple[int, bool],
) -> None:
    look = carrying_out.look

    async def look_while_it_ends(calls: ClusterCalls, wanted: Any) -> list[Move]:
        moves = [] if ends_first else await look(calls, wanted)
        await calls.admin.alter_partition_reassignments({TopicPartition("t", 0): None})
        while await calls.admin.list_partition_reassignments():
            pass
        return await look(calls, wanted) if ends_first else moves

    async def test(commands: Commands) -> None:
        await begin_one_that_does_not_end(commands, tmp_path / "long.json")
        capsys.readouterr()

        with monkeypatch.context() as patched:
            patched.setattr(carrying_out, "look", look_while_it_ends)
            status = await commands.run(reassign._verify, "reassign", "verify", "--all", "--json")
        is_cleared = json.loads(capsys.readouterr().out)["throttles_cleared"]
        assert (status, is_cleared) == expected
        if not is_cleared:
            assert await rates(commands, 1) == ["1000", "1000"]
            assert await throttled(commands, "t") == ("0:1", "0:3")
            assert await commands.run(reassign._verify, "reassign", "verify", "--all") == 0
        assert await rates(commands, 1) == []
        assert await throttled(commands, "t") == ("", "")

    on_three_brokers(test)


def test_a_verify_wants_to_know_of_what(odradek: Odradek) -> None:
    assert odradek("reassign", "verify").status == 2
    assert odradek.ok("reassign", "verify", "--all", "--json").json == {
        "partitions": [],
        "refused": [],
        "throttles_cleared": False,
    }


def test_who_interrupts_a_throttled_move_is_told_what_takes_the_throttle_away(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    async def test(commands: Commands) -> None:
        await make(commands, [1])
        await lose_a_broker(commands)
        plan = plan_of(tmp_path / "plan.json", [3])
        with trio.move_on_after(5):
            await commands.run(reassign._execute, "reassign", "execute", plan, "--throttle", "1000")

        assert "moves go on, throttled: `odradek reassign verify --all`" in capsys.readouterr().err

    on_three_brokers(test)

"""Controllers that keep the metadata log together: who leads, what is committed, what is left after accidents."""

from __future__ import annotations

import uuid
from pathlib import Path, PurePath
from typing import TYPE_CHECKING

import pytest
import trio

from odradek.kernel.contracts.culprits import root_of
from odradek.kernel.contracts.election import LeadershipGivenUp, PeerRefused
from odradek.kernel.controller.local_log import logged_records
from odradek.kernel.controller.snapshots import SnapshotId
from odradek.kernel.errors import CorruptionError, KafkaError, StorageError
from odradek.kernel.machine.system.machine import real_machine
from odradek.kernel.machine.turnstile import run_at_once
from odradek.kernel.quorum.opening import reached_snapshot_end
from odradek.kernel.quorum.quorum_log import QuorumLog
from odradek.kernel.records.builder import BatchBuilder
from odradek.kernel.records.control import KRaftVoters
from odradek.kernel.wire.messages.api_80_add_raft_voter import AddRaftVoterRequest
from odradek.lab.simulator.disk import File
from odradek.plugins.storage_memory.engine import MemoryEngine
from odradek.testing.faults import PowerLoss
from tests.plugins.election_quorum.nodes import directory_of, voters_of
from tests.quorum.quorum_world import Controller, Quorum, append, batch_of, in_quorum, values

if TYPE_CHECKING:
    from collections.abc import Sequence

DATA = PurePath("/data")
STATE = DATA / "__cluster_metadata-0" / "quorum-state"


def follower_of(quorum: Quorum, leader: QuorumLog) -> Controller:
    """One of the others."""
    return next(each for node_id, each in quorum.controllers.items() if node_id != leader.node_id)


async def fenced(log: QuorumLog) -> str:
    """Append a record, and return what becomes of it."""
    try:
        run_at_once(log.append_in_steps([b"lost"], 0))
        await log.commit()
    except KafkaError as error:
        return error.code.name
    return "committed"


# ---------------------------------------------------------------------------------------------------- leading


def test_voters_elect_one_leader_and_have_what_it_appends() -> None:
    async def main(quorum: Quorum) -> tuple[list[list[bytes]], list[str]]:
        leader = await quorum.leader()
        await append(leader, b"one", b"two")
        await append(leader, b"three")
        await quorum.settled()
        logs = quorum.logs.values()
        return [values(log) for log in logs], sorted(log.role.value for log in logs)

    kept, roles = in_quorum(main)

    assert (kept, roles) == ([[b"one", b"two", b"three"]] * 3, ["follower", "follower", "leader"])


def test_logs_in_memory_are_kept_together_too() -> None:
    async def main(quorum: Quorum) -> list[list[bytes]]:
        await append(await quorum.leader(), b"one")
        await quorum.settled()
        return [values(log) for log in quorum.logs.values()]

    assert in_quorum(main, engine=MemoryEngine) == [[b"one"]] * 3


def test_voters_that_are_known_by_their_ids_alone_elect_one_too() -> None:
    async def main(quorum: Quorum) -> tuple[list[bytes], KRaftVoters | None]:
        leader = await quorum.leader()
        await append(leader, b"one")
        return values(leader), leader.voters

    assert in_quorum(main, static=True) == ([b"one"], None)


def test_a_single_voter_leads_at_once() -> None:
    async def main(quorum: Quorum) -> tuple[list[bytes], float]:
        begin = trio.current_time()
        leader = await quorum.leader()
        await append(leader, b"one")
        return values(leader), trio.current_time() - begin

    kept, took_s = in_quorum(main, 7)

    assert kept == [b"one"]
    assert took_s < 0.2


def test_what_is_promised_is_kept_beside_a_log_that_has_no_record_yet() -> None:
    async def main(quorum: Quorum) -> list[bytes]:
        only = quorum.controllers[7]
        only.known_end = None
        leader = await quorum.leader()
        await append(leader, b"one")
        only.crash(PowerLoss.LOST)
        only.start()
        return values(await quorum.leader())

    assert in_quorum(main, 7) == [b"one"]


def test_a_log_that_a_broker_alone_has_written_goes_on_with_voters() -> None:
    async def main(quorum: Quorum) -> tuple[list[bytes], int, KRaftVoters | None]:
        only = quorum.controllers[7]
        await quorum.leader()
        only.crash()
        only.host.disk.directory(DATA.parent).put(DATA.name, None)
        process = only.host.start_process()
        alone = only.open_log(process)
        alone.assign_epoch(5, 0)
        alone.append(batch_of(b"old", 0, 5), 0, 0, 0)
        alone.write_pending()
        alone.flush()
        process.kill()
        only.start()
        leader = await quorum.leader()
        await append(leader, b"new")
        return values(leader), leader.leader_epoch, leader.voters_at(leader.high_watermark)

    kept, epoch, voters = in_quorum(main, 7)

    assert (kept, voters) == ([b"old", b"new"], voters_of(7))
    assert epoch > 5


def test_an_epoch_begins_with_a_record_of_its_leader_and_the_first_one_names_the_voters() -> None:
    async def main(quorum: Quorum) -> tuple[int | None, int, KRaftVoters | None, KRaftVoters | None]:
        leader = await quorum.leader()
        return leader.epoch_start, leader.high_watermark, leader.voters_at(-1), leader.voters_at(2)

    assert in_quorum(main) == (0, 3, voters_of(1, 2, 3), voters_of(1, 2, 3))


def test_when_the_leader_is_killed_another_one_goes_on_and_the_killed_one_follows() -> None:
    async def main(quorum: Quorum) -> tuple[list[list[bytes]], float, bool]:
        first = await quorum.leader()
        await append(first, b"one")
        await quorum.settled()
        quorum.controllers[first.node_id].crash()
        begin = trio.current_time()
        second = await quorum.leader()
        took_s = trio.current_time() - begin
        await append(second, b"two")
        quorum.controllers[first.node_id].start()
        await quorum.until(lambda: len(quorum.logs) == 3)
        await quorum.settled()
        return [values(log) for log in quorum.logs.values()], took_s, second.leader_epoch > first.leader_epoch

    kept, took_s, is_newer = in_quorum(main)

    assert (kept, is_newer) == ([[b"one", b"two"]] * 3, True)
    assert took_s < 0.3


def test_a_leader_that_gives_up_is_followed_by_another_without_a_time_out() -> None:
    async def main(quorum: Quorum) -> tuple[float, bool]:
        first = await quorum.settled()
        await first.give_up()
        begin = trio.current_time()
        second = await quorum.leader()
        return trio.current_time() - begin, second.node_id == first.node_id

    took_s, is_same = in_quorum(main)

    assert not is_same
    assert took_s < 0.1


def test_a_leader_that_is_cut_off_commits_nothing_and_gives_up() -> None:
    async def main(quorum: Quorum) -> tuple[str, list[list[bytes]]]:
        first = await quorum.leader()
        await append(first, b"one")
        quorum.isolate(first.node_id)
        outcome = await fenced(first)
        second = await quorum.leader(but=first.node_id)
        await append(second, b"two")
        quorum.cut.clear()
        await quorum.settled()
        return outcome, [values(log) for log in quorum.logs.values()]

    assert in_quorum(main) == ("NOT_CONTROLLER", [[b"one", b"two"]] * 3)


def test_who_does_not_lead_appends_nothing() -> None:
    async def main(quorum: Quorum) -> str:
        leader = await quorum.settled()
        log = follower_of(quorum, leader).log
        assert log is not None
        return await fenced(log)

    assert in_quorum(main) == "NOT_CONTROLLER"


def test_what_was_begun_to_be_appended_is_not_when_the_lead_is_lost_on_the_way() -> None:
    async def main(quorum: Quorum) -> tuple[str, int]:
        leader = await quorum.settled()
        end_offset, steps = leader.end_offset, leader.append_in_steps([b"a", b"b", b"c"], 0)
        next(steps)
        await leader.give_up()
        try:
            run_at_once(steps)
        except KafkaError as error:
            return error.code.name, leader.end_offset - end_offset
        return "appended", -1

    assert in_quorum(main) == ("NOT_CONTROLLER", 0)


def test_what_is_begun_to_be_appended_stands_behind_what_the_quorum_says_of_itself_meanwhile() -> None:
    async def main(quorum: Quorum) -> tuple[int, list[bytes], KRaftVoters | None]:
        leader = await quorum.settled()
        await with_observer(quorum, 4)
        end_offset, steps = leader.end_offset, leader.append_in_steps([b"a", b"b", b"c"], 0)
        next(steps)
        await leader.ask(-1, add_request(4))
        offset = run_at_once(steps)
        await leader.commit()
        return offset - end_offset, values(leader), leader.voters

    assert in_quorum(main) == (1, [b"a", b"b", b"c"], voters_of(1, 2, 3, 4))


async def with_observer(quorum: Quorum, node_id: int) -> Controller:
    """Let one more controller live, whom nobody names, until it has everything."""
    observer = quorum.controllers[node_id] = Controller(quorum, node_id, KRaftVoters(voters=[]))
    observer.start()
    await quorum.until(lambda: observer.log is not None)
    await quorum.settled()
    await trio.sleep(0.01)  # it has told the leader of that
    return observer


def add_request(node_id: int) -> AddRaftVoterRequest:
    """The request for a vote of one more controller."""
    return AddRaftVoterRequest(voter_id=node_id, voter_directory_id=directory_of(node_id), timeout_ms=5_000)


# ---------------------------------------------------------------------------------------------------- following


def test_what_a_follower_tells_the_leader_survives_the_loss_of_power() -> None:
    async def main(quorum: Quorum) -> list[list[bytes]]:
        leader = await quorum.settled()
        for number in range(20):
            await append(leader, b"%d" % number)
        for controller in quorum.controllers.values():
            controller.crash(PowerLoss.LOST)
        for controller in quorum.controllers.values():
            controller.start()
        await quorum.until(lambda: len(quorum.logs) == 3)
        await quorum.settled()
        return [values(log) for log in quorum.logs.values()]

    assert in_quorum(main) == [[b"%d" % number for number in range(20)]] * 3


def test_a_follower_that_went_another_way_gives_up_what_nobody_committed() -> None:
    async def main(quorum: Quorum) -> tuple[list[list[bytes]], KRaftVoters | None]:
        first = await quorum.settled()
        quorum.isolate(first.node_id)
        run_at_once(first.append_in_steps([b"lost", b"lost too"], 0))
        second = await quorum.leader(but=first.node_id)
        await append(second, b"kept")
        quorum.cut.clear()
        await quorum.settled()
        return [values(log) for log in quorum.logs.values()], first.voters

    assert in_quorum(main) == ([[b"kept"]] * 3, voters_of(1, 2, 3))


def test_voters_that_are_truncated_count_no_more() -> None:
    async def main(quorum: Quorum) -> tuple[KRaftVoters | None, KRaftVoters | None]:
        first = await quorum.settled()
        await with_observer(quorum, 4)
        quorum.isolate(first.node_id)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(first.ask, -1, add_request(4))
            await quorum.until(lambda: first.voters == voters_of(1, 2, 3, 4))
            appended = first.voters
            second = await quorum.leader(but=first.node_id)
            await append(second, b"kept")
            quorum.cut.clear()
            await quorum.settled()
            nursery.cancel_scope.cancel()
        return appended, first.voters

    assert in_quorum(main) == (voters_of(1, 2, 3, 4), voters_of(1, 2, 3))


def test_a_voter_is_added_and_takes_part() -> None:
    async def main(quorum: Quorum) -> tuple[list[bytes], list[KRaftVoters | None]]:
        leader = await quorum.settled()
        await with_observer(quorum, 4)
        await leader.ask(-1, add_request(4))
        follower_of(quorum, leader).crash()  # three of four are a majority with the new one alone
        await append(leader, b"one")
        await quorum.settled()
        return values(leader), [log.voters for log in quorum.logs.values()]

    assert in_quorum(main) == ([b"one"], [voters_of(1, 2, 3, 4)] * 3)


@pytest.mark.parametrize("damage", ["crc", "gap", "epoch", "newer epoch", "control"])
def test_a_damaged_batch_is_refused_and_what_came_before_it_stays(damage: str) -> None:
    async def main(quorum: Quorum) -> tuple[str, int]:
        leader = await quorum.settled()
        follower = follower_of(quorum, leader)
        follower.follows = False
        await trio.sleep(1)
        log = follower.log
        assert log is not None
        epoch, end = log.leader_epoch, log.end_offset
        bad = {
            "crc": batch_of(b"bad", end + 1, epoch)[:-1] + b"?",
            "gap": batch_of(b"bad", end + 2, epoch),
            "epoch": batch_of(b"bad", end + 1, epoch - 1),
            "newer epoch": batch_of(b"bad", end + 1, epoch + 1),
            "control": bad_control(end + 1, epoch),
        }[damage]
        try:
            run_at_once(log.append_fetched_in_steps(batch_of(b"good", end, epoch) + bad, epoch))
        except CorruptionError as error:
            return str(error), log.end_offset - end
        return "taken", log.end_offset - end

    told, count = in_quorum(main)

    assert told != "taken"
    assert count == 1


def bad_control(offset: int, epoch: int) -> bytes:
    """A control batch whose record is none."""
    builder = BatchBuilder(base_offset=offset, partition_leader_epoch=epoch, is_control=True)
    builder.append(b"?", b"", timestamp=0)
    return bytes(builder.build())


def test_what_was_fetched_in_another_epoch_is_not_appended() -> None:
    async def main(quorum: Quorum) -> int:
        leader = await quorum.settled()
        follower = follower_of(quorum, leader)
        log = follower.log
        assert log is not None
        epoch, end = log.leader_epoch, log.end_offset
        steps = log.append_fetched_in_steps(batch_of(b"a", end, epoch) + batch_of(b"b", end + 1, epoch), epoch)
        next(steps)
        quorum.isolate(leader.node_id)
        log.step(PeerRefused(leader.node_id))
        await quorum.until(lambda: not log.follows(epoch))
        before = log.end_offset
        run_at_once(steps)
        return log.end_offset - before

    assert in_quorum(main) == 0


def test_what_is_committed_is_never_truncated() -> None:
    async def main(quorum: Quorum) -> tuple[str, list[bytes]]:
        leader = await quorum.leader()
        await append(leader, b"one")
        await quorum.settled()
        log = follower_of(quorum, leader).log
        assert log is not None
        with pytest.raises(StorageError) as refused:
            log.truncate(log.high_watermark - 1)
        with pytest.raises(StorageError, match="were committed"):
            log.begin_anew(SnapshotId(1, 1), None)
        return str(refused.value), values(log)

    told, kept = in_quorum(main)

    assert "lost what they had acknowledged" in told
    assert kept == [b"one"]


def test_who_leads_truncates_nothing() -> None:
    async def main(quorum: Quorum) -> list[str]:
        leader = await quorum.settled()
        with pytest.raises(KafkaError) as cut:
            leader.truncate(leader.end_offset)
        with pytest.raises(KafkaError) as begun:
            leader.begin_anew(SnapshotId(90, 1), None)
        return [refused.value.code.name for refused in (cut, begun)]

    assert in_quorum(main) == ["NOT_LEADER_OR_FOLLOWER"] * 2


# ---------------------------------------------------------------------------------------------------- snapshots


def test_a_follower_that_lags_behind_a_snapshot_begins_anew_behind_it() -> None:
    async def main(quorum: Quorum) -> tuple[list[bytes], int, KRaftVoters | None, int]:
        leader = await quorum.settled()
        for number in range(3):
            await append(leader, b"%d" % number)
        end = leader.high_watermark
        quorum.controllers[leader.node_id].snapshot = (SnapshotId(end, leader.latest_epoch), leader.voters)
        leader.drop_below(end)
        await append(leader, b"behind")
        late = await with_observer(quorum, 4)
        assert late.log is not None
        kept = values(late.log), late.log.start_offset - end, late.log.voters
        late.crash()
        late.start()
        await quorum.until(lambda: late.log is not None)
        return *kept, late.log.start_offset - end

    assert in_quorum(main) == ([b"behind"], 0, voters_of(1, 2, 3), 0)


@pytest.mark.parametrize(
    "older", [0, 1], ids=["of the log's epoch", "of an older epoch, which the log went past elsewhere"]
)
def test_a_snapshot_that_was_kept_and_not_begun_behind_is_begun_behind_at_the_next_start(older: int) -> None:
    async def main(quorum: Quorum) -> tuple[list[int], KRaftVoters | None]:
        leader = await quorum.settled()
        lagging = follower_of(quorum, leader)
        lagging.crash()
        for number in range(3):
            await append(leader, b"%d" % number)
        lagging.snapshot = (SnapshotId(leader.high_watermark, leader.latest_epoch - older), leader.voters)
        lagging.follows = False
        lagging.start()
        await quorum.until(lambda: lagging.log is not None)
        log = lagging.log
        assert log is not None
        told = [log.start_offset, log.end_offset, log.flushed_offset, log.high_watermark, log.epochs.end.end_offset]
        return [each - leader.end_offset for each in told], log.voters

    assert in_quorum(main) == ([0] * 5, voters_of(1, 2, 3))


@pytest.mark.parametrize(
    ("names", "end"),
    [
        ((), 0),
        (("00000000000000000000.log", "00000000000000000150-0000000003.checkpoint"), 0),
        (
            (
                "00000000000000000000.log",
                "00000000000000000100.log",
                "00000000000000000100-0000000002.checkpoint",
                "00000000000000000150-0000000003.checkpoint",
            ),
            100,
        ),
        (("00000000000000000150.log", "00000000000000000150-0000000003.checkpoint"), 150),
    ],
    ids=["nothing", "a fetched one is ahead of the log", "one of its own before that", "begun anew behind it"],
)
def test_a_log_need_not_have_what_a_snapshot_has_behind_which_it_was_not_begun_yet(
    tmp_path: Path, names: Sequence[str], end: int
) -> None:
    for name in names:
        (tmp_path / name).touch()

    assert reached_snapshot_end(tmp_path, real_machine().files) == end


# ---------------------------------------------------------------------------------------------------- opening


@pytest.mark.parametrize(
    ("state", "told"),
    [
        (b'{"leaderId":1,"lea', "the quorum-state is damaged or cut"),
        (b'{"leaderId":1,"leaderEpoch":1,"votedId":-1,"data_version":7}', "which a newer release wrote"),
    ],
    ids=["cut", "newer"],
)
def test_a_quorum_state_that_cannot_be_read_is_refused_and_the_others_go_on(state: bytes, told: str) -> None:
    async def main(quorum: Quorum) -> tuple[Exception | None, list[bytes]]:
        broken = follower_of(quorum, await quorum.settled())
        broken.crash()
        file = broken.host.disk.entry(STATE)
        assert isinstance(file, File)
        file.resize(0)
        file.write(0, state)
        broken.start()
        await quorum.until(lambda: broken.failure is not None)
        leader = await quorum.leader()
        await append(leader, b"one")
        return broken.failure, values(leader)

    failure, kept = in_quorum(main)

    assert isinstance(failure, CorruptionError)
    assert told in str(failure)
    assert "nothing was changed" in str(failure)
    assert kept == [b"one"]


def test_a_voter_that_has_lost_its_quorum_state_is_refused() -> None:
    async def main(quorum: Quorum) -> Exception | None:
        broken = follower_of(quorum, await quorum.settled())
        broken.crash()
        broken.host.disk.directory(STATE.parent).put(STATE.name, None)
        broken.start()
        await quorum.until(lambda: broken.failure is not None)
        return broken.failure

    failure = in_quorum(main)

    assert isinstance(failure, StorageError)
    assert "its quorum-state is gone" in str(failure)


def test_another_directory_in_a_voters_place_is_an_observer() -> None:
    async def main(quorum: Quorum) -> tuple[list[bytes], int]:
        leader = await quorum.settled()
        wiped = follower_of(quorum, leader)
        wiped.crash()
        wiped.host.disk.directory(DATA.parent).put(DATA.name, None)
        wiped.founding, wiped.directory_id, wiped.observes = KRaftVoters(voters=[]), uuid.UUID(int=99), True
        wiped.start()
        await append(leader, b"one")
        await quorum.settled()
        assert wiped.log is not None
        return values(wiped.log), leader.high_watermark - wiped.log.high_watermark

    assert in_quorum(main) == ([b"one"], 0)


def test_of_fixed_voters_two_that_were_formatted_at_once_undo_nothing_that_a_snapshot_of_the_third_has() -> None:
    async def main(quorum: Quorum) -> list[tuple[str, list[bytes]]]:
        await append(await quorum.leader(), b"one", b"two")
        kept = quorum.controllers[3]
        log = await quorum.settled()
        end, others = SnapshotId(log.end_offset, log.latest_epoch), [quorum.controllers[each] for each in (1, 2)]
        kept.crash()
        for controller in others:
            controller.crash()
            controller.host.disk.directory(DATA.parent).put(DATA.name, None)
            controller.start()
        while (await quorum.leader()).latest_epoch <= end.epoch:  # its log is the newer one then
            (await quorum.leader()).step(LeadershipGivenUp())
            await trio.sleep(5)
        found, kept.snapshot = [], (end, None)
        for _ in range(2):
            kept.start()
            await quorum.until(lambda: kept.failure is not None)
            assert kept.failure is not None
            failure = root_of(kept.failure)
            assert isinstance(failure, StorageError)
            assert kept.partition_log is not None
            records = logged_records(kept.partition_log, 0)
            found.append((str(failure), [record.value for record in records]))
            kept.failure = None
        return found

    found = in_quorum(main, static=True)

    assert all("a majority of the controllers lost what they had acknowledged" in told for told, _ in found)
    assert [values for _, values in found] == [[b"one", b"two"]] * 2, "however often it is started again"

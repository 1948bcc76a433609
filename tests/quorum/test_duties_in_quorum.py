"""The active controller dies with each duty in hand, at each step of it: it is done once, and all controllers agree.

Elections, logs, disks and messages are real, and time is the world's.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Any, NoReturn

import pytest
import trio

from odradek.kernel.controller.snapshots import SnapshotStore
from odradek.kernel.errors import ErrorCode, error_code
from odradek.kernel.metadata.image import MetadataImage
from odradek.kernel.quorum.quorum_log import QuorumLog
from odradek.kernel.wire.messages.api_19_create_topics import CreateTopicsResponse
from odradek.lab.simulator.files import Files
from odradek.testing.faults import PowerLoss
from tests.controller.controller_requests import create_topics, topic

from .duties import DUTIES, Duty, prepare
from .term_world import TermController, TermQuorum, in_terms, said

CrashAt = Callable[[pytest.MonkeyPatch, TermController, TermQuorum], None]
PRODUCER_IDS = DUTIES["producer ids"]


def before_it_is_written(monkeypatch: pytest.MonkeyPatch, controller: TermController, _quorum: TermQuorum) -> None:
    def append_in_steps(*_: object) -> Generator[None, None, NoReturn]:
        controller.crash()
        while True:
            yield

    monkeypatch.setattr(controller.log, "append_in_steps", append_in_steps)


def written_here_alone(monkeypatch: pytest.MonkeyPatch, controller: TermController, _quorum: TermQuorum) -> None:
    async def commit() -> None:
        controller.crash()
        await trio.sleep_forever()

    monkeypatch.setattr(controller.log, "commit", commit)


def written_by_a_majority(monkeypatch: pytest.MonkeyPatch, controller: TermController, quorum: TermQuorum) -> None:
    leader = log_of(controller)

    async def commit() -> None:
        await quorum.until(lambda: all(log.end_offset == leader.end_offset for log in quorum.logs.values()))
        assert leader.high_watermark < leader.end_offset
        controller.crash()
        await trio.sleep_forever()

    monkeypatch.setattr(leader, "commit", commit)


def committed_and_not_answered(
    monkeypatch: pytest.MonkeyPatch, controller: TermController, _quorum: TermQuorum
) -> None:
    leader = log_of(controller)
    committed = leader.commit

    async def commit() -> None:
        await committed()
        assert leader.high_watermark == leader.end_offset
        controller.crash()
        await trio.sleep_forever()

    monkeypatch.setattr(leader, "commit", commit)


STEPS: dict[CrashAt, bool] = {
    before_it_is_written: False,
    written_here_alone: False,
    written_by_a_majority: True,
    committed_and_not_answered: True,
}
"""Where the controller dies, and whether what it had in hand is there for who leads next."""


def log_of(controller: TermController) -> QuorumLog:
    assert controller.log is not None
    return controller.log


async def active(quorum: TermQuorum) -> TermController:
    """Wait for the active controller."""
    while True:
        for controller in quorum.controllers.values():
            if controller.log is not None and controller.terms is not None and controller.terms.is_active:
                return controller
        await trio.sleep(0.005)


async def mended(quorum: TermQuorum, victim: TermController) -> MetadataImage:
    """Have the one that died begin again, and return what all of them know then."""
    assert victim.log is None, "it died"
    victim.start()
    image = await quorum.agreed()
    assert [each.failure for each in quorum.controllers.values()] == [None] * 3
    assert [said(each) for each in quorum.images.values()] == [said(image)] * 3
    return image


@pytest.mark.parametrize("duty", DUTIES.values(), ids=list(DUTIES))
@pytest.mark.parametrize("crash_at", STEPS, ids=lambda step: step.__name__)
def test_a_duty_in_which_the_controller_dies_is_done_once(
    crash_at: CrashAt, duty: Duty, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def main(quorum: TermQuorum) -> tuple[Any, int, object]:
        victim = await active(quorum)
        assert victim.terms is not None
        assert victim.terms.active is not None
        await prepare(victim.terms.active)
        before = await quorum.agreed()
        crash_at(monkeypatch, victim, quorum)
        answer, failures = await quorum.ask(duty.request(before))
        return answer, failures, duty.seen(await mended(quorum, victim))

    answer, failures, seen = in_terms(main)
    is_there = STEPS[crash_at]

    assert failures == 1, "who asks is answered by the next one"
    assert seen == (2 * PRODUCER_IDS.once if duty is PRODUCER_IDS and is_there else duty.once)  # type: ignore[operator]
    if isinstance(answer, CreateTopicsResponse):
        again = ErrorCode.TOPIC_ALREADY_EXISTS if is_there else ErrorCode.NONE
        assert error_code(answer.topics[0].error_code) is again


# ------------------------------------------------------------------------------------------- a snapshot being written


def before_the_file(monkeypatch: pytest.MonkeyPatch, controller: TermController, _quorum: TermQuorum) -> None:
    monkeypatch.setattr(store_of(controller), "write", lambda *_: controller.crash(PowerLoss.LOST))


def within_the_file(monkeypatch: pytest.MonkeyPatch, controller: TermController, _quorum: TermQuorum) -> None:
    written, store = SnapshotStore.write, store_of(controller)

    def write(*arguments: Any) -> Any:
        def fsync(_files: Files, _fd: int) -> NoReturn:
            controller.crash(PowerLoss.TORN)
            raise OSError

        with monkeypatch.context() as patched:
            patched.setattr(Files, "fsync", fsync)
            return written(store, *arguments)

    monkeypatch.setattr(store, "write", write)


def before_older_ones_are_dropped(
    monkeypatch: pytest.MonkeyPatch, controller: TermController, _quorum: TermQuorum
) -> None:
    monkeypatch.setattr(store_of(controller), "drop_old", lambda *_: controller.crash(PowerLoss.LOST))


def before_the_log_is_shortened(
    monkeypatch: pytest.MonkeyPatch, controller: TermController, _quorum: TermQuorum
) -> None:
    monkeypatch.setattr(controller.log, "drop_below", lambda _offset: controller.crash(PowerLoss.LOST))


def store_of(controller: TermController) -> SnapshotStore:
    assert controller.images is not None
    assert controller.images.store is not None
    return controller.images.store


@pytest.mark.parametrize(
    "crash_at",
    [before_the_file, within_the_file, before_older_ones_are_dropped, before_the_log_is_shortened],
    ids=lambda step: step.__name__,
)
def test_a_snapshot_in_which_the_controller_dies_is_written_whole_or_not_at_all(
    crash_at: CrashAt, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def main(quorum: TermQuorum) -> MetadataImage:
        victim = await active(quorum)
        assert victim.terms is not None
        assert victim.terms.active is not None
        await prepare(victim.terms.active)
        await quorum.agreed()
        crash_at(monkeypatch, victim, quorum)
        count = 0
        while victim.log is not None:
            await quorum.ask(create_topics(topic(f"n{count}", 1, 2)))
            count += 1
        await quorum.ask(create_topics(topic("afterwards", 1, 2)))
        image = await mended(quorum, victim)
        assert {*image.topics_by_name} == {"t", "afterwards", *(f"n{number}" for number in range(count))}
        return image

    assert in_terms(main).offset > 0

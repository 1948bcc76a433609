"""Shell: the demo's last chapter: the broker is killed, and everything that was acknowledged is still there."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..cluster_calls import reach
from ..running import run_interruptible
from . import group_work, transaction_work
from .scene import TOPIC

if TYPE_CHECKING:
    from .scene import Scene


def kill(scene: Scene) -> None:
    """Kill the broker, start another on its directory, and check everything again."""
    stage = scene.stage
    stage.step("kill -9")
    killed = scene.broker.process_id
    scene.broker.kill()
    took_s = scene.start_broker()
    stage.say(
        f"The broker (pid {killed}) was killed where it stood. A new one took the directory, checked what was "
        f"there, and serves on {scene.bootstrap} after {took_s:.2f} s. What was acknowledged must still be there:"
    )
    scene.read_and_check("read back after the crash")
    run, before = scene.group_run, scene.last_moment
    assert run is not None
    assert before is not None
    committed = run_interruptible(_committed, scene.bootstrap)
    stage.check(
        f"the group {group_work.GROUP} has committed what it had",
        holds=committed == run.committed,
        detail=f"{committed}",
    )
    after = run_interruptible(transaction_work.look, scene.bootstrap, before.name)
    stage.check(
        "the aborted transaction is still invisible, the committed one whole", holds=after == before, detail=f"{after}"
    )


async def _committed(bootstrap: str) -> dict[int, int | None]:
    """Return what the group of readers has committed, by partition."""
    async with reach({"bootstrap.servers": bootstrap}) as calls:
        found = await calls.admin.list_group_offsets(group_work.GROUP)
    return {
        partition.partition: offset.offset if offset else None
        for partition, offset in sorted(found.items())
        if partition.topic == TOPIC
    }

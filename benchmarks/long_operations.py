"""How long a coordinator works in one go on what is long: a group of a thousand members changes its protocol, and more.

    python -m benchmarks.long_operations [--rounds 3]

The broker runs in this process; what counts is the processor time between two points at which other tasks may run, so
that a machine that others use disturbs little. Python's collector is off: what it takes belongs to whoever comes by.

| column | what |
|---|---|
| `longest` | the longest step, in the round where it was the least |
| `all` | what the whole took, all tasks together, in that round |
"""

from __future__ import annotations

import argparse
import gc
import tempfile
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import trio

from tests.dispatch.test_bounded_groups import (
    CONSUMER,
    JOINS,
    TAKES_ITS_PLACE,
    asking,
    filled,
    group_of_many,
    is_active,
    reloading,
    very_many_offsets,
)
from tests.dispatch.test_bounded_requests import World, work_in

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

ASKS: Final[dict[str, tuple[int, dict[str, Any], str]]] = {
    "classic to consumer: a member joins": (68, JOINS, "consumer"),
    "consumer to classic: the last one leaves": (68, {**CONSUMER, "member_epoch": -1}, "classic"),
    "classic to consumer: a static member": (68, {**JOINS, "instance_id": "another"}, "consumer"),
    "consumer to classic: it comes back so": (11, TAKES_ITS_PLACE, "classic"),
}


class LongestTime(trio.abc.Instrument):
    """Times each step of a task, but for the benchmark's own; the interface is `LongestStep`'s."""

    def __init__(self) -> None:
        self.longest_s = self.all_s = 0.0
        self._own = trio.lowlevel.current_task()
        self._since_s = 0.0

    def begin(self) -> None:
        """Begin a step."""
        self._since_s = time.thread_time()

    def end(self, _name: str) -> None:
        """End it."""
        took_s = time.thread_time() - self._since_s
        self.longest_s = max(self.longest_s, took_s)
        self.all_s += took_s

    def before_task_step(self, task: trio.lowlevel.Task) -> None:
        """Begin, unless it is the benchmark's."""
        if task is not self._own:
            self.begin()

    def after_task_step(self, task: trio.lowlevel.Task) -> None:
        """End, unless it is the benchmark's."""
        if task is not self._own:
            self.end(task.name)


async def timed(work: Callable[[Any], Awaitable[Any]], is_over: Callable[[], bool]) -> tuple[float, float]:
    """Return the longest step, and all of them, in seconds, until a piece of work has had its effect."""
    steps = LongestTime()
    trio.lowlevel.add_instrument(steps)
    await work(steps)
    while not is_over():  # noqa: ASYNC110 - nobody tells of it
        await trio.sleep(0.001)
    trio.lowlevel.remove_instrument(steps)
    gc.collect()
    return steps.longest_s, steps.all_s


async def measure(rounds: int, least: dict[str, tuple[float, float]], world: World) -> None:
    """Measure each row so often, and keep the least of each."""
    runtime = await filled(world, 0)
    ((_, shard),) = runtime.shards()
    groups = shard.context.groups
    await runtime.call(0, group_of_many)
    for _ in range(rounds):
        found = {}
        for name, (key, fields, kind) in ASKS.items():
            found[name] = await timed(
                asking(world, key, fields),
                lambda kind=kind: groups["large"].type.value == kind,  # type: ignore[misc]
            )
        taken_place = next(one for one in groups["large"].members.values() if one.instance_id == "another")
        leave = {"group_id": "large", "members": [{"member_id": taken_place.member_id, "group_instance_id": "another"}]}
        await world.ask(13, leave)
        await runtime.call(0, very_many_offsets)
        deletion = asking(world, 42, {"groups_names": ["many"]})
        found["a group with 5,000 offsets is deleted"] = await timed(deletion, lambda: "many" not in groups)
        for name, took in found.items():
            least[name] = min(took, least[name]) if name in least else took
    for _ in range(4):
        await runtime.call(0, group_of_many)
    least["the shard is loaded anew"] = await timed(reloading(runtime), partial(is_active, runtime))


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    least: dict[str, tuple[float, float]] = {}
    gc.disable()
    with tempfile.TemporaryDirectory() as folder:
        work_in(Path(folder), partial(measure, arguments.rounds, least))
    print(f"{'':45} {'longest':>10} {'all':>10}")
    for name, (longest_s, all_s) in least.items():
        print(f"{name:45} {longest_s * 1000:7.1f} ms {all_s * 1000:7.1f} ms")


if __name__ == "__main__":
    main()

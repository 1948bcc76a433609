"""Shell: the chapters about delayed records: a year goes by, one is withdrawn, some never count, a broker is killed."""

from __future__ import annotations

import hashlib
import json
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Final

import trio

from odradek.kernel.machine.clock import SystemClock

from ..running import run_interruptible
from . import client_work, delay_work
from .data import record_of
from .delay_scene import TOPIC
from .delay_work import Reminder
from .log_chapters import MILLISECONDS, SAMPLE_ZONE, changes_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .delay_scene import DelayScene
    from .delay_work import Seen
    from .zones import Transition

YEAR_MS: Final = 8_000
"""So long a year takes here."""
AHEAD_MS: Final = 1_500
"""So long before the first of them is due reminders are produced."""
SOON_MS: Final = 3_000
"""So long what is done before reminders are due may take: what comes too late waits for nothing."""
CALLS: Final = (b"ann", b"bob", b"eve")
WITHDRAWN: Final = b"bob"
CRASH_COUNT: Final = 300
CRASH_MS: Final = 3_500
DOWN_MS: Final = 1_000
IN_TRANSACTION: Final = 100


def start(scene: DelayScene) -> None:
    """Start a broker, and create the topic."""
    stage = scene.stage
    stage.step("A topic whose records may wait")
    took_s = scene.start_broker()
    run_interruptible(client_work.create_topic, scene.bootstrap, TOPIC, 1, {"odradek.delay.enable": "true"})
    stage.say(
        f"The broker serves on [bold]{scene.bootstrap}[/] after {took_s:.2f} s. The topic {TOPIC} has "
        "[bold]odradek.delay.enable=true[/]; that is all."
    )


def live_through_a_year(scene: DelayScene) -> None:
    """Have a year's changes of the world's clocks told when they come, of a year that takes seconds."""
    stage = scene.stage
    stage.step("A year goes by")
    year = datetime.fromtimestamp(scene.now_s, UTC).year
    changes, seconds = changes_of(year)
    begin_ms = SystemClock().now_ms() + AHEAD_MS
    reminders = {
        change: Reminder(
            change.zone.encode(),
            record_of(change).value,
            begin_ms + (change.at - seconds.start) * YEAR_MS // len(seconds),
        )
        for change in changes
    }
    sample = next(reminder for reminder in reminders.values() if reminder.key == SAMPLE_ZONE)
    stage.say(
        f"Each of the {len(changes)} times that clocks somewhere are changed in {year} becomes a record, and the year "
        f"takes {YEAR_MS // MILLISECONDS} seconds. All are produced now, in no order. This one, of "
        f"{SAMPLE_ZONE.decode()}, has the header"
    )
    stage.show("\n".join(f"{name}: {value.decode()}" for name, value in sample.headers))
    shuffled = sorted(reminders.values(), key=lambda each: hashlib.sha256(each.value).digest())
    with stage.progress("producing", len(shuffled)) as on_progress:
        began_ms = SystemClock().monotonic_ms()
        run_interruptible(delay_work.remind, scene.bootstrap, TOPIC, shuffled, on_progress)
        took_s = (SystemClock().monotonic_ms() - began_ms) / MILLISECONDS
    (described,) = json.loads(scene.told("delay", "describe", TOPIC, "--json"))
    stage.check(
        f"all are acknowledged after {took_s:.2f} s, and wait: `odradek delay describe` counts {len(shuffled)}",
        holds=described["waiting"] == len(shuffled),
        detail=f"{described}",
    )
    seen = scene.see(len(shuffled), "the year")
    _show_year(scene, changes, reminders, seen, begin_ms)
    scene.check_seen(shuffled, seen, f"{len(seen)} changes were told to a consumer that knows nothing of delays")


def _show_year(
    scene: DelayScene,
    changes: Sequence[Transition],
    reminders: dict[Transition, Reminder],
    seen: Sequence[Seen],
    begin_ms: int,
) -> None:
    """Show by month what was due when, and how late it was seen."""
    seen_ms = {(each.due_ms, each.value): each.seen_ms for each in seen}
    months: dict[str, list[Reminder]] = {}
    for change in changes:
        months.setdefault(datetime.fromtimestamp(change.at, UTC).strftime("%B"), []).append(reminders[change])
    rows = []
    for month, due in months.items():
        late = sorted(max(seen_ms.get((each.due_ms, each.value), 0) - each.due_ms, 0) for each in due)
        places = sorted(each.key.decode() for each in due)
        rows.append(
            (
                month,
                len(due),
                f"{(min(each.due_ms for each in due) - begin_ms) / MILLISECONDS:.2f} s",
                f"{late[len(late) // 2]} ms",
                f"{late[-1]} ms",
                places[0],
            )
        )
    scene.stage.table(("month", "changes", "the first after", "late (median)", "late (most)", "one of them"), rows)


def withdraw(scene: DelayScene) -> None:
    """Withdraw one reminder of three by its name."""
    stage = scene.stage
    stage.step("Withdrawn")
    due_ms = SystemClock().now_ms() + SOON_MS
    calls = [Reminder(name, b"call " + name, due_ms + at, b"call-" + name) for at, name in enumerate(CALLS)]
    run_interruptible(delay_work.remind, scene.bootstrap, TOPIC, calls, lambda _count: None)
    stage.say("Three more, with the header [bold]odradek.delay.id[/]. `odradek delay list` knows what waits:")
    stage.show(scene.told("delay", "list", TOPIC).rstrip())
    stage.say(
        f"Now a record with the header [bold]odradek.delay.cancel: call-{WITHDRAWN.decode()}[/] is produced; nobody "
        "will ever see it."
    )
    run_interruptible(delay_work.withdraw, scene.bootstrap, TOPIC, b"call-" + WITHDRAWN)
    left = [call for call in calls if call.key != WITHDRAWN]
    scene.check_seen(left, scene.see(len(left), "the others"), "the other two were seen")


def abort(scene: DelayScene) -> None:
    """Have one transaction abort and one commit."""
    stage = scene.stage
    stage.step("Only what is committed")
    _transact(scene, b"aborted", commits=False)
    committed = _transact(scene, b"committed", commits=True)
    stage.say(
        f"A transaction of {IN_TRANSACTION} delayed records aborts, another one commits. Of a transaction a record "
        "waits from the commit on; of one that aborts nothing ever waits."
    )
    seen = scene.see(IN_TRANSACTION, "what is committed")
    scene.check_seen(committed, seen, f"the {IN_TRANSACTION} that are committed were seen")


def _transact(scene: DelayScene, fate: bytes, *, commits: bool) -> list[Reminder]:
    due_ms = SystemClock().now_ms() + SOON_MS
    reminders = [Reminder(fate, str(number).encode(), due_ms + number) for number in range(IN_TRANSACTION)]
    transact = partial(delay_work.remind_in_transaction, commits=commits)
    run_interruptible(transact, scene.bootstrap, TOPIC, "reminder", reminders)
    return reminders


def kill(scene: DelayScene) -> None:
    """Kill the broker while records wait, and see all of them."""
    stage = scene.stage
    stage.step("kill -9 while they wait")
    due_ms = SystemClock().now_ms()
    reminders = [
        Reminder(b"%d" % number, b"after the crash", due_ms + DOWN_MS + number * CRASH_MS // CRASH_COUNT)
        for number in range(CRASH_COUNT)
    ]
    run_interruptible(delay_work.remind, scene.bootstrap, TOPIC, reminders, lambda _count: None)
    killed = scene.broker.process_id
    scene.broker.kill()
    run_interruptible(trio.sleep, DOWN_MS / MILLISECONDS)  # so that some are due while nobody is there to deliver them
    took_s = scene.start_broker()
    back_ms = SystemClock().now_ms()
    overdue = sum(each.due_ms < back_ms for each in reminders)
    stage.say(
        f"{CRASH_COUNT} records wait; the broker (pid {killed}) was killed where it stood, and a second later another "
        f"one took its directory: {took_s:.2f} s. What was due while no broker ran, {overdue} of them, comes at once; "
        "the others when they are due."
    )
    seen = scene.see(CRASH_COUNT, "after the crash")
    scene.check_seen(reminders, seen, f"{len(seen)} records came after the crash")

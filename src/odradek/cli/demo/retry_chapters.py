"""Shell: the chapters about failed records: they come back, die, are replayed, fail exactly once, and by any client."""

from __future__ import annotations

import importlib.util
import json
from collections import Counter
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import trio

from odradek.kernel.machine.clock import SystemClock

from ..running import run_interruptible
from . import client_work, retry_work
from .data import DemoRecord, record_of
from .log_chapters import MILLISECONDS, changes_of
from .retry_confluent import work_off_with_confluent
from .retry_scene import LEVELS_MS, RETRY_TOPIC, TOPIC, TOPICS, waits
from .retry_work import GROUP, RECORDS_A_TRANSACTION, RESULTS

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from odradek.client import ConsumerRecord

    from .retry_scene import RetryScene
    from .retry_work import Attempt

REGION: Final = "Europe"
ANSWERS_FROM: Final = 2
"""At which attempt the calendar of that region answers."""
ATLANTIS: Final = "Atlantis"
DEAD_WAIT_MS_MAX: Final = 20_000
LOOK_AGAIN_S: Final = 0.2
DOWN_MS: Final = 700
IN_TRANSACTIONS: Final = 4 * RECORDS_A_TRANSACTION
CRASHES_AFTER: Final = 2
WITH_CONFLUENT: Final = 20
WORKER: Final = """\
consumer.subscribe(["{topic}", "{retry}"])
async for record in consumer:
    try:
        write_down(record)
    except CannotWorkError as error:
        await consumer.retry(record, reason=str(error))"""


def start(scene: RetryScene) -> None:
    """Start a broker, create the topic, and give the group the topics of its failed records."""
    stage = scene.stage
    stage.step("One command")
    took_s = scene.start_broker()
    run_interruptible(client_work.create_topic, scene.bootstrap, TOPIC, 1, {})
    levels = ",".join(f"{level}ms" for level in LEVELS_MS)
    command = ("retry", "enable", TOPIC, "--group", GROUP, "--levels", levels, "--attempts", str(len(LEVELS_MS)))
    stage.say(f"The broker serves on [bold]{scene.bootstrap}[/] after {took_s:.2f} s. Now")
    stage.show(f"odradek {' '.join(command)}")
    stage.say("says")
    stage.show(scene.told(*command).rstrip())
    listed = json.loads(scene.told("retry", "list", "--json"))
    stage.check(
        "`odradek retry list` knows whose they are",
        holds=[(each["topic"], each["group"], each["retry"]) for each in listed] == [(TOPIC, GROUP, RETRY_TOPIC)],
        detail=f"{listed}",
    )


def fail(scene: RetryScene) -> None:
    """Have a year's changes worked on while one region's calendar does not answer, and one zone is none."""
    stage = scene.stage
    stage.step("What fails comes back")
    records = _changes_of_the_year(scene)
    poison = scene.poison = DemoRecord(
        ATLANTIS.encode(), records[0].value.replace(records[0].key, ATLANTIS.encode()), records[0].timestamp
    )
    produced = [*records[: len(records) // 2], poison, *records[len(records) // 2 :]]
    run_interruptible(client_work.produce, scene.bootstrap, TOPIC, produced, lambda _count: None)
    failing = [record for record in records if record.key.startswith(f"{REGION}/".encode())]
    stage.say(
        f"{len(produced)} changes of the world's clocks are in the topic, and a worker writes them into a calendar. "
        f"That of {REGION} does not answer, for {len(failing)} of them, before attempt {ANSWERS_FROM}; and one is of "
        f"{ATLANTIS}, which is nowhere. All that the worker does about it:"
    )
    stage.show(WORKER.format(topic=TOPIC, retry=RETRY_TOPIC))
    wanted = {record.value: ANSWERS_FROM if record in failing else 0 for record in records}

    def is_over(attempts: Sequence[Attempt]) -> bool:
        done = sum(not attempt.reason for attempt in attempts)
        return done >= len(wanted) and any(attempt.number == len(LEVELS_MS) for attempt in attempts)

    work = partial(retry_work.write_down, region=REGION, works_from=ANSWERS_FROM)
    attempts = _work_off(scene, work, is_over, "the calendar", len(produced) + ANSWERS_FROM * len(failing))
    _show_attempts(scene, attempts)
    scene.check_done(
        wanted, attempts, f"{len(wanted)} are in the calendar, those of {REGION} since attempt {ANSWERS_FROM}"
    )
    scene.check_waits(attempts)


def _changes_of_the_year(scene: RetryScene) -> list[DemoRecord]:
    year = datetime.fromtimestamp(scene.now_s, UTC).year
    return [record_of(change) for change in changes_of(year)[0]]


def _work_off(
    scene: RetryScene,
    work: Callable[[ConsumerRecord, int], None],
    is_over: Callable[[Sequence[Attempt]], bool],
    what: str,
    count: int,
) -> list[Attempt]:
    with scene.stage.progress(what, count) as on_progress:
        return run_interruptible(retry_work.work_off, scene.bootstrap, TOPICS, work, is_over, on_progress)


def _show_attempts(scene: RetryScene, attempts: Sequence[Attempt]) -> None:
    """Show by attempt how many records came, how long they had waited, and what became of them."""
    rows = []
    waited = waits(attempts)
    for number in range(len(LEVELS_MS) + 1):
        came = [attempt for attempt in attempts if attempt.number == number]
        after = sorted(ms for attempt, ms in waited if attempt.number == number) or [0]
        rows.append(
            (
                str(number) if number else "first seen",
                len(came),
                f"{LEVELS_MS[number - 1]} ms" if number else "",
                f"{after[0]} to {after[-1]} ms" if number else "",
                len([attempt for attempt in came if not attempt.reason]),
                len([attempt for attempt in came if attempt.reason]),
            )
        )
    scene.stage.table(("attempt", "records", "its level", "came after", "done", "failed"), rows)


def die(scene: RetryScene) -> None:
    """Look at the dead letter that is left."""
    stage = scene.stage
    stage.step("What fails too often is a dead letter")
    letters = _wait_dead(scene)
    listed = scene.told("dlq", "list", TOPIC, "--group", GROUP).rstrip()
    stage.say(f"{ATLANTIS} failed at its last attempt, too. `odradek dlq list {TOPIC} --group {GROUP}`:")
    stage.show(listed)
    if letters:
        place = listed.splitlines()[1].split()[0]
        stage.say(f"`odradek dlq show {TOPIC} --group {GROUP} {place.replace(':', ' ')}` has all of it:")
        stage.show(scene.told("dlq", "show", TOPIC, "--group", GROUP, *place.split(":")).rstrip())
    poison = scene.poison
    assert poison is not None, "an earlier chapter produced it"
    wanted = {
        "topic": TOPIC,
        "partition": 0,
        "attempts": len(LEVELS_MS),
        "reason": retry_work.NOWHERE,
        "value": poison.value.decode(),
    }
    stage.check(
        "it is the only one, it is whole, and it says where from, how often, and why",
        holds=[{name: letter[name] for name in wanted} for letter in letters] == [wanted],
        detail=f"{letters}",
    )


def _wait_dead(scene: RetryScene) -> list[dict[str, Any]]:
    """Wait until there is a dead letter, which takes a second or so; return what there is then."""
    clock = SystemClock()
    end_ms = clock.monotonic_ms() + DEAD_WAIT_MS_MAX
    while True:
        letters: list[dict[str, Any]] = json.loads(scene.told("dlq", "list", TOPIC, "--group", GROUP, "--json"))
        if letters or clock.monotonic_ms() > end_ms:
            return letters
        run_interruptible(trio.sleep, LOOK_AGAIN_S)


def replay(scene: RetryScene) -> None:
    """Replay the dead letter, as if what was wrong was mended."""
    stage = scene.stage
    stage.step("Mended, and replayed")
    command = ("dlq", "replay", TOPIC, "--group", GROUP)
    said = scene.told(*command).rstrip()
    stage.say(f"Atlantis has risen, and the worker knows it. `odradek {' '.join(command)}` says: [bold]{said}[/].")
    attempts = _work_off(scene, lambda _record, _attempt: None, bool, "the replayed record", 1)
    poison = scene.poison
    assert poison is not None, "an earlier chapter produced it"
    seen = [(each.record.topic, each.key, each.value, each.record.headers) for each in attempts]
    stage.check(
        f"the worker got it once, from {TOPIC}, as it was produced",
        holds=seen == [(TOPIC, poison.key, poison.value, ())],
        detail=f"{seen}",
    )
    again = json.loads(scene.told(*command, "--json"))
    stage.check("asked again, there is nothing to replay", holds=again["replayed"] == 0, detail=f"{again}")


def crash(scene: RetryScene) -> None:
    """Work in transactions; kill a worker in the middle of one, and the broker while failed records wait."""
    stage = scene.stage
    stage.step("In a transaction, exactly once")
    run_interruptible(client_work.create_topic, scene.bootstrap, RESULTS, 1, {})
    records = _numbered(scene, b"transaction", IN_TRANSACTIONS)
    work = partial(retry_work.write_down, region=REGION, works_from=1)
    failing = sum(record.key.startswith(f"{REGION}/".encode()) for record in records)
    run_interruptible(client_work.produce, scene.bootstrap, TOPIC, records, lambda _count: None)
    with stage.progress("in transactions", len(records)) as on_progress:
        first = run_interruptible(
            retry_work.work_in_transactions, scene.bootstrap, TOPICS, work, len(records), CRASHES_AFTER, on_progress
        )
        killed = scene.broker.process_id
        scene.broker.kill()
        run_interruptible(trio.sleep, DOWN_MS / MILLISECONDS)  # so that some are due while nobody is there
        took_s = scene.start_broker()
        left = len(records) - first.written
        run_interruptible(retry_work.work_in_transactions, scene.bootstrap, TOPICS, work, left, None, on_progress)
    stage.say(
        f"{len(records)} changes more, {failing} of them of {REGION}, which fail once. Entries, failed records and "
        f"offsets of {RECORDS_A_TRANSACTION} records at a time go into one transaction. In the third of them the "
        f"worker died, {first.lost} records failed in it; then the broker (pid {killed}) was killed, while others "
        f"waited. Both were started again, the broker in {took_s:.2f} s."
    )
    entries = run_interruptible(retry_work.read_entries, scene.bootstrap)
    wanted = Counter(record.value for record in records)
    stage.check(
        f"{entries.total()} entries are in the calendar: none lost, none twice",
        holds=entries == wanted,
        detail=f"{(wanted - entries).total()} are missing, {(entries - wanted).total()} too many",
    )


def _numbered(scene: RetryScene, what: bytes, count: int) -> list[DemoRecord]:
    """Return so many changes of the year, each with a number, as a year may have fewer."""
    changes = _changes_of_the_year(scene)
    chosen = [changes[number % len(changes)] for number in range(count)]
    return [
        record._replace(value=record.value[:-1] + b', "%b": %d}' % (what, number))
        for number, record in enumerate(chosen)
    ]


def use_another_client(scene: RetryScene) -> None:
    """Have another client do what ours did, where it is installed."""
    stage = scene.stage
    stage.step("Any client")
    if importlib.util.find_spec("confluent_kafka") is None:
        stage.say("confluent-kafka is not installed here: this chapter is left out.")
        return
    records = _numbered(scene, b"confluent", WITH_CONFLUENT)
    run_interruptible(client_work.produce, scene.bootstrap, TOPIC, records, lambda _count: None)
    stage.say(
        "The same worker with confluent-kafka, which knows nothing of this. What it fails it produces, with the "
        "headers that it has, and it reads two topics; that is all."
    )
    with stage.progress("confluent-kafka", 2 * len(records)) as on_progress:
        seen = work_off_with_confluent(scene.bootstrap, TOPICS, GROUP, 2 * len(records), on_progress)
    wanted = Counter((record.value, attempt) for record in records for attempt in (0, 1))
    stage.check(
        f"{len(records)} records failed, and each came back once",
        holds=seen == wanted,
        detail=f"{(wanted - seen).total()} are missing, {(seen - wanted).total()} too many",
    )

"""The example of a delay queue: it passes the kit, keeps its hours, and a broker has it for a topic that names it."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from examples.business_hours_queue import BusinessHours, BusinessHoursFactory

from odradek.cli import main
from odradek.client import BlockingProducer
from odradek.kernel.api import DelayQueueFactory, WaitingRecord
from odradek.testing.contracts.delay_queue import DelayQueueContract
from odradek.testing.running_broker import running_broker

CONFIG = """
[plugins]
enable = ["*", "examples.business_hours_queue"]

[topics.reminders]
"odradek.delay.enable" = true
"odradek.delay.queue" = "business_hours"
"""
BERLIN = BusinessHours(ZoneInfo("Europe/Berlin"))


def ms(*moment: int) -> int:
    return int(datetime(*moment, tzinfo=UTC).timestamp() * 1000)  # type: ignore[misc,arg-type]


class TestBusinessHours(DelayQueueContract):
    def make_factory(self) -> DelayQueueFactory:
        return BusinessHoursFactory(BERLIN)


@pytest.mark.parametrize(
    ("moment", "opens"),
    [
        ((2026, 11, 26, 8), (2026, 11, 26, 8)),  # nine o'clock in Berlin, on a Thursday
        ((2026, 11, 26, 7, 59), (2026, 11, 26, 8)),
        ((2026, 11, 26, 16), (2026, 11, 27, 8)),
        ((2026, 11, 27, 16), (2026, 11, 30, 8)),  # from Friday evening to Monday
        ((2026, 11, 28, 5), (2026, 11, 30, 8)),
        ((2026, 3, 27, 17), (2026, 3, 30, 7)),  # clocks are changed meanwhile
    ],
)
def test_what_is_due_outside_of_business_hours_waits_for_the_next(
    moment: tuple[int, ...], opens: tuple[int, ...]
) -> None:
    queue = BusinessHoursFactory(BERLIN).new()
    waiting = WaitingRecord(ms(*moment), 1, 0)
    queue.waits(waiting)

    assert queue.next_due_ms() == ms(*opens)
    assert queue.due(ms(*opens) - 1, 10) == []
    assert queue.due(ms(*opens), 10) == [waiting]


def test_what_was_not_delivered_by_the_evening_is_not_looked_for_all_night() -> None:
    queue = BusinessHoursFactory(BERLIN).new()
    queue.waits(WaitingRecord(ms(2026, 11, 27, 15, 59), 1, 0))  # one minute before five, on a Friday

    assert queue.due(ms(2026, 11, 28, 5), 10) == []
    assert queue.next_due_ms() == ms(2026, 11, 30, 8)


def test_a_time_without_a_day_is_its_own() -> None:
    assert BERLIN.opens_at(2**62) == 2**62


def test_a_topic_that_names_it_has_records_wait_in_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config = tmp_path / "odradek.toml"
    config.write_text(CONFIG)
    with running_broker(config=config) as broker:
        with BlockingProducer({"bootstrap.servers": broker.bootstrap}) as producer:
            producer.send("reminders", b"call", headers=[("odradek.deliver.after", b"86400000")])
        main(["delay", "describe", "reminders", "--json", "--bootstrap", broker.bootstrap])
        (described,) = json.loads(capsys.readouterr().out)
        main(["configs", "describe", "topic", "reminders", "--bootstrap", broker.bootstrap])
        told = [line.split()[:2] for line in capsys.readouterr().out.splitlines()]

    assert described["waiting"] == 1
    assert ["odradek.delay.queue", "business_hours"] in told

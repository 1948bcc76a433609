"""`odradek delay` against a broker: what waits, what it is, withdrawn, and waited for."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import trio

from odradek.client import Admin, NewTopic, Producer
from odradek.kernel.delay.headers import DELAY_ID, DELIVER_AFTER, DELIVER_AT
from odradek.testing.running_broker import running_broker

from .conftest import Odradek

DUE_MS = 4_102_444_800_000  # the year 2100
KEYS = {"odradek.delay.enable": "true", "odradek.delay.max.ms": str(10**13)}


async def fill(bootstrap: str) -> None:
    async with Admin({"bootstrap.servers": bootstrap}) as admin:
        await admin.create_topic(NewTopic("later", partitions_count=2, configs=KEYS))
    async with Producer({"bootstrap.servers": bootstrap}) as producer:
        await producer.send("later", b"now", partition=0)
        for value, due_ms, name in ((b"b", DUE_MS + 5, b"call ann"), (b"a", DUE_MS, b"other")):
            headers = [(DELIVER_AT, b"%d" % due_ms), (DELAY_ID, name)]
            await producer.send("later", value, key=b"k", partition=0, headers=headers)
        await producer.send("later", b"soon", partition=1, headers=[(DELIVER_AFTER, b"300")])


@pytest.fixture(scope="module")
def bootstrap() -> Iterator[str]:
    with running_broker({}) as broker:
        trio.run(fill, broker.bootstrap)
        yield broker.bootstrap


@pytest.fixture
def delay(capsys: pytest.CaptureFixture[str], bootstrap: str) -> Odradek:
    return Odradek(capsys, bootstrap)


def test_the_lag_of_a_group_is_told_with_what_is_hidden_and_without(delay: Odradek) -> None:
    delay.ok("groups", "reset-offsets", "late-ones", "--topic", "later:0", "--to-earliest", "--execute")

    (described,) = delay.ok("groups", "describe", "late-ones", "--json").json
    (row,) = described["partitions"]
    assert (row["lag"], row["visible_lag"]) == (row["end"], 1)  # of three records two wait
    table = delay.ok("groups", "describe", "late-ones").out.splitlines()
    assert table[-2].split()[:6] == ["topic", "partition", "committed", "end", "lag", "visible"]
    assert table[-1].split()[-2:] == ["1", "-"]


def test_what_waits_is_listed_described_withdrawn_and_waited_for(delay: Odradek) -> None:
    listed = delay.ok("delay", "list", "later:0", "--json").json
    assert listed == [
        {"partition": 0, "offset": 5, "due_ms": DUE_MS, "id": "other"},
        {"partition": 0, "offset": 2, "due_ms": DUE_MS + 5, "id": "call ann"},
    ]
    assert "2100-01-01T00:00:00.005+00:00" in delay.ok("delay", "list", "later").out
    (described, _) = delay.ok("delay", "describe", "later", "--json").json
    assert described == {"partition": 0, "waiting": 2, "next_due_ms": DUE_MS, "last_due_ms": DUE_MS + 5, "withdrawn": 0}
    assert "2100" in delay.ok("delay", "describe", "later").out
    shown = delay.ok("delay", "show", "later:0", "5", "--json").json
    assert (shown["key"], shown["value"], shown["id"]) == ("k", "a", "other")
    assert "call ann" in delay.ok("delay", "show", "later:0", "2").out
    assert delay("delay", "show", "later:0", "3").status == 1

    assert delay.ok("delay", "cancel", "later", "call ann").out == "withdrew 'call ann' in later-0\n"
    assert delay.ok("delay", "cancel", "later", "call ann").out == "nothing waits under 'call ann'\n"
    assert [row["id"] for row in delay.ok("delay", "list", "later:0", "--json").json] == ["other"]
    assert delay.ok("delay", "cancel", "later", "other", "--json").json == {"id": "other", "partitions": [0]}

    drained = delay.ok("delay", "drain", "later").out
    assert drained.endswith("nothing waits in later\n")
    assert delay.ok("delay", "drain", "later", "--json").json == {"topic": "later", "waiting": 0}
    assert delay.ok("delay", "list", "later").out == "nothing waits\n"

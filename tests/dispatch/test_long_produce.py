"""Produces that take long to judge: others are served meanwhile, nothing of their own connection overtakes them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import attrs
import pytest

from odradek.kernel.errors import ErrorCode
from odradek.kernel.records import scan
from odradek.kernel.records.batch import TimestampType
from odradek.kernel.records.compression import CompressionType
from odradek.kernel.records.validation import BRIEF_BYTES_MAX, ValidationRules

from ..records.bombs import batch_around, bomb, row_of_records
from .house import House, batch, fetch_part, fetch_request, produce_parts, produce_request, values
from .memory_client import MemoryClient

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from odradek.kernel.partitions.replica import Replica

pytestmark = pytest.mark.skipif(not scan.HAS_COMPILED_KERNEL, reason="without it all but small batches are long")
MANY = 600_000
BOMB = bytes(bomb(MANY))
"""As its offsets have gaps, it is refused once its records were walked."""
LONG = bytes(batch_around(row_of_records(MANY), MANY))
WALK = ValidationRules(walks_records=True, max_message_bytes=4 << 20)


@pytest.fixture
def house(tmp_path: Path) -> Iterator[House]:
    house = House(tmp_path)
    house.hosted.open("t", 2)
    follow(house, WALK)
    yield house
    assert house.long_works == []
    house.hosted.lifecycle.close()


def follow(house: House, rules: ValidationRules) -> None:
    for index in (0, 1):
        replica = replica_of(house, index)
        replica.settings = attrs.evolve(replica.settings, rules=rules)


def replica_of(house: House, index: int = 0) -> Replica:
    return house.hosted.replicas.get("t", index)


def begin(house: House, *parts: tuple[int, bytes | None], acks: int = -1) -> None:
    """Send a Produce that is not judged in its turn."""
    house.client.send(produce_request(*parts, acks=acks), 9)
    house.client.turn()

    assert house.client.received() == []
    assert len(house.long_works) == 1


def end(house: House) -> Any:
    house.do_long_work()
    house.client.turn()
    (answer,) = house.client.received()
    return answer


def codes(answer: Any) -> list[int]:
    return [part.error_code for part in produce_parts(answer)]


def test_another_client_is_served_while_a_bomb_is_judged(house: House) -> None:
    other = MemoryClient(house.router)
    begin(house, (0, BOMB))

    served = other.ask(produce_request((0, batch(b"a", b"b"))), 9)
    assert codes(served) == [ErrorCode.NONE]

    assert codes(end(house)) == [ErrorCode.UNKNOWN_SERVER_ERROR]
    assert replica_of(house).log.log_end_offset == 2


@pytest.mark.parametrize("acks", [-1, 0, 1])
def test_what_comes_behind_it_on_its_connection_is_appended_behind_it(house: House, acks: int) -> None:
    follow(house, ValidationRules(compression=CompressionType.GZIP))  # it is small, and is appended
    long, later = produce_request((0, BOMB), acks=acks), produce_request((0, batch(b"later")), acks=1)
    house.client.send_together(long, later, version=9)
    house.client.turn()
    assert replica_of(house).log.log_end_offset == 0

    house.do_long_work()
    house.client.turn()
    house.client.frames()
    house.client.connection.process(house.router)
    house.client.turn()

    assert replica_of(house).log.log_end_offset == MANY + 1
    assert values(fetch_part(MemoryClient(house.router).ask(fetch_request(MANY), 12))) == [b"later"]


def test_the_memory_of_a_request_counts_as_lent_until_it_is_judged(house: House) -> None:
    memory = house.client._memory
    begin(house, (0, batch(b"small")), (1, LONG))
    assert memory.kept_bytes >= len(LONG)

    end(house)
    assert memory.kept_bytes == 0
    assert memory.has_room_again


def test_the_memory_of_a_client_that_left_counts_as_lent_until_its_request_is_judged(house: House) -> None:
    memory = house.client._memory
    begin(house, (0, LONG))
    house.client.leave()
    assert memory.kept_bytes >= len(LONG)

    house.do_long_work()
    assert memory.kept_bytes == 0


def test_only_what_takes_long_of_a_request_goes_elsewhere_and_all_is_appended_together(house: House) -> None:
    begin(house, (0, batch(b"a")), (1, LONG))
    assert replica_of(house).log.log_end_offset == 0

    parts = produce_parts(end(house))
    assert [(part.error_code, part.base_offset) for part in parts] == [(ErrorCode.NONE, 0), (ErrorCode.NONE, 0)]
    assert replica_of(house, 1).log.log_end_offset == MANY


def test_many_batches_that_are_brief_each_are_not_brief_together(tmp_path: Path) -> None:
    house = House(tmp_path)
    house.hosted.open("t", 5)
    for index in range(5):
        replica = replica_of(house, index)
        replica.settings = attrs.evolve(replica.settings, rules=WALK)
    half = bytes(batch_around(row_of_records(60_000), 60_000))  # 580 KB

    house.client.send(produce_request(*((index, half) for index in range(5))), 9)
    house.client.turn()
    assert house.client.received() == []

    assert codes(end(house)) == [ErrorCode.NONE] * 5
    house.hosted.lifecycle.close()


def test_a_large_plain_batch_is_judged_elsewhere(house: House) -> None:
    large = bytes(batch_around(row_of_records(300_000), 300_000, codec=CompressionType.NONE))
    assert BRIEF_BYTES_MAX < len(large) < WALK.max_message_bytes
    begin(house, (0, large))

    assert codes(end(house)) == [ErrorCode.NONE]
    assert replica_of(house).log.log_end_offset == 300_000


def test_a_batch_that_is_packed_anew_is_packed_elsewhere(house: House) -> None:
    follow(house, ValidationRules(compression=CompressionType.GZIP))
    begin(house, (0, BOMB))

    assert codes(end(house)) == [ErrorCode.NONE]
    assert replica_of(house).log.log_end_offset == MANY


def test_a_batch_has_the_brokers_time_of_its_append(house: House) -> None:
    follow(house, attrs.evolve(WALK, timestamp_type=TimestampType.LOG_APPEND_TIME))
    begin(house, (0, LONG))
    house.clock.advance(5000)
    now_ms = house.clock.now_ms()

    (part,) = produce_parts(end(house))

    assert part.log_append_time_ms == now_ms
    assert replica_of(house).log.max_timestamp()[0] == now_ms


def test_what_a_stage_makes_of_a_batch_is_judged_again(house: House) -> None:
    seen: list[int] = []

    class Stage:
        def accept(self, batch: memoryview) -> memoryview | bytes | None:
            seen.append(len(batch))
            return BOMB if len(seen) == 1 else batch

    follow(house, attrs.evolve(WALK, compression=CompressionType.ZSTD))
    replica_of(house).stages = (Stage(), Stage())
    begin(house, (0, LONG))
    house.do_long_work()
    assert seen == [len(LONG)]
    assert len(house.long_works) == 1

    assert codes(end(house)) == [ErrorCode.UNKNOWN_SERVER_ERROR]


def test_a_client_that_leaves_has_it_appended_all_the_same(house: House) -> None:
    begin(house, (0, LONG))
    house.client.leave()

    house.do_long_work()
    house.router.turn_ended()

    assert replica_of(house).log.log_end_offset == MANY


def test_a_partition_that_is_gone_by_then_refuses_it(house: House) -> None:
    begin(house, (0, LONG))
    house.hosted.lifecycle.close()

    (part,) = produce_parts(end(house))
    assert part.error_code == ErrorCode.KAFKA_STORAGE_ERROR


def test_a_request_that_is_recognised_is_judged_elsewhere_too(house: House) -> None:
    for _ in range(3):
        assert codes(house.client.ask(produce_request((0, batch(b"a"))), 9)) == [ErrorCode.NONE]
    begin(house, (0, LONG))

    assert produce_parts(end(house))[0].base_offset == 3


def test_memory_that_runs_out_is_answered(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    begin(house, (0, LONG))
    (work,) = house.long_works
    house.long_works.clear()
    work.finish(MemoryError())
    house.client.turn()

    (answer,) = house.client.received()
    assert codes(answer) == [ErrorCode.UNKNOWN_SERVER_ERROR]

"""How the ends of many transactions, and of long ones, share turns."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, cast

from odradek.kernel.contracts.transactions import TransactionMarker
from odradek.kernel.errors import ErrorCode
from odradek.kernel.partitions.marker_writer import MARKERS_A_TURN, LocalMarkerWriter
from odradek.kernel.types import TopicPartition


class Written:
    """An owner of every topic, with the writer: which markers it was given, in their order."""

    def __init__(self) -> None:
        self.partitions: list[TopicPartition] = []
        self.told: list[str] = []
        self.turns_wanted_count = 0
        self._topic = ""
        self.writer = LocalMarkerWriter(
            replicas=cast("Any", None),
            writes=cast("Any", None),
            purgatory=cast("Any", None),
            clock=cast("Any", None),
            timeout_ms=lambda: 30_000,
            owner_of=self._owner_of,
            want_turn=self._want_turn,
        )

    def _want_turn(self) -> None:
        self.turns_wanted_count += 1

    def _owner_of(self, topic: str) -> Written:
        self._topic = topic
        return self

    def write_marker(self, partition: int, marker: TransactionMarker, done: Callable[[ErrorCode], None]) -> None:
        self.partitions.append(TopicPartition(self._topic, partition))
        done(ErrorCode.NONE)

    def end(self, topic: str, partitions_count: int) -> list[TopicPartition]:
        """End a transaction with that many partitions of a topic; return them."""
        partitions = [TopicPartition(topic, number) for number in range(partitions_count)]

        def done(codes: Mapping[TopicPartition, ErrorCode]) -> None:
            assert codes == dict.fromkeys(partitions, ErrorCode.NONE)
            self.told.append(topic)

        self.writer.write(TransactionMarker(1, 0, 0, 2, True, partitions), done)
        return partitions


def test_a_short_transaction_ends_in_the_turn_in_which_it_is_told() -> None:
    written = Written()

    partitions = written.end("short", 3)

    assert (written.partitions, written.told, written.turns_wanted_count) == (partitions, ["short"], 0)


def test_an_end_without_partitions_is_told_at_once() -> None:
    written = Written()

    written.end("none", 0)

    assert (written.told, written.turns_wanted_count) == (["none"], 0)


def test_a_turn_takes_so_many_markers_and_asks_for_another_turn_for_the_others() -> None:
    written = Written()

    partitions = written.end("long", 2 * MARKERS_A_TURN + 1)

    assert written.partitions == partitions[:MARKERS_A_TURN]
    assert written.turns_wanted_count == 1
    written.writer.turn_ended()
    assert written.partitions == partitions[: 2 * MARKERS_A_TURN]
    assert (written.turns_wanted_count, written.told) == (2, [])
    written.writer.turn_ended()
    assert written.partitions == partitions
    assert (written.turns_wanted_count, written.told) == (2, ["long"])


def test_many_short_transactions_share_a_turn_s_room() -> None:
    written = Written()
    names = [f"t{number}" for number in range(MARKERS_A_TURN + 10)]

    for name in names:
        written.end(name, 1)

    assert written.told == names[:MARKERS_A_TURN]
    written.writer.turn_ended()
    assert written.told == names


def test_a_short_transaction_does_not_wait_for_a_long_one_before_it() -> None:
    written = Written()
    written.end("long", 10 * MARKERS_A_TURN)
    written.end("short", 1)

    written.writer.turn_ended()
    written.writer.turn_ended()

    assert written.told == ["short"]
    for _ in range(8):
        written.writer.turn_ended()
    assert written.told == ["short", "long"]
    assert len(set(written.partitions)) == len(written.partitions) == 10 * MARKERS_A_TURN + 1

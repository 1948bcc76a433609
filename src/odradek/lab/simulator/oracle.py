"""Pure core: what must be true of a log, whatever happened: told what was sent and acknowledged, then what was read.

| rule | |
| --- | --- |
| origin | what is read was sent, to this partition |
| place | what was acknowledged is read at the offset that was told |
| change | what was read at an offset is what is read there later |
| dense | offsets follow each other, from the first; but where replicas vote: leaders write a record of their own |
| kept | what was acknowledged is there, as far as `promises.py` says |
| prefix | of what a loss of power may take nothing stays behind what is gone |
| once | an idempotent producer's record is there once |
| order | an idempotent producer's records are there in the order in which they were sent |

A broker that stops keeps of each producer its last batch alone, as Kafka does: what was unanswered then may be there
twice.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import attrs

from .promises import Promise, Row
from .world import SimulationError

if TYPE_CHECKING:
    from collections.abc import Sequence


FAR: Final = 1 << 62
"""Behind every offset."""


SHOWN: Final = 60
"""So much is shown of a value that nobody sent."""


class PromiseBrokenError(SimulationError):
    """A rule does not hold.

    Attributes:
        rule: Its name.
    """

    def __init__(self, rule: str, what: str) -> None:
        super().__init__(f"{rule}: {what}")
        self.rule = rule


@attrs.frozen
class Sent:
    """A record as it was sent: what its value says.

    Attributes:
        producer: By whom.
        number: As the how many-th, from 0.
        partition: Where to.
    """

    producer: str
    number: int
    partition: int

    @property
    def value(self) -> str:
        """What it is sent as."""
        return f"{self.producer}/{self.number}/{self.partition}"


class Oracle:
    """All partitions of one topic. One owner.

    Attributes:
        acknowledged_count: How many records were acknowledged with an offset.
        delivered_count: How many records were read.
        open_count: How many were sent and neither acknowledged nor given up.
    """

    def __init__(self, promises: Row, *, is_idempotent: bool, is_dense: bool = True) -> None:
        """Know nothing yet.

        Args:
            promises: What acknowledgements promise.
            is_idempotent: Whether producers are.
            is_dense: Whether every offset has a record that somebody sent.
        """
        self._promises = promises
        self._is_dense = is_dense
        self._is_idempotent = is_idempotent
        self._sent: dict[str, Sent] = {}
        self._promised: dict[int, dict[int, str]] = {}
        self._doubtful: list[dict[int, dict[int, str]]] = []
        self._seen: dict[int, dict[int, str]] = {}
        self._unanswered: dict[str, None] = {}
        self._repeatable: set[str] = set()
        self._lost_ns = -1
        self._rotten: dict[int, int] = {}
        self.acknowledged_count = 0
        self.delivered_count = 0
        self.open_count = 0

    # -- what happens ------------------------------------------------------------------------------------------------

    def sent(self, record: Sent) -> None:
        """Note that a record is on its way."""
        self._sent[record.value] = record
        self._unanswered[record.value] = None
        self.open_count += 1

    def given_up(self) -> None:
        """Note that its producer was told that it failed: it may have been written all the same."""
        self.open_count -= 1

    def acknowledged(self, record: Sent, offset: int, now_ns: int) -> None:
        """Note that its producer was told that it is at an offset; -1 if it was told none."""
        self.open_count -= 1
        self._unanswered.pop(record.value, None)
        if offset < 0:
            return
        self.acknowledged_count += 1
        if offset >= self._rotten.get(record.partition, FAR):
            return
        if now_ns == self._lost_ns:  # it was told before, and the client comes to it now
            if self._doubtful:
                self._doubtful[-1].setdefault(record.partition, {})[offset] = record.value
            return
        there = self._promised.setdefault(record.partition, {}).setdefault(offset, record.value)
        if there != record.value:
            what = f"partition {record.partition}, offset {offset} was acknowledged for {there} and {record.value}"
            raise PromiseBrokenError("place", what)

    def died(self, now_ns: int) -> None:
        """Note that the broker's process was killed."""
        self._lose(self._promises.after_death, now_ns)

    def stopped(self) -> None:
        """Note that the broker ended as it was asked to."""
        self._repeatable.update(self._unanswered)

    def lost_power(self, now_ns: int) -> None:
        """Note that the broker's machine lost its power, and all that was underway from it."""
        self._lose(self._promises.after_power_loss, now_ns)

    def _lose(self, promise: Promise, now_ns: int) -> None:
        if promise is Promise.KEPT:
            return
        self._lost_ns = now_ns
        if promise is Promise.PREFIX:
            self._doubtful.append(self._promised)
        self._promised, self._seen = {}, {}

    @property
    def has_rot(self) -> bool:
        """Whether any partition lost a batch."""
        return bool(self._rotten)

    def rotted(self, partition: int, offset: int) -> None:
        """Note that a partition lost a batch, found broken when it is met; nothing is promised from its offset on."""
        self._rotten[partition] = offset = min(offset, self._rotten.get(partition, FAR))
        for places in (self._promised, self._seen, *self._doubtful):
            of_partition = places.get(partition, {})
            places[partition] = {place: value for place, value in of_partition.items() if place < offset}

    # -- what is read ------------------------------------------------------------------------------------------------

    def delivered(self, partition: int, offset: int, value: str, now_ns: int) -> None:
        """Check a record that a consumer was given."""
        self.delivered_count += 1
        self._check_origin(partition, offset, value)
        if offset >= self._rotten.get(partition, FAR):
            return
        if now_ns == self._lost_ns:  # it came before, and the client comes to it now
            return
        before = self._seen.setdefault(partition, {}).setdefault(offset, value)
        if before != value:
            raise PromiseBrokenError("change", f"partition {partition}, offset {offset} was {before} and is {value}")
        promised = self._promised.get(partition, {}).get(offset, value)
        if promised != value:
            what = f"partition {partition}, offset {offset} was acknowledged for {promised} and is {value}"
            raise PromiseBrokenError("place", what)

    def followed(self, partition: int, expected: int, offset: int) -> None:
        """Check that a consumer that reads on was given the next record, or begins again further below.

        Where offsets may lie between records, as those of leaders' own, nothing is known of it.
        """
        if self._is_dense and offset > expected and expected < self._rotten.get(partition, FAR):
            raise PromiseBrokenError("gap", f"partition {partition} was read up to {expected}, and then came {offset}")

    def _check_origin(self, partition: int, offset: int, value: str) -> None:
        sent = self._sent.get(value)
        if sent is None or sent.partition != partition:
            raise PromiseBrokenError(
                "origin", f"nobody sent what partition {partition} has at {offset}: {value[:SHOWN]!r}"
            )

    def check_log(self, partition: int, records: Sequence[tuple[int, str]]) -> None:
        """Check a whole log, read from its beginning to its end when nothing happens any more.

        Args:
            partition: Which.
            records: Offsets and values.
        """
        rotten = self._rotten.get(partition, FAR)
        for place, (offset, value) in enumerate(records):
            if self._is_dense and offset != place and place < rotten:
                raise PromiseBrokenError("dense", f"partition {partition} has offset {offset} after {place - 1}")
            self._check_origin(partition, offset, value)
        self._check_kept(partition, dict(records))
        for doubtful in self._doubtful:
            _check_prefix(partition, doubtful.get(partition, {}), dict(records))
        if self._is_idempotent:
            self._check_order(partition, [value for _, value in records])

    def _check_kept(self, partition: int, log: dict[int, str]) -> None:
        for rule, expected in (("kept", self._promised), ("change", self._seen)):
            for offset, value in expected.get(partition, {}).items():
                there = log.get(offset, "nothing")
                if there != value:
                    raise PromiseBrokenError(rule, f"partition {partition}, offset {offset} is {there}, not {value}")

    def _check_order(self, partition: int, values: Sequence[str]) -> None:
        last: dict[str, int] = {}
        seen: set[str] = set()
        for value in values:
            if value in seen and value in self._repeatable:
                continue
            seen.add(value)
            sent = self._sent[value]
            before = last.get(sent.producer, -1)
            if sent.number == before:
                raise PromiseBrokenError("once", f"partition {partition} has {value} twice")
            if sent.number < before:
                raise PromiseBrokenError("order", f"partition {partition} has {value} behind number {before}")
            last[sent.producer] = sent.number


def _check_prefix(partition: int, acknowledged: dict[int, str], log: dict[int, str]) -> None:
    missing = -1
    for offset, value in sorted(acknowledged.items()):
        is_there = log.get(offset) == value
        if is_there and missing >= 0:
            what = f"partition {partition} has {value} at {offset}, and not what was acknowledged at {missing}"
            raise PromiseBrokenError("prefix", what)
        if not is_there and missing < 0:
            missing = offset

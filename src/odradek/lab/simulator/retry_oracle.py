"""Pure core: what must be true of records that consumers fail: told what failed and became of it, then what was read.

A failure is what is told apart: a record that fails once more is another one, of the same value.

| rule | |
| --- | --- |
| origin | what is read was failed, to this partition, and counts its attempts right |
| early | nothing is given back before its level is over |
| aborted | nothing is given back, and nothing dies, of a transaction whose abort was answered |
| dead | what has no attempts left, or is not wanted, is not given back; what has some left does not die |
| change | what was read at an offset is what is read there later |
| kept | what was acknowledged, and what was read, is there in the end, when all is due |
| once | each failure is there once, given back or dead |
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

from .oracle import SHOWN, PromiseBrokenError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence


@attrs.frozen
class Failure:
    """A record that was failed.

    Attributes:
        name: Of this failure: no two have the same.
        value: What the record says.
        partition: Where to.
        attempts: How often it was given back before.
        is_over: Whether it is to be dead: no attempts are left, or its consumer wants it no more.
        due_ms: When it may be given back at the earliest, by the wall clock.
    """

    name: str
    value: str
    partition: int
    attempts: int
    is_over: bool
    due_ms: int


@attrs.frozen
class Returned:
    """A record as it was read: given back, or a dead letter.

    Attributes:
        offset: Where.
        name: Of the failure that it comes from.
        value: What it says.
        attempts: How often it was given back, by its header.
    """

    offset: int
    name: str
    value: str
    attempts: int


class RetryOracle:
    """All partitions of a retry topic and of its dead letters. One owner.

    Attributes:
        acknowledged_count: How many failures were acknowledged, or committed.
        returned_count: How many records were read that were given back.
        dead_count: How many dead letters were read in the end.
        open_count: How many failures were sent and have no fate yet.
    """

    def __init__(self) -> None:
        """Know nothing yet."""
        self._failed: dict[str, Failure] = {}
        self._kept: set[str] = set()
        self._aborted: set[str] = set()
        self._seen: dict[tuple[int, int], str] = {}
        self.acknowledged_count = 0
        self.returned_count = 0
        self.dead_count = 0
        self.open_count = 0

    def sent(self, failure: Failure) -> None:
        """Note that a failure is on its way."""
        self._failed[failure.name] = failure
        self.open_count += 1

    def given_up(self, failures: Iterable[Failure]) -> None:
        """Note that nobody knows what became of failures."""
        self.open_count -= len(list(failures))

    def acknowledged(self, failures: Iterable[Failure]) -> None:
        """Note that failures were acknowledged, or their transaction committed."""
        names = {failure.name for failure in failures}
        self._kept |= names
        self.acknowledged_count += len(names)
        self.open_count -= len(names)

    def aborted(self, failures: Iterable[Failure]) -> None:
        """Note that the transaction of failures was aborted."""
        names = {failure.name for failure in failures}
        self._aborted |= names
        self.open_count -= len(names)

    def read(self, partition: int, returned: Returned, now_ms: int) -> Failure:
        """Check a record that was given back to a consumer of committed records; return what it was failed as."""
        self.returned_count += 1
        failure = self._checked(partition, returned, is_dead=False)
        if now_ms < failure.due_ms:
            early_ms = failure.due_ms - now_ms
            what = f"partition {partition} has {returned.name} at {returned.offset}, {early_ms} ms before it is due"
            raise PromiseBrokenError("early", what)
        before = self._seen.setdefault((partition, returned.offset), returned.name)
        if before != returned.name:
            what = f"partition {partition}, offset {returned.offset} was {before} and is {returned.name}"
            raise PromiseBrokenError("change", what)
        return failure

    def _checked(self, partition: int, returned: Returned, *, is_dead: bool) -> Failure:
        failure = self._failed.get(returned.name)
        where = f"partition {partition} has {returned.name[:SHOWN]!r} at {returned.offset}"
        if failure is None or (failure.partition, failure.value) != (partition, returned.value):
            raise PromiseBrokenError("origin", f"{where}, and nobody failed that: {returned.value[:SHOWN]!r}")
        if returned.name in self._aborted:
            raise PromiseBrokenError("aborted", f"{where}{', dead' if is_dead else ''}")
        if failure.is_over != is_dead:
            raise PromiseBrokenError("dead", f"{where}, which is to be {'given back' if is_dead else 'dead'}")
        if returned.attempts != failure.attempts + (not is_dead):
            raise PromiseBrokenError("origin", f"{where}, attempt {returned.attempts}, after {failure.attempts}")
        return failure

    def check_logs(self, returned: Mapping[int, Sequence[Returned]], dead: Mapping[int, Sequence[Returned]]) -> None:
        """Check all partitions, read when all is due and nothing happens any more.

        Args:
            returned: What the retry topic has, by partition.
            dead: What the dead-letter topic has.
        """
        places: dict[str, tuple[bool, int]] = {}
        for is_dead, logs in ((False, returned), (True, dead)):
            for partition, records in logs.items():
                for each in records:
                    self._checked(partition, each, is_dead=is_dead)
                    if each.name in places:
                        what = f"partition {partition} has {each.name} at {places[each.name][1]} and at {each.offset}"
                        raise PromiseBrokenError("once", f"{what}{', dead' if is_dead else ''}")
                    places[each.name] = is_dead, each.offset
        self.dead_count = sum(is_dead for is_dead, _ in places.values())
        for name in sorted(self._kept - places.keys()):
            failure = self._failed[name]
            what = "no dead letter" if failure.is_over else "not given back"
            raise PromiseBrokenError("kept", f"partition {failure.partition}: {name} was acknowledged, and is {what}")
        for (partition, offset), name in self._seen.items():
            if places.get(name) != (False, offset):
                raise PromiseBrokenError("kept", f"partition {partition} has no {name} at {offset}, which was read")

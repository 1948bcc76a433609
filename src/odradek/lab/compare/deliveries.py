"""Pure core: what became of records while brokers failed: acknowledged, lost, doubled, wrong.

Under faults a record may be in the log that nobody was told of, which is neither lost nor wrong. So what is read is
known by the number that each value begins with:

* **lost**: acknowledged at a place where it is not, or where another record was acknowledged later;
* **doubled**: in the log more than once, each copy beyond the first counted;
* **wrong**: changed, of another partition, or never sent at all.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

from .workload import INDEX_BYTES

if TYPE_CHECKING:
    from .ledger import Ledger


@attrs.define
class Deliveries:
    """One pass over a topic whose brokers failed. Life: `take` all records, then read what they came to."""

    _ledger: Ledger
    _seen: set[int] = attrs.field(factory=set, init=False)
    _found_count: int = attrs.field(default=0, init=False)
    doubled: int = attrs.field(default=0, init=False)
    wrong: int = attrs.field(default=0, init=False)

    def take(self, partition: int, offset: int, key: bytes | None, value: bytes | None) -> None:
        """Compare a record with what was sent."""
        plan = self._ledger.plan
        index = int.from_bytes((value or b"")[:INDEX_BYTES], "big")
        if value is None or index >= plan.workload.records_all or plan.record(index) != (partition, key, value):
            self.wrong += 1
            return
        self.doubled += index in self._seen
        self._seen.add(index)
        self._found_count += self._ledger.index_at(partition, offset) == index

    @property
    def acknowledged(self) -> int:
        """How many records were acknowledged."""
        return self._ledger.acknowledged + self._ledger.displaced

    @property
    def there(self) -> int:
        """How many of these came back from where they were acknowledged."""
        return self._found_count

    @property
    def lost(self) -> int:
        """How many of these did not."""
        return self.acknowledged - self._found_count

"""Pure core: the workloads that have a name.

They are small enough for a laptop and a minute or two; `--records` and `--seconds` make them larger. Segments are as
small as Kafka allows (1 MiB), so that even so there is something to delete, compact and move to a store.
"""

from __future__ import annotations

import difflib
from typing import Final

from odradek.kernel.errors import ConfigError

from .workload import Workload

_SMALL_SEGMENTS: Final = {"segment.bytes": "1048576"}

_ALL: Final = (
    Workload(
        name="small",
        text="events of 100 bytes, hardly two of them with the same key: the cost of a record",
        records=50_000,
        keys=1_000_000,
        topic=_SMALL_SEGMENTS,
    ),
    Workload(
        name="bulk",
        text="values of 10 kB in large batches: the cost of a byte",
        records=5_000,
        value_bytes=10_000,
        keys=1_000_000,
        paced_rate=200,
        paced_records=200,
        topic={"segment.bytes": "8388608"},
        producer={"batch.size": "262144", "linger.ms": "10"},
    ),
    Workload(
        name="keyed-updates",
        text="few keys, some of them hot, updated again and again, now and then deleted: what compaction is for",
        records=40_000,
        value_bytes=200,
        keys=500,
        key_skew=1.0,
        tombstones=0.02,
        topic={**_SMALL_SEGMENTS, "min.cleanable.dirty.ratio": "0.01"},
    ),
    Workload(
        name="read-cold",
        text="records of 1 kB in small segments, read from the beginning when nothing of them is in memory any more",
        records=20_000,
        value_bytes=1_000,
        keys=1_000_000,
        paced_records=100,
        paced_rate=200,
        topic=_SMALL_SEGMENTS,
        producer={"batch.size": "65536"},
    ),
    Workload(
        name="transactions",
        text="a hundred records a transaction, one of ten aborted, read_committed readers",
        records=20_000,
        keys=2_000,
        transaction_records=100,
        aborted=0.1,
        paced_records=200,
        paced_rate=100,
        topic={**_SMALL_SEGMENTS, "min.cleanable.dirty.ratio": "0.01"},
    ),
    Workload(
        name="delayed",
        text="records that are to be seen some seconds later, at most eight: what delays cost, and how late they are",
        records=20_000,
        keys=1_000_000,
        delay_ms=8_000,
        paced_records=400,
        paced_rate=100,
        topic={**_SMALL_SEGMENTS, "odradek.delay.enable": "true"},
    ),
    Workload(
        name="through-faults",
        text="events of 1 kB, 200 a second for 20 seconds while something happens to brokers: what a cluster promises",
        records=20_000,
        value_bytes=1_000,
        partitions=1,
        paced_records=4_000,
        paced_rate=200,
        # Who stands still answers nothing: the producer asks the next leader after this.
        producer={"request.timeout.ms": "2000", "delivery.timeout.ms": "60000"},
    ),
)

BUILTIN: Final = {workload.name: workload for workload in _ALL}
"""By name, in the order in which they are listed."""

DEFAULT_NAME: Final = "keyed-updates"
DEFAULT_OF_CLUSTERS: Final = "through-faults"


def builtin_workload(name: str) -> Workload:
    """Return the workload of a name.

    Raises:
        ConfigError: There is none; with the nearest name that there is.
    """
    found = BUILTIN.get(name)
    if found is None:
        nearest = difflib.get_close_matches(name, BUILTIN, n=1)
        hint = f"did you mean {nearest[0]!r}?" if nearest else f"known: {', '.join(BUILTIN)}; or name a .toml file"
        raise ConfigError(f"there is no workload {name!r}", where="--workload", hint=hint)
    return found

"""What most storages do alike, so that a new one says where batches are kept and nothing else.

| module | what it gives |
| --- | --- |
| `log` | `LogBase`: all of `PartitionLog` over a few methods of its subclass |
| `store` | `LogStore`: these methods, with what each has to do |
| `engine` | `EngineBase`: what an engine without directories of logs need not think about |
| `rewriting` | `StoredSource`, `StoredPlace`, `PieceWriter`: what compaction reads and writes, made of functions |
| `work` | `Work`: a `DiskWork` made of functions |
| `epochs` | `EpochCache`: where each leader's epoch began, Kafka's `leader-epoch-checkpoint` |

A library beside the kernel, for plugins: the kernel imports it nowhere. All names are had from here.

`plugins/storage_memory` and `examples/plugin_template` are made so; `plugins/storage_segment` is not, as its hot path
has other needs. A storage may override whatever it does better.
"""

from .engine import EngineBase
from .epochs import EpochCache
from .log import LogBase
from .rewriting import PieceWriter, StoredPlace, StoredSource
from .store import LogBounds, LogSegment, StoredBatch
from .work import Work

__all__ = [
    "EngineBase",
    "EpochCache",
    "LogBase",
    "LogBounds",
    "LogSegment",
    "PieceWriter",
    "StoredBatch",
    "StoredPlace",
    "StoredSource",
    "Work",
]

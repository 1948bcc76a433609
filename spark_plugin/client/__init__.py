"""Shell: a light blocking Kafka client: what drivers and workers of Spark use to talk to brokers.

    with Client(ClientSettings.of({"bootstrap.servers": "127.0.0.1:9092"})) as client:
        for fetched in client.fetch(OffsetRange("t", 0, 0, 1_000), is_read_committed=False):
            reader.feed(fetched.data, fetched.aborted)

Plain sockets, each wait with an end, no event loop, no threads: a task of Spark is one thread that waits anyway. One
`Client` belongs to one thread. What a worker loads of it pulls in neither trio nor the broker.

| module | what it holds |
| --- | --- |
| `client` | `Client`, what others call; `cache` keeps one per process and settings |
| `settings`, `setting_keys`, `jaas` | Kafka's keys, read and checked |
| `errors` | what calls raise |
| `topics` | what callers are told of topics |
| `batches`, `fetch_progress`, `group_offsets`, `answers` | pure cores: what answers mean |
| `scram`, `sasl` | pure cores: proofs of identity |
| `leaders`, `coordinators` | who leads a partition, who coordinates a group: found, kept and asked |
| `fetch_loop`, `brokers`, `connection`, `login`, `transport`, `clock` | the shells around them |

.. versionadded:: 0.1
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from .cache import client_for
    from .client import Client
    from .fetch_loop import FetchLoop
    from .fetch_progress import Fetched
    from .settings import ClientSettings
    from .topics import TopicInfo

_HOMES: Final = {
    "Client": "client",
    "ClientSettings": "settings",
    "FetchLoop": "fetch_loop",
    "Fetched": "fetch_progress",
    "TopicInfo": "topics",
    "client_for": "cache",
}

__all__ = ["Client", "ClientSettings", "FetchLoop", "Fetched", "TopicInfo", "client_for"]


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = globals()[name] = getattr(import_module(f".{home}", __name__), name)
    return found

"""The composition root: what a broker is made of, tied together, started and stopped.

| module | what it holds |
| --- | --- |
| `broker` | `Broker`: one broker's life, in nested nurseries |
| `options` | what it is started with |
| `parts` | its parts, tied together in one order |
| `log_parts`, `metadata_parts` | engines and replicas; the metadata log and who follows it |
| `request_parts`, `handlers` | what answers; the table of handlers |
| `plugin_view`, `replica_events` | the broker as plugins see it; whom replicas tell |
| `metadata_follower` | replicas do what the metadata says |
| `start_topics` | topics of the configuration |
| `supervision` | services that crash are started again, but not for ever |
| `plugin_services` | services of plugins: prepared, run, closed |
| `figures` | what it counts and how it stands, for plugins that show it |

Names are imported when somebody asks for them: who reads options does not load a broker.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from .broker import BoundListener, Broker
    from .options import BrokerOptions, read_broker_options

_HOMES: Final = {
    "BoundListener": "broker",
    "Broker": "broker",
    "BrokerOptions": "options",
    "read_broker_options": "options",
}

__all__ = ["BoundListener", "Broker", "BrokerOptions", "read_broker_options"]


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = globals()[name] = getattr(import_module(f".{home}", __name__), name)
    return found

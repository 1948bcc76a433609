"""Pure core: whether strangers can reach a broker that asks nobody who he is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ..config.listeners import META_ADDRESSES
from .settings import ClientAuth

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from .settings import ListenerSettings

_LOOPBACK: Final = ("127.", "::ffff:127.")
_REMEDY: Final = (
    "listen on 127.0.0.1, keep strangers off by a firewall, or ask for certificates: an SSL listener with "
    "ssl.client.auth=required"
)


def exposure(listeners: Iterable[ListenerSettings], bound: Mapping[str, tuple[str, int]]) -> str:
    """Return a line about all listeners that other machines reach and that let everybody in; empty for none.

    Args:
        listeners: How each is secured.
        bound: Listener name to the address and port that are bound, as the system writes them.
    """
    places = [_place(*bound[listener.name]) for listener in listeners if _is_open(listener, bound[listener.name][0])]
    if not places:
        return ""
    whom = " or ".join(places)
    return f"whoever reaches {whom} may read, write and delete everything: no client is asked who it is ({_REMEDY})"


def _is_open(listener: ListenerSettings, host: str) -> bool:
    is_here = host.startswith(_LOOPBACK) or host == "::1"
    return not is_here and (listener.tls is None or listener.tls.client_auth is not ClientAuth.REQUIRED)


def _place(host: str, port: int) -> str:
    if host in META_ADDRESSES:
        return f"port {port} of this machine"
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"

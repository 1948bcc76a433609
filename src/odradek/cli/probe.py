"""Shell: asks who a port belongs to that takes connections and does not answer as a Kafka broker does.

A server that waits for a whole line says nothing to a binary request: asked in its own language it answers at once.
"""

from __future__ import annotations

import ssl
from contextlib import suppress
from typing import TYPE_CHECKING, Final

import trio

from odradek.kernel.peers.strangers import SPEAKS_TLS, who_answered

if TYPE_CHECKING:
    from collections.abc import Iterable

PATIENCE_S: Final = 2.0
"""How long a broker may be silent before it is asked who it is."""
QUESTION_S: Final = 1.0
"""How long each such question may take."""
_HTTP_QUESTION: Final = b"GET / HTTP/1.0\r\n\r\n"
_RECEIVE_BYTES: Final = 1024


async def who_is_there(addresses: Iterable[tuple[str, int]]) -> dict[str, str]:
    """Return of each address that takes connections who it is, empty where even that does not tell."""
    found = {}
    for host, port in addresses:
        for ask in (_speaks_tls, _speaks_text):
            with trio.move_on_after(QUESTION_S), suppress(OSError):
                async with await trio.open_tcp_stream(host, port) as stream:
                    found[f"{host}:{port}"] = ""
                    found[f"{host}:{port}"] = await ask(stream, host)
            if found.get(f"{host}:{port}"):
                break
    return found


async def _speaks_tls(stream: trio.SocketStream, host: str) -> str:
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    try:
        await trio.SSLStream(stream, context, server_hostname=host).do_handshake()
    except trio.BrokenResourceError as error:
        return SPEAKS_TLS if "ALERT" in (getattr(error.__cause__, "reason", None) or "") else ""
    return SPEAKS_TLS


async def _speaks_text(stream: trio.SocketStream, _host: str) -> str:
    try:
        await stream.send_all(_HTTP_QUESTION)
        return who_answered(bytes(await stream.receive_some(_RECEIVE_BYTES)))
    except trio.BrokenResourceError:
        return ""

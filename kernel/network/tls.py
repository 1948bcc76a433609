"""Shell: TLS: contexts from Kafka's `ssl.*` settings, and an endpoint that encrypts between socket and connection.

Python's `ssl` works on memory here (`SSLObject` with two `MemoryBIO`), so that the same loops drive it.

.. versionadded:: 0.1
"""

from __future__ import annotations

import logging
import ssl
from contextlib import suppress
from typing import TYPE_CHECKING, ClassVar, Final, cast

import attrs

from ..classes import define
from ..errors import ConfigError, MalformedRequestError
from ..key_stores.loading import TLS_VERSIONS, load_key, load_trusted
from .connection import MEMORY
from .endpoint import READ, RECEIVE_BYTES_PER_TURN, SEND_BYTES_PER_TURN, Endpoint, consume, read_slice
from .settings import ClientAuth
from .tls_records import RecordWalk

if TYPE_CHECKING:
    from ..machine.network import Socket
    from ..types import Buffer
    from .connection import Connection, Outgoing
    from .loop import EndpointMaker, Loop
    from .settings import TlsSettings

_log = logging.getLogger(__name__)

_VERIFY_MODES: Final = {
    ClientAuth.NONE: ssl.CERT_NONE,
    ClientAuth.REQUESTED: ssl.CERT_OPTIONAL,
    ClientAuth.REQUIRED: ssl.CERT_REQUIRED,
}
RECORDS_PER_TURN_MAX: Final = 96
"""So many records of one connection are decrypted in one turn: what 1 MiB comes in, and not what costs without end.

Work goes by records, not by bytes: a key update, 27 bytes, costs as much as the encryption of 16 KiB.
"""
SILENT_RECORDS_MAX: Final = 128
"""How many records may bring no data, beside those that are made up for. A handshake takes few of them."""
SILENT_PER_FRAME: Final = 3
"""So many are made up for by a whole frame, and one by 16 KiB of data; clients send one, every some million records."""
SILENT_PER_TURN_MAX: Final = 48
"""So many end a turn: what is held here goes before all sockets in each turn, for every connection that does so."""
_CIPHERTEXT_BYTES: Final = 64 * 1024
_RECORD_BYTES: Final = 16 * 1024
_PLAINTEXT_BYTES: Final = 256 * 1024


def server_context(settings: TlsSettings) -> ssl.SSLContext:
    """Return the context of a listener.

    Raises:
        ConfigError: A store or text is missing, contradicts another setting, or cannot be used; says what to do.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    versions = sorted(_version(name) for name in settings.enabled_protocols)
    if not versions:
        raise ConfigError("no TLS version is enabled", where="ssl.enabled.protocols", hint="TLSv1.2,TLSv1.3")
    context.minimum_version = versions[0]
    context.maximum_version = versions[-1]
    # No client of Kafka's asks for it, and Kafka refuses it, too.
    context.options |= ssl.OP_NO_RENEGOTIATION
    if not load_key(context, settings):
        raise ConfigError(
            "neither ssl.keystore.location nor ssl.keystore.certificate.chain with ssl.keystore.key is set",
            where="ssl.keystore.location",
            hint="a listener that speaks TLS needs a certificate",
        )
    if not load_trusted(context, settings) and settings.client_auth is not ClientAuth.NONE:
        raise ConfigError(
            "clients are asked for certificates, but no authority is trusted",
            where="ssl.client.auth",
            hint="set ssl.truststore.location",
        )
    context.verify_mode = _VERIFY_MODES[settings.client_auth]
    return context


def _version(name: str) -> ssl.TLSVersion:
    version = TLS_VERSIONS.get(name)
    if version is None:
        raise ConfigError(
            f"unknown or unsafe TLS version {name!r}",
            where="ssl.enabled.protocols",
            hint=f"known are {', '.join(TLS_VERSIONS)}",
        )
    return version


@define(eq=False, repr=False)
class TlsEndpoint(Endpoint):
    """One connection on one TCP socket, with TLS in between.

    Invariant: `_ciphertext` and what the outgoing BIO holds are sent before anything more is encrypted, so that memory
    for a slow reader stays bounded; until then nothing more is received, as what is received may have to be answered.
    What lies here undecrypted begins in `_incoming` and goes on in `_held`.

    Of the records that came, `_heard_count` brought data; the others are silent, and those of a turn end at
    `_silent_end`, all of them at `_silent_max`, which data and frames put off: an allowance, not a row, for a byte now
    and then begins a row anew. It is never more than `SILENT_RECORDS_MAX` ahead, so nothing is saved up.
    """

    _is_plain: ClassVar[bool] = False
    _tls: ssl.SSLObject = attrs.field(kw_only=True, alias="tls")
    _incoming: ssl.MemoryBIO = attrs.field(kw_only=True, alias="incoming")
    _encrypted: ssl.MemoryBIO = attrs.field(kw_only=True, alias="encrypted")
    _expires_ms: int = attrs.field(kw_only=True, alias="expires_ms")
    _ciphertext: memoryview = attrs.field(init=False, factory=lambda: memoryview(b""))
    _is_handshaken: bool = attrs.field(init=False, default=False)
    _records: RecordWalk = attrs.field(init=False, factory=RecordWalk)
    _held: Buffer = attrs.field(init=False, default=b"")
    _records_end: int = attrs.field(init=False, default=0)
    _heard_count: int = attrs.field(init=False, default=0)
    _heard_bytes: int = attrs.field(init=False, default=0)
    _silent_end: int = attrs.field(init=False, default=0)
    _silent_max: int = attrs.field(init=False, default=SILENT_RECORDS_MAX)

    def on_event(self, mask: int) -> None:
        """Go on after an event: read, decrypt and process what is there, up to a bound."""
        if mask != READ:
            self._on_other_event(mask)
        elif self.connection.wants_input:
            self._receive()
        else:
            self._on_unwanted_input()

    def _receive(self) -> None:
        connection = self.connection
        received_bytes, frames_count = self.loop.bytes_in, self.loop.frames_count
        self._records_end = self._records.count + RECORDS_PER_TURN_MAX
        self._silent_end = self._records.count - self._heard_count + SILENT_PER_TURN_MAX
        try:
            # A record at a time: a short read says nothing about what is left.
            while self.loop.bytes_in - received_bytes < RECEIVE_BYTES_PER_TURN:
                # As `wants_input` says it, without its call: once a record.
                if connection.slots or connection.outgoing or connection.is_stopped:
                    break
                window = connection.writable()
                size_bytes = self._receive_into(window)
                if not size_bytes:
                    self._end_of_input()
                    break
                self.last_active_ms = self.loop.now_ms
                self.loop.bytes_in += size_bytes
                self.loop.frames_count += connection.received(window, size_bytes, self.loop.receiver)
        except BlockingIOError:
            pass
        except OSError as error:
            self.loop.close(self, f"receiving failed: {error.strerror or error}")
        except Exception as error:
            self.fail(error)
        self._make_up(self.loop.frames_count - frames_count, self.loop.bytes_in - received_bytes)
        if connection.is_stopped:
            self._after_receiving()
        if connection.is_open:
            self.has_input = bool(self._held or self._incoming.pending or self._tls.pending())
            if self.has_input and connection.wants_input and not self.is_write_blocked:
                self.loop.resume(self)

    def _receive_into(self, window: memoryview) -> int:
        while True:
            try:
                if self._is_handshaken:
                    # With a buffer to read into, the result is a count: typeshed tells it for sockets alone.
                    size_bytes = cast("int", self._tls.read(len(window), window))
                    if size_bytes < len(window) or not self._tls.pending():
                        self._heard_count += 1  # all of a record: it is never read together with the next
                    return size_bytes
                self._shake_hands()
            except ssl.SSLWantReadError:
                if not self._receive_records():
                    # A client that leaves without a word: as on plain TCP, Kafka's framing shows what is missing.
                    return 0
            except ssl.SSLZeroReturnError:
                return 0

    def _receive_records(self) -> bool:
        """Receive what is to be decrypted next; return whether anything came before the end.

        Raises:
            BlockingIOError: Nothing is there, or it is enough for this turn.
            MalformedRequestError: Too much came that was no data.
        """
        count = self._records.count
        silent_count = count - self._heard_count
        if silent_count > self._silent_max:
            raise MalformedRequestError(f"{silent_count} of {count} TLS records were without data")
        room = min(self._records_end - count, self._silent_end - silent_count)
        if room <= 0 or ((self._encrypted.pending or self.has_unsent) and not self._push()):
            raise BlockingIOError
        ciphertext = self._held or self.socket.recv(_CIPHERTEXT_BYTES)
        size_bytes = self._records.take(ciphertext, room)
        if size_bytes < len(ciphertext):
            ciphertext = memoryview(ciphertext)
            self._held = ciphertext[size_bytes:]
            ciphertext = ciphertext[:size_bytes]
        elif self._held:
            self._held = b""
        self._incoming.write(ciphertext)
        return size_bytes > 0

    def _make_up(self, frames_count: int, size_bytes: int) -> None:
        """Allow silent records for what came in a turn."""
        self._heard_bytes += size_bytes
        made_up_for = SILENT_PER_FRAME * frames_count + self._heard_bytes // _RECORD_BYTES
        self._heard_bytes %= _RECORD_BYTES
        silent_count = self._records.count - self._heard_count
        self._silent_max = min(self._silent_max + made_up_for, silent_count + SILENT_RECORDS_MAX)

    def _shake_hands(self) -> None:
        try:
            self._tls.do_handshake()
        except ssl.SSLWantReadError:
            raise
        except ssl.SSLError:
            # The client learns why from the alert.
            with suppress(OSError):
                self._push()
            raise
        self._is_handshaken = True
        self._push()

    def is_expired(self, now_ms: int) -> bool:
        """Return whether the handshake is not done although its time is over."""
        return not self._is_handshaken and now_ms >= self._expires_ms

    def keep(self, now_ms: int) -> None:
        """See `Endpoint.keep`: a handshake that is not done has as much time left as before."""
        self._expires_ms += max(now_ms - self.last_active_ms, 0)
        super().keep(now_ms)

    def _push(self) -> bool:
        """Send encrypted bytes; return whether all are gone."""
        while True:
            if not self._ciphertext:
                if not self._encrypted.pending:
                    self.has_unsent = False
                    return True
                self._ciphertext = memoryview(self._encrypted.read())
            try:
                size_bytes = self.socket.send(self._ciphertext)
            except BlockingIOError:
                self.has_unsent = True
                self._wait_writable()
                return False
            self._ciphertext = self._ciphertext[size_bytes:]
            self.last_active_ms = self.loop.now_ms

    def _send(self, outgoing: list[Outgoing]) -> None:
        budget_bytes = SEND_BYTES_PER_TURN
        while self._push() and outgoing:
            if budget_bytes <= 0:
                self.loop.resume(self)
                return
            if isinstance(outgoing[0], MEMORY):
                size_bytes = self._encrypt_buffers(outgoing)
            else:
                size_bytes = self._encrypt_slice(outgoing)
                if not size_bytes:
                    return
            self.loop.bytes_out += size_bytes
            budget_bytes -= size_bytes

    def _encrypt_buffers(self, outgoing: list[Outgoing]) -> int:
        """Encrypt small answers together: a TLS record each would cost more than the copy."""
        pieces: list[bytes | bytearray | memoryview] = []
        size_bytes = 0
        for item in outgoing:
            if not isinstance(item, MEMORY) or size_bytes >= _PLAINTEXT_BYTES:
                break
            pieces.append(memoryview(item)[: _PLAINTEXT_BYTES - size_bytes])
            size_bytes += len(pieces[-1])
        self._tls.write(pieces[0] if len(pieces) == 1 else b"".join(pieces))
        consume(outgoing, size_bytes)
        return size_bytes

    def _encrypt_slice(self, outgoing: list[Outgoing]) -> int:
        progress = self._next_piece(outgoing)
        if progress is None:
            return 0
        data = read_slice(progress, min(progress.ready_end - progress.position, _PLAINTEXT_BYTES))
        if not data:
            raise OSError("the file is shorter than what was promised of it")
        self._tls.write(data)
        self._advance(outgoing, progress, len(data))
        return len(data)

    def close_socket(self) -> None:
        """Say goodbye if the socket takes it at once, and close."""
        if self._is_handshaken and not self.has_unsent:
            with suppress(OSError, ValueError):
                # It raises "want read" after it has written our farewell: nobody waits for the client's.
                with suppress(ssl.SSLError):
                    self._tls.unwrap()
                self.socket.send(self._encrypted.read())
        super().close_socket()


def tls_endpoint_maker(context: ssl.SSLContext, handshake_timeout_ms: int) -> EndpointMaker:
    """Return what makes TLS endpoints with this context, whose handshake may take that long."""

    def make(connection: Connection, loop: Loop, client: Socket, now_ms: int) -> Endpoint:
        incoming, encrypted = ssl.MemoryBIO(), ssl.MemoryBIO()
        return TlsEndpoint(
            connection,
            loop,
            client,
            now_ms,
            tls=context.wrap_bio(incoming, encrypted, server_side=True),
            incoming=incoming,
            encrypted=encrypted,
            expires_ms=now_ms + handshake_timeout_ms,
        )

    return make

"""A TLS 1.3 client in memory that writes its own records: key updates without end, records of one byte."""

import hashlib
import hmac
import ssl
import struct
from pathlib import Path

from cryptography.hazmat.primitives.ciphers.aead import AESGCM

APPLICATION_DATA = 23
HANDSHAKE = 22
_KEY_UPDATE = b"\x18\0\0\x01"


class RecordClient:
    """Shakes hands as any client does; what it sends afterwards are the records that a test asks for.

    Its secret is taken from the log of keys that `ssl` writes. *Source:* RFC 8446, 4.6.3, 5.2, 7.1 to 7.3.
    """

    def __init__(self, context: ssl.SSLContext, directory: Path) -> None:
        self._log = directory / "keys.log"
        context.minimum_version = ssl.TLSVersion.TLSv1_3
        context.keylog_filename = str(self._log)
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._incoming, self._outgoing, server_hostname="localhost")
        self.is_handshaken = False

    def shake_hands(self, received: bytes) -> bytes:
        """Take what the server sent; return what is to be sent to it."""
        self._incoming.write(received)
        try:
            self._tls.do_handshake()
        except ssl.SSLWantReadError:
            return self._outgoing.read()
        self.is_handshaken = True
        cipher = self._tls.cipher()
        assert cipher is not None
        assert cipher[0] in {"TLS_AES_256_GCM_SHA384", "TLS_AES_128_GCM_SHA256"}
        self._hash = "sha384" if cipher[0].endswith("SHA384") else "sha256"
        self._key_bytes = 32 if "256_GCM" in cipher[0] else 16
        lines = [line.split() for line in self._log.read_text().splitlines()]
        self._set_secret(next(bytes.fromhex(line[2]) for line in lines if line[0] == "CLIENT_TRAFFIC_SECRET_0"))
        return self._outgoing.read()

    def _set_secret(self, secret: bytes) -> None:
        self._secret = secret
        self._key = AESGCM(self._expand(b"key", self._key_bytes))
        self._nonce = int.from_bytes(self._expand(b"iv", 12), "big")
        self._sent = 0

    def _expand(self, label: bytes, size_bytes: int) -> bytes:
        label = b"tls13 " + label
        info = struct.pack(">HB", size_bytes, len(label)) + label + b"\0\x01"
        return hmac.digest(self._secret, info, self._hash)[:size_bytes]

    def record(self, content: bytes, kind: int = APPLICATION_DATA) -> bytes:
        """Return one record."""
        header = struct.pack(">BHH", APPLICATION_DATA, 0x0303, len(content) + 1 + 16)
        nonce = (self._nonce ^ self._sent).to_bytes(12, "big")
        self._sent += 1
        return header + self._key.encrypt(nonce, content + bytes([kind]), header)

    def key_updates(self, count: int, *, asks_for_one: bool = False) -> bytes:
        """Return so many key updates, a record each, that ask the server for one of its own or do not."""
        records = []
        for _ in range(count):
            records.append(self.record(_KEY_UPDATE + bytes([asks_for_one]), HANDSHAKE))
            self._set_secret(self._expand(b"traffic upd", hashlib.new(self._hash).digest_size))
        return b"".join(records)

"""Pure core: SCRAM: proves that one knows a password without showing it, and checks that the broker knows it too.

    client  n,,n=user,r=NONCE
    server  r=NONCE+THEIRS,s=SALT,i=ITERATIONS
    client  c=biws,r=NONCE+THEIRS,p=PROOF
    server  v=SIGNATURE

*Source:* RFC 5802, RFC 7677; KIP-84; `ScramSaslClient`, `ScramFormatter` of Kafka 4.3 (no SASLprep, as there).

.. versionadded:: 0.1
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
from typing import Final

ITERATIONS_MIN: Final = 4_096
ITERATIONS_MAX: Final = 1_000_000
"""More would let a stranger keep this client busy for seconds: Kafka's own limit is 16,384."""
_HEADER: Final = "n,,"


class SaslError(Exception):
    """The broker's answer does not prove what it should, or makes no sense."""


class ScramClient:
    """One log-in; used once, in the order of its methods.

    Args:
        hash_name: `sha256` or `sha512`.
        username: Who.
        password: Their secret.
        nonce: Random text without commas, never used before.
        extensions: Kafka's additions to the first message, `tokenauth` for delegation tokens.
    """

    def __init__(
        self,
        hash_name: str,
        username: str,
        password: str,
        nonce: str,
        extensions: tuple[tuple[str, str], ...] = (),
    ) -> None:
        self._hash_name = hash_name
        self._password = password
        self._nonce = nonce
        name = username.replace("=", "=3D").replace(",", "=2C")
        self._first_bare = ",".join((f"n={name}", f"r={nonce}", *(f"{key}={value}" for key, value in extensions)))
        self._server_signature: bytes | None = None

    def first(self) -> bytes:
        """Return the first message."""
        return (_HEADER + self._first_bare).encode()

    def answer(self, challenge: bytes) -> bytes | None:
        """Return the answer to the broker's message; None after its last one.

        Raises:
            SaslError: The message is malformed, or the broker does not know the password.
        """
        if self._server_signature is None:
            return self._prove(challenge)
        self._check(challenge, self._server_signature)
        return None

    def _prove(self, challenge: bytes) -> bytes:
        fields = _fields(challenge)
        nonce = fields.get("r", "")
        if not nonce.startswith(self._nonce) or nonce == self._nonce:
            raise SaslError("the broker's nonce does not continue ours")
        try:
            salt = base64.b64decode(fields["s"], validate=True)
            iterations = int(fields["i"])
        except (KeyError, ValueError, binascii.Error):
            raise SaslError("the broker's first message lacks salt or iterations") from None
        if not ITERATIONS_MIN <= iterations <= ITERATIONS_MAX:
            raise SaslError(f"{iterations} iterations, outside {ITERATIONS_MIN} to {ITERATIONS_MAX}")
        salted = hashlib.pbkdf2_hmac(self._hash_name, self._password.encode(), salt, iterations)
        client_key = self._hmac(salted, b"Client Key")
        stored_key = hashlib.new(self._hash_name, client_key).digest()
        binding = base64.b64encode(_HEADER.encode()).decode()
        final_bare = f"c={binding},r={nonce}"
        signed = ",".join((self._first_bare, challenge.decode(), final_bare)).encode()
        signature = self._hmac(stored_key, signed)
        proof = bytes(left ^ right for left, right in zip(client_key, signature, strict=True))
        self._server_signature = self._hmac(self._hmac(salted, b"Server Key"), signed)
        return f"{final_bare},p={base64.b64encode(proof).decode()}".encode()

    def _check(self, message: bytes, signature: bytes) -> None:
        fields = _fields(message)
        if "e" in fields:
            raise SaslError(f"the broker says {fields['e']}")
        try:
            theirs = base64.b64decode(fields.get("v", ""), validate=True)
        except binascii.Error:
            theirs = b""
        if not hmac.compare_digest(theirs, signature):
            raise SaslError("the broker could not prove that it knows the password: it may be an impostor")

    def _hmac(self, key: bytes, message: bytes) -> bytes:
        return hmac.new(key, message, self._hash_name).digest()


def _fields(message: bytes) -> dict[str, str]:
    try:
        pairs = [part.partition("=") for part in message.decode().split(",")]
    except UnicodeDecodeError:
        raise SaslError("the broker's message is no text") from None
    return {key: value for key, _, value in pairs}

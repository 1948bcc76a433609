"""Shell: the first words on a connection: which versions the broker speaks, and who we are.

    ApiVersions -> SaslHandshake (names the mechanism) -> SaslAuthenticate (the mechanism's own messages, in turns)

*Source:* KIP-35, KIP-152, KIP-368 (a session may expire), KIP-511; `SaslClientAuthenticator` of Kafka 4.3.

.. versionadded:: 0.1
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

import attrs

from odradek import __version__
from odradek.kernel.errors import ErrorCode, error_code
from odradek.kernel.wire.messages.api_17_sasl_handshake import SaslHandshakeRequest
from odradek.kernel.wire.messages.api_18_api_versions import ApiVersionsRequest
from odradek.kernel.wire.messages.api_36_sasl_authenticate import SaslAuthenticateRequest
from odradek.kernel.wire.registry import API_VERSIONS_KEY
from odradek.kernel.wire.versions import Versions

from .errors import AuthenticationFailedError, UnsupportedVersionError

if TYPE_CHECKING:
    import random

    from odradek.kernel.wire.messages.api_17_sasl_handshake import SaslHandshakeResponse
    from odradek.kernel.wire.messages.api_18_api_versions import ApiVersionsResponse
    from odradek.kernel.wire.messages.api_36_sasl_authenticate import SaslAuthenticateResponse

    from .clock import PausingClock
    from .connection import Connection
    from .settings import ClientSettings, SaslSettings

_SOFTWARE_NAME: Final = "odradek-spark"
_TURNS_MAX: Final = 8
_LIFE_SHARE: Final = 0.85
"""A connection is replaced when this much of its session is over: a broker closes it at the end."""


def greet(
    connection: Connection,
    settings: ClientSettings,
    clock: PausingClock,
    random_source: random.Random,
    *,
    timeout_ms: int,
) -> None:
    """Agree on versions, and log in where the settings say so.

    Args:
        connection: A new one.
        settings: Who we are.
        clock: Time.
        random_source: For a nonce that nobody can foresee.
        timeout_ms: For each answer.

    Raises:
        ConnectionFailedError: The broker closed the connection, or answers nonsense.
        UnsupportedVersionError: It speaks no version of ApiVersions that we do.
        AuthenticationFailedError: It does not accept the credentials.
    """
    _negotiate(connection, timeout_ms)
    if settings.sasl is not None:
        _authenticate(connection, settings.sasl, timeout_ms, clock, random_source)


def _negotiate(connection: Connection, timeout_ms: int) -> None:
    request = ApiVersionsRequest(client_software_name=_SOFTWARE_NAME, client_software_version=__version__)
    version = ApiVersionsRequest.__versions__.highest
    response: ApiVersionsResponse = connection.request(request, timeout_ms=timeout_ms, version=version)
    if response.error_code == ErrorCode.UNSUPPORTED_VERSION:
        known = [item.max_version for item in response.api_keys if item.api_key == API_VERSIONS_KEY]
        version = min(known[0] if known else 0, version)
        response = connection.request(request, timeout_ms=timeout_ms, version=version)
    if response.error_code:
        code = error_code(response.error_code)
        raise UnsupportedVersionError(f"{connection.address} refuses ApiVersions: {code.name}: {code.text}")
    connection.versions = {item.api_key: Versions(item.min_version, item.max_version) for item in response.api_keys}
    connection.features_epoch = response.finalized_features_epoch
    connection.features = {item.name: item.max_version_level for item in response.finalized_features}


def _authenticate(
    connection: Connection, sasl: SaslSettings, timeout_ms: int, clock: PausingClock, random_source: random.Random
) -> None:
    from .sasl import SaslError, new_mechanism  # who shows no credentials does not load it

    handshake: SaslHandshakeResponse = connection.request(
        SaslHandshakeRequest(mechanism=sasl.mechanism), timeout_ms=timeout_ms
    )
    if handshake.error_code:
        raise AuthenticationFailedError(
            f"{connection.address} refuses sasl.mechanism={sasl.mechanism}: {error_code(handshake.error_code).name}; "
            f"it takes {', '.join(handshake.mechanisms) or 'none'}"
        )
    if sasl.token_path is not None:
        sasl = attrs.evolve(sasl, token=_read_token(sasl.token_path))
    try:
        mechanism = new_mechanism(sasl, now_ms=clock.now_ms(), random_source=random_source)
        message = mechanism.first()
        for _ in range(_TURNS_MAX):
            response: SaslAuthenticateResponse = connection.request(
                SaslAuthenticateRequest(auth_bytes=message), timeout_ms=timeout_ms
            )
            if response.error_code:
                code = error_code(response.error_code)
                raise AuthenticationFailedError(
                    f"{connection.address} does not accept the credentials ({sasl.mechanism}): {code.name}: "
                    f"{response.error_message or code.text}"
                )
            answer = mechanism.answer(bytes(response.auth_bytes))
            if answer is None:
                if response.session_lifetime_ms > 0:
                    life_ms = response.session_lifetime_ms * _LIFE_SHARE
                    connection.retire_at_ms = clock.monotonic_ms() + life_ms
                return
            message = answer
    except SaslError as error:
        raise AuthenticationFailedError(f"{connection.address} ({sasl.mechanism}): {error}") from None
    raise AuthenticationFailedError(f"{connection.address} ({sasl.mechanism}): no end after {_TURNS_MAX} messages")


def _read_token(path: str) -> str:
    """Return the token that a file holds at this moment: somebody else renews it."""
    try:
        return Path(path).read_text(encoding="ascii").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise AuthenticationFailedError(
            f"sasl.oauthbearer.token.endpoint.url: the token in {path} cannot be read: {error}"
        ) from None

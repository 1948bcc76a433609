"""Pure core: what a question to a broker raises when no answer to it came, whoever asked.

.. versionadded:: 0.1
"""

from __future__ import annotations

from ..errors import OdradekError


class ClientError(OdradekError):
    """Root of what a client's calls raise, but for `ConfigError`.

    Attributes:
        retriable: Whether the same call may succeed later.
    """

    retriable: bool = False


class ConnectionFailedError(ClientError):
    """There is no connection, or it broke before the answer came: whether the request was done is unknown."""

    retriable = True


class NotABrokerError(ConnectionFailedError):
    """Who answers there is no Kafka broker, or one that speaks TLS where this client does not, or the other way round.

    .. versionadded:: 0.1
    """


class NobodyListensError(ConnectionFailedError):
    """The broker's machine says that nobody listens there: whoever did has ended. A time-out does not say that.

    .. versionadded:: 0.1
    """


class RequestTimeoutError(ConnectionFailedError):
    """No answer came within `request.timeout.ms`; the connection was closed, as Kafka's clients do."""


class UnsupportedVersionError(ClientError):
    """Client and broker share no version of an API, or the broker has no such API."""

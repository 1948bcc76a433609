"""Shell: the driver's first words with a cluster: what stands in the way is told by the option that the user gave.

Tasks are more patient: where the driver has reached the cluster, a broker that is gone will come back.

.. versionadded:: 0.1
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from odradek.kernel.errors import ConfigError

from .client.cache import client_for
from .client.errors import ConnectionFailedError
from .errors import OptionError

if TYPE_CHECKING:
    from .client import Client
    from .client.settings import ClientSettings

_BOOTSTRAP: Final = "kafka.bootstrap.servers"


def first_client(settings: ClientSettings) -> Client:
    """Return this process's client, which has reached the cluster; leave it open.

    Raises:
        OptionError: A file that an option names cannot be used.
        ConnectionFailedError: Every bootstrap server refuses; this takes seconds, not `default.api.timeout.ms`.
        ClientError: A broker refuses.
    """
    try:
        client = client_for(settings)
    except ConfigError as error:
        option = f"kafka.{error.where}"
        raise OptionError(option, f"option '{option}': {error.message} ({error.hint})") from None
    try:
        client.meet()
    except ConnectionFailedError as error:
        raise ConnectionFailedError(f"option '{_BOOTSTRAP}': {error}") from None
    return client

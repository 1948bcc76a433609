"""Shell: certificates for a test: an authority, a server's for this machine, and a client's, as PEM files.

They are made anew in a few milliseconds; their keys protect nothing. The `testing` extra has what it takes, trustme.

.. versionadded:: 0.1
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import attrs

from odradek.kernel.errors import ConfigError

if TYPE_CHECKING:
    from pathlib import Path

HOSTS: Final = ("localhost", "127.0.0.1", "::1")


@attrs.frozen
class Certificates:
    """Where the PEM files are.

    Attributes:
        authority: The certificate of who signed the others: what a client trusts (`ssl.ca.location`, `cafile`).
        server: Key and certificate of a server on this machine.
        client: Key and certificate of a client, for brokers that ask for one (`ssl.client.auth`).
    """

    authority: Path
    server: Path
    client: Path

    @property
    def broker_settings(self) -> dict[str, str]:
        """The settings of a broker that shows the server's certificate and knows the client's."""
        return {
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": str(self.server),
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(self.authority),
        }


def make_certificates(folder: Path) -> Certificates:
    """Make new ones in a folder that is there.

    Raises:
        ConfigError: trustme is not installed.
    """
    try:
        import trustme
    except ImportError as error:
        raise ConfigError("certificates for a test need trustme", hint="pip install trustme") from error
    authority = trustme.CA()
    made = Certificates(*(folder / f"{name}.pem" for name in ("authority", "server", "client")))
    authority.cert_pem.write_to_path(made.authority)
    authority.issue_cert(*HOSTS).private_key_and_cert_chain_pem.write_to_path(made.server)
    authority.issue_cert("client.example").private_key_and_cert_chain_pem.write_to_path(made.client)
    return made

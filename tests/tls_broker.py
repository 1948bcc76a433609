"""A broker that speaks TLS and asks for certificates, and a client that it knows."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

import attrs
import trustme

from odradek.testing.running_broker import running_broker

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@attrs.frozen
class Secured:
    """Where the broker is, and the PEM files of the client.

    Attributes:
        bootstrap: Its address.
        authority: Who signed both certificates.
        client: Key and certificate.
    """

    bootstrap: str
    authority: str
    client: str


@contextmanager
def secured_broker(folder: Path, **more: str) -> Iterator[Secured]:
    """Run such a broker, with more settings; its certificates go to `folder`."""
    authority = trustme.CA()
    files = {name: folder / f"{name}.pem" for name in ("authority", "server", "client")}
    authority.cert_pem.write_to_path(files["authority"])
    authority.issue_cert("localhost").private_key_and_cert_chain_pem.write_to_path(files["server"])
    authority.issue_cert("client.example").private_key_and_cert_chain_pem.write_to_path(files["client"])
    settings = {
        "listeners": "SSL://localhost:0",
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": files["server"],
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": files["authority"],
        "ssl.client.auth": "required",
        **{name.replace("_", "."): value for name, value in more.items()},
    }
    with running_broker(settings) as broker:
        yield Secured(broker.bootstrap, str(files["authority"]), str(files["client"]))

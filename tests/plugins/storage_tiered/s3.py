"""The S3 server of the tests: one for each process that runs tests, a bucket for each that asks."""

from __future__ import annotations

import itertools
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import attrs

from odradek.plugins.storage_tiered.store_settings import StoreSettings
from tests.interop.clients import skip_or_fail
from tools.s3_server import ACCESS_KEY, SECRET_KEY, ServerMissingError, build, environment, serving

if TYPE_CHECKING:
    from collections.abc import Iterator

_numbers = itertools.count()


@attrs.frozen
class S3Server:
    """A server that runs.

    Attributes:
        folder: Its buckets are the folders in it.
        port: Where it listens, on loopback.
    """

    folder: Path
    port: int

    @property
    def environment(self) -> dict[str, str]:
        """The environment variables by which clients find it."""
        return environment(self.port)

    @property
    def settings(self) -> StoreSettings:
        """How our own plugin reaches it without environment variables."""
        return StoreSettings(
            options={
                "access_key_id": ACCESS_KEY,
                "secret_access_key": SECRET_KEY,
                "endpoint": f"http://127.0.0.1:{self.port}",
                "region": "us-east-1",
                "allow_http": "true",
            }
        )

    def new_bucket(self) -> str:
        """Make a bucket that is empty, and return its name."""
        name = f"bucket-{next(_numbers)}"
        (self.folder / name).mkdir()
        return name


@contextmanager
def s3_server() -> Iterator[S3Server]:
    """Run a server; where it cannot be had, the test is skipped, and fails where CI is true."""
    try:
        build()
    except ServerMissingError as exc:
        skip_or_fail(str(exc))
    with TemporaryDirectory() as folder, serving(Path(folder)) as port:
        yield S3Server(Path(folder), port)

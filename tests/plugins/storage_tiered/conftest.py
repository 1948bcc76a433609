"""Fixtures of this room."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.plugins.storage_tiered.s3 import S3Server, s3_server

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="session")
def s3() -> Iterator[S3Server]:
    """A real S3 server."""
    with s3_server() as server:
        yield server

from collections.abc import Callable
from pathlib import Path

import pytest


@pytest.fixture
def golden_bytes() -> Callable[[str], bytes]:
    """Reads a file of `golden/`: hexadecimal, with lines of origin that begin with #."""

    def read(name: str) -> bytes:
        lines = (Path(__file__).parent / "golden" / f"{name}.hex").read_text().splitlines()
        return bytes.fromhex("".join(line for line in lines if not line.startswith("#")))

    return read

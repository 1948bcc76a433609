from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from .hosted import Hosted


@pytest.fixture
def golden_bytes() -> Callable[[str], bytes]:
    """Reads a file of `golden/`: hexadecimal, with lines of origin that begin with #."""

    def read(name: str) -> bytes:
        lines = (Path(__file__).parent / "golden" / f"{name}.hex").read_text().splitlines()
        return bytes.fromhex("".join(line for line in lines if not line.startswith("#")))

    return read


@pytest.fixture
def hosted(tmp_path: Path) -> Iterator[Hosted]:
    hosted = Hosted(tmp_path)
    yield hosted
    hosted.lifecycle.close()

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.partitions.hosted import Hosted


@pytest.fixture
def hosted(tmp_path: Path) -> Iterator[Hosted]:
    hosted = Hosted(tmp_path)
    yield hosted
    hosted.lifecycle.close()

"""The fixtures as somebody else's tests get them; settings of the session's broker."""

from __future__ import annotations

# -- snippet settings --
import pytest


@pytest.fixture(scope="session")
def odradek_settings() -> dict[str, object]:
    return {"num.partitions": 2, "auto.create.topics.enable": True}


# -- end of the snippet --

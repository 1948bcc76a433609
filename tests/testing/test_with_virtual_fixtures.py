"""The fixtures of one module with a time that can be advanced."""

# -- snippet virtual --
import pytest

from odradek.testing.running_broker import RunningBroker


@pytest.fixture(scope="session")
def odradek_virtual_time() -> bool:
    return True


def test_a_day_passes(fresh_odradek_broker: RunningBroker) -> None:
    before_ms = fresh_odradek_broker.now_ms()
    fresh_odradek_broker.advance("1d")

    assert fresh_odradek_broker.now_ms() - before_ms >= 86_400_000


# -- end of the snippet --

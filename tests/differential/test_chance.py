"""Sessions by chance, held with two of our own brokers: what they are to find, and that they find nothing else.

`python -m tools.compare_by_chance` holds them with Apache Kafka.
"""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING

import pytest

from . import brokers, codec
from .chance.draws import Draws
from .chance.lockstep import hold
from .chance.themes import THEMES, TIMED
from .chance.world import Kind, Reference, World

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .chance.lockstep import Address

STRICTER = "message.max.bytes=120"
"""What the third broker refuses: batches of more than a few bytes."""
MESSAGE_TOO_LARGE = 10


@pytest.fixture(scope="module")
def addresses(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[Address]]:
    """Two brokers that are alike, and one that is stricter."""
    folders = [tmp_path_factory.mktemp(name) / "data" for name in ("one", "two", "three")]
    with (
        brokers.odradek(folders[0]) as one,
        brokers.odradek(folders[1]) as two,
        brokers.odradek(folders[2], STRICTER) as three,
    ):
        yield [one, two, three]


@pytest.mark.parametrize("theme", [theme for theme in THEMES if theme not in TIMED])
def test_two_brokers_that_are_alike_answer_alike(theme: str, addresses: list[Address]) -> None:
    for seed in range(3):
        assert hold(theme, seed, addresses[:2], []) is None


def test_a_difference_is_found_and_told(addresses: list[Address]) -> None:
    findings = [hold("data", seed, addresses[::2], [], run="x") for seed in range(6)]
    found = next(finding for finding in findings if finding is not None)

    assert found.steps[0].api == "Produce"
    assert MESSAGE_TOO_LARGE in {difference.ours for difference in found.differences}


def test_a_request_by_chance_names_what_each_broker_drew() -> None:
    one, two = World(), World()
    for number, world in enumerate((one, two)):
        world.learn("InitProducerId", {"error_code": 0, "producer_id": 7 + number})

    drawn = {"producer_id": Reference(Kind.PRODUCER_ID, 0), "epochs": [0, 1]}

    assert one.resolve(drawn) == {"producer_id": 7, "epochs": [0, 1]}
    assert two.resolve(drawn) == {"producer_id": 8, "epochs": [0, 1]}


@pytest.mark.parametrize("theme", THEMES)
def test_what_is_drawn_can_be_sent_and_is_the_same_each_time(theme: str) -> None:
    def draw() -> list[bytes]:
        draws = Draws(Random(theme), "s", World())
        requests = [draws.request(THEMES[theme], in_fetch_sessions=False) for _ in range(300)]
        return [codec.encode_request(api, version, World().resolve(fields)) for api, version, fields in requests]

    assert draw() == draw()

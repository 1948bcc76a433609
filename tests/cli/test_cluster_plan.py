"""What each broker of `odradek serve --brokers N` is started with."""

from __future__ import annotations

from itertools import count
from pathlib import PurePath

import pytest

from odradek.cli.cluster_plan import BrokerPlan, plan_brokers
from odradek.kernel.errors import ConfigError

FREE = count(40_000)


def planned(
    number: int = 3, listen: tuple[str, ...] = (), options: tuple[str, ...] = (), voters: int = 1
) -> list[BrokerPlan]:
    return plan_brokers(
        number,
        listen=listen,
        data_dir=PurePath("data"),
        options=options,
        free_port=lambda _host: next(FREE),
        voters=voters,
    )


def test_ports_and_directories_follow_and_the_first_is_the_controller() -> None:
    first, second, third = planned()

    assert first.options == (
        "node.id=1",
        "process.roles=broker,controller",
        "listeners=PLAINTEXT://127.0.0.1:9092,CONTROLLER://127.0.0.1:9095",
        "controller.quorum.voters=1@127.0.0.1:9095",
        "controller.listener.names=CONTROLLER",
    )
    assert "listeners=PLAINTEXT://127.0.0.1:9093" in second.options
    assert "process.roles=broker" in third.options
    assert [each.data_dir for each in (first, second, third)] == [
        PurePath("data/1"),
        PurePath("data/2"),
        PurePath("data/3"),
    ]


def test_the_first_ones_keep_the_metadata_together_and_end_last_one_after_the_other() -> None:
    plans = planned(4, voters=3)
    voters = "controller.quorum.voters=1@127.0.0.1:9096,2@127.0.0.1:9097,3@127.0.0.1:9098"

    assert all(voters in plan.options for plan in plans)
    assert "listeners=PLAINTEXT://127.0.0.1:9093,CONTROLLER://127.0.0.1:9097" in plans[1].options
    assert [plan.options[1] for plan in plans] == [*["process.roles=broker,controller"] * 3, "process.roles=broker"]
    assert [plan.turn for plan in plans] == [3, 2, 1, 0]
    assert [plan.turn for plan in planned()] == [1, 0, 0]


def test_with_port_0_each_has_a_free_one() -> None:
    plans = planned(2, ("[::1]:0",))
    ports = {option.rpartition(":")[2] for plan in plans for option in plan.options if option.startswith("listeners=")}

    assert len(ports) == 2
    assert all("PLAINTEXT://[::1]:4" in " ".join(plan.options) for plan in plans)


def test_settings_are_for_all_and_the_port_of_pages_is_counted_up() -> None:
    plans = planned(2, options=("num.partitions=4", "odradek.http.listener=127.0.0.1:8080"))

    assert all("num.partitions=4" in plan.options for plan in plans)
    assert "odradek.http.listener=127.0.0.1:8081" in plans[1].options


@pytest.mark.parametrize(
    ("number", "listen", "options", "what"),
    [
        (65, (), (), "expected 1 to 64 brokers"),
        (2, ("h:1", "h:5"), (), "one listener each"),
        (2, ("h",), (), "expected HOST:PORT"),
        (2, (":9092",), (), "brokers tell each other this address"),
        (2, ("h:65534",), (), "there are not 2 ports after 65534"),
        (2, (), ("node.id=4",), "node.id is set by --brokers for each broker"),
    ],
)
def test_what_cannot_be_for_all_is_refused(
    number: int, listen: tuple[str, ...], options: tuple[str, ...], what: str
) -> None:
    with pytest.raises(ConfigError) as refusal:
        planned(number, listen, options)

    assert what in refusal.value.message

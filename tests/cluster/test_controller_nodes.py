"""Whom a node's channels ask: the active controller once it is known, until then one address after the other."""

from __future__ import annotations

from odradek.kernel.cluster.controller_nodes import NOBODY, ControllerNodes, ControllerRoute
from odradek.kernel.config.roles import ControllerAddress

ONE, TWO, THREE, FOUR = (ControllerAddress(f"broker-{node_id}", 9093) for node_id in (1, 2, 3, 4))
VOTERS = {1: ONE, 2: TWO, 3: THREE}


class Channel:
    """What has a route; notes where it was sent."""

    def __init__(self, nodes: ControllerNodes) -> None:
        self.moves: list[ControllerAddress | None] = []
        self.route = ControllerRoute(nodes, lambda: self.moves.append(self.route.address()))


def test_addresses_are_what_the_log_names_and_what_is_configured_each_once() -> None:
    nodes = ControllerNodes((ONE, FOUR), VOTERS)
    nodes.know_voters({2: TWO})

    assert nodes.addresses() == (TWO, ONE, THREE, FOUR)
    assert str(nodes) == "broker-2:9093, broker-1:9093, broker-3:9093, broker-4:9093"


def test_a_leader_of_a_larger_epoch_is_news_and_an_older_one_is_passed_over() -> None:
    nodes = ControllerNodes((), VOTERS)

    assert nodes.learn(2, 5)
    assert not nodes.learn(3, 4)
    assert not nodes.learn(2, 5)
    assert (nodes.leader_id, nodes.leader_epoch, nodes.leader_address()) == (2, 5, TWO)
    assert nodes.learn(NOBODY, 6), "an election has begun"
    assert nodes.leader_address() is None
    assert nodes.learn(3, 6), "and ended"
    assert nodes.leader_address() == THREE


def test_an_epoch_has_one_leader() -> None:
    nodes = ControllerNodes((), VOTERS)
    nodes.learn(2, 5)

    assert not nodes.learn(3, 5)
    assert not nodes.learn(NOBODY, 5)
    assert nodes.leader_id == 2


def test_where_a_leader_is_that_no_configuration_names_is_told_with_it() -> None:
    nodes = ControllerNodes((ONE,))
    nodes.learn(4, 5, {4: FOUR})

    assert nodes.leader_address() == FOUR
    assert nodes.addresses() == (ONE, FOUR)
    nodes.learn(3, 6)
    assert nodes.leader_address() is None
    assert nodes.addresses() == (ONE,)


def test_what_the_log_says_of_a_voters_address_counts_more_than_what_is_configured_or_told() -> None:
    nodes = ControllerNodes((), VOTERS)
    nodes.know_voters({1: FOUR})
    nodes.learn(1, 5, {1: ONE})

    assert nodes.leader_address() == FOUR


def test_a_leader_whose_address_changes_is_news() -> None:
    nodes = ControllerNodes((), VOTERS)
    channel = Channel(nodes)
    nodes.learn(1, 5)
    nodes.know_voters({1: FOUR, 2: TWO})

    assert channel.moves == [ONE, FOUR]


def test_a_route_goes_round_once_and_rests() -> None:
    route = Channel(ControllerNodes((), VOTERS)).route
    seen = []
    for _ in range(4):
        address = route.address()
        assert address is not None
        route.failed(address)
        seen.append((address, route.is_round_over))

    assert seen == [(ONE, False), (TWO, False), (THREE, True), (ONE, False)]


def test_a_route_begins_again_at_the_leader() -> None:
    nodes = ControllerNodes((), VOTERS)
    route = Channel(nodes).route
    nodes.learn(2, 5)
    for address in (TWO, THREE, ONE):
        assert route.address() == address
        route.failed(address)

    assert route.is_round_over
    assert route.address() == TWO


def test_what_failed_elsewhere_or_before_says_nothing_of_the_address_that_is_asked() -> None:
    route = Channel(ControllerNodes((), VOTERS)).route
    assert route.address() == ONE
    route.failed(TWO)
    route.failed(None)

    assert route.address() == ONE
    assert route.is_round_over


def test_all_others_are_tried_again_once_one_has_answered() -> None:
    route = Channel(ControllerNodes((), VOTERS)).route
    route.failed(route.address())
    route.failed(route.address())
    assert route.address() == THREE
    route.answered(THREE)
    route.failed(THREE)

    assert route.address() == ONE
    assert not route.is_round_over


def test_all_channels_go_where_another_controller_leads_and_only_then() -> None:
    nodes = ControllerNodes((), VOTERS)
    first, second = Channel(nodes), Channel(nodes)
    first.route.failed(first.route.address())
    assert first.route.address() == TWO
    nodes.learn(2, 5)
    assert second.moves == [TWO]
    assert first.moves == [], "it was there already"
    nodes.learn(NOBODY, 6)
    assert second.moves == [TWO], "nobody knows whom to ask instead"
    nodes.learn(3, 6)

    assert (first.moves, second.moves) == ([THREE], [TWO, THREE])


def test_a_node_that_knows_no_controller_has_no_address() -> None:
    nodes = ControllerNodes()

    assert Channel(nodes).route.address() is None
    assert str(nodes) == "nowhere"


def test_who_asks_is_not_asked_also_while_it_leads() -> None:
    nodes = ControllerNodes((FOUR,), VOTERS)
    route = ControllerRoute(nodes, lambda: None, but=2)
    nodes.learn(2, 5)
    asked = []
    for _ in range(4):
        asked.append(route.address())
        route.failed(asked[-1])

    assert asked == [ONE, THREE, FOUR, ONE]

"""What a node is: broker, controller or both, and what does not fit together."""

from __future__ import annotations

import pytest

from odradek.kernel.config.broker import BrokerConfig, Setting
from odradek.kernel.config.checks import check_together
from odradek.kernel.config.listeners import inter_broker_listener, parse_controller_listeners, parse_listeners
from odradek.kernel.config.registry import builtin_registry
from odradek.kernel.config.roles import metadata_election, parse_roles, takes_id
from odradek.kernel.errors import ConfigError

CLIENTS = "PLAINTEXT://127.0.0.1:9092"
BOTH = f"{CLIENTS},CONTROLLER://127.0.0.1:9093"
OF_CONTROLLER = {"controller_listener_names": "CONTROLLER", "controller_quorum_voters": "1@127.0.0.1:9093"}


def config(**keys: str) -> BrokerConfig:
    static = {name.replace("_", "."): Setting(text, "file, line 1") for name, text in keys.items()}
    return BrokerConfig(builtin_registry(), static)


def test_a_broker_without_voters_is_its_own_controller_and_serves_it_to_nobody() -> None:
    alone = config(listeners=BOTH, controller_listener_names="CONTROLLER")
    roles = parse_roles(alone)
    check_together(alone)

    assert (roles.is_broker, roles.is_controller, roles.controller) == (True, True, None)
    assert not roles.serves_controller
    assert parse_controller_listeners(alone) == []


def test_the_voter_serves_its_controller_beside_its_clients() -> None:
    voter = config(listeners=BOTH, **OF_CONTROLLER)
    check_together(voter)

    assert parse_roles(voter).serves_controller
    assert [str(listener) for listener in parse_listeners(voter)] == [CLIENTS]
    assert [str(listener) for listener in parse_controller_listeners(voter)] == ["CONTROLLER://127.0.0.1:9093"]


def test_another_broker_knows_where_the_controller_is() -> None:
    broker = config(process_roles="broker", node_id="2", listeners=CLIENTS, **OF_CONTROLLER)
    check_together(broker)

    assert str(parse_roles(broker).controller) == "127.0.0.1:9093"
    assert not parse_roles(broker).serves_controller


def test_a_broker_that_is_no_controller_may_have_no_id_and_takes_one_that_is_free() -> None:
    broker = {"process_roles": "broker", "listeners": CLIENTS, **OF_CONTROLLER}
    check_together(config(**broker))

    assert takes_id(config(**broker))
    assert not takes_id(config(**broker, node_id="2"))
    assert not takes_id(config(**broker, broker_id_generation_enable="false"))
    assert not takes_id(config(listeners=BOTH, **OF_CONTROLLER))


def test_a_node_may_be_a_controller_and_no_broker() -> None:
    node = config(process_roles="controller", listeners="CONTROLLER://127.0.0.1:9093", **OF_CONTROLLER)
    check_together(node)

    assert parse_listeners(node) == []
    assert len(parse_controller_listeners(node)) == 1


def test_bootstrap_servers_stand_for_voters() -> None:
    broker = config(
        process_roles="broker",
        node_id="2",
        controller_listener_names="CONTROLLER",
        controller_quorum_bootstrap_servers="[::1]:9093",
    )

    assert str(parse_roles(broker).controller) == "[::1]:9093"


def test_several_voters_are_known_by_their_ids_and_found_in_their_order() -> None:
    roles = parse_roles(config(node_id="2", controller_quorum_voters="3@c:3,2@[::1]:2,1@a:1"))

    assert {voter: str(address) for voter, address in roles.voters.items()} == {3: "c:3", 2: "[::1]:2", 1: "a:1"}
    assert list(map(str, roles.controllers)) == ["c:3", "[::1]:2", "a:1"]
    assert roles.names_several
    assert roles.serves_controller


def test_several_controllers_are_found_at_bootstrap_servers_each_once() -> None:
    both = {"controller_quorum_voters": "1@a:1", "controller_quorum_bootstrap_servers": "b:2,a:1"}
    roles = parse_roles(config(node_id="2", controller_quorum_bootstrap_servers="b:2,a:1,b:2"))

    assert (dict(roles.voters), list(map(str, roles.controllers))) == ({}, ["b:2", "a:1"])
    assert roles.names_several
    assert roles.serves_controller
    assert list(map(str, parse_roles(config(**both)).controllers)) == ["a:1", "b:2"]
    assert not parse_roles(config(**both)).names_several


def test_voters_vote_for_who_leads_the_metadata_log_unless_somebody_says_otherwise() -> None:
    one, three = config(**OF_CONTROLLER), config(controller_quorum_voters="1@a:1,2@b:2,3@c:3")
    chosen = config(controller_quorum_voters="1@a:1,2@b:2", odradek_metadata_election="lots")

    assert [metadata_election(each) for each in (config(), one, three, chosen)] == ["isr", "isr", "quorum", "lots"]
    assert metadata_election(one, is_founded=True) == "quorum"


@pytest.mark.parametrize(
    ("keys", "what"),
    [
        ({"process_roles": "broker"}, "process.roles=broker needs to know the controller"),
        ({"process_roles": "broker", "node_id": "1", **OF_CONTROLLER}, "node.id 1 is the voter"),
        (
            {"process_roles": "broker", "broker_id_generation_enable": "false", **OF_CONTROLLER},
            "node.id 1 is the voter",
        ),
        ({"node_id": "2", **OF_CONTROLLER}, "node.id 2 is not the voter"),
        ({"node_id": "3", "controller_quorum_voters": "1@a:1,2@b:2"}, "node.id 3 is none of the voters"),
        (
            {"process_roles": "broker", "node_id": "2", "controller_quorum_voters": "1@a:1,2@b:2"},
            "node.id 2 is a voter of controller.quorum.voters, and process.roles has no controller",
        ),
        ({"controller_quorum_voters": "1@a:1,1@b:2"}, "has voter 1 twice"),
        ({"controller_quorum_voters": "1@127.0.0.1:9093"}, "controller.listener.names must contain at least one value"),
        ({"listeners": CLIENTS, **OF_CONTROLLER}, "at least one value appearing in listeners"),
        (
            {"process_roles": "broker", "node_id": "2", "listeners": BOTH, **OF_CONTROLLER},
            "must not contain a value appearing in listeners",
        ),
        ({"process_roles": "controller", "listeners": BOTH, **OF_CONTROLLER}, "and listeners has PLAINTEXT"),
        ({"broker_session_timeout_ms": "3000"}, "must be less than or equal to half of broker.session.timeout.ms"),
    ],
)
def test_what_does_not_fit_together_is_refused(keys: dict[str, str], what: str) -> None:
    with pytest.raises(ConfigError) as refusal:
        check_together(config(**keys))

    assert what in refusal.value.message


def test_brokers_reach_each_other_by_the_listener_that_is_named() -> None:
    listeners = "OUTER://h:1,PLAINTEXT://h:2"
    protocols = "OUTER:PLAINTEXT,PLAINTEXT:PLAINTEXT"
    named = config(listeners=listeners, listener_security_protocol_map=protocols, inter_broker_listener_name="OUTER")

    assert inter_broker_listener(named) == "OUTER"
    assert inter_broker_listener(config(listeners=listeners, listener_security_protocol_map=protocols)) == "PLAINTEXT"
    assert inter_broker_listener(config(listeners="A://h:1", listener_security_protocol_map="A:PLAINTEXT")) == "A"

"""`odradek cluster quorum`, `add-controller`, `remove-controller`: what people read, and what is asked of a cluster."""

from __future__ import annotations

import json
import uuid
from types import SimpleNamespace
from typing import Any

import pytest
import trio

from odradek.cli import cluster_quorum
from odradek.client.admin_values import QuorumDescription, QuorumReplica
from odradek.client.errors import BrokerError
from odradek.kernel.types import id_text

from .conftest import Odradek

ONE, TWO, NINE = (uuid.UUID(int=number) for number in (1, 2, 9))
LISTENERS = (("INNER", "one", 9093),)


class FakeAdmin:
    """A cluster of two voters, which node 1 leads, with two observers; notes what is asked of it."""

    def __init__(self) -> None:
        self.asked: list[Any] = []

    async def describe_quorum(self) -> QuorumDescription:
        voters = (
            QuorumReplica(1, ONE, 100, 5000, 5000, LISTENERS),
            QuorumReplica(2, TWO, 97, 4880, 4000, (("INNER", "two", 9094),)),
        )
        observers = (QuorumReplica(9, NINE, 100, 4990, 4990), QuorumReplica(8, uuid.UUID(int=0), 50, 4000))
        return QuorumDescription(1, 7, 98, voters, observers)

    async def add_raft_voter(self, *arguments: Any) -> None:
        self.asked.append(arguments)

    async def remove_raft_voter(self, *arguments: Any) -> None:
        self.asked.append(arguments)


def done(action: str, **arguments: Any) -> list[Any]:
    """Do an action, and return what was asked of the cluster."""
    admin = FakeAdmin()
    calls: Any = SimpleNamespace(admin=admin)
    work = {"quorum": cluster_quorum._quorum, "add": cluster_quorum._add, "remove": cluster_quorum._remove}
    chosen: Any = SimpleNamespace(**{"json": False, "directory_id": None, "listener": None, **arguments})
    trio.run(work[action], chosen, calls)
    return admin.asked


def test_the_quorum_is_shown_with_who_leads_and_how_far_each_is(capsys: pytest.CaptureFixture[str]) -> None:
    done("quorum")
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]

    assert lines[0] == ["leader", "1", "in", "epoch", "7,", "high", "watermark", "98"]
    assert lines[3] == ["1", "leader", "one:9093", "100", "0", "0", "ms", "ago", "0", "ms", "ago", id_text(ONE)]
    assert lines[4] == ["2", "voter", "two:9094", "97", "3", "120", "ms", "ago", "1000", "ms", "ago", id_text(TWO)]
    assert lines[5] == ["9", "observer", "-", "100", "0", "10", "ms", "ago", "10", "ms", "ago", id_text(NINE)]
    assert lines[6] == ["8", "observer", "-", "50", "50", "1000", "ms", "ago", "-", "-"]


def test_the_quorum_is_told_to_scripts(capsys: pytest.CaptureFixture[str]) -> None:
    done("quorum", json=True)
    told = json.loads(capsys.readouterr().out)

    assert (told["leader"], told["epoch"], told["high_watermark"]) == (1, 7, 98)
    assert [(each["id"], each["lag"], each["directory_id"]) for each in told["voters"]] == [
        (1, 0, id_text(ONE)),
        (2, 3, id_text(TWO)),
    ]
    assert told["voters"][1]["listeners"] == [{"name": "INNER", "host": "two", "port": 9094}]
    assert [(each["id"], each["directory_id"], each["last_caught_up_ms"]) for each in told["observers"]] == [
        (9, id_text(NINE), 4990),
        (8, None, -1),
    ]


def test_a_controller_that_observes_gets_a_vote_by_the_directory_and_the_listener_that_are_known() -> None:
    assert done("add", id=9, address=("nine", 9093)) == [(9, NINE, [("INNER", "nine", 9093)])]


def test_a_directory_and_a_listener_that_are_named_count() -> None:
    asked = done("add", id=9, address=("nine", 9093), directory_id=TWO, listener="OTHER")

    assert asked == [(9, TWO, [("OTHER", "nine", 9093)])]


def test_a_voter_is_removed_by_the_directory_that_is_known() -> None:
    assert done("remove", id=2) == [(2, TWO)]


@pytest.mark.parametrize(
    ("action", "arguments", "told"),
    [
        ("add", {"id": 4, "address": ("four", 1)}, "controller 4 is none of the observers: does it run?"),
        ("add", {"id": 8, "address": ("eight", 1)}, "controller 8 is none of the observers"),
        ("remove", {"id": 9}, "controller 9 is none of the voters that are known by their directories"),
    ],
)
def test_who_is_not_there_is_told_with_what_to_do(action: str, arguments: dict[str, Any], told: str) -> None:
    with pytest.raises(BrokerError, match="VOTER_NOT_FOUND") as refusal:
        done(action, **arguments)

    assert told in str(refusal.value)


@pytest.mark.parametrize(
    "words",
    [
        ("add-controller", "4"),
        ("add-controller", "four", "four:9093"),
        ("add-controller", "4", "four"),
        ("add-controller", "4", "four:99999"),
        ("remove-controller", "4", "--directory-id", "short"),
    ],
    ids=" ".join,
)
def test_what_names_no_controller_is_refused(odradek: Odradek, words: tuple[str, ...]) -> None:
    assert odradek("cluster", *words).status == 2


def test_a_broker_alone_tells_of_itself_and_that_its_voters_are_fixed(odradek: Odradek) -> None:
    told = odradek.ok("cluster", "quorum", "--json").json
    identifier = told["voters"][0]["directory_id"]
    refused = odradek("cluster", "add-controller", "4", "four:9093", "--directory-id", identifier)

    assert ([each["id"] for each in told["voters"]], told["leader"]) == ([1], 1)
    assert refused.status == 1
    assert "kraft.version feature is 0" in refused.err

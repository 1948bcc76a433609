"""What an operator is told of a node that cannot follow the metadata log: little of elections, all of what is wrong."""

from __future__ import annotations

import logging

from odradek.kernel.cluster.interruption import PATIENCE_MS, Interruption
from odradek.kernel.errors import CorruptionError, ErrorCode, KafkaError
from odradek.kernel.peers.errors import ConnectionFailedError

BROKEN = ConnectionFailedError("broker-1:9093 closed the connection")
NOT_LEADER = KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER, "controller 2")


def test_an_election_is_told_once_and_as_a_warning_when_it_lasts() -> None:
    interruption = Interruption()
    levels = [interruption.note(BROKEN, 1000), interruption.note(NOT_LEADER, 1020), interruption.note(BROKEN, 2000)]
    levels += [interruption.note(NOT_LEADER, 1000 + PATIENCE_MS + more) for more in (0, 100, 9000)]

    assert levels == [logging.INFO, None, None, logging.WARNING, None, None]


def test_the_next_one_begins_anew() -> None:
    interruption = Interruption()
    interruption.note(BROKEN, 1000)
    interruption.end()

    assert interruption.note(BROKEN, 1000 + PATIENCE_MS) == logging.INFO


def test_what_is_wrong_is_told_at_once_and_once_each() -> None:
    interruption = Interruption()
    wrong, other = CorruptionError("a batch is damaged"), KafkaError(ErrorCode.INCONSISTENT_CLUSTER_ID)
    levels = [interruption.note(each, 1000) for each in (BROKEN, wrong, wrong, other, wrong)]

    assert levels == [logging.INFO, logging.WARNING, None, logging.WARNING, logging.WARNING]

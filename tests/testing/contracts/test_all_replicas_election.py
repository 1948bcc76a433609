"""The election of the examples keeps both contracts, and commits what all replicas have, and nothing else."""

from __future__ import annotations

from pathlib import Path

from examples import all_replicas_election
from examples.all_replicas_election import AllReplicasFactory

from odradek.client import BlockingConsumer, BlockingProducer
from odradek.kernel.api import ElectionFactory
from odradek.testing.contracts.election import ElectionContract
from odradek.testing.contracts.election_base import THREE, TWO_IN_SYNC
from odradek.testing.contracts.election_ensemble import EnsembleContract
from odradek.testing.running_broker import running_broker

LINES_MAX = 200
CONFIG = """
[plugins]
enable = ["*", "examples.all_replicas_election"]

[topics.events]
"odradek.election" = "all"
"""


class TestAllReplicas(ElectionContract):
    commits_by_isr = False

    def make_factory(self) -> ElectionFactory:
        return AllReplicasFactory()

    def test_the_slowest_replica_decides_in_sync_or_not(self) -> None:
        election = self.leading(TWO_IN_SYNC)
        election.local_append(5)
        two_have_it = self.fetch(election, 2, 5)

        assert (two_have_it, self.fetch(election, 3, 4)) == (0, 4)

    def test_nothing_is_taken_while_one_is_away(self) -> None:
        assert [self.leading(state).can_acknowledge() for state in (THREE, TWO_IN_SYNC)] == [True, False]


class TestAllReplicasTogether(EnsembleContract):
    goes_on_without_one = False

    def make_factory(self) -> ElectionFactory:
        return AllReplicasFactory()


def test_a_broker_alone_takes_it_and_commits(tmp_path: Path) -> None:
    config = tmp_path / "odradek.toml"
    config.write_text(CONFIG)
    with running_broker(config=config) as broker:
        servers = {"bootstrap.servers": broker.bootstrap}
        with BlockingProducer({**servers, "acks": "all"}) as producer:
            told = [producer.send("events", b"%d" % number).offset for number in range(3)]
        with BlockingConsumer(servers) as consumer:
            ends = consumer.end_offsets([("events", 0)])

    assert told == [0, 1, 2]
    assert list(ends.values()) == [3]


def test_it_is_a_plugin_in_one_short_file() -> None:
    lines = Path(all_replicas_election.__file__).read_text().splitlines()

    assert list(all_replicas_election.odradek_elections()) == ["all"]
    assert len(lines) < LINES_MAX

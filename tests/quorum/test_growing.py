"""A broker that was alone becomes the first of several controllers: only where nothing says that others vote."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from uuid import UUID

import pytest

from odradek.client import BlockingAdmin
from odradek.kernel.config.broker import BrokerConfig, Setting
from odradek.kernel.config.meta_properties import decode_meta_properties
from odradek.kernel.config.registry import Registry
from odradek.kernel.controller.founding_checkpoint import FILE_NAME, read_founding
from odradek.kernel.controller.snapshots import SnapshotQuorum, SnapshotStore
from odradek.kernel.errors import CorruptionError, StorageError
from odradek.kernel.machine.files import OsFiles
from odradek.kernel.machine.system.machine import real_machine
from odradek.kernel.metadata.image import MetadataImage
from odradek.kernel.metadata.image_builder import ImageBuilder
from odradek.kernel.metadata.records import FormatRecord, encode_record
from odradek.kernel.quorum.formatting import Formatting, standalone
from odradek.kernel.quorum.growing import was_kept_alone
from odradek.kernel.records.builder import BatchBuilder
from odradek.kernel.records.control import (
    KRaftControlRecord,
    KRaftVoter,
    KRaftVoters,
    LeaderChange,
    QuorumVoter,
    build_control_batch,
)
from odradek.testing.running_broker import RunningBroker, running_broker
from tests.waiting import until

SEGMENT = "00000000000000000000.log"
FORMAT = FormatRecord(format_version=1, cluster_id="a cluster")
VOTERS = KRaftVoters(voters=[KRaftVoter(voter_id=1, voter_directory_id=UUID(int=1))])


def log_of(*control: KRaftControlRecord) -> bytes:
    builder = BatchBuilder()
    builder.append(None, encode_record(FORMAT, 0), timestamp=0)
    batches = [bytes(builder.build()), *(bytes(build_control_batch([each], timestamp=0)) for each in control)]
    return b"".join(batches)


def led_by(*node_ids: int) -> LeaderChange:
    return LeaderChange(leader_id=node_ids[0], voters=[QuorumVoter(voter_id=each) for each in node_ids])


def is_alone(directory: Path, **files: bytes) -> bool:
    for name, data in files.items():
        (directory / {"log": SEGMENT, "state": "quorum-state", "founding": FILE_NAME}[name]).write_bytes(data)
    return was_kept_alone(directory, OsFiles(), 1)


def test_a_log_that_one_node_wrote_was_kept_alone_whatever_election_led_it(tmp_path: Path) -> None:
    assert not was_kept_alone(tmp_path / "nothing", OsFiles(), 1)
    assert not is_alone(tmp_path)
    assert is_alone(tmp_path, log=log_of())
    assert is_alone(tmp_path, log=log_of() + bytes(4096)), "a crash may leave room that was never written"
    assert is_alone(tmp_path, log=log_of(led_by(1)), state=b"{}")


@pytest.mark.parametrize(
    "files",
    [
        {"log": log_of(led_by(1, 2, 3)), "state": b"{}"},
        {"log": log_of(led_by(2)), "state": b"{}"},
        {"log": log_of(led_by(1), VOTERS), "state": b"{}"},
        {"log": log_of(), "state": b"{}"},
        {"log": log_of(), "founding": b"whatever it says"},
    ],
    ids=["several voted", "another one did", "voters are named", "who voted is forgotten", "founded"],
)
def test_a_log_that_others_may_vote_on_was_not(tmp_path: Path, files: dict[str, bytes]) -> None:
    assert not is_alone(tmp_path, **files)


def test_a_log_whose_snapshot_says_who_votes_was_not(tmp_path: Path) -> None:
    builder = ImageBuilder(MetadataImage())
    builder.replay(FORMAT)
    builder.note_position(7, 1)
    SnapshotStore(directory=tmp_path, files=OsFiles()).write(builder.build(), 0, SnapshotQuorum(VOTERS))

    assert not is_alone(tmp_path, log=log_of())


def test_a_damaged_log_is_refused(tmp_path: Path) -> None:
    with pytest.raises(CorruptionError):
        is_alone(tmp_path, log=log_of() + b"?" * 100)


# ------------------------------------------------------------------------------------------------------- the how-to


class Nodes:
    """Three brokers-to-be on ports that are known before."""

    def __init__(self, root: Path) -> None:
        self.root = root
        with ExitStack() as held:
            sockets = [held.enter_context(socket.socket()) for _ in range(6)]
            for each in sockets:
                each.bind(("127.0.0.1", 0))
            self._ports = [each.getsockname()[1] for each in sockets]

    def alone(self) -> dict[str, str]:
        return {"node.id": "1", "listeners": f"PLAINTEXT://127.0.0.1:{self._ports[0]}"}

    def among_three(self, node_id: int) -> dict[str, str]:
        clients, controllers = self._ports[node_id - 1], self._ports[node_id + 2]
        return {
            "node.id": str(node_id),
            "process.roles": "broker,controller",
            "controller.listener.names": "CONTROLLER",
            "listeners": f"PLAINTEXT://127.0.0.1:{clients},CONTROLLER://127.0.0.1:{controllers}",
            "controller.quorum.bootstrap.servers": ",".join(f"127.0.0.1:{port}" for port in self._ports[3:]),
            "controller.quorum.auto.join.enable": "true",
        }

    @contextmanager
    def running(self, node_id: int) -> Iterator[RunningBroker]:
        with running_broker(self.among_three(node_id), data_dir=self.root / str(node_id)) as broker:
            yield broker


def voters_of(broker: RunningBroker) -> int:
    """How many vote, as a broker is told."""
    with BlockingAdmin({"bootstrap.servers": broker.bootstrap}) as admin:
        return len(admin.describe_quorum().voters)


def test_a_broker_that_was_alone_is_the_first_of_three_and_may_be_killed_then(tmp_path: Path) -> None:
    nodes = Nodes(tmp_path)
    with running_broker(nodes.alone(), data_dir=tmp_path / "1") as broker:
        broker.create_topic("old")
    meta = decode_meta_properties((tmp_path / "1" / "meta.properties").read_bytes())
    settings = {**nodes.among_three(1), "log.dirs": str(tmp_path / "1")}
    config = BrokerConfig(Registry.of(), static={key: Setting(value, "a test") for key, value in settings.items()})
    machine = real_machine()

    def formatted(cluster_id: str) -> list[Path]:
        voters = standalone(config, machine)
        formatting = Formatting(config, machine, cluster_id=cluster_id, voters=voters, ignores_formatted=True)
        return [*formatting.run().voters]

    with pytest.raises(StorageError, match="it belongs to cluster"):
        formatted("another")
    assert formatted(meta.cluster_id) == [tmp_path / "1"]
    assert formatted(meta.cluster_id) == [], "it is that already"
    founding = read_founding(tmp_path / "1" / "__cluster_metadata-0", OsFiles())
    assert founding is not None
    assert [each.voter_directory_id for each in founding.voters.voters] == [meta.directory_id]

    with nodes.running(1) as first, nodes.running(2) as second, nodes.running(3):
        until(lambda: voters_of(first) == 3)
        assert first.leader("old") == 1
        first.kill()
        second.create_topic("new")

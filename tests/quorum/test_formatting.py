"""Directories formatted by hand: what Kafka's tool writes is taken as it is, and what ours writes is the same."""

from __future__ import annotations

import errno
from pathlib import Path
from uuid import UUID

import pytest

from odradek.kernel.config.broker import BrokerConfig, Setting
from odradek.kernel.config.meta_properties import MetaProperties, decode_meta_properties, encode_meta_properties
from odradek.kernel.config.registry import Registry
from odradek.kernel.controller.founding_checkpoint import FoundingCheckpoint, read_founding
from odradek.kernel.errors import ConfigError, StorageError
from odradek.kernel.machine.system.machine import real_machine
from odradek.kernel.quorum.formatting import Formatting, check_formatting, parse_voters, standalone
from odradek.kernel.quorum.founding import FoundingVoter
from odradek.kernel.quorum.founding_directory import FoundingDirectory, Standing
from odradek.kernel.quorum.voters_record import voters_record
from odradek.kernel.records.batch import iterate_batches
from odradek.kernel.records.control import ControlRecord, SnapshotHeader, read_control_records
from odradek.testing.faults import FaultyFiles
from tests.kafka_tools import kafka_says
from tests.machines import machine_with

CLUSTER_ID = "ABCDEFGHIJKLMNOPQRSTUw"
SERVERS = {"controller.quorum.bootstrap.servers": "127.0.0.1:19093"}
VOTERS = {"controller.quorum.voters": "1@127.0.0.1:19093,2@127.0.0.1:19193"}
DIRECTORY = "AAAAAAAAAAAAAAAAAAAAAQ"
TWO = f"1@127.0.0.1:19093:{DIRECTORY},2@127.0.0.1:19193:AAAAAAAAAAAAAAAAAAAAAg"
NAMED = (
    FoundingVoter(1, UUID(int=1), "127.0.0.1", 19093),
    FoundingVoter(2, UUID(int=2), "127.0.0.1", 19193),
)
OF_KAFKA = bytes.fromhex(
    "0000000000000000000000ce0000000002a9fd67f6002000000002000001a2158338e9000001a2158338e9ffffffffffffff"
    "ffffffffffffff000000032a0000000800000003160000000001a21583389f00001e00000208000000050a000000010000ea"
    "010000040800000006d4010000030000000100000000000000000000000000000001020b434f4e54524f4c4c45520a313237"
    "2e302e302e314a95000000000100000000000200000000000000000000000000000002020b434f4e54524f4c4c45520a3132"
    "372e302e302e314af900000000010000000000000000000000030000003f00000000027035cfde002000000000000001a215"
    "833910000001a215833910ffffffffffffffffffffffffffff000000011a00000008000000040600000000"
)
"""The checkpoint that `kafka-storage format --initial-controllers` of Apache Kafka 4.3.1 wrote for `TWO`."""
BOTH = pytest.mark.parametrize(
    "by_kafka", [False, pytest.param(True, marks=pytest.mark.interop)], ids=["ours", "kafka"]
)


def config_of(tmp_path: Path, settings: dict[str, str], *, roles: str = "broker,controller") -> BrokerConfig:
    chosen = {
        "node.id": "1",
        "process.roles": roles,
        "listeners": "PLAINTEXT://127.0.0.1:19092,CONTROLLER://127.0.0.1:19093",
        "controller.listener.names": "CONTROLLER",
        "log.dirs": f"{tmp_path / 'a'},{tmp_path / 'b'}",
        **settings,
    }
    return BrokerConfig(Registry.of(), static={key: Setting(value, "a test") for key, value in chosen.items()})


def format_by_kafka(tmp_path: Path, config: BrokerConfig, *words: str) -> None:
    file = tmp_path / "server.properties"
    file.write_text("".join(f"{key}={setting.text}\n" for key, setting in config.static.items()))
    kafka_says("tool", "StorageTool", "format", "--cluster-id", CLUSTER_ID, "--config", str(file), *words)


def meta_of(path: Path) -> MetaProperties:
    return decode_meta_properties((path / "meta.properties").read_bytes())


@BOTH
def test_voters_that_are_named_are_what_the_cluster_was_founded_with(tmp_path: Path, by_kafka: bool) -> None:
    config = config_of(tmp_path, SERVERS)
    if by_kafka:
        format_by_kafka(tmp_path, config, "--initial-controllers", TWO)
    else:
        Formatting(config, real_machine(), cluster_id=CLUSTER_ID, voters=parse_voters(TWO)).run()
    found = FoundingDirectory(config, real_machine()).look()

    assert (found.standing, found.cluster_id) == (Standing.FOUNDED, CLUSTER_ID)
    founding = read_founding(tmp_path / "a" / "__cluster_metadata-0", real_machine().files)
    assert founding == FoundingCheckpoint(voters_record(NAMED, "CONTROLLER"))
    assert meta_of(tmp_path / "a") == MetaProperties(CLUSTER_ID, 1, UUID(int=1))
    assert meta_of(tmp_path / "b").cluster_id == CLUSTER_ID


def control_records(data: bytes) -> list[ControlRecord]:
    """What it says but for when it was written."""
    batches = iterate_batches(memoryview(data))
    records = [record for at, header in batches for record in read_control_records(data, header, at)]
    return [record for record in records if not isinstance(record, SnapshotHeader)]


def test_what_kafkas_tool_wrote_is_what_ours_writes_but_for_the_time(tmp_path: Path) -> None:
    config = config_of(tmp_path, SERVERS)
    Formatting(config, real_machine(), cluster_id=CLUSTER_ID, voters=parse_voters(TWO)).run()
    ours = (tmp_path / "a" / "__cluster_metadata-0" / "00000000000000000000-0000000000.checkpoint").read_bytes()

    assert len(ours) == len(OF_KAFKA)
    assert control_records(ours) == control_records(OF_KAFKA)


@BOTH
@pytest.mark.parametrize(
    ("settings", "words", "standing"),
    [(VOTERS, (), Standing.STATIC), (SERVERS, ("--no-initial-controllers",), Standing.OBSERVER)],
    ids=["voters of the configuration", "voters of others"],
)
def test_where_no_voters_are_named_the_configuration_says_whether_it_votes(
    tmp_path: Path, settings: dict[str, str], words: tuple[str, ...], standing: Standing, by_kafka: bool
) -> None:
    config = config_of(tmp_path, settings)
    if by_kafka:
        format_by_kafka(tmp_path, config, *words)
    else:
        Formatting(config, real_machine(), cluster_id=CLUSTER_ID).run()
    found = FoundingDirectory(config, real_machine()).look()

    assert (found.standing, found.cluster_id) == (standing, CLUSTER_ID)


@pytest.mark.parametrize(
    ("settings", "standing"),
    [(VOTERS, Standing.STATIC), (SERVERS, Standing.FOUNDED)],
    ids=["voters of the configuration", "voters of others"],
)
def test_it_votes_by_its_configuration_when_it_starts_again_too(
    tmp_path: Path, settings: dict[str, str], standing: Standing
) -> None:
    config = config_of(tmp_path, settings)
    Formatting(config, real_machine(), cluster_id=CLUSTER_ID).run()
    log = tmp_path / "a" / "__cluster_metadata-0"
    log.mkdir(exist_ok=True)
    (log / "quorum-state").touch()
    found = FoundingDirectory(config, real_machine()).look()

    assert (found.standing, found.cluster_id) == (standing, CLUSTER_ID)


@pytest.mark.parametrize(
    ("settings", "records", "standing"),
    [
        (VOTERS, b"", Standing.STATIC),
        (SERVERS, b"", Standing.OBSERVER),
        (VOTERS, b"of one that was alone", Standing.FOUNDED),
    ],
    ids=["voters of the configuration", "voters of others", "one that was alone"],
)
def test_what_a_first_start_left_that_was_cut_off_before_any_promise_is_no_metadata(
    tmp_path: Path, settings: dict[str, str], records: bytes, standing: Standing
) -> None:
    config = config_of(tmp_path, settings)
    Formatting(config, real_machine(), cluster_id=CLUSTER_ID).run()
    log = tmp_path / "a" / "__cluster_metadata-0"
    log.mkdir()
    (log / "partition.metadata").write_text("version: 0")
    (log / "00000000000000000000.log").write_bytes(records)
    found = FoundingDirectory(config, real_machine()).look()

    assert (found.standing, found.cluster_id) == (standing, CLUSTER_ID)
    assert found.names_voters == (not records)


def test_who_has_an_empty_metadata_log_and_no_cluster_is_to_found_one(tmp_path: Path) -> None:
    log = tmp_path / "a" / "__cluster_metadata-0"
    log.mkdir(parents=True)
    (log / "00000000000000000000.log").touch()

    assert FoundingDirectory(config_of(tmp_path, VOTERS), real_machine()).look().standing is Standing.UNFOUNDED


@pytest.mark.interop
def test_kafkas_tools_read_what_ours_writes(tmp_path: Path) -> None:
    config = config_of(tmp_path, SERVERS)
    Formatting(config, real_machine(), cluster_id=CLUSTER_ID, voters=parse_voters(TWO)).run()
    files = [tmp_path / "a" / "bootstrap.checkpoint"]
    files += (tmp_path / "a" / "__cluster_metadata-0").glob("*.checkpoint")
    told = kafka_says("tool", "DumpLogSegments", "--cluster-metadata-decoder", "--files", ",".join(map(str, files)))

    assert '{"type":"FEATURE_LEVEL_RECORD","version":0,"data":{"name":"metadata.version","featureLevel":30}}' in told
    assert '"voterDirectoryId":"AAAAAAAAAAAAAAAAAAAAAg"' in told
    assert "isvalid: false" not in told


def test_a_controller_alone_is_the_only_voter_in_a_directory_of_its_own(tmp_path: Path) -> None:
    config = config_of(tmp_path, SERVERS)
    (voter,) = standalone(config, real_machine())
    Formatting(config, real_machine(), cluster_id=CLUSTER_ID, voters=[voter]).run()

    assert (voter.node_id, voter.host, voter.port) == (1, "127.0.0.1", 19093)
    assert meta_of(tmp_path / "a").directory_id == voter.directory_id
    with pytest.raises(ConfigError, match="a voter has a listener"):
        standalone(config_of(tmp_path, {}), real_machine())


def test_what_is_formatted_is_left_alone(tmp_path: Path) -> None:
    config, machine = config_of(tmp_path, SERVERS), real_machine()
    Formatting(config_of(tmp_path, {**SERVERS, "log.dirs": str(tmp_path / "a")}), machine, cluster_id=CLUSTER_ID).run()
    before = meta_of(tmp_path / "a")

    with pytest.raises(StorageError, match="a is already formatted; --ignore-formatted"):
        Formatting(config, machine, cluster_id=CLUSTER_ID).run()
    assert not (tmp_path / "b").exists()
    done = Formatting(config, machine, cluster_id=CLUSTER_ID, ignores_formatted=True).run()
    assert (done.metadata, done.data) == ([], [tmp_path / "b"])
    assert meta_of(tmp_path / "a") == before
    assert Formatting(config, machine, cluster_id=CLUSTER_ID, ignores_formatted=True).run().data == []


@pytest.mark.parametrize(
    ("meta", "says"),
    [
        (MetaProperties("other", 1, UUID(int=9)), "it belongs to cluster other, not to ABCD"),
        (MetaProperties(CLUSTER_ID, 7, UUID(int=9)), "it belongs to node 7, not to node 1"),
    ],
)
def test_directories_of_others_are_refused(tmp_path: Path, meta: MetaProperties, says: str) -> None:
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "meta.properties").write_bytes(encode_meta_properties(meta))

    with pytest.raises(StorageError, match=says):
        Formatting(config_of(tmp_path, SERVERS), real_machine(), cluster_id=CLUSTER_ID, ignores_formatted=True).run()
    assert not (tmp_path / "a").exists()


def test_a_disk_that_fails_on_the_way_leaves_a_directory_that_is_formatted_again(tmp_path: Path) -> None:
    config = config_of(tmp_path, {**SERVERS, "log.dirs": str(tmp_path / "a")})
    number = 0
    while True:
        number += 1
        files = FaultyFiles(tmp_path, fail_at=number, error=errno.EIO)
        try:
            Formatting(config, machine_with(files=files), cluster_id=CLUSTER_ID, voters=parse_voters(TWO)).run()
            break
        except StorageError:
            Formatting(
                config, real_machine(), cluster_id=CLUSTER_ID, voters=parse_voters(TWO), ignores_formatted=True
            ).run()
            assert FoundingDirectory(config, real_machine()).look().standing is Standing.FOUNDED
            (tmp_path / "a" / "meta.properties").unlink()
    assert number > 10


@pytest.mark.parametrize(
    ("settings", "roles", "names", "opens", "says"),
    [
        (VOTERS, "controller", True, False, "is set, and voters cannot be named besides"),
        (SERVERS, "broker", True, False, "voters are named on a controller"),
        (SERVERS, "controller", False, False, "so one of these has to say who votes"),
    ],
)
def test_what_contradicts_the_configuration_is_refused(
    tmp_path: Path, settings: dict[str, str], roles: str, names: bool, opens: bool, says: str
) -> None:
    with pytest.raises(ConfigError, match=says):
        check_formatting(config_of(tmp_path, settings, roles=roles), names_voters=names, leaves_voters_open=opens)


@pytest.mark.parametrize(
    "text", ["", "1@h:9093", "x@h:1:AAAAAAAAAAAAAAAAAAAAAQ", "1@h:x:AAAAAAAAAAAAAAAAAAAAAQ", f"{TWO},{TWO}"]
)
def test_what_names_no_controllers_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match="--initial-controllers"):
        parse_voters(text)


def test_controllers_are_named_with_addresses_of_every_kind() -> None:
    assert parse_voters(f"7@[::1]:9093:{DIRECTORY}") == [FoundingVoter(7, UUID(int=1), "::1", 9093)]
    assert tuple(parse_voters(TWO)) == NAMED

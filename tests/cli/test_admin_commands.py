"""`odradek topics` and `odradek configs` against a broker."""

import json
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from odradek.cli import main
from odradek.cli.configs import is_as_by_default
from odradek.client import BlockingProducer
from odradek.client.admin_values import ConfigEntry, ConfigSource
from odradek.testing.running_broker import running_broker

COMPACTED = Path(__file__).parents[1] / "plugins" / "storage_segment" / "golden" / "kafka-4.3.1"


def test_a_topic_lives_and_goes(odradek: Any) -> None:
    created = odradek.ok("topics", "create", "life", "-p", "3", "-c", "retention.ms=1000")

    assert created.out == "created topic life with 3 partitions\n"
    assert "life            3         1" in odradek.ok("topics", "list", "lif*").out

    odradek.ok("topics", "alter", "life", "-p", "4", "--set", "segment.bytes=2000000", "--unset", "retention.ms")
    (described,) = odradek.ok("topics", "describe", "life", "--json").json

    assert described["configs"] == {"segment.bytes": "2000000"}
    assert [row["partition"] for row in described["partitions"]] == [0, 1, 2, 3]
    assert odradek.ok("topics", "delete", "life").out == "deleted topic life\n"
    assert odradek.ok("topics", "list", "life", "--json").json == []


def test_the_description_for_people_has_all_partitions(odradek: Any) -> None:
    odradek.ok("topics", "create", "shown", "-p", "2", "-c", "retention.ms=1000")
    lines = odradek.ok("topics", "describe", "shown").out.splitlines()

    assert lines[0].startswith("shown  ")
    assert lines[1:] == [
        "  retention.ms=1000",
        "partition  leader  epoch  replicas  isr  start  end",
        "        0       1      0  1         1        0    0",
        "        1       1      0  1         1        0    0",
    ]


def test_scripts_may_create_and_delete_twice(odradek: Any) -> None:
    for _ in range(2):
        odradek.ok("topics", "create", "twice", "--if-not-exists")
    for _ in range(2):
        odradek.ok("topics", "delete", "twice", "--if-exists")


def test_scripts_read_what_was_done_as_json(odradek: Any) -> None:
    created = odradek.ok("topics", "create", "for-scripts", "-p", "2", "--json").json
    again = odradek.ok("topics", "create", "for-scripts", "--if-not-exists", "--json").json
    altered = odradek.ok("topics", "alter", "for-scripts", "-p", "3", "--json").json
    configured = odradek.ok("configs", "alter", "topic", "for-scripts", "--set", "retention.ms=1", "--json").json
    deleted = odradek.ok("topics", "delete", "for-scripts", "--json").json

    assert (created["created"], created["partitions"], again["created"]) == (True, 2, False)
    assert altered == {"topic": "for-scripts", "changed": True}
    assert configured == {"changed": "topic for-scripts", "keys": ["retention.ms"]}
    assert deleted == {"deleted": ["for-scripts"]}


def test_a_mistyped_topic_is_answered_with_the_nearest(odradek: Any) -> None:
    odradek.ok("topics", "create", "orders-of-today", "--if-not-exists")
    done = odradek("topics", "describe", "order-of-today")

    assert done.status == 1
    assert "there is no topic 'order-of-today'; did you mean 'orders-of-today'?" in done.err


def test_what_the_broker_refuses_is_one_line(odradek: Any) -> None:
    done = odradek("topics", "create", "bad", "-c", "retention.ms=soon")

    assert (done.status, done.out) == (1, "")
    assert done.err.startswith("odradek: INVALID_CONFIG: ")
    assert done.err.count("\n") == 1


def test_a_broker_that_is_not_there_is_one_line_at_once(command: Any) -> None:
    done = command.run("topics", "list", "-b", "127.0.0.1:1")

    assert done.status == 1
    assert done.err == (
        "odradek: cannot connect to 127.0.0.1:1 (Connection refused); "
        "is a broker running? odradek serve starts one, -b names another\n"
    )


@pytest.mark.parametrize("option", ["nonsense", "no.such.setting=1"])
def test_a_wrong_setting_of_the_client_is_wrong_usage(odradek: Any, option: str) -> None:
    assert odradek("topics", "list", "-X", option).status == 2


def test_configs_are_changed_and_shown_with_their_source(odradek: Any) -> None:
    odradek.ok("topics", "create", "configured")
    odradek.ok(
        "configs", "alter", "topic", "configured", "--set", "retention.ms=5000", "--append", "cleanup.policy=compact"
    )
    rows = {row["key"]: row for row in odradek.ok("configs", "describe", "topic", "configured", "--json").json}

    assert {key: row["value"] for key, row in rows.items() if row["source"] == "topic"} == {
        "retention.ms": "5000",
        "cleanup.policy": "delete,compact",
    }

    odradek.ok(
        "configs", "alter", "topic", "configured", "--unset", "retention.ms", "--subtract", "cleanup.policy=delete"
    )

    assert odradek.ok("configs", "describe", "topic", "configured").out.splitlines()[1:] == [
        "cleanup.policy  compact  topic"
    ]


@pytest.mark.parametrize("command", [("describe",), ("alter", "--set", "log.retention.ms=1")], ids=lambda it: it[0])
def test_a_broker_that_is_not_there_is_told_at_once(odradek: Any, command: tuple[str, ...]) -> None:
    action, *options = command
    refused = odradek("configs", action, "broker", "77", *options)

    assert refused.status == 1
    assert "BROKER_ID_NOT_REGISTERED: there is no broker 77; there are: 1" in refused.err


def test_all_configs_are_shown_when_asked_for(odradek: Any) -> None:
    few = odradek.ok("configs", "describe", "broker", "1", "--json").json
    many = odradek.ok("configs", "describe", "broker", "1", "--all", "--json").json

    assert len(few) < 20 < 200 < len(many)


def test_settings_that_are_all_defaults_say_how_to_see_them(odradek: Any) -> None:
    odradek.ok("topics", "create", "as-it-comes")

    assert odradek.ok("configs", "describe", "topic", "as-it-comes").out == (
        "nothing is set for topic as-it-comes; --all shows the defaults\n"
    )
    assert odradek.ok("configs", "describe", "topic", "as-it-comes", "--json").json == []
    assert odradek.ok("configs", "describe", "client-metrics", "m").out == (
        "nothing is set for client-metrics m; --all shows the defaults\n"
    )


def test_what_the_cluster_keeps_for_all_brokers_is_shown_where_it_differs_from_the_default(odradek: Any) -> None:
    odradek.ok("topics", "create", "inherits")
    fresh = odradek.ok("configs", "describe", "brokers", "--json").json
    odradek.ok("configs", "alter", "brokers", "--set", "min.insync.replicas=2")
    shown = [
        odradek.ok("configs", "describe", *what).out.splitlines()[1:] for what in [("topic", "inherits"), ("brokers",)]
    ]
    odradek.ok("configs", "alter", "brokers", "--set", "min.insync.replicas=1")
    again = odradek.ok("configs", "describe", "topic", "inherits").out
    every = odradek.ok("configs", "describe", "topic", "inherits", "--all", "--json").json

    assert [(row["key"], row["value"]) for row in fresh] == [("min.insync.replicas", "1")]
    assert shown == [["min.insync.replicas  2      all brokers, dynamic"]] * 2
    assert again == "nothing is set for topic inherits; --all shows the defaults\n"
    assert [row["source"] for row in every if row["key"] == "min.insync.replicas"] == ["all brokers, dynamic"]


@pytest.mark.parametrize(
    ("value", "behind", "expected"),
    [
        ("1", [("b.key", "1", 5)], True),
        ("1", [("b.key", "1", 3), ("b.key", "1", 5)], True),
        ("2", [("b.key", "2", 3), ("b.key", "1", 5)], False),
        ("1", [("b.key", "1", 3), ("b.key", "2", 4), ("b.key", "1", 5)], False),  # it hides what the broker began with
        ("1", [("b.key", "1", 3)], False),  # asked for as such
        ("1", [("t.key", "1", 1), ("b.key", "1", 3), ("b.key", "1", 5)], False),  # somebody chose it for the topic
    ],
)
def test_what_stands_as_by_default_has_no_other_value_behind_it(
    value: str, behind: list[tuple[str, str, int]], expected: bool
) -> None:
    synonyms = tuple((name, text, ConfigSource(source)) for name, text, source in behind)
    entry = ConfigEntry("t.key", value, synonyms[0][2], is_read_only=False, is_sensitive=False, synonyms=synonyms)

    assert is_as_by_default(entry) is expected


def test_defaults_of_all_brokers_come_and_go(odradek: Any) -> None:
    odradek.ok("configs", "alter", "brokers", "--set", "log.retention.ms=1000000")
    shown = odradek.ok("configs", "describe", "brokers").out
    odradek.ok("configs", "alter", "brokers", "--unset", "log.retention.ms")
    left = odradek.ok("configs", "describe", "brokers").out

    assert "log.retention.ms     1000000  all brokers, dynamic" in shown.splitlines()
    assert "log.retention.ms" not in left


@pytest.mark.parametrize(
    "arguments",
    [
        ("configs", "describe", "topic"),
        ("configs", "describe", "brokers", "1"),
        ("configs", "alter", "brokers"),
        ("configs", "alter", "brokers", "--set", "nonsense"),
        ("configs", "describe", "planet", "x"),
        ("topics", "alter", "orders-of-today"),
    ],
    ids=" ".join,
)
def test_incomplete_commands_are_wrong_usage(odradek: Any, arguments: tuple[str, ...]) -> None:
    odradek.ok("topics", "create", "orders-of-today", "--if-not-exists")

    assert odradek(*arguments).status == 2


# ------------------------------------------------------------------------------ adopt


def write(data_dir: Path, *, partitions_count: int, written: Sequence[int]) -> None:
    """Have another broker keep one topic, with a record in some of its partitions: the others get no directory."""
    with running_broker(data_dir=data_dir) as broker:
        assert main(["topics", "create", "kept", "-p", str(partitions_count), "-b", broker.bootstrap]) == 0
        with BlockingProducer({"bootstrap.servers": broker.bootstrap}) as producer:
            for partition in written:
                producer.send("kept", "value", partition=partition)


@pytest.fixture
def written(tmp_path: Path, command: Any) -> Path:
    """Return the data directory of another, stopped broker with one topic of two partitions."""
    write(tmp_path / "theirs", partitions_count=2, written=[0, 1])
    return tmp_path / "theirs"


def test_directories_of_another_broker_are_adopted_once(command: Any, tmp_path: Path, written: Path) -> None:
    ours = str(tmp_path / "ours")
    first = command.run("topics", "adopt", str(written), "--data-dir", ours, "--json")
    second = command.run("topics", "adopt", str(written), "--data-dir", ours)

    assert [(row["topic"], row["partitions"], row["was_known"]) for row in first.json] == [("kept", 2, False)]
    assert "was known" in second.out
    assert second.out.endswith("0 partitions copied\n")

    with running_broker(data_dir=tmp_path / "ours") as broker:
        described = command.run("topics", "describe", "kept", "--json", "-b", broker.bootstrap).json

    assert described[0]["topic_id"] == first.json[0]["topic_id"]
    assert [row["end"] for row in described[0]["partitions"]] == [1, 1]


def test_a_new_producer_gets_no_id_that_an_adopted_log_knows(command: Any, tmp_path: Path) -> None:
    idempotent = {"enable.idempotence": "true"}
    for name, value in (("theirs", "first"), ("ours", "second")):
        if name == "ours":
            command.run("topics", "adopt", str(tmp_path / "theirs"), "--data-dir", str(tmp_path / "ours"))
        with (
            running_broker(data_dir=tmp_path / name) as broker,
            BlockingProducer({"bootstrap.servers": broker.bootstrap, **idempotent}) as producer,
        ):
            producer.send("t", value, partition=0)
    segment = str(tmp_path / "ours/t-0/00000000000000000000.log")
    rows = [json.loads(line) for line in command.run("log", "dump", "--json", segment).out.splitlines()]

    assert [row["producer_id"] for row in rows if row["kind"] == "batch"] == [0, 1]


def test_directories_that_lie_in_the_brokers_own_data_are_adopted_in_place(command: Any, written: Path) -> None:
    shutil.rmtree(written / "__cluster_metadata-0")
    done = command.run("topics", "adopt", str(written), "--data-dir", str(written))

    assert (done.status, done.err) == (0, "")
    assert done.out.endswith("0 partitions copied\n")

    with running_broker(data_dir=written) as broker:
        described = command.run("topics", "describe", "kept", "--json", "-b", broker.bootstrap).json

    assert [row["end"] for row in described[0]["partitions"]] == [1, 1]


@pytest.mark.parametrize("into", ["ours", "theirs"])
def test_what_compaction_left_is_adopted_whole(command: Any, tmp_path: Path, into: str) -> None:
    theirs = tmp_path / "theirs"
    for name in ("golden-0", "golden-1"):  # without the checkpoints of their directory, as in a backup
        shutil.copytree(COMPACTED / name, theirs / name)
    for path in (theirs / "golden-0").glob("00000000000000000018.*"):
        path.unlink()
    done = command.run("topics", "adopt", str(theirs), "--data-dir", str(tmp_path / into))

    assert (done.status, done.err) == (0, "")

    with running_broker(data_dir=tmp_path / into) as broker:
        described = command.run("topics", "describe", "golden", "--json", "-b", broker.bootstrap).json

    assert [row["end"] for row in described[0]["partitions"]] == [90, 2]


def test_nothing_is_taken_where_a_partition_is_missing(command: Any, tmp_path: Path, written: Path) -> None:
    shutil.rmtree(written / "kept-0")
    done = command.run("topics", "adopt", str(written), "--data-dir", str(tmp_path / "ours"))

    assert done.status == 1
    assert "topic kept cannot be adopted: partitions [0] are missing" in done.err
    assert not (tmp_path / "ours" / "kept-1").exists()


@pytest.mark.parametrize("into", ["ours", "theirs"])
def test_partitions_that_nothing_was_written_to_are_adopted_once_their_directories_are_made(
    command: Any, tmp_path: Path, into: str
) -> None:
    theirs = tmp_path / "theirs"
    write(theirs, partitions_count=3, written=[1])
    shutil.rmtree(theirs / "__cluster_metadata-0")
    adopt = ("topics", "adopt", str(theirs), "--data-dir", str(tmp_path / into))
    refused = command.run(*adopt)
    for name in ("kept-0", "kept-2"):
        (theirs / name).mkdir()
        shutil.copy(theirs / "kept-1" / "partition.metadata", theirs / name)
    done = command.run(*adopt)

    assert refused.status == 1
    assert "partitions [0] are missing; where nothing was ever written to one, it may have no directory" in refused.err
    assert "make that, such as kept-0, with the partition.metadata of another of its partitions" in refused.err
    assert (done.status, done.err) == (0, "")

    with running_broker(data_dir=tmp_path / into) as broker:
        with BlockingProducer({"bootstrap.servers": broker.bootstrap}) as producer:
            producer.send("kept", "first", partition=0)
        (described,) = command.run("topics", "describe", "kept", "--json", "-b", broker.bootstrap).json

    assert [(row["partition"], row["end"]) for row in described["partitions"]] == [(0, 1), (1, 1), (2, 0)]


@pytest.mark.parametrize("options", [[], ["--topic", "kept"]])
def test_an_empty_directory_holds_nothing_to_adopt(command: Any, tmp_path: Path, options: list[str]) -> None:
    (tmp_path / "empty").mkdir()
    done = command.run("topics", "adopt", str(tmp_path / "empty"), "--data-dir", str(tmp_path / "ours"), *options)

    assert done.status == 2
    assert "lies there" in done.err

"""Files, environment and options: what is read, which wins, and how a wrong setting is told."""

from __future__ import annotations

from pathlib import Path

import attrs
import pytest

from odradek.kernel.config.broker import BrokerConfig, ConfigSource
from odradek.kernel.config.registry import builtin_registry
from odradek.kernel.config.settings import default_data_dir, listen_settings, read_settings
from odradek.kernel.config.topic import TopicConfig
from odradek.kernel.errors import ConfigError

DATA = Path("/data/odradek")


def resolve(
    text: str = "", *, name: str = "odradek.toml", folder: Path | None = None, options: tuple[str, ...] = (), **env: str
) -> BrokerConfig:
    file = None
    if folder:
        file = folder / name
        file.write_text(text, encoding="utf-8")
    settings = read_settings(config=file, environment=env, options=options)
    return settings.resolve(builtin_registry(), data_dir=DATA)


def test_no_configuration_is_a_configuration() -> None:
    config = resolve()

    assert config.node_id == 1
    assert config.log_dirs == (str(DATA),)
    assert config.metadata_log_dir == str(DATA)
    assert config.get_list("listeners") == ("PLAINTEXT://127.0.0.1:9092",)
    assert config.warnings() == []


def test_an_option_wins_over_the_environment_over_the_file(tmp_path: Path) -> None:
    text = '[broker]\n"num.partitions" = 2\n"log.dirs" = ["/a", "/b"]\n"message.max.bytes" = 7\n'
    config = resolve(
        text,
        folder=tmp_path,
        options=("num.partitions=4",),
        ODRADEK_NUM_PARTITIONS="3",
        ODRADEK_MESSAGE_MAX_BYTES="8",
    )

    assert config.get_int("num.partitions") == 4
    assert config.get_int("message.max.bytes") == 8
    assert config.log_dirs == ("/a", "/b")


@pytest.mark.parametrize(
    ("file", "variable", "option", "wanted"),
    [
        ("log.dirs=/a,/b", "LOG_DIR=/c", "", {"log_dirs": ("/c",)}),
        ("log.dirs=/a,/b", "", "log.dir=/d", {"log_dirs": ("/d",)}),
        ("", "LOG_DIRS=/c", "log.dir=/d", {"log_dirs": ("/d",)}),
        ("log.dir=/a", "LOG_DIRS=/b,/c", "", {"log_dirs": ("/b", "/c")}),
        ("log.dir=/a\nlog.dirs=/b,/c", "", "", {"log_dirs": ("/b", "/c")}),
        ("log.dirs=/a", "LOG_DIR=/c", "log.dirs=/d", {"log_dirs": ("/d",)}),
        ("node.id=1", "BROKER_ID=2", "", {"node_id": 2}),
        ("broker.id=1", "NODE_ID=2", "broker.id=3", {"node_id": 3}),
        ("log.retention.ms=1", "LOG_RETENTION_HOURS=2", "", {"retention_ms": 7_200_000}),
        ("log.retention.minutes=1", "LOG_RETENTION_HOURS=2", "", {"retention_ms": 7_200_000}),
        ("log.retention.ms=1", "LOG_RETENTION_HOURS=2", "log.retention.minutes=3", {"retention_ms": 180_000}),
        ("log.retention.hours=1", "LOG_RETENTION_MINUTES=2\nLOG_RETENTION_HOURS=3", "", {"retention_ms": 120_000}),
        ("log.roll.ms=1", "LOG_ROLL_HOURS=2", "", {"segment_ms": 7_200_000}),
        ("log.roll.jitter.ms=1", "", "log.roll.jitter.hours=2", {"segment_jitter_ms": 7_200_000}),
        # A value of its own, which stands in for the other one: both count.
        ("log.flush.interval.ms=1", "LOG_FLUSH_SCHEDULER_INTERVAL_MS=2", "", {"flush_ms": 1}),
    ],
)
def test_what_the_nearest_source_says_counts_by_whichever_key_it_says_it(
    tmp_path: Path, file: str, variable: str, option: str, wanted: dict[str, object]
) -> None:
    variables = dict(each.split("=", 1) for each in variable.splitlines())
    environment = {f"ODRADEK_{name}": text for name, text in variables.items()}
    options = (option,) if option else ()
    config = resolve(file, name="server.properties", folder=tmp_path, options=options, **environment)
    found = {"log_dirs": config.log_dirs, "node_id": config.node_id, **attrs.asdict(TopicConfig.resolve(config))}

    assert {name: found[name] for name in wanted} == wanted


def test_the_last_option_of_a_key_counts() -> None:
    assert resolve(options=("num.partitions=4", "num.partitions=5")).get_int("num.partitions") == 5


def test_dynamic_layers_win_over_static_ones_and_fall_back() -> None:
    static = resolve(options=("message.max.bytes=10",))
    config = static.with_dynamic(cluster={"message.max.bytes": "20"}, broker={"message.max.bytes": "30"})

    assert [(s.text, s.source) for s in config.layers("message.max.bytes")] == [
        ("30", ConfigSource.DYNAMIC_BROKER),
        ("20", ConfigSource.DYNAMIC_DEFAULT_BROKER),
        ("10", ConfigSource.STATIC_BROKER),
        ("1048588", ConfigSource.DEFAULT),
    ]
    assert config.get_int("message.max.bytes") == 30
    assert static.get_int("message.max.bytes") == 10


def test_a_dynamic_value_of_another_version_gives_way_to_the_next_layer() -> None:
    config = resolve().with_dynamic(cluster={"message.max.bytes": "20"}, broker={"message.max.bytes": "much"})

    assert config.get_int("message.max.bytes") == 20


@pytest.mark.parametrize(
    ("variable", "name"),
    [
        ("ODRADEK_NUM_PARTITIONS", "num.partitions"),
        ("ODRADEK_LOG_DIRS", "log.dirs"),
        ("ODRADEK_ODRADEK_STORAGE", "odradek.storage"),
        ("ODRADEK_STORAGE", "odradek.storage"),
        ("ODRADEK_PRODUCE_VALIDATION", "odradek.produce.validation"),
    ],
)
def test_a_variable_names_its_key(variable: str, name: str) -> None:
    text = {"num.partitions": "3", "odradek.produce.validation": "full"}.get(name, "memory")
    read = read_settings(environment={variable: text})
    config = read.resolve(builtin_registry(), data_dir=DATA)

    assert config.is_set(name)
    assert config.where(name) == f"environment variable {variable}"


def test_no_two_keys_share_a_variable() -> None:
    from odradek.kernel.config.keys import Scope

    names = builtin_registry().keys[Scope.BROKER]

    assert len({name.upper().replace(".", "_") for name in names}) == len(names)


def test_variables_that_are_no_settings_are_left_alone() -> None:
    resolve(
        ODRADEK_PEERS="/somewhere",
        ODRADEK_PORT="tcp://10.0.0.1:9092",
        ODRADEK_PORT_9092_TCP_ADDR="10.0.0.1",
        ODRADEK_SERVICE_HOST="10.0.0.1",
        PATH="/bin",
    )


def test_broker_id_and_node_id_stand_for_each_other() -> None:
    assert resolve(options=("broker.id=7",)).node_id == 7
    assert resolve(options=("node.id=7",)).get_int("broker.id") == 7
    assert resolve(options=("node.id=7", "broker.id=7")).node_id == 7


def test_kafkas_own_server_properties_is_read_as_it_is(tmp_path: Path) -> None:
    text = """\
# Licensed to the Apache Software Foundation
process.roles=broker,controller
node.id=1
controller.quorum.bootstrap.servers=localhost:9093
listeners=PLAINTEXT://:9092,CONTROLLER://:9093
inter.broker.listener.name=PLAINTEXT
advertised.listeners=PLAINTEXT://localhost:9092,CONTROLLER://localhost:9093
controller.listener.names=CONTROLLER
listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_PLAINTEXT:SASL_PLAINTEXT
num.network.threads=3
num.io.threads=8
socket.send.buffer.bytes=102400
socket.receive.buffer.bytes=102400
socket.request.max.bytes=104857600
log.dirs=/tmp/kraft-combined-logs
num.partitions=1
num.recovery.threads.per.data.dir=1
offsets.topic.replication.factor=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
#log.flush.interval.messages=10000
log.retention.hours=168
log.segment.bytes=1073741824
log.retention.check.interval.ms=300000
"""
    config = resolve(text, name="server.properties", folder=tmp_path)
    warned = {line.split(": ", 1)[1].split(" ", 1)[0] for line in config.warnings()}

    assert config.log_dirs == ("/tmp/kraft-combined-logs",)
    assert config.where("log.dirs") == f"{tmp_path / 'server.properties'}, line 15"
    assert "num.io.threads" in warned
    assert not {"log.segment.bytes", "log.retention.hours"} & warned


def test_a_key_of_a_part_that_is_not_built_earns_one_line() -> None:
    config = resolve(options=("group.share.max.size=7",))

    assert config.warnings() == [
        "--set group.share.max.size: group.share.max.size "
        "belongs to share groups, which are not built yet; it has no effect"
    ]
    assert config.get_int("group.share.max.size") == 7


WRONG_TOML = {
    '[broker]\n\n"num.partition" = 1\n': ("line 3", "unknown broker key 'num.partition'", "num.partitions"),
    '[broker]\n"no.such" = 1\n': ("line 2", "unknown broker key 'no.such'", "odradek config describe lists them"),
    '[broker]\n"num.partitions" = "x"\n': ("line 2", "Not a number of type INT", ""),
    '[broker]\n"num.partitions" = 0\n': ("line 2", "Value must be at least 1", ""),
    "[broker]\nnum.partitions = 0\n": ("line 2", "Value must be at least 1", ""),
    '[broker]\n"node.id" = 1.5\n': ("line 2", "Not a number of type INT", ""),
    '[broker]\n"log.dirs" = [[1]]\n': ("line 2", "must be a text, a number, a boolean or a list of texts", ""),
    '[broker]\n"log.dirs" = 1979-05-27\n': ("line 2", "not a date", ""),
    '[broker]\n"create.topic.policy.class.name" = "a.B"\n': ("line 2", "a Java policy cannot run here", ""),
    '"num.partitions" = 1\n': ("line 1", "unknown section or key 'num.partitions'", "[broker]"),
    "[brokers]\n": ("line 1", "unknown section or key 'brokers'", "[broker]"),
    "broker = 1\n": ("line 1", "broker must be a table", "[broker]"),
    "[plugins]\nenable = 3\n": ("line 2", "plugins.enable must be a list of texts", ""),
    "[plugins]\ndelay = 3\n": ("line 2", "plugins.delay must be a table", "[plugins.delay]"),
    "[topics]\norders = 3\n": ("line 2", "topics.orders must be a table", ""),
    "[topics.orders]\npartitions = 0\n": ("line 2", "partitions must be a whole number of at least 1", ""),
    '[topics.orders]\n"retention.ms" = -7\n': ("line 2", "Value must be at least -1", ""),
    '[topics.orders]\n"log.retention.ms" = 1\n': ("line 2", "the topic's is 'retention.ms'", ""),
    '[topics."a.b"]\n"retention.ms" = -7\n': ("line 2", "Value must be at least -1", ""),
    "[broker\n": ("", "not TOML", ""),
}


@pytest.mark.parametrize("text", WRONG_TOML)
def test_a_wrong_file_is_refused_with_its_line(tmp_path: Path, text: str) -> None:
    line, what, hint = WRONG_TOML[text]
    with pytest.raises(ConfigError) as refusal:
        resolve(text, folder=tmp_path)

    assert what in refusal.value.message
    assert hint in refusal.value.hint
    assert refusal.value.where == ", ".join(part for part in (str(tmp_path / "odradek.toml"), line) if part)


@pytest.mark.parametrize(
    ("option", "what"),
    [
        ("num.partitions", "expected key=value"),
        ("=4", "expected key=value"),
        ("num.partitions=", "Not a number of type INT"),
        ("acks=all", "unknown broker key 'acks'"),
        ("log.cleaner.enable=maybe", "Expected value to be either true or false"),
        ("process.roles=controller", "process.roles=controller needs to know the controller"),
        ("log.retention.hours=0", "must be unlimited (-1)"),
        ("queued.max.request.bytes=5", "must be -1 or at least socket.request.max.bytes"),
        ("max.connections.per.ip=0", "can be 0 only where"),
        ("offsets.topic.compression.codec=5", "Unknown compression type id: 5"),
        ("max.connections.per.ip.overrides=here", "is not ADDRESS:COUNT"),
        ("log.cleaner.max.compaction.lag.ms=1", ""),
        ("log.cleaner.min.compaction.lag.ms=99999999999999", ""),
    ],
)
def test_a_wrong_option_is_refused_by_name(option: str, what: str) -> None:
    if not what:
        resolve(options=(option,))  # one alone is fine
        return
    with pytest.raises(ConfigError) as refusal:
        resolve(options=(option,))

    assert what in refusal.value.message
    key, equals, _ = option.partition("=")
    assert refusal.value.where == f"--set {key if key and equals else option}"


def test_a_secret_on_the_command_line_is_not_repeated_in_a_warning() -> None:
    (line,) = resolve(options=("sasl.jaas.config=hunter2",)).warnings()

    assert "hunter2" not in line
    assert line.startswith("--set sasl.jaas.config: ")


def test_settings_that_contradict_each_other_are_refused() -> None:
    with pytest.raises(ConfigError, match=r"broker\.id is 1 and node\.id is 2"):
        resolve(options=("broker.id=1", "node.id=2"))
    with pytest.raises(ConfigError, match="compaction"):
        resolve(options=("log.cleaner.max.compaction.lag.ms=1", "log.cleaner.min.compaction.lag.ms=2"))


@pytest.mark.parametrize(
    ("options", "what"),
    [
        ("log.roll.ms=0", "log.roll.ms must be greater than or equal to 1"),
        ("log.roll.jitter.ms=-1", "log.roll.jitter.ms must be greater than or equal to 0"),
        ("log.cleaner.threads=0", "log.cleaner.threads must be greater than or equal to 1"),
        (
            "log.cleaner.threads=2 log.cleaner.dedupe.buffer.size=2097152",
            "log.cleaner.dedupe.buffer.size must be at least 1MB per cleaner thread",
        ),
        *(
            (
                f"log.cleaner.io.buffer.load.factor={factor}",
                "log.cleaner.io.buffer.load.factor must be above 0, and 1 at most",
            )
            for factor in ("0", "-0.5", "1.01", "NaN", "Infinity")
        ),
        (
            "connections.max.idle.ms=100",
            "connection.failed.authentication.delay.ms=100 should always be less than connections.max.idle.ms=100",
        ),
        (
            "group.consumer.session.timeout.ms=1",
            "group.consumer.session.timeout.ms must be greater than or equal to group.consumer.min.session.timeout.ms",
        ),
        (
            "group.consumer.min.session.timeout.ms=60001",
            "group.consumer.max.session.timeout.ms must be greater than or equal to "
            "group.consumer.min.session.timeout.ms",
        ),
        (
            "group.consumer.heartbeat.interval.ms=15001",
            "group.consumer.heartbeat.interval.ms must be less than or equal to "
            "group.consumer.max.heartbeat.interval.ms",
        ),
        (
            "group.consumer.heartbeat.interval.ms=45000 group.consumer.max.heartbeat.interval.ms=45000",
            "group.consumer.heartbeat.interval.ms must be less than group.consumer.session.timeout.ms",
        ),
        (
            "group.consumer.max.assignment.interval.ms=999",
            "group.consumer.assignment.interval.ms must be less than or equal to "
            "group.consumer.max.assignment.interval.ms",
        ),
    ],
)
def test_what_cannot_stand_together_is_refused_in_kafkas_words_where_it_has_any(options: str, what: str) -> None:
    with pytest.raises(ConfigError) as refusal:
        resolve(options=tuple(options.split()))

    assert refusal.value.message == what
    assert refusal.value.where.removeprefix("--set ") in options


def test_limits_that_kafka_starts_with_are_taken() -> None:
    config = resolve(
        options=(
            "log.roll.ms=1",
            "log.cleaner.threads=2",
            "log.cleaner.dedupe.buffer.size=2097154",
            "log.cleaner.io.buffer.load.factor=1",
            "connections.max.idle.ms=-1",
            "group.consumer.min.session.timeout.ms=6000",
            "group.consumer.session.timeout.ms=6000",
        )
    )

    assert config.get_int("group.consumer.session.timeout.ms") == 6000


def test_what_a_list_repeats_counts_once(tmp_path: Path) -> None:
    """As Apache Kafka 4.3.1 starts with it."""
    text = '[broker]\n"log.cleanup.policy" = "delete, delete"\n[topics.t]\n"cleanup.policy" = "compact,compact"\n'
    config = resolve(text, folder=tmp_path, options=("log.dirs=/a,/b,/a",))

    assert config.log_dirs == ("/a", "/b")
    assert config.get_list("log.cleanup.policy") == ("delete",)


def test_an_unknown_variable_is_refused_by_name() -> None:
    with pytest.raises(ConfigError) as refusal:
        resolve(ODRADEK_NUM_PARTITION="1")

    assert refusal.value.where == "environment variable ODRADEK_NUM_PARTITION"
    assert "num.partitions" in refusal.value.hint


def test_a_file_that_cannot_be_read_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot read the configuration: No such file"):
        read_settings(config=tmp_path / "none.toml")
    broken = tmp_path / "latin.toml"
    broken.write_bytes(b"# \xe9")
    with pytest.raises(ConfigError, match="not UTF-8"):
        read_settings(config=broken)


def test_a_byte_order_mark_is_no_part_of_the_configuration(tmp_path: Path) -> None:
    file = tmp_path / "odradek.toml"
    file.write_text('[broker]\n"num.partitions" = 3\n', encoding="utf-8-sig")

    assert read_settings(config=file).resolve(builtin_registry(), data_dir=DATA).get_int("num.partitions") == 3


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "latin-1"])
def test_kafkas_file_may_be_written_in_any_of_these_encodings(tmp_path: Path, encoding: str) -> None:
    file = tmp_path / "server.properties"
    file.write_bytes("broker.rack=Zürich\n".encode(encoding))

    assert read_settings(config=file).resolve(builtin_registry(), data_dir=DATA).get_text("broker.rack") == "Zürich"


def test_plugins_and_topics_come_from_the_file(tmp_path: Path) -> None:
    file = tmp_path / "odradek.toml"
    file.write_text(
        """
[plugins]
enable = ["my.plugin"]
disable = ["storage_memory"]

[plugins.delay]
levels = ["5s", "10s"]

[topics.orders]
partitions = 6
"replication.factor" = 1
"retention.ms" = 86400000
"cleanup.policy" = ["compact", "delete"]

[topics.clicks]
"""
    )
    read = read_settings(config=file).file
    orders, clicks = read.topics

    assert read.enable == ("my.plugin",)
    assert read.disable == ("storage_memory",)
    assert read.plugins == {"delay": {"levels": ["5s", "10s"]}}
    assert (orders.name, orders.partitions, orders.replication_factor) == ("orders", 6, 1)
    assert {name: setting.text for name, setting in orders.configs.items()} == {
        "retention.ms": "86400000",
        "cleanup.policy": "compact,delete",
    }
    assert (clicks.partitions, clicks.configs, clicks.where) == (None, {}, f"{file}, line 15")


def test_listen_options_set_listeners_and_what_is_advertised() -> None:
    texts = {name: s.text for name, s in listen_settings(["127.0.0.1:0", "[::1]:9093", "0.0.0.0:9094"]).items()}

    assert texts["listeners"] == "PLAINTEXT://127.0.0.1:0,PLAINTEXT2://[::1]:9093,PLAINTEXT3://:9094"
    assert texts["advertised.listeners"] == texts["listeners"]
    assert texts["listener.security.protocol.map"] == "PLAINTEXT:PLAINTEXT,PLAINTEXT2:PLAINTEXT,PLAINTEXT3:PLAINTEXT"
    assert listen_settings([]) == {}


@pytest.mark.parametrize("address", ["9092", "host:", "host:x", "host:70000", ""])
def test_a_wrong_listen_option_is_refused(address: str) -> None:
    with pytest.raises(ConfigError, match="expected HOST:PORT"):
        listen_settings([address])


def test_data_goes_to_the_users_data_directory() -> None:
    home = Path("/home/me")

    assert default_data_dir({}, home) == Path("/home/me/.local/share/odradek")
    assert default_data_dir({"XDG_DATA_HOME": "/x"}, home) == Path("/x/odradek")
    assert default_data_dir({"XDG_DATA_HOME": "relative"}, home) == Path("/home/me/.local/share/odradek")

"""DescribeConfigs, AlterConfigs, IncrementalAlterConfigs, ListConfigResources."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .discovery import BAD_NAMES

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from ..conversation import Conversation, Fields

_UNKNOWN, _TOPIC, _BROKER, _LOGGER, _CLIENT_METRICS, _GROUP = 0, 2, 4, 8, 16, 32
_SET, _DELETE, _APPEND, _SUBTRACT = range(4)

OF_THE_MACHINE = frozenset(
    {
        "advertised.listeners",
        "broker.id",
        "controller.listener.names",
        "controller.quorum.voters",
        "listener.security.protocol.map",
        "listeners",
        "log.dir",
        "log.dirs",
        "node.id",
        "offsets.topic.replication.factor",
        "process.roles",
        "share.coordinator.state.topic.min.isr",
        "share.coordinator.state.topic.replication.factor",
        "transaction.state.log.min.isr",
        "transaction.state.log.replication.factor",
    }
)
"""Broker configs that the folder of peers sets for Kafka, or that say where it runs: left out of the comparison."""


def _describe(kind: int, name: str, keys: Sequence[str] | None = None, **more: Any) -> Fields:
    return {"resources": [{"resource_type": kind, "resource_name": name, "configuration_keys": keys}], **more}


def describe_topic_configs(talk: Conversation) -> None:
    """DescribeConfigs of topics."""
    plain = talk.create("plain")
    changed = talk.create("changed", configs={"retention.ms": "1000", "cleanup.policy": "compact,delete"})
    for version in range(1, 5):
        talk.ask("DescribeConfigs", version, _describe(_TOPIC, plain), note="all of a topic")
    fields = _describe(_TOPIC, changed, include_synonyms=True, include_documentation=True)
    talk.every("DescribeConfigs", fields, note="all of a changed topic, synonyms, documentation", versions=(1, 3, 4))
    keys = ["retention.ms", "no.such.config", "cleanup.policy", "retention.ms"]
    for what, asked in (("some", keys), ("none", []), ("unknown", ["no.such.config"])):
        fields = _describe(_TOPIC, changed, asked, include_synonyms=True)
        talk.every("DescribeConfigs", fields, note=f"keys: {what}", versions=(1, 2, 4))
    for version in (1, 2, 4):
        talk.ask("DescribeConfigs", version, _describe(_TOPIC, talk.topic("none")), note="unknown topic")
        talk.ask("DescribeConfigs", version, {"resources": []}, note="nothing")
    for what, name in BAD_NAMES.items():
        talk.ask("DescribeConfigs", 4, _describe(_TOPIC, name), note=f"topic name {what}")
    two = [
        {"resource_type": _TOPIC, "resource_name": name, "configuration_keys": ["retention.ms"]}
        for name in (changed, talk.topic("none"), plain, changed)
    ]
    talk.ask("DescribeConfigs", 4, {"resources": two}, note="four topics, one twice, one unknown")
    for kind in (_UNKNOWN, 1, 3, 7, 64, -1):
        talk.ask("DescribeConfigs", 4, _describe(kind, "x"), note=f"resource type {kind}")
    for kind in (_GROUP, _CLIENT_METRICS):
        for name in ("x", ""):
            talk.ask("DescribeConfigs", 4, _describe(kind, name), note=f"resource type {kind}, name {name!r}")


def describe_configs_beside_no_type(talk: Conversation) -> None:
    """DescribeConfigs of a topic beside a resource of a type that does not exist."""
    topic = talk.create("a")
    for kind in (_UNKNOWN, 3, 64):
        resources = [
            {"resource_type": _TOPIC, "resource_name": topic, "configuration_keys": ["retention.ms"]},
            {"resource_type": kind, "resource_name": "x", "configuration_keys": []},
        ]
        talk.every("DescribeConfigs", {"resources": resources}, note=f"resource type {kind}", versions=(1, 4))


def first_wrong_config(talk: Conversation) -> None:
    """Several wrong configs of a topic: which is told."""
    topic = talk.create("a")
    texts = {
        "compression.type": "none",
        "unclean.leader.election.enable": "maybe",
        "min.insync.replicas": "0",
        "max.message.bytes": "-1",
        "preallocate": "",
    }
    for left in range(len(texts)):
        found = dict(list(texts.items())[left:])
        configs = [{"name": name, "value": value} for name, value in found.items()]
        new = {"name": talk.topic(f"b{left}"), "num_partitions": 1, "replication_factor": 1, "configs": configs}
        talk.ask("CreateTopics", 7, {"topics": [new], "timeout_ms": 20000}, note=f"{len(found)} wrong configs")
        talk.ask("AlterConfigs", 2, _alter(_TOPIC, topic, *found.items()), note=f"{len(found)} wrong configs")
        new["configs"] = [*configs, {"name": "nonsense", "value": "1"}]
        talk.ask("CreateTopics", 7, {"topics": [new], "timeout_ms": 20000}, note=f"{len(found)}, an unknown name last")
    nulls = [{"name": name, "value": None} for name in ("retention.ms", "delete.retention.ms")]
    new = {"name": talk.topic("c"), "num_partitions": 1, "replication_factor": 1, "configs": nulls}
    talk.ask("CreateTopics", 7, {"topics": [new], "timeout_ms": 20000}, note="two nulls")


def lists_with_empty_entries(talk: Conversation) -> None:
    """A topic's list set, appended to and subtracted from with nothing between its commas."""
    topic = talk.create("a")
    for operation in (0, 2, 3):
        for text in ("", " ", "compact,", ",compact", "delete,,compact", "compact, ,", "compact,,,"):
            fields = _change(_TOPIC, topic, (operation, "cleanup.policy", text), validate_only=True)
            talk.ask("IncrementalAlterConfigs", 1, fields, note=f"operation {operation} with {text!r}")
    talk.ask("IncrementalAlterConfigs", 1, _change(_TOPIC, topic, (2, "cleanup.policy", ",")), note="append ','")
    talk.ask("DescribeConfigs", 4, _describe(_TOPIC, topic, ["cleanup.policy"]), note="afterwards")


def describe_broker_configs(talk: Conversation) -> None:
    """DescribeConfigs of brokers."""
    for version, more in ((1, False), (4, True)):
        fields = _describe(_BROKER, "1", include_synonyms=more, include_documentation=more)
        answer = talk.quietly("DescribeConfigs", version, fields)
        for result in answer["results"]:
            result["configs"] = [config for config in result["configs"] if config["name"] not in OF_THE_MACHINE]
        talk.note_answer("DescribeConfigs", version, "all of the broker", answer)
    keys = ["num.partitions", "log.retention.ms", "log.retention.hours", "no.such.config", "log.cleaner.threads"]
    talk.every("DescribeConfigs", _describe(_BROKER, "1", keys, include_synonyms=True), note="some of the broker")
    for name in ("2", "-1", "01", "x", "1 ", "99999999999"):
        talk.ask("DescribeConfigs", 4, _describe(_BROKER, name, keys), note=f"broker {name!r}")
    talk.ask("DescribeConfigs", 4, _describe(_BROKER, ""), note="the default of all brokers")
    for name in ("2", "", "x"):
        talk.ask("DescribeConfigs", 4, _describe(_LOGGER, name), note=f"loggers of broker {name!r}")
    talk.ask("DescribeConfigs", 4, _describe(_LOGGER, "1", ["no.such.logger"]), note="an unknown logger")


def _alter(kind: int, name: str, *configs: tuple[str, str | None], **more: Any) -> Fields:
    values = [{"name": key, "value": value} for key, value in configs]
    return {"resources": [{"resource_type": kind, "resource_name": name, "configs": values}], **more}


def _show(talk: Conversation, kind: int, name: str, note: str, keys: Iterable[str]) -> None:
    talk.settle()
    fields = _describe(kind, name, list(keys), include_synonyms=True)
    talk.ask("DescribeConfigs", 4, fields, note=note)


def alter_configs(talk: Conversation) -> None:
    """AlterConfigs: replaces all configs of a resource."""
    name = talk.create("a", configs={"retention.ms": "1000", "segment.bytes": "2000000"})
    keys = ("retention.ms", "segment.bytes", "cleanup.policy")
    talk.every("AlterConfigs", _alter(_TOPIC, name, ("retention.ms", "7"), validate_only=True), note="validate only")
    _show(talk, _TOPIC, name, "after validating only", keys)
    talk.every("AlterConfigs", _alter(_TOPIC, name, ("retention.ms", "7")), note="one of two")
    _show(talk, _TOPIC, name, "after one of two", keys)
    wrong = _alter(_TOPIC, name, ("retention.ms", "x"), ("cleanup.policy", "compact"))
    talk.every("AlterConfigs", wrong, note="a bad and a good value")
    talk.every("AlterConfigs", _alter(_TOPIC, name, ("no.such.config", "x")), note="unknown config")
    talk.ask("AlterConfigs", 2, _alter(_TOPIC, name, ("retention.ms", None)), note="null value")
    talk.ask("AlterConfigs", 2, _alter(_TOPIC, name, ("retention.ms", "1"), ("retention.ms", "2")), note="one twice")
    talk.ask("AlterConfigs", 2, _alter(_TOPIC, name), note="nothing: back to the defaults")
    _show(talk, _TOPIC, name, "after nothing", keys)
    talk.every("AlterConfigs", _alter(_TOPIC, talk.topic("none"), ("retention.ms", "7")), note="unknown topic")
    talk.ask("AlterConfigs", 2, {"resources": []}, note="no resources")
    for what, bad in BAD_NAMES.items():
        talk.ask("AlterConfigs", 2, _alter(_TOPIC, bad, ("retention.ms", "7")), note=f"topic name {what}")
    for kind in (_UNKNOWN, 1, 64, -1):
        talk.ask("AlterConfigs", 2, _alter(kind, "x", ("retention.ms", "7")), note=f"resource type {kind}")
    for broker in ("2", "x"):
        talk.ask("AlterConfigs", 2, _alter(_BROKER, broker, ("log.cleaner.threads", "1")), note=f"broker {broker!r}")
    talk.ask("AlterConfigs", 2, _alter(_BROKER, "1", ("node.id", "1")), note="a broker's read-only config")
    twice = _alter(_TOPIC, name, ("retention.ms", "7"))["resources"] * 2
    talk.ask("AlterConfigs", 2, {"resources": twice}, note="one resource twice", expects_silence=True)


def _change(kind: int, name: str, *configs: tuple[int, str, str | None], **more: Any) -> Fields:
    values = [{"name": key, "config_operation": operation, "value": value} for operation, key, value in configs]
    return {"resources": [{"resource_type": kind, "resource_name": name, "configs": values}], **more}


def incremental_alter_configs(talk: Conversation) -> None:
    """IncrementalAlterConfigs of topics."""
    name = talk.create("a", configs={"retention.ms": "1000"})
    keys = ("retention.ms", "segment.bytes", "cleanup.policy", "follower.replication.throttled.replicas")

    def change(note: str, *configs: tuple[int, str, str | None], versions: Sequence[int] = (1,)) -> None:
        talk.every("IncrementalAlterConfigs", _change(_TOPIC, name, *configs), note=note, versions=versions)
        _show(talk, _TOPIC, name, f"after: {note}", keys)

    validate = _change(_TOPIC, name, (_SET, "retention.ms", "7"), validate_only=True)
    talk.every("IncrementalAlterConfigs", validate, note="validate only")
    change("set", (_SET, "segment.bytes", "2000000"), versions=(0, 1))
    change("append to a list", (_APPEND, "cleanup.policy", "compact"))
    change("append what is there", (_APPEND, "cleanup.policy", "compact"))
    change("append two", (_APPEND, "cleanup.policy", "delete,compact"))
    change("subtract from a list", (_SUBTRACT, "cleanup.policy", "delete"))
    change("subtract what is not there", (_SUBTRACT, "cleanup.policy", "delete"))
    change("subtract the last", (_SUBTRACT, "cleanup.policy", "compact"))
    change("append nothing", (_APPEND, "cleanup.policy", ""))
    change("append no such value", (_APPEND, "cleanup.policy", "shred"))
    change("append to a number", (_APPEND, "retention.ms", "1"))
    change("delete", (_DELETE, "retention.ms", None))
    change("delete with a value", (_DELETE, "segment.bytes", "5"))
    change("delete what is not set", (_DELETE, "segment.bytes", None))
    change("delete an unknown config", (_DELETE, "no.such.config", None))
    change("set an unknown config", (_SET, "no.such.config", "1"), versions=(0, 1))
    change("set to null", (_SET, "retention.ms", None))
    change("append null", (_APPEND, "cleanup.policy", None))
    change("set to a wrong value", (_SET, "retention.ms", "x"))
    change("set out of range", (_SET, "segment.bytes", "1"))
    change("a good one and a bad one", (_SET, "retention.ms", "5"), (_SET, "segment.bytes", "1"))
    change("one twice", (_SET, "retention.ms", "5"), (_DELETE, "retention.ms", None))
    change("operation 4", (4, "retention.ms", "5"))
    change("operation -1", (-1, "retention.ms", "5"))
    change("nothing")
    change("spaces", (_SET, "retention.ms", " 12 "), (_SET, "cleanup.policy", " compact , delete "))
    change("throttled replicas", (_SET, "follower.replication.throttled.replicas", "0:1,1:1"))
    change("throttled replicas, wrong", (_SET, "follower.replication.throttled.replicas", "x"))
    fields = _change(_TOPIC, talk.topic("none"), (_SET, "retention.ms", "7"))
    talk.every("IncrementalAlterConfigs", fields, note="unknown topic")
    talk.ask("IncrementalAlterConfigs", 1, {"resources": []}, note="no resources")
    for what, bad in BAD_NAMES.items():
        fields = _change(_TOPIC, bad, (_SET, "retention.ms", "7"))
        talk.ask("IncrementalAlterConfigs", 1, fields, note=f"topic name {what}")
    for kind in (_UNKNOWN, 1, 64, -1):
        fields = _change(kind, "x", (_SET, "retention.ms", "7"))
        talk.ask("IncrementalAlterConfigs", 1, fields, note=f"resource type {kind}")
    twice = [*_change(_TOPIC, name, (_SET, "retention.ms", "7"))["resources"]] * 2
    talk.ask("IncrementalAlterConfigs", 1, {"resources": twice}, note="one resource twice")


def incremental_alter_broker_configs(talk: Conversation) -> None:
    """IncrementalAlterConfigs of one broker and of all brokers; everything is undone at the end."""
    keys = ("log.cleaner.threads", "log.segment.bytes", "num.io.threads", "log.retention.bytes")

    def change(note: str, broker: str, *configs: tuple[int, str, str | None]) -> None:
        talk.ask("IncrementalAlterConfigs", 1, _change(_BROKER, broker, *configs), note=f"broker {broker!r}: {note}")
        _show(talk, _BROKER, "1", f"broker 1 after {broker!r}: {note}", keys)

    for broker in ("1", ""):
        change("set", broker, (_SET, "log.retention.bytes", "1000000000"))
        change("set a wrong value", broker, (_SET, "log.retention.bytes", "x"))
        change("set a read-only config", broker, (_SET, "node.id", "1"))
        change("set an unknown config", broker, (_SET, "no.such.config", "1"))
        change("set a topic's config", broker, (_SET, "retention.bytes", "5"))
    _show(talk, _BROKER, "", "the default of all brokers", keys)
    topic = talk.create("a")
    _show(talk, _TOPIC, topic, "a topic, while the brokers have theirs", ["retention.bytes"])
    set_here = ("log.retention.bytes", "no.such.config", "retention.bytes")
    for broker in ("1", ""):
        change("delete", broker, *[(_DELETE, key, None) for key in set_here])
    _show(talk, _TOPIC, topic, "a topic afterwards", ["retention.bytes"])
    for broker in ("2", "x", "-1"):
        change("set", broker, (_SET, "log.retention.bytes", "5"))
    fields = _change(_LOGGER, "1", (_SET, "no.such.logger", "INFO"))
    talk.ask("IncrementalAlterConfigs", 1, fields, note="an unknown logger")
    fields = _change(_LOGGER, "2", (_SET, "root", "INFO"))
    talk.ask("IncrementalAlterConfigs", 1, fields, note="another broker's logger")


def dynamic_thread_pools(talk: Conversation) -> None:
    """IncrementalAlterConfigs of numbers of threads, which may at most double and at most halve at a time."""

    def change(note: str, broker: str, *configs: tuple[int, str, str | None]) -> None:
        talk.ask("IncrementalAlterConfigs", 1, _change(_BROKER, broker, *configs), note=f"broker {broker!r}: {note}")
        _show(talk, _BROKER, "1", f"after {broker!r}: {note}", [key for _, key, _ in configs])

    pools = {  # not num.network.threads: Kafka closes connections when it has fewer
        "num.io.threads": 8,
        "num.replica.fetchers": 1,
        "num.recovery.threads.per.data.dir": 2,
        "background.threads": 10,
        "log.cleaner.threads": 1,
        "remote.log.manager.copier.thread.pool.size": 10,
        "remote.log.manager.expiration.thread.pool.size": 10,
        "remote.log.reader.threads": 10,
    }
    for key, now in pools.items():
        for number in sorted({now // 2 - 1, now // 2, now * 2, now * 2 + 1} - {0, -1}):
            change(f"{key} {number}, as it is {now}", "1", (_SET, key, str(number)))
            change(f"{key} back", "1", (_DELETE, key, None))
    for broker in ("1", ""):
        change("two pools, one too large", broker, (_SET, "num.io.threads", "12"), (_SET, "background.threads", "21"))
        change("grow", broker, (_SET, "num.io.threads", "16"))
        change("grow from there", broker, (_SET, "num.io.threads", "32"))
        change("back from far", broker, (_DELETE, "num.io.threads", None))
        change("back by half", broker, (_SET, "num.io.threads", "16"))
        change("back", broker, (_DELETE, "num.io.threads", None))


def throttle_rates(talk: Conversation) -> None:
    """DescribeConfigs of the rates that reassignments set, which have no default to fall back to."""
    rates = (
        "leader.replication.throttled.rate",
        "follower.replication.throttled.rate",
        "replica.alter.log.dirs.io.max.bytes.per.second",
    )
    _show(talk, _BROKER, "1", "unset", rates)
    for broker in ("", "1"):
        fields = _change(_BROKER, broker, *[(_SET, rate, "1000") for rate in rates])
        talk.ask("IncrementalAlterConfigs", 1, fields, note=f"broker {broker!r}: set")
        _show(talk, _BROKER, "1", f"after broker {broker!r}: set", rates)
        _show(talk, _BROKER, "", f"all brokers after broker {broker!r}: set", rates)
    for broker in ("", "1"):
        fields = _change(_BROKER, broker, *[(_DELETE, rate, None) for rate in rates])
        talk.ask("IncrementalAlterConfigs", 1, fields, note=f"broker {broker!r}: delete")
    _show(talk, _BROKER, "1", "unset again", rates)


def client_metrics_configs(talk: Conversation) -> None:
    """IncrementalAlterConfigs of what metrics clients are asked for."""
    name = talk.topic("asked")

    def change(note: str, *configs: tuple[int, str, str | None]) -> None:
        talk.ask("IncrementalAlterConfigs", 1, _change(_CLIENT_METRICS, name, *configs), note=note)
        _show(talk, _CLIENT_METRICS, name, f"after: {note}", ("metrics", "interval.ms", "match"))

    change("set", (_SET, "metrics", "a.,b."), (_SET, "interval.ms", "60000"), (_SET, "match", "client_id=a.*"))
    for interval in ("99", "100", "3600000", "3600001", "0", "-1", "x"):
        change(f"interval {interval}", (_SET, "interval.ms", interval))
    for match in (
        "client_instance_id=[0-9a-f]+,client_software_name=x,client_software_version=1.*",
        "client_source_address=127.*, client_source_port = 9.* ",
        "client_id",
        "client_id=",
        "=a",
        "client_id=a=b",
        "client_id=a=",
        "no_such_name=a",
        "CLIENT_ID=a",
        "client_id=[",
        "client_id=(?<!a)b",
        "client_id=\\p{L}+",
        "client_id=a++",
        "client_id=a,",
        "client_id=a,client_id=b",
        "client_id=a,x",
        "",
        " ",
    ):
        change(f"match {match!r}", (_SET, "match", match))
    change("append to match", (_APPEND, "match", "client_id=c"))
    change("append what is wrong", (_APPEND, "match", "c"))
    change("subtract from metrics", (_SUBTRACT, "metrics", "a."))
    change("interval and match wrong", (_SET, "match", "x"), (_SET, "interval.ms", "5"))
    change("unknown config and match wrong", (_SET, "match", "x"), (_SET, "no.such.config", "5"))
    change("delete", (_DELETE, "match", None), (_DELETE, "metrics", None), (_DELETE, "interval.ms", None))


def list_config_resources(talk: Conversation) -> None:
    """ListConfigResources."""
    name = talk.create("a")
    talk.ask("ListConfigResources", 0, {}, note="client metrics")
    for what, kinds in (
        ("topics", [_TOPIC]),
        ("brokers", [_BROKER]),
        ("loggers", [_LOGGER]),
        ("client metrics", [_CLIENT_METRICS]),
        ("groups", [_GROUP]),
        ("topics and brokers", [_TOPIC, _BROKER]),
        ("all", []),
        ("unknown", [_UNKNOWN]),
        ("no such type", [77]),
        ("topics and no such type", [_TOPIC, 77]),
    ):
        answer = talk.quietly("ListConfigResources", 1, {"resource_types": kinds})
        found = [e for e in answer["config_resources"] if e["resource_type"] != _TOPIC or e["resource_name"] == name]
        answer["config_resources"] = sorted(found, key=lambda e: (e["resource_type"], e["resource_name"]))
        talk.note("ListConfigResources", 1, what, answer)

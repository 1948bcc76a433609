"""CreateTopics, CreatePartitions, DeleteTopics, DescribeLogDirs, AlterReplicaLogDirs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..batches import batch, records
from ..conversation import NO_ID, UNKNOWN_ID
from .discovery import BAD_NAMES

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ..conversation import Conversation, Fields

_CREATE = range(2, 8)


def _topic(name: str, partitions: int = 1, replicas: int = 1, **more: Any) -> dict[str, Any]:
    return {"name": name, "num_partitions": partitions, "replication_factor": replicas, **more}


def _create(*topics: Mapping[str, Any], **more: Any) -> Fields:
    return {"topics": list(topics), "timeout_ms": 20000, **more}


def _placed(*replicas: Sequence[int], first: int = 0) -> list[dict[str, Any]]:
    return [{"partition_index": first + index, "broker_ids": list(ids)} for index, ids in enumerate(replicas)]


def _config(name: str, value: str | None) -> list[dict[str, Any]]:
    return [{"name": name, "value": value}]


def create_topics(talk: Conversation) -> None:
    """CreateTopics that succeed."""
    for version in _CREATE:
        name = talk.topic(f"v{version}")
        talk.ask("CreateTopics", version, _create(_topic(name, 2), validate_only=True), note="validate only")
        talk.ask("CreateTopics", version, _create(_topic(name, 2)), note="plain")
        talk.ask("CreateTopics", version, _create(_topic(name, 2)), note="again")
        talk.ask("CreateTopics", version, _create(_topic(name, 2), validate_only=True), note="again, validate only")
        name = talk.topic(f"default{version}")
        talk.ask("CreateTopics", version, _create(_topic(name, -1, -1)), note="default partitions and replicas")
        name = talk.topic(f"placed{version}")
        placed = _topic(name, -1, -1, assignments=_placed([1], [1], [1]))
        talk.ask("CreateTopics", version, _create(placed), note="assignments")
        name = talk.topic(f"configs{version}")
        configs = [*_config("retention.ms", "1000"), *_config("cleanup.policy", "compact")]
        talk.ask("CreateTopics", version, _create(_topic(name, configs=configs)), note="configs")
    names = [{"name": talk.topic(f"{kind}7")} for kind in ("default", "placed", "configs")]
    talk.settle()
    for asked in names:
        talk.topic_id(asked["name"])
    talk.ask("Metadata", 12, {"topics": names}, note="the topics afterwards")
    talk.ask("CreateTopics", 7, _create(), note="no topics")
    several = [_topic(talk.topic(f"many{i}")) for i in (3, 1, 2)]
    talk.ask("CreateTopics", 7, _create(*several), note="three topics")
    talk.ask("CreateTopics", 7, {**_create(_topic(talk.topic("slow"))), "timeout_ms": 0}, note="timeout 0")
    talk.ask("CreateTopics", 7, _create(_topic(talk.topic("x" * 200))), note="a long name")
    odd = [
        *_config("retention.ms", " 5 "),
        *_config("cleanup.policy", " compact , delete,compact"),
        *_config("preallocate", " TRUE"),
        *_config("segment.bytes", "0001048577"),
        *_config("min.cleanable.dirty.ratio", ".50"),
    ]
    talk.ask("CreateTopics", 7, _create(_topic(talk.topic("odd"), configs=odd)), note="configs in other words")


def create_topics_refused(talk: Conversation) -> None:
    """CreateTopics that fail."""
    talk.create("old.name")
    wrong: dict[str, Mapping[str, Any]] = {
        "no partitions": _topic(talk.topic("a"), 0),
        "-2 partitions": _topic(talk.topic("a"), -2),
        "no replicas": _topic(talk.topic("a"), 1, 0),
        "-2 replicas": _topic(talk.topic("a"), 1, -2),
        "2 replicas of 1 broker": _topic(talk.topic("a"), 1, 2),
        "32767 replicas": _topic(talk.topic("a"), 1, 32767),
        "10001 partitions": _topic(talk.topic("a"), 10_001),
        "name collides": _topic(talk.topic("old_name")),
        "assignments and partitions": _topic(talk.topic("a"), 1, -1, assignments=_placed([1])),
        "assignments and replicas": _topic(talk.topic("a"), -1, 1, assignments=_placed([1])),
        "assigned to an unknown broker": _topic(talk.topic("a"), -1, -1, assignments=_placed([2])),
        "assigned to a broker twice": _topic(talk.topic("a"), -1, -1, assignments=_placed([1, 1])),
        "assigned to nobody": _topic(talk.topic("a"), -1, -1, assignments=_placed([])),
        "assignments from 1": _topic(talk.topic("a"), -1, -1, assignments=_placed([1], first=1)),
        "assignments twice": _topic(talk.topic("a"), -1, -1, assignments=[*_placed([1]), *_placed([1])]),
        "assignments of several sizes": _topic(talk.topic("a"), -1, -1, assignments=_placed([1], [1, 2])),
        "unknown config": _topic(talk.topic("a"), configs=_config("no.such.config", "1")),
        "config of another kind": _topic(talk.topic("a"), configs=_config("retention.ms", "abc")),
        "config below its minimum": _topic(talk.topic("a"), configs=_config("segment.bytes", "1")),
        "config of no such value": _topic(talk.topic("a"), configs=_config("cleanup.policy", "shred")),
        "null config": _topic(talk.topic("a"), configs=_config("retention.ms", None)),
        "empty config": _topic(talk.topic("a"), configs=_config("retention.ms", "")),
        "config without a name": _topic(talk.topic("a"), configs=_config("", "1")),
        "broker's config": _topic(talk.topic("a"), configs=_config("num.partitions", "1")),
        "removed config": _topic(talk.topic("a"), configs=_config("message.format.version", "3.0")),
        "config twice": _topic(
            talk.topic("twice"), configs=[*_config("retention.ms", "1000"), *_config("retention.ms", "2000")]
        ),
        "retention that contradicts": _topic(
            talk.topic("a"), configs=[*_config("local.retention.ms", "2000"), *_config("retention.ms", "1000")]
        ),
        "compression level of another codec": _topic(talk.topic("a"), configs=_config("compression.gzip.level", "99")),
        "internal name": _topic("__consumer_offsets_x"),
        "metadata's name": _topic("__cluster_metadata"),
        **{f"name {what}": _topic(name) for what, name in BAD_NAMES.items()},
    }
    for what, topic in wrong.items():
        for version in (4, 7):
            talk.ask("CreateTopics", version, _create(topic, validate_only=True), note=what)
    good, bad = _topic(talk.topic("good")), _topic(talk.topic("bad"), 0)
    talk.ask("CreateTopics", 7, _create(bad, good), note="a bad one and a good one")
    talk.ask("CreateTopics", 7, _create(_topic(talk.topic("d")), _topic(talk.topic("d"))), note="one name twice")
    pair = _topic(talk.topic("p.q")), _topic(talk.topic("p_q"))
    talk.ask("CreateTopics", 7, _create(*pair), note="two that collide with each other")
    many = [_topic(talk.topic(f"many-{number}"), 1300) for number in range(8)]
    talk.ask("CreateTopics", 7, _create(*many, validate_only=True), note="10400 partitions in eight topics")


def create_partitions(talk: Conversation) -> None:
    """CreatePartitions."""
    name = talk.create("a", partitions=2)

    def fields(topic: str, count: int, assignments: Sequence[Sequence[int]] | None = None, **more: Any) -> Fields:
        placed = None if assignments is None else [{"broker_ids": list(ids)} for ids in assignments]
        return {"topics": [{"name": topic, "count": count, "assignments": placed}], "timeout_ms": 20000, **more}

    talk.every("CreatePartitions", fields(name, 5, validate_only=True), note="validate only")
    for version in range(4):
        talk.ask("CreatePartitions", version, fields(name, 3 + version), note="one more")
    for count in (6, 5, 0, -1):
        talk.every("CreatePartitions", fields(name, count), note=f"from 6 to {count}", versions=(0, 3))
    for what, placed in (
        ("assigned to an unknown broker", [[2]]),
        ("too many assigned", [[1], [1]]),
        ("none assigned", []),
        ("assigned to nobody", [[]]),
        ("two replicas assigned", [[1, 2]]),
        ("assigned", [[1]]),
    ):
        talk.ask("CreatePartitions", 3, fields(name, 7, placed), note=f"7, {what}")
        talk.settle()
        talk.ask("Metadata", 5, {"topics": [{"name": name}]}, note=f"after 7, {what}")
    talk.every("CreatePartitions", fields(talk.topic("none"), 3), note="unknown topic", versions=(0, 3))
    talk.ask("CreatePartitions", 3, fields("", 3), note="empty name")
    talk.ask("CreatePartitions", 3, fields("a b", 3), note="bad name")
    talk.ask("CreatePartitions", 3, {"topics": [], "timeout_ms": 0}, note="no topics")
    names = [talk.create(f"many-{number}") for number in range(6)]
    many = [{"name": each, "count": 1701, "assignments": None} for each in names]
    fields_of_many = {"topics": many, "timeout_ms": 20000, "validate_only": True}
    talk.ask("CreatePartitions", 3, fields_of_many, note="10200 more in six topics")
    twice = [{"name": name, "count": 9, "assignments": None}, {"name": name, "count": 10, "assignments": None}]
    talk.ask("CreatePartitions", 3, {"topics": twice, "timeout_ms": 20000}, note="one topic twice")
    both = [{"name": talk.topic("none"), "count": 9}, {"name": name, "count": 9}]
    topics = [{**topic, "assignments": None} for topic in both]
    talk.ask("CreatePartitions", 3, {"topics": topics, "timeout_ms": 20000}, note="unknown and known topic")


def delete_topics(talk: Conversation) -> None:
    """DeleteTopics, by name and by id."""
    for version in range(1, 7):
        name = talk.create(f"v{version}")
        by_name = {"topic_names": [name], "topics": [{"name": name, "topic_id": NO_ID}], "timeout_ms": 20000}
        talk.topic_id(name)
        talk.ask("DeleteTopics", version, by_name, note="by name")
        talk.ask("DeleteTopics", version, by_name, note="by name, again")
        wrong = {"topic_names": ["a b", ""], "topics": [{"name": "a b"}, {"name": ""}], "timeout_ms": 1000}
        talk.ask("DeleteTopics", version, wrong, note="bad names")
        nothing: Fields = {"topic_names": [], "topics": [], "timeout_ms": 1000}
        talk.ask("DeleteTopics", version, nothing, note="no topics")
    name = talk.create("by-id")
    topic_id = talk.topic_id(name)

    def ask(note: str, *topics: Mapping[str, Any]) -> None:
        talk.ask("DeleteTopics", 6, {"topics": list(topics), "timeout_ms": 20000}, note=note)

    ask("unknown id", {"name": None, "topic_id": UNKNOWN_ID})
    ask("neither name nor id", {"name": None, "topic_id": NO_ID})
    ask("name and id", {"name": name, "topic_id": topic_id})
    ask("name and unknown id", {"name": name, "topic_id": UNKNOWN_ID})
    ask("twice by id", {"name": None, "topic_id": topic_id}, {"name": None, "topic_id": topic_id})
    ask("by name and by id", {"name": name, "topic_id": NO_ID}, {"name": None, "topic_id": topic_id})
    ask("twice by name", {"name": name, "topic_id": NO_ID}, {"name": name, "topic_id": NO_ID})
    ask("by id", {"name": None, "topic_id": topic_id})
    ask("by id, again", {"name": None, "topic_id": topic_id})
    again = talk.create("by-id")
    talk.ask("Metadata", 12, {"topics": [{"name": None, "topic_id": topic_id}]}, note="the deleted one by id")
    new_id = talk.quietly("Metadata", 12, {"topics": [{"name": again}]})["topics"][0]["topic_id"]
    talk.note("Metadata", 12, "a topic of the same name has another id", new_id != topic_id)
    a, b = talk.create("x"), talk.create("y")
    both = {"topic_names": [b, talk.topic("none"), a], "timeout_ms": 20000}
    talk.ask("DeleteTopics", 5, both, note="two known and an unknown", own="responses")
    talk.ask("DeleteTopics", 1, {"topic_names": [b, b], "timeout_ms": 20000}, note="unknown twice")
    late = talk.create("late")
    late_id = talk.topic_id(late)
    for timeout_ms in (0, -1):
        for what, topics in (
            ("neither name nor id", [{"name": None, "topic_id": NO_ID}]),
            ("name and id", [{"name": late, "topic_id": late_id}]),
            ("name and id, then an unknown name", [{"name": late, "topic_id": late_id}, {"name": talk.topic("none")}]),
            ("twice by id", [{"name": None, "topic_id": late_id}] * 2),
            ("unknown id", [{"name": None, "topic_id": UNKNOWN_ID}]),
            ("by name", [{"name": late, "topic_id": NO_ID}]),
            ("no topics", []),
        ):
            fields = {"topics": topics, "timeout_ms": timeout_ms}
            talk.ask("DeleteTopics", 6, fields, note=f"{what}, timeout {timeout_ms}", own="responses")


def delete_topics_by_both(talk: Conversation) -> None:
    """DeleteTopics by name and id at once, beside the same topic by one of them."""
    for what in ("name", "id", "both"):
        name = talk.create(what)
        topic_id = talk.topic_id(name)
        again = {
            "name": {"name": name, "topic_id": NO_ID},
            "id": {"name": None, "topic_id": topic_id},
            "both": {"name": name, "topic_id": topic_id},
        }
        topics = [{"name": name, "topic_id": topic_id}, again[what]]
        answer = talk.quietly("DeleteTopics", 6, {"topics": topics, "timeout_ms": 20000})
        answer["responses"].sort(key=lambda found: int(found["error_code"]))  # Kafka shuffles them
        talk.note_answer("DeleteTopics", 6, f"by both, and by {what}", answer)


def move_logs_of_long_names(talk: Conversation) -> None:
    """AlterReplicaLogDirs of topics whose names leave no room for what a copy's directory is called."""
    here = talk.quietly("DescribeLogDirs", 4, {"topics": []})["results"][0]["log_dir"]
    for length in (213, 214, 249):
        name = talk.create("x" * (length - len(talk.topic(""))))
        for what, path in (("where it is", here), ("unknown dir", "/nowhere")):
            moves = [{"path": path, "topics": [{"name": name, "partitions": [0]}]}]
            talk.ask("AlterReplicaLogDirs", 2, {"dirs": moves}, note=f"a name of {length} characters, {what}")


def describe_log_dirs(talk: Conversation) -> None:
    """DescribeLogDirs and AlterReplicaLogDirs."""
    name = talk.create("a", partitions=2)
    talk.produce(name, batch(records(b"a", b"b")))
    one = {"topics": [{"topic": name, "partitions": [0]}]}
    talk.every("DescribeLogDirs", one, note="one partition", versions=range(1, 6))
    for what, topics in (
        ("two partitions", [{"topic": name, "partitions": [1, 0]}]),
        ("unknown partition", [{"topic": name, "partitions": [7]}]),
        ("unknown topic", [{"topic": talk.topic("none"), "partitions": [0]}]),
        ("no partitions", [{"topic": name, "partitions": []}]),
        ("no topics", []),
    ):
        talk.ask("DescribeLogDirs", 4, {"topics": topics}, note=what)
    everything = talk.quietly("DescribeLogDirs", 4, {"topics": None})
    for result in everything["results"]:
        result["topics"] = [topic for topic in result["topics"] if topic["name"] == name]
    talk.note_answer("DescribeLogDirs", 4, "all topics", everything)
    for what, path in (("unknown dir", "/nowhere"), ("relative dir", "nowhere"), ("empty dir", "")):
        moves = [{"path": path, "topics": [{"name": name, "partitions": [0, 9]}]}]
        talk.every("AlterReplicaLogDirs", {"dirs": moves}, note=what, versions=(1, 2))
    moves = [{"path": "/nowhere", "topics": [{"name": talk.topic("none"), "partitions": [0]}]}]
    talk.ask("AlterReplicaLogDirs", 2, {"dirs": moves}, note="unknown topic and dir")
    talk.ask("AlterReplicaLogDirs", 2, {"dirs": []}, note="nothing")
    here = talk.quietly("DescribeLogDirs", 4, one)["results"][0]["log_dir"]
    for what, topic, partition in (
        ("where it is", name, 0),
        ("unknown topic", talk.topic("none"), 0),
        ("unknown partition", name, 9),
    ):
        moves = [{"path": here, "topics": [{"name": topic, "partitions": [partition]}]}]
        talk.every("AlterReplicaLogDirs", {"dirs": moves}, note=what, versions=(1, 2))

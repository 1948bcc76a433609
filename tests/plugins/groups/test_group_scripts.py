"""Lives of classic groups and of their offsets, and each wrong turn, as scripts: `datadriven/*.txt`."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from odradek.kernel.api import NO_PRODUCER, ErrorCode, MetadataChange, ProducerIdentity
from odradek.kernel.errors import error_code
from odradek.kernel.wire.messages.data_group_records import (
    GroupMetadataKey,
    GroupMetadataValue,
    OffsetCommitKey,
    OffsetCommitValue,
)
from odradek.plugins.groups.classic.group import ClassicGroup

from .driven import GROUP, DrivenGroups, code_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from odradek.plugins.groups.records import GroupRecord
    from odradek.testing.shard_harness import RecordingWaiter

HOUR_MS = 3_600_000
SCRIPTS = sorted((Path(__file__).parent / "datadriven").glob("*.txt"))


class Script:
    """Runs the commands of a script; see the head of `datadriven/life.txt` for what they are."""

    def __init__(self) -> None:
        self.driven = DrivenGroups({"group.initial.rebalance.delay.ms": 0})
        self.seen_records = 0
        self.waiting: list[tuple[str, str, RecordingWaiter]] = []

    def run(self, line: str) -> list[str]:
        command, *words = line.split()
        named = dict(word.split("=", 1) for word in words if "=" in word)
        plain = [word for word in words if "=" not in word]
        told = [f"  {text}" for text in getattr(self, command)(*plain, **named)]
        told += [f"  log {self.record(record)}" for record in self.driven.harness.records[self.seen_records :]]
        self.seen_records = len(self.driven.harness.records)
        done = [entry for entry in self.waiting if entry[2].is_done]
        self.waiting = [entry for entry in self.waiting if entry not in done]
        for name, kind, waiter in done:
            if kind == "join" and waiter.error is None:
                self.driven.learn(name, waiter.response)
        told += [f"  {name} {getattr(self, f'{kind}_answer')(waiter)}" for name, kind, waiter in done]
        return told

    # Commands: each returns what was answered at once.

    def set(self, **settings: str) -> list[str]:
        for name, value in settings.items():
            self.driven.broker.config.set(name, int(value))
        return []

    def join(self, name: str, **options: str) -> list[str]:
        fields: dict[str, Any] = {}
        for option, value in options.items():
            if option in ("version", "session", "rebalance"):
                fields[option if option == "version" else f"{option}_ms"] = int(value)
            elif option == "protocols":
                fields[option] = {
                    protocol: topics.split("+") if topics else []
                    for protocol, _, topics in (item.partition(":") for item in value.split(",") if item)
                }
            else:
                key = {"id": "member_id", "instance": "instance_id", "type": "protocol_type"}[option]
                fields[key] = self.driven.member_ids.get(value, value)
        self.waiting.append((name, "join", self.driven.join(name, **fields)))
        return []

    def sync(self, name: str, generation: str, *, instance: str | None = None, **assignments: str) -> list[str]:
        protocol = assignments.pop("protocol", None)
        shares = {other: share.encode() for other, share in assignments.items()}
        waiter = self.driven.sync(name, int(generation), shares, instance_id=instance, protocol=protocol)
        self.waiting.append((name, "sync", waiter))
        return []

    def heartbeat(self, name: str, generation: str, *, instance: str | None = None) -> list[str]:
        return [self.driven.heartbeat(name, int(generation), instance_id=instance).name]

    def leave(self, *names: str, instance: str | None = None) -> list[str]:
        waiter = self.driven.leave(*([(name, instance) for name in names] or [("", instance)]))
        if waiter.error is not None:
            return [waiter.error_code.name]
        return [error_code(member.error_code).name for member in waiter.response.members]

    def commit(self, *words: str, **options: str) -> list[str]:
        """Commit `topic-partition=offset ...` as a member, if `by=` one, within a generation, if `in=` one."""
        offsets: dict[str, dict[int, int]] = {}
        for where in [option for option in options if re.fullmatch(r"\w+-\d+", option)]:
            topic, _, partition = where.rpartition("-")
            offsets.setdefault(topic, {})[int(partition)] = int(options.pop(where))
        producer = producer_of(options.pop("producer")) if "producer" in options else NO_PRODUCER
        waiter = self.driven.commit(
            offsets,
            name=options.pop("by", ""),
            generation=int(options.pop("in", "-1")),
            version=int(options.pop("version", "8")),
            retention_ms=int(options.pop("retention", "-1")),
            metadata="x" * int(options.pop("metadata", "0")),
            instance_id=options.pop("instance", None),
            producer=producer,
        )
        assert not options
        if waiter.error is not None:
            return [waiter.error_code.name]
        return [" ".join(code.name for codes in waiter.response for code in codes)]

    def fetch(self, *words: str) -> list[str]:
        found = self.driven.fetch(requires_stable="stable" in words)
        return [
            f"{topic}-{partition} {value.name if isinstance(value, ErrorCode) else value}"
            for topic, partitions in sorted(found.items())
            for partition, value in sorted(partitions.items())
        ]

    def end(self, producer: str, how: str) -> list[str]:
        self.driven.harness.end_transaction(producer_of(producer), is_commit=how == "commit")
        return []

    def forget(self, *words: str) -> list[str]:
        topics = [(word.rpartition("-")[0], [int(word.rpartition("-")[2])]) for word in words]
        waiter = self.driven.harness.run(lambda shard, _: shard.offsets.delete(GROUP, topics))
        if waiter.error is not None:
            return [waiter.error_code.name]
        return [code.name for code in waiter.response]

    def gone(self, *topics: str) -> list[str]:
        """Have topics deleted, and the coordinator hear of it."""
        views = tuple(self.driven.broker.cluster.delete(topic) for topic in topics)
        change = MetadataChange(deleted_topics=views)
        self.driven.harness.run(lambda shard, now_ms: shard.metadata_changed(change, now_ms))
        return []

    def delete(self) -> list[str]:
        return [code.name for code in self.driven.harness.run(lambda shard, _: shard.delete_groups([GROUP])).response]

    def group(self) -> list[str]:
        group = self.driven.shard.context.groups.get(GROUP)
        if not isinstance(group, ClassicGroup):
            return ["none"]
        members = " ".join(map(self.named, group.members))
        return [f"{group.state_name} {group.generation_id} leader={self.named(group.leader_id)} [{members}]"]

    def wait(self, duration_ms: str) -> list[str]:
        self.driven.harness.advance(int(duration_ms))
        return []

    def reload(self) -> list[str]:
        self.driven.harness.reload()
        return []

    # What is shown.

    def named(self, member_id: str | None) -> str:
        """Return the name of a member; `new` for one that has not been told its id."""
        if member_id is None:
            return "nobody"
        return name if (name := self.driven.named(member_id)) != member_id else "new"

    def join_answer(self, waiter: RecordingWaiter) -> str:
        code = code_of(waiter)
        if code is not ErrorCode.NONE:
            return f"join {code.name}"
        told = waiter.response
        members = " ".join(self.named(member.member_id) for member in told.members)
        skips = " skip" if told.skip_assignment else ""
        return f"joined {told.generation_id} {told.protocol_name} leader={self.named(told.leader)} [{members}]{skips}"

    def sync_answer(self, waiter: RecordingWaiter) -> str:
        code = code_of(waiter)
        return f"sync {code.name}" if code is not ErrorCode.NONE else f"synced {waiter.response.assignment.decode()}"

    def record(self, record: GroupRecord) -> str:
        key, value = record.key, record.value
        if isinstance(key, OffsetCommitKey):
            offset = f"{value.offset}" if isinstance(value, OffsetCommitValue) else "removed"
            return f"{key.topic}-{key.partition} {offset}"
        assert isinstance(key, GroupMetadataKey)
        if not isinstance(value, GroupMetadataValue):
            return "group removed"
        members = " ".join(f"{self.named(member.member_id)}={member.assignment.decode()}" for member in value.members)
        return f"group {value.generation} {value.protocol} leader={self.named(value.leader)} [{members}]"


def producer_of(text: str) -> ProducerIdentity:
    producer_id, epoch = text.split("/")
    return ProducerIdentity(int(producer_id), int(epoch))


def play(lines: Sequence[str], jump_ms: int = 0) -> list[str]:
    """Return a script with what came of its commands; before each the wall clock jumps, in turn forward and back."""
    told: list[str] = []
    script = Script()
    for line in lines:
        if line.startswith("  "):
            continue
        told.append(line)
        if line == "# ---":
            script = Script()
        elif re.match(r"[a-z]", line):
            script.driven.harness.now_ms += jump_ms
            jump_ms = -jump_ms
            told += script.run(line)
    return told


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.stem)
def test_a_life_is_answered_as_by_apache_kafka(path: Path) -> None:
    lines = path.read_text().splitlines()

    assert play(lines) == lines


# Offsets expire by the times that were written down with them.
@pytest.mark.parametrize("path", [path for path in SCRIPTS if path.stem != "offsets"], ids=lambda path: path.stem)
def test_a_life_is_the_same_when_the_wall_clock_jumps(path: Path) -> None:
    lines = path.read_text().splitlines()

    assert play(lines, HOUR_MS) == lines

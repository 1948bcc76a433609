"""Lives of groups of the consumer protocol, and each wrong turn, as scripts: `datadriven/*.txt`."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from odradek.kernel.api import ErrorCode
from odradek.kernel.errors import error_code
from odradek.kernel.wire.messages.consumer_protocol import decode_assignment, encode_assignment, new_assignment
from odradek.plugins.groups.classic.group import ClassicGroup
from odradek.plugins.groups.consumer.group import ConsumerGroup
from odradek.plugins.groups.consumer.member import MemberState

from ..driven import GROUP, code_of
from .driven_consumers import DrivenConsumers

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from odradek.plugins.groups.records import GroupRecord
    from odradek.testing.shard_harness import RecordingWaiter

HOUR_MS = 3_600_000
SCRIPTS = sorted((Path(__file__).parent / "datadriven").glob("*.txt"))


def owned_of(text: str) -> dict[str, list[int]]:
    """Read `t:0+1,u:2`."""
    items = (item.partition(":") for item in text.split(",") if item)
    return {topic: [int(part) for part in partitions.split("+") if part] for topic, _, partitions in items}


def shown(partitions: Mapping[str, Sequence[int]]) -> str:
    """Write what `owned_of` reads."""
    return ",".join(f"{topic}:{'+'.join(map(str, partitions[topic]))}" for topic in sorted(partitions)) or "nothing"


class Script:
    """Runs the commands of a script; see the head of `datadriven/life.txt` for what they are."""

    def __init__(self) -> None:
        self.driven = DrivenConsumers()
        self.epochs: dict[str, int] = {}
        self.seen_records = 0
        self.waiting: list[tuple[str, RecordingWaiter]] = []

    def run(self, line: str) -> list[str]:
        command, *words = line.split()
        named = dict(word.split("=", 1) for word in words if "=" in word)
        plain = [word for word in words if "=" not in word]
        told = [f"  {text}" for text in getattr(self, command)(*plain, **named)]
        told += [f"  log {self.record(record)}" for record in self.driven.harness.records[self.seen_records :]]
        self.seen_records = len(self.driven.harness.records)
        for name, waiter in [entry for entry in self.waiting if entry[1].is_done]:
            told.append(f"  {name} {self.classic_answer(name, waiter)}")
            self.waiting.remove((name, waiter))
        return told

    # ------------------------------------------------------------------------------------------- the consumer protocol

    def enter(self, name: str, **options: str) -> list[str]:
        fields = self.fields(options)
        fields.setdefault("subscribed_topic_names", None if "subscribed_topic_regex" in fields else ["t"])
        return [self.answer(name, self.driven.enter(name, **fields))]

    def beat(self, name: str, *words: str, **options: str) -> list[str]:
        epoch = int(options.pop("epoch", self.epochs.get(name, 1)))
        return [self.answer(name, self.driven.beat(name, epoch, **self.fields(options)))]

    def leave(self, name: str, *words: str, **options: str) -> list[str]:
        epoch = -2 if "for-now" in words else -1
        return [self.answer(name, self.driven.beat(name, epoch, **self.fields(options)))]

    def fields(self, options: Mapping[str, str]) -> dict[str, Any]:
        readers: dict[str, tuple[str, Callable[[str], Any]]] = {
            "topics": ("subscribed_topic_names", lambda text: [name for name in text.split(",") if name]),
            "regex": ("subscribed_topic_regex", str),
            "owned": ("topic_partitions", lambda text: self.driven.partitions(owned_of(text))),
            "instance": ("instance_id", str),
            "assignor": ("server_assignor", str),
            "rack": ("rack_id", str),
            "rebalance": ("rebalance_timeout_ms", int),
            "id": ("member_id", str),
            "version": ("version", int),
        }
        return {readers[option][0]: readers[option][1](value) for option, value in options.items()}

    def answer(self, name: str, waiter: RecordingWaiter) -> str:
        if waiter.error is not None:
            return f"{waiter.error.code.name}: {waiter.error.detail}"
        told = waiter.response
        self.epochs[name] = told.member_epoch
        self.driven.member_ids[name] = told.member_id
        given = "" if told.assignment is None else f" has {shown(self.driven.names(told.assignment.topic_partitions))}"
        return f"epoch {told.member_epoch}{given}"

    # -------------------------------------------------------------------------------------------- the classic protocol

    def join(self, name: str, **options: str) -> list[str]:
        waiter = self.driven.join_classic(
            name,
            options.get("topics", "t").split(","),
            owned=owned_of(options.get("owned", "")),
            instance_id=options.get("instance"),
            version=int(options.get("version", "9")),
            metadata=bytes.fromhex(options["metadata"]) if "metadata" in options else None,
        )
        self.waiting.append((name, waiter))
        return []

    def sync(self, name: str, **shares: str) -> list[str]:
        generation = int(shares.pop("epoch", self.epochs.get(name, 1)))
        protocol = shares.pop("protocol", None)
        assignments = {other: encode_assignment(new_assignment(owned_of(share))) for other, share in shares.items()}
        self.waiting.append((name, self.driven.sync(name, generation, assignments, protocol=protocol)))
        return []

    def heartbeat(self, name: str, **options: str) -> list[str]:
        generation = int(options.get("epoch", self.epochs.get(name, 1)))
        return [self.driven.heartbeat(name, generation, instance_id=options.get("instance")).name]

    def part(self, *names: str, **options: str) -> list[str]:
        """LeaveGroup."""
        members: list[tuple[str, str | None]] = [(name, None) for name in names]
        members += [("", instance) for instance in options.values()]
        waiter = self.driven.leave(*members)
        return [error_code(member.error_code).name for member in waiter.response.members]

    def classic_answer(self, name: str, waiter: RecordingWaiter) -> str:
        code = code_of(waiter)
        told: Any = waiter.response if waiter.error is None else None
        if code is not ErrorCode.NONE:
            self.driven.member_ids.setdefault(name, getattr(told, "member_id", name) or name)
            return code.name
        if hasattr(told, "generation_id"):
            self.epochs[name] = told.generation_id
            self.driven.learn(name, told)
            leads = " leads" if told.leader == told.member_id else ""
            return f"joined {told.generation_id} {told.protocol_name}{leads}"
        assignment = told.assignment
        given = decode_assignment(assignment).assigned_partitions if assignment else []
        return f"synced {shown({item.topic: item.partitions for item in given})}"

    # --------------------------------------------------------------------------------------------------- offsets, time

    def commit(self, where: str, by: str = "", epoch: str = "-1", version: str = "9") -> list[str]:
        """Commit an offset of `topic-partition`."""
        topic, _, partition = where.rpartition("-")
        waiter = self.driven.commit({topic: {int(partition): 5}}, name=by, generation=int(epoch), version=int(version))
        return [self.failure(waiter) if waiter.error is not None else "committed"]

    def fetch(self, by: str = "", epoch: str = "-1") -> list[str]:
        """Read all offsets."""
        waiter = self.driven.harness.run(
            lambda shard, _: shard.offsets.fetch(
                GROUP,
                None,
                member_id=self.driven.member_ids.get(by, by) or None,
                member_epoch=int(epoch),
                requires_stable=False,
            )
        )
        return [self.failure(waiter) if waiter.error is not None else "fetched"]

    @staticmethod
    def failure(waiter: RecordingWaiter) -> str:
        assert waiter.error is not None
        return f"{waiter.error.code.name}: {waiter.error.detail}"

    def wait(self, duration_ms: str) -> list[str]:
        self.driven.harness.advance(int(duration_ms))
        return []

    def reload(self) -> list[str]:
        self.driven.harness.reload()
        return []

    def set(self, **settings: str) -> list[str]:
        for name, value in settings.items():
            self.driven.broker.config.set(name, int(value) if value.lstrip("-").isdigit() else value)
        return []

    def configure(self, **settings: str) -> list[str]:
        """Set keys of the group."""
        self.driven.group_configs.update(settings)
        return []

    def topic(self, name: str, partitions: str) -> list[str]:
        self.driven.create_topic(name, int(partitions))
        return []

    def drop(self, name: str) -> list[str]:
        self.driven.delete_topic(name)
        return []

    def delete(self) -> list[str]:
        return [code.name for code in self.driven.harness.run(lambda shard, _: shard.delete_groups([GROUP])).response]

    # --------------------------------------------------------------------------------------------------- what is shown

    def group(self) -> list[str]:
        group = self.driven.shard.context.groups.get(GROUP)
        if isinstance(group, ClassicGroup):
            members = " ".join(map(self.driven.named, group.members))
            return [f"classic {group.state_name} {group.generation_id} [{members}]"]
        if not isinstance(group, ConsumerGroup):
            return ["none"]
        told = self.driven.describe()
        lines = [
            f"{told.group_state} epoch {told.group_epoch} assigned {told.assignment_epoch} by {told.assignor_name}"
        ]
        for member in told.members:
            has = shown(self.driven.names(member.assignment.topic_partitions))
            shall = shown(self.driven.names(member.target_assignment.topic_partitions))
            kind = "" if member.member_type else " classic"
            state = group.members[member.member_id].state.name
            name = self.driven.named(member.member_id)
            lines.append(f"{name}{kind} epoch {member.member_epoch} {state} has {has} shall {shall}")
        return lines

    def record(self, record: GroupRecord) -> str:
        kind = type(record.key).__name__.removeprefix("ConsumerGroup").removesuffix("Key")
        name = self.driven.named(getattr(record.key, "member_id", ""))
        text = getattr(self, f"{kind}_text")(record.value) if record.value is not None else "removed"
        return " ".join(part for part in (kind, name, getattr(record.key, "regular_expression", ""), text) if part)

    def Metadata_text(self, value: Any) -> str:  # noqa: N802 # named by the record
        return f"epoch {value.epoch}"

    def MemberMetadata_text(self, value: Any) -> str:  # noqa: N802 # named by the record
        reads = ",".join(value.subscribed_topic_names) or value.subscribed_topic_regex or "nothing"
        kind = " classic" if value.classic_member_metadata is not None else ""
        more = "".join(f" {one}" for one in (value.instance_id, value.rack_id, value.server_assignor) if one)
        return f"reads {reads}{more}{kind}"

    def TargetAssignmentMetadata_text(self, value: Any) -> str:  # noqa: N802 # named by the record
        return f"epoch {value.assignment_epoch}"

    def TargetAssignmentMember_text(self, value: Any) -> str:  # noqa: N802 # named by the record
        return shown(self.driven.names(value.topic_partitions))

    def CurrentMemberAssignment_text(self, value: Any) -> str:  # noqa: N802 # named by the record
        text = f"epoch {value.member_epoch} from {value.previous_member_epoch} {MemberState(value.state).name}"
        has = self.given(value.assigned_partitions)
        revoking = self.given(value.partitions_pending_revocation)
        return f"{text} has {has}" + (f" revoking {revoking}" if revoking != "nothing" else "")

    def given(self, topics: Sequence[Any]) -> str:
        """Show partitions, each with the epoch in which it was given."""
        names = {topic.topic_id: next(iter(self.driven.names([topic]))) for topic in topics}
        return (
            ",".join(
                f"{names[topic.topic_id]}:"
                + "+".join(
                    f"{part}@{epoch}" for part, epoch in zip(topic.partitions, topic.assignment_epochs, strict=True)
                )
                for topic in topics
            )
            or "nothing"
        )

    def RegularExpression_text(self, value: Any) -> str:  # noqa: N802 # named by the record
        return f"matches {','.join(value.topics) or 'nothing'}"

    def GroupMetadata_text(self, value: Any) -> str:  # noqa: N802 # named by the record
        members = " ".join(self.driven.named(member.member_id) for member in value.members)
        return f"generation {value.generation} {value.protocol} [{members}]"

    def OffsetCommit_text(self, value: Any) -> str:  # noqa: N802 # named by the record
        return f"{value.offset}"


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
            if line != "reload":  # nothing but the wall clock outlives a restart
                script.driven.harness.now_ms += jump_ms
                jump_ms = -jump_ms
            told += script.run(line)
    return told


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.stem)
def test_a_consumer_groups_life_is_answered_as_by_apache_kafka(path: Path) -> None:
    lines = path.read_text().splitlines()

    assert play(lines) == lines


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.stem)
def test_a_consumer_groups_life_is_the_same_when_the_wall_clock_jumps(path: Path) -> None:
    lines = path.read_text().splitlines()

    assert play(lines, HOUR_MS) == lines

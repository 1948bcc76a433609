"""Whole lives of transactional ids, and each wrong turn, as scripts: `datadriven/*.txt`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import attrs
import pytest

from odradek.kernel.api import CoordinatorResult, ErrorCode, KafkaError, ProducerIdentity, TopicPartition
from odradek.plugins.transactions.metadata import TransactionMetadata, TransactionRecord
from odradek.plugins.transactions.requests import Answered, MarkersWanted

from .driven import DrivenShard

HOUR_MS = 3_600_000
SCRIPTS = sorted((Path(__file__).parent / "datadriven").glob("*.txt"))


class Script:
    """Runs the commands of a script; see the head of `datadriven/life_v2.txt` for what they are."""

    def __init__(self) -> None:
        self.driven = DrivenShard()
        self.seen_records = 0
        self.shown: list[MarkersWanted] = []

    def run(self, line: str) -> list[str]:
        command, *words = line.split()
        told = [f"  {text}" for text in getattr(self, command)(*words)]
        records = self.driven.harness.records
        told += [
            f"  log  {self.metadata(record.transactional_id, record.metadata)}"
            for record in records[self.seen_records :]
        ]
        self.seen_records = len(records)
        for wanted in self.driven.sent:
            if wanted not in self.shown:
                self.shown.append(wanted)
                end = "commit" if wanted.metadata.is_commit else "abort"
                producer = f"{wanted.metadata.producer_id}/{wanted.metadata.producer_epoch}"
                where = " ".join(map(str, wanted.partitions))
                told.append(f"  send {end} {producer} v{wanted.metadata.client_version} to {where}")
        return told

    def metadata(self, transactional_id: str, metadata: TransactionMetadata | None) -> str:
        if metadata is None:
            return f"{transactional_id} removed"
        text = f"{transactional_id} {metadata.state.text} {metadata.producer_id}/{metadata.producer_epoch}"
        if metadata.next_producer_id >= 0:
            text += f" next {metadata.next_producer_id}"
        return " ".join([text, *map(str, sorted(metadata.partitions))])

    # Commands: each returns what was answered.

    def init(self, transactional_id: str, *words: str) -> list[str]:
        timeout_ms, expected = 60_000, None
        for word in words:
            if word.startswith("timeout="):
                timeout_ms = int(word.removeprefix("timeout="))
            else:
                expected = producer(word)
        return answered(lambda: self.driven.init(transactional_id, timeout_ms=timeout_ms, expected=expected).response)

    def add(self, transactional_id: str, who: str, version: str, *where: str) -> list[str]:
        waiter = self.driven.add(transactional_id, producer(who), *partitions(where), version=int(version[1:]))
        return answered(lambda: waiter.response)

    def verify(self, transactional_id: str, who: str, *where: str) -> list[str]:
        waiter = self.driven.verify(transactional_id, producer(who), *partitions(where))
        if waiter.error is not None:
            return [waiter.error_code.name]
        return [f"{partition} {code.name}" for partition, code in waiter.response.items()]

    def end(self, transactional_id: str, who: str, version: str, how: str) -> list[str]:
        waiter = self.driven.end(transactional_id, producer(who), is_commit=how == "commit", version=int(version[1:]))
        return answered(lambda: waiter.response)

    def written(self, *words: str) -> list[str]:
        """Answer the oldest markers: `written`, `written CODE`, or `written t-0=CODE ...` and NONE for the others."""
        wanted = self.driven.sent[0]
        codes = dict.fromkeys(wanted.partitions, ErrorCode.NONE)
        for word in words:
            name, _, code = word.rpartition("=")
            named = partitions([name]) if name else wanted.partitions
            codes.update(dict.fromkeys(named, ErrorCode[code]))
        self.driven.answered(wanted, codes)
        return []

    def describe(self, transactional_id: str) -> list[str]:
        waiter = self.driven.harness.run(lambda shard, _: shard.describe(transactional_id))
        if waiter.error is not None:
            return [waiter.error_code.name]
        return [self.metadata(transactional_id, waiter.response)]

    def wait(self, duration_ms: str) -> list[str]:
        self.driven.harness.advance(int(duration_ms))
        return []

    def version(self, level: str) -> list[str]:
        self.driven.version = int(level)
        return []

    def ids(self, count: str) -> list[str]:
        self.driven.producer_ids = int(count)
        return []

    def reload(self) -> list[str]:
        self.driven.sent.clear()
        self.driven.harness.reload()
        self.driven.harness.advance(0)
        return []

    def epoch(self, transactional_id: str, epoch: str) -> list[str]:
        """A new producer has this epoch, as if so many had been before."""
        self.driven.init(transactional_id)
        metadata = attrs.evolve(self.driven.metadata(transactional_id), producer_epoch=int(epoch))
        record = TransactionRecord(transactional_id, metadata)
        self.driven.harness.run(lambda _shard, _now_ms: CoordinatorResult([record], None))
        self.seen_records = len(self.driven.harness.records)
        return []


def producer(text: str) -> ProducerIdentity:
    producer_id, epoch = text.split("/")
    return ProducerIdentity(int(producer_id), int(epoch))


def partitions(words: tuple[str, ...] | list[str]) -> list[TopicPartition]:
    return [TopicPartition(topic, int(index)) for topic, index in (word.rsplit("-", 1) for word in words)]


def answered(response: object) -> list[str]:
    assert callable(response)
    try:
        told = response()
    except KafkaError as error:
        return [error.code.name]
    if not isinstance(told, Answered):
        return ["NONE"]
    if told.code:
        return [told.code.name]
    return [f"{told.producer.producer_id}/{told.producer.producer_epoch}"]


def play(lines: Sequence[str], jump_ms: int = 0) -> list[str]:
    """Return a script with what came of its commands; before each the wall clock jumps, in turn forward and back."""
    script = Script()
    told: list[str] = []
    for line in lines:
        if line.startswith("  "):
            continue
        told.append(line)
        if re.match(r"[a-z]", line):
            if line != "reload":  # nothing but the wall clock outlives a restart
                script.driven.harness.now_ms += jump_ms
                jump_ms = -jump_ms
            told += script.run(line)
    return told


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.stem)
def test_a_life_is_answered_as_by_apache_kafka(path: Path) -> None:
    lines = path.read_text().splitlines()

    assert play(lines) == lines


# Its ids expire by the times that were written down with them.
@pytest.mark.parametrize("path", [path for path in SCRIPTS if path.stem != "markers"], ids=lambda path: path.stem)
def test_a_life_is_the_same_when_the_wall_clock_jumps(path: Path) -> None:
    lines = path.read_text().splitlines()

    assert play(lines, HOUR_MS) == lines

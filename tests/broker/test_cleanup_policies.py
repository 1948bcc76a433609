"""Cleanup policies in a broker that serves: what clients may choose and then read, plugins that come and go."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from odradek.kernel.errors import ErrorCode
from odradek.kernel.records.builder import BatchBuilder
from odradek.testing.running_broker import running_broker
from tests.waiting import until

from .broker_process import Client
from .test_cleanup import QUICK, create_with, find_coordinator, size_of
from .test_live_config import TOPIC, alter
from .test_process import create, fetch, produce

SMALL = {
    "internal.segment.bytes": "2000",
    "file.delete.delay.ms": "0",
    "min.cleanable.dirty.ratio": "0.01",
    "odradek.ttl.lag.ms": "0",
}
WITHOUT_CLEANUP = '[plugins]\ndisable = ["cleanup"]\n'


def now_ms() -> int:
    return time.time_ns() // 1_000_000


def put(client: Client, key: bytes | None, value: bytes, headers: Sequence[tuple[str, bytes]] = ()) -> int:
    builder = BatchBuilder()
    builder.append(key, value, timestamp=now_ms(), headers=headers)
    return produce(client, "t", bytes(builder.build()))[0]


def test_compact_and_delete_together_keep_the_newest_of_each_key_and_drop_what_is_old(tmp_path: Path) -> None:
    with running_broker(QUICK, data_dir=tmp_path) as broker, Client(broker.bootstrap) as client:
        assert create_with(client, "t", cleanup_policy="compact,delete", **SMALL)[0] == ErrorCode.NONE
        for number in range(100):
            assert put(client, b"k%d" % (number % 4), b"%099d" % number) == ErrorCode.NONE
        until(lambda: size_of(tmp_path, "t") < 5_000, broker.check)
        values, end = fetch(client, "t")
        assert end == 100
        assert {b"%099d" % number for number in range(96, 100)} <= set(values)
        assert alter(client, TOPIC, "t", "retention.ms", "0") == ErrorCode.NONE
        until(lambda: size_of(tmp_path, "t") == 0, broker.check)
        assert put(client, b"k0", b"again") == ErrorCode.NONE


def test_records_go_when_their_own_time_has_come(tmp_path: Path) -> None:
    with running_broker(QUICK, data_dir=tmp_path) as broker, Client(broker.bootstrap) as client:
        assert create_with(client, "t", cleanup_policy="ttl", **SMALL)[0] == ErrorCode.NONE
        assert put(client, None, b"stays" * 100) == ErrorCode.NONE
        expired = [("odradek.expires.at", b"%d" % (now_ms() - 1))]
        assert put(client, None, b"goes" * 100, expired) == ErrorCode.NONE
        for _ in range(4):
            assert put(client, b"k", b"fills a segment" * 40) == ErrorCode.NONE
        until(lambda: b"goes" * 100 not in fetch(client, "t")[0], broker.check)
        assert fetch(client, "t")[0][0] == b"stays" * 100


def test_a_policy_or_a_setting_that_no_active_plugin_knows_is_refused(tmp_path: Path) -> None:
    config = tmp_path / "odradek.toml"
    config.write_text(WITHOUT_CLEANUP)
    with running_broker(config=config, data_dir=tmp_path / "data") as broker, Client(broker.bootstrap) as client:
        code, message = create_with(client, "t", cleanup_policy="ttl")
        assert code == ErrorCode.INVALID_CONFIG
        assert "Invalid value ttl for configuration cleanup.policy" in message
        assert "others need a plugin that offers them" in message
        code, message = create_with(client, "t", odradek_compaction_strategy="header")
        assert (code, "Unknown topic config name" in message) == (ErrorCode.INVALID_CONFIG, True)
    with running_broker(data_dir=tmp_path / "data") as broker, Client(broker.bootstrap) as client:
        create(client, "t")
        assert alter(client, TOPIC, "t", "cleanup.policy", "newest") == ErrorCode.INVALID_CONFIG
        assert create_with(client, "u", cleanup_policy="compact", odradek_compaction_strategy="header")[0] == (
            ErrorCode.INVALID_CONFIG
        )


def test_a_topic_whose_policy_lost_its_plugin_keeps_everything_and_the_rest_goes_on(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    config = tmp_path / "odradek.toml"
    config.write_text(WITHOUT_CLEANUP)
    data_dir = tmp_path / "data"
    settings = {**QUICK, "log.retention.ms": 1}
    with running_broker(data_dir=data_dir) as broker, Client(broker.bootstrap) as client:
        assert create_with(client, "t", cleanup_policy="compact", **SMALL)[0] == ErrorCode.NONE
        for number in range(40):
            assert put(client, b"k", b"%099d" % number) == ErrorCode.NONE
    with running_broker(settings, config=config, data_dir=data_dir) as broker, Client(broker.bootstrap) as client:
        find_coordinator(client)
        until(lambda: "no active plugin offers the cleanup policy 'compact'" in caplog.text, broker.check)
        assert len(fetch(client, "t")[0]) == 40
        assert put(client, None, b"without a key") == ErrorCode.INVALID_RECORD
        until(lambda: "topic __consumer_offsets: no active plugin" in caplog.text, broker.check)
    with running_broker(QUICK, data_dir=data_dir) as broker, Client(broker.bootstrap) as client:
        until(lambda: len(fetch(client, "t")[0]) < 40, broker.check)

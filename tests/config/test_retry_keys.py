"""What a topic's keys of failed records must fulfil together, when it is made and when they are altered."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from odradek.kernel.config.broker import BrokerConfig
from odradek.kernel.config.registry import Registry
from odradek.kernel.config.settings import read_settings
from odradek.kernel.config.topic import TopicConfig, check_topic
from odradek.kernel.errors import ConfigError, KafkaError
from odradek.kernel.retry.breaker import SPARED_MS_MAX

CONFIG = BrokerConfig(Registry.of())
OWNER = {"odradek.retry.topic": "t", "odradek.retry.group": "g"}
LETTERS = {"odradek.retry.dead.letters.of": "t.g.retry"}


@pytest.mark.parametrize("keys", [OWNER, LETTERS])
def test_both_topics_keep_a_ledger_and_take_no_delayed_records(keys: Mapping[str, str]) -> None:
    check_topic(CONFIG, keys)
    delay = TopicConfig.resolve(CONFIG, keys).delay_settings()

    assert delay is not None
    assert not delay.takes_new


def test_a_topic_without_the_keys_has_neither() -> None:
    config = TopicConfig.resolve(CONFIG, {"odradek.retry.policy": "levels"})

    assert (config.retry_settings(), config.delay_settings()) == (None, None)


@pytest.mark.parametrize(
    ("keys", "told"),
    [
        ({"odradek.retry.topic": "t"}, "go together"),
        ({"odradek.retry.group": "g"}, "go together"),
        ({**OWNER, **LETTERS}, "two topics"),
        ({**OWNER, "cleanup.policy": "compact"}, "cleanup.policy=compact"),
        ({**LETTERS, "cleanup.policy": "compact"}, "cleanup.policy=compact"),
    ],
)
def test_what_does_not_go_together_is_refused(keys: Mapping[str, str], told: str) -> None:
    with pytest.raises(KafkaError, match=told):
        check_topic(CONFIG, keys)


def test_the_window_of_a_breaker_is_no_longer_than_a_record_is_spared() -> None:
    """Else none would ever be spared, though the share is set."""
    key = "odradek.retry.breaker.window.ms"
    check_topic(CONFIG, {**OWNER, key: str(SPARED_MS_MAX)})

    with pytest.raises(KafkaError, match=key):
        check_topic(CONFIG, {**OWNER, key: str(SPARED_MS_MAX + 1)})


@pytest.mark.parametrize("keys", [OWNER, LETTERS])
def test_they_cannot_be_taken_back(keys: Mapping[str, str]) -> None:
    with pytest.raises(KafkaError, match="cannot be taken back"):
        check_topic(CONFIG, {}, keys)


def test_a_file_may_have_both_of_those_that_go_together(tmp_path: Path) -> None:
    file = tmp_path / "odradek.toml"
    file.write_text('[topics."t.g.retry"]\n"odradek.retry.topic" = "t"\n"odradek.retry.group" = "g"\n')

    read_settings(config=file, environment={}, options=()).resolve(Registry.of(), data_dir=tmp_path)


@pytest.mark.parametrize(
    ("lines", "told", "place"),
    [
        (('"odradek.retry.topic" = "t"',), "go together", "line 2"),
        (('"retention.ms" = 1', '"odradek.retry.group" = "g"'), "go together", "line 3"),
        (
            ('"cleanup.policy" = "compact"', '"odradek.delay.enable" = true'),
            "odradek.delay.enable does not go with cleanup.policy=compact: no active plugin offers that",
            "line 3",
        ),
        (('"retention.ms" = 1', '"local.retention.ms" = -3'), "configuration local.retention.ms", "line 3"),
        (('"retention.ms" = 1', '"remote.storage.enable" = true'), "disabled in the broker", "line 1"),
    ],
)
def test_what_does_not_go_together_in_a_file_is_refused_where_it_stands(
    lines: tuple[str, ...], told: str, place: str, tmp_path: Path
) -> None:
    file = tmp_path / "odradek.toml"
    file.write_text("\n".join(('[topics."t.g.retry"]', *lines, "")))

    with pytest.raises(ConfigError, match=told) as refused:
        read_settings(config=file, environment={}, options=()).resolve(Registry.of(), data_dir=tmp_path)
    assert refused.value.where == f"{file}, {place}"


def test_a_file_may_have_what_only_its_broker_would_refuse_alone(tmp_path: Path) -> None:
    file = tmp_path / "odradek.toml"
    broker = '[broker]\n"log.cleaner.max.compaction.lag.ms" = 50\n'
    file.write_text(broker + '[topics.t]\n"min.compaction.lag.ms" = 100\n"max.compaction.lag.ms" = 200\n')

    read_settings(config=file, environment={}, options=()).resolve(Registry.of(), data_dir=tmp_path)

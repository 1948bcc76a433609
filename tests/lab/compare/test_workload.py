"""What is done to a broker: read from TOML, by name, and written back."""

from __future__ import annotations

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.client.producer_settings import ProducerSettings
from odradek.kernel.config.registry import Registry
from odradek.kernel.errors import ConfigError
from odradek.lab.compare.builtin_workloads import BUILTIN, DEFAULT_NAME, builtin_workload
from odradek.lab.compare.preflight import unknown_keys
from odradek.lab.compare.workload import Workload, parse_workload

TEXTS = st.text(st.characters(exclude_categories=["Cs", "Cc"]) | st.sampled_from('\n"\\'), max_size=20)


@given(
    st.builds(
        Workload,
        name=TEXTS.filter(bool),
        text=TEXTS,
        records=st.integers(1, 10**8),
        keys=st.integers(1, 10**7),
        key_skew=st.floats(0, 10),
        tombstones=st.floats(0, 1),
        transaction_records=st.integers(1, 10**6),
        aborted=st.floats(0, 1),
        topic=st.dictionaries(TEXTS, TEXTS),
        producer=st.dictionaries(TEXTS, TEXTS),
    )
)
def test_a_workload_that_is_written_is_read_as_it_was(workload: Workload) -> None:
    read = parse_workload(workload.as_toml(), "somewhere.toml")

    assert read == workload


@pytest.mark.parametrize("name", BUILTIN)
def test_a_workload_that_has_a_name_is_one(name: str) -> None:
    workload = builtin_workload(name)
    ProducerSettings.read({"bootstrap.servers": "127.0.0.1:9092", **workload.producer})

    assert parse_workload(workload.as_toml(), name) == workload
    assert unknown_keys(workload, Registry.of()) == {}
    assert DEFAULT_NAME in BUILTIN


def test_a_file_without_a_name_gives_its_own() -> None:
    assert parse_workload("records = 5", "some/where/mine.toml").name == "mine"


def test_settings_may_be_numbers_and_booleans() -> None:
    workload = parse_workload('[topic]\n"segment.bytes" = 1048576\npreallocate = true', "mine.toml")

    assert workload.topic == {"segment.bytes": "1048576", "preallocate": "true"}


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("records = ", "mine.toml: this is no TOML"),
        ("record = 5", "a workload has no 'record' (did you mean 'records'?)"),
        ("zzz = 5", "known: name, text, records"),
        ("records = 0", "records = 0: expected 1 to 100,000,000"),
        ("records = 1.5", "records = 1.5: expected a whole number"),
        ("records = true", "records = true: expected a whole number"),
        ('records = "5"', 'records = "5": expected a whole number'),
        ("name = 5", "name = 5: expected a text"),
        ("value_bytes = 7", "expected 8 to 10,000,000"),
        ("keys = 1\ntombstones = 2", "expected 0 to 1"),
        ("tombstones = 0.5", "tombstones delete keys, and there are none (set `keys`)"),
        ("key_skew = 1", "key_skew is about keys"),
        ("aborted = 0.5", "aborted is about transactions"),
        ("topic = 5", "topic: expected a table of settings ([topic])"),
        ('[topic]\n"segment.bytes" = [1]', "[topic] segment.bytes: expected a text or a number"),
    ],
)
def test_what_is_wrong_with_a_file_is_told(text: str, told: str) -> None:
    with pytest.raises(ConfigError) as raised:
        parse_workload(text, "mine.toml")

    assert told in str(raised.value)


def test_a_name_that_is_none_is_answered_with_the_nearest() -> None:
    with pytest.raises(ConfigError, match="did you mean 'keyed-updates'"):
        builtin_workload("keyed-update")
    with pytest.raises(ConfigError, match="known: small, bulk"):
        builtin_workload("zzz")


def test_a_setting_that_nobody_knows_is_told_with_the_nearest() -> None:
    workload = attrs.evolve(builtin_workload("small"), topic={"segment.byte": "1"}, broker={"log.dirz": "1"})

    assert unknown_keys(workload, Registry.of())["segment.byte"] == "did you mean 'segment.bytes'?"
    assert set(unknown_keys(workload, Registry.of())) == {"segment.byte", "log.dirz"}

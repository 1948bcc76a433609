"""Pure core: the project of an append stage."""

from __future__ import annotations

from typing import Final

SUMMARY: Final = "An append stage: it sees the batches of a topic before they are appended."
TRY: Final = """\
odradek topics create limited --config odradek.my_plugin.records.max=100
"""

HOOKS: Final = '''\
"""A stage that refuses batches of more records than a topic allows."""

from collections.abc import Mapping, Sequence

from odradek.kernel.api import AppendStageFactory, AtLeast, ConfigKey, ConfigType, Part, Scope, hookimpl

from .stage import RECORDS_MAX, make_stage

odradek_plugin_api = 1


@hookimpl
def odradek_config_keys() -> Sequence[ConfigKey]:
    """Offer the topic key that turns the stage on."""
    key = ConfigKey(
        RECORDS_MAX,
        ConfigType.INT,
        0,
        validator=AtLeast(0),
        scope=Scope.TOPIC,
        part=Part.PLUGINS,
        doc="The most records that one batch may hold; 0 for any number.",
    )
    return [key]


@hookimpl
def odradek_append_stages() -> Mapping[str, AppendStageFactory]:
    """Offer the stage."""
    return {"my_plugin": make_stage}
'''

STAGE: Final = '''\
"""The stage."""

from collections.abc import Mapping

from odradek.kernel.api import AppendStage, ErrorCode, KafkaError, TopicIdPartition, read_header

RECORDS_MAX = "odradek.my_plugin.records.max"


class MyPluginStage:
    """Refuses batches of more than `records_max` records."""

    def __init__(self, records_max: int) -> None:
        self.records_max = records_max

    def accept(self, batch: memoryview) -> memoryview | bytes | None:
        """Return the batch as it came; other bytes replace it (`BatchBuilder.like` makes them), None takes it away."""
        count = read_header(batch).records_count
        if count > self.records_max:
            told = f"{count} records in one batch, {self.records_max} are allowed"
            raise KafkaError(ErrorCode.POLICY_VIOLATION, told)
        return batch


def make_stage(partition: TopicIdPartition, settings: Mapping[str, object]) -> AppendStage | None:
    """Make the stage of a partition; None, which costs nothing, when its topic has no limit."""
    records_max = settings[RECORDS_MAX]
    assert isinstance(records_max, int)
    return MyPluginStage(records_max) if records_max else None
'''

TEST: Final = '''\
"""The stage keeps what Odradek counts on, and does what it is for."""

from collections.abc import Mapping

import pytest
from my_plugin.stage import RECORDS_MAX, MyPluginStage, make_stage

from odradek.kernel.api import AppendStageFactory, BatchBuilder, ErrorCode, KafkaError
from odradek.testing.contracts.append_stage import AppendStageContract


class TestMyPlugin(AppendStageContract):
    def make_factory(self) -> AppendStageFactory:
        return make_stage

    def settings_in_use(self) -> Mapping[str, object]:
        return {RECORDS_MAX: 100}

    def settings_not_in_use(self) -> Mapping[str, object]:
        return {RECORDS_MAX: 0}


def batch_of(count: int) -> memoryview:
    builder = BatchBuilder()
    for number in range(count):
        builder.append(b"key", b"%d" % number, timestamp=0)
    return memoryview(builder.build())


def test_as_many_as_allowed_are_kept() -> None:
    batch = batch_of(2)

    assert MyPluginStage(2).accept(batch) is batch


def test_one_too_many_is_refused() -> None:
    with pytest.raises(KafkaError) as caught:
        MyPluginStage(1).accept(batch_of(2))

    assert caught.value.code is ErrorCode.POLICY_VIOLATION
'''

FILES: Final = {
    "src/my_plugin/__init__.py": HOOKS,
    "src/my_plugin/stage.py": STAGE,
    "tests/test_my_plugin.py": TEST,
}

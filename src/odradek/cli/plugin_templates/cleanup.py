"""Pure core: the project of a cleanup policy."""

from __future__ import annotations

from typing import Final

SUMMARY: Final = "A cleanup policy: it says which records of a log may go."
TRY: Final = """\
odradek topics create recent --config cleanup.policy=my_plugin --config odradek.my_plugin.segments=5
"""

HOOKS: Final = '''\
"""A policy that keeps the newest segments of a log."""

from collections.abc import Mapping, Sequence

from odradek.kernel.api import AtLeast, CleanupPolicy, ConfigKey, ConfigType, Part, Scope, hookimpl

from .policy import SEGMENTS, MyPluginPolicy

odradek_plugin_api = 1


@hookimpl
def odradek_config_keys() -> Sequence[ConfigKey]:
    """Offer the topic key of the policy."""
    key = ConfigKey(
        SEGMENTS,
        ConfigType.INT,
        3,
        validator=AtLeast(1),
        scope=Scope.TOPIC,
        part=Part.PLUGINS,
        doc="How many full segments stay, where `cleanup.policy` is `my_plugin`.",
    )
    return [key]


@hookimpl
def odradek_cleanup_policies() -> Mapping[str, CleanupPolicy]:
    """Offer `cleanup.policy=my_plugin`."""
    return {"my_plugin": MyPluginPolicy()}
'''

POLICY: Final = '''\
"""The policy."""

from odradek.kernel.api import NOTHING_TO_CLEAN, CleanupPlan, CleanupPolicy, Deletion, LogState

SEGMENTS = "odradek.my_plugin.segments"


class MyPluginPolicy(CleanupPolicy):
    """Keeps the newest full segments. A planner: it looks at a description of the log, and touches nothing."""

    def plan(self, log: LogState) -> CleanupPlan:
        """Have the oldest segments deleted, as far as they are full and committed."""
        full = [each for each in log.segments if not each.is_active and each.next_offset <= log.high_watermark]
        old = full[: -max(log.settings.number(SEGMENTS), 1)]
        if not old:
            return NOTHING_TO_CLEAN
        return CleanupPlan(deletion=Deletion(old[-1].next_offset, f"there are {len(full)} full segments"))
'''

TEST: Final = '''\
"""The policy keeps what Odradek counts on, and does what it is for."""

from my_plugin.policy import SEGMENTS, MyPluginPolicy

from odradek.kernel.api import CleanupPolicy, CleanupSettings, LogState, SegmentInfo, TopicPartition
from odradek.testing.contracts.cleanup import CleanupPolicyContract


class TestMyPlugin(CleanupPolicyContract):
    def make_policy(self) -> CleanupPolicy:
        return MyPluginPolicy()

    def settings(self) -> CleanupSettings:
        return CleanupSettings(cleanup_policy=("my_plugin",), values={SEGMENTS: 2})


def log_of(count: int) -> LogState:
    """Return a log of full segments with ten records each, and an empty active one."""
    full = [SegmentInfo(number * 10, number * 10 + 10, 1_000, 5, 5, is_active=False) for number in range(count)]
    end = count * 10
    return LogState(
        partition=TopicPartition("t", 0),
        segments=[*full, SegmentInfo(end, end, 0, -1, 5, is_active=True)],
        settings=CleanupSettings(values={SEGMENTS: 2}),
        log_start_offset=0,
        last_stable_offset=end,
        high_watermark=end,
        first_dirty_offset=0,
        rewritable_end=end,
        now_ms=10,
    )


def test_the_newest_segments_stay() -> None:
    assert MyPluginPolicy().plan(log_of(2)).deletion is None


def test_older_ones_go() -> None:
    deletion = MyPluginPolicy().plan(log_of(5)).deletion

    assert deletion is not None
    assert deletion.below == 30
'''

FILES: Final = {
    "src/my_plugin/__init__.py": HOOKS,
    "src/my_plugin/policy.py": POLICY,
    "tests/test_my_plugin.py": TEST,
}

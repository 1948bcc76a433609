"""Which combinations `--vary` and `--set` mean, and which of them cannot be run."""

from __future__ import annotations

import itertools

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.kernel.config.keys import ConfigKey, Scope
from odradek.kernel.config.registry import Registry
from odradek.kernel.config.values import ConfigType
from odradek.kernel.errors import ConfigError
from odradek.lab.compare import preflight
from odradek.lab.compare.builtin_workloads import builtin_workload
from odradek.lab.compare.schedule import interleaved
from odradek.lab.compare.variations import COMBINATIONS_MAX, Choice, Combination, Variations
from odradek.lab.compare.workload import Workload

REGISTRY = (
    Registry.of([("strange", ConfigKey("odradek.secret", ConfigType.PASSWORD, None, scope=Scope.BROKER))])
    .with_choices("odradek.storage", ["segment", "memory"])
    .with_choices("odradek.election", ["isr", "quorum"])
)


def labels(*vary: str, fixed: tuple[str, ...] = ()) -> list[str]:
    return [combination.label for combination in combinations(*vary, fixed=fixed)]


def combinations(*vary: str, fixed: tuple[str, ...] = ()) -> list[Combination]:
    return Variations.read(vary, fixed, REGISTRY).combinations(
        preflight.TOPIC_SETTINGS, preflight.BROKER_SETTINGS, preflight.implied_choices(REGISTRY)
    )


def test_every_value_meets_every_other() -> None:
    expected = ["segment · delete", "segment · compact", "memory · delete", "memory · compact"]

    assert labels("odradek.storage=segment,memory", "cleanup.policy=delete,compact") == expected


def test_a_plus_joins_entries_of_a_list() -> None:
    (one,) = combinations("cleanup.policy=compact+delete")

    assert one.topic["cleanup.policy"] == "compact,delete"
    assert one.label == "compact+delete"


def test_a_value_that_says_nothing_alone_is_shown_with_its_key() -> None:
    assert labels("segment.bytes=1048576", "preallocate=true,false") == [
        "segment.bytes=1048576 · preallocate=true",
        "segment.bytes=1048576 · preallocate=false",
    ]


def test_keys_of_topics_and_brokers_are_told_apart_by_their_definitions() -> None:
    (one,) = combinations("min.cleanable.dirty.ratio=0.1", "log.cleaner.threads=2", fixed=("num.io.threads=4",))

    assert one.topic == {**preflight.TOPIC_SETTINGS, "min.cleanable.dirty.ratio": "0.1"}
    assert one.broker == {**preflight.BROKER_SETTINGS, "log.cleaner.threads": "2", "num.io.threads": "4"}


def test_what_a_plugin_brings_can_be_varied_without_code_here() -> None:
    assert labels("odradek.election=isr,quorum") == ["isr", "quorum"]


def test_what_is_said_beats_what_compare_sets_by_itself() -> None:
    (one,) = combinations("retention.ms=1000", fixed=("log.cleaner.backoff.ms=1",))

    assert (one.topic["retention.ms"], one.broker["log.cleaner.backoff.ms"]) == ("1000", "1")


def test_a_choice_gets_what_it_needs_where_nothing_else_is_said() -> None:
    registry = REGISTRY.with_choices("odradek.storage", ["segment", "tiered"])
    implied = preflight.implied_choices(registry)
    varied = Variations.read(["odradek.storage=segment,tiered"], ["remote.log.manager.task.interval.ms=7"], registry)
    segment, tiered = varied.combinations({}, {}, implied)

    assert "remote.log.storage.system.enable" not in segment.broker
    assert tiered.broker["remote.log.storage.system.enable"] == "true"
    assert tiered.broker["remote.log.manager.task.interval.ms"] == "7"
    assert tiered.topic["local.retention.bytes"] == "1"


def test_a_run_has_a_store_of_its_own_wherever_that_is() -> None:
    settings = {"odradek.tiered.store": f"file://{preflight.STORE_FOLDER}", "log.cleaner.threads": "2"}
    chosen = {"odradek.tiered.store": "s3://bucket/prefix/"}

    assert preflight.settings_of_run(settings, "/a/store", "compare-1/run-2") == {
        "odradek.tiered.store": "file:///a/store",
        "log.cleaner.threads": "2",
    }
    assert preflight.settings_of_run(chosen, "/a/store", "compare-1/run-2") == {
        "odradek.tiered.store": "s3://bucket/prefix/compare-1/run-2"
    }
    assert preflight.settings_of_run({}, "/a/store", "compare-1/run-2") == {}
    assert preflight.has_own_store(settings)
    assert not preflight.has_own_store(chosen)


def test_a_secret_is_shown_to_nobody() -> None:
    (one,) = combinations("odradek.secret=opensesame")

    assert one.broker["odradek.secret"] == "opensesame"
    assert "opensesame" not in one.label


@pytest.mark.parametrize(
    ("vary", "told"),
    [
        ("odradek.storage", "expected key=value (--vary odradek.storage=segment,memory)"),
        ("=segment", "expected key=value"),
        ("odradek.storag=segment", "unknown key 'odradek.storag' (did you mean 'odradek.storage'?)"),
        ("zzz=1", "unknown key 'zzz' (odradek config describe)"),
        ("odradek.storage=segmnt,memory", "String must be one of: segment, memory (did you mean 'segment'?)"),
        ("odradek.storage=zzz", "a plugin may offer more: odradek plugins list"),
        ("cleanup.policy=delete,compct", "did you mean 'compact'?"),
        ("cleanup.policy=delete+compct", "did you mean 'compact'?"),
        ("segment.bytes=many", "Not a number of type INT (odradek config describe segment.bytes)"),
        ("segment.bytes=1048576,", "a value is empty"),
        ("odradek.storage=memory,memory", "the value 'memory' is given twice"),
        ("metadata.max.retention.ms=5", "'5' is refused: "),
        ("listeners=PLAINTEXT://:9092", "every broker that is compared gets its own (leave it out)"),
        ("segment.ms=" + ",".join(map(str, range(1, 66))), f"65 combinations, more than {COMBINATIONS_MAX}"),
    ],
)
def test_what_is_wrong_with_an_option_is_told(vary: str, told: str) -> None:
    with pytest.raises(ConfigError) as raised:
        combinations(vary)

    assert told in str(raised.value)


@pytest.mark.parametrize(
    ("vary", "fixed"),
    [(("segment.ms=1", "segment.ms=2"), ()), (("segment.ms=1",), ("segment.ms=2",)), ((), ("preallocate=true",) * 2)],
)
def test_a_key_is_given_once(vary: tuple[str, ...], fixed: tuple[str, ...]) -> None:
    with pytest.raises(ConfigError, match="the key is given twice"):
        combinations(*vary, fixed=fixed)


def test_a_combination_that_the_broker_would_refuse_is_known_before_it_is_started() -> None:
    workload = builtin_workload("keyed-updates")
    fine, wrong = combinations("min.compaction.lag.ms=0,10", fixed=("max.compaction.lag.ms=5",))

    assert preflight.reason_against(fine, workload, REGISTRY) == ""
    assert "min.compaction.lag.ms (10) > max.compaction.lag.ms (5)" in preflight.reason_against(
        wrong, workload, REGISTRY
    )


def test_settings_of_a_broker_that_do_not_go_together_are_known_too() -> None:
    (wrong,) = combinations("log.cleaner.min.compaction.lag.ms=7", fixed=("log.cleaner.max.compaction.lag.ms=5",))

    told = preflight.reason_against(wrong, builtin_workload("small"), REGISTRY)
    assert "log.cleaner.min.compaction.lag.ms (7) > log.cleaner.max.compaction.lag.ms (5)" in told


def test_compaction_needs_keys() -> None:
    (compacted,) = combinations("cleanup.policy=compact")
    workload = attrs.evolve(Workload("mine"), keys=0)

    assert "takes records with keys only" in preflight.reason_against(compacted, workload, REGISTRY)


@given(st.integers(1, 8), st.integers(1, 12))
def test_each_round_runs_every_combination_once(count: int, rounds: int) -> None:
    planned = interleaved([str(number) for number in range(count)], rounds)

    for number in range(rounds):
        assert sorted(one for other, one in planned if other == number) == [str(one) for one in range(count)]
    assert [number for number, _ in planned] == sorted(number for number, _ in planned)


def test_no_combination_always_runs_first_or_behind_the_same_one() -> None:
    planned = [one for _, one in interleaved(list("abc"), 6)]

    assert {planned[place] for place in range(0, 18, 3)} == set("abc")
    before = {after: {one for one, other in itertools.pairwise(planned) if other == after} for after in "abc"}
    assert all(len(others) > 1 for others in before.values())


def test_a_choice_shows_its_value() -> None:
    assert Choice("segment.ms", Scope.TOPIC, "1").shown == "1"

"""The plugin manager: what is found, chosen, refused and asked."""

from __future__ import annotations

import argparse
import sys
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from odradek.kernel.api import (
    NOTHING_TO_CLEAN,
    Answer,
    Assignor,
    CleanupPlan,
    CleanupPolicy,
    ConfigError,
    ConfigKey,
    ConfigType,
    ErrorCode,
    LogState,
    MemberAssignment,
    Metric,
    PluginError,
    RequestContext,
    Service,
    TopicIdPartition,
    hookimpl,
)
from odradek.kernel.plugin_system.manager import (
    PLUGIN_API_VERSION,
    FoundPlugin,
    PluginManager,
    choose_offer,
    choose_plugins,
    installed_plugins,
)
from odradek.kernel.plugin_system.offers import broken, joined_metrics
from odradek.kernel.types import ZERO_ID

from ..coordinator.toy import CounterCoordinator


def plugin(name: str, **members: object) -> types.ModuleType:
    module = types.ModuleType(name, "A plugin for a test.")
    vars(module).update(members)
    return module


def manager_with(**modules: types.ModuleType) -> PluginManager:
    manager = PluginManager()
    for name, module in modules.items():
        manager.register(FoundPlugin(name, name, ""), module)
    return manager


def named(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    function.__name__ = name
    return hookimpl(function)


class Anything:
    """Can be called, and asked for any method."""

    def __call__(self, *args: object, **options: object) -> None:
        return

    def __getattr__(self, name: str) -> object:
        return self


class Policy(CleanupPolicy):
    def plan(self, log: LogState) -> CleanupPlan:
        return NOTHING_TO_CLEAN


class ToMembers(Assignor):
    name = "to_members"

    def assign(self, members: Any, topics: Any) -> dict[str, MemberAssignment]:
        return {}


class Handler:
    api_key = 12

    def __init__(self, broker: object) -> None:
        self.broker = broker

    def handle(self, request: Any, context: RequestContext) -> Answer:
        return request

    def error_response(self, request: Any, context: RequestContext, code: ErrorCode, detail: str) -> Answer:
        return code


async def run(*, task_status: object) -> None:
    return


BROKER: Any = object()
A: Any = Anything()
B: Any = Anything()
PARTITION = TopicIdPartition(ZERO_ID, "t", 0)
INSTALLED = [FoundPlugin("a", "pkg.a", "pkg 1"), FoundPlugin("b", "pkg.b", "pkg 1")]


def test_the_plugins_of_this_distribution_are_installed() -> None:
    names = {found.name for found in installed_plugins()}

    assert {"election_isr", "storage_memory", "storage_segment"} <= names


@pytest.mark.parametrize(
    ("enable", "disable", "expected"),
    [
        (None, [], ["a", "b"]),
        (None, ["a"], ["b"]),
        ([], [], []),
        (["b"], [], ["b"]),
        (["a", "b"], ["b"], ["a"]),
        (["my.own.module"], [], ["my.own.module"]),
    ],
)
def test_enable_and_disable_choose(enable: list[str] | None, disable: list[str], expected: list[str]) -> None:
    assert expected == [found.name for found in choose_plugins(INSTALLED, enable, disable)]


@pytest.mark.parametrize(("enable", "disable"), [(["c"], []), (None, ["c"])])
def test_a_name_that_is_not_installed_is_refused(enable: list[str] | None, disable: list[str]) -> None:
    with pytest.raises(PluginError, match=r"plugin 'c': is .*abled but not installed"):
        choose_plugins(INSTALLED, enable, disable)


@pytest.mark.parametrize(
    ("module", "code", "why"),
    [
        ("odradek_broken_plugin", "import there_is_no_such_module\n", "there_is_no_such_module"),
        ("odradek_leaving_plugin", "raise SystemExit(3)\n", "SystemExit: 3"),
    ],
)
def test_a_plugin_that_cannot_be_imported_names_itself_and_the_reason(
    tmp_path: Path, module: str, code: str, why: str
) -> None:
    (tmp_path / f"{module}.py").write_text(code)
    sys.path.insert(0, str(tmp_path))
    try:
        with pytest.raises(PluginError, match=rf"plugin 'bad': cannot be imported .*{why}.*disable"):
            PluginManager().load([FoundPlugin("bad", module, "")])
    finally:
        sys.path.remove(str(tmp_path))


def test_a_hook_with_an_argument_that_no_hook_has_is_refused() -> None:
    wrong = named("odradek_storages", lambda surprise: {})

    told = r"`odradek_storages` at .*test_plugin_manager.py:\d+ has an argument `surprise`"
    with pytest.raises(PluginError, match=told):
        manager_with(wrong=plugin("wrong", odradek_storages=wrong))


def test_a_hook_that_does_not_exist_is_refused() -> None:
    wrong = named("odradek_no_such_hook", lambda: None)

    with pytest.raises(PluginError, match="there is no such hook: the hooks are odradek_config_keys, "):
        manager_with(wrong=plugin("wrong", odradek_no_such_hook=wrong))


def test_the_same_name_twice_is_refused() -> None:
    manager = manager_with(one=plugin("one", odradek_plugin_api=PLUGIN_API_VERSION))

    with pytest.raises(PluginError, match="cannot be registered"):
        manager.register(FoundPlugin("one", "one", ""), plugin("other", odradek_plugin_api=PLUGIN_API_VERSION))


def test_a_module_without_hooks_is_refused_with_what_it_lacks() -> None:
    with pytest.raises(PluginError, match=r"'empty': implements no hook \(repair it, or put it into `disable`"):
        manager_with(empty=plugin("empty"))
    with pytest.raises(PluginError, match="does not mark odradek_storages with `hookimpl`"):
        manager_with(forgetful=plugin("forgetful", odradek_storages=dict))


@pytest.mark.parametrize(
    ("offers", "reason"),
    [
        ([A], r"gave .*, not a mapping of names, at .*\.py:\d+"),
        (None, r"gave None, not a mapping of names \(is a `return` missing\?\), at .*\.py:\d+"),
        ({"x": 1}, "offers as storage 'x' what is none: 1 has no `__call__`"),
    ],
)
def test_what_is_no_offer_is_refused(offers: object, reason: str) -> None:
    wrong = plugin("wrong", odradek_storages=named("odradek_storages", lambda: offers))

    with pytest.raises(PluginError, match=rf"'wrong' \(odradek_storages\): {reason}"):
        manager_with(wrong=wrong).storages()


def test_an_offer_that_lacks_methods_is_told_which() -> None:
    wrong = plugin("wrong", odradek_cleanup_policies=named("odradek_cleanup_policies", lambda: {"x": object()}))

    with pytest.raises(PluginError, match=r"has no `compacts`, `expires`, `requires_keys`, `plan`, `problem_with`"):
        manager_with(wrong=wrong).cleanup_policies()


@pytest.mark.parametrize("given", ["text", {"a": 1}, 5])
def test_what_is_no_sequence_is_refused(given: object) -> None:
    wrong = plugin("wrong", odradek_services=named("odradek_services", lambda broker: given))

    with pytest.raises(PluginError, match=r"'wrong' \(odradek_services\): gave .*, not a sequence"):
        manager_with(wrong=wrong).services(BROKER)


def test_the_manager_knows_who_offers_what() -> None:
    one = plugin("one", odradek_storages=named("odradek_storages", lambda: {"a": A}))
    manager = manager_with(one=one)
    manager.storages()

    assert manager.owners == {("storage", "a"): "one"}


def test_a_plugin_under_development_is_chosen_by_its_module_beside_all_that_is_installed() -> None:
    chosen = choose_plugins(INSTALLED, ["*", "argparse"], [])

    assert [found.name for found in chosen] == ["a", "argparse", "b"]


def test_another_version_of_the_plugin_api_is_refused() -> None:
    with pytest.raises(PluginError, match=f"version {PLUGIN_API_VERSION + 1} of the plugin API"):
        manager_with(old=plugin("old", odradek_plugin_api=PLUGIN_API_VERSION + 1))


def test_two_plugins_that_offer_the_same_name_are_refused() -> None:
    first = plugin("first", odradek_storages=named("odradek_storages", lambda: {"same": A}))
    second = plugin("second", odradek_storages=named("odradek_storages", lambda: {"same": A}))

    with pytest.raises(PluginError, match=r"offers the storage 'same', which plugin '.*' offers too"):
        manager_with(first=first, second=second).storages()


def test_a_setting_that_a_plugin_refuses_is_the_operators_to_mend() -> None:
    def refuse() -> None:
        raise ConfigError("no such store", where="odradek.tiered.store")

    refusing = plugin("refusing", odradek_storages=named("odradek_storages", refuse))

    with pytest.raises(ConfigError, match=r"^odradek\.tiered\.store: no such store"):
        manager_with(refusing=refusing).storages()


def test_a_plugin_that_fails_to_offer_is_named() -> None:
    def fails() -> None:
        raise RuntimeError("no disk today")

    broken = plugin("broken", odradek_storages=named("odradek_storages", fails))

    with pytest.raises(PluginError, match=r"plugin 'broken' \(odradek_storages\): failed at .*: .*no disk today"):
        manager_with(broken=broken).storages()


def test_an_offer_that_nobody_makes_is_explained() -> None:
    with pytest.raises(
        PluginError, match=r"^no active plugin offers the storage 'glacier' \(odradek.storage; offered: memory\)"
    ):
        choose_offer({"memory": object}, "glacier", "storage", "odradek.storage")


def test_the_manager_knows_what_is_loaded() -> None:
    module = plugin(
        "one",
        odradek_storages=named("odradek_storages", lambda: {"x": 1}),
        odradek_elections=named("odradek_elections", lambda: {"x": 1}),
    )

    (loaded,) = manager_with(one=module).loaded

    assert loaded.hooks == ("odradek_storages", "odradek_elections")
    assert loaded.summary == "A plugin for a test."


def test_hook_odradek_config_keys_joins_keys_with_their_plugins() -> None:
    keys = [ConfigKey("odradek.mine", ConfigType.INT, 1)]
    one = plugin("one", odradek_config_keys=named("odradek_config_keys", lambda: keys))

    assert manager_with(one=one).config_keys() == [("one", keys[0])]


def test_hook_odradek_cli_commands_adds_commands_and_leaves_out_broken_ones(caplog: pytest.LogCaptureFixture) -> None:
    def fine(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
        commands.add_parser("fine")

    def finer(commands: argparse._SubParsersAction[argparse.ArgumentParser], restore_topics: object) -> None:
        assert restore_topics is restore
        commands.add_parser("finer")

    def broken(commands: object) -> None:
        raise RuntimeError("no such parser")

    def restore(topics: object, **options: object) -> None:
        pass

    commands = argparse.ArgumentParser().add_subparsers()

    manager_with(
        fine=plugin("fine", odradek_cli_commands=named("odradek_cli_commands", fine)),
        finer=plugin("finer", odradek_cli_commands=named("odradek_cli_commands", finer)),
        broken=plugin("broken", odradek_cli_commands=named("odradek_cli_commands", broken)),
    ).cli_commands(commands, restore)

    assert list(commands.choices) == ["fine", "finer"]
    (line,) = caplog.records
    assert "broken" in line.getMessage()
    assert "no such parser" in line.getMessage()
    assert line.exc_info is None, "one line, and no traceback"


def test_hook_odradek_storages_joins_by_name() -> None:
    one = plugin("one", odradek_storages=named("odradek_storages", lambda: {"a": A}))
    two = plugin("two", odradek_storages=named("odradek_storages", lambda: {"b": B}))

    assert manager_with(one=one, two=two).storages() == {"a": A, "b": B}


def test_hook_odradek_elections_joins_by_name() -> None:
    one = plugin("one", odradek_elections=named("odradek_elections", lambda: {"isr": A}))

    assert manager_with(one=one).elections() == {"isr": A}


def test_hook_odradek_delay_queues_joins_by_name() -> None:
    one = plugin("one", odradek_delay_queues=named("odradek_delay_queues", lambda: {"mine": A}))

    assert manager_with(one=one).delay_queues() == {"mine": A}


def test_hook_odradek_retry_policies_joins_by_name() -> None:
    one = plugin("one", odradek_retry_policies=named("odradek_retry_policies", lambda: {"mine": A}))

    assert manager_with(one=one).retry_policies() == {"mine": A}


def test_hook_odradek_append_stages_joins_by_name() -> None:
    one = plugin("one", odradek_append_stages=named("odradek_append_stages", lambda: {"stamp": A}))

    assert manager_with(one=one).append_stages() == {"stamp": A}


def test_hook_odradek_cleanup_policies_joins_by_name() -> None:
    first, second = Policy(), Policy()
    one = plugin("one", odradek_cleanup_policies=named("odradek_cleanup_policies", lambda: {"delete": first}))
    two = plugin("two", odradek_cleanup_policies=named("odradek_cleanup_policies", lambda: {"ttl": second}))

    assert manager_with(one=one, two=two).cleanup_policies() == {"delete": first, "ttl": second}


def test_hook_odradek_assignors_joins_by_name_and_refuses_the_same_name_twice() -> None:
    first, second = ToMembers(), ToMembers()
    one = plugin("one", odradek_assignors=named("odradek_assignors", lambda: {"range": first}))
    two = plugin("two", odradek_assignors=named("odradek_assignors", lambda: {"sticky": second}))
    three = plugin("three", odradek_assignors=named("odradek_assignors", lambda: {"range": second}))

    assert manager_with(one=one, two=two).assignors() == {"range": first, "sticky": second}
    with pytest.raises(PluginError, match="offers the assignor 'range', which plugin 'one' offers too"):
        manager_with(one=one, three=three).assignors()


def test_hook_odradek_coordinators_gets_the_broker_and_keeps_the_plugins_names() -> None:
    coordinator = CounterCoordinator()
    asked: list[object] = []

    def offer(broker: object) -> list[CounterCoordinator]:
        asked.append(broker)
        return [coordinator]

    one = plugin("one", odradek_coordinators=named("odradek_coordinators", offer))
    two = plugin("two", odradek_coordinators=named("odradek_coordinators", lambda broker: []))

    assert manager_with(one=one, two=two).coordinators(BROKER) == [("one", coordinator)]
    assert asked == [BROKER]


def test_hook_odradek_api_handlers_gets_the_broker() -> None:
    one = plugin("one", odradek_api_handlers=named("odradek_api_handlers", lambda broker: [Handler(broker)]))
    ((name, handler),) = manager_with(one=one).api_handlers(BROKER)

    assert isinstance(handler, Handler)
    assert (name, handler.broker) == ("one", BROKER)


def test_hook_odradek_tier_gets_the_broker() -> None:
    one = plugin("one", odradek_tier=named("odradek_tier", lambda broker: {BROKER: A}[broker]))

    assert manager_with(one=one).tier(BROKER) is A


def test_two_tiers_stop_the_start() -> None:
    one = plugin("one", odradek_tier=named("odradek_tier", lambda: A))
    two = plugin("two", odradek_tier=named("odradek_tier", lambda: B))

    with pytest.raises(PluginError, match=r"plugin '(one|two)' .*: offers a tier, which plugin '(two|one)'"):
        manager_with(one=one, two=two).tier(BROKER)


def test_no_tier_stops_the_start_of_a_broker_that_asks_for_one() -> None:
    none = plugin("none", odradek_tier=named("odradek_tier", lambda: None))

    with pytest.raises(PluginError, match=r"no active plugin offers a tier: enable `storage_tiered`"):
        manager_with(none=none).tier(BROKER)


def test_hook_odradek_services_gets_the_broker() -> None:
    service = Service("mine", run)
    one = plugin("one", odradek_services=named("odradek_services", lambda broker: {BROKER: [service]}[broker]))

    assert manager_with(one=one).services(BROKER) == [("one", service)]


def test_hook_odradek_metrics_may_leave_out_its_argument() -> None:
    metric = Metric("odradek_mine", "What is mine.", "gauge", dict)
    one = plugin("one", odradek_metrics=named("odradek_metrics", lambda: [metric]))

    assert manager_with(one=one).metrics(BROKER) == [("one", metric)]


@pytest.mark.parametrize(
    ("name", "kind", "told"),
    [
        ("odradek_taken", "gauge", "is there already, of the kernel"),
        ("no name", "gauge", "'no name'"),
        ("odradek_good", "summary", "of kind 'summary'"),
    ],
)
def test_a_wrong_or_doubled_metric_names_its_plugin(name: str, kind: str, told: str) -> None:
    taken, wrong = Metric("odradek_taken", "h", "gauge", dict), Metric(name, "h", kind, dict)

    with pytest.raises(PluginError, match=f"'mine'.*{told}"):
        joined_metrics([("", taken), ("mine", wrong)])


def test_metrics_are_joined_in_their_order() -> None:
    first, second = (Metric(name, "h", "counter", dict) for name in ("odradek_b", "odradek_a"))

    assert joined_metrics([("", first), ("mine", second)]) == (first, second)


def test_hook_odradek_leader_changed_reaches_all_listeners_though_one_fails() -> None:
    heard: list[tuple[TopicIdPartition, int, object]] = []

    def fails(partition: TopicIdPartition) -> None:
        raise RuntimeError

    def listens(partition: TopicIdPartition, leader_epoch: int, broker: object) -> None:
        heard.append((partition, leader_epoch, broker))

    manager = manager_with(
        one=plugin("one", odradek_leader_changed=named("odradek_leader_changed", listens)),
        two=plugin("two", odradek_leader_changed=named("odradek_leader_changed", fails)),
    )

    manager.leader_changed(BROKER, PARTITION, 1, 7)

    assert heard == [(PARTITION, 7, BROKER)]


def test_a_failure_that_is_no_plugins_names_none_to_disable() -> None:
    reason = "storage 'segment' cannot start: OSError(5)"

    assert str(broken("", reason)) == reason
    assert str(broken("mine", "fails")) == (
        "plugin 'mine': fails (repair it, or put it into `disable` of [plugins] as \"mine\")"
    )

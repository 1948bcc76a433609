"""Settings that probably use a stage: values that each key takes, one after the other, until the factory makes it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from odradek.cli.stage_settings import likely_values, settings_in_use
from odradek.kernel.api import AppendStage, AtLeast, ConfigKey, ConfigType, OneOf, Part, Scope, TopicIdPartition
from odradek.kernel.config.values import Between, BetweenOr, Durations, InvalidValueError, ListOf, Shaped


class Stage:
    def accept(self, batch: memoryview) -> memoryview:
        return batch


class Fails:
    """A validator with a bug."""

    def check(self, name: str, value: object) -> None:
        raise RuntimeError(name)

    def describe(self) -> str:
        return ""


def key(name: str, type_: ConfigType, default: Any, validator: Any = None) -> ConfigKey:
    return ConfigKey(name, type_, default, validator=validator, scope=Scope.TOPIC, part=Part.PLUGINS, doc="d.")


@pytest.mark.parametrize(
    ("type_", "default", "validator", "first"),
    [
        (ConfigType.BOOLEAN, False, None, True),
        (ConfigType.BOOLEAN, True, None, False),
        (ConfigType.STRING, "", None, "something"),
        (ConfigType.STRING, "off", OneOf(("off", "upper", "lower")), "upper"),
        (ConfigType.STRING, "only", OneOf(("only",)), "only"),
        (ConfigType.STRING, "", Shaped("[0-9]*", "{name} {value}", ""), "1"),
        (ConfigType.STRING, "q", Shaped("q+", "{name} {value}", ""), "q"),
        (ConfigType.LIST, (), None, ("something",)),
        (ConfigType.LIST, ("a",), ListOf(("a", "b")), ("b",)),
        (ConfigType.LIST, ("1m",), Durations(1_000), ("5s",)),
        (ConfigType.INT, 0, AtLeast(0), 100),
        (ConfigType.INT, 100, None, 1),
        (ConfigType.SHORT, 0, Between(0, 9), 1),
        (ConfigType.SHORT, 2**15 - 1, AtLeast(2**15 - 1), 2**15 - 1),  # what is one more is no SHORT
        (ConfigType.LONG, 1_000, BetweenOr(1_000, 2_000, -1), 2_000),
        (ConfigType.DOUBLE, 0.0, Between(0, 0.5), 0.5),
        (ConfigType.PASSWORD, None, None, "something"),
        (ConfigType.INT, 7, Fails(), 7),
    ],
)
def test_a_value_that_a_key_takes_comes_first_and_its_default_last(
    type_: ConfigType, default: Any, validator: Any, first: object
) -> None:
    values = likely_values(key("k", type_, default, validator))

    assert (values[0], type(values[0])) == (first, type(first))
    assert values[-1] == default
    for value in values[:-1]:
        try:
            _ = validator is None or validator.check("k", value)
        except InvalidValueError as error:
            pytest.fail(str(error))


def made_by(wanted: Mapping[str, object]) -> Any:
    def make(partition: TopicIdPartition, settings: Mapping[str, object]) -> AppendStage | None:
        return Stage() if settings == wanted else None

    return make


KEYS = [
    key("mode", ConfigType.STRING, "off", OneOf(("off", "upper", "lower"))),
    key("limit", ConfigType.INT, 0, Between(0, 5)),
    key("is_on", ConfigType.BOOLEAN, False),
]


@pytest.mark.parametrize(
    "wanted",
    [
        {"mode": "upper", "limit": 1, "is_on": True},
        {"mode": "lower", "limit": 0, "is_on": False},
        {"mode": "off", "limit": 5, "is_on": False},
        {"mode": "lower", "limit": 5, "is_on": True},
        {"mode": "lower", "limit": 5, "is_on": False},
    ],
)
def test_settings_are_tried_until_some_make_the_stage(wanted: Mapping[str, object]) -> None:
    assert settings_in_use(made_by(wanted), KEYS) == wanted


def test_where_none_make_it_there_are_none_and_what_a_factory_raises_at_made_up_ones_is_no_answer() -> None:
    def fails_but_for_lower(partition: TopicIdPartition, settings: Mapping[str, object]) -> AppendStage | None:
        return {"lower": Stage()}[str(settings["mode"])]

    found = settings_in_use(fails_but_for_lower, KEYS)
    assert found is not None
    assert found["mode"] == "lower"
    assert settings_in_use(made_by({"mode": "strange"}), KEYS) is None
    assert settings_in_use(made_by({"no": "keys"}), []) is None


def test_a_plugin_with_many_keys_is_not_tried_for_ever() -> None:
    asked: list[Mapping[str, object]] = []

    def never(partition: TopicIdPartition, settings: Mapping[str, object]) -> AppendStage | None:
        asked.append(settings)
        return None

    many = [key(f"k{number}", ConfigType.INT, 0) for number in range(30)]

    assert settings_in_use(never, many) is None
    assert len(asked) < 1_000

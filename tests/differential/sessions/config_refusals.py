"""AlterConfigs and IncrementalAlterConfigs where two things are wrong: which one is told."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..conversation import Conversation, Fields

_TOPIC, _BROKER, _CLIENT_METRICS, _GROUP = 2, 4, 16, 32
_SET, _DELETE, _APPEND, _SUBTRACT = range(4)

_WRONG = {
    "append to a number": (_APPEND, "retention.ms", "1"),
    "subtract from a number": (_SUBTRACT, "retention.ms", "1"),
    "append to an unknown config": (_APPEND, "no.such.config", "1"),
    "set a wrong value": (_SET, "retention.ms", "x"),
    "set an unknown config": (_SET, "no.such.config", "1"),
    "set to null": (_SET, "retention.ms", None),
}


def _fields(kind: int, name: str, change: Fields) -> Fields:
    return {"resources": [{"resource_type": kind, "resource_name": name, "configs": [change]}]}


def alter_configs_twice_wrong(talk: Conversation) -> None:
    """A resource that is not there or cannot be, and a change that is not possible."""
    resources = (
        ("an unknown topic", _TOPIC, talk.topic("none")),
        ("a bad topic name", _TOPIC, "a b"),
        ("no topic name", _TOPIC, ""),
        ("no group name", _GROUP, ""),
        ("no name of client metrics", _CLIENT_METRICS, ""),
        ("an unknown broker", _BROKER, "2"),
    )
    for what, kind, name in resources:
        for wrong, (operation, key, value) in _WRONG.items():
            change = {"name": key, "config_operation": operation, "value": value}
            talk.ask("IncrementalAlterConfigs", 1, _fields(kind, name, change), note=f"{what}: {wrong}")
            if operation == _SET:
                change = {"name": key, "value": value}
                talk.ask("AlterConfigs", 2, _fields(kind, name, change), note=f"{what}: {wrong}")


def edit_broker_configs(talk: Conversation) -> None:
    """What is not a list of a broker's configs, edited as one: refused by the broker, in words of its own."""
    for name in ("1", ""):
        for operation in (_APPEND, _SUBTRACT, 9):
            for key in ("log.cleaner.threads", "no.such.config"):
                change = {"name": key, "config_operation": operation, "value": "1"}
                note = f"broker {name!r}: {key}, operation {operation}"
                talk.ask("IncrementalAlterConfigs", 1, _fields(_BROKER, name, change), note=note)

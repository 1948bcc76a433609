"""A broker as groups see it: configuration at its defaults, topics, ids that count."""

from __future__ import annotations

import random
import uuid
from typing import TYPE_CHECKING, Any, cast

from odradek.kernel.api import LogOffsets, TopicView
from odradek.kernel.config.keys import Scope
from odradek.kernel.config.registry import Registry
from odradek.kernel.machine.clock import ManualClock
from odradek.kernel.machine.files import OsFiles
from tests.machines import machine_with

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from odradek.kernel.api import Assignor, Transactions


class Configured:
    """The defaults of a broker, and what a test sets."""

    def __init__(self, settings: Mapping[str, Any]) -> None:
        self._settings = dict(settings)
        self._keys = Registry.of().keys[Scope.BROKER]

    def set(self, name: str, value: Any) -> None:
        assert name in self._keys
        self._settings[name] = value

    def _value(self, name: str) -> Any:
        return self._settings[name] if name in self._settings else self._keys[name].default

    def get_int(self, name: str) -> int:
        return cast("int", self._value(name))

    def get_float(self, name: str) -> float:
        return cast("float", self._value(name))

    def get_bool(self, name: str) -> bool:
        return cast("bool", self._value(name))

    def get_text(self, name: str) -> str:
        return cast("str", self._value(name))

    def get_list(self, name: str) -> tuple[str, ...]:
        return cast("tuple[str, ...]", self._value(name))


class Topics:
    """The metadata: topics a test makes."""

    def __init__(self, topics: Mapping[str, int]) -> None:
        self.version = 1
        self._views: dict[str, TopicView] = {}
        for name, partitions in topics.items():
            self.create(name, partitions)

    def create(self, name: str, partitions: int, topic_id: uuid.UUID | None = None) -> TopicView:
        topic_id = topic_id or uuid.uuid5(uuid.NAMESPACE_URL, name)
        view = self._views[name] = TopicView(name, topic_id, partitions, (frozenset(),) * partitions)
        return view

    def delete(self, name: str) -> TopicView:
        return self._views.pop(name)

    def topic(self, name: str) -> TopicView | None:
        return self._views.get(name)

    def topic_by_id(self, topic_id: uuid.UUID) -> TopicView | None:
        return next((view for view in self._views.values() if view.topic_id == topic_id), None)

    def topic_names(self) -> Sequence[str]:
        return list(self._views)

    def group_configs(self, group_id: str) -> Mapping[str, str]:
        return {}

    def feature_level(self, name: str) -> int:
        return 1


class CountingIds:
    """Ids 1, 2, 3, ..."""

    def __init__(self) -> None:
        self.count = 0

    def new_id(self) -> uuid.UUID:
        self.count += 1
        return uuid.UUID(int=self.count)


class GroupBroker:
    """As much of a broker as the plugin asks for."""

    def __init__(self, settings: Mapping[str, Any] | None = None, topics: Mapping[str, int] | None = None) -> None:
        self.config = Configured(settings or {})
        self.cluster = Topics(topics or {})
        self.clock = ManualClock()
        self.machine = machine_with(clock=self.clock, ids=CountingIds(), files=OsFiles(), random=random.Random(1))
        self.node_id = 1
        self.cluster_id = "cluster"
        self.assignors: Mapping[str, Assignor] = {}
        self.transactions: Transactions | None = None
        self.marker_writer: Any = None
        self.figures: Any = None

        self.ends: dict[tuple[str, int], LogOffsets] = {}

    def offsets(self, topic: str, partition: int) -> LogOffsets | None:
        return self.ends.get((topic, partition))

    def may_leave_disk(self, topic: str, partition: int, below: int) -> int | None:
        return None

    async def new_producer_id(self) -> int:
        raise NotImplementedError

    def settings(self, plugin: str) -> Mapping[str, object]:
        return {}

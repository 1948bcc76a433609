"""Pure core: draws requests: an API, a version, and every field of it, by the messages' schemas and `choices.py`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from .. import batches, codec
from ..batches import TRANSACTIONAL, legacy_message_set, record
from ..conversation import NO_ID, UNKNOWN_ID
from .choices import CHOICES, OF_API, PARTITIONS, TOPIC_CONFIGS, Drawn, Mix, Some
from .members import Members
from .producers import Producers
from .world import DrawnRecords, Kind, Reference

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from random import Random

    from odradek.kernel.wire.fields import FieldSpec
    from odradek.kernel.wire.message import Message

    from .world import World

RARE_SHARE: Final = 0.07
_NEWEST_SHARE: Final = 0.4
_OLDER_KEPT: Final = 3
"""How many of what the brokers drew last are named again."""
_TOPIC, _GROUP = 2, 32
_OPERATIONS: Final = (0, 0, 1, 2, 3)
_TARGET: Final[Mapping[str, str]] = {"name": "topic", "topic_id": "topic", "index": "partition"}
"""Fields that say, before its records, where a batch goes."""
_IDENTITY: Final = (
    "name",
    "topic",
    "topic_id",
    "index",
    "partition",
    "partition_index",
    "resource_name",
    "group_id",
    "transactional_id",
    "member_id",
)
"""Fields by which entries of a list are told apart: no client names one twice in a request."""


class Draws:
    """The requests of one session.

    Args:
        random: Seeded.
        session: Its name: what it names begins with it.
        world: Of the first broker: says how much there is to refer to.
    """

    def __init__(self, random: Random, session: str, world: World) -> None:
        self._random = random
        self._session = session
        self._world = world
        self._members = Members(world)
        self._producers = Producers(world)
        self._group: object = None
        self._member: object = None
        self._transactional_id: str | None = None
        self._producer: object = None
        self._target: dict[str, object] = {"topic": "", "partition": 0}
        self._fetch_epoch = 0
        self._fetch_version = 0
        self.topics = [f"{session}-{suffix}" for suffix in "abc"]
        self._special: Mapping[Drawn, Callable[[str], Any]] = {
            Drawn.TOPIC: self._topic,
            Drawn.NEW_TOPIC: self._new_topic,
            Drawn.TOPIC_ID: lambda _: Reference(Kind.TOPIC_ID, random.choice(self.topics)),
            Drawn.GROUP: lambda _: self._one_of(
                (f"{session}-g", f"{session}-g", f"{session}-h"), ("", f"{session}-no")
            ),
            Drawn.TRANSACTIONAL_ID: lambda _: self._one_of((f"{session}-t",), (f"{session}-u", "", f"{session}-no")),
            Drawn.PRODUCER_ID: lambda _: self._producer_id(),
            Drawn.PRODUCER_EPOCH: lambda _: self._producers.epoch_of(self._producer),
            Drawn.MEMBER_ID: lambda _: self._member_id(),
            Drawn.GENERATION: lambda _: self._members.generation_of(self._group),
            Drawn.MEMBER_EPOCH: lambda _: self._members.epoch_of(self._group, self._member),
            Drawn.FETCH_SESSION: lambda _: self._drawn(Kind.FETCH_SESSION, (0,)),
            Drawn.RECORDS: lambda _: self._records(),
            Drawn.CONFIG: self._config,
            Drawn.RESOURCE: self._resource,
            Drawn.NAME_OR_ID: self._name_or_id,
        }

    def request(self, apis: Mapping[str, int], *, in_fetch_sessions: bool) -> tuple[str, int, dict[str, Any]]:
        """Return an API, a version of it, and the fields of a request.

        Args:
            apis: Which, and how often each.
            in_fetch_sessions: Whether fetches go on with the session that was opened last, mostly.
        """
        api = self._random.choices(list(apis), list(apis.values()))[0]
        versions = codec.versions(api)
        version = versions[-1] if self._random.random() < _NEWEST_SHARE else self._random.choice(versions)
        if api == "AddPartitionsToTxn":
            version = min(version, 3)  # from 4 on it is asked by brokers
        in_session = api == "Fetch" and in_fetch_sessions
        if in_session and self._fetch_epoch:
            version = self._fetch_version
        fields = self._structure(api, codec.request_class(api), version)
        if in_session:
            self._go_on_with_session(fields, version)
        return api, version, fields

    def noted(self, api: str, fields: Mapping[str, Any], answer: Mapping[str, Any], codes: list[int]) -> None:
        """Take note of the first broker's answer, and of all error codes in it, so that what follows may fit."""
        self._producers.noted(api, fields, answer, codes)
        self._members.noted(api, fields, answer)
        if api == "Fetch" and answer.get("session_id") and not answer["error_code"]:
            self._fetch_epoch += 1

    # ------------------------------------------------------------------------------------------------- by the schema

    def _structure(self, api: str, kind: type[Message], version: int) -> dict[str, Any]:
        return {spec.name: self._field(api, spec, version) for spec in kind.__fields__ if version in spec.versions}

    def _field(self, api: str, spec: FieldSpec, version: int) -> Any:
        choice = OF_API.get((api, spec.name), CHOICES.get(spec.name))
        if choice is not None:
            value = self.draw(choice, api)
            is_refused = value is None and version not in spec.nullable
            value = self._of_no_choice(api, spec, version) if is_refused else value
            self._remember(spec.name, value)
            return value
        return self._of_no_choice(api, spec, version)

    def _remember(self, name: str, value: Any) -> None:
        """Take note of what says whom and what the following fields are about."""
        if name.endswith("transactional_id"):
            self._transactional_id = value
        elif name == "group_id":
            self._group = value
        elif name == "member_id":
            self._member = value
        elif target := _TARGET.get(name):
            self._target[target] = value.key if isinstance(value, Reference) else value

    def _of_no_choice(self, api: str, spec: FieldSpec, version: int) -> Any:
        if spec.struct is not None and spec.kind == "array":
            structure = spec.struct
            return self._list(lambda: self._structure(api, structure, version))
        if spec.kind == "array":
            return self.draw(PARTITIONS, api)
        if spec.kind == "bool":
            return self._random.random() < 0.5
        return {"string": "", "bytes": b""}.get(spec.kind, 0)

    def draw(self, choice: Any, api: str) -> Any:
        """Return what a choice comes to."""
        if isinstance(choice, Drawn):
            return self._special[choice](api)
        if isinstance(choice, Mix):
            return self.draw(self._one_of(choice.usual, choice.rare), api)
        if isinstance(choice, Some):
            return self._list(lambda: self.draw(choice.of, api), choice.usual_count)
        if isinstance(choice, tuple):
            return self.draw(self._random.choice(choice), api)
        if isinstance(choice, list):
            return [self.draw(item, api) for item in choice]
        if isinstance(choice, dict):
            return {name: self.draw(item, api) for name, item in choice.items()}
        return choice

    def _one_of(self, usual: tuple[Any, ...], rare: tuple[Any, ...] = ()) -> Any:
        return self._random.choice(rare if rare and self._random.random() < RARE_SHARE else usual)

    def _list(self, draw: Callable[[], Any], usual_count: int = 1) -> list[Any]:
        count = self._random.randint(0, 3) if self._random.random() < RARE_SHARE else usual_count
        found: dict[object, Any] = {}
        for _ in range(count):
            item = draw()
            key = {name: item[name] for name in _IDENTITY if name in item} if isinstance(item, dict) else item
            found.setdefault(repr(key), item)
        return list(found.values())

    # --------------------------------------------------------------------------------------------------- by the field

    def _topic(self, api: str) -> str:
        found: str = self._one_of(tuple(self.topics), (f"{self._session}-none", "", "bad name", ".", "a" * 250))
        return found

    def _new_topic(self, api: str) -> str:
        new = tuple(f"{self._session}-{suffix}" for suffix in ("d", "e", "f", "g"))
        found: str = self._one_of(new, (*self.topics, f"{self._session}.d", f"{self._session}_d", "", "bad name"))
        return found

    def _drawn(self, kind: Kind, others: tuple[Any, ...]) -> Any:
        count = self._world.count(kind)
        newest = tuple(Reference(kind, number) for number in range(max(0, count - _OLDER_KEPT), count))
        return self._one_of(newest or others, others)

    def _member_id(self) -> object:
        known = self._members.of(self._group)
        fits = known is not None and self._random.random() >= 2 * RARE_SHARE
        return known if fits else self._one_of(("",), ("nobody",))

    def _name_or_id(self, api: str) -> dict[str, Any]:
        by_name = {"name": self._topic(api), "topic_id": NO_ID}
        by_id = {"name": None, "topic_id": self._one_of((Reference(Kind.TOPIC_ID, self.topics[0]),), (UNKNOWN_ID,))}
        found: dict[str, Any] = self._one_of((by_name, by_name, by_id))
        return found

    def _config(self, api: str) -> dict[str, Any]:
        name, value = self._random.choice(TOPIC_CONFIGS)
        config: dict[str, Any] = {"name": name, "value": value}
        if api == "IncrementalAlterConfigs":
            config["config_operation"] = self._random.choice(_OPERATIONS)
        return config

    def _resource(self, api: str) -> dict[str, Any]:
        kind = self._one_of((_TOPIC,), (_GROUP, 0, 99))
        found = {"resource_type": kind, "resource_name": self._topic(api) if kind != _GROUP else f"{self._session}-g"}
        if api == "DescribeConfigs":
            return {**found, "configuration_keys": ["retention.ms", "cleanup.policy", "nonsense"]}
        return {**found, "configs": self._list(lambda: self._config(api))}

    def _go_on_with_session(self, fields: dict[str, Any], version: int) -> None:
        fields |= {"min_bytes": 0, "max_wait_ms": 0, "max_bytes": 1 << 20}
        count = self._world.count(Kind.FETCH_SESSION)
        if not count or self._random.random() < RARE_SHARE:
            fields |= {"session_id": 0, "session_epoch": 0}
            self._fetch_epoch, self._fetch_version = 0, version
            return
        is_wrong = self._random.random() < RARE_SHARE
        fields["session_id"] = Reference(Kind.FETCH_SESSION, count - 1)
        fields["session_epoch"] = self._fetch_epoch + (self._random.choice((1, -1)) if is_wrong else 0)
        if self._random.random() < 0.5:
            fields["topics"] = []

    # ------------------------------------------------------------------------------------------------------- records

    def _records(self) -> Any:
        random = self._random
        if random.random() < 0.05:
            return random.choice((b"", b"garbage", random.randbytes(70), legacy_message_set(0), legacy_message_set(1)))
        count = random.choice((1, 1, 2, 5))
        values = random.choice((b"v", None, b"", b"x" * 100))
        options: dict[str, Any] = {
            "content": [record(values, key=random.choice((None, b"k")), offset_delta=i) for i in range(count)],
            "codec": self._one_of((batches.NONE,), (batches.GZIP, batches.SNAPPY, batches.LZ4, batches.ZSTD)),
        }
        if self._transactional_id or random.random() < 0.5:
            options |= self._of_producer(count)
        wrong: Mapping[str, tuple[Any, ...]] = {
            "attributes": (batches.LOG_APPEND_TIME, batches.CONTROL, batches.DELETE_HORIZON, 0x80, 5, 7),
            "base_offset": (5, -1),
            "base_timestamp": (-1, 0, -5, 2**62),
            "count": (0, -1, count + 1),
            "crc_change": (1,),
            "last_offset_delta": (count, -1),
            "leader_epoch": (0, 5, -2),
            "length_change": (1, -1, -20),
            "magic": (0, 1, 3),
            "max_timestamp": (-1, 0, batches.T0 + 5),
            "payload": (b"", b"garbage"),
        }
        if random.random() < 2 * RARE_SHARE:
            name = random.choice(list(wrong))
            options[name] = random.choice(wrong[name])
        cut = self._one_of((0, 0, 0, 0), (0, 1, 60))
        return DrawnRecords(options, bytes_cut=cut, is_double=random.random() < RARE_SHARE / 3)

    def _producer_id(self) -> object:
        known = self._producers.of(self._transactional_id)
        fits = known is not None and self._random.random() >= RARE_SHARE
        self._producer = known if fits else self._drawn(Kind.PRODUCER_ID, (-1, 12345678901, -2))
        return self._producer

    def _of_producer(self, count: int) -> dict[str, Any]:
        producer = self._producer_id()
        epoch = self.draw(CHOICES["producer_epoch"], "Produce")
        key = (producer, epoch, *self._target.values())
        expected = self._producers.next_sequence(*key)
        sequence = self._one_of((expected,), (expected - count, expected + 1, 0, -1))
        if sequence == expected:
            self._producers.asked(count, *key)
        is_fitting = self._random.random() >= RARE_SHARE
        attributes = TRANSACTIONAL if bool(self._transactional_id) is is_fitting else 0
        return {"producer": (producer, epoch, sequence), "attributes": attributes}

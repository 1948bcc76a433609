"""Pure core: what is done to a broker, the same in every combination; read from TOML, and written back.

A workload is a flat table of numbers (`_FIELDS` has their bounds) and three tables of settings under Kafka's names:
`[topic]` and `[broker]` for the broker, `[producer]` for the client.
"""

from __future__ import annotations

import difflib
import tomllib
from collections.abc import Mapping
from typing import Any, Final

import attrs

from odradek.kernel.errors import ConfigError

INDEX_BYTES: Final = 8
"""Each value begins with its record's number, so that no two are the same."""


@attrs.frozen
class Workload:
    """What is done to a broker. Immutable.

    Attributes:
        name: What it is called.
        text: What it resembles, in one sentence.
        records: How many are produced as fast as the broker takes them.
        value_bytes: The size of each value.
        keys: How many different keys there are; 0 for records without.
        key_skew: 0 chooses every key equally often; 1 the n-th key in proportion to 1/n.
        tombstones: The share of records that delete their key.
        transaction_records: Records in a transaction; 0 for none.
        aborted: The share of transactions that are aborted.
        delay_ms: Each record asks to be seen later, by a millisecond to so many; 0 for at once.
        partitions: How many the topic has.
        paced_records: How many are produced one by one afterwards, to measure latencies.
        paced_rate: How many of these a second.
        read_s: The topic is read from its beginning as often as fits in so many seconds, at least once.
        quiet_s: A broker whose files did not change for so many seconds, and which does nothing, has come to rest.
            Closed segments are flushed once a second, and none is compacted or moved before: so it is more than that.
        settle_s: How long to wait for that at most.
        topic: Settings of the topic.
        broker: Settings of the broker.
        producer: Settings of the producer.
    """

    name: str
    text: str = ""
    records: int = 20_000
    value_bytes: int = 100
    keys: int = 0
    key_skew: float = 0.0
    tombstones: float = 0.0
    transaction_records: int = 0
    aborted: float = 0.0
    delay_ms: int = 0
    partitions: int = 2
    paced_records: int = 500
    paced_rate: float = 500.0
    read_s: float = 0.5
    quiet_s: float = 2.5
    settle_s: float = 30.0
    topic: Mapping[str, str] = attrs.field(factory=dict)
    broker: Mapping[str, str] = attrs.field(factory=dict)
    producer: Mapping[str, str] = attrs.field(factory=dict)

    @property
    def records_all(self) -> int:
        """How many records are produced in all."""
        return self.records + self.paced_records

    def as_toml(self) -> str:
        """Return it as a file that `parse_workload` reads: all that stands behind a comparison."""
        lines = [f"{name} = {_toml(value)}" for name in _FIELDS if (value := getattr(self, name)) != ""]
        for table in TABLES:
            if settings := getattr(self, table):
                lines += ["", f"[{table}]", *(f"{_toml(key)} = {_toml(text)}" for key, text in settings.items())]
        return "\n".join(lines) + "\n"


TABLES: Final = ("topic", "broker", "producer")

_FIELDS: Final[dict[str, tuple[type, float, float]]] = {
    "name": (str, 0, 0),
    "text": (str, 0, 0),
    "records": (int, 1, 100_000_000),
    "value_bytes": (int, INDEX_BYTES, 10_000_000),
    "keys": (int, 0, 10_000_000),
    "key_skew": (float, 0, 10),
    "tombstones": (float, 0, 1),
    "transaction_records": (int, 0, 1_000_000),
    "aborted": (float, 0, 1),
    "delay_ms": (int, 0, 20_000),
    "partitions": (int, 1, 10_000),
    "paced_records": (int, 0, 10_000_000),
    "paced_rate": (float, 0.1, 1_000_000),
    "read_s": (float, 0, 3_600),
    "quiet_s": (float, 0, 3_600),
    "settle_s": (float, 0, 86_400),
}
"""The type of each field, and its bounds, both included."""


def parse_workload(text: str, where: str) -> Workload:
    """Read a workload.

    Args:
        text: TOML.
        where: The file, for errors.

    Raises:
        ConfigError: It is no TOML, has a field that nobody knows or a value out of bounds, or its parts do
                not go together.
    """
    try:
        read = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"this is no TOML: {error}", where=where) from error
    values: dict[str, Any] = {}
    for name, value in read.items():
        values[name] = _settings(name, value, where) if name in TABLES else _field(name, value, where)
    values.setdefault("name", where.replace("\\", "/").rpartition("/")[2].removesuffix(".toml"))
    workload = Workload(**values)
    check_workload(workload, where)
    return workload


def check_workload(workload: Workload, where: str) -> None:
    """See that the parts of a workload go together.

    Raises:
        ConfigError: They do not.
    """
    conflicts = (
        (workload.tombstones and not workload.keys, "tombstones delete keys", "set `keys`"),
        (workload.key_skew and not workload.keys, "key_skew is about keys", "set `keys`"),
        (
            workload.aborted and not workload.transaction_records,
            "aborted is about transactions",
            "set `transaction_records`",
        ),
    )
    for is_wrong, why, hint in conflicts:
        if is_wrong:
            raise ConfigError(f"{why}, and there are none", where=where, hint=hint)


def check_for_cluster(workload: Workload, where: str) -> None:
    """See that what becomes of a workload's records can be told under faults: each is known by its value.

    Raises:
        ConfigError: It cannot.
    """
    if workload.transaction_records or workload.tombstones or workload.delay_ms:
        raise ConfigError("under faults there are neither transactions nor tombstones nor delays", where=where)
    if workload.producer.get("acks") == "0":
        raise ConfigError("with acks=0 nobody knows what was taken: nothing can be said of what was lost", where=where)
    if not workload.paced_records:
        raise ConfigError("faults come while paced records are due", where=where, hint="set `paced_records`")


def _field(name: str, value: object, where: str) -> object:
    if name not in _FIELDS:
        nearest = difflib.get_close_matches(name, [*_FIELDS, *TABLES], n=1)
        raise ConfigError(
            f"a workload has no {name!r}",
            where=where,
            hint=f"did you mean {nearest[0]!r}?" if nearest else f"known: {', '.join([*_FIELDS, *TABLES])}",
        )
    type_, low, high = _FIELDS[name]
    if type_ is float and type(value) is int:
        value = float(value)
    if type(value) is not type_:
        expected = {str: "a text", int: "a whole number", float: "a number"}[type_]
        raise ConfigError(f"{name} = {_toml(value)}: expected {expected}", where=where)
    if isinstance(value, int | float) and not low <= value <= high:
        raise ConfigError(f"{name} = {value}: expected {low:,} to {high:,}", where=where)
    return value


def _settings(table: str, value: object, where: str) -> dict[str, str]:
    if not isinstance(value, dict):
        raise ConfigError(f"{table}: expected a table of settings", where=where, hint=f"[{table}]")
    settings = {}
    for key, given in value.items():
        if not isinstance(given, str | int | float):
            raise ConfigError(f"[{table}] {key}: expected a text or a number", where=where, hint=f'"{key}" = "..."')
        settings[key] = str(given).lower() if isinstance(given, bool) else str(given)
    return settings


def _toml(value: object) -> str:
    """Write a value as TOML does."""
    if isinstance(value, str):
        return '"' + value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'
    return str(value).lower() if isinstance(value, bool) else str(value)

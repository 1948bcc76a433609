"""Pure core: what is known of one configuration key, and which parts of the product keys belong to.

A part that stands obeys its keys; a key of a part that does not is taken, shown by DescribeConfigs, and earns one
warning line. `Part` is the one table that says which.

*Source:* Kafka 4.3 `ConfigDef.ConfigKey`; update modes from `DynamicBrokerConfig`.
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, TypeAlias

from ..classes import frozen
from .values import ConfigType, parse, render

if TYPE_CHECKING:
    from collections.abc import Callable

    from .values import Validator, Value


class Scope(Enum):
    """What a key is set on."""

    BROKER = "broker"
    TOPIC = "topic"
    GROUP = "group"
    CLIENT_METRICS = "client metrics"


class Importance(Enum):
    """How much a person should care, as Kafka's pages put it."""

    HIGH = "high"
    MEDIUM = "medium"
    LOW = "low"


class UpdateMode(Enum):
    """Whether a running broker takes a new value: never, for itself, or for the whole cluster at once."""

    READ_ONLY = "read-only"
    PER_BROKER = "per-broker"
    CLUSTER_WIDE = "cluster-wide"


class Part(Enum):
    """The parts of the product that keys belong to.

    Attributes:
        stands: Whether the part is built, so that its keys work.
        text: For a part that does not stand, what the warning says after the key's name.
        effect: What the warning says of the effect that its keys have all the same.
    """

    stands: bool
    text: str
    effect: str

    def __new__(cls, label: str, stands: bool, text: str, effect: str = "it has no effect") -> Part:
        """Make a member that knows its facts."""
        member = object.__new__(cls)
        member._value_ = label
        member.stands = stands
        member.text = text
        member.effect = effect
        return member

    NETWORK = ("network", True, "")
    TLS = ("tls", True, "")
    REQUESTS = ("requests", True, "")
    LOG = ("log", True, "")
    TOPICS = ("topics", True, "")
    METADATA = ("metadata", True, "")
    PRODUCERS = ("producers", True, "")
    OBSERVE = ("observe", True, "")
    PLUGINS = ("plugins", True, "")
    GROUPS = ("groups", True, "")
    SHARE_GROUPS = ("share groups", False, "belongs to share groups, which are not built yet")
    STREAMS_GROUPS = ("streams groups", False, "belongs to streams groups, which are not built yet")
    TRANSACTIONS = ("transactions", True, "")
    CLEANUP = ("cleanup", True, "")
    SECURITY = ("security", False, "belongs to SASL, ACLs and delegation tokens, which are not built yet")
    MEMBERSHIP = ("membership", True, "")
    REPLICATION = ("replication", True, "")
    CLUSTER = ("cluster", False, "belongs to what of a cluster is not built yet")
    TIERED = ("tiered storage", True, "")
    TIERED_CLASSES = (
        "classes of tiered storage",
        False,
        "names or sets up a Java class of tiered storage; here a plugin keeps what is remote (odradek.tiered.store)",
    )
    TIERED_WINDOWS = (
        "rates of tiered storage",
        False,
        "averages a rate of tiered storage; here a rate holds from one piece of work to the next",
    )
    QUOTAS = ("quotas", False, "belongs to quotas, which are not built yet")
    TELEMETRY = ("telemetry", False, "belongs to client telemetry, which is not built yet")
    PURGATORY = ("purgatory", False, "tunes how finished requests are purged; here they leave by themselves")
    METRICS = ("metrics", False, "tunes Kafka's metrics library; counters and histograms here have no windows")
    THREADS = ("threads", False, "sizes thread pools of the JVM; one reactor serves everything here")
    WRITES = (
        "gathered writes",
        False,
        "tunes how coordinators and controllers gather writes; here what comes while one is written is the next",
    )
    CHECKPOINTS = (
        "checkpoints",
        False,
        "is not needed: log start offsets are kept as often as replica.high.watermark.checkpoint.interval.ms says",
    )
    JVM = ("jvm", False, "belongs to the JVM, which is not here")
    INTERNAL = ("internal", False, "is a private switch of Apache Kafka, which nothing here reads")


@frozen
class ConfigKey:
    """One configuration key.

    Attributes:
        name: As in Kafka, or beginning with `odradek.`.
        type: How its texts are read.
        default: The parsed default; `None` when it has none.
        validator: What a value must fulfil beyond its type.
        scope: What it is set on.
        importance: How much a person should care.
        update_mode: Whether a running broker takes a new value.
        part: The part of the product that reads it.
        synonyms: Keys of the broker that stand in where this one is not set, nearest first.
        doc: What it does: one or two plain sentences.
        is_internal: Whether DescribeConfigs leaves it out.
        refused_because: When not empty, a value other than the default is refused, for this reason.
    """

    name: str
    type: ConfigType
    default: Value
    validator: Validator | None = None
    scope: Scope = Scope.BROKER
    importance: Importance = Importance.MEDIUM
    update_mode: UpdateMode = UpdateMode.READ_ONLY
    part: Part = Part.INTERNAL
    synonyms: tuple[str, ...] = ()
    doc: str = ""
    is_internal: bool = False
    refused_because: str = ""

    @property
    def is_sensitive(self) -> bool:
        """Whether its value is hidden from everybody."""
        return self.type is ConfigType.PASSWORD

    @property
    def is_dynamic(self) -> bool:
        """Whether a running broker takes a new value: Kafka's update mode, but for what is fixed at the start here."""
        if self.update_mode is UpdateMode.PER_BROKER:
            return self.part not in {Part.NETWORK, Part.TLS}
        return self.update_mode is UpdateMode.CLUSTER_WIDE

    @property
    def default_text(self) -> str | None:
        """The default as DescribeConfigs writes it."""
        return render(self.default)

    @property
    def valid_values(self) -> str:
        """What is valid, as the reference page says it; may be empty."""
        return self.validator.describe() if self.validator is not None else ""

    def parse(self, text: str) -> Value:
        """Parse and check a text.

        Raises:
            InvalidValueError: It is no value of this key; the message is fit for a client.
        """
        value = parse(self.name, text, self.type)
        if self.validator is not None:
            self.validator.check(self.name, value)
        return value


def without_repetition(key: ConfigKey | None, text: str) -> str:
    """Return a text with repeated entries of a list dropped, as Kafka does before it checks; mere commas stay."""
    if key is None or key.type is not ConfigType.LIST or "," not in text:
        return text
    entries = tuple(entry.strip() for entry in text.split(","))
    distinct = tuple(dict.fromkeys(entries))
    return text if len(distinct) == len(entries) or distinct == ("",) else ",".join(distinct)


Row: TypeAlias = tuple[str, ConfigType, "Value", "Validator | None", Importance, UpdateMode, Part]
"""The facts of a key in a definition module: name, type, default, validator, importance, update mode, part."""


def build(
    rows: tuple[Row, ...],
    docs: str,
    *,
    scope: Scope,
    synonyms: Callable[[str], tuple[str, ...]] = lambda _: (),
    internal: frozenset[str] = frozenset(),
    refused: dict[str, str] | None = None,
) -> tuple[ConfigKey, ...]:
    """Join the rows of a definition module with its documentation.

    Args:
        rows: The facts.
        docs: Paragraphs between empty lines; the first line of each is the key, the others are its documentation.
        scope: What all these keys are set on.
        synonyms: Key to the broker's keys that stand in for it.
        internal: Keys that DescribeConfigs leaves out.
        refused: Key to the reason why only its default is taken.
    """
    texts = {}
    for paragraph in docs.strip().split("\n\n"):
        name, _, text = paragraph.partition("\n")
        texts[name] = " ".join(text.split())
    reasons = refused or {}
    return tuple(
        ConfigKey(
            name,
            type_,
            default,
            validator,
            scope,
            importance,
            mode,
            part,
            synonyms(name),
            texts.get(name, ""),
            name in internal,
            reasons.get(name, ""),
        )
        for name, type_, default, validator, importance, mode, part in rows
    )

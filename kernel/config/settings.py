"""Shell: gathers the static settings of a broker: command line over environment over file.

Where several keys mean the same (`log.dirs` and `log.dir`), whichever of them the nearest source sets counts.

Two steps, because plugins bring keys of their own: `read_settings` reads, so that the plugins to load are known;
`Settings.resolve` then names every key with the registry that holds theirs too.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

import attrs

from ..classes import frozen
from ..errors import ConfigError, KafkaError
from .broker import BrokerConfig, Setting
from .checks import check_together
from .cordons import check_cordons
from .definitions.synonyms import SAME_MEANING
from .keys import Scope, without_repetition
from .listeners import MAX_PORT, META_ADDRESSES
from .registry import Registry
from .sections import FileSections, StartTopic
from .topic import check_topic

_PREFIX: Final = "ODRADEK_"
_NOT_SETTINGS: Final = re.compile(r"ODRADEK_(PEERS(_CACHE)?|SERVICE_.*|PORT|PORT_.*)")
"""Variables that are no settings: of the test tools, and those that Kubernetes sets for a service named odradek."""
_WORDS: Final = re.compile(r"[\w.-]+")

PROTOCOLS: Final = "listener.security.protocol.map"
JOINED_BY: Final = "CONTROLLER"
"""The listener of the controllers, as nearly everybody names it, for who does not say how they call it."""


@frozen
class Settings:
    """What was read, before names are known to be names.

    Attributes:
        file: What the configuration file says.
        environment: Variables that begin with `ODRADEK_`, by their names.
        options: What the command line says, by key; the last word of each counts.
    """

    file: FileSections = attrs.field(factory=FileSections)
    environment: Mapping[str, str] = attrs.field(factory=dict)
    options: Mapping[str, Setting] = attrs.field(factory=dict)

    def resolve(self, registry: Registry, *, data_dir: Path) -> BrokerConfig:
        """Name every key, merge the layers, check every value.

        Args:
            registry: All known keys, those of plugins included.
            data_dir: Where logs go when no key says so.

        Raises:
            ConfigError: A name is unknown or a value is wrong; with file and line, variable or option.
        """
        static: dict[str, Setting] = {}
        for layer in (self.file.broker, self._named_environment(registry), self.options):
            _overrule(static, layer)
            static |= {
                name: setting._replace(text=without_repetition(registry.find(Scope.BROKER, name), setting.text))
                for name, setting in layer.items()
            }
        config = BrokerConfig(registry, _with_node_id(static), defaults={"log.dir": str(data_dir)})
        check_together(config)
        check_cordons(config)
        for topic in self.file.topics:
            texts = {
                name: without_repetition(registry.find(Scope.TOPIC, name), setting.text)
                for name, setting in topic.configs.items()
            }
            try:
                check_topic(config, texts)
            except KafkaError as error:
                raise ConfigError(error.detail, where=_place_of(error.detail, topic)) from error
        return config

    def _named_environment(self, registry: Registry) -> dict[str, Setting]:
        names = {_variable(name): name for name in registry.keys[Scope.BROKER]}
        # `ODRADEK_STORAGE` is what people write for `odradek.storage`; Kafka's names come first.
        short = {
            _variable(name).replace(_PREFIX, "", 1): name for name in names.values() if name.startswith("odradek.")
        }
        named = {}
        for variable, text in self.environment.items():
            name = names.get(variable) or short.get(variable)
            if name is None:
                raise self._unknown_variable(registry, variable)
            named[name] = Setting(text, f"environment variable {variable}")
        return named

    def _unknown_variable(self, registry: Registry, variable: str) -> ConfigError:
        name = variable.removeprefix(_PREFIX).lower().replace("_", ".")
        return ConfigError(
            f"unknown broker key {name!r}",
            where=f"environment variable {variable}",
            hint=registry.hint(Scope.BROKER, name) or "unset it",
        )


def _place_of(problem: str, topic: StartTopic) -> str:
    """Return where the first key of a topic that a text names is set; where the topic begins if it names none."""
    words = (word.strip(".") for word in _WORDS.findall(problem))
    return next((topic.configs[word].where for word in words if word in topic.configs), topic.where)


def _variable(name: str) -> str:
    """Return the environment variable of a key."""
    return _PREFIX + re.sub(r"[^A-Z0-9]", "_", name.upper())


def _overrule(static: dict[str, Setting], layer: Mapping[str, Setting]) -> None:
    """Drop what a nearer source says by a key of the same meaning.

    Kafka has one source, in which `log.dirs` beats `log.dir`. Here a file's `log.dirs` must not beat a `log.dir` of the
    environment.
    """
    for names in SAME_MEANING:
        if not layer.keys().isdisjoint(names):
            for name in names:
                static.pop(name, None)


def _with_node_id(static: dict[str, Setting]) -> dict[str, Setting]:
    """Let `broker.id` and `node.id` stand for each other, as Kafka does.

    Raises:
        ConfigError: One source sets both, and they differ.
    """
    node, broker = static.get("node.id"), static.get("broker.id")
    if node and broker and node.text.strip() != broker.text.strip():
        raise ConfigError(
            f"broker.id is {broker.text} and node.id is {node.text}", where=broker.where, hint="remove it"
        )
    if node and not broker:
        static["broker.id"] = node
    if broker and not node:
        static["node.id"] = broker
    return static


def read_settings(
    *, config: Path | None = None, environment: Mapping[str, str] | None = None, options: Sequence[str] = ()
) -> Settings:
    """Read a configuration file, the environment and the command line's `--set` options.

    Args:
        config: `odradek.toml`, or any file whose name ends in `.properties`.
        environment: All variables; those that begin with `ODRADEK_` count.
        options: `key=value` texts, in the order of the command line.

    Raises:
        ConfigError: The file cannot be read or parsed, or an option is no `key=value`.
    """
    variables = {
        name: text
        for name, text in (environment or {}).items()
        if name.startswith(_PREFIX) and not _NOT_SETTINGS.fullmatch(name)
    }
    return Settings(_read_file(config) if config else FileSections(), variables, _parse_options(options))


def _read_file(path: Path) -> FileSections:
    is_java = path.suffix == ".properties"
    try:
        content = path.read_bytes()
    except OSError as error:
        why = error.strerror or str(error)
        raise ConfigError(f"cannot read the configuration: {why}", where=str(path)) from error
    try:
        text = content.decode("utf-8-sig")  # editors on Windows begin it with a mark
    except UnicodeDecodeError as error:
        if not is_java:
            raise ConfigError("the configuration is not UTF-8", where=str(path)) from error
        text = content.decode("latin-1")  # Java's own encoding of such a file
    # The parsers are loaded where there is something to parse: a start without a file does not pay for them.
    if is_java:
        from .properties import parse_properties

        entries = parse_properties(text, str(path))
        return FileSections({entry.key: Setting(entry.value, f"{path}, line {entry.line}") for entry in entries})
    from .toml_file import parse_toml

    return parse_toml(text, str(path))


def _parse_options(options: Sequence[str]) -> dict[str, Setting]:
    parsed = {}
    for option in options:
        key, separator, text = option.partition("=")
        if not separator or not key.strip():
            raise ConfigError("expected key=value", where=f"--set {option}", hint="--set num.partitions=4")
        # The place names no value: it stands in warnings, and the value may be a secret.
        parsed[key.strip()] = Setting(text, f"--set {key.strip()}")
    return parsed


def listen_settings(addresses: Sequence[str]) -> dict[str, Setting]:
    """Turn `--listen HOST:PORT` options into the settings of listeners, for `Settings.options`.

    The first is named PLAINTEXT, the others PLAINTEXT2, PLAINTEXT3, ...; each is advertised as it is bound, one that is
    bound to every address under the machine's name.

    Raises:
        ConfigError: An address is not `HOST:PORT`.
    """
    names, endpoints = [], []
    for number, address in enumerate(addresses, start=1):
        host, separator, port = address.rpartition(":")
        if not separator or not port.isascii() or not port.isdigit() or int(port) > MAX_PORT:
            raise ConfigError("expected HOST:PORT", where=f"--listen {address}", hint="--listen 127.0.0.1:9092")
        names.append("PLAINTEXT" if number == 1 else f"PLAINTEXT{number}")
        host = "" if host.strip("[]") in META_ADDRESSES else host
        endpoints.append(f"{names[-1]}://{host}:{port}")
    where = " ".join(f"--listen {address}" for address in addresses)
    texts = {
        "listeners": ",".join(endpoints),
        "advertised.listeners": ",".join(endpoints),
        PROTOCOLS: ",".join(f"{name}:PLAINTEXT" for name in names),
    }
    return {name: Setting(text, where) for name, text in texts.items()} if endpoints else {}


def join_settings(address: str, listen: Mapping[str, Setting], settings: Settings) -> dict[str, Setting]:
    """Turn `--join HOST:PORT` into settings: a broker and no controller, which takes a free id if it has none.

    Args:
        address: Where the cluster is found, several with commas; empty for a broker that joins none.
        listen: What `--listen` is turned into: that says nothing of how controllers are reached.
        settings: What the others say, perhaps how controllers call their listener.
    """
    if not address:
        return {}
    where, names = f"--join {address}", "controller.listener.names"
    found = {"process.roles": Setting("broker", where), "controller.quorum.bootstrap.servers": Setting(address, where)}
    if PROTOCOLS in listen:
        found[PROTOCOLS] = listen[PROTOCOLS]._replace(text=f"{listen[PROTOCOLS].text},{JOINED_BY}:PLAINTEXT")
    if not {names, _variable(names)} & {*settings.file.broker, *settings.environment, *settings.options}:
        found[names] = Setting(JOINED_BY, where)
    return found


def default_data_dir(environment: Mapping[str, str], home: Path) -> Path:
    """Return the user's data directory for this broker.

    Args:
        environment: All variables; `XDG_DATA_HOME` counts when it is an absolute path.
        home: The user's home directory.
    """
    base = Path(environment.get("XDG_DATA_HOME", ""))
    return (base if base.is_absolute() else home / ".local" / "share") / "odradek"

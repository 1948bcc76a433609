"""Shell: `odradek configs`: the settings that topics, brokers and groups have while they run."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Final

from odradek.kernel.errors import ConfigError

from .options import add_client_options, add_json_option, client_settings, document, pairs
from .output import print_json, print_table

if TYPE_CHECKING:
    from odradek.client import ConfigOperation, ResourceType
    from odradek.client.admin_values import ConfigEntry

    from .cluster_calls import ClusterCalls

KINDS: Final = {"topic": 2, "broker": 4, "brokers": 4, "group": 32, "client-metrics": 16}
"""What settings may belong to, with Kafka's number for it; `brokers` are the defaults of all."""

SOURCES: Final = {
    1: "topic",
    2: "this broker, dynamic",
    3: "all brokers, dynamic",
    4: "start of the broker",
    5: "default",
    6: "logger",
    7: "client metrics",
    8: "group",
}
_ALL_BROKERS: Final = 3
_DEFAULT: Final = 5
_OPERATIONS: Final = {"set": 0, "unset": 1, "append": 2, "subtract": 3}
"""Option to Kafka's number for it."""


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the command's actions."""
    document(
        parser,
        "Show and change settings of a running broker through the Kafka protocol. `odradek config describe` explains "
        "what a key means.",
        [
            ("configs describe topic orders", "what was set for a topic"),
            ("configs alter topic orders --set retention.ms=60000", "keep records for a minute"),
        ],
    )
    actions = parser.add_subparsers(title="actions", metavar="ACTION", required=True)
    describe = actions.add_parser("describe", help="show settings, and where they come from")
    document(
        describe,
        "Show settings that are not defaults, with the place that they come from; --all shows every one.",
        [
            ("configs describe topic orders --all", "every setting of a topic"),
            ("configs describe broker 1", "what broker 1 was started with, and what was changed since"),
            ("configs describe brokers", "what was set for all brokers at once"),
        ],
    )
    _add_resource(describe)
    describe.add_argument("--all", action="store_true", help="show defaults too")
    describe.set_defaults(work=_describe)
    alter = actions.add_parser("alter", help="change settings")
    document(
        alter,
        "Change settings, all of them or none. They take effect at once and survive a restart.",
        [
            ("configs alter topic orders --set retention.ms=60000 --unset segment.bytes", "change two"),
            ("configs alter broker 1 --set log.retention.ms=86400000", "for one broker"),
            ("configs alter brokers --set log.retention.ms=86400000", "for all brokers"),
        ],
    )
    _add_resource(alter)
    alter.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="set a value")
    alter.add_argument("--unset", action="append", default=[], metavar="KEY", help="back to the default")
    alter.add_argument("--append", action="append", default=[], metavar="KEY=VALUE", help="add to a list")
    alter.add_argument("--subtract", action="append", default=[], metavar="KEY=VALUE", help="take from a list")
    alter.set_defaults(work=_alter)


def _add_resource(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("kind", type=_kind_name, metavar="KIND", help=", ".join(KINDS))
    parser.add_argument("name", nargs="?", default="", metavar="NAME", help="a topic, a group, or a broker's id")
    add_json_option(parser)
    add_client_options(parser)


def _kind_name(text: str) -> str:
    """Read what settings belong to, for argparse.

    Raises:
        argparse.ArgumentTypeError: It is none of `KINDS`; a key perhaps, which another command explains.
    """
    if text not in KINDS:
        known = ", ".join(KINDS)
        raise argparse.ArgumentTypeError(f"{text!r} is none of {known} (what a key means: odradek config describe)")
    return text


def run(arguments: argparse.Namespace) -> int:
    """Do what was asked.

    Raises:
        ConfigError: A name is missing, or one too many.
    """
    if (arguments.kind == "brokers") == bool(arguments.name):
        what = "takes no name" if arguments.name else "needs a name"
        raise ConfigError(f"{arguments.kind} {what}", hint="odradek configs describe --help")
    from .cluster_calls import call

    call(client_settings(arguments), lambda calls: arguments.work(arguments, calls))
    return 0


async def _describe(arguments: argparse.Namespace, calls: ClusterCalls) -> None:
    configs = await calls.admin.describe_configs(_kind(arguments, calls), arguments.name)
    shown = [config for _, config in sorted(configs.items()) if arguments.all or not is_as_by_default(config)]
    if arguments.json:
        print_json([_as_json(config) for config in shown])
        return
    if not shown:
        what = f"{arguments.kind} {arguments.name}".strip()
        print(f"nothing is set for {what}{'' if arguments.kind == 'brokers' else '; --all shows the defaults'}")
        return
    print_table(
        ("key", "value", "comes from"),
        [(config.name, _value(config), SOURCES.get(config.source, "?")) for config in shown],
    )


def is_as_by_default(config: ConfigEntry) -> bool:
    """Return whether a resource has the default, and whatever stands behind it says the same.

    A cluster keeps a `min.insync.replicas` for all brokers from its first start on (KIP-966), so every topic and broker
    has one that nobody chose. The defaults of all brokers, which are asked for as such, have nothing behind them.
    """
    sources = {source for _, _, source in config.synonyms}
    values = {value for _, value, _ in config.synonyms}
    is_inherited = config.source == _ALL_BROKERS and _DEFAULT in sources
    return config.is_default or (is_inherited and values == {config.value})


async def _alter(arguments: argparse.Namespace, calls: ClusterCalls) -> None:
    changes = read_changes(arguments)
    await calls.admin.alter_configs(_kind(arguments, calls), arguments.name, changes)
    what = f"{arguments.kind} {arguments.name}".strip()
    if arguments.json:
        print_json({"changed": what, "keys": list(changes)})
    else:
        print(f"changed {what}: {', '.join(changes)}")


def _kind(arguments: argparse.Namespace, calls: ClusterCalls) -> ResourceType:
    """Return the kind of resource, after a look at whether a topic or a broker is there: the hint is a better one."""
    from odradek.client import ResourceType

    if arguments.kind == "topic":
        calls.topic(arguments.name)
    elif arguments.kind == "broker":
        calls.check_broker(arguments.name)
    return ResourceType(KINDS[arguments.kind])


def read_changes(arguments: argparse.Namespace) -> dict[str, tuple[ConfigOperation, str | None]]:
    """Return the changes that were asked for, by key.

    Raises:
        ConfigError: There is none, or one is not `key=value`.
    """
    from odradek.client import ConfigOperation

    changes: dict[str, tuple[ConfigOperation, str | None]] = {}
    for option, number in _OPERATIONS.items():
        given: list[str] = getattr(arguments, option)
        values = dict.fromkeys(given) if option == "unset" else pairs(given, f"--{option}")
        changes |= {key: (ConfigOperation(number), value) for key, value in values.items()}
    if not changes:
        raise ConfigError("nothing to change", hint="give --set, --unset, --append or --subtract")
    return changes


def _value(config: ConfigEntry) -> str:
    return "(secret)" if config.is_sensitive else config.value or ""


def _as_json(config: ConfigEntry) -> dict[str, object]:
    return {
        "key": config.name,
        "value": config.value,
        "source": SOURCES.get(config.source, "?"),
        "read_only": config.is_read_only,
        "secret": config.is_sensitive,
        "synonyms": [
            {"key": name, "value": value, "source": SOURCES.get(source, "?")} for name, value, source in config.synonyms
        ],
    }

"""Pure core: renders the configuration reference from the definitions: the page in docs, and a key for the terminal."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Final

from .keys import ConfigKey, Part, Scope

if TYPE_CHECKING:
    from .registry import Registry

_HEAD: Final = """\
# Configuration reference

Generated from the definitions in `kernel/config/definitions`, and those of our plugins, by `python -m
tools.render_configuration`; a test fails when this page is stale.

## Where a value comes from

The nearest source wins. DescribeConfigs names the source of every value by these numbers.

| source | number | how it is set |
| --- | --- | --- |
| topic, group, client metrics | 1, 8, 7 | Admin API on the resource; `[topics.NAME]` in the file for new topics |
| this broker, while it runs | 2 | Admin API, on the broker by its id |
| all brokers, while they run | 3 | Admin API, on the broker with the empty name |
| this broker, at the start | 4 | `--set key=value` over `ODRADEK_KEY` over `--config FILE` |
| default | 5 | |

Where several keys say one thing (`log.dirs` and `log.dir`; `node.id` and `broker.id`; `log.retention.ms`, `.minutes`
and `.hours`; `log.roll.ms` and `.hours`; `log.roll.jitter.ms` and `.hours`), whichever of them the nearest source sets
counts: `ODRADEK_LOG_DIR` beats a `log.dirs` of the file. In one source the first of them counts, as in Kafka.

An environment variable is `ODRADEK_` and the key in capitals, its dots as underscores: `ODRADEK_NUM_PARTITIONS`. A
file is an `odradek.toml`, with the keys in quotes under `[broker]`, or Kafka's own `server.properties`. A setting of
one listener is written as in Kafka: `listener.name.<listener>.<key>`.

An unknown key stops the start, with the nearest known name. A key of a part that is not built, or not needed here, is
taken with one line of warning, and shown by DescribeConfigs:

| part | what the warning says |
| --- | --- |
"""


def render_page(registry: Registry) -> str:
    """Render the whole reference as Markdown.

    Args:
        registry: The keys; those of plugins are rendered with the others.
    """
    return _HEAD + "\n".join(_page_lines(registry)) + "\n"


def _page_lines(registry: Registry) -> Iterator[str]:
    for part in Part:
        if not part.stands:
            yield f"| {part.value} | {part.text}; {part.effect} |"
    for scope in Scope:
        yield ""
        yield f"## Keys of a {scope.value}" if scope is not Scope.CLIENT_METRICS else "## Keys of client metrics"
        keys = [key for key in registry.keys[scope].values() if not key.is_internal]
        for part in Part:
            group = sorted((key for key in keys if key.part is part), key=_order)
            if group:
                yield from _group_lines(part, group)


def _order(key: ConfigKey) -> tuple[bool, str]:
    return key.name.startswith("odradek."), key.name


def _group_lines(part: Part, keys: Iterable[ConfigKey]) -> Iterator[str]:
    yield ""
    yield f"### {_title(part)}{'' if part.stands else ' (no effect here: taken with a warning)'}"
    yield ""
    yield "| key | type | default | valid | what it does |"
    yield "| --- | --- | --- | --- | --- |"
    for key in keys:
        cells = (f"`{key.name}`", _type(key), _code(_default(key)), _code(key.valid_values), _text(key))
        yield f"| {' | '.join(cells)} |"


def _title(part: Part) -> str:
    name: str = part.value
    return name.upper() if part in {Part.TLS, Part.JVM} else name.capitalize()


def _type(key: ConfigKey) -> str:
    return key.type.name.lower() + (" (secret)" if key.is_sensitive else "")


def _default(key: ConfigKey) -> str:
    if key.default is None:
        return ""
    return key.default_text or '""'


def _code(text: str) -> str:
    escaped = text.replace("|", "\\|")
    return f"`{escaped}`" if text else ""


def _text(key: ConfigKey) -> str:
    notes = [key.doc.replace("|", "\\|")]
    stand_ins = [name for name in key.synonyms if name != key.name or key.scope is not Scope.BROKER]
    if key.scope is not Scope.BROKER and stand_ins:
        notes.append(f"If it is not set: {', '.join(f'`{name}`' for name in stand_ins)}.")
    if key.scope is Scope.BROKER and key.is_dynamic:
        notes.append(f"Dynamic, {key.update_mode.value}.")
    if key.refused_because:
        notes.append(f"Refused unless it keeps its default: {key.refused_because}.")
    return " ".join(notes)


def render_key(key: ConfigKey) -> str:
    """Render one key for the terminal: a line of facts, the documentation, what counts where it is not set.

    Returns:
        Lines without a trailing line feed.
    """
    facts = [_type(key), f"default {_default(key) or 'none'}"]
    if key.valid_values:
        facts.append(f"valid {key.valid_values}")
    facts.append(f"{key.importance.value} importance")
    if key.scope is Scope.BROKER and key.is_dynamic:
        facts.append(f"dynamic {key.update_mode.value}")
    lines = [f"{key.name} ({key.scope.value})", f"    {', '.join(facts)}", f"    {_text(key)}"]
    if not key.part.stands:
        lines.append(f"    Taken with a warning: it {key.part.text}; {key.part.effect}.")
    return "\n".join(lines)

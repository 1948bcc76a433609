"""Pure core: `odradek.toml`: the broker's keys, the plugins, the topics to have at start, with the line of each.

```toml
[broker]
"num.partitions" = 4

[plugins]
enable = ["*", "my_package.my_plugin"]
disable = ["storage_memory"]

[plugins.delay]
levels = "5s 10s"

[topics.orders]
partitions = 6
"retention.ms" = 86400000
```
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from typing import Final

from ..errors import ConfigError
from .broker import Setting
from .sections import FileSections, StartTopic

_SECTIONS: Final = ("broker", "plugins", "topics")
_HEADER: Final = re.compile(r"\s*\[\s*(.+?)\s*\]\s*(#.*)?")


def parse_toml(text: str, name: str) -> FileSections:
    """Parse the text of an `odradek.toml`.

    Args:
        text: The whole text.
        name: The file's name, for errors.

    Raises:
        ConfigError: It is no TOML, or a section or a value is not what stands in an `odradek.toml`.
    """
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"not TOML: {error}", where=name, hint="keys with dots stand in quotes") from error
    return _Reader(text, name).read(document)


class _Reader:
    """Turns a document into settings, and finds the lines that the TOML parser does not tell."""

    def __init__(self, text: str, name: str) -> None:
        self._lines = text.splitlines()
        self._name = name

    def read(self, document: dict[str, object]) -> FileSections:
        for section in document:
            if section not in _SECTIONS:
                hint = "an odradek.toml has [broker], [plugins] and [topics.NAME]; the broker's keys stand in [broker]"
                raise ConfigError(f"unknown section or key {section!r}", where=self._where((), section), hint=hint)
        broker = self._settings(("broker",), self._table(document, (), "broker"))
        plugins = self._table(document, (), "plugins")
        topics = self._table(document, (), "topics")
        sections = {
            name: self._table(plugins, ("plugins",), name) for name in plugins if name not in {"enable", "disable"}
        }
        return FileSections(
            broker,
            self._names(plugins, "enable") if "enable" in plugins else None,
            self._names(plugins, "disable"),
            sections,
            tuple(self._topic(name, self._table(topics, ("topics",), name)) for name in topics),
            {
                path: self._where(("plugins", *path[:-1]), path[-1])
                for name, section in sections.items()
                for path in ((name,), *((name, key) for key in section))
            },
        )

    def _table(self, parent: Mapping[str, object], path: tuple[str, ...], name: str) -> dict[str, object]:
        table = parent.get(name, {})
        if not isinstance(table, dict):
            full = ".".join((*path, name))
            raise ConfigError(f"{full} must be a table", where=self._where(path, name), hint=f"write [{full}]")
        return table

    def _names(self, plugins: Mapping[str, object], key: str) -> tuple[str, ...]:
        names = plugins.get(key, [])
        if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
            where = self._where(("plugins",), key)
            raise ConfigError(f"plugins.{key} must be a list of texts", where=where, hint=f'{key} = ["name"]')
        return tuple(names)

    def _settings(self, path: tuple[str, ...], table: Mapping[str, object]) -> dict[str, Setting]:
        """Read keys and values; a key whose dots are not quoted comes as nested tables and is put together again."""
        settings: dict[str, Setting] = {}
        for name, value in table.items():
            where = self._where(path, name)
            if isinstance(value, dict):
                inner = self._settings((*path, name), value)
                settings |= {f"{name}.{key}": setting for key, setting in inner.items()}
            else:
                settings[name] = Setting(_text(name, value, where), where)
        return settings

    def _topic(self, name: str, table: dict[str, object]) -> StartTopic:
        path = ("topics", name)
        counts: dict[str, int | None] = {"partitions": None, "replication.factor": None}
        settings = self._settings(path, table)
        for key in counts:
            if key in settings:
                setting = settings.pop(key)
                if not setting.text.isascii() or not setting.text.isdigit() or int(setting.text) < 1:
                    raise ConfigError(f"{key} must be a whole number of at least 1", where=setting.where)
                counts[key] = int(setting.text)
        where = self._where(("topics",), name)
        return StartTopic(name, counts["partitions"], counts["replication.factor"], settings, where)

    def _where(self, path: tuple[str, ...], key: str) -> str:
        """Return the file and the line where a key of a table, or the table itself, stands.

        The parser keeps no lines, so the text is searched: under the table's header for the key, otherwise for the
        header of the table that the key names. Odd spellings (escapes in quoted keys) give the file only.
        """
        current: tuple[str, ...] = ()
        for number, line in enumerate(self._lines, start=1):
            if header := _HEADER.fullmatch(line):
                current = _parts(header[1].strip("[]"))
                if current[: len(path) + 1] == (*path, key):
                    return f"{self._name}, line {number}"
                continue
            written, separator, _ = line.partition("=")
            full = (*current, *_parts(written.strip()))
            if separator and full[: len(path) + 1] == (*path, key):
                return f"{self._name}, line {number}"
        return self._name


def _parts(key: str) -> tuple[str, ...]:
    """Split a key at the dots outside quotes."""
    return tuple(part.strip().strip("\"'") for part in re.findall(r"\"[^\"]*\"|'[^']*'|[^.\"']+", key) if part.strip())


def _text(name: str, value: object, where: str) -> str:
    """Write a TOML value as the text that the key's own parser reads."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str | int | float):
        return str(value)
    if isinstance(value, list) and all(isinstance(entry, str | int) for entry in value):
        return ",".join(str(entry) for entry in value)
    kind = type(value).__name__
    raise ConfigError(f"{name} must be a text, a number, a boolean or a list of texts, not a {kind}", where=where)

"""Pure core: says whether the sections `[plugins.NAME]` of a configuration file are such as their plugins take."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from ..config.sections import FileSections


def check_plugin_settings(file: FileSections, taken: Mapping[str, Iterable[str]], installed: Iterable[str]) -> None:
    """Refuse a section of a plugin that is not there, and a key that its plugin does not take.

    The section of a plugin that is installed and not active is left alone: nobody knows what it would take.

    Args:
        file: What the configuration file says.
        taken: Each active plugin's keys, by its name: those that its `odradek_plugin_settings` names.
        installed: The names of all plugins that are installed.

    Raises:
        ConfigError: With file, line and the nearest name that is known.
    """
    names = {*taken, *installed}
    for name, section in file.plugins.items():
        where = file.plugin_places.get((name,), "")
        if name not in names:
            raise ConfigError(f"no plugin {name!r} is installed", where=where, hint=_nearest(name, names))
        if name not in taken:
            continue
        keys = tuple(taken[name])
        for key in section:
            if key not in keys:
                hint = _nearest(key, keys) or ("" if keys else "it takes none; the broker's keys stand in [broker]")
                where = file.plugin_places.get((name, key), where)
                raise ConfigError(f"plugin {name!r} takes no key {key!r}", where=where, hint=hint)


def _nearest(name: str, known: Iterable[str]) -> str:
    import difflib  # takes 10 ms to import

    nearest = difflib.get_close_matches(name, sorted(known), n=1, cutoff=0.6)
    return f"did you mean {nearest[0]!r}?" if nearest else ""

"""Shell: the services of plugins in one broker: prepared before a disk is touched, run while it serves, closed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..errors import OdradekError
from ..plugin_system.manager import failed

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator, Sequence

    from ..contracts.services import Service


class PluginServices:
    """Life: made, `prepare`, then what `runs` gives is run by the broker; `close` at the end, however it came."""

    def __init__(self, offered: Sequence[tuple[str, Service]]) -> None:
        """Take what plugins offer, each with its plugin's name."""
        self._offered = offered

    async def prepare(self) -> None:
        """Have each take what it needs of the machine.

        Raises:
            OdradekError: As the service says; PluginError for a bug in it.
        """
        for plugin, service in self._offered:
            try:
                await service.prepare()
            except OdradekError:
                raise
            except Exception as error:
                raise failed(plugin, f"service {service.name!r} cannot be prepared", error) from error

    def addresses(self) -> dict[str, str]:
        """Return where services listen beside the broker, by their names."""
        return {service.name: address for _, service in self._offered if (address := service.address())}

    def runs(self) -> Iterator[tuple[str, Callable[..., Awaitable[None]]]]:
        """Iterate over what is run while the broker serves, with names."""
        for plugin, service in self._offered:
            yield f"{plugin}: {service.name}", service.run

    def close(self) -> None:
        """Have each give back what it took."""
        for _, service in self._offered:
            service.close()

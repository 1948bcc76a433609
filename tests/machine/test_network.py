"""The system's network: what it says of hosts that there cannot be."""

from __future__ import annotations

import pytest
import trio

from odradek.kernel.machine.system.network import SystemNetwork


@pytest.mark.parametrize("host", ["a..b", "a" * 64, "\ud800"])
def test_a_host_that_no_name_can_be_is_an_error_of_the_system(host: str) -> None:
    with pytest.raises(OSError, match="no name of a host"):
        trio.run(SystemNetwork().resolve, host, 9092)

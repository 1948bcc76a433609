"""A node that is controller and broker, on virtual time: who asks the controller does not wait for clients."""

from __future__ import annotations

import pytest
import trio

from odradek.kernel.dispatch.listener_routers import ListenerRouters
from odradek.kernel.network.connection import Connection
from odradek.kernel.peers.connection import open_connection
from odradek.kernel.wire.messages.api_18_api_versions import ApiVersionsRequest
from odradek.lab.simulator.cluster import CONTROLLER_PORT, PORT, Cluster

from .simulated import CONNECTION, in_cluster

CLIENTS = 40
CONTROLLERS = 3
HELLO = ApiVersionsRequest(client_software_name="asker", client_software_version="1")


def test_the_controllers_listener_goes_ahead_of_client_traffic(monkeypatch: pytest.MonkeyPatch) -> None:
    """A node stands still while clients ask, and nodes after them; then all of it is there at once."""
    taken: list[tuple[str, str]] = []
    frame_received = ListenerRouters.frame_received

    def note(self: ListenerRouters, connection: Connection, frame: memoryview) -> None:
        taken.append((connection.client_host, connection.listener_name))
        frame_received(self, connection, frame)

    monkeypatch.setattr(ListenerRouters, "frame_received", note)

    async def main(cluster: Cluster) -> list[str]:
        network = cluster.client_machine("askers").network
        address = cluster.client_host("askers").host.address
        standing = cluster.brokers[1]

        async def ask(port: int, asks_at_s: float, *, task_status: trio.TaskStatus[None]) -> None:
            async with open_connection("broker-1", port, CONNECTION, network=network) as connection:
                await connection.request(HELLO, timeout_ms=30_000)
                task_status.started()
                await trio.sleep_until(asks_at_s)
                await connection.request(HELLO, timeout_ms=30_000)

        async with trio.open_nursery() as nursery:
            begin_s = trio.current_time() + 1
            for _ in range(CLIENTS):
                await nursery.start(ask, PORT, begin_s)
            for _ in range(CONTROLLERS):
                await nursery.start(ask, CONTROLLER_PORT, begin_s + 0.5)
            standing.pause()
            taken.clear()
            await trio.sleep_until(begin_s + 1)
            standing.resume()
        return [listener for host, listener in taken if host == address]

    assert in_cluster(main) == ["CONTROLLER"] * CONTROLLERS + ["PLAINTEXT"] * CLIENTS

import random

import pytest
import trio

from odradek.kernel.contracts.services import Metric
from odradek.kernel.dispatch.fetch_session import FetchSessionCache
from odradek.kernel.errors import ConfigError, PluginError
from odradek.kernel.machine.clock import ManualClock
from odradek.kernel.metadata.image import MetadataImage
from odradek.kernel.observe.observer import Observer
from tests.dispatch.hosted import make_manager


def make_observer(*plugin_metrics: Metric, http_listener: str = "") -> Observer:
    return Observer(
        node_id=1,
        image=MetadataImage,
        replicas=make_manager(ManualClock(), {}),
        routes={},
        purgatories=(),
        sessions=FetchSessionCache(slots=1, random_source=random.Random(0)),
        network_statistics=lambda: None,
        plugin_metrics=[("delay", metric) for metric in plugin_metrics],
        http_listener=http_listener,
        is_ready=lambda: True,
        has_late_transaction=lambda replica: False,
    )


def test_plugins_metrics_stand_beside_the_kernels() -> None:
    text = "".join(make_observer(Metric("odradek_delayed", "Help.", "gauge", lambda: {(): 4})).registry.render())

    assert "\nodradek_delayed 4\n" in text
    assert "\nkafka_server_replicamanager_partitioncount 0\n" in text


def test_a_plugin_cannot_take_a_name_of_the_kernel() -> None:
    with pytest.raises(PluginError, match="delay"):
        make_observer(Metric("kafka_log_log_size", "Help.", "gauge", dict))


def test_a_plugins_broken_metric_is_logged_and_left_out(caplog: pytest.LogCaptureFixture) -> None:
    def fail() -> dict[tuple[str, ...], float]:
        raise ValueError("broken")

    text = "".join(make_observer(Metric("odradek_broken", "Help.", "gauge", fail)).registry.render())

    assert "odradek_broken" not in text
    assert [vars(record)["metric"] for record in caplog.records] == ["odradek_broken"]


def test_http_is_off_unless_it_is_asked_for() -> None:
    observer = make_observer()
    trio.run(observer.bind)

    assert observer.http_address is None
    assert [name for name, _ in observer.services()] == ["idle monitor", "hold-up watch"]


def test_metrics_are_served_where_the_setting_says() -> None:
    observer = make_observer(http_listener="127.0.0.1:0")

    async def main() -> bytes:
        await observer.bind()
        assert observer.http_address is not None
        got = bytearray()
        async with trio.open_nursery() as nursery:
            for _, run in observer.services():
                await nursery.start(run)
            stream = await trio.open_tcp_stream(*observer.http_address)
            await stream.send_all(b"GET /metrics HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n")
            async for data in stream:
                got.extend(data)
            await stream.aclose()
            nursery.cancel_scope.cancel()
        return bytes(got)

    assert b"\nkafka_server_replicamanager_leadercount 0\n" in trio.run(main)


def test_a_wrong_setting_stops_the_start() -> None:
    with pytest.raises(ConfigError, match="HOST:PORT"):
        trio.run(make_observer(http_listener="nonsense").bind)

"""A broker among three controllers whose directory is damaged, newer or another cluster's is refused; others go on."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import PurePath

from odradek.client import NewTopic
from odradek.kernel.contracts.culprits import root_of
from odradek.kernel.errors import ConfigError, CorruptionError
from odradek.lab.simulator.cluster import DATA_DIR, BrokerHost, Cluster
from odradek.lab.simulator.disk import File

from .simulated import admin, image_of, in_quorum_of_three, until
from .test_quorum_of_three import described

METADATA = DATA_DIR / "__cluster_metadata-0"
DAMAGES: dict[str, tuple[PurePath, Callable[[bytes], bytes]]] = {
    "cut": (METADATA / "quorum-state", lambda data: data[: len(data) // 2]),
    "newer": (METADATA / "quorum-state", lambda data: data.replace(b'"data_version":1', b'"data_version":9')),
    "another-cluster": (DATA_DIR / "meta.properties", lambda data: data.replace(b"cluster.id=", b"cluster.id=other-")),
}


def rewrite(broker: BrokerHost, path: PurePath, data: bytes) -> bytes:
    """Replace what is in a file of a broker that does not live, and return what was."""
    file = broker.host.disk.entry(path)
    assert isinstance(file, File)
    before = bytes(file.data)
    assert before != data
    file.resize(0)
    file.write(0, data)
    return before


async def refusal(broker: BrokerHost) -> BaseException:
    """Start a broker that is refused, and return why."""
    failures: list[Exception] = []
    broker.on_failure = failures.append
    broker.start()
    await until(lambda: bool(failures))
    await broker.wait_ended()
    broker.broker, broker.on_failure = None, None
    return root_of(failures[0])


def test_a_controller_whose_directory_cannot_be_its_own_is_refused_and_the_others_go_on() -> None:
    async def main(cluster: Cluster) -> tuple[dict[str, BaseException], list[str]]:
        leader_id = (await described(cluster, 1)).leader_id
        victim_id = next(broker_id for broker_id in cluster.brokers if broker_id != leader_id)
        victim, found = cluster.brokers[victim_id], dict[str, BaseException]()
        for name, (path, damaged) in DAMAGES.items():
            victim.crash()
            file = victim.host.disk.entry(path)
            assert isinstance(file, File)
            before = rewrite(victim, path, damaged(bytes(file.data)))
            found[name] = await refusal(victim)
            async with admin(cluster, leader_id) as client:
                await client.create_topic(NewTopic(name, 1, 2))
            rewrite(victim, path, before)
            victim.start()
            await victim.wait_serving()
        await until(lambda: set(DAMAGES) <= image_of(victim).topics_by_name.keys())
        return found, sorted(image_of(victim).topics_by_name)

    found, topics = in_quorum_of_three(main)

    assert {name: type(error) for name, error in found.items()} == {
        "cut": CorruptionError,
        "newer": CorruptionError,
        "another-cluster": ConfigError,
    }
    assert "quorum-state" in str(found["cut"])
    assert "which a newer release wrote" in str(found["newer"])
    assert "another cluster" in str(found["another-cluster"])
    assert topics == sorted(DAMAGES)

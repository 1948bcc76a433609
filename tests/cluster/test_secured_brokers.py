"""Three broker processes that speak TLS among themselves, and ask each other who they are.

What Kafka's `security_test` checks between brokers: a certificate of another host is refused.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path

import trustme
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from odradek.cli.serve_many import free_port
from tests.waiting import until

from .node_processes import THIS, Node, alive

HOST = "localhost"
COUNT = 30


class Authority:
    """Who signs certificates, which go to a folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._signer = trustme.CA()
        self.file = folder / "authority.pem"
        self._signer.cert_pem.write_to_path(self.file)

    def signed(self, name: str, *hosts: str) -> Path:
        file = self._folder / f"{name}.pem"
        self._signer.issue_cert(*hosts).private_key_and_cert_chain_pem.write_to_path(file)
        return file


def options_of(node_id: int, ports: Mapping[int, int], controller_port: int, authority: Authority) -> list[str]:
    """Return what a broker is started with; the first one is the controller, too."""
    listeners = [
        f"SSL://{HOST}:{ports[node_id]}",
        *([f"CONTROLLER://{HOST}:{controller_port}"] if node_id == 1 else []),
    ]
    return [
        f"node.id={node_id}",
        f"process.roles={'broker,controller' if node_id == 1 else 'broker'}",
        f"listeners={','.join(listeners)}",
        "listener.security.protocol.map=SSL:SSL,CONTROLLER:SSL",
        "security.inter.broker.protocol=SSL",
        "controller.listener.names=CONTROLLER",
        f"controller.quorum.voters=1@{HOST}:{controller_port}",
        "ssl.keystore.type=PEM",
        f"ssl.keystore.location={authority.signed(f'broker-{node_id}', HOST)}",
        "ssl.truststore.type=PEM",
        f"ssl.truststore.location={authority.file}",
        "ssl.client.auth=required",
        "replica.lag.time.max.ms=1500",
        "min.insync.replicas=2",
    ]


@contextmanager
def started(folder: Path, authority: Authority) -> Iterator[dict[int, Node]]:
    with ExitStack() as held:
        controller_port, *own = (free_port("127.0.0.1", held) for _ in range(4))
        ports = dict(enumerate(own, start=1))
        nodes = {
            node_id: Node(options_of(node_id, ports, controller_port, authority), folder / str(node_id))
            for node_id in ports
        }
        with alive(nodes, dict.fromkeys(nodes, THIS)):
            yield nodes


def create(admin: AdminClient, name: str, *replicas: list[int]) -> None:
    (made,) = admin.create_topics([NewTopic(name, len(replicas), replica_assignment=[*replicas])]).values()
    made.result(timeout=60)


def isr_of(admin: AdminClient, topic: str) -> list[set[int]]:
    found = admin.list_topics(topic, timeout=60).topics[topic].partitions
    return [{*found[number].isrs} for number in sorted(found)]


def test_brokers_replicate_over_tls_and_one_with_the_certificate_of_another_host_is_followed_by_nobody(
    tmp_path: Path,
) -> None:
    authority = Authority(tmp_path)
    client = authority.signed("client", "client.example")
    with started(tmp_path, authority) as nodes:
        settings: dict[str, str | int | float | bool] = {
            "bootstrap.servers": ",".join(f"{HOST}:{node.address.rpartition(':')[2]}" for node in nodes.values()),
            "security.protocol": "SSL",
            "ssl.ca.location": str(authority.file),
            "ssl.certificate.location": str(client),
            "ssl.key.location": str(client),
        }
        admin = AdminClient(settings)
        create(admin, "t", [1, 2, 3], [2, 3, 1], [3, 1, 2])
        producer = Producer({**settings, "acks": "all"})
        for number in range(COUNT):
            producer.produce("t", str(number), partition=number % 3)
        assert producer.flush(60) == 0
        consumer = Consumer({**settings, "group.id": "g", "enable.auto.commit": False})
        consumer.assign([TopicPartition("t", number, 0) for number in range(3)])
        read: list[int] = []
        while len(read) < COUNT:
            read += [int(message.value() or b"") for message in consumer.consume(COUNT, 60)]
        consumer.close()
        until(lambda: isr_of(admin, "t") == [{1, 2, 3}] * 3)

        nodes[2].stop()
        authority.signed("broker-2", "elsewhere.example")
        nodes[2].start(THIS)  # others let it in, as its certificate is signed
        create(admin, "theirs", [2, 1, 3])
        until(lambda: isr_of(admin, "theirs") == [{2}])
        assert isr_of(admin, "t")[0] == {1, 2, 3}, "it follows others, whose certificates are right"

        nodes[2].stop()
        authority.signed("broker-2", HOST)
        nodes[2].start(THIS)
        until(lambda: isr_of(admin, "theirs") == [{1, 2, 3}])

    assert sorted(read) == [*range(COUNT)]

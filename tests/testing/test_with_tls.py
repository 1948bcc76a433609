"""A test with TLS: a client that trusts the authority of the broker's certificate."""

# -- snippet tls --
from kafka import KafkaProducer

from odradek.testing.running_broker import RunningBroker


def test_what_is_sent_is_encrypted(odradek_tls_broker: RunningBroker) -> None:
    producer = KafkaProducer(
        bootstrap_servers=odradek_tls_broker.bootstrap_of("SSL"),
        security_protocol="SSL",
        ssl_cafile=str(odradek_tls_broker.certificates.authority),
    )
    producer.send("with-tls", b"an order").get(timeout=30)
    producer.close()

    assert [record.value for record in odradek_tls_broker.records("with-tls")] == [b"an order"]


# -- end of the snippet --

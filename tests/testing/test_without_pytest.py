"""A test without fixtures: the `with` form, for unittest, scripts and notebooks."""

# -- snippet with --
import tempfile
from pathlib import Path

from kafka import KafkaAdminClient
from kafka.admin import NewTopic

from odradek.testing.running_broker import running_broker


def test_topics_are_there_after_a_restart() -> None:
    with tempfile.TemporaryDirectory() as folder:
        with running_broker({"num.partitions": 4}, data_dir=Path(folder)) as broker:
            admin = KafkaAdminClient(bootstrap_servers=broker.bootstrap)
            admin.create_topics([NewTopic("orders", num_partitions=-1, replication_factor=1)])
            admin.close()

        with running_broker(data_dir=Path(folder)) as broker:  # the same data, another port
            admin = KafkaAdminClient(bootstrap_servers=broker.bootstrap)
            (orders,) = admin.describe_topics(["orders"])
            admin.close()

    assert len(orders["partitions"]) == 4


# -- end of the snippet --

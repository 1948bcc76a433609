"""Makes the data directory that a released format is remembered by: `python -m tests.product_life.make_format VERSION`.

Run it once for a release that changes a format, with the code of that release, and commit the folder. What stands in
it is told by `contents.py`; `test_upgrade.py` copies every folder, starts the broker of today on it, and checks all of
that.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

from odradek.kernel.errors import ErrorCode
from odradek.kernel.wire.messages.api_19_create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from odradek.kernel.wire.messages.api_20_delete_topics import DeleteTopicsRequest, DeleteTopicState
from odradek.kernel.wire.messages.api_44_incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)

from ..broker.broker_process import Client, broker_process
from .contents import BATCHES, BROKER_CONFIG, DELETED, TOPICS, batch_bytes, produce

FORMATS = Path(__file__).parent / "formats"


def make(folder: Path) -> None:
    """Have a broker fill an empty data directory and end cleanly."""
    # A snapshot after every change, so that its format is remembered too.
    options = ["metadata.log.max.record.bytes.between.snapshots=1"]
    with broker_process(folder, *options) as broker, Client(broker.address) as client:
        wanted = [
            CreatableTopic(
                name=name,
                num_partitions=partitions,
                replication_factor=1,
                configs=[CreatableTopicConfig(name=key, value=value) for key, value in configs.items()],
            )
            for name, (partitions, configs) in TOPICS.items()
        ]
        wanted.append(CreatableTopic(name=DELETED, num_partitions=1, replication_factor=1))
        answer = client.ask(CreateTopicsRequest(topics=wanted, timeout_ms=30_000), 5)
        assert isinstance(answer, CreateTopicsResponse)
        assert all(topic.error_code == ErrorCode.NONE for topic in answer.topics), answer
        for batch in BATCHES:
            assert produce(client, batch.topic, batch.partition, batch_bytes(batch)) == (0, batch.base_offset)
        client.ask(DeleteTopicsRequest(topics=[DeleteTopicState(name=DELETED)], timeout_ms=30_000), 6)
        (key, value), *_ = BROKER_CONFIG.items()
        resource = AlterConfigsResource(
            resource_type=4,
            resource_name="",
            configs=[AlterableConfig(name=key, config_operation=0, value=value)],
        )
        client.ask(IncrementalAlterConfigsRequest(resources=[resource]), 1)


def main() -> None:
    """Make the folder of one version."""
    (version,) = sys.argv[1:]
    folder = FORMATS / version
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    make(folder)
    for path in (folder / ".lock", *folder.rglob("*.deleted")):  # what the next start would remove
        path.unlink(missing_ok=True)


if __name__ == "__main__":
    main()

"""Whole controllers on their way into a cluster: their disks, their network, their listeners."""

from __future__ import annotations

import pytest
import trio

from odradek.kernel.controller.founding_checkpoint import FoundingCheckpoint, read_founding
from odradek.kernel.errors import ConfigError, StorageError

from .founding_nodes import BY_SERVERS, BY_VOTERS, DATA_DIR, IDS, Nodes, in_world

METADATA_DIR = DATA_DIR / "__cluster_metadata-0"


@pytest.mark.parametrize("settings", [BY_VOTERS, BY_SERVERS], ids=["voters", "bootstrap servers"])
def test_three_that_are_there_found_one_cluster_of_which_all_are_voters(settings: dict[str, str]) -> None:
    async def main(nodes: Nodes) -> list[FoundingCheckpoint | None]:
        nodes.start(3, 1)
        await trio.sleep(3)
        assert not nodes.outcomes
        nodes.start(2)
        begun_s = trio.current_time()
        await nodes.wait_founded(*IDS)
        assert trio.current_time() - begun_s < 1
        return [read_founding(METADATA_DIR, nodes.files(each)) for each in IDS]

    first, *others = in_world(main, settings)

    assert first is not None
    assert others == [first, first]
    named = [(voter.voter_id, voter.endpoints[0].host) for voter in first.voters.voters]
    assert named == [(1, "node-1"), (2, "node-2"), (3, "node-3")]


def test_who_is_started_again_goes_on_from_its_disk() -> None:
    async def main(nodes: Nodes) -> None:
        nodes.start(1, 2)
        await trio.sleep(1)
        nodes.end(2)
        nodes.start(2)
        nodes.start(3)
        await nodes.wait_founded(*IDS)
        before = dict(nodes.outcomes)
        for each in IDS:
            nodes.end(each)
        nodes.start(2)
        await nodes.wait_founded(2)

        assert len(set(before.values())) == 1
        assert nodes.outcomes[2] == before[2]

    in_world(main, BY_VOTERS)


def test_a_disk_replaced_later_makes_an_observer_and_says_so(caplog: pytest.LogCaptureFixture) -> None:
    async def main(nodes: Nodes) -> None:
        nodes.start(*IDS)
        await nodes.wait_founded(*IDS)
        nodes.replace_disk(1)
        nodes.start(1)
        await nodes.wait_founded(1)

        assert len(set(nodes.outcomes.values())) == 1
        assert read_founding(METADATA_DIR, nodes.files(1)) is None
        nodes.end(1)
        nodes.start(1)
        await nodes.wait_founded(1)

    in_world(main, BY_VOTERS)

    assert "was founded without this directory, so it is an observer" in caplog.text


def test_of_three_new_disks_none_founds_before_all_are_there(caplog: pytest.LogCaptureFixture) -> None:
    async def main(nodes: Nodes) -> None:
        nodes.start(*IDS)
        await nodes.wait_founded(*IDS)
        for each in (1, 2):
            nodes.replace_disk(each)
        nodes.end(3)
        nodes.start(1, 2)
        await trio.sleep(4)

        assert not nodes.outcomes.keys() & {1, 2}

    in_world(main, BY_VOTERS)

    assert "waiting for voter 3 (node-3:9093) to found the cluster" in caplog.text


def test_another_number_of_voters_is_told_and_waited_for(caplog: pytest.LogCaptureFixture) -> None:
    async def main(nodes: Nodes) -> None:
        nodes.start(1, 2)
        nodes.start(3, settings={"controller.quorum.voters": "2@node-2:9093,3@node-3:9093"})
        await trio.sleep(3)
        assert not nodes.outcomes
        nodes.end(3)
        nodes.start(3)
        await nodes.wait_founded(*IDS)

    in_world(main, BY_VOTERS)

    assert "voter 3 (node-3:9093) is configured with other voters: 2, 3, and here 1, 2, 3" in caplog.text


def test_a_node_configured_for_another_cluster_is_refused() -> None:
    async def main(nodes: Nodes) -> Exception:
        nodes.start(1, 2)
        nodes.start(3, settings={"odradek.cluster.id": "BBBBBBBBBBBBBBBBBBBBBB"})
        await trio.sleep(3)
        return nodes.failures[3]

    error = in_world(main, {**BY_VOTERS, "odradek.cluster.id": "AAAAAAAAAAAAAAAAAAAAAA"})

    assert isinstance(error, ConfigError)
    assert "the cluster is AAAAAAAAAAAAAAAAAAAAAA, and not BBBBBBBBBBBBBBBBBBBBBB" in str(error)


def test_partitions_without_metadata_are_no_empty_directory() -> None:
    async def main(nodes: Nodes) -> Exception:
        files = nodes.files(1)
        for path in (DATA_DIR, DATA_DIR / "orders-0"):
            files.mkdir(path)
        files.close(files.open(DATA_DIR / "orders-0" / "00000000000000000000.log", 66))
        nodes.end(1)
        nodes.start(1)
        await trio.sleep(1)
        return nodes.failures[1]

    error = in_world(main, BY_VOTERS)

    assert isinstance(error, StorageError)
    assert "there are logs in /data (orders-0) and no metadata in /data, so nothing was changed" in str(error)

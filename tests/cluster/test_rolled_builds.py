"""Brokers of two builds in one cluster, each a process: rolled forward and back under real clients, with transactions.

In the gate the older build is this one, held to an older level of the metadata, and one broker is rolled; meanwhile
transactions go back to their older protocol and forward again (Kafka's `transactions_upgrade_test`). The long form
takes two wheels, each in an environment of its own, and rolls all three, the level as well:

    pytest -m sweep tests/cluster/test_rolled_builds.py
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Final

import attrs
import pytest
import trio

from odradek.cli.cluster_plan import plan_brokers
from odradek.cli.serve_many import free_port
from odradek.kernel.errors import error_code
from odradek.kernel.machine.system.network import SystemNetwork
from odradek.kernel.metadata.features import METADATA_VERSION, METADATA_VERSION_ELR, METADATA_VERSION_MAX
from odradek.kernel.peers.connection import open_connection
from odradek.kernel.wire.messages.api_57_update_features import FeatureUpdateKey, UpdateFeaturesRequest
from tests.packaging.building import Environment, build
from tests.packaging.conftest import copy_checkout

from .billing import Bills, create_topics
from .node_processes import Build, Node, alive
from .simulated import CONNECTION
from .test_processes import PATIENCE_S
from .test_real_faults import Load, check, read_all

OLD: Final = METADATA_VERSION_ELR - 1
UPGRADE, SAFE_DOWNGRADE = 1, 2
TRANSACTION_VERSION: Final = "transaction.version"
"""From 2 on each transaction has an epoch of its own (KIP-890)."""
HOLDS: Final = {
    "kernel/metadata/features.py": r"(METADATA_VERSION_MAX: Final = )\d+()",
    "kernel/config/definitions/odradek.py": r'("odradek.metadata.version.max", INT, )\d+(, )',
}
"""Where a build says which level of the metadata is the newest that it knows."""


@contextmanager
def started(folder: Path, build: Build) -> Iterator[dict[int, Node]]:
    """Three brokers of one build."""
    (folder / "data").mkdir()
    with ExitStack() as held:
        plans = plan_brokers(
            3,
            listen=["127.0.0.1:0"],
            data_dir=folder / "data",
            options=[],
            free_port=lambda host: free_port(host, held),
        )
        nodes = {plan.node_id: Node(plan.options, plan.data_dir) for plan in plans}
        with alive(nodes, dict.fromkeys(nodes, build)):
            yield nodes
            for node in reversed(nodes.values()):
                node.stop()


def set_level(nodes: Mapping[int, Node], level: int, how: int, *, feature: str = METADATA_VERSION) -> str:
    """Ask for a level, of the metadata or of another feature; return why that is refused, nothing when it is not."""
    host, _, port = nodes[1].address.rpartition(":")
    update = FeatureUpdateKey(feature=feature, max_version_level=level, upgrade_type=how)

    async def ask() -> Any:
        async with open_connection(host, int(port), CONNECTION, network=SystemNetwork()) as connection:
            request = UpdateFeaturesRequest(timeout_ms=10_000, feature_updates=[update])
            return await connection.request(request, timeout_ms=30_000)

    answer = trio.run(ask)
    return f"{error_code(answer.error_code).name}: {answer.error_message}" if answer.error_code else ""


def roll(nodes: Mapping[int, Node], which: tuple[int, ...], build: Build, load: Load) -> None:
    """Exchange brokers one after the other, with records in between."""
    for node_id in which:
        nodes[node_id].stop()
        load.await_more()
        nodes[node_id].start(build)
        load.await_more()


def refused(node: Node, build: Build) -> str:
    """Return what a broker says that cannot be started."""
    process = node.launch(build)
    process.communicate(timeout=PATIENCE_S)
    assert process.returncode != 0
    return node.said


@contextmanager
def loaded(nodes: Mapping[int, Node]) -> Iterator[Load]:
    """Load and transactions all the while; what was acknowledged, and committed, is looked for in the end."""
    bootstrap = ",".join(node.address for node in nodes.values())
    create_topics(bootstrap)
    load, bills = Load(bootstrap), Bills(bootstrap)
    with load.running(), bills.running():
        load.await_more()
        yield load
    assert load.failures == []
    check(read_all(bootstrap), load.acknowledged)
    bills.check()


def test_one_of_three_is_exchanged_and_back_and_the_level_waits_for_the_others(tmp_path: Path) -> None:
    new = Build(Path(sys.executable))
    old = attrs.evolve(new, settings={"odradek.metadata.version.max": str(OLD)})
    with started(tmp_path, old) as nodes, loaded(nodes) as load:
        without_epochs = set_level(nodes, 1, SAFE_DOWNGRADE, feature=TRANSACTION_VERSION)
        roll(nodes, (2,), new, load)
        with_epochs = set_level(nodes, 2, UPGRADE, feature=TRANSACTION_VERSION)
        told = set_level(nodes, METADATA_VERSION_MAX, UPGRADE)
        roll(nodes, (2,), old, load)

    assert (without_epochs, with_epochs) == ("", "")
    assert f"only supports versions 7-{OLD}" in told


@pytest.fixture
def wheels(tmp_path: Path) -> dict[str, Build]:
    """Two wheels, each installed by pip in an environment of its own: this version, and an older one."""
    builds: dict[str, Build] = {}
    for name in ("old", "new"):
        (tmp_path / name).mkdir()
        checkout = copy_checkout(tmp_path / name / "checkout")
        if name == "old":
            for place, pattern in HOLDS.items():
                text = (checkout / place).read_text()
                held = re.sub(pattern, rf"\g<1>{OLD}\g<2>", text)
                assert held != text, f"nothing in {place} says which level is the newest"
                (checkout / place).write_text(held)
        environment = Environment(tmp_path / name / "venv")
        environment.install(str(build(checkout, "wheel")))
        builds[name] = Build(environment.folder / "bin" / "python")
    return builds


@pytest.mark.sweep
def test_wheels_of_two_versions_are_rolled_forward_with_their_level_and_back(
    tmp_path: Path, wheels: dict[str, Build]
) -> None:
    old, new = wheels["old"], wheels["new"]
    with started(tmp_path, old) as nodes, loaded(nodes) as load:
        roll(nodes, (2, 1), new, load)
        too_early = set_level(nodes, METADATA_VERSION_MAX, UPGRADE)
        roll(nodes, (3,), new, load)
        assert set_level(nodes, METADATA_VERSION_MAX, UPGRADE) == ""
        load.await_more()
        nodes[3].stop()
        load.await_more()
        too_old = refused(nodes[3], old)
        nodes[3].start(new)
        load.await_more()
        assert set_level(nodes, OLD, SAFE_DOWNGRADE) == ""
        roll(nodes, (3, 2, 1), old, load)

    assert "roker 3" in too_early
    assert METADATA_VERSION in too_old

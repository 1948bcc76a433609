"""Until something carries its messages, whatever would be led by this election is refused, by name."""

from __future__ import annotations

from pathlib import Path

import pytest

from odradek.kernel.controller.local_log import LocalLog
from odradek.kernel.controller.rules import ControllerRules
from odradek.kernel.errors import ConfigError, KafkaError
from odradek.plugins.election_quorum.factory import QuorumElectionFactory
from odradek.plugins.storage_memory.engine import MemoryEngine
from odradek.testing.contracts.storage_base import PARTITION, SMALL, make_context
from odradek.testing.running_broker import running_broker
from tests.controller.metadata_helpers import context_of, make_rules


def rules_with_quorum() -> ControllerRules:
    rules = make_rules()
    return ControllerRules(
        node_id=1,
        config=rules.config,
        elections={"quorum": QuorumElectionFactory()},
        ids=rules.ids,
        random=rules.random,
    )


def test_a_topic_that_asks_for_it_is_refused() -> None:
    with pytest.raises(KafkaError, match=r"odradek\.election is 'quorum': replicas that vote are not built yet"):
        rules_with_quorum().election("quorum")


def test_the_metadata_log_is_not_led_by_it(tmp_path: Path) -> None:
    engine = MemoryEngine(make_context(tmp_path))
    engine.start()
    log = engine.open_log(PARTITION, SMALL)

    with pytest.raises(ConfigError, match="the election QuorumElection needs a cluster"):
        LocalLog(log, QuorumElectionFactory().new_election(context_of(log)), 1)


@pytest.mark.parametrize("key", ["odradek.election", "odradek.metadata.election"])
def test_a_broker_that_is_set_to_it_does_not_start(key: str) -> None:
    with pytest.raises(ConfigError, match=f"{key}.*quorum|QuorumElection"), running_broker({key: "quorum"}):
        pass  # pragma: no cover - it does not start

"""Shell: what a broker of a cluster has for its replicas: fetchers, reports of in-sync sets, checks of followers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ..peers.backoff import Backoff
from ..wire.messages.api_01_fetch import ReplicaState
from .fetcher import FetcherParts
from .fetchers import Fetchers
from .hand_overs import HandOvers
from .in_sync_checks import InSyncChecks
from .isr_reports import IsrReports
from .settings import FetcherSettings
from .throttling import FOLLOWER_RATE_KEY, LEADER_RATE_KEY, ReplicationQuota
from .tier_starts import TierStarts
from .traffic import ReplicationTraffic
from .vote_log import VoteLogs
from .voted_balance import VotedBalance
from .voted_topics import VotedTopics
from .voting_parts import VotingParts
from .voting_replicas import VotingReplicas

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator, Mapping
    from random import Random

    from ..contracts.election import ElectionFactory, IsrChange
    from ..contracts.services import ConfigView
    from ..machine.machine import Machine
    from ..metadata.controller_calls import ControllerCalls
    from ..metadata.published_image import PublishedImage
    from ..partitions.replica import Replica
    from ..partitions.replica_lifecycle import ReplicaLifecycle
    from ..partitions.replicas import Replicas
    from ..partitions.staged_writes import StagedWrites
    from ..types import TopicIdPartition
    from .fetcher import BrokerRequests

FIRST_PAUSE_MS: Final = 20
"""After a first failure: metadata that is on its way, most often. Later ones grow to `replica.fetch.backoff.ms`."""


class Replication:
    """Life: made, told of leaders and of what elections ask, `services` run while the broker serves.

    Attributes:
        fetchers: Of the partitions that other brokers lead.
        tier_starts: Of those of them whose leader has what they lack in the remote store alone.
        reports: What elections ask of in-sync sets, and leaders that were voted for tell.
        voting: The elections of the partitions whose replicas vote.
        hand_overs: How leaders that were voted for make way for preferred replicas.
        balance: What has them do so from time to time, if it shall be.
        leader_quota: How much followers that are throttled may have of what this broker leads.
        follower_quota: How much is taken for replicas of this broker that are throttled.
        traffic: What was copied from and to other brokers.
    """

    def __init__(
        self,
        broker_id: int,
        machine: Machine,
        *,
        replicas: Replicas,
        lifecycle: ReplicaLifecycle,
        writes: StagedWrites,
        brokers: BrokerRequests,
        calls: ControllerCalls,
        elections: Mapping[str, ElectionFactory],
        broker_epoch: Callable[[], int],
        published: PublishedImage,
        role_changed: Callable[[Replica], None],
    ) -> None:
        """Make all of it; nothing is fetched yet, and elections that vote are carried out from now on.

        Args:
            broker_id: This broker.
            machine: Clocks, chance, threads.
            replicas: Those of this broker.
            lifecycle: Theirs.
            writes: Their way to the disk.
            brokers: The way to other brokers.
            calls: The way to the controller.
            elections: Those that plugins offer, by name.
            broker_epoch: Returns that of this broker's registration.
            published: The newest metadata and configuration.
            role_changed: Told of a replica whose role, leader or epoch was changed by a vote.
        """

        def config() -> ConfigView:
            return published.config

        backoff = _backoffs(config, machine.random)
        self.reports = IsrReports(
            calls,
            replicas,
            broker_id=broker_id,
            broker_epoch=broker_epoch,
            backoff=backoff,
            timeout_ms=lambda: config().get_int("request.timeout.ms"),
        )
        self.voting = self._voting_of(broker_id, machine, replicas, lifecycle, writes, brokers, published, role_changed)
        self.hand_overs = HandOvers(broker_id, VotedTopics(published, elections), self.voting, brokers, published)
        self.balance = self._balance_of(broker_id, published.config)
        self.tier_starts = TierStarts(lifecycle, machine.threads, machine.clock)
        self.traffic = ReplicationTraffic()
        self.follower_quota = ReplicationQuota.of(config, FOLLOWER_RATE_KEY, machine.clock)
        self.fetchers = Fetchers(
            broker_id,
            FetcherParts(
                brokers=brokers,
                replicas=replicas,
                lifecycle=lifecycle,
                writes=writes,
                state=lambda: ReplicaState(replica_id=broker_id, replica_epoch=broker_epoch()),
                settings=lambda: FetcherSettings.of(config()),
                backoff=backoff,
                clock=machine.clock,
                threads=machine.threads,
                tier_starts=self.tier_starts,
                quota=self.follower_quota,
                traffic=self.traffic,
                voting=self.voting,
            ),
        )
        self.leader_quota = ReplicationQuota.of(config, LEADER_RATE_KEY, machine.clock)
        self.checks = InSyncChecks(replicas, machine.clock, lambda: config().get_int("replica.lag.time.max.ms"))

    def _voting_of(
        self,
        broker_id: int,
        machine: Machine,
        replicas: Replicas,
        lifecycle: ReplicaLifecycle,
        writes: StagedWrites,
        brokers: BrokerRequests,
        published: PublishedImage,
        role_changed: Callable[[Replica], None],
    ) -> VotingReplicas:
        voting = VotingReplicas(
            VotingParts(
                replicas=replicas,
                writes=writes,
                votes=VoteLogs(machine.files, machine.boot_id or machine.ids.new_id()),
                threads=machine.threads,
                brokers=brokers,
                broker_id=broker_id,
                broker=published.broker,
                clock=machine.clock,
                cluster_id=lambda: published.image.cluster_id,
                timeout_ms=lambda: published.config.get_int("controller.quorum.request.timeout.ms"),
                fetch_timeout_ms=lambda: published.config.get_int("controller.quorum.fetch.timeout.ms"),
                role_changed=role_changed,
                forget=lambda partition: self.fetchers.forget(partition),
                tell_controller=self.reports.ask,
            )
        )
        lifecycle.let_vote(voting)
        return voting

    def _balance_of(self, broker_id: int, config: ConfigView) -> VotedBalance | None:
        if not config.get_bool("auto.leader.rebalance.enable"):
            return None
        return VotedBalance(
            broker_id,
            self.hand_overs,
            interval_s=config.get_int("leader.imbalance.check.interval.seconds"),
            timeout_ms=config.get_int("request.timeout.ms"),
        )

    def leader_changed(self, partition: TopicIdPartition) -> None:
        """A replica's leader or epoch changed."""
        self.fetchers.leader_changed(partition)

    def ask_isr(self, replica: Replica, change: IsrChange) -> None:
        """An election asks for another in-sync set."""
        self.reports.ask(replica, change)

    def services(self) -> Iterator[tuple[str, Callable[..., Awaitable[None]]]]:
        """Iterate over what runs while the broker serves, with names."""
        yield "fetchers", self.fetchers.run
        yield "beginnings at the remote store", self.tier_starts.run
        yield "reports of in-sync replicas", self.reports.run
        yield "checks of followers", self.checks.run
        yield "elections by vote", self.voting.run
        if self.balance is not None:
            yield "balance of leaders that were voted for", self.balance.run


def _backoffs(config: Callable[[], ConfigView], random: Random) -> Callable[[], Backoff]:
    """Return what makes the pauses of one that fetches or reports."""
    return lambda: Backoff(FIRST_PAUSE_MS, config().get_int("replica.fetch.backoff.ms"), random)

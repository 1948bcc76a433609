"""Replication: what a broker does so that its followers have what their leaders have, and leaders know who is in sync.

    metadata: who leads ──> fetchers ──> one fetcher a leader and number ──> Fetch ──> the leader
                                              │  fetched: append, truncate, begin anew
                                              v
                                           replicas ──> elections ──> isr_reports ──> AlterPartition ──> the controller

Where replicas elect their leader among themselves, `election_service` runs one replica's election, the metadata log's,
and `voting_replicas` those of all partitions together: what they keep is in one file (`vote_log`), what they tell a
broker in one message (`vote_messages`, `vote_channels`), who was heard of (`heard_leaders`) and in whose partitions
nothing happens is left alone (`calm_voters`), and leaders tell the controller that they lead.

It stands above the partitions and below whoever answers requests; a single broker has none of its tasks.
"""

"""The controller: who writes the cluster's metadata, and the log that keeps it. Everybody else reads `metadata`.

| module | what it holds |
| --- | --- |
| `controller`, `operations` | Pure core: the shard; which function answers which request |
| `topic_creation`, `topic_growth`, `topic_deletion`, `adoption` | Pure core: operations on topics |
| `config_changes`, `feature_changes` | Pure core: operations on configs and features |
| `brokers`, `partition_changes`, `reassignments` | Pure core: operations on brokers and on who holds and leads what |
| `isr_changes` | Pure core: which replicas are in sync, as leaders ask |
| `leader_announcements`, `voter_steps` | Pure core: who leads where replicas vote, as they tell; how voters change |
| `partition_states`, `eligible_replicas` | Pure core: what a partition becomes when something changes (KIP-966 too) |
| `partition_walks` | Pure core: partitions are looked for among all there are, so that others may come in between |
| `directory_changes` | Pure core: in which log directory each replica lies, and which failed, as the brokers tell it |
| `own_directories`, `own_cordons` | Shell: this node's own directories that failed, or are cordoned, are told |
| `own_leaders` | Shell: what this node's own broker leads is handed over before it ends |
| `placement`, `replica_assignment`, `rules` | Pure core: planners, collaborators |
| `broker_requests`, `broker_sessions` | Pure core: registrations and heartbeats of brokers; who is heard of |
| `controllers` | Pure core: registrations of controllers |
| `metadata_keeping`, `lone_controller` | how a node has the metadata; the one that keeps its log |
| `opening` | Shell: the metadata log is opened: in which storage, under which election |
| `serving`, `metadata_feed` | Shell: what serves other nodes: what is committed, for who follows it |
| `lone_voter` | Pure core: what the only voter of a quorum answers to messages of quorums |
| `session_watch`, `dead_brokers` | Shell: who is silent, or known to be dead, is fenced |
| `metadata_log`, `local_log`, `snapshots` | Shell: group commit, the log on disk with its quorum of one, snapshots |
| `snapshot_upkeep` | Shell: snapshots are written when they are due, and the log gives up what they stand for |
| `image_checks` | Pure core: whether metadata that was found can be a node's |
| `founding_checkpoint` | Shell: what a cluster was founded with: who votes |
| `small_files` | Shell: small files are read; a disk that fails is told |
| `quorum_state`, `voter_keeper` | Shell: what the log's election must never forget, on disk; what it appends |
| `leader_balance` | Shell: leaders go back to preferred replicas from time to time |
| `volatile_log` | Pure core: the log in memory, where no plugin offers a storage |
"""

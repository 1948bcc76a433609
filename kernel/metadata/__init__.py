"""Cluster metadata: its records, the frozen image they make, and the controller that writes them.

| module | what it holds |
| --- | --- |
| `records`, `record_makers` | Pure core: the records, in the wire's notation, and how values become records again |
| `image`, `image_builder` | Pure core: the frozen image, and how records make the next one |
| `controller` | Pure core: the shard, one method an operation |
| `topic_creation`, `topic_growth`, `topic_deletion`, `adoption` | Pure core: operations on topics |
| `config_changes`, `feature_changes` | Pure core: operations on configs and features |
| `brokers`, `partition_changes`, `reassignments` | Pure core: operations on brokers and on who holds and leads what |
| `directory_changes` | Pure core: in which log directory each replica lies, as the brokers tell it |
| `placement`, `names`, `features`, `replica_assignment`, `rules` | Pure core: planners, rules, tables |
| `metadata_log`, `local_log`, `snapshots` | Shell: group commit, the log on disk with its quorum of one, snapshots |
| `volatile_log` | Pure core: the log in memory, where no plugin offers a storage |
| `config_warnings` | Shell: tells of configs that a client has set and that have no effect |
| `topic_maker` | Shell: makes topics that somebody asked for without creating them |
| `cluster_view` | Shell: the newest image, as coordinators see it |
"""

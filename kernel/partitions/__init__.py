"""One replica of one partition, what is done with it, and all replicas of this broker.

| module | what it holds |
| --- | --- |
| `replica` | Shell: one replica: state, watermarks, reads, life |
| `leading` | Shell: what a leader does with it: takes batches, counts its followers |
| `following` | Shell: what a follower does with it: takes what a leader numbered, truncates |
| `follower_positions` | Pure core: where followers' logs begin and end, for who sends consumers to them |
| `quiet_followers` | Pure core: followers that ask again for what they have, told in time |
| `election_driver` | Pure core: carries out what an election has decided |
| `voting` | Pure core: what a replica whose election votes needs of its broker |
| `producer_state`, `producer_table`, `append_check` | Pure core: a partition's producers; may a batch be appended? |
| `partition_transactions`, `aborted_transactions`, `transaction_index` | Pure core: open ones, aborted ones |
| `producer_snapshot`, `producer_steps`, `unkept_snapshots`, `recovery` | producers are kept, and read with the log |
| `timestamp_lookup` | which record a time stands for |
| `replicas`, `topic_replicas` | all replicas, and those of one topic: look-ups, failures |
| `start_report` | Pure core: what was there when the broker started |
| `changed_replicas` | Pure core: those that regular work has to look at |
| `replica_lifecycle`, `replica_opener`, `failed_logs` | opens, configures, tries again, closes |
| `topic_opener`, `topic_plan` | large topics are opened in pieces; what a configuration means for replicas |
| `delays`, `delay_recovery`, `delay_beginnings` | Shell: what waits: ledgers made, kept, and of replicas that serve |
| `delay_delivery`, `delay_batches` | Shell: what is due delivered |
| `delay_carrying`, `delay_pieces` | Shell: what waits in segments that are to go carried forward |
| `delay_withdrawal` | Shell: what waits withdrawn by DeleteRecords |
| `dead_letters`, `dead_letter_taking`, `dead_letter_batches` | dead letters of retry topics, fetched and appended |
| `full_disks`, `tiers`, `tier_offsets` | replicas whose disk is full; whose log has a remote part |
| `staged_writes`, `flush_service` | Shell: from a staged batch to the disk |
| `marker_writer`, `known_producers` | ends of transactions; which producers a log from elsewhere knows |
| `upkeep`, `directory_reports` | Shell: services: checkpoints, where replicas lie |
| `log_move`, `log_moves`, `future_log` | Shell: moves between log directories |
| `byte_rate` | how many bytes a second went lately: what moves copy, and what throttled replicas take |
| `directory_metrics` | Shell: how log directories are, as Kafka's metrics tell it |
"""

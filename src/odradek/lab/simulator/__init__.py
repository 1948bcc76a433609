"""Whole brokers and clients in one thread on virtual time: one seed is one run, and any run can be had again.

| module | what it has |
| --- | --- |
| `seeds` | one seed, split into independent streams |
| `trace` | what happened, as a hash and as text |
| `world` | virtual time and the queue of events |
| `scheduling` | trio's order of tasks, made to depend on the seed |
| `running` | a trio run on virtual time |
| `network` | hosts, links, and streams of bytes between them |
| `sockets` | sockets and what watches them, as a program has them |
| `stream` | a client's connection, as a stream of trio |
| `disk` | a file system that knows what has reached the disk |
| `files` | what one process sees of a disk |
| `threads` | worker threads as events |
| `machine` | a host, and the `Machine` of a process that lives on it |
| `cluster` | hosts with brokers, and clients of them |
| `requests` | what clients ask of brokers: noted, and refused on demand |
| `logs` | the log lines of a run |
| `accidents`, `faults` | what befalls a run's broker: crashes, and a network that fails |
| `cluster_accidents` | what befalls several brokers: they crash, and lose each other |
| `promises` | what is promised of a record after a crash |
| `oracle` | what must be true of a log, whatever happened |
| `runs` | one seed of one scenario, run and judged |
| `append` | the scenario of that name |
| `replication` | the scenario of that name |
| `quorum`, `quorum_admins` | the scenario of that name |
| `quorum_watch` | who leads and what is committed, looked at whenever time is about to pass |
| `quorum_oracle` | what must be true of those who keep the metadata, at any moment |
| `metadata_oracle` | what must be true of a cluster's metadata |
| `spread_transactions` | the scenario of that name |
| `delays` | the scenario of that name |
| `retries` | the scenario `retry` |
| `waiting_load` | what these two have in common: producers of records that wait, and accidents |
| `delay_oracle` | what must be true of records that are seen later |
| `retry_oracle` | what must be true of records that fail |
| `reading` | a topic read from its beginning to its end |
| `pace` | how fast clients go on: hastily around what happens, calmly otherwise |
| `record_load` | what producers and a consumer of plain records do, in several scenarios |
| `transactions` | the scenario of that name |
| `transaction_oracle` | what must be true of transactions |
| `committing` | a transaction is committed by who does not give up at once |
| `groups`, `group_members` | the scenario of that name |
| `group_oracle` | what must be true of a group's offsets |
| `compaction` | the scenario of that name |
| `compaction_oracle` | what must be true of a compacted topic |
| `disks`, `disk_accidents` | the scenario of that name |
| `campaign` | many seeds of one scenario, and all scenarios by name |
| `variations` | what a long campaign runs |
| `campaign_results` | what came of a long campaign's seeds, in a file, and what is next |
| `campaign_workers` | processes that run its seeds |
"""

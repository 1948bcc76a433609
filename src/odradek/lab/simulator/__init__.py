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
"""

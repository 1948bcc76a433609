"""Whole brokers and clients in one thread on virtual time: one seed is one run, and any run can be had again.

| module | what it has |
| --- | --- |
| `seeds` | one seed, split into independent streams |
| `trace` | what happened, as a hash and as text |
| `world` | virtual time and the queue of events |
| `scheduling` | trio's order of tasks, made to depend on the seed |
| `running` | a trio run on virtual time |
"""

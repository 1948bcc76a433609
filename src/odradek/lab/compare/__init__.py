"""The engine of `odradek compare`: one seeded workload over every combination of settings, measured and checked.

| module | what it holds |
| --- | --- |
| `workload`, `builtin_workloads` | what is done to a broker: read from TOML, or by name |
| `record_plan` | the records of a workload, each from the seed and its number |
| `variations`, `preflight` | which combinations there are; which of them can be run at all |
| `schedule` | in which order: rounds that interleave |
| `ledger` | what was acknowledged, and what became of it |
| `faults`, `deliveries` | what happens to brokers of a cluster; what became of records meanwhile |
| `samples`, `figures` | percentiles; every figure that is measured; medians and ranges |
| `report`, `findings` | all results together; what can be said of them |
| `page`, `page_style`, `plots`, `quantities` | the HTML page, its look, its pictures, its numbers |
| `broker_process`, `process_use`, `folders`, `machine_facts` | shells: a broker, what it used and left, where it ran |
| `load`, `one_run`, `comparison` | shells: the client's side, one combination once, all of them |
| `cluster_processes`, `fault_run` | shells: a cluster of processes; one combination under one fault once |

.. versionadded:: 0.1
"""

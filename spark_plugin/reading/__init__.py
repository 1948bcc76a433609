"""The source: the driver asks brokers and plans, a worker reads what it was given.

| module | what it holds |
| --- | --- |
| `batch_reader`, `stream_reader` | the driver's side of a batch, and of a stream: shells over what follows |
| `survey` | what the driver asks of brokers |
| `planner`, `filters`, `rate_limit`, `data_loss` | which offsets are read; what to do when some are gone; pure |
| `splitting`, `task_planning` | which task reads which of them, from where |
| `read_task`, `wire_format` | the worker's side: ranges become batches of Arrow's |

.. versionadded:: 0.1
"""

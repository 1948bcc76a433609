"""The sink: rows become record batches, at least once, or exactly once in transactions that the driver commits.

| module | what it holds |
| --- | --- |
| `writer` | what Spark calls |
| `write_task`, `write_settings` | what a task does with its rows, and the driver with what its tasks say |
| `write_rows`, `partitioners` | rows are sorted by partition, whole columns at a time; pure |
| `dead_letters` | rows that a query could not make sense of go to another topic; pure |
| `produce`, `sending` | batches, their sequences and repeats; pure, and the shell that sends them |
| `transactions`, `transaction_steps` | exactly once, in two phases; pure |

.. versionadded:: 0.1
"""

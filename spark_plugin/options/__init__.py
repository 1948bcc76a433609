"""Pure core: what a user says: options, read and checked as a whole.

| module | what it holds |
| --- | --- |
| `option_table` | the one table: name, type, default, where an option counts, what it does |
| `options` | the options of a query as a value |
| `positions`, `topic_pattern` | where a query begins and ends; which topics a pattern means |
| `option_reference` | the page in docs, rendered from the table |

.. versionadded:: 0.1
"""

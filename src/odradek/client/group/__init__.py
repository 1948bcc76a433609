"""Shell: a consumer's life in its group: members of both protocols, offsets that are committed, and who assigns.

| module | what it holds |
| --- | --- |
| `member` | what a member of either protocol asks of those who drive it |
| `classic_member`, `consumer_member` | the pure cores: JoinGroup and its kin; ConsumerGroupHeartbeat (KIP-848) |
| `assigning`, `assignors` | what a leader of the classic protocol does; where assignors come from |
| `subscription` | names or a pattern, and the topics that match |
| `committed` | the pure core of committed offsets: requests, and what their answers mean |
| `coordinator` | who coordinates, found and asked |
| `committing`, `session` | the shells: commits in their order; the task that keeps the membership |
| `listener` | what a user implements to hear of partitions that come and go |

.. versionadded:: 0.1
"""

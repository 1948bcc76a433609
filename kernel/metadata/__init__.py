"""Cluster metadata as every broker has it: its records, and the frozen image they make.

| module | what it holds |
| --- | --- |
| `records`, `record_makers` | Pure core: the records, in the wire's notation, and how values become records again |
| `image`, `image_builder` | Pure core: the frozen image, and how records make the next one |
| `names`, `features` | Pure core: rules, tables |
| `config_warnings` | Shell: tells of configs that a client has set and that do not count, or not as they are set |
| `topic_maker` | Shell: makes topics that somebody asked for without creating them |
| `retry_topics` | Pure core: which ones for a group's failed records (`odradek.retry.auto`) |
| `controller_calls` | Pure core: how anything asks the controller, here or elsewhere |
| `election_answers` | Pure core: answers that controller and brokers give |
| `feed_view` | Pure core: a node that keeps the log, as who answers other nodes sees it |
| `quorum_figures` | Pure core: what is counted of a controller, and how its node stands in the quorum |
| `image_source` | Pure core: where a node has the committed metadata from |
| `image_difference` | Pure core: what lies between two images |
| `image_listeners` | Shell: who is told of every new image |
| `partition_counts` | Pure core: how many partitions are not as they should be |
| `published_image` | Pure core: the newest image and configuration, for all who read |
| `cluster_view` | Shell: the newest image, as coordinators see it |
"""

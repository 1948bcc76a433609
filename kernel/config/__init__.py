"""Pure core: the broker's configuration: every key known, read from files, environment and command line, in layers.

| module | what it holds |
| --- | --- |
| `values` | the types of values: parse, check, write |
| `keys`, `definitions` | what is known of each key; which parts of the product stand |
| `registry` | all keys by scope and name; unknown names and their hints |
| `retired` | names that Kafka removed, renamed, or that belong to clients |
| `properties`, `toml_file`, `sections`, `settings` | files, environment, options: settings that know their place |
| `broker`, `topic` | resolved values, typed, each with its source and its synonyms |
| `start_topics` | how a topic that exists differs from its section of the file |
| `checks`, `tier_checks`, `delay_checks` | what keys must fulfil together |
| `roles` | broker, controller or both; where the controller is |
| `cordons` | which log directories get no new logs |
| `durations` | `30m` and the like, as people write them |
| `meta_properties` | `meta.properties`, in which a directory says whose it is |
| `listeners` | `listeners`, `advertised.listeners` and the security protocol map as endpoints |
| `describe`, `alter` | what DescribeConfigs, AlterConfigs and IncrementalAlterConfigs need |
| `group_bounds` | the least and the most that a group may set |
| `client_metrics`, `thread_pools` | what Kafka asks of changes to these, beyond each value |
| `reference` | the reference page, rendered from the definitions |
"""

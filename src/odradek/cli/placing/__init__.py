"""Shell: which brokers have which replicas, and how that is changed: what `reassign`, `drain` and `elect` share."""

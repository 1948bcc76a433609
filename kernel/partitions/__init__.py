"""One replica of one partition: its log, election, producer state and watermarks; and all replicas of this broker."""

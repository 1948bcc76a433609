"""Records that consumers see later than they were produced: what producers ask for, and how it stands in the log."""

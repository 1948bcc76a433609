"""What log lines look like, and how many of those that are alike are written: set up by a command, for its process."""

"""One suite of behaviour over every storage and every cleanup policy: what clients see is the same."""

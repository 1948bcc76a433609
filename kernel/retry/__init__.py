"""Records that consumers failed: counted, held, given back, and in the end dead letters."""

"""One small program for each client; each takes operations as JSON lines (see `json_lines`)."""

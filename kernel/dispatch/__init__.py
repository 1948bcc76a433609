"""From a frame to its answer: the router, and one handler an API key for what the kernel itself answers."""

"""What a broker asks of the machine it runs on: clocks, files, ids, threads, turns of the task that serves all."""

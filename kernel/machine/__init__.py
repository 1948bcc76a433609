"""What is taken of the host and is no computation: clocks, files, threads, processes, sockets; see `machine.py`."""

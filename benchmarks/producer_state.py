"""What idempotence costs a produced batch: check and append; run by hand: `python benchmarks/producer_state.py`.

Prints the best of five rounds, in microseconds for each batch; target: at most 2.
"""

from __future__ import annotations

import time

from odradek.kernel.partitions.producer_table import ProducerStateTable
from odradek.kernel.records.batch import BatchHeader

COUNT = 50_000
ROUNDS = 5


def main() -> None:
    """Print the figure for one producer and for a thousand."""
    for producers_count in (1, 1000):
        best_ns = 1 << 62
        for _ in range(ROUNDS):
            headers = [
                BatchHeader(n, 100, 0, 2, 0, 0, 0, 0, 0, n % producers_count, 0, n // producers_count, 1)
                for n in range(COUNT)
            ]
            table = ProducerStateTable(86_400_000)
            check, append = table.check, table.append
            start_ns = time.perf_counter_ns()
            for header in headers:
                if check(header) is None:
                    append(header)
            best_ns = min(best_ns, time.perf_counter_ns() - start_ns)
        print(f"check and append, {producers_count:>5} producers: {best_ns / COUNT / 1000:.2f} us")


if __name__ == "__main__":
    main()

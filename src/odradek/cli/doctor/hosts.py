"""Pure core: what brokers' hosts lack: disks that run full or are slow, files, memory, processor time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from odradek.cli.output import size_text

from .observations import Finding, Severity

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .observations import HostSeen, Observations

IDLE_MIN: Final = 0.3
"""Below it requests queue behind each other; the broker itself warns at the same share."""
FREE_MIN: Final = 0.05
FILES_MAX: Final = 0.7
DISK_MS_MAX: Final = 50.0


def reach_findings(seen: Observations) -> Iterator[Finding]:
    """Yield brokers that the cluster has, all in sync, and that do not answer here."""
    behind = {each for _partition, info in seen.after.partitions() for each in info.replicas if each not in info.isr}
    for broker in seen.brokers.values():
        if broker.error and broker.broker_id not in behind:
            what = f"broker {broker.broker_id} is part of the cluster, and does not answer from here: {broker.error}"
            remedy = "see whether its address (advertised.listeners) can be reached from here, and whether it hangs"
            yield Finding("broker-unreached", Severity.WARNING, what, remedy, broker.broker_id)


def load_findings(seen: Observations) -> Iterator[Finding]:
    """Yield brokers that have little room or no time left."""
    for broker in seen.brokers.values():
        number = broker.broker_id
        if broker.idle_share is not None and broker.idle_share < IDLE_MIN:
            what = f"broker {number} is idle for {broker.idle_share:.0%} of its time: requests queue behind each other"
            remedy = "larger batches (linger.ms, batch.size, fetch.min.bytes), fewer leaders on it, or more brokers"
            yield Finding("broker-busy", Severity.WARNING, what, remedy, number)
        for log_dir in broker.log_dirs or ():
            if 0 <= log_dir.usable_bytes < log_dir.total_bytes * FREE_MIN:
                free = f"{size_text(log_dir.usable_bytes)} of {size_text(log_dir.total_bytes)} left"
                what = f"the disk of {log_dir.path} of broker {number} runs full: {free}"
                remedy = "shorter retention, or move partitions away (odradek reassign generate); full, the broker ends"
                yield Finding("disk-full", Severity.WARNING, what, remedy, number)


def host_findings(seen: Observations) -> Iterator[Finding]:
    """Yield what this host lacks, where brokers run on it."""
    host = seen.host
    if host is None:
        return
    yield from _process_findings(host)
    if host.swapped_bytes:
        what = f"this host swaps: {size_text(host.swapped_bytes)} in {host.seconds:.0f} s, and brokers wait for it"
        remedy = "more memory, fewer programs, or vm.swappiness=1"
        yield Finding("host-swaps", Severity.WARNING, what, remedy)
    for device, waited_ms in sorted(host.disk_ms.items()):
        if waited_ms > DISK_MS_MAX:
            what = f"the disk {device} of this host takes {waited_ms:.0f} ms for a request"
            remedy = "see who else uses it (iostat -x), and whether it is about to fail (smartctl)"
            yield Finding("disk-slow", Severity.WARNING, what, remedy)


def _process_findings(host: HostSeen) -> Iterator[Finding]:
    for process in host.processes:
        if process.open_files > process.files_max * FILES_MAX:
            what = f"broker {process.broker_id} (process {process.pid}) has {process.open_files:,} of at most "
            what += f"{process.files_max:,} files open: with the last one it takes no connection and opens no log"
            remedy = "a higher limit (LimitNOFILE= of its unit, ulimit -n), and start it again"
            yield Finding("files-limit", Severity.WARNING, what, remedy, process.broker_id)

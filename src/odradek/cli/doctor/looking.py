"""Shell: a doctor looks at a cluster: asks every broker, and reads this host's `/proc` where brokers run on it.

Nobody is waited for long: a broker that hangs is a finding, and no reason to hang.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import attrs
import trio

from odradek.cli.placing.reading import read_nodes, sizes_of
from odradek.client import ClientError, ResourceType
from odradek.kernel.errors import KafkaError
from odradek.kernel.types import METADATA_TOPIC
from odradek.kernel.wire.messages.api_55_describe_quorum import DescribeQuorumRequest, PartitionData, TopicData
from odradek.kernel.wire.messages.api_60_describe_cluster import DescribeClusterRequest

from . import metrics_page, procfs
from .observations import BrokerSeen, HostSeen, Look, Observations, ProcessSeen

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Mapping

    from odradek.cli.cluster_calls import ClusterCalls
    from odradek.client.admin_values import LogDir, Reassignment
    from odradek.client.cluster import Node
    from odradek.kernel.types import TopicPartition

ASK_S: Final = 5.0
PAGE_S: Final = 2.0
PAGE_BYTES_MAX: Final = 16 * 1024 * 1024
REQUESTS_MIN: Final = 20
"""So many requests to a disk say how long it takes."""
_PAGES: Final = "odradek.http.listener"
_HERE: Final = frozenset({"localhost", "127.0.0.1", "::1", "0.0.0.0"})
_PROC: Final = Path("/proc")


async def observe(calls: ClusterCalls, pause_s: float) -> Observations:
    """Look at a cluster, and look at its partitions again after a pause.

    What the controller has to be asked for comes last: where nobody is, a broker answers nothing else on that
    connection while it waits for one.

    Args:
        calls: The cluster.
        pause_s: How many seconds lie between the looks.
    """
    nodes = await read_nodes(calls)
    live = [node.node_id for node in nodes if not node.is_fenced]
    host = _HostLook.of(nodes)
    before = await _look(calls, live)
    seen: dict[int, BrokerSeen] = {}
    async with trio.open_nursery() as nursery:
        nursery.start_soon(trio.sleep, pause_s)
        for node in nodes:
            nursery.start_soon(_see, calls, node, seen)
    after = await _look(calls, [each for each in live if seen[each].is_there])
    in_sync_min = await _in_sync_min(calls, after)
    quorum, quorum_error = await _ask(calls.admin.describe_quorum)
    if quorum is not None:
        async with trio.open_nursery() as nursery:
            for broker_id in live:
                nursery.start_soon(_see_leader, calls, broker_id, seen)
    return Observations(
        {node.node_id: seen[node.node_id] for node in nodes},
        quorum,
        before,
        after,
        quorum_error,
        await _ongoing(calls) if quorum is not None else {},
        in_sync_min,
        host.seen(after.at_s - before.at_s) if host is not None else None,
    )


# ------------------------------------------------------------------------------ one broker


async def _ask(work: Callable[[], Awaitable[Any]]) -> tuple[Any, str]:
    """Return an answer and why there is none: one of them."""
    with trio.move_on_after(ASK_S):
        try:
            return await work(), ""
        except (ClientError, KafkaError) as error:
            return None, str(error)
    return None, f"no answer within {ASK_S:.0f} s"


async def _see(calls: ClusterCalls, node: Node, seen: dict[int, BrokerSeen]) -> None:
    """Ask a broker itself."""
    broker_id = node.node_id
    seen[broker_id] = BrokerSeen(broker_id, node.is_fenced)
    if node.is_fenced:
        return
    target = calls.admin.broker(broker_id)
    cluster, error = await _ask(lambda: calls.admin.call(DescribeClusterRequest(), _accept, node_of=target))
    if cluster is None:
        seen[broker_id] = attrs.evolve(seen[broker_id], error=error)
        return
    log_dirs, _error = await _ask(lambda: calls.admin.describe_log_dirs(broker_id))
    page = await _metrics(calls, node)
    seen[broker_id] = BrokerSeen(
        broker_id,
        cluster_id=cluster.cluster_id,
        log_dirs=log_dirs,
        idle_share=metrics_page.idle_share(page),
        is_active_controller=metrics_page.is_active_controller(page),
        paused_retries=metrics_page.paused_retries(page),
    )


async def _see_leader(calls: ClusterCalls, broker_id: int, seen: dict[int, BrokerSeen]) -> None:
    """Ask a broker who is the controller."""
    if not seen[broker_id].is_there:
        return
    wanted = TopicData(topic_name=METADATA_TOPIC, partitions=[PartitionData()])
    request = DescribeQuorumRequest(topics=[wanted])
    answer, _error = await _ask(lambda: calls.admin.call(request, _accept, node_of=calls.admin.broker(broker_id)))
    seen[broker_id] = attrs.evolve(seen[broker_id], leader=_leader_of(answer))


def _accept(_answer: object) -> None:
    """Take any answer: what it says is looked at."""


def _leader_of(answer: Any) -> tuple[int, int] | None:
    if answer is None or answer.error_code:
        return None
    parts = [part for topic in answer.topics for part in topic.partitions if not part.error_code]
    return (parts[0].leader_id, parts[0].leader_epoch) if parts else None


async def _metrics(calls: ClusterCalls, node: Node) -> bytes:
    """Return a broker's page of metrics; nothing where it has no pages that answer here."""
    read = lambda: calls.admin.describe_configs(ResourceType.BROKER, str(node.node_id), keys=(_PAGES,))  # noqa: E731
    configs, _error = await _ask(read)
    address = configs[_PAGES].value if configs and _PAGES in configs else None
    if not address:
        return b""
    host, _, port = address.rpartition(":")
    return await _page(node.host if host in {"", "0.0.0.0", "::"} else host.strip("[]"), int(port))


async def _page(host: str, port: int) -> bytes:
    """Return a broker's page of metrics; nothing where it does not come."""
    page = b""
    with trio.move_on_after(PAGE_S), suppress(OSError, trio.BrokenResourceError):
        async with await trio.open_tcp_stream(host, port) as stream:
            await stream.send_all(f"GET /metrics HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n".encode())
            async for chunk in stream:
                page += chunk
                if len(page) > PAGE_BYTES_MAX:
                    break
    return page


# ------------------------------------------------------------------------------ the cluster


async def _look(calls: ClusterCalls, broker_ids: Iterable[int]) -> Look:
    """Look at all partitions, and how large they are on some brokers."""
    log_dirs: dict[int, list[LogDir]] = {}

    async def ask(broker_id: int) -> None:
        found, _error = await _ask(lambda: calls.admin.describe_log_dirs(broker_id))
        if found is not None:
            log_dirs[broker_id] = found

    async with trio.open_nursery() as nursery:
        for broker_id in broker_ids:
            nursery.start_soon(ask, broker_id)
    topics = {topic.name: topic for topic in await calls.admin.list_topics(with_internal=True)}
    return Look(trio.current_time(), topics, sizes_of(log_dirs))


async def _ongoing(calls: ClusterCalls) -> Mapping[TopicPartition, Reassignment]:
    found, _error = await _ask(calls.admin.list_partition_reassignments)
    return found or {}


async def _in_sync_min(calls: ClusterCalls, look: Look) -> dict[str, int]:
    """Return `min.insync.replicas` of the topics with replicas that are not in sync."""
    key = "min.insync.replicas"
    lagging = {each.topic for each, info in look.partitions() if len(info.isr) < len(info.replicas)}
    found = {}
    for topic in sorted(lagging):
        configs, _error = await _ask(
            lambda topic=topic: calls.admin.describe_configs(ResourceType.TOPIC, topic, keys=(key,))  # type: ignore[misc]
        )
        if configs and configs[key].value:
            found[topic] = int(configs[key].value)
    return found


# ------------------------------------------------------------------------------ this host


@attrs.frozen
class _HostLook:
    """What `/proc` said at the first look."""

    processes: tuple[ProcessSeen, ...]
    swapped_pages: int
    disks: Mapping[str, tuple[int, int]]

    @classmethod
    def of(cls, nodes: Iterable[Node]) -> _HostLook | None:
        """Look at this host; None where no broker runs on it, or there is no `/proc`."""
        here = {*_HERE, os.uname().nodename} if hasattr(os, "uname") else _HERE
        ports = {node.port: node.node_id for node in nodes if node.host in here}
        processes = tuple(_processes(ports)) if ports else ()
        if not processes:
            return None
        return cls(processes, procfs.swapped_pages(_text("vmstat")), procfs.disk_times(_text("diskstats")))

    def seen(self, seconds: float) -> HostSeen:
        """Look again, and return what became of it."""
        pages = procfs.swapped_pages(_text("vmstat")) - self.swapped_pages
        disks = procfs.request_ms(self.disks, procfs.disk_times(_text("diskstats")), REQUESTS_MIN)
        return HostSeen(self.processes, pages * os.sysconf("SC_PAGE_SIZE"), seconds, disks)


def _text(name: str) -> str:
    with suppress(OSError):
        return (_PROC / name).read_text(encoding="ascii", errors="replace")
    return ""


def _processes(ports: Mapping[int, int]) -> Iterable[ProcessSeen]:
    """Yield the processes that listen on the ports of brokers; of other users' nothing can be seen."""
    sockets = {**procfs.listening(_text("net/tcp")), **procfs.listening(_text("net/tcp6"))}
    wanted = {f"socket:[{inode}]": ports[port] for inode, port in sockets.items() if port in ports}
    for folder in _PROC.glob("[0-9]*"):
        opened = _open_files(folder)
        limit = procfs.files_max(_text(f"{folder.name}/limits"))
        for broker_id in {wanted[name] for name in opened if name in wanted}:
            if limit is not None:
                yield ProcessSeen(broker_id, int(folder.name), len(opened), limit)


def _open_files(folder: Path) -> list[str]:
    names: list[str] = []
    with suppress(OSError):
        for entry in (folder / "fd").iterdir():
            with suppress(OSError):
                names.append(str(entry.readlink()))
    return names

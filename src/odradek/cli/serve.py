"""Shell: `odradek serve`: a broker in the foreground, until SIGTERM, SIGINT or SIGHUP."""

from __future__ import annotations

import argparse
import contextlib
import gc
import logging
import os
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

import trio

from odradek import __version__
from odradek.cli.logs.lines import ROOT, configure_logging
from odradek.kernel.broker import Broker, read_broker_options
from odradek.kernel.errors import ConfigError
from odradek.kernel.network.sleeper import take_over_sleep

from . import drop_unwritten, say
from .options import CommandParser, directory, document, host_port, positive

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Sequence

    from odradek.kernel.broker import BoundListener, BrokerOptions

log = logging.getLogger(f"{ROOT}.serve")

GC_THRESHOLDS: Final = (50_000, 20, 1_000)
"""Rare collections: with the defaults the worst pause of a growing heap is 60-90 ms, with these 3-4 ms.

A full one takes 100-200 ms once 15,000 partitions were made. It comes after a billion objects more than were let go, so
never: nothing is frozen again, and what is in cycles of topics that were deleted stays for the younger generations.
"""

OF_OTHER_SERVERS: Final = {
    **dict.fromkeys(("--port", "--host", "--bind", "--address", "--listeners"), "--listen HOST:PORT"),
    **dict.fromkeys(("--log-level", "--debug", "--loglevel"), "-v; twice: everything"),
    **dict.fromkeys(("--override", "--define"), "--set KEY=VALUE"),
    **dict.fromkeys(("--dir", "--data", "--log-dirs"), "--data-dir DIR"),
}
"""Options of other servers to what to write here."""


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the command's options."""
    document(
        parser,
        "Run a broker in the foreground until SIGTERM or SIGINT (Ctrl-C); a second one does not wait for clients. "
        "Without any option: one durable broker on 127.0.0.1:9092, its data in the user's data directory.\n\n"
        "--brokers N runs a cluster of N, each a process. With --listen HOST:9092 and 3 brokers clients find them on "
        "9092, 9093 and 9094; 9095 to 9097 are the controllers' of the first three. With port 0 all ports are free. "
        "Their data lies in DIR/1, DIR/2, DIR/3. A broker that dies is started again, after a pause that grows.\n\n"
        "--join HOST:PORT runs one more broker of a cluster that there is: any broker or controller of that says where "
        "the others are; of several, with commas between, some may be away. Without node.id it takes a free id, above "
        "reserved.broker.max.id, and keeps it in its directories.\n\n"
        "Once it serves it prints `ready HOST:PORT` on standard output, a line for each listener; everything else "
        "goes to standard error. Settings are Kafka's: --set beats the environment (ODRADEK_NUM_PARTITIONS=4), which "
        "beats the file, which beats the defaults. `odradek config describe` explains them all.",
        [
            ("serve", "clients find it on 127.0.0.1:9092"),
            ("serve --listen 127.0.0.1:0 --data-dir ./data", "on a free port, which `ready` names"),
            ("serve --brokers 3", "a cluster of three, on 127.0.0.1:9092, 9093 and 9094"),
            ("serve --join one.example.net:9092 --listen two.example.net:9092", "one more broker of that cluster"),
            ("serve --config server.properties", "with Kafka's own file as it is"),
            ("serve --set num.partitions=4 --set odradek.http.listener=127.0.0.1:8080", "with settings, and /metrics"),
        ],
        exit_status="0 ended by a signal and cleanly, 1 it failed, 2 wrong usage or configuration",
    )
    if isinstance(parser, CommandParser):
        parser.meant = OF_OTHER_SERVERS
    parser.add_argument("--config", type=Path, metavar="FILE", help="odradek.toml, or Kafka's own server.properties")
    parser.add_argument(
        "--listen",
        action="append",
        default=[],
        metavar="HOST:PORT",
        help="where clients connect; port 0 takes a free one; may be given several times (default 127.0.0.1:9092)",
    )
    parser.add_argument(
        "--brokers", type=positive, default=1, metavar="N", help="how many brokers, as one cluster (default 1)"
    )
    parser.add_argument(
        "--join", type=addresses, metavar="HOST:PORT", help="a broker or controller of the cluster to join"
    )
    parser.add_argument("--data-dir", type=directory, metavar="DIR", help="where records are kept")
    parser.add_argument(
        "--set", action="append", default=[], metavar="KEY=VALUE", dest="options", help="one setting of the broker"
    )
    parser.add_argument("-v", "--verbose", action="count", default=0, help="log more; twice: everything")
    parser.add_argument(
        "--log-format", choices=("text", "json"), default="text", help="log lines for people (text), or JSON objects"
    )


def addresses(text: str) -> str:
    """Read `HOST:PORT`, or several with commas, for argparse.

    Raises:
        argparse.ArgumentTypeError: One is none; also where there is none at all, as a script's variable may be empty.
    """
    for each in text.split(","):
        host_port(each)
    return text


def run(arguments: argparse.Namespace) -> int:
    """Serve until a signal ends it; return 0 after a clean end."""
    is_json = arguments.log_format == "json"
    configure_logging(arguments.verbose, as_json=is_json)
    log.setLevel(min(logging.INFO, logging.getLogger(ROOT).level))  # however quiet the others are
    gc.set_threshold(*GC_THRESHOLDS)
    raise_file_limit()
    tell = log.info if is_json else say
    if arguments.brokers == 1:
        options = _options(arguments, arguments.options, arguments.listen, arguments.data_dir)
        trio.run(_serve, Broker(options), tell)
        return 0
    if arguments.join:
        hint = "start each broker that joins by an `odradek serve` of its own"
        raise ConfigError("--brokers founds a cluster", where=f"--join {arguments.join}", hint=hint)
    from .serve_many import run_many  # one broker does not pay for it

    def serve_one(options: BrokerOptions, watched: int, note_ready: Callable[[], None]) -> int:
        trio.run(_serve, Broker(options), tell, watched, note_ready)
        return 0

    def read(options: Sequence[str], data_dir: Path) -> BrokerOptions:
        return _options(arguments, options, (), data_dir)

    return run_many(arguments, read, serve_one, stop_signals())


def _options(
    arguments: argparse.Namespace, options: Sequence[str], listen: Sequence[str], data_dir: Path | None
) -> BrokerOptions:
    return read_broker_options(
        config=arguments.config,
        environment=os.environ,
        options=options,
        listen=listen,
        data_dir=data_dir,
        join=arguments.join or "",
    )


def raise_file_limit() -> None:
    """Let the process open as many files as the system allows: every partition in use holds a few."""
    try:
        import resource
    except ImportError:  # Windows has no such limit
        return
    _soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


async def _serve(
    broker: Broker,
    tell: Callable[[str], None],
    watched: int | None = None,
    note_ready: Callable[[], None] = lambda: None,
) -> None:
    """Serve until a signal comes, or whoever holds the other end of the pipe `watched` is gone."""
    take_over_sleep()
    with trio.open_signal_receiver(*stop_signals()) as signals:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(_stop_on_signal, broker, signals, nursery.cancel_scope, tell)
            if watched is not None:
                nursery.start_soon(_stop_on_end, broker, watched, nursery.cancel_scope, tell)
            listeners: tuple[BoundListener, ...] = await nursery.start(broker.run)
            gc.freeze()  # without a collection: there is next to no garbage, and looking for it takes 12 ms
            _tell_start(broker)
            try:
                for listener in listeners:
                    print(f"ready {listener.advertised}\n", end="", flush=True)  # one write: others have this pipe, too
            except OSError:  # who waited for the first line is gone, or the disk full: it serves all the same
                drop_unwritten(sys.stdout)  # and standard error is its log, which goes on when there is room
            note_ready()
            nursery.start_soon(broker.warm_up)
            await broker.wait_stopped()
            gc.freeze()  # the end of the process looks for garbage once more: 0.5 s where there were 5,000 partitions
            nursery.cancel_scope.cancel()


async def _stop_on_end(broker: Broker, watched: int, life_scope: trio.CancelScope, tell: Callable[[str], None]) -> None:
    await trio.lowlevel.wait_readable(watched)
    if broker.is_serving:
        broker.stop()
    else:
        life_scope.cancel()
    tell("stopping: the process that started this broker is gone")


def stop_signals() -> list[signal.Signals]:
    """Return the signals that end a broker: as with Kafka the end of its terminal, too, unless `nohup` forbade that."""
    hangup = getattr(signal, "SIGHUP", None)  # Windows has none
    signals = [signal.SIGTERM, signal.SIGINT]
    return signals if hangup is None or signal.getsignal(hangup) is signal.SIG_IGN else [*signals, hangup]


def _tell_start(broker: Broker) -> None:
    """Say what serves where, and what it found."""
    config, found = broker.options.config, broker.found
    places = {"listeners": ",".join(map(str, broker.listeners)), "data": ",".join(config.log_dirs), **broker.addresses}
    log.info("odradek %s serves", __version__, extra={"node_id": config.node_id, **places})
    log.info("%s", found, extra={"topics": found.topics_count, "partitions": found.partitions_count})


async def _stop_on_signal(
    broker: Broker, signals: AsyncIterator[int], life_scope: trio.CancelScope, tell: Callable[[str], None]
) -> None:
    """End a broker that serves when it has answered its clients; one that starts, or is asked again, without that.

    It is told once it is done: whoever reads standard error may have been ended by the same Ctrl-C.
    """
    async for number in signals:
        name = signal.Signals(number).name
        if broker.is_serving:
            broker.stop()
            tell(f"stopping ({name}); again: without waiting for clients")
        else:
            life_scope.cancel()
            tell(f"stopping at once ({name})")

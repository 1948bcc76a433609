"""A real S3 server for tests and trials: versitygw (Apache-2.0), built from the Go module proxy and kept in a cache.

    python3 -m tools.s3_server build           build it, in about three minutes the first time; print its path
    python3 -m tools.s3_server serve FOLDER    serve the folders in FOLDER as buckets; print what clients need

The binary lies in `$XDG_CACHE_HOME/odradek-interop` (`~/.cache/odradek-interop`), by version: never in the checkout.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tools.ports import free_ports

if TYPE_CHECKING:
    from collections.abc import Iterator

VERSION: Final = "v1.8.0"
MODULE: Final = "github.com/versity/versitygw/cmd/versitygw"
ACCESS_KEY: Final = "odradek"
SECRET_KEY: Final = "for-tests-only"  # a secret of nobody: the server listens on this machine alone
START_SECONDS: Final = 30


class ServerMissingError(Exception):
    """The server cannot be built or started here; the text says what to do."""


def build() -> Path:
    """Return the server's binary, built if need be; of several processes at once one builds.

    Raises:
        ServerMissingError: There is no Go, or it failed.
    """
    home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "odradek-interop"
    binary = home / f"versitygw-{VERSION}"
    home.mkdir(parents=True, exist_ok=True)
    with (home / "versitygw.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if binary.exists():
            return binary
        if shutil.which("go") is None:
            raise ServerMissingError(f"Go 1.26 is needed to build versitygw {VERSION}, the S3 server of the tests")
        with tempfile.TemporaryDirectory(dir=home) as folder:
            command = ["go", "install", f"{MODULE}@{VERSION}"]
            done = subprocess.run(
                command, env={**os.environ, "GOBIN": folder}, capture_output=True, text=True, check=False
            )
            if done.returncode:
                raise ServerMissingError(f"`{' '.join(command)}` failed: {done.stderr[-1000:]}")
            (Path(folder) / "versitygw").rename(binary)
    return binary


def environment(port: int) -> dict[str, str]:
    """Return the environment variables by which a client finds the server."""
    return {
        "AWS_ACCESS_KEY_ID": ACCESS_KEY,
        "AWS_SECRET_ACCESS_KEY": SECRET_KEY,
        "AWS_ENDPOINT": f"http://127.0.0.1:{port}",
        "AWS_REGION": "us-east-1",
        "AWS_ALLOW_HTTP": "true",
    }


@contextlib.contextmanager
def serving(folder: Path) -> Iterator[int]:
    """Serve the buckets in a folder, and give the port.

    Args:
        folder: Each folder in it is a bucket.

    Raises:
        ServerMissingError: It cannot be built, or does not start.
    """
    (port,) = free_ports(1)
    keys = {"ROOT_ACCESS_KEY": ACCESS_KEY, "ROOT_SECRET_KEY": SECRET_KEY}
    command = [str(build()), "--port", f"127.0.0.1:{port}", "posix", str(folder)]
    process = subprocess.Popen(
        command, env={**os.environ, **keys}, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        _wait_until_it_listens(process, port)
        yield port
    finally:
        process.terminate()
        process.wait()


def _wait_until_it_listens(process: subprocess.Popen[bytes], port: int) -> None:
    for _ in range(START_SECONDS * 20):
        if process.poll() is not None:
            break
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
        except OSError:
            time.sleep(0.05)
        else:
            return
    raise ServerMissingError(f"versitygw does not listen on port {port} after {START_SECONDS} s")


def main(words: list[str]) -> int:
    """Do what the command line says."""
    if words == ["build"]:
        print(build())
        return 0
    if len(words) == 2 and words[0] == "serve":
        with serving(Path(words[1])) as port, contextlib.suppress(KeyboardInterrupt):
            for name, value in environment(port).items():
                print(f"export {name}={value}", flush=True)
            while True:
                time.sleep(3600)
        return 0
    print(__doc__)
    return 2


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except ServerMissingError as exc:
        sys.exit(f"s3_server: {exc}")

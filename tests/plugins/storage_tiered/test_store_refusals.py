"""What a store refuses is told as what it is, with what to do; secrets stay out of it."""

from __future__ import annotations

import pickle
import socket
import subprocess
import sys
import threading
from typing import TYPE_CHECKING

import attrs
import pytest

from odradek.kernel.api import ObjectMissingError, RemoteStoreError, StoreRefusedError, StoreUnavailableError
from odradek.plugins.storage_tiered.bucket import (
    ForeignBucketError,
    StoredTopic,
    claim,
    load_cluster_id,
    load_topic,
    put_topic,
)
from odradek.plugins.storage_tiered.documents import CorruptDocumentError, encode_document
from odradek.plugins.storage_tiered.names import topic_file_name
from odradek.plugins.storage_tiered.store_errors import explain
from odradek.plugins.storage_tiered.store_settings import StoreSettings
from odradek.plugins.storage_tiered.stores import open_store
from odradek.testing.object_stores import FaultyObjectStore, MemoryObjectStore, StoreFault
from tests.plugins.storage_tiered.faulty_line import Mode, faulty_line
from tests.plugins.storage_tiered.manifest_values import PARTITION

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from odradek.kernel.api import ObjectStore
    from tests.plugins.storage_tiered.s3 import S3Server

OPERATIONS: dict[str, Callable[[ObjectStore], object]] = {
    "put": lambda store: store.put("a", b"x"),
    "create": lambda store: store.create("a", b"x"),
    "get": lambda store: store.get("a"),
    "range": lambda store: store.get("a", 1, 2),
    "size": lambda store: store.size("a"),
    "list": lambda store: list(store.list("a/")),
    "delete": lambda store: store.delete("a"),
}


@pytest.fixture(params=OPERATIONS)
def operation(request: pytest.FixtureRequest) -> Callable[[ObjectStore], object]:
    """Each operation of a store."""
    return OPERATIONS[request.param]


@pytest.mark.interop
def test_a_bucket_that_is_missing_is_refused(operation: Callable[[ObjectStore], object], s3: S3Server) -> None:
    with pytest.raises(StoreRefusedError, match=r"create it, or correct odradek\.tiered\.store"):
        operation(open_store("s3://no-such-bucket", s3.settings))


@pytest.mark.interop
@pytest.mark.parametrize("option", ["access_key_id", "secret_access_key"])
def test_wrong_credentials_are_refused_and_not_repeated(
    operation: Callable[[ObjectStore], object], s3: S3Server, option: str
) -> None:
    wrong = attrs.evolve(s3.settings, options={**s3.settings.options, option: "not-the-right-one"})

    with pytest.raises(StoreRefusedError) as caught:
        operation(open_store(f"s3://{s3.new_bucket()}", wrong))
    assert "AWS_ACCESS_KEY_ID" in str(caught.value)
    assert "not-the-right-one" not in str(caught.value)


@pytest.mark.interop
def test_http_has_to_be_allowed(operation: Callable[[ObjectStore], object], s3: S3Server) -> None:
    options = {**s3.settings.options, "allow_http": ""}

    with pytest.raises(StoreRefusedError, match="AWS_ALLOW_HTTP=true"):
        operation(open_store("s3://bucket", StoreSettings(options=options)))


@pytest.mark.interop
def test_the_providers_environment_variables_are_enough(s3: S3Server, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in s3.environment.items():
        monkeypatch.setenv(name, value)
    store = open_store(f"s3://{s3.new_bucket()}/prefix")
    store.put("a", b"x")

    assert store.get("a") == b"x"


@pytest.mark.interop
@pytest.mark.parametrize("size_bytes", [100_000, 20 << 20], ids=["in one part", "in several parts"])
def test_an_upload_that_breaks_off_leaves_no_object(s3: S3Server, tmp_path: Path, size_bytes: int) -> None:
    url, path = f"s3://{s3.new_bucket()}", tmp_path / "file"
    path.write_bytes(bytes(size_bytes))
    with faulty_line(s3.port) as line:
        line.become(Mode.CUT)
        options = {**s3.settings.options, "endpoint": f"http://127.0.0.1:{line.port}"}

        with pytest.raises(StoreUnavailableError):
            open_store(url, StoreSettings(retries=0, options=options)).put("a", path)
    assert list(open_store(url, s3.settings).list("")) == []


def test_a_plugin_that_is_not_used_imports_no_object_store() -> None:
    script = (
        "import sys, odradek.plugins.storage_tiered as plugin; plugin.odradek_config_keys()\n"
        "assert 'obstore' not in sys.modules"
    )

    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0


def test_what_opens_a_store_can_be_sent_to_another_process(tmp_path: Path) -> None:
    url, settings = pickle.loads(pickle.dumps((tmp_path.as_uri(), StoreSettings(timeout_ms=5))))
    open_store(url, settings).put("a", b"x")

    assert open_store(tmp_path.as_uri()).get("a") == b"x"


def settings_for(port: int, *, retries: int = 0, timeout_ms: int = 2_000) -> StoreSettings:
    options = {
        "access_key_id": "someone",
        "secret_access_key": "a-secret",
        "endpoint": f"http://127.0.0.1:{port}",
        "region": "us-east-1",
        "allow_http": "true",
    }
    return StoreSettings(timeout_ms=timeout_ms, connect_timeout_ms=timeout_ms, retries=retries, options=options)


@pytest.fixture
def listener() -> Iterator[socket.socket]:
    """A port that listens; what comes is the test's affair."""
    with socket.create_server(("127.0.0.1", 0)) as made:
        yield made


class Answering:
    """A server that gives every request the same answer, or none.

    Attributes:
        requests: How many came.
    """

    def __init__(self, listener: socket.socket, answer: bytes) -> None:
        self.requests = 0
        self._listener, self._answer = listener, answer
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            with connection:
                connection.recv(65536)
                self.requests += 1
                connection.sendall(self._answer)


def reply(status: str, code: str = "") -> bytes:
    body = f"<Error><Code>{code}</Code><Message>words of the store</Message></Error>".encode() if code else b""
    return f"HTTP/1.1 {status}\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n".encode() + body


@pytest.mark.parametrize(
    ("answer", "error", "told"),
    [
        (reply("503 Slow Down", "SlowDown"), StoreUnavailableError, "too busy.*words of the store"),
        (reply("500 Internal Server Error"), StoreUnavailableError, "too busy"),
        (reply("429 Too Many Requests"), StoreUnavailableError, "too busy"),
        (reply("409 Conflict", "ConditionalRequestConflict"), StoreUnavailableError, "too busy"),
        (reply("401 Unauthorized"), StoreRefusedError, "does not accept the credentials"),
        (reply("403 Forbidden", "AccessDenied"), StoreRefusedError, "does not accept the credentials"),
        (reply("403 Forbidden", "RequestTimeTooSkewed"), StoreRefusedError, "clock is too far"),
        (reply("404 Not Found", "NoSuchKey"), ObjectMissingError, "no such object"),
        (reply("404 Not Found", "NoSuchBucket"), StoreRefusedError, "no such bucket"),
        (reply("301 Moved Permanently"), StoreRefusedError, "correct the region"),
        (reply("400 Bad Request", "Whatever"), StoreRefusedError, "does not take the request"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf", StoreUnavailableError, "does not answer"),
        (b"", StoreUnavailableError, "does not answer"),
    ],
)
def test_an_answer_is_told_as_what_it_is(
    listener: socket.socket, answer: bytes, error: type[RemoteStoreError], told: str
) -> None:
    Answering(listener, answer)
    store = open_store("s3://bucket", settings_for(listener.getsockname()[1]))

    with pytest.raises(error, match=told) as caught:
        store.get("a")
    assert type(caught.value) is error
    assert "a-secret" not in str(caught.value)


def test_nobody_who_listens_is_unavailable(operation: Callable[[ObjectStore], object], listener: socket.socket) -> None:
    port = listener.getsockname()[1]
    listener.close()

    with pytest.raises(StoreUnavailableError, match=r"does not answer; .*AWS_ENDPOINT"):
        operation(open_store("s3://bucket", settings_for(port)))


def test_a_store_that_never_answers_is_left_when_its_time_is_up(
    operation: Callable[[ObjectStore], object], listener: socket.socket
) -> None:
    with pytest.raises(StoreUnavailableError, match="Timeout"):
        operation(open_store("s3://bucket", settings_for(listener.getsockname()[1], timeout_ms=100)))


def test_a_busy_store_is_asked_a_few_times_more_and_no_more(listener: socket.socket) -> None:
    server = Answering(listener, reply("503 Slow Down"))
    store = open_store("s3://bucket", settings_for(listener.getsockname()[1], retries=2))

    with pytest.raises(StoreUnavailableError):
        store.get("a")
    assert server.requests == 3


def test_the_same_failure_is_told_in_the_same_words() -> None:
    told = {
        str(explain(f"Generic S3 error: Error performing GET http://h/b in {elapsed} - HTTP error: gone", "cannot get"))
        for elapsed in ("1.5ms", "37.981µs", "2s")
    }

    assert len(told) == 1


def test_words_that_nobody_foresaw_are_passed_on_shortened() -> None:
    error = explain("Generic S3 error: " + "x" * 1000 + "\n\nDebug source:\nSecret", "cannot get 'a' in s3://b")

    assert type(error) is StoreUnavailableError
    assert str(error).startswith("cannot get 'a' in s3://b: the store does not answer")
    assert "Debug" not in str(error)
    assert len(str(error)) < 700


# -- what a bucket says of itself ------------------------------------------------------------------------------------


def test_a_bucket_is_claimed_once_and_then_refused_to_others() -> None:
    store = MemoryObjectStore()
    assert load_cluster_id(store) is None
    claim(store, "cluster-A")
    claim(store, "cluster-A")

    with pytest.raises(ForeignBucketError, match="of the cluster cluster-A, and this cluster is cluster-B: give each"):
        claim(store, "cluster-B")
    assert load_cluster_id(store) == "cluster-A"


def test_a_claim_whose_answer_was_lost_is_still_ones_own() -> None:
    store = FaultyObjectStore(MemoryObjectStore(), fail_at=2, fault=StoreFault.ANSWER_LOST)
    with pytest.raises(StoreUnavailableError):
        claim(store, "cluster-A")
    claim(store, "cluster-A")

    assert load_cluster_id(store) == "cluster-A"


def test_a_damaged_claim_is_told() -> None:
    store = MemoryObjectStore()
    claim(store, "cluster-A")
    store.put("odradek.json", store.get("odradek.json").replace(b"-A", b"-B"))

    with pytest.raises(CorruptDocumentError, match=r"odradek\.json in memory://test is damaged"):
        claim(store, "cluster-B")


def test_a_topic_is_kept_beside_its_records() -> None:
    store = MemoryObjectStore()
    topic = StoredTopic("cluster-A", "orders", PARTITION.topic_id, 12, {"retention.ms": "-1"})
    put_topic(store, topic)

    assert load_topic(store, "orders", PARTITION.topic_id) == topic


@pytest.mark.parametrize(
    ("field", "value", "told"),
    [("configs", {"a": 1}, "holds something other than texts"), ("topic_id", "x", "an id has 22 characters")],
)
def test_a_topics_file_with_a_wrong_field_is_told(field: str, value: object, told: str) -> None:
    store = MemoryObjectStore()
    fields = {"cluster_id": "c", "topic": "orders", "topic_id": "A" * 22, "partitions": 1, "configs": {}}
    store.put(topic_file_name("orders", PARTITION.topic_id), encode_document({**fields, field: value}))

    with pytest.raises(CorruptDocumentError, match=told):
        load_topic(store, "orders", PARTITION.topic_id)


def test_of_two_brokers_that_claim_a_bucket_at_once_both_may_go_on() -> None:
    inner = MemoryObjectStore()
    store = FaultyObjectStore(inner)

    def claim_in_between(method: str, name: str) -> None:
        if method == "create" and not inner.objects:
            claim(inner, "cluster-A")

    store.before_each = claim_in_between
    claim(store, "cluster-A")

    assert load_cluster_id(inner) == "cluster-A"


def test_a_topics_file_in_the_place_of_another_is_told() -> None:
    store = MemoryObjectStore()
    put_topic(store, StoredTopic("cluster-A", "orders", PARTITION.topic_id, 12, {}))
    name = topic_file_name("other", PARTITION.topic_id)
    store.put(name, store.get(topic_file_name("orders", PARTITION.topic_id)))

    with pytest.raises(CorruptDocumentError, match=f"{name} in memory://test speaks of orders with the id"):
        load_topic(store, "other", PARTITION.topic_id)

"""TLS: settings, handshakes, the same service as plain."""

import os
import socket
import ssl
import struct
from pathlib import Path
from typing import Any

import attrs
import pytest
import trio
import trustme

from odradek.kernel.errors import ConfigError
from odradek.kernel.network.settings import ClientAuth, ListenerSettings, LoopKind, SecurityProtocol, TlsSettings
from odradek.kernel.network.tls import server_context

from .conftest import Certificates, Slice, framed


def listeners(tls: TlsSettings) -> tuple[ListenerSettings, ...]:
    return (ListenerSettings("SSL", "127.0.0.1", 0, SecurityProtocol.SSL, tls),)


async def secure(serving: Any, context: ssl.SSLContext) -> trio.SSLStream[trio.SocketStream]:
    stream = trio.SSLStream(await serving.connect("SSL"), context, server_hostname="localhost", https_compatible=True)
    await stream.do_handshake()
    return stream


def test_requests_are_answered_over_tls(serve: Any, loop_kind: LoopKind, certificates: Certificates) -> None:
    bodies = [b"e1", b"t2", b"e" + os.urandom(1_500_000), b"e3", b"t4"]

    async def main() -> None:
        async with serve(loop_kind, listeners=listeners(certificates.server)) as serving:
            client = await secure(serving, certificates.client_context())
            async with trio.open_nursery() as nursery:
                nursery.start_soon(client.send_all, b"".join(struct.pack(">i", len(body)) + body for body in bodies))
                assert [await serving.answer(client) for _ in bodies] == bodies
            await client.aclose()
            await serving.until(lambda: bool(serving.service.closed))

    trio.run(main)


def test_many_pipelined_requests_pass_over_tls(serve: Any, loop_kind: LoopKind, certificates: Certificates) -> None:
    async def main() -> None:
        async with serve(loop_kind, listeners=listeners(certificates.server)) as serving:
            client = await secure(serving, certificates.client_context())
            await client.send_all(b"".join(struct.pack(">i", 5) + b"t%04d" % number for number in range(300)))

            assert [await serving.answer(client) for _ in range(300)] == [b"t%04d" % number for number in range(300)]
            await client.aclose()

    trio.run(main)


@pytest.mark.parametrize("is_cached", [True, False])
def test_files_and_large_answers_pass_over_tls_to_a_slow_reader(
    serve: Any, loop_kind: LoopKind, certificates: Certificates, tmp_path: Path, is_cached: bool
) -> None:
    data = os.urandom(2_000_000)
    path = tmp_path / "segment.log"
    path.write_bytes(data)

    async def main() -> None:
        with path.open("rb") as file:
            async with serve(loop_kind, listeners=listeners(certificates.server)) as serving:
                serving.service.slices = [Slice(file, 5, len(data) - 5, is_cached)]
                client = await secure(serving, certificates.client_context())
                assert await serving.ask(client, b"s") == b"<" + data[5:] + b">"
                assert await serving.ask(client, b"z3000000") == bytes(3_000_000)
                await client.aclose()

    trio.run(main)


def test_a_parked_request_is_answered_over_tls_and_mutes_meanwhile(
    serve: Any, loop_kind: LoopKind, certificates: Certificates
) -> None:
    async def main() -> None:
        async with serve(loop_kind, listeners=listeners(certificates.server)) as serving:
            client = await secure(serving, certificates.client_context())
            # One record: both requests are decrypted at once, the second must wait all the same.
            await client.send_all(struct.pack(">i", 1) + b"h" + struct.pack(">i", 1) + b"e")
            await serving.until(lambda: bool(serving.service.parked))
            assert serving.service.frames == [b"h"]

            serving.service.parked[0].complete(None)

            assert await serving.answer(client) == b"e"
            await client.aclose()

    trio.run(main)


def test_what_a_client_asked_over_tls_is_done_though_it_has_left(
    serve: Any, loop_kind: LoopKind, certificates: Certificates
) -> None:
    async def main() -> None:
        async with serve(loop_kind, listeners=listeners(certificates.server)) as serving:
            service = serving.service
            client = await secure(serving, certificates.client_context())
            if hasattr(socket, "TCP_CORK"):  # all records arrive at once
                client.transport_stream.setsockopt(socket.IPPROTO_TCP, socket.TCP_CORK, 1)
            for body in [b"h", *[b"n"] * 100]:  # a record each: the others are not decrypted while one is held
                await client.send_all(framed(body))
            await client.transport_stream.send_eof()
            endpoint: Any = service.opened[0].driver
            await serving.until(lambda: bool(service.closed or (service.parked and not endpoint.interest)))
            service.parked[0].complete(None)
            await serving.until(lambda: bool(service.closed))

            assert service.frames == [b"h", *[b"n"] * 100]
            await client.transport_stream.aclose()

    trio.run(main)


@pytest.mark.parametrize("kind", [ClientAuth.REQUESTED, ClientAuth.REQUIRED])
def test_a_client_certificate_is_checked(
    serve: Any, loop_kind: LoopKind, certificates: Certificates, kind: ClientAuth
) -> None:
    trusted = certificates.authority.cert_pem.bytes().decode()
    tls = attrs.evolve(certificates.server, client_auth=kind, truststore_type="PEM", truststore_certificates=trusted)

    async def main() -> None:
        async with serve(loop_kind, listeners=listeners(tls)) as serving:
            client = await secure(serving, certificates.client_context(shows_certificate=True))
            assert await serving.ask(client, b"e") == b"e"
            await client.aclose()
            stranger = certificates.client_context()
            trustme.CA().issue_cert("stranger@example.org").configure_cert(stranger)
            plain = await serving.connect("SSL")
            refused = trio.SSLStream(plain, stranger, server_hostname="localhost", https_compatible=True)
            with pytest.raises(trio.BrokenResourceError):
                # With TLS 1.3 a client learns of its refusal with the first answer.
                await serving.ask(refused, b"e")
            await plain.aclose()

    trio.run(main)


def test_a_plain_client_on_a_tls_listener_is_closed(
    serve: Any, loop_kind: LoopKind, certificates: Certificates
) -> None:
    async def main() -> None:
        async with serve(loop_kind, listeners=listeners(certificates.server)) as serving:
            async with await serving.connect("SSL") as client:
                await client.send_all(struct.pack(">i", 1) + b"e")
                # What comes is an alert, then the end.
                while await client.receive_some():
                    pass
            assert serving.service.frames == []

    trio.run(main)


def test_a_handshake_that_takes_too_long_is_closed(serve: Any, loop_kind: LoopKind, certificates: Certificates) -> None:
    async def main() -> None:
        settings = {"handshake_timeout_ms": 50, "connections_idle_ms_max": 400}
        async with serve(loop_kind, listeners=listeners(certificates.server), **settings) as serving:
            async with await serving.connect("SSL") as client:
                assert await client.receive_some() == b""
            assert serving.server.statistics().connections_idle_closed_count == 1

    trio.run(main)


def test_keys_may_stand_in_the_settings_themselves(certificates: Certificates) -> None:
    issued = certificates.authority.issue_cert("localhost")
    chain = b"".join(pem.bytes() for pem in issued.cert_chain_pems).decode()
    settings = TlsSettings(
        keystore_type="PEM",
        keystore_certificate_chain=chain,
        keystore_key=issued.private_key_pem.bytes().decode(),
        enabled_protocols=("TLSv1.3",),
    )

    context = server_context(settings)

    assert (context.minimum_version, context.maximum_version) == (ssl.TLSVersion.TLSv1_3, ssl.TLSVersion.TLSv1_3)


@pytest.mark.parametrize(
    ("change", "where", "says"),
    [
        ({"keystore_type": "JKS"}, "ssl.keystore.type", "say PEM"),
        ({"keystore_type": "JCEKS"}, "ssl.keystore.type", "keytool"),
        ({"keystore_location": "/nowhere/server.pem"}, "ssl.keystore.location", "PEM file"),
        ({"keystore_location": None}, "ssl.keystore.location", "neither"),
        ({"enabled_protocols": ("TLSv1",)}, "ssl.enabled.protocols", "TLSv1.2"),
        ({"enabled_protocols": ()}, "ssl.enabled.protocols", "no TLS version"),
        ({"client_auth": ClientAuth.REQUIRED}, "ssl.client.auth", "truststore"),
        ({"truststore_location": "/nowhere/trust.jks"}, "ssl.truststore.location", "No such file"),
        ({"truststore_type": "PEM", "truststore_certificates": "no"}, "ssl.truststore.certificates", "authorities"),
    ],
)
def test_settings_that_cannot_be_used_say_what_to_do(
    certificates: Certificates, change: dict[str, Any], where: str, says: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        server_context(attrs.evolve(certificates.server, **change))

    assert caught.value.where == where
    assert says in str(caught.value)


def test_an_encrypted_key_without_its_password_is_refused_and_does_not_ask(tmp_path: Path) -> None:
    from cryptography.hazmat.primitives import serialization

    issued = trustme.CA().issue_cert("localhost")
    key = serialization.load_pem_private_key(issued.private_key_pem.bytes(), None)
    encrypted = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.BestAvailableEncryption(b"secret"),
    )
    path = tmp_path / "server.pem"
    path.write_bytes(encrypted + b"".join(pem.bytes() for pem in issued.cert_chain_pems))
    settings = TlsSettings(keystore_type="PEM", keystore_location=str(path))
    with pytest.raises(ConfigError, match="password"):
        server_context(settings)

    server_context(attrs.evolve(settings, key_password="secret"))


def test_a_tls_listener_without_certificates_is_refused(serve: Any) -> None:
    async def main() -> None:
        listener = ListenerSettings("SSL", "127.0.0.1", 0, SecurityProtocol.SSL)
        async with serve(LoopKind.AUTO, listeners=(listener,)):
            pass

    with pytest.raises(ExceptionGroup) as caught:
        trio.run(main)

    assert caught.group_contains(ConfigError, match="no certificate")


def test_memory_in_flight_is_bounded_over_tls_and_everyone_gets_a_turn(
    serve: Any, loop_kind: LoopKind, certificates: Certificates
) -> None:
    async def main() -> None:
        listening = listeners(certificates.server)
        async with serve(loop_kind, listeners=listening, request_memory_bytes=500_000) as serving:

            async def ask(number: int) -> None:
                body = b"e" + bytes([number]) * 400_000
                client = await secure(serving, certificates.client_context())
                async with trio.open_nursery() as both:
                    both.start_soon(client.send_all, struct.pack(">i", len(body)) + body)
                    assert await serving.answer(client) == body
                await client.aclose()

            async with trio.open_nursery() as nursery:
                for number in range(4):
                    nursery.start_soon(ask, number)

    trio.run(main)

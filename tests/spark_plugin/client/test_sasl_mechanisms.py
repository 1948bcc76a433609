"""SASL: the vectors of the RFCs, and what a broker must prove."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import random
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from odradek.kernel.errors import ErrorCode
from odradek.kernel.wire.messages.api_17_sasl_handshake import SaslHandshakeResponse
from odradek.kernel.wire.messages.api_36_sasl_authenticate import SaslAuthenticateResponse
from odradek.spark_plugin.client.errors import AuthenticationFailedError
from odradek.spark_plugin.client.sasl import BearerClient, PlainClient, SaslError, new_mechanism, unsecured_token
from odradek.spark_plugin.client.scram import ScramClient
from odradek.spark_plugin.client.settings import SaslSettings
from tests.spark_plugin.client.scripted import Broker, Network

TEXT = st.characters(blacklist_categories=["Cs"])
NONCE = "rOprNGfwEbeRWgbNEkqO"
RFC_7677_FIRST = b"r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096"
RFC_7677_PROOF = (
    b"c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="
)
RFC_7677_SIGNATURE = b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="
SHA_512_FIRST = (
    b"r=rOprNGfwEbeRWgbNEkqO02431b08-2f89-4bad-a4e6-80c0564ec865,s=Yin2FuHTt/M0kJWb0t9OI32n2VmOGi3m+JfjOvuDF88=,i=4096"
)
SHA_512_PROOF = (
    b"c=biws,r=rOprNGfwEbeRWgbNEkqO02431b08-2f89-4bad-a4e6-80c0564ec865,"
    b"p=Hc5yec3NmCD7t+kFRw4/3yD6/F3SQHc7AVYschRja+Bc3sbdjlA0eH1OjJc0DD4ghn1tnXN5/Wr6qm9xmaHt4A=="
)
SHA_512_SIGNATURE = b"v=BQuhnKHqYDwQWS5jAw4sZed+C9KFUALsbrq81bB0mh+bcUUbbMPNNmBIupnS2AmyyDnG5CTBQtkjJ9kyY4kzmw=="


@pytest.mark.parametrize(
    ("hash_name", "first", "proof", "signature"),
    [
        ("sha256", RFC_7677_FIRST, RFC_7677_PROOF, RFC_7677_SIGNATURE),
        ("sha512", SHA_512_FIRST, SHA_512_PROOF, SHA_512_SIGNATURE),  # draft-melnikov-scram-sha-512
    ],
)
def test_scram_speaks_as_in_the_standards(hash_name: str, first: bytes, proof: bytes, signature: bytes) -> None:
    client = ScramClient(hash_name, "user", "pencil", NONCE)

    assert client.first() == b"n,,n=user,r=rOprNGfwEbeRWgbNEkqO"
    assert client.answer(first) == proof
    assert client.answer(signature) is None


def test_a_broker_that_does_not_know_the_password_is_an_impostor() -> None:
    client = ScramClient("sha256", "user", "pencil", NONCE)
    client.answer(RFC_7677_FIRST)

    with pytest.raises(SaslError, match="impostor"):
        client.answer(b"v=" + base64.b64encode(bytes(32)))
    with pytest.raises(SaslError, match="impostor"):
        client.answer(b"v=?")


@pytest.mark.parametrize(
    ("challenge", "words"),
    [
        (b"r=somebodyelse,s=QQ==,i=4096", "nonce"),
        (b"r=rOprNGfwEbeRWgbNEkqO,s=QQ==,i=4096", "nonce"),
        (b"r=rOprNGfwEbeRWgbNEkqO1,s=QQ==,i=1", "iterations"),
        (b"r=rOprNGfwEbeRWgbNEkqO1,s=QQ==,i=99999999", "iterations"),
        (b"r=rOprNGfwEbeRWgbNEkqO1,s=?,i=4096", "salt"),
        (b"r=rOprNGfwEbeRWgbNEkqO1,i=4096", "salt"),
        (b"\xff\xfe", "no text"),
        (b"", "nonce"),
    ],
)
def test_a_challenge_that_proves_nothing_is_refused(challenge: bytes, words: str) -> None:
    with pytest.raises(SaslError, match=words):
        ScramClient("sha256", "user", "pencil", NONCE).answer(challenge)


def test_an_error_of_the_broker_is_repeated() -> None:
    client = ScramClient("sha256", "user", "pencil", NONCE)
    client.answer(RFC_7677_FIRST)

    with pytest.raises(SaslError, match="invalid-proof"):
        client.answer(b"e=invalid-proof")


@settings(max_examples=20, deadline=None)
@given(
    st.text(st.characters(blacklist_categories=["Cs"]), min_size=1), st.text(st.characters(blacklist_categories=["Cs"]))
)
def test_any_name_and_password_convince_a_broker_that_knows_them(name: str, password: str) -> None:
    client = ScramClient("sha256", name, password, NONCE, (("tokenauth", "true"),))
    first_bare = client.first().decode().removeprefix("n,,")
    challenge = f"r={NONCE}x,s={base64.b64encode(b'salt').decode()},i=4096"
    salted = hashlib.pbkdf2_hmac("sha256", password.encode(), b"salt", 4096)
    client_key = hmac.digest(salted, b"Client Key", "sha256")

    answer = client.answer(challenge.encode())

    assert answer is not None
    bare, _, proof = answer.decode().rpartition(",p=")
    signed = f"{first_bare},{challenge},{bare}".encode()
    signature = hmac.digest(hashlib.sha256(client_key).digest(), signed, "sha256")
    recovered = bytes(a ^ b for a, b in zip(base64.b64decode(proof), signature, strict=True))
    assert recovered == client_key
    assert first_bare.endswith(",tokenauth=true")
    name_sent = first_bare.removeprefix("n=").partition(f",r={NONCE}")[0]
    assert name_sent.replace("=2C", ",").replace("=3D", "=") == name
    assert "," not in name_sent


def test_plain_is_user_and_password() -> None:
    client = PlainClient("tim", "tanstaaftanstaaf")  # RFC 4616, section 4

    assert client.first() == b"\0tim\0tanstaaftanstaaf"
    assert client.answer(b"") is None
    with pytest.raises(SaslError):
        PlainClient("a\0b", "c")


def test_a_bearer_shows_the_token_and_acknowledges_a_refusal() -> None:
    token = "vF9dft4qmTc2Nvb3RlckBhbHRhdmlzdGEuY29tCg=="  # RFC 7628, section 4.1
    client = BearerClient(token, (("logicalCluster", "c1"),))

    assert client.first() == f"n,,\x01auth=Bearer {token}\x01logicalCluster=c1\x01\x01".encode()
    assert client.answer(b"") is None
    assert client.answer(b'{"status":"invalid_token"}') == b"\x01"


@pytest.mark.parametrize(
    ("token", "extensions"),
    [("", ()), ("with space", ()), ("x\x01auth=y", ()), ("x", (("auth", "y"),)), ("x", (("a1", "y"),))],
)
def test_a_token_that_could_break_out_is_refused(token: str, extensions: tuple[tuple[str, str], ...]) -> None:
    with pytest.raises(SaslError):
        BearerClient(token, extensions)


def test_an_unsecured_token_says_who_and_until_when() -> None:
    head, payload, signature = unsecured_token({"sub": "alice"}, now_ms=1_000_000, life_s=60).split(".")

    assert json.loads(base64.urlsafe_b64decode(head + "==")) == {"alg": "none"}
    claims = json.loads(base64.urlsafe_b64decode(payload + "=="))
    assert claims == {"iat": 1_000.0, "exp": 1_060.0, "sub": "alice"}
    assert signature == ""


def test_each_log_in_has_another_nonce() -> None:
    sasl = SaslSettings(mechanism="SCRAM-SHA-256", username="u", password="p")
    source = random.Random(1)

    first = new_mechanism(sasl, now_ms=0, random_source=source).first()

    assert first != new_mechanism(sasl, now_ms=0, random_source=source).first()


# On a connection.


def secured(mechanism: str, **options: str) -> tuple[Network, Broker, dict[str, str]]:
    network = Network()
    broker = network.broker(1, "a")
    network.leaders["t"] = {0: 1}
    broker.handlers[17] = lambda request, version: SaslHandshakeResponse(
        error_code=0 if request.mechanism == mechanism else int(ErrorCode.UNSUPPORTED_SASL_MECHANISM),
        mechanisms=[mechanism],
    )
    given = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": mechanism, **options}
    return network, broker, {name.replace(".", "_"): value for name, value in given.items()}


def test_a_broker_lets_us_in_after_scram() -> None:
    network, broker, options = secured("SCRAM-SHA-256", **{"sasl.username": "user", "sasl.password": "pencil"})
    said: list[bytes] = []

    def authenticate(request: SaslAuthenticateResponse, version: int) -> SaslAuthenticateResponse:
        said.append(request.auth_bytes)
        nonce = said[0].decode().rpartition("r=")[2]
        challenge = f"r={nonce}x,s=c2FsdA==,i=4096"
        if len(said) == 1:
            return SaslAuthenticateResponse(error_code=0, error_message=None, auth_bytes=challenge.encode())
        salted = hashlib.pbkdf2_hmac("sha256", b"pencil", b"salt", 4096)
        signed = f"{said[0].decode()[3:]},{challenge},{said[1].decode().rpartition(',p=')[0]}".encode()
        signature = hmac.digest(hmac.digest(salted, b"Server Key", "sha256"), signed, "sha256")
        return SaslAuthenticateResponse(
            error_code=0, error_message=None, auth_bytes=b"v=" + base64.b64encode(signature), session_lifetime_ms=10_000
        )

    broker.handlers[36] = authenticate
    client = network.client(**options)

    assert list(client.topics()) == ["t"]
    assert [key for key, _, _ in broker.asked] == [18, 17, 36, 36, 3]

    network.clock.time_ms += 8_500
    said.clear()
    client.topics()
    assert len(broker.connections) == 2, "a session that ends soon is not begun another request in"


def test_credentials_that_are_refused_are_not_tried_again() -> None:
    network, broker, options = secured("PLAIN", **{"sasl.username": "u", "sasl.password": "wrong"})
    broker.handlers[36] = lambda request, version: SaslAuthenticateResponse(
        error_code=int(ErrorCode.SASL_AUTHENTICATION_FAILED), error_message="Invalid username", auth_bytes=b""
    )

    with pytest.raises(AuthenticationFailedError, match=r"a:9092 does not accept.*PLAIN.*Invalid username") as caught:
        network.client(**options).topics()
    assert "wrong" not in str(caught.value)
    assert (network.clock.slept_ms, len(broker.connections)) == (0, 1)
    assert broker.connections[0].is_closed


def test_a_mechanism_that_the_broker_does_not_take_is_told_with_those_it_takes() -> None:
    network, _, options = secured("SCRAM-SHA-512", **{"sasl.username": "u", "sasl.password": "p"})
    options["sasl_mechanism"] = "PLAIN"

    with pytest.raises(AuthenticationFailedError, match=r"refuses sasl.mechanism=PLAIN.*it takes SCRAM-SHA-512"):
        network.client(**options).topics()


def test_a_token_in_a_file_is_read_at_each_log_in(tmp_path: Path) -> None:
    path = tmp_path / "token"
    network, broker, options = secured("OAUTHBEARER", **{"sasl.oauthbearer.token.endpoint.url": path.as_uri()})
    tokens: list[bytes] = []

    def authenticate(request: SaslAuthenticateResponse, version: int) -> SaslAuthenticateResponse:
        tokens.append(request.auth_bytes)
        return SaslAuthenticateResponse(error_code=0, error_message=None, auth_bytes=b"")

    broker.handlers[36] = authenticate
    client = network.client(**options)
    path.write_text("first\n")
    client.topics()
    path.write_text("second\n")
    broker.connections[0].has_hung_up = True
    client.topics()

    assert tokens == [b"n,,\x01auth=Bearer first\x01\x01", b"n,,\x01auth=Bearer second\x01\x01"]
    path.unlink()
    broker.connections[1].has_hung_up = True
    with pytest.raises(AuthenticationFailedError, match="cannot be read"):
        client.topics()


def test_a_log_in_without_end_is_given_up() -> None:
    network, broker, options = secured("OAUTHBEARER", **{"sasl.oauthbearer.token": "abc"})
    broker.handlers[36] = lambda request, version: SaslAuthenticateResponse(
        error_code=0, error_message=None, auth_bytes=b"more"
    )

    with pytest.raises(AuthenticationFailedError, match="no end after 8 messages"):
        network.client(**options).topics()


def test_a_broker_that_proves_nothing_is_left() -> None:
    network, broker, options = secured("SCRAM-SHA-256", **{"sasl.username": "u", "sasl.password": "p"})
    broker.handlers[36] = lambda request, version: SaslAuthenticateResponse(
        error_code=0, error_message=None, auth_bytes=b"r=nonsense"
    )

    with pytest.raises(AuthenticationFailedError, match=r"a:9092 \(SCRAM-SHA-256\): the broker's nonce"):
        network.client(**options).topics()
    assert broker.connections[0].is_closed


def test_a_token_that_is_made_here_logs_in() -> None:
    line = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required "
    network, broker, options = secured(
        "OAUTHBEARER", **{"sasl.jaas.config": line + 'unsecuredLoginStringClaim_sub="me";'}
    )
    broker.handlers[36] = lambda request, version: SaslAuthenticateResponse(
        error_code=0, error_message=None, auth_bytes=b""
    )

    assert list(network.client(**options).topics()) == ["t"]
    assert broker.requests(36)[0].auth_bytes.startswith(b"n,,\x01auth=Bearer eyJhbGciOiJub25lIn0.")

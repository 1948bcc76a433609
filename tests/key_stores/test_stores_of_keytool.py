"""Stores that the JDK's keytool wrote are read; damaged ones, and wrong passwords, are told."""

from __future__ import annotations

import ssl
import sys

import pytest
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat, load_der_private_key
from cryptography.x509 import load_der_x509_certificate
from hypothesis import given, settings
from hypothesis import strategies as st

from odradek.kernel.key_stores import StoreError, StoreFormat, open_key_store, open_trust_store
from tests.key_stores.stores import GOLDEN, KEY_PASSWORD, PASSWORD, fingerprints, golden, told_by_keytool

KEY_STORES = [
    ("server.jks", "server.jks", KEY_PASSWORD),
    ("server.p12", "server.p12", None),
    ("server.p12", "server.p12", PASSWORD),
    ("server-of-java-8.p12", "server-of-java-8.p12", None),
    ("crowded.p12", "server.p12", None),
    ("two-keys.jks", "server.jks", KEY_PASSWORD),
    ("two-keys.p12", "server.p12", None),
    ("two-passwords.p12", "two-passwords.p12", KEY_PASSWORD),
    ("two-passwords-of-java-8.p12", "two-passwords.p12", KEY_PASSWORD),
]
TRUST_STORES = [
    ("trust.jks", PASSWORD),
    ("trust.jks", None),
    ("trust.p12", PASSWORD),
    ("trust-of-java-8.p12", PASSWORD),
    ("trust-without-password.p12", None),
    ("trust-without-password.p12", PASSWORD),
    ("trust-beyond-ascii.jks", "pässwörd-☃"),
]


def found(data: bytes) -> StoreFormat:
    return StoreFormat.of(data, None)


@pytest.mark.parametrize(("name", "like", "key_password"), KEY_STORES)
def test_a_private_key_comes_with_the_chain_that_keytool_shows(name: str, like: str, key_password: str | None) -> None:
    data = golden(name)

    entry = open_key_store(data, found(data), PASSWORD, key_password)

    own = load_der_x509_certificate(entry.chain[0]).public_key()
    public = load_der_private_key(entry.key, None).public_key()
    form = Encoding.DER, PublicFormat.SubjectPublicKeyInfo
    assert fingerprints(entry.chain) == told_by_keytool(like)
    assert public.public_bytes(*form) == own.public_bytes(*form)


def test_of_two_keys_the_one_is_taken_that_the_password_opens() -> None:
    entry = open_key_store(golden("two-keys.jks"), StoreFormat.JKS, PASSWORD, None)

    assert fingerprints(entry.chain) == told_by_keytool("two-keys.jks")[:1]


def test_a_key_is_the_same_in_both_formats() -> None:
    first = open_key_store(golden("server.jks"), StoreFormat.JKS, PASSWORD, KEY_PASSWORD)
    second = open_key_store(golden("server.p12"), StoreFormat.PKCS12, PASSWORD, None)

    assert second.chain == list(first.chain)
    assert load_der_private_key(second.key, None).private_numbers() == (  # type: ignore[union-attr]
        load_der_private_key(first.key, None).private_numbers()  # type: ignore[union-attr]
    )


@pytest.mark.parametrize(("name", "password"), TRUST_STORES)
def test_trusted_certificates_are_those_that_keytool_shows(name: str, password: str | None) -> None:
    data = golden(name)

    assert fingerprints(open_trust_store(data, found(data), password)) == told_by_keytool("trust.jks")


@pytest.mark.parametrize(
    ("name", "own_certificates"),
    [("server.jks", [0]), ("server.p12", [0]), ("own-authority.p12", [0, 1]), ("crowded.p12", [0, "another"])],
)
def test_of_a_private_key_its_own_certificate_is_trusted_and_its_authority_if_it_is_so_itself(
    name: str, own_certificates: list[int | str]
) -> None:
    data = golden(name)
    own = told_by_keytool("server.jks")
    expected = [own[one] if isinstance(one, int) else told_by_keytool("crowded.p12")[0] for one in own_certificates]

    assert fingerprints(open_trust_store(data, found(data), PASSWORD)) == expected


REFUSED_KEYS = [
    ("server.jks", "wrong", KEY_PASSWORD, "password", "the password of the store is wrong"),
    ("server.jks", PASSWORD, "wrong", "key.password", "the password of the private key 'server' is wrong"),
    ("server.jks", PASSWORD, None, "key.password", "the password of the private key 'server' is wrong"),
    ("two-keys.jks", PASSWORD, "wrong", "key.password", "the password of the private key 'server' is wrong"),
    ("trust.jks", PASSWORD, None, "location", "there is no private key in it"),
    ("server.p12", "wrong", None, "password", "the password of the store is wrong"),
    ("server.p12", PASSWORD, "wrong", "key.password", "the password of the private key is wrong"),
    ("server-of-java-8.p12", PASSWORD, "wrong", "key.password", "the password of the private key is wrong"),
    ("two-passwords.p12", PASSWORD, "wrong", "key.password", "the password of the private key is wrong"),
    ("two-passwords.p12", PASSWORD, None, "key.password", "its private key has a password of its own"),
    ("two-passwords.p12", PASSWORD, PASSWORD, "key.password", "its private key has a password of its own"),
    ("two-passwords.p12", "wrong", KEY_PASSWORD, "password", "the password of the store is wrong"),
    ("two-passwords.p12", "wrong", None, "password", "the password of the store is wrong"),
    ("trust.p12", PASSWORD, KEY_PASSWORD, "location", "there is no private key in it"),
    ("trust.p12", PASSWORD, None, "location", "there is no private key in it"),
]


@pytest.mark.parametrize(("name", "password", "key_password", "setting", "says"), REFUSED_KEYS)
def test_a_key_store_that_does_not_open_names_the_setting(
    name: str, password: str, key_password: str | None, setting: str, says: str
) -> None:
    data = golden(name)

    with pytest.raises(StoreError, match=says) as caught:
        open_key_store(data, found(data), password, key_password)

    assert caught.value.setting == setting
    assert caught.value.hint


def unsigned(store: bytes) -> bytes:
    """Return a PKCS12 store without its signature: a sequence of its version, three bytes long, and what it holds."""
    end = 4 + 3 + 4 + int.from_bytes(store[9:11], "big")
    return store[:2] + (end - 4).to_bytes(2, "big") + store[4:end]


@pytest.mark.parametrize("name", ["server.p12", "two-passwords.p12"])
def test_of_an_unsigned_store_nobody_claims_to_know_which_password_is_wrong(name: str) -> None:
    with pytest.raises(StoreError, match="the password of the store is wrong, or the store is damaged") as caught:
        open_key_store(unsigned(golden(name)), StoreFormat.PKCS12, "wrong", None)

    assert caught.value.setting == "password"


def test_an_unsigned_store_opens() -> None:
    expected = open_key_store(golden("server.p12"), StoreFormat.PKCS12, PASSWORD, None)

    assert open_key_store(unsigned(golden("server.p12")), StoreFormat.PKCS12, PASSWORD, None) == expected
    two = open_key_store(unsigned(golden("two-passwords.p12")), StoreFormat.PKCS12, PASSWORD, KEY_PASSWORD)
    assert two.key == expected.key


def test_a_store_of_two_passwords_that_is_not_built_as_one_is_told_so() -> None:
    key_bag = b"\x06\x0b" + bytes.fromhex("2a864886f70d010c0a0102")
    data = bytes([0x30, len(key_bag)]) + key_bag

    with pytest.raises(StoreError, match="its private key cannot be found: it is not built as PKCS12 is") as caught:
        open_key_store(data, StoreFormat.PKCS12, PASSWORD, KEY_PASSWORD)

    assert caught.value.setting == "location"


REFUSED_TRUST = [
    ("trust.jks", "wrong", "password", "the password of the store is wrong"),
    ("trust.p12", "wrong", "password", "the password of the store is wrong"),
    ("trust.p12", None, "password", "cannot be opened without its password"),
    ("two-keys.p12", PASSWORD, "location", "it holds 2 private keys"),
    ("two-passwords.p12", PASSWORD, "location", "its private key has a password of its own: which"),
    ("empty.jks", PASSWORD, "location", "there is no certificate in it"),
]


@pytest.mark.parametrize(("name", "password", "setting", "says"), REFUSED_TRUST)
def test_a_trust_store_that_does_not_open_names_the_setting(
    name: str, password: str | None, setting: str, says: str
) -> None:
    data = golden(name)

    with pytest.raises(StoreError, match=says) as caught:
        open_trust_store(data, found(data), password)

    assert caught.value.setting == setting
    assert caught.value.hint


@pytest.mark.parametrize("name", ["server.jks", "trust.jks"])
def test_a_jks_store_with_any_byte_changed_is_refused(name: str) -> None:
    whole = golden(name)

    for position in range(len(whole)):
        damaged = whole[:position] + bytes([whole[position] ^ 1]) + whole[position + 1 :]
        with pytest.raises(StoreError):
            open_trust_store(damaged, StoreFormat.JKS, PASSWORD)


@given(st.data())
@settings(max_examples=30)
def test_a_pkcs12_store_with_a_byte_changed_is_refused_or_the_same(data: st.DataObject) -> None:
    whole = golden("trust.p12")
    position = data.draw(st.integers(0, len(whole) - 1))
    damaged = whole[:position] + bytes([whole[position] ^ data.draw(st.integers(1, 255))]) + whole[position + 1 :]

    assert read_or_refused(damaged, StoreFormat.PKCS12, PASSWORD) in (
        [],
        open_trust_store(whole, found(whole), PASSWORD),
    )


@given(st.data())
@settings(max_examples=30)
def test_a_store_of_two_passwords_with_a_byte_changed_is_refused_or_its_key_the_same(
    data: st.DataObject,
) -> None:
    whole = golden("two-passwords.p12")
    position = data.draw(st.integers(0, len(whole) - 1))
    damaged = whole[:position] + bytes([whole[position] ^ data.draw(st.integers(1, 255))]) + whole[position + 1 :]
    expected = open_key_store(whole, StoreFormat.PKCS12, PASSWORD, KEY_PASSWORD).key
    try:
        key = open_key_store(damaged, StoreFormat.PKCS12, PASSWORD, KEY_PASSWORD).key
    except StoreError:
        key = expected

    assert key == expected


@given(st.data())
@pytest.mark.parametrize("name", ["server.jks", "two-keys.jks", "trust.jks", "trust-beyond-ascii.jks"])
def test_a_jks_store_that_nobody_checks_is_read_or_refused_whatever_is_in_it(name: str, data: st.DataObject) -> None:
    """Without a password the digest is not looked at: the parser alone stands against what is in the file."""
    whole = bytearray(golden(name))
    for _ in range(data.draw(st.integers(1, 3))):
        whole[data.draw(st.integers(0, len(whole) - 1))] = data.draw(st.integers(0, 255))
    del whole[data.draw(st.integers(0, len(whole))) :]

    assert all(one in whole for one in read_or_refused(bytes(whole), StoreFormat.JKS, None))


def read_or_refused(data: bytes, kind: StoreFormat, password: str | None) -> list[bytes]:
    """Return what a store trusts; nothing where it is refused."""
    try:
        return open_trust_store(data, kind, password)
    except StoreError:
        return []


@pytest.mark.parametrize("size_bytes", [4, 12, 23, 24, 100])
@pytest.mark.parametrize("name", ["server.jks", "server.p12"])
def test_a_store_that_is_cut_off_is_refused(name: str, size_bytes: int) -> None:
    kind = StoreFormat.JKS if name.endswith("jks") else StoreFormat.PKCS12

    with pytest.raises(StoreError):
        open_key_store(golden(name)[:size_bytes], kind, PASSWORD, None)


FORMATS = [
    ("server.jks", None, StoreFormat.JKS),
    ("server.jks", "JKS", StoreFormat.JKS),
    ("server.jks", "pkcs12", StoreFormat.JKS),
    ("server.p12", None, StoreFormat.PKCS12),
    ("server.p12", "jks", StoreFormat.PKCS12),
    ("server-of-java-8.p12", "PKCS12", StoreFormat.PKCS12),
    ("trust-without-password.p12", None, StoreFormat.PKCS12),
    ("authority.pem", None, StoreFormat.PEM),
    ("authority.pem", "PEM", StoreFormat.PEM),
    ("make.sh", "PEM", StoreFormat.PEM),
]


@pytest.mark.parametrize(("name", "said", "expected"), FORMATS)
def test_the_content_tells_the_format_within_what_the_type_says(
    name: str, said: str | None, expected: StoreFormat
) -> None:
    assert StoreFormat.of(golden(name), said) is expected


STRANGE = [
    ("server.jks", "PEM", "type", "it is JKS, and its type is said to be PEM"),
    ("server.p12", "PEM", "type", "it is PKCS12, and its type is said to be PEM"),
    ("authority.pem", "JKS", "type", "it is PEM, and its type is said to be JKS"),
    ("authority.pem", "BCFKS", "type", "stores of type BCFKS are not read: JKS, PKCS12, PEM are"),
    ("server.jceks", None, "location", "it is JCEKS"),
    ("make.sh", None, "location", "neither JKS nor PKCS12 nor PEM"),
    ("make.sh", "JKS", "location", "neither JKS nor PKCS12 nor PEM"),
]


@pytest.mark.parametrize(("name", "said", "setting", "says"), STRANGE)
def test_another_format_than_the_type_says_is_refused(name: str, said: str | None, setting: str, says: str) -> None:
    with pytest.raises(StoreError, match=says) as caught:
        StoreFormat.of(golden(name), said)

    assert caught.value.setting == setting


def test_a_certificate_that_is_not_text_is_no_pkcs12_store() -> None:
    der = ssl.PEM_cert_to_DER_cert(golden("authority.pem").decode())

    with pytest.raises(StoreError, match="neither JKS nor PKCS12 nor PEM"):
        StoreFormat.of(der, None)


def test_without_cryptography_pkcs12_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cryptography.hazmat.primitives.serialization.pkcs12", None)

    with pytest.raises(StoreError) as caught:
        open_trust_store(golden("trust.p12"), StoreFormat.PKCS12, PASSWORD)

    assert caught.value.hint == "pip install cryptography"
    assert open_trust_store(golden("trust.jks"), StoreFormat.JKS, PASSWORD)


def test_a_key_is_never_printed() -> None:
    entry = open_key_store(golden("server.jks"), StoreFormat.JKS, PASSWORD, KEY_PASSWORD)

    assert entry.key.hex()[:16] not in repr(entry)
    assert repr(entry.key) not in repr(entry)


def test_every_store_that_is_kept_is_used() -> None:
    names = {path.name for path in GOLDEN.iterdir()} - {"ORIGIN.md", "stores.txt", "TwoPasswords.java"}
    rows = [("own-authority.p12",), *KEY_STORES, *TRUST_STORES, *REFUSED_KEYS, *REFUSED_TRUST, *FORMATS, *STRANGE]

    assert names == {row[0] for row in rows}

"""Pure core: how to reach a store: what its URL says, and what may be said beside it.

What is not set here is taken by `obstore` from the provider's usual environment variables: `AWS_ACCESS_KEY_ID`,
`AWS_ENDPOINT`, `GOOGLE_SERVICE_ACCOUNT`, `AZURE_STORAGE_ACCOUNT_NAME` and their like.

.. versionadded:: 0.1
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final
from urllib.parse import unquote, urlsplit

import attrs

from odradek.kernel.api import AtLeast, ConfigError, ConfigKey, ConfigType, Importance, Part, frozen

if TYPE_CHECKING:
    from collections.abc import Mapping

    from odradek.kernel.api import ConfigView

STORE_KEY: Final = "odradek.tiered.store"
"""The broker's key with the store's URL."""

SCHEMES: Final = ("s3", "gs", "az", "file", "memory")
"""Schemes of URLs of stores."""


@frozen
class StoreSettings:
    """How to reach a store, beside its URL. A worker process may be sent one.

    Attributes:
        timeout_ms: How long one request may take; a large object takes several.
        connect_timeout_ms: How long a connection may take to be made.
        retries: How often a request that a store was too busy for, or that got no answer, is repeated before the
            caller hears of it; a few tenths of a second each.
        options: What the provider's client is told, by the names of `odradek.tiered.store.*` with underscores; empty
            texts count as not set.
    """

    timeout_ms: int = 30_000
    connect_timeout_ms: int = 5_000
    retries: int = 2
    options: Mapping[str, str] = attrs.field(factory=dict)


@frozen
class StoreAddress:
    """What a URL says.

    Attributes:
        scheme: One of `SCHEMES`.
        bucket: Bucket, container, or name of a store in memory; empty for a folder.
        path: The prefix of all names without slashes at its ends, or the absolute path of a folder.
    """

    scheme: str
    bucket: str
    path: str


OPTIONS: Final[Mapping[str, Mapping[str, str]]] = {
    "s3": {
        "access_key_id": "access_key_id",
        "secret_access_key": "secret_access_key",
        "session_token": "session_token",
        "endpoint": "endpoint",
        "region": "region",
        "allow_http": "allow_http",
    },
    "gs": {"service_account": "service_account", "allow_http": "allow_http"},
    "az": {
        "account_name": "account_name",
        "account_key": "account_key",
        "endpoint": "endpoint",
        "allow_http": "allow_http",
    },
    "file": {},
    "memory": {},
}
"""By scheme: which options of `StoreSettings` have a meaning, and what the client calls them."""

_TEXTS: Final = (
    ("access.key.id", ConfigType.STRING, "The access key of an `s3://` store; else `AWS_ACCESS_KEY_ID`."),
    ("secret.access.key", ConfigType.PASSWORD, "The secret key of an `s3://` store; else `AWS_SECRET_ACCESS_KEY`."),
    ("session.token", ConfigType.PASSWORD, "The session token of an `s3://` store; else `AWS_SESSION_TOKEN`."),
    ("endpoint", ConfigType.STRING, "The address of an `s3://` or `az://` store that is not its provider's own."),
    ("region", ConfigType.STRING, "The region of an `s3://` store; else `AWS_REGION`."),
    ("allow.http", ConfigType.STRING, "`true` lets an endpoint be http, which sends data unencrypted."),
    ("account.name", ConfigType.STRING, "The storage account of an `az://` store."),
    ("account.key", ConfigType.PASSWORD, "The key of the storage account of an `az://` store."),
    ("service.account", ConfigType.STRING, "The path of the service account's file of a `gs://` store."),
)

STORE_CONFIG_KEYS: Final = (
    ConfigKey(
        STORE_KEY,
        ConfigType.STRING,
        None,
        importance=Importance.HIGH,
        part=Part.TIERED,
        doc=(
            "Where tiered topics keep their old segments: `s3://bucket/prefix`, `gs://bucket/prefix`, "
            "`az://container/prefix`, `file:///folder` or `memory://name`. A folder beside the data directory when it "
            "is not set."
        ),
    ),
    ConfigKey(
        f"{STORE_KEY}.timeout.ms",
        ConfigType.INT,
        30_000,
        validator=AtLeast(1),
        part=Part.TIERED,
        doc="How long one request to the store may take; a large object takes several.",
    ),
    ConfigKey(
        f"{STORE_KEY}.connect.timeout.ms",
        ConfigType.INT,
        5_000,
        validator=AtLeast(1),
        part=Part.TIERED,
        doc="How long a connection to the store may take to be made.",
    ),
    *(ConfigKey(f"{STORE_KEY}.{name}", kind, None, part=Part.TIERED, doc=doc) for name, kind, doc in _TEXTS),
)
"""The keys that say which store, and how to reach it."""


def store_settings(config: ConfigView) -> StoreSettings:
    """Return what a broker's configuration says."""
    return StoreSettings(
        timeout_ms=config.get_int(f"{STORE_KEY}.timeout.ms"),
        connect_timeout_ms=config.get_int(f"{STORE_KEY}.connect.timeout.ms"),
        options={name.replace(".", "_"): config.get_text(f"{STORE_KEY}.{name}") for name, _, _ in _TEXTS},
    )


def parse_store_url(url: str) -> StoreAddress:
    """Return what the URL of a store says.

    Raises:
        ConfigError: It is none; credentials in it are refused, as URLs end up in logs.
    """
    try:
        parts = urlsplit(url)
    except ValueError as exc:
        raise _wrong("the store's URL cannot be read", str(exc)) from exc
    shown = f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"
    if parts.scheme not in SCHEMES:
        raise _wrong(f"{shown!r} is no URL of a store", "s3://bucket/prefix, gs://, az://, file:///folder or memory://")
    if "@" in parts.netloc or parts.query or parts.fragment:
        raise _wrong(
            f"the URL of the store {shown!r} says more than a place",
            f"credentials come from environment variables or {STORE_KEY}.*",
        )
    path = unquote(parts.path)
    if parts.scheme == "file":
        if parts.netloc or not path.strip("/"):
            raise _wrong(f"{url!r} names no folder", "file:///absolute/path, with three slashes")
        return StoreAddress("file", "", path.rstrip("/"))
    if not parts.netloc and parts.scheme != "memory":
        raise _wrong(f"{url!r} names no bucket", f"{parts.scheme}://bucket/prefix")
    return StoreAddress(parts.scheme, parts.netloc, path.strip("/"))


def client_options(address: StoreAddress, settings: StoreSettings) -> dict[str, str]:
    """Return what the provider's client is told.

    Raises:
        ConfigError: A setting has no meaning for this kind of store.
    """
    names = OPTIONS[address.scheme]
    given = {name: value for name, value in settings.options.items() if value}
    for name in given:
        if name not in names:
            key = f"{STORE_KEY}.{name.replace('_', '.')}"
            raise _wrong(f"{key} is set, and means nothing for a store of the kind {address.scheme}://", "leave it out")
    return {
        "timeout": f"{settings.timeout_ms}ms",
        "connect_timeout": f"{settings.connect_timeout_ms}ms",
        **{names[name]: value for name, value in given.items()},
    }


def _wrong(message: str, hint: str) -> ConfigError:
    return ConfigError(message, where=STORE_KEY, hint=hint)

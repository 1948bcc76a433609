"""Pure core: the keys of SASL, OAuth and delegation tokens."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ..keys import Part, Scope, build
from ..values import Between, OneOfAnyCase
from .vocabulary import (
    ANY_LIST,
    BOOLEAN,
    CLASS,
    DOUBLE,
    HIGH,
    INT,
    LIST,
    LONG,
    LOW,
    MEDIUM,
    NOT_NEGATIVE,
    PASSWORD,
    PER_BROKER,
    POSITIVE,
    READ_ONLY,
    SHORT,
    STRING,
)

if TYPE_CHECKING:
    from ..keys import ConfigKey, Row

_ROWS: Final[tuple[Row, ...]] = (
    ("sasl.mechanism.inter.broker.protocol", STRING, "GSSAPI", None, MEDIUM, PER_BROKER, Part.SECURITY),
    ("sasl.enabled.mechanisms", LIST, ("GSSAPI",), ANY_LIST, MEDIUM, PER_BROKER, Part.SECURITY),
    ("sasl.server.callback.handler.class", CLASS, None, None, MEDIUM, READ_ONLY, Part.SECURITY),
    ("sasl.kerberos.principal.to.local.rules", LIST, ("DEFAULT",), ANY_LIST, MEDIUM, PER_BROKER, Part.SECURITY),
    ("sasl.jaas.config", PASSWORD, None, None, MEDIUM, PER_BROKER, Part.SECURITY),
    ("sasl.client.callback.handler.class", CLASS, None, None, MEDIUM, READ_ONLY, Part.SECURITY),
    ("sasl.login.class", CLASS, None, None, MEDIUM, READ_ONLY, Part.SECURITY),
    ("sasl.login.callback.handler.class", CLASS, None, None, MEDIUM, READ_ONLY, Part.SECURITY),
    ("sasl.kerberos.service.name", STRING, None, None, MEDIUM, PER_BROKER, Part.SECURITY),
    ("sasl.kerberos.kinit.cmd", STRING, "/usr/bin/kinit", None, MEDIUM, PER_BROKER, Part.SECURITY),
    ("sasl.kerberos.ticket.renew.window.factor", DOUBLE, 0.8, None, MEDIUM, PER_BROKER, Part.SECURITY),
    ("sasl.kerberos.ticket.renew.jitter", DOUBLE, 0.05, None, MEDIUM, PER_BROKER, Part.SECURITY),
    ("sasl.kerberos.min.time.before.relogin", LONG, 60000, None, MEDIUM, PER_BROKER, Part.SECURITY),
    ("sasl.login.refresh.window.factor", DOUBLE, 0.8, None, MEDIUM, PER_BROKER, Part.SECURITY),
    ("sasl.login.refresh.window.jitter", DOUBLE, 0.05, None, MEDIUM, PER_BROKER, Part.SECURITY),
    ("sasl.login.refresh.min.period.seconds", SHORT, 60, None, MEDIUM, PER_BROKER, Part.SECURITY),
    ("sasl.login.refresh.buffer.seconds", SHORT, 300, None, MEDIUM, PER_BROKER, Part.SECURITY),
    ("sasl.login.connect.timeout.ms", INT, None, None, LOW, READ_ONLY, Part.SECURITY),
    ("sasl.login.read.timeout.ms", INT, None, None, LOW, READ_ONLY, Part.SECURITY),
    ("sasl.login.retry.backoff.max.ms", LONG, 10000, None, LOW, READ_ONLY, Part.SECURITY),
    ("sasl.login.retry.backoff.ms", LONG, 100, None, LOW, READ_ONLY, Part.SECURITY),
    (
        "sasl.oauthbearer.jwt.retriever.class",
        CLASS,
        "org.apache.kafka.common.security.oauthbearer.DefaultJwtRetriever",
        None,
        MEDIUM,
        READ_ONLY,
        Part.SECURITY,
    ),
    (
        "sasl.oauthbearer.jwt.validator.class",
        CLASS,
        "org.apache.kafka.common.security.oauthbearer.DefaultJwtValidator",
        None,
        MEDIUM,
        READ_ONLY,
        Part.SECURITY,
    ),
    ("sasl.oauthbearer.scope", STRING, None, None, MEDIUM, READ_ONLY, Part.SECURITY),
    ("sasl.oauthbearer.client.credentials.client.id", STRING, None, None, MEDIUM, READ_ONLY, Part.SECURITY),
    ("sasl.oauthbearer.client.credentials.client.secret", PASSWORD, None, None, MEDIUM, READ_ONLY, Part.SECURITY),
    (
        "sasl.oauthbearer.assertion.algorithm",
        STRING,
        "RS256",
        OneOfAnyCase(("ES256", "RS256")),
        MEDIUM,
        READ_ONLY,
        Part.SECURITY,
    ),
    ("sasl.oauthbearer.assertion.claim.aud", STRING, None, None, MEDIUM, READ_ONLY, Part.SECURITY),
    ("sasl.oauthbearer.assertion.claim.exp.seconds", INT, 300, Between(0, 86400), LOW, READ_ONLY, Part.SECURITY),
    ("sasl.oauthbearer.assertion.claim.iss", STRING, None, None, MEDIUM, READ_ONLY, Part.SECURITY),
    ("sasl.oauthbearer.assertion.claim.jti.include", BOOLEAN, False, None, MEDIUM, READ_ONLY, Part.SECURITY),
    ("sasl.oauthbearer.assertion.claim.nbf.seconds", INT, 60, Between(0, 3600), LOW, READ_ONLY, Part.SECURITY),
    ("sasl.oauthbearer.assertion.claim.sub", STRING, None, None, MEDIUM, READ_ONLY, Part.SECURITY),
    ("sasl.oauthbearer.assertion.file", STRING, None, None, MEDIUM, READ_ONLY, Part.SECURITY),
    ("sasl.oauthbearer.assertion.private.key.file", STRING, None, None, MEDIUM, READ_ONLY, Part.SECURITY),
    ("sasl.oauthbearer.assertion.private.key.passphrase", PASSWORD, None, None, MEDIUM, READ_ONLY, Part.SECURITY),
    ("sasl.oauthbearer.assertion.template.file", STRING, None, None, MEDIUM, READ_ONLY, Part.SECURITY),
    ("sasl.oauthbearer.scope.claim.name", STRING, "scope", None, LOW, READ_ONLY, Part.SECURITY),
    ("sasl.oauthbearer.sub.claim.name", STRING, "sub", None, LOW, READ_ONLY, Part.SECURITY),
    ("sasl.oauthbearer.token.endpoint.url", STRING, None, None, MEDIUM, READ_ONLY, Part.SECURITY),
    ("sasl.oauthbearer.jwks.endpoint.url", STRING, None, None, MEDIUM, READ_ONLY, Part.SECURITY),
    ("sasl.oauthbearer.jwks.endpoint.refresh.ms", LONG, 3_600_000, None, LOW, READ_ONLY, Part.SECURITY),
    ("sasl.oauthbearer.jwks.endpoint.retry.backoff.ms", LONG, 100, None, LOW, READ_ONLY, Part.SECURITY),
    ("sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms", LONG, 10000, None, LOW, READ_ONLY, Part.SECURITY),
    ("sasl.oauthbearer.clock.skew.seconds", INT, 30, None, LOW, READ_ONLY, Part.SECURITY),
    ("sasl.oauthbearer.expected.audience", LIST, (), ANY_LIST, HIGH, READ_ONLY, Part.SECURITY),
    ("sasl.oauthbearer.expected.issuer", STRING, None, None, HIGH, READ_ONLY, Part.SECURITY),
    ("delegation.token.secret.key", PASSWORD, None, None, MEDIUM, READ_ONLY, Part.SECURITY),
    ("delegation.token.max.lifetime.ms", LONG, 604_800_000, POSITIVE, MEDIUM, READ_ONLY, Part.SECURITY),
    ("delegation.token.expiry.time.ms", LONG, 86_400_000, POSITIVE, MEDIUM, READ_ONLY, Part.SECURITY),
    ("delegation.token.expiry.check.interval.ms", LONG, 3_600_000, POSITIVE, LOW, READ_ONLY, Part.SECURITY),
    ("add.partitions.to.txn.retry.backoff.max.ms", INT, 100, NOT_NEGATIVE, HIGH, READ_ONLY, Part.TRANSACTIONS),
    ("add.partitions.to.txn.retry.backoff.ms", INT, 20, POSITIVE, HIGH, READ_ONLY, Part.TRANSACTIONS),
)

_DOCS: Final = """
sasl.mechanism.inter.broker.protocol


sasl.enabled.mechanisms


sasl.server.callback.handler.class


sasl.kerberos.principal.to.local.rules


sasl.jaas.config


sasl.client.callback.handler.class


sasl.login.class


sasl.login.callback.handler.class


sasl.kerberos.service.name


sasl.kerberos.kinit.cmd


sasl.kerberos.ticket.renew.window.factor


sasl.kerberos.ticket.renew.jitter


sasl.kerberos.min.time.before.relogin


sasl.login.refresh.window.factor


sasl.login.refresh.window.jitter


sasl.login.refresh.min.period.seconds


sasl.login.refresh.buffer.seconds


sasl.login.connect.timeout.ms


sasl.login.read.timeout.ms


sasl.login.retry.backoff.max.ms


sasl.login.retry.backoff.ms


sasl.oauthbearer.jwt.retriever.class


sasl.oauthbearer.jwt.validator.class


sasl.oauthbearer.scope


sasl.oauthbearer.client.credentials.client.id


sasl.oauthbearer.client.credentials.client.secret


sasl.oauthbearer.assertion.algorithm


sasl.oauthbearer.assertion.claim.aud


sasl.oauthbearer.assertion.claim.exp.seconds


sasl.oauthbearer.assertion.claim.iss


sasl.oauthbearer.assertion.claim.jti.include


sasl.oauthbearer.assertion.claim.nbf.seconds


sasl.oauthbearer.assertion.claim.sub


sasl.oauthbearer.assertion.file


sasl.oauthbearer.assertion.private.key.file


sasl.oauthbearer.assertion.private.key.passphrase


sasl.oauthbearer.assertion.template.file


sasl.oauthbearer.scope.claim.name


sasl.oauthbearer.sub.claim.name


sasl.oauthbearer.token.endpoint.url


sasl.oauthbearer.jwks.endpoint.url


sasl.oauthbearer.jwks.endpoint.refresh.ms


sasl.oauthbearer.jwks.endpoint.retry.backoff.ms


sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms


sasl.oauthbearer.clock.skew.seconds


sasl.oauthbearer.expected.audience


sasl.oauthbearer.expected.issuer


delegation.token.secret.key


delegation.token.max.lifetime.ms


delegation.token.expiry.time.ms


delegation.token.expiry.check.interval.ms


add.partitions.to.txn.retry.backoff.max.ms


add.partitions.to.txn.retry.backoff.ms

"""

KEYS: Final[tuple[ConfigKey, ...]] = build(_ROWS, _DOCS, scope=Scope.BROKER)

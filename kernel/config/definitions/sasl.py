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
)

_DOCS: Final = """
sasl.mechanism.inter.broker.protocol
    The SASL mechanism between brokers.

sasl.enabled.mechanisms
    The SASL mechanisms that clients may use.

sasl.server.callback.handler.class
    The Java class that checks a client's credentials.

sasl.kerberos.principal.to.local.rules
    How a Kerberos principal becomes a user name.

sasl.jaas.config
    The Java login settings of a listener's mechanism.

sasl.client.callback.handler.class
    The Java class that supplies this broker's own credentials.

sasl.login.class
    The Java class that logs in.

sasl.login.callback.handler.class
    The Java class that supplies what a login asks for.

sasl.kerberos.service.name
    The name of the Kerberos service that brokers run as.

sasl.kerberos.kinit.cmd
    Where the `kinit` program is.

sasl.kerberos.ticket.renew.window.factor
    At which share of its life a Kerberos ticket is renewed.

sasl.kerberos.ticket.renew.jitter
    The random share of that moment.

sasl.kerberos.min.time.before.relogin
    The shortest time between two Kerberos logins.

sasl.login.refresh.window.factor
    At which share of its life a login token is renewed.

sasl.login.refresh.window.jitter
    The random share of that moment.

sasl.login.refresh.min.period.seconds
    The shortest time between two renewals of a login token.

sasl.login.refresh.buffer.seconds
    How long before its end a login token is renewed at the latest.

sasl.login.connect.timeout.ms
    How long a connection to the login server may take.

sasl.login.read.timeout.ms
    How long an answer of the login server may take.

sasl.login.retry.backoff.max.ms
    The longest pause after failed logins.

sasl.login.retry.backoff.ms
    The first pause after a failed login.

sasl.oauthbearer.jwt.retriever.class
    The Java class that fetches tokens.

sasl.oauthbearer.jwt.validator.class
    The Java class that judges tokens.

sasl.oauthbearer.scope
    The scope that a token is asked for with.

sasl.oauthbearer.client.credentials.client.id
    The client id of the client credentials grant.

sasl.oauthbearer.client.credentials.client.secret
    The secret of the client credentials grant.

sasl.oauthbearer.assertion.algorithm
    The algorithm that signs an assertion.

sasl.oauthbearer.assertion.claim.aud
    The audience in an assertion.

sasl.oauthbearer.assertion.claim.exp.seconds
    How long an assertion is valid.

sasl.oauthbearer.assertion.claim.iss
    The issuer in an assertion.

sasl.oauthbearer.assertion.claim.jti.include
    Whether an assertion gets an id of its own.

sasl.oauthbearer.assertion.claim.nbf.seconds
    How far back the validity of an assertion begins, for clocks that differ.

sasl.oauthbearer.assertion.claim.sub
    The subject in an assertion.

sasl.oauthbearer.assertion.file
    A file with a ready-made assertion.

sasl.oauthbearer.assertion.private.key.file
    The file with the key that signs assertions.

sasl.oauthbearer.assertion.private.key.passphrase
    The password of that key.

sasl.oauthbearer.assertion.template.file
    A file with headers and claims that assertions begin with.

sasl.oauthbearer.scope.claim.name
    The claim of a token that holds the scope.

sasl.oauthbearer.sub.claim.name
    The claim of a token that holds the subject.

sasl.oauthbearer.token.endpoint.url
    Where tokens are fetched.

sasl.oauthbearer.jwks.endpoint.url
    Where the keys are that tokens are checked with.

sasl.oauthbearer.jwks.endpoint.refresh.ms
    How often the keys that tokens are checked with are fetched again.

sasl.oauthbearer.jwks.endpoint.retry.backoff.ms
    The first pause after failing to fetch the keys that tokens are checked with.

sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms
    The longest pause after failing to fetch the keys that tokens are checked with.

sasl.oauthbearer.clock.skew.seconds
    How far clocks may differ when a token's times are checked.

sasl.oauthbearer.expected.audience
    The audiences that a token may be made for.

sasl.oauthbearer.expected.issuer
    The issuer that a token must come from.

delegation.token.secret.key
    The secret that delegation tokens are signed with; the same on all brokers.

delegation.token.max.lifetime.ms
    How long a delegation token can be renewed.

delegation.token.expiry.time.ms
    How long a delegation token is valid until it is renewed.

delegation.token.expiry.check.interval.ms
    How often expired delegation tokens are removed.
"""

KEYS: Final[tuple[ConfigKey, ...]] = build(_ROWS, _DOCS, scope=Scope.BROKER)

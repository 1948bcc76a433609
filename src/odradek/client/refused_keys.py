"""Pure core: the keys of Kafka's clients that have no meaning here: why each is refused, and what to do instead.

A key stands here, or among the keys that are read (`settings.py`, `producer_settings.py`, `consumer_settings.py`); a
test holds both against what Apache Kafka's jars say. A key that is read and can keep its default only says why there.

*Source:* Kafka 4.3 `CommonClientConfigs`, `SslConfigs`, `SaslConfigs`, `ProducerConfig`, `ConsumerConfig`,
`AdminClientConfig`.

.. versionadded:: 0.1
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


class Refusal(NamedTuple):
    """Why a key is refused.

    Attributes:
        reason: As it follows "KEY is refused:".
        instead: What to do instead.
    """

    reason: str
    instead: str


SASL: Final = Refusal(
    "SASL is not built yet", "a client can show who it is by TLS: security.protocol=SSL with ssl.keystore.location"
)
_COMMON: Final = (
    (
        SASL,
        """
        sasl.client.callback.handler.class sasl.jaas.config sasl.mechanism
        sasl.kerberos.kinit.cmd sasl.kerberos.min.time.before.relogin sasl.kerberos.service.name
        sasl.kerberos.ticket.renew.jitter sasl.kerberos.ticket.renew.window.factor
        sasl.login.callback.handler.class sasl.login.class sasl.login.connect.timeout.ms sasl.login.read.timeout.ms
        sasl.login.refresh.buffer.seconds sasl.login.refresh.min.period.seconds sasl.login.refresh.window.factor
        sasl.login.refresh.window.jitter sasl.login.retry.backoff.max.ms sasl.login.retry.backoff.ms
        sasl.oauthbearer.assertion.algorithm sasl.oauthbearer.assertion.claim.aud
        sasl.oauthbearer.assertion.claim.exp.seconds sasl.oauthbearer.assertion.claim.iss
        sasl.oauthbearer.assertion.claim.jti.include sasl.oauthbearer.assertion.claim.nbf.seconds
        sasl.oauthbearer.assertion.claim.sub sasl.oauthbearer.assertion.file sasl.oauthbearer.assertion.private.key.file
        sasl.oauthbearer.assertion.private.key.passphrase sasl.oauthbearer.assertion.template.file
        sasl.oauthbearer.client.credentials.client.id sasl.oauthbearer.client.credentials.client.secret
        sasl.oauthbearer.clock.skew.seconds sasl.oauthbearer.expected.audience sasl.oauthbearer.expected.issuer
        sasl.oauthbearer.header.urlencode sasl.oauthbearer.jwks.endpoint.refresh.ms
        sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms sasl.oauthbearer.jwks.endpoint.retry.backoff.ms
        sasl.oauthbearer.jwks.endpoint.url sasl.oauthbearer.jwt.retriever.class sasl.oauthbearer.jwt.validator.class
        sasl.oauthbearer.scope sasl.oauthbearer.scope.claim.name sasl.oauthbearer.sub.claim.name
        sasl.oauthbearer.token.endpoint.url
        """,
    ),
    (
        Refusal(
            "it only means something in a JVM: TLS is Python's here",
            "files as ssl.truststore.location and ssl.keystore.location are all it needs",
        ),
        """
        security.providers ssl.engine.factory.class ssl.keymanager.algorithm ssl.provider
        ssl.secure.random.implementation ssl.trustmanager.algorithm
        """,
    ),
    (
        Refusal("it only means something in a JVM", "ssl.enabled.protocols says which versions are spoken"),
        "ssl.protocol",
    ),
    (
        Refusal(
            "Java's names of cipher suites mean nothing to the TLS library here",
            "leave the choice to it: it offers safe suites only",
        ),
        "ssl.cipher.suites",
    ),
    (
        Refusal(
            "it names Java classes that look values up", "look them up yourself: settings are a mapping of Python's"
        ),
        "config.providers",
    ),
    (Refusal("it names Java classes", "have a task of yours report `statistics()`"), "metric.reporters"),
    (
        Refusal("this client keeps no windows of metrics", "see `statistics()`"),
        "metrics.num.samples metrics.recording.level metrics.sample.window.ms",
    ),
)
_CONSUMER: Final = (
    (
        Refusal("share groups are not built yet", "groups divide partitions, not records, among their members"),
        "share.acknowledgement.mode share.acquire.mode",
    ),
    (
        Refusal("it is a switch between Kafka's own programs", "leave it out"),
        "internal.throw.on.fetch.stable.offset.unsupported",
    ),
)


def _by_name(groups: Iterable[tuple[Refusal, str]]) -> dict[str, Refusal]:
    return {name: refusal for refusal, names in groups for name in names.split()}


COMMON_REFUSALS: Final[Mapping[str, Refusal]] = _by_name(_COMMON)
"""By key: what no client here takes."""
CONSUMER_REFUSALS: Final[Mapping[str, Refusal]] = {**COMMON_REFUSALS, **_by_name(_CONSUMER)}
"""The same for consumers."""

"""Pure core: the keys of TLS."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ..keys import Part, Scope, build
from ..values import OneOf
from .vocabulary import ANY_LIST, BOOLEAN, CLASS, LIST, LOW, MEDIUM, PASSWORD, PER_BROKER, READ_ONLY, STRING

if TYPE_CHECKING:
    from ..keys import ConfigKey, Row

_ROWS: Final[tuple[Row, ...]] = (
    ("security.providers", STRING, None, None, LOW, READ_ONLY, Part.JVM),
    (
        "principal.builder.class",
        CLASS,
        "org.apache.kafka.common.security.authenticator.DefaultKafkaPrincipalBuilder",
        None,
        MEDIUM,
        PER_BROKER,
        Part.SECURITY,
    ),
    ("ssl.client.auth", STRING, "none", OneOf(("required", "requested", "none")), MEDIUM, PER_BROKER, Part.TLS),
    ("ssl.principal.mapping.rules", STRING, "DEFAULT", None, LOW, READ_ONLY, Part.SECURITY),
    ("ssl.allow.dn.changes", BOOLEAN, False, None, LOW, READ_ONLY, Part.SECURITY),
    ("ssl.allow.san.changes", BOOLEAN, False, None, LOW, READ_ONLY, Part.SECURITY),
    ("ssl.protocol", STRING, "TLSv1.3", None, MEDIUM, PER_BROKER, Part.TLS),
    ("ssl.provider", STRING, None, None, MEDIUM, PER_BROKER, Part.JVM),
    ("ssl.enabled.protocols", LIST, ("TLSv1.2", "TLSv1.3"), ANY_LIST, MEDIUM, PER_BROKER, Part.TLS),
    ("ssl.keystore.type", STRING, "JKS", None, MEDIUM, PER_BROKER, Part.TLS),
    ("ssl.keystore.location", STRING, None, None, MEDIUM, PER_BROKER, Part.TLS),
    ("ssl.keystore.password", PASSWORD, None, None, MEDIUM, PER_BROKER, Part.TLS),
    ("ssl.key.password", PASSWORD, None, None, MEDIUM, PER_BROKER, Part.TLS),
    ("ssl.keystore.key", PASSWORD, None, None, MEDIUM, PER_BROKER, Part.TLS),
    ("ssl.keystore.certificate.chain", PASSWORD, None, None, MEDIUM, PER_BROKER, Part.TLS),
    ("ssl.truststore.type", STRING, "JKS", None, MEDIUM, PER_BROKER, Part.TLS),
    ("ssl.truststore.location", STRING, None, None, MEDIUM, PER_BROKER, Part.TLS),
    ("ssl.truststore.password", PASSWORD, None, None, MEDIUM, PER_BROKER, Part.TLS),
    ("ssl.truststore.certificates", PASSWORD, None, None, MEDIUM, PER_BROKER, Part.TLS),
    ("ssl.keymanager.algorithm", STRING, "SunX509", None, MEDIUM, PER_BROKER, Part.JVM),
    ("ssl.trustmanager.algorithm", STRING, "PKIX", None, MEDIUM, PER_BROKER, Part.JVM),
    ("ssl.endpoint.identification.algorithm", STRING, "https", None, LOW, PER_BROKER, Part.CLUSTER),
    ("ssl.secure.random.implementation", STRING, None, None, LOW, PER_BROKER, Part.JVM),
    ("ssl.cipher.suites", LIST, (), ANY_LIST, MEDIUM, PER_BROKER, Part.TLS),
    ("ssl.engine.factory.class", CLASS, None, None, LOW, PER_BROKER, Part.JVM),
)

_DOCS: Final = """
security.providers


principal.builder.class


ssl.client.auth


ssl.principal.mapping.rules


ssl.allow.dn.changes


ssl.allow.san.changes


ssl.protocol


ssl.provider


ssl.enabled.protocols


ssl.keystore.type


ssl.keystore.location


ssl.keystore.password


ssl.key.password


ssl.keystore.key


ssl.keystore.certificate.chain


ssl.truststore.type


ssl.truststore.location


ssl.truststore.password


ssl.truststore.certificates


ssl.keymanager.algorithm


ssl.trustmanager.algorithm


ssl.endpoint.identification.algorithm


ssl.secure.random.implementation


ssl.cipher.suites


ssl.engine.factory.class

"""

KEYS: Final[tuple[ConfigKey, ...]] = build(_ROWS, _DOCS, scope=Scope.BROKER)

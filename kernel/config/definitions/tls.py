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
    Java classes that provide security algorithms.

principal.builder.class
    The Java class that makes a principal of a connection.

ssl.client.auth
    Whether clients of a TLS listener must show a certificate: `required`, `requested` or `none`.

ssl.principal.mapping.rules
    How the name in a client's certificate becomes a principal.

ssl.allow.dn.changes
    Whether a key store may be exchanged for one with another distinguished name.

ssl.allow.san.changes
    Whether a key store may be exchanged for one with other alternative names.

ssl.protocol
    The newest TLS version that is spoken.

ssl.provider
    The Java provider of TLS.

ssl.enabled.protocols
    The TLS versions that are spoken.

ssl.keystore.type
    The format of the key store: `JKS`, `PKCS12` (each reads the other too) or `PEM`; unless it is set the file tells.

ssl.keystore.location
    The file with the private key and the certificate chain.

ssl.keystore.password
    The password of a key store that is not PEM.

ssl.key.password
    The password of the private key; of a JKS or PKCS12 key store it is the store's unless it is set.

ssl.keystore.key
    The private key itself, as PEM text.

ssl.keystore.certificate.chain
    The certificate chain itself, as PEM text.

ssl.truststore.type
    The format of the trust store: `JKS`, `PKCS12` or `PEM`, as for the key store.

ssl.truststore.location
    The file with the certificates that clients' certificates are checked against.

ssl.truststore.password
    The password of a trust store that is not PEM; without it nobody looks whether a JKS store is whole.

ssl.truststore.certificates
    The trusted certificates themselves, as PEM text.

ssl.keymanager.algorithm
    The Java algorithm that picks a key.

ssl.trustmanager.algorithm
    The Java algorithm that judges certificates.

ssl.endpoint.identification.algorithm
    How the certificate of another broker is held against its host name; empty does not look.

ssl.secure.random.implementation
    The Java source of randomness for TLS.

ssl.cipher.suites
    The cipher suites that may be used; nothing leaves it to the TLS library.

ssl.engine.factory.class
    The Java class that makes TLS engines.
"""

_REFUSED: Final = {
    "ssl.protocol": "ssl.enabled.protocols alone decides which versions are spoken",
    "ssl.engine.factory.class": "its Java class cannot run here, and whom it keeps out would come in",
    "ssl.cipher.suites": "Java's names of cipher suites mean nothing to the TLS library here",
}

KEYS: Final[tuple[ConfigKey, ...]] = build(_ROWS, _DOCS, scope=Scope.BROKER, refused=_REFUSED)

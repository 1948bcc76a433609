"""Pure core: key and trust stores as the JVM writes them, JKS and PKCS12, from their bytes to PEM.

=========  ==========================================================  ====================================
format     begins with                                                 read by
=========  ==========================================================  ====================================
JKS        FE ED FE ED                                                 `jks`, on the standard library
PKCS12     30, an ASN.1 sequence                                       `pkcs12`, with cryptography installed
PEM        text, with `-----BEGIN` somewhere                           OpenSSL itself
=========  ==========================================================  ====================================

None of these opens a file: `loading` does, which is no part of the core.

.. versionadded:: 0.1
"""

from .formats import StoreFormat, open_key_store, open_trust_store
from .values import PrivateKeyEntry, StoreError

__all__ = [
    "PrivateKeyEntry",
    "StoreError",
    "StoreFormat",
    "open_key_store",
    "open_trust_store",
]

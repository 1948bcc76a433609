"""Pure core: credentials from `sasl.*` settings, mostly from the JAAS line of Kafka's Java clients.

    org.apache.kafka.common.security.plain.PlainLoginModule required username="alice" password="secret";

A line is a class name, a control flag, options `name=value` with values bare or in double quotes, and a semicolon. In
quotes, a backslash keeps the next character.

*Source:* `JaasConfig` of Kafka 4.3, `javax.security.auth.login.Configuration`; KIP-255 (unsecured tokens), KIP-342.

.. versionadded:: 0.1
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

import attrs

from odradek.kernel.errors import ConfigError

from .settings import SaslSettings

if TYPE_CHECKING:
    from collections.abc import Mapping

MECHANISMS: Final = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER")
_MODULES: Final = {
    "PlainLoginModule": "PLAIN",
    "ScramLoginModule": "SCRAM",
    "OAuthBearerLoginModule": "OAUTHBEARER",
}
_FLAGS: Final = frozenset({"required", "requisite", "sufficient", "optional"})
_TOKEN: Final = re.compile(r"""\s*(?:"((?:[^"\\]|\\.)*)"|([=;])|([^\s"=;]+))""", re.DOTALL)
_STRING_CLAIM: Final = "unsecuredLoginStringClaim_"
_NUMBER_CLAIM: Final = "unsecuredLoginNumberClaim_"
_EXTENSION: Final = "unsecuredLoginExtension_"
_LIFE: Final = "unsecuredLoginLifetimeSeconds"
_FORM: Final = (
    'write it as: org.apache.kafka.common.security.plain.PlainLoginModule required username="u" password="p";'
)


@attrs.frozen(repr=False)
class JaasEntry:
    """One login module; kept out of reprs, since it holds secrets.

    Attributes:
        module: The class's name without its package.
        options: Its options.
    """

    module: str
    options: dict[str, str]


def parse_jaas(text: str) -> JaasEntry:
    """Return what a line of JAAS configuration says.

    Raises:
        ConfigError: It is no such line. The text is not repeated: it holds a password.
    """
    tokens = _tokens(text)
    if len(tokens) < 3 or tokens[-1] != ";" or tokens[1].lower() not in _FLAGS:
        raise ConfigError("sasl.jaas.config is not one login module, a control flag, options and ';'", hint=_FORM)
    options: dict[str, str] = {}
    rest = tokens[2:-1]
    for index in range(0, len(rest), 3):
        part = rest[index : index + 3]
        if len(part) < 3 or part[1] != "=":
            raise ConfigError(f"sasl.jaas.config: after {len(options)} options comes no name=value", hint=_FORM)
        options[part[0]] = part[2]
    return JaasEntry(tokens[0].rpartition(".")[2], options)


def _tokens(text: str) -> list[str]:
    tokens = []
    position = 0
    text = text.strip()
    while position < len(text):
        found = _TOKEN.match(text, position)
        if found is None:
            raise ConfigError(f"sasl.jaas.config: a quote that is not closed, at character {position}", hint=_FORM)
        quoted, sign, bare = found.groups()
        tokens.append(re.sub(r"\\(.)", r"\1", quoted, flags=re.DOTALL) if quoted is not None else sign or bare)
        position = found.end()
    return tokens


def read_sasl(values: Mapping[str, Any]) -> SaslSettings:
    """Return the credentials that the `sasl.*` settings give.

    Raises:
        ConfigError: The mechanism is not built, or something of the credentials is missing or does not fit.
    """
    mechanism: str = values["sasl.mechanism"]
    if mechanism not in MECHANISMS:
        why = "Kerberos is not built" if mechanism == "GSSAPI" else "there is no such mechanism here"
        raise ConfigError(f"sasl.mechanism={mechanism}: {why}", hint=f"one of {', '.join(MECHANISMS)}")
    line = values["sasl.jaas.config"]
    options: Mapping[str, str] = {}
    if line is not None:
        entry = parse_jaas(line)
        if not mechanism.startswith(_MODULES.get(entry.module, "?")):
            raise ConfigError(f"sasl.jaas.config: {entry.module} does not serve sasl.mechanism={mechanism}")
        options = entry.options
    if mechanism == "OAUTHBEARER":
        return _read_token(values, options)
    username = options.get("username") or values["sasl.username"]
    password = options.get("password") or values["sasl.password"]
    if not username or password is None:
        raise ConfigError(f"sasl.mechanism={mechanism} needs username and password in sasl.jaas.config", hint=_FORM)
    is_token = options.get("tokenauth", "").lower() == "true"
    extensions = (("tokenauth", "true"),) if is_token else ()
    return SaslSettings(mechanism=mechanism, username=username, password=password, extensions=extensions)


def _read_token(values: Mapping[str, Any], options: Mapping[str, str]) -> SaslSettings:
    extensions = tuple(
        sorted((name.removeprefix(_EXTENSION), value) for name, value in options.items() if name.startswith(_EXTENSION))
    )
    common = SaslSettings(mechanism="OAUTHBEARER", extensions=extensions)
    token = values["sasl.oauthbearer.token"] or options.get("token")
    if token:
        return attrs.evolve(common, token=token)
    url = values["sasl.oauthbearer.token.endpoint.url"]
    if url:
        if not url.startswith("file:"):
            raise ConfigError(
                "sasl.oauthbearer.token.endpoint.url: only file:///path is built; fetch the token outside, and give "
                "it as sasl.oauthbearer.token or in a file"
            )
        path = url.removeprefix("file:")
        return attrs.evolve(common, token_path="/" + path.lstrip("/"))
    claims: list[tuple[str, str | float]] = []
    try:
        for name, value in sorted(options.items()):
            if name.startswith(_STRING_CLAIM):
                claims.append((name.removeprefix(_STRING_CLAIM), value))
            elif name.startswith(_NUMBER_CLAIM):
                claims.append((name.removeprefix(_NUMBER_CLAIM), float(value)))
        life_s = int(options.get(_LIFE, "3600"))
    except ValueError as error:
        raise ConfigError(f"sasl.jaas.config: {error}") from None
    if not claims:
        raise ConfigError(
            "sasl.mechanism=OAUTHBEARER needs a token",
            hint="sasl.oauthbearer.token, sasl.oauthbearer.token.endpoint.url=file:///path, or "
            'unsecuredLoginStringClaim_sub="name" in sasl.jaas.config for a developer\'s broker',
        )
    return attrs.evolve(common, claims=tuple(claims), token_life_s=life_s)

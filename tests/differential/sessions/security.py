"""What a broker answers that asks nobody who he is: ACLs, SASL, delegation tokens, users and quotas."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..conversation import Conversation

ANY_ACL = {
    "resource_type_filter": 1,
    "resource_name_filter": None,
    "pattern_type_filter": 1,
    "principal_filter": None,
    "host_filter": None,
    "operation": 1,
    "permission_type": 1,
}
ACL = {
    "resource_type": 2,
    "resource_name": "a",
    "resource_pattern_type": 3,
    "principal": "User:ann",
    "host": "*",
    "operation": 3,
    "permission_type": 3,
}
ENUMERATORS = {
    "resource_type_filter": "resource type",
    "pattern_type_filter": "pattern type",
    "operation": "operation",
    "permission_type": "permission",
}


def describe_acls(talk: Conversation) -> None:
    """DescribeAcls, also with values that no filter has."""
    talk.every("DescribeAcls", ANY_ACL, note="any")
    named = {**ANY_ACL, "resource_type_filter": 2, "resource_name_filter": "a", "principal_filter": "User:ann"}
    talk.every("DescribeAcls", {**named, "pattern_type_filter": 3}, note="of a topic and a user")
    for field, name in ENUMERATORS.items():
        for value in (0, 99, -1):
            talk.every("DescribeAcls", {**ANY_ACL, field: value}, note=f"{name} {value}")


def create_acls(talk: Conversation) -> None:
    """CreateAcls, also of what is no ACL."""

    def ask(note: str, *creations: dict[str, Any], versions: Sequence[int] = ()) -> None:
        talk.every("CreateAcls", {"creations": list(creations)}, note=note, versions=versions)

    ask("none")
    ask("one", ACL)
    ask("two", ACL, {**ACL, "permission_type": 2})
    for field in ("resource_type", "resource_pattern_type", "operation", "permission_type"):
        for value in (0, 1, 99):
            ask(f"{field} {value}", {**ACL, field: value})
    ask("of nobody", {**ACL, "principal": ""}, versions=(3,))
    ask("of a principal without a type", {**ACL, "principal": "ann"}, versions=(3,))
    ask("of no name", {**ACL, "resource_name": ""}, versions=(3,))
    ask("a good one and a bad one", ACL, {**ACL, "operation": 0}, versions=(3,))


def delete_acls(talk: Conversation) -> None:
    """DeleteAcls, also with values that no filter has."""

    def ask(note: str, *filters: dict[str, Any], versions: Sequence[int] = ()) -> None:
        talk.every("DeleteAcls", {"filters": list(filters)}, note=note, versions=versions)

    ask("none")
    ask("any", ANY_ACL)
    ask("two", ANY_ACL, {**ANY_ACL, "resource_type_filter": 2, "resource_name_filter": "a"})
    for field, name in ENUMERATORS.items():
        for value in (0, 99):
            ask(f"{name} {value}", {**ANY_ACL, field: value})
    ask("a good one and a bad one", ANY_ACL, {**ANY_ACL, "operation": 0}, versions=(3,))


def sasl_on_plaintext(talk: Conversation) -> None:
    """SaslHandshake and SaslAuthenticate where no listener wants either; the connection stays as it was."""
    for mechanism in ("PLAIN", "SCRAM-SHA-256", "NONE", ""):
        talk.every("SaslHandshake", {"mechanism": mechanism}, note=f"mechanism {mechanism or 'nothing'}")
    talk.every("SaslAuthenticate", {"auth_bytes": b"\0ann\0secret"}, note="by name and password")
    talk.every("SaslAuthenticate", {"auth_bytes": b""}, note="by nothing")
    talk.ask("Metadata", 1, {"topics": []}, note="what comes after it")


def delegation_tokens(talk: Conversation) -> None:
    """Delegation tokens where nobody is known."""

    def owners(version: int) -> dict[str, Any]:
        return {"owner_principal_type": "User", "owner_principal_name": "ann"} if version >= 3 else {}

    renewer = {"principal_type": "User", "principal_name": "ann"}
    for lifetime_ms in (-1, 0, 60_000):
        fields = {"renewers": [renewer], "max_lifetime_ms": lifetime_ms}
        note = f"for {lifetime_ms} ms"
        talk.every("CreateDelegationToken", fields, note=note)
        talk.ask("CreateDelegationToken", 3, {**fields, **owners(3)}, note=f"{note}, of another one")
    strange = {"renewers": [{"principal_type": "Group", "principal_name": "ann"}], "max_lifetime_ms": -1}
    talk.ask("CreateDelegationToken", 3, strange, note="a renewer who is no user")
    talk.every("RenewDelegationToken", {"hmac": b"secret", "renew_period_ms": 60_000}, note="an unknown one")
    talk.every("RenewDelegationToken", {"hmac": b"", "renew_period_ms": -1}, note="no hmac")
    talk.every("ExpireDelegationToken", {"hmac": b"secret", "expiry_time_period_ms": -1}, note="an unknown one")
    owner = {"principal_type": "User", "principal_name": "ann"}
    for note, asked in (("all", None), ("of nobody", []), ("of one", [owner])):
        talk.every("DescribeDelegationToken", {"owners": asked}, note=note)


def describe_client_quotas(talk: Conversation) -> None:
    """DescribeClientQuotas where none was ever set."""

    def ask(note: str, *components: tuple[str, int, str | None], is_strict: bool = False) -> None:
        asked = [{"entity_type": kind, "match_type": how, "match": match} for kind, how, match in components]
        talk.every("DescribeClientQuotas", {"components": asked, "strict": is_strict}, note=note)

    for is_strict in (False, True):
        strict = ", strict" if is_strict else ""
        ask(f"all{strict}", is_strict=is_strict)
        ask(f"of a user{strict}", ("user", 0, "ann"), is_strict=is_strict)
        ask(f"of the default user{strict}", ("user", 1, None), is_strict=is_strict)
        ask(f"of any user and client{strict}", ("user", 2, None), ("client-id", 2, None), is_strict=is_strict)
        ask(f"of addresses{strict}", ("ip", 0, "127.0.0.1"), is_strict=is_strict)
    ask("of an unknown kind", ("planet", 0, "mars"))
    ask("of no kind", ("", 0, "mars"))
    ask("of one kind twice", ("user", 0, "ann"), ("user", 0, "bob"))
    ask("of an address and a user", ("ip", 0, "127.0.0.1"), ("user", 0, "ann"))
    ask("match type 9", ("user", 9, None))
    ask("match type -1", ("user", -1, None))
    ask("exactly nothing", ("user", 0, None))
    ask("the default, named", ("user", 1, "ann"))
    ask("any, named", ("user", 2, "ann"))
    ask("of what is no address", ("ip", 0, "mars"))


def describe_scram_users(talk: Conversation) -> None:
    """DescribeUserScramCredentials where there are no users."""

    def ask(note: str, users: Sequence[str] | None) -> None:
        asked = None if users is None else [{"name": name} for name in users]
        talk.every("DescribeUserScramCredentials", {"users": asked}, note=note)

    ask("all", None)
    ask("of nobody", [])
    ask("of one", ["ann"])
    ask("of two", ["ann", "bob"])
    ask("of one twice", ["ann", "ann"])
    ask("of one twice, and another", ["ann", "bob", "ann"])
    ask("of no name", [""])


def alter_client_quotas(talk: Conversation) -> None:
    """AlterClientQuotas that sets none."""

    def ask(
        note: str,
        entity: Sequence[tuple[str, str | None]],
        *ops: tuple[str, float, bool],
        is_only_checked: bool = False,
    ) -> None:
        entry = {
            "entity": [{"entity_type": kind, "entity_name": name} for kind, name in entity],
            "ops": [{"key": key, "value": value, "remove": remove} for key, value, remove in ops],
        }
        talk.every("AlterClientQuotas", {"entries": [entry], "validate_only": is_only_checked}, note=note)

    remove = ("producer_byte_rate", 0.0, True)
    user = [("user", "ann")]
    talk.every("AlterClientQuotas", {"entries": [], "validate_only": False}, note="nothing")
    ask("one that is not there is removed", user, remove)
    ask("no operation", user)
    ask("of the default user", [("user", None)], remove)
    ask("of an address", [("ip", "127.0.0.1")], ("connection_creation_rate", 0.0, True))
    ask("of no entity", [], remove)
    ask("of an unknown kind", [("planet", "mars")], remove)
    ask("of no kind", [("", "mars")], remove)
    ask("of no name", [("user", "")], remove)
    ask("of one kind twice", [("user", "ann"), ("user", "bob")], remove)
    ask("of an address and a user", [("user", "ann"), ("ip", "127.0.0.1")], remove)
    ask("of what is no address", [("ip", "mars")], ("connection_creation_rate", 0.0, True))
    ask("of a host name", [("ip", "localhost")], ("connection_creation_rate", 0.0, True))
    ask("an unknown key", user, ("beauty", 1.0, False))
    ask("an unknown key is removed", user, ("beauty", 0.0, True))
    ask("a key of addresses for a user", user, ("connection_creation_rate", 1.0, False))
    ask("checked only", user, ("producer_byte_rate", 1024.0, False), is_only_checked=True)
    ask("below 0, checked only", user, ("producer_byte_rate", -1.0, False), is_only_checked=True)


def alter_scram_users(talk: Conversation) -> None:
    """AlterUserScramCredentials that makes no user."""

    def ask(note: str, deletions: Sequence[tuple[str, int]], upsertions: Sequence[tuple[str, int, int]] = ()) -> None:
        fields = {
            "deletions": [{"name": name, "mechanism": mechanism} for name, mechanism in deletions],
            "upsertions": [
                {"name": name, "mechanism": mechanism, "iterations": iterations, "salt": b"s", "salted_password": b"p"}
                for name, mechanism, iterations in upsertions
            ],
        }
        talk.every("AlterUserScramCredentials", fields, note=note)

    ask("nothing", [])
    ask("one that is not there is deleted", [("ann", 1)])
    ask("two that are not there", [("ann", 1), ("bob", 2)])
    ask("one twice", [("ann", 1), ("ann", 1)])
    ask("one by both mechanisms", [("ann", 1), ("ann", 2)])
    ask("no name", [("", 1)])
    ask("an unknown mechanism", [("ann", 0)])
    ask("a mechanism of the future", [("ann", 99)])
    ask("one is made of no name", [], [("", 1, 4096)])
    ask("one is made by an unknown mechanism", [], [("ann", 0, 4096)])
    ask("one is made with too few iterations", [], [("ann", 1, 4095)])
    ask("one is made with too many iterations", [], [("ann", 1, 16385)])
    ask("one is made twice", [], [("ann", 1, 4096), ("ann", 1, 4096)])
    ask("one is made and deleted", [("ann", 1)], [("ann", 1, 4096)])

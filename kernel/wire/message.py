"""Pure core: the base of every message: schema and class at once.

A class of attrs would serve, but costs 1 ms each to build; the hundreds of small structures of Kafka's APIs cost 0.02
ms this way, and their `__init__` is compiled when first called.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Final, cast, dataclass_transform

from .fields import FieldSpec
from .versions import NO_VERSIONS, Versions, parse_versions

if TYPE_CHECKING:
    from collections.abc import Callable

    from .records import Encoded

_SHOWN_ITEMS: Final = 3
_SHOWN_LENGTH: Final = 100


@dataclass_transform(kw_only_default=True)
class MessageMeta(type):
    """Turns the fields in a class body into slots with defaults."""

    def __new__(
        cls,
        name: str,
        bases: tuple[type, ...],
        namespace: dict[str, Any],
        *,
        key: int = -1,
        versions: str = "none",
        flexible: str = "none",
    ) -> MessageMeta:
        """Build the class of a message or, without `versions`, of a structure inside one.

        Args:
            name: The class's name.
            bases: Its bases: `Message`.
            namespace: Its body.
            key: The API key, or a record's own key; -1 for none.
            versions: The versions that can be encoded and decoded.
            flexible: The versions with compact lengths and tagged fields (KIP-482).
        """
        specs = []
        for field_name, value in list(namespace.items()):
            if isinstance(value, FieldSpec):
                value.name = field_name
                specs.append(value)
                del namespace[field_name]
        namespace["__slots__"] = tuple(spec.name for spec in specs)
        namespace["__fields__"] = tuple(specs)
        namespace["__api_key__"] = key
        namespace["__versions__"] = parse_versions(versions) if versions != "none" else NO_VERSIONS
        namespace["__flexible__"] = parse_versions(flexible) if flexible != "none" else NO_VERSIONS
        namespace["__flexible_from__"] = namespace["__flexible__"].lowest
        namespace["__decoders__"] = {}
        namespace["__encoders__"] = {}
        return super().__new__(cls, name, bases, namespace)

    def __init__(cls, name: str, bases: tuple[type, ...], namespace: dict[str, Any], **_: object) -> None:
        super().__init__(name, bases, namespace)


def _compile_init(cls: type[Message]) -> Callable[..., None]:
    """Return an `__init__` with a keyword and Kafka's default for each field."""
    arguments, body = [], []
    names: dict[str, Any] = {"MISSING": object()}
    for number, spec in enumerate(cls.__fields__):
        if spec.has_fresh_default():
            fresh = "[]" if spec.kind == "array" else f"D{number}()"
            names[f"D{number}"] = spec.struct
            arguments.append(f"{spec.name}=MISSING")
            body.append(f"    self.{spec.name} = {fresh} if {spec.name} is MISSING else {spec.name}")
        else:
            names[f"D{number}"] = spec.default
            arguments.append(f"{spec.name}=D{number}")
            body.append(f"    self.{spec.name} = {spec.name}")
    star = "*, " if arguments else ""
    source = f"def __init__(self, {star}{', '.join(arguments)}):\n" + ("\n".join(body) or "    pass")
    exec(compile(source, f"<{cls.__name__}.__init__>", "exec"), names)
    return cast("Callable[..., None]", names["__init__"])


class Message(metaclass=MessageMeta):
    """A request, a response, a record, or a structure inside one: slots, keyword arguments, equality by value.

    Mutable, not hashable, owned by whoever made it. Subclasses hold nothing but fields (`odradek.kernel.wire.fields`).
    """

    __fields__: ClassVar[tuple[FieldSpec, ...]]
    __api_key__: ClassVar[int]
    __versions__: ClassVar[Versions]
    __flexible__: ClassVar[Versions]
    __flexible_from__: ClassVar[int]
    __decoders__: ClassVar[dict[int, Callable[..., tuple[Any, int]]]]
    __encoders__: ClassVar[dict[int, Callable[[Any], Encoded]]]

    if not TYPE_CHECKING:

        def __init__(self, **values: object) -> None:
            type(self).__init__ = _compile_init(type(self))
            self.__init__(**values)

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        return all(getattr(self, spec.name) == getattr(other, spec.name) for spec in self.__fields__)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        values = (f"{spec.name}={getattr(self, spec.name, '?')!r}" for spec in self.__fields__)
        return f"{type(self).__name__}({', '.join(values)})"

    def short_text(self) -> str:
        """Return the same for logs: of long lists and values only the beginning."""
        values = (f"{spec.name}={_short(getattr(self, spec.name, '?'))}" for spec in self.__fields__)
        return f"{type(self).__name__}({', '.join(values)})"


def _short(value: object) -> str:
    if isinstance(value, Message):
        return value.short_text()
    if isinstance(value, list):
        more = [f"... {len(value) - _SHOWN_ITEMS} more"] if len(value) > _SHOWN_ITEMS else []
        return f"[{', '.join([*map(_short, value[:_SHOWN_ITEMS]), *more])}]"
    if isinstance(value, str | bytes | memoryview) and len(value) > _SHOWN_LENGTH:
        return f"{value[:_SHOWN_LENGTH]!r}..."
    return repr(value)

"""Pure core: writes and compiles the decoder of one message in one version.

The whole tree of structures becomes one Python function. Fields of fixed size that follow each other, the length of
the next string or array included, are read by one `struct` call; the rest is inline. Conventions inside the generated
code:

    buf, p, end   the buffer, the position, the length      m0, m1 ..   the object of each nesting depth
    budget        elements that may still come              n, q        a length, the end of what it measures

The same can be written as a generator that yields after each item of an array, so that a request with very many of them
is decoded in slices (`turnstile.py`); it copies nothing as a whole.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any, cast

from . import varint
from .errors import DecodeError
from .fields import FIXED_FORMATS, FieldSpec
from .message import Message

if TYPE_CHECKING:
    from collections.abc import Callable

_SHARED: dict[str, Any] = {
    "new": object.__new__,
    "StructError": struct.error,
    "DecodeError": DecodeError,
    "varint": varint.read_unsigned_varint,
    "string_length": varint.read_string_length,
    "skip_tags": varint.skip_tags,
    "skip_tags_in_steps": varint.skip_tags_in_steps,
    "fail_length": varint.fail_length,
    "fail_budget": varint.fail_budget,
    "fail_tag": varint.fail_tag,
    "IDS": varint.IDS,
}


def fields_in(cls: type[Message], version: int) -> list[FieldSpec]:
    """Return the untagged fields that a version has."""
    return [spec for spec in cls.__fields__ if version in spec.versions and spec.tag < 0]


def tags_in(cls: type[Message], version: int) -> list[FieldSpec]:
    """Return the tagged fields that a version has, by tag."""
    return sorted((s for s in cls.__fields__ if version in s.versions and s.tag >= 0), key=lambda spec: spec.tag)


def holds_records(cls: type[Message], version: int) -> bool:
    """Return whether a records field stands anywhere in the tree."""
    return any(
        spec.kind == "records" or (spec.struct is not None and holds_records(spec.struct, version))
        for spec in cls.__fields__
        if version in spec.versions
    )


def size_min(cls: type[Message], version: int, flexible: bool) -> int:
    """Return the fewest bytes that a structure takes."""
    total = 1 if flexible else 0
    for spec in fields_in(cls, version):
        total += _field_size_min(spec, version, flexible)
    return total


def _field_size_min(spec: FieldSpec, version: int, flexible: bool) -> int:
    if spec.kind in FIXED_FORMATS:
        return struct.calcsize(">" + FIXED_FORMATS[spec.kind])
    if spec.kind == "struct":
        if version in spec.nullable:
            return 1
        return size_min(cast("type[Message]", spec.struct), version, flexible)
    if flexible:
        return 1
    return 2 if spec.kind == "string" else 4


class _Decoder:
    """Collects the lines of one decoder."""

    def __init__(self, version: int, flexible: bool, *, views: bool, in_steps: bool) -> None:
        self.version = version
        self.flexible = flexible
        self.views = views
        self.in_steps = in_steps
        self.lines: list[str] = []
        self.names = dict(_SHARED)
        self.formats: list[str] = []
        self.targets: list[str] = []
        self.after: list[str] = []
        self.indent = 2
        self.depth = 0

    def line(self, text: str) -> None:
        self.lines.append("    " * self.indent + text)

    def name(self, prefix: str, value: object) -> str:
        """Return the name under which the generated code finds `value`."""
        for name, known in self.names.items():
            if known is value and name.startswith(prefix):
                return name
        name = f"{prefix}{len(self.names)}"
        self.names[name] = value
        return name

    def constant(self, value: object) -> str:
        """Return the text of a default."""
        return repr(value) if value is None or isinstance(value, bool | int | float | str) else self.name("D", value)

    def step(self) -> None:
        """Let others come, if this is a decoder that may take long."""
        if self.in_steps:
            self.line("yield")

    def fixed(self, code: str, target: str) -> None:
        """Read one thing of fixed size, together with its neighbours."""
        self.formats.append(code)
        self.targets.append(target)

    def flush(self) -> None:
        """Write the `struct` call for the things of fixed size that were collected."""
        if self.formats:
            packer = struct.Struct(">" + "".join(self.formats))
            name = "read_" + "".join(self.formats).replace("?", "T")
            self.names[name] = packer.unpack_from
            if self.formats == ["B"]:
                self.line(f"{self.targets[0]} = buf[p]")
            else:
                comma = "," if len(self.targets) == 1 else ""
                self.line(f"{', '.join(self.targets)}{comma} = {name}(buf, p)")
            self.line(f"p += {packer.size}")
        for text in self.after:
            self.line(text)
        self.formats, self.targets, self.after = [], [], []

    def structure(self, cls: type[Message], target: str) -> None:
        """Read one structure into the variable `target`, tagged fields included."""
        self.line(f"{target} = new({self.name('C', cls)})")
        for spec in cls.__fields__:
            if self.version not in spec.versions or spec.tag >= 0:
                self.absent(spec, f"{target}.{spec.name}")
        for spec in fields_in(cls, self.version):
            self.field(spec, f"{target}.{spec.name}")
        if self.flexible:
            self.tags(tags_in(cls, self.version), target)
        self.flush()

    def absent(self, spec: FieldSpec, target: str) -> None:
        """Give a field that may not be in the bytes its default."""
        if not spec.has_fresh_default():
            self.line(f"{target} = {self.constant(spec.default)}")
        elif spec.kind == "array":
            self.line(f"{target} = []")
        else:
            self.line(f"{target} = {self.name('C', spec.struct)}()")

    def field(self, spec: FieldSpec, target: str) -> None:
        """Read one field."""
        if spec.kind == "uuid":
            self.fixed("16s", "u" + str(len(self.after)))
            self.after.append(f"{target} = IDS[u{len(self.after)}]")
        elif spec.kind in FIXED_FORMATS:
            self.fixed(FIXED_FORMATS[spec.kind], target)
        elif spec.kind == "struct":
            self.nested(spec, target)
        else:
            self.length(spec)
            self.optional(spec, target)

    def nested(self, spec: FieldSpec, target: str) -> None:
        """Read a structure in the bytes of its owner; where it may be null, a byte goes before it: -1, in a tag 0."""
        variable = self.deeper()
        cls = cast("type[Message]", spec.struct)
        if self.version in spec.nullable:
            self.fixed("b", "n")
            self.flush()
            self.line("if n < 0:" if spec.tag < 0 else "if n < 1:")
            self.line(f"    {target} = None")
            self.line("else:")
            self.indent += 1
            self.structure(cls, variable)
            self.line(f"{target} = {variable}")
            self.indent -= 1
        else:
            self.flush()
            self.structure(cls, variable)
            self.line(f"{target} = {variable}")

    def deeper(self) -> str:
        """Return a variable that no enclosing structure uses."""
        self.depth += 1
        return f"m{self.depth}"

    def length(self, spec: FieldSpec) -> None:
        """Read a length into `n`: the number itself, or -1 (any negative one) for null."""
        if not self.flexible:
            self.fixed("h" if spec.kind == "string" else "i", "n")
            self.flush()
            return
        self.fixed("B", "n")
        self.flush()
        reader = "string_length" if spec.kind == "string" else "varint"
        self.line("if n > 127:")
        self.line(f"    n, p = {reader}(buf, p - 1)")
        self.line("n -= 1")

    def optional(self, spec: FieldSpec, target: str) -> None:
        """Read what a length measures, or null."""
        if self.version in spec.nullable:
            self.line("if n < 0:")
            self.line(f"    {target} = None")
            self.line("else:")
            self.indent += 1
            self.measured(spec, target)
            self.indent -= 1
        else:
            self.measured(spec, target)

    def measured(self, spec: FieldSpec, target: str) -> None:
        """Read what is measured by `n`, which may still be negative where null is not allowed."""
        if spec.kind == "array":
            self.array(spec, target)
            return
        self.span("n")
        if spec.kind == "string":
            self.line(f"{target} = {self.text()}")
        else:
            copy = spec.kind == "bytes" and self.views
            self.line(f"{target} = {'bytes(buf[p:q])' if copy else 'buf[p:q]'}")
        self.line("p = q")

    def text(self) -> str:
        # What is not UTF-8 becomes U+FFFD, as in Java: a name that Kafka takes must not close the connection here.
        return 'str(buf[p:q], "utf-8", "replace")' if self.views else 'buf[p:q].decode("utf-8", "replace")'

    def span(self, size: str) -> None:
        """Put the end of the next `size` bytes into `q`, if they are there."""
        self.line(f"q = p + {size}")
        self.line("if not p <= q <= end:")
        self.line("    fail_length(n)")

    def array(self, spec: FieldSpec, target: str) -> None:
        """Read `n` items."""
        if spec.item in FIXED_FORMATS:
            code = FIXED_FORMATS[spec.item]
            size = struct.calcsize(">" + code)
            self.span("n" if size == 1 else f"n * {size}")
            self.spend("n")
            if spec.item == "uuid" and self.in_steps:
                self.line(f"{target} = ids = []")
                self.line("for i in range(p, q, 16):")
                self.line("    ids.append(IDS[bytes(buf[i:i + 16])])")
                self.line("    yield")
            elif spec.item == "uuid":
                self.line(f"{target} = [IDS[bytes(buf[i:i + 16])] for i in range(p, q, 16)]")
            else:
                self.names[f"numbers_{code}"] = varint.unpackers(code)
                self.line(f"{target} = [*numbers_{code}[n](buf, p)]")
            self.line("p = q")
            return
        variable = self.deeper()
        if spec.item == "struct":
            least = size_min(cast("type[Message]", spec.struct), self.version, self.flexible)
        else:
            least = 1 if self.flexible else 2
        self.line(f"if n < 0 or n * {least} > end - p:")
        self.line("    fail_length(n)")
        self.spend("n")
        self.line(f"{target} = list{variable} = []")
        self.line("for _ in range(n):")
        self.indent += 1
        if spec.item == "struct":
            self.structure(cast("type[Message]", spec.struct), variable)
        else:
            item = FieldSpec("string", "0+")
            self.length(item)
            self.measured(item, variable)
        self.line(f"list{variable}.append({variable})")
        self.step()
        self.indent -= 1

    def spend(self, count: str) -> None:
        """Take so many elements off the budget."""
        self.line(f"budget -= {count}")
        self.line("if budget < 0:")
        self.line("    fail_budget()")

    def tags(self, known: list[FieldSpec], target: str) -> None:
        """Read the tagged fields at the end of a structure: known ones by their type, others by their size."""
        self.fixed("B", "n")
        self.flush()
        self.line("if n:")
        self.indent += 1
        if not known:
            skip = "(yield from skip_tags_in_steps(" if self.in_steps else "(skip_tags("
            self.line(f"p, budget = {skip}buf, p - 1, end, budget))")
            self.indent -= 1
            return
        depth = self.deeper()[1:]
        self.line("n, p = varint(buf, p - 1)")
        self.spend("n")
        self.line("for _ in range(n):")
        self.indent += 1
        self.line(f"tag{depth}, p = varint(buf, p)")
        self.line("n, p = varint(buf, p)")
        self.line(f"stop{depth} = p + n")
        self.line(f"if stop{depth} > end:")
        self.line("    fail_length(n)")
        for position, spec in enumerate(known):
            self.line(f"{'el' if position else ''}if tag{depth} == {spec.tag}:")
            self.indent += 1
            self.field(spec, f"{target}.{spec.name}")
            self.flush()
            self.indent -= 1
        self.line("else:")
        self.line(f"    p = stop{depth}")
        self.line(f"if p != stop{depth}:")
        self.line(f"    fail_tag(tag{depth})")
        self.step()
        self.indent -= 2


def decoder_source(cls: type[Message], version: int, *, in_steps: bool = False) -> tuple[str, dict[str, Any]]:
    """Return the source of a decoder, or of one that is a generator, and the names that it needs."""
    views = in_steps or holds_records(cls, version)
    writer = _Decoder(version, version >= cls.__flexible_from__, views=views, in_steps=in_steps)
    writer.structure(cls, "m0")
    lines = [
        "def decode(buf, p, budget):",
        "    try:",
        *([] if views else ["        buf = bytes(buf)"]),
        "        end = len(buf)",
        *(["        yield"] if in_steps else []),
        *writer.lines,
        "    except (IndexError, StructError):",
        f'        raise DecodeError("{cls.__name__} v{version}: the bytes end too early") from None',
        "    except DecodeError as error:",
        f'        raise DecodeError(f"{cls.__name__} v{version}: {{error}}") from None',
        "    return m0, p",
    ]
    return "\n".join(lines), writer.names


def compile_decoder(cls: type[Message], version: int, *, in_steps: bool = False) -> Callable[..., Any]:
    """Return what decodes `cls` in `version`: `(buffer, position, elements_max) -> (message, position)`.

    In steps it is a generator that returns so, and takes a `memoryview`.
    """
    source, names = decoder_source(cls, version, in_steps=in_steps)
    exec(compile(source, f"<decode {cls.__name__} v{version}>", "exec"), names)
    return cast("Callable[..., Any]", names["decode"])

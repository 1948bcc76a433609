"""Pure core: writes and compiles the encoder of one message in one version.

The whole tree of structures becomes one Python function. Fields of fixed size that follow each other, the length of
the next string or array included, are written by one `struct` call; a structure without tagged fields ends in a pad
byte of that call. Conventions inside the generated code:

    small, add    pieces to be joined, and its append       m0, m1 ..   the object of each nesting depth
    parts         finished parts                            n, b        a length, the bytes that it measures

As with decoders, the same can be written as a generator that yields after each item of an array. Such a one also takes
items of the message's own arrays that are encoded already (`KeptItem`).
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any, Final, cast

from . import varint
from .compile_decoder import fields_in, holds_records, tags_in
from .errors import EncodeError
from .fields import FIXED_FORMATS, FieldSpec
from .message import Message
from .records import Encoded, KeptItem, finish, place_records, records_size

if TYPE_CHECKING:
    from collections.abc import Callable

_SHARED: dict[str, Any] = {
    "StructError": struct.error,
    "EncodeError": EncodeError,
    "Encoded": Encoded,
    "KeptItem": KeptItem,
    "tuple_new": tuple.__new__,
    "varint": varint.unsigned_varint,
    "short": varint.UNSIGNED,
    "finish": finish,
    "place_records": place_records,
    "records_size": records_size,
    "join": b"".join,
}


PIECES_MAX: Final = 4096
"""How many pieces an encoder that works in steps joins at a time."""


class _Encoder:
    """Collects the lines of one encoder."""

    def __init__(self, version: int, flexible: bool, *, in_steps: bool) -> None:
        self.version = version
        self.flexible = flexible
        self.in_steps = in_steps
        self.lines: list[str] = []
        self.names = dict(_SHARED)
        self.formats: list[str] = []
        self.values: list[str] = []
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

    def deeper(self) -> str:
        """Return a variable that no enclosing structure uses."""
        self.depth += 1
        return f"m{self.depth}"

    def packed(self, formats: list[str], values: list[str]) -> str:
        """Return the expression that packs some things of fixed size."""
        if not values:
            return self.name("Z", bytes(len(formats)))
        name = "write_" + "".join(formats).replace("?", "T")
        self.names[name] = struct.Struct(">" + "".join(formats)).pack
        return f"{name}({', '.join(values)})"

    def fixed(self, code: str, value: str) -> None:
        """Write one thing of fixed size, together with its neighbours."""
        self.formats.append(code)
        if value:
            self.values.append(value)

    def flush(self) -> None:
        """Write the `struct` call for the things of fixed size that were collected."""
        if self.formats:
            self.line(f"add({self.packed(self.formats, self.values)})")
        self.formats, self.values = [], []

    def structure(self, cls: type[Message], source: str) -> None:
        """Write one structure, tagged fields included."""
        before = len(self.lines)
        for spec in cls.__fields__:
            if self.version not in spec.versions and not spec.ignorable:
                self.refuse(spec, f"{source}.{spec.name}")
        for spec in fields_in(cls, self.version):
            self.field(spec, f"{source}.{spec.name}")
        if self.flexible:
            self.tags(tags_in(cls, self.version), source)
        self.flush()
        if len(self.lines) == before:
            self.line("pass")

    def differs(self, spec: FieldSpec, value: str) -> str:
        """Return the condition under which a field does not hold its default."""
        if spec.kind == "array":
            if spec.default is None:
                return f"{value} is not None"
            return f"{value} or {value} is None" if spec.nullable.highest >= 0 else value
        if spec.kind == "struct":
            fresh = f"{self.name('C', spec.struct)}()"
            if spec.tag >= 0 and self.version in spec.nullable:
                # Kafka's default of such a field is a fresh structure, whatever the schema says: null is written.
                return f"{value} is None or {value} != {fresh}"
            return f"{value} is not None and {value} != {fresh}" if spec.default is None else f"{value} != {fresh}"
        if spec.default is None:
            return f"{value} is not None"
        return f"{value} != {self.constant(spec.default)}"

    def refuse(self, spec: FieldSpec, value: str) -> None:
        """Raise if a field is set that this version cannot carry."""
        self.line(f"if {self.differs(spec, value)}:")
        self.line(f'    raise EncodeError("{spec.name} is set, but only versions {spec.versions} have it")')

    def field(self, spec: FieldSpec, value: str) -> None:
        """Write one field."""
        if spec.kind == "uuid":
            self.fixed("16s", f"{value}.bytes")
        elif spec.kind in FIXED_FORMATS:
            self.fixed(FIXED_FORMATS[spec.kind], value)
        elif spec.kind == "struct":
            self.nested(spec, value)
        elif spec.kind == "array":
            self.array(spec, value)
        elif spec.kind == "records":
            self.records(spec, value)
        else:
            self.measured(spec, value)

    def nested(self, spec: FieldSpec, value: str) -> None:
        """Write a structure in the bytes of its owner; where it may be null, a byte goes before it: -1, in a tag 0."""
        variable = self.deeper()
        cls = cast("type[Message]", spec.struct)
        self.flush()
        self.line(f"{variable} = {value}")
        if self.version in spec.nullable:
            self.line(f"if {variable} is None:")
            self.line(f"    add({self.name('Z', bytes((255 if spec.tag < 0 else 0,)))})")
            self.line("else:")
            self.indent += 1
            self.fixed("b", "1")
            self.structure(cls, variable)
            self.indent -= 1
        else:
            self.structure(cls, variable)

    def length(self, spec: FieldSpec, size: str, source: str) -> None:
        """Put the length that goes before something into `n`, which is null's if `source` is None, and write it.

        Args:
            spec: The field, or an array's item.
            size: The expression of the size; only used if the value is not null.
            source: The variable that holds the value.
        """
        plus = " + 1" if self.flexible else ""
        if self.version in spec.nullable:
            self.line(f"n = {0 if self.flexible else -1} if {source} is None else {size}{plus}")
        else:
            self.line(f"n = {size}{plus}")
        if not self.flexible:
            self.fixed("h" if spec.kind == "string" else "i", "n")
            self.flush()
            return
        if spec.kind == "string":
            self.line(f"if n > {varint.STRING_BYTES_MAX + 1}:")
            self.line(f'    raise EncodeError(f"a string has {{n - 1}} bytes, above {varint.STRING_BYTES_MAX}")')
        self.line("if n < 128:")
        both = self.packed([*self.formats, "B"], [*self.values, "n"]) if self.formats else "short[n]"
        self.line(f"    add({both})")
        self.line("else:")
        self.indent += 1
        self.flush()
        self.line("add(varint(n))")
        self.indent -= 1

    def measured(self, spec: FieldSpec, value: str) -> None:
        """Write text or bytes behind their length."""
        encode = ".encode()" if spec.kind == "string" else ""
        if self.version in spec.nullable:
            self.line(f"b = {value}")
            if encode:
                self.line("if b is not None:")
                self.line("    b = b.encode()")
        else:
            self.line(f"b = {value}{encode}")
        self.length(spec, "len(b)", "b")
        self.line("if b:")
        self.line("    add(b)")

    def records(self, spec: FieldSpec, value: str) -> None:
        """Write records behind their length, as parts of their own unless they are small."""
        self.line(f"b = {value}")
        if self.version not in spec.nullable:
            self.line("if b is None:")
            self.line(f'    raise EncodeError("{spec.name} may not be null")')
        self.line("r = 0 if b is None else records_size(b)")
        self.length(spec, "r", "b")
        self.line("if r:")
        self.line("    place_records(b, r, small, parts)")

    def array(self, spec: FieldSpec, value: str) -> None:
        """Write an array behind its length."""
        variable = self.deeper()
        self.line(f"list{variable} = {value}")
        self.length(spec, f"len(list{variable})", f"list{variable}")
        self.line(f"if list{variable}:")
        self.indent += 1
        if spec.item == "uuid":
            self.line(f"add(join([i.bytes for i in list{variable}]))")
        elif spec.item in FIXED_FORMATS:
            code = FIXED_FORMATS[spec.item]
            self.names[f"numbers_{code}"] = varint.packers(code)
            self.line(f"add(numbers_{code}[len(list{variable})](*list{variable}))")
        else:
            self.line(f"for {variable} in list{variable}:")
            self.indent += 1
            if spec.item == "struct" and self.in_steps and value.startswith("m0."):
                self.kept_item(variable)
            if spec.item == "struct":
                self.structure(cast("type[Message]", spec.struct), variable)
            else:
                self.measured(FieldSpec("string", "0+"), variable)
            if self.in_steps:
                self.step()
            self.indent -= 1
        self.indent -= 1

    def kept_item(self, variable: str) -> None:
        """Write an item that is encoded already."""
        self.line(f"if {variable}.__class__ is KeptItem:")
        self.line(f"    add({variable}.data)")
        self.line("    yield")
        self.line("    continue")

    def step(self) -> None:
        """Let others come, and join what was written once it is much."""
        self.line(f"if len(small) > {PIECES_MAX}:")
        self.line("    parts.append(join(small))")
        self.line("    small.clear()")
        self.line("yield")

    def tags(self, known: list[FieldSpec], source: str) -> None:
        """Write the tagged fields at the end of a structure: those that do not hold their default."""
        if not known:
            self.fixed("x", "")
            return
        number = self.deeper()[1:]
        conditions = [self.differs(spec, f"{source}.{spec.name}") for spec in known]
        self.line(f"if {' or '.join(f'({condition})' for condition in conditions)}:")
        self.indent += 1
        formats, values = list(self.formats), list(self.values)
        self.flush()
        self.line(f"tags{number} = []")
        self.line(f"outer{number} = add")
        for spec, condition in zip(known, conditions, strict=True):
            self.line(f"if {condition}:")
            self.indent += 1
            self.line(f"tag{number} = []")
            self.line(f"add = tag{number}.append")
            self.field(spec, f"{source}.{spec.name}")
            self.flush()
            self.line(f"b = join(tag{number})")
            self.line(f"tags{number} += ({self.name('T', varint.unsigned_varint(spec.tag))}, varint(len(b)), b)")
            self.indent -= 1
        self.line(f"add = outer{number}")
        self.line(f"add(varint(len(tags{number}) // 3))")
        self.line(f"add(join(tags{number}))")
        self.indent -= 1
        self.line("else:")
        self.indent += 1
        self.formats, self.values = [*formats, "x"], values
        self.flush()
        self.indent -= 1


def encoder_source(
    cls: type[Message], version: int, *, in_steps: bool = False, owner: type[Message] | None = None
) -> tuple[str, dict[str, Any]]:
    """Return the source of an encoder, or of one that is a generator, and the names that it needs.

    Args:
        cls: What is encoded.
        version: In which version.
        in_steps: Whether it is a generator.
        owner: The message whose structure `cls` is; None where it is a message itself.
    """
    writer = _Encoder(version, version >= (owner or cls).__flexible_from__, in_steps=in_steps)
    writer.structure(cls, "m0")
    if in_steps or holds_records(cls, version):
        start = ["        parts = []"]
        end = ["        return finish(small, parts)"]
    else:
        start = []
        end = ["        b = join(small)", "        return tuple_new(Encoded, ([b], len(b)))"]
    lines = [
        "def encode(m0):",
        "    try:",
        "        small = []",
        "        add = small.append",
        *start,
        *(["        yield"] if in_steps else []),
        *writer.lines,
        *end,
        "    except (AttributeError, TypeError, UnicodeEncodeError, StructError) as error:",
        f'        raise EncodeError(f"{cls.__name__} v{version}: {{error}}") from error',
    ]
    return "\n".join(lines), writer.names


def compile_encoder(
    cls: type[Message], version: int, *, in_steps: bool = False, owner: type[Message] | None = None
) -> Callable[[Any], Any]:
    """Return the function that encodes `cls` in `version` as `Encoded`; in steps, the generator that returns it."""
    source, names = encoder_source(cls, version, in_steps=in_steps, owner=owner)
    exec(compile(source, f"<encode {cls.__name__} v{version}>", "exec"), names)
    return cast("Callable[[Any], Any]", names["encode"])

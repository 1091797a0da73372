"""Texts for values that gdb has none for: structures, what is behind a pointer to one, and Rust's enums.

Nothing is read that could be large or is not initialized yet: of a collection of Rust the toolchain's own short text, of
what is behind a pointer in a structure the address. What cannot be read has no text, as before.
"""

import gdb
import gdb.printing

MAX_DEPTH = 3
MAX_PARTS = 20
# Characters of a value, and of one in it.
MAX_TEXT = 400
MAX_PART = 200

STRUCTURES = (gdb.TYPE_CODE_STRUCT, gdb.TYPE_CODE_UNION)
REFERENCES = (gdb.TYPE_CODE_REF, gdb.TYPE_CODE_RVALUE_REF)
POINTERS = (gdb.TYPE_CODE_PTR, *REFERENCES)


def cut(text, limit=MAX_PART):
    return text if len(text) <= limit else text[:limit] + "..."


def last_name(path):
    """`a::Option<b::C>::Some` is `Some`."""
    depth = start = 0
    for at, letter in enumerate(path):
        if letter == "<":
            depth += 1
        elif letter == ">":
            depth -= 1
        elif letter == ":" and depth == 0:
            start = at + 1
    return path[start:].split("<")[0]


def toolchains(value):
    """What Rust's toolchain has for a value."""
    lists = [file.pretty_printers for file in gdb.objfiles()] + [gdb.current_progspace().pretty_printers]
    for lookup in [lookup for printers in lists for lookup in printers]:
        printer = getattr(lookup, "enabled", True) and lookup(value)
        if printer:
            return printer
    return None


def words(printer):
    told = printer.to_string() if hasattr(printer, "to_string") else None
    if isinstance(told, gdb.LazyString):
        start, length = told.value(), told.length
        if start.type.code in POINTERS:
            start = start.dereference()
        count = min(length if length >= 0 else MAX_PART, MAX_PART)
        letters = start.address.cast(gdb.lookup_type("u8").pointer())
        text = letters.string(encoding="utf-8", errors="replace", length=count) if count else ""
        return '"%s"%s' % (text, "..." if length > count else "")
    if isinstance(told, gdb.Value):
        return cut(told.format_string(max_elements=MAX_PARTS, max_depth=1))
    return "{...}" if told is None else cut(str(told))


def fields_of(value):
    return [field for field in value.type.strip_typedefs().fields() if field.name and not field.artificial]


def of_parts(name, value, depth):
    told, length = [], 0
    fields = fields_of(value)
    for field in fields[:MAX_PARTS]:
        part = of_rust(value[field], depth + 1)
        length += len(part)
        is_place = field.name == "__%d" % len(told)
        told.append((is_place, part if is_place else "%s: %s" % (field.name, part)))
        if length > MAX_TEXT:
            break
    if not told:
        return name
    all_parts = [part for _, part in told] + (["..."] if len(told) < len(fields) else [])
    form = "%s(%s)" if all(is_place for is_place, _ in told) else "%s {%s}"
    return cut(form % (name, ", ".join(all_parts)), MAX_PART if depth else MAX_TEXT)


def of_rust(value, depth):
    """As Rust's `{:?}` writes it."""
    kind = value.type.strip_typedefs()
    if kind.code in POINTERS:
        return hex(int(value))
    if kind.code == gdb.TYPE_CODE_ENUM:
        return last_name(str(value))
    if kind.code not in STRUCTURES:
        return cut(value.format_string(max_elements=MAX_PARTS, max_depth=1))
    printer = toolchains(value)
    if printer is not None:
        return words(printer)
    path, fields = str(kind), fields_of(value)
    if len(fields) == 1 and str(fields[0].type) == "%s::%s" % (path, fields[0].name):
        # The variant that it is.
        return of_parts(fields[0].name, value[fields[0]], depth)
    if depth >= MAX_DEPTH:
        return "{...}"
    return of_parts("" if path.startswith("(") else last_name(path), value, depth)


def of_structure(value):
    if gdb.current_language() == "rust":
        return of_rust(value, 0)
    return cut(value.format_string(max_elements=MAX_PARTS, max_depth=2), MAX_TEXT)


def of_pointer(value):
    text = of_structure(value.referenced_value())
    if value.type.strip_typedefs().code in REFERENCES:
        return text
    return "&" + text if gdb.current_language() == "rust" else "%s %s" % (hex(int(value)), text)


class Told:
    """A text, and the parts that gdb itself has."""

    # In a text no pointer is followed: lists can be long, or have no end.
    is_busy = False

    def __init__(self, text, value, plain):
        self.text, self.value, self.plain = text, value, plain
        self.children = plain.children
        for name in ("num_children", "child"):
            if hasattr(plain, name):
                setattr(self, name, getattr(plain, name))

    def to_string(self):
        Told.is_busy = True
        try:
            return self.text(self.value)
        except Exception:
            return self.plain.to_string()
        finally:
            Told.is_busy = False


def lookup(value):
    if Told.is_busy:
        return None
    kind = value.type.strip_typedefs()
    if kind.code in STRUCTURES:
        return Told(of_structure, value, gdb.printing.NoOpStructPrinter(kind, value))
    if kind.code in POINTERS and kind.target().strip_typedefs().code in STRUCTURES:
        if kind.code in REFERENCES or int(value) != 0:
            return Told(of_pointer, value, gdb.printing.NoOpPointerReferencePrinter(value))
    return None


if hasattr(gdb.printing, "NoOpStructPrinter"):
    gdb.pretty_printers.append(lookup)

"""Texts for values that gdb has none for: structures, what is behind a pointer to one, Rust's enums, and the members of
collections, of which libraries' own texts tell the number.

What could be large or is not initialized yet is read to its first members only; gdb itself counts all members of each
variable at each stop, and for ever where a vector is not made yet. Of what is behind a pointer in a structure the address
is told.
"""

import itertools
import re

import gdb
import gdb.printing

MAX_DEPTH = 3
MAX_PARTS = 20
# Characters of a value, and of one in it.
MAX_TEXT = 400
MAX_PART = 200
# Members that can be paged through.
MAX_MEMBERS = 1_000_000
# Members that are counted where the text tells no number.
MAX_COUNTED = 2_000
COUNT = re.compile(r"of length (\d+)|with (\d+) element|size=(\d+)")

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


def places():
    return [*gdb.objfiles(), gdb.current_progspace()]


def librarys(value):
    """What a library, or Rust's toolchain, has for a value."""
    for other in [other for place in places() for other in place.pretty_printers if other is not lookup]:
        printer = getattr(other, "enabled", True) and other(value)
        if printer:
            return printer
    return None


def problem_of(value):
    """Why a value cannot be read; what is not small is not tried."""
    if not isinstance(value, gdb.Value) or value.type.strip_typedefs().code in (*STRUCTURES, gdb.TYPE_CODE_ARRAY):
        return None
    try:
        value.fetch_lazy()
    except gdb.error as error:
        return error
    return None


def hint_of(printer):
    return printer.display_hint() if hasattr(printer, "display_hint") else None


def members_of(printer):
    """Names and values; of a map the keys are the names."""
    children = iter(printer.children())
    if hint_of(printer) != "map":
        return children
    return (("[%s]" % of_key(key), value) for (_, key), (_, value) in zip(children, children))


def of_key(key):
    return cut(key.format_string(max_elements=MAX_PARTS, max_depth=1) if isinstance(key, gdb.Value) else str(key))


def words(printer, depth):
    """A text, and of a collection its first members."""
    text = own_words(printer)
    hint = hint_of(printer)
    if hint is None and hasattr(printer, "children"):
        # What counts its owners, or guards what it holds.
        for name, value in itertools.islice(printer.children(), 1):
            held = of_rust(value, depth + 1) if name == "value" and isinstance(value, gdb.Value) else None
            if held is not None:
                return cut("%s %s" % (text, held), MAX_PART if depth else MAX_TEXT)
    if hint not in ("array", "map") or not hasattr(printer, "children") or text.startswith('"'):
        return text
    told = []
    for name, value in itertools.islice(members_of(printer), MAX_PARTS + 1):
        member = of_rust(value, depth + 2) if isinstance(value, gdb.Value) else str(value)
        told.append(member if hint == "array" else "%s: %s" % (name[1:-1], member))
    if len(told) > MAX_PARTS:
        told[MAX_PARTS] = "..."
    told = ("[%s]" if hint == "array" else "{%s}") % ", ".join(told)
    return cut("%s %s" % (text, told), MAX_PART if depth else MAX_TEXT)


def own_words(printer):
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
        return cut(value.format_string(max_elements=MAX_PARTS, max_depth=2))
    printer = librarys(value)
    if printer is not None:
        return words(printer, depth) if depth < MAX_DEPTH else own_words(printer)
    path, fields = str(kind), fields_of(value)
    if [field.name for field in fields] == ["data_ptr", "length"]:
        return of_slice(value, depth)
    if len(fields) == 1 and str(fields[0].type) == "%s::%s" % (path, fields[0].name):
        # The variant that it is.
        return of_parts(fields[0].name, value[fields[0]], depth)
    if depth >= MAX_DEPTH:
        return "{...}"
    return of_parts("" if path.startswith("(") else last_name(path), value, depth)


def of_slice(value, depth):
    """A boxed one, which the toolchain has no text for."""
    start, length = value["data_ptr"], int(value["length"])
    count = min(length, MAX_PARTS)
    if re.search(r"\bstr\b", str(value.type)):
        letters = min(length, MAX_PART)
        text = start.cast(gdb.lookup_type("u8").pointer()).string(encoding="utf-8", errors="replace", length=letters)
        return '"%s"%s' % (text, "..." if length > letters else "")
    told = [of_rust((start + place).dereference(), depth + 2) for place in range(count)]
    return "[%s]" % ", ".join(told + (["..."] if length > count else []))


def of_structure(value):
    if gdb.current_language() == "rust":
        return of_rust(value, 0)
    return cut(value.format_string(max_elements=MAX_PARTS, max_depth=2), MAX_TEXT)


def of_pointer(value):
    text = of_structure(value.referenced_value())
    if value.type.strip_typedefs().code in REFERENCES:
        return text
    return "&" + text if gdb.current_language() == "rust" else "%s %s" % (hex(int(value)), text)


def text_of(printer):
    """What one variable cannot tell must not cost gdb's answer about all others."""
    try:
        return str(printer.to_string())
    except Exception as error:
        return "<error: %s>" % error


class Safe:
    """A library's text for one value, as that of a string."""

    def __init__(self, plain):
        self.plain = plain

    def to_string(self):
        return text_of(self.plain)


class Unreadable:
    def __init__(self, error):
        self.error = error

    def to_string(self):
        return "<error: %s>" % self.error


class Told(gdb.ValuePrinter if hasattr(gdb, "ValuePrinter") else object):
    """A text, and the parts that gdb itself has."""

    # In a text no pointer is followed: lists can be long, or have no end.
    is_busy = False

    def __init__(self, text, value, plain):
        self.text, self.value, self.plain = text, value, plain
        self.children = plain.children
        for name in ("num_children", "child", "display_hint"):
            if hasattr(plain, name):
                setattr(self, name, getattr(plain, name))

    def to_string(self):
        Told.is_busy = True
        try:
            return self.text(self.value) or text_of(self.plain)
        except Exception:
            return text_of(self.plain)
        finally:
            Told.is_busy = False


class Collection(Told):
    """Its members come one by one, as they are asked for."""

    def __init__(self, value, plain):
        super().__init__(of_structure, value, plain)
        self.members, self.came = None, []
        self.children = self.all_members
        self.num_children, self.child = self.count, self.member
        # Of a map the keys are names here.
        self.display_hint = lambda: "array" if hint_of(plain) == "array" else None

    def count(self):
        """Who is not made yet may say any number."""
        if all(problem_of(value) is not None for _, value in self.fetched(1)):
            return 0
        told = COUNT.search(text_of(self.plain))
        return min(int(told[told.lastindex]), MAX_MEMBERS) if told else len(self.fetched(MAX_COUNTED))

    def fetched(self, count):
        try:
            if self.members is None:
                self.members = members_of(self.plain)
            self.came += itertools.islice(self.members, max(0, count - len(self.came)))
        except Exception:
            # Nothing is there.
            self.members = iter(())
        return self.came[:count]

    def member(self, place):
        members = self.fetched(place + 1)
        return members[place] if place < len(members) else ("[%d]" % place, "<error: it is not there>")

    def all_members(self):
        return iter(self.fetched(MAX_COUNTED))


def stand_first(*_):
    """gdb asks files before all others; only who is asked first can tell a library's values in another way."""
    for place in places():
        printers = place.pretty_printers
        if printers and printers[0] is not lookup:
            place.pretty_printers = [lookup] + [other for other in printers if other is not lookup]


def lookup(value):
    if Told.is_busy:
        return None
    plain = librarys(value)
    if plain is not None:
        is_one = not hasattr(plain, "children") or hint_of(plain) == "string"
        return Safe(plain) if is_one else Collection(value, plain)
    problem = problem_of(value)
    if problem is not None:
        return Unreadable(problem)
    kind = value.type.strip_typedefs()
    if kind.code in STRUCTURES:
        return Told(of_structure, value, gdb.printing.NoOpStructPrinter(kind, value))
    if kind.code == gdb.TYPE_CODE_ARRAY and kind.target().strip_typedefs().code == gdb.TYPE_CODE_ARRAY:
        return Told(of_structure, value, gdb.printing.NoOpArrayPrinter(kind, value))
    # Rust's arrays of bytes have no end that gdb looks for.
    behind = STRUCTURES if gdb.current_language() != "rust" else (*STRUCTURES, gdb.TYPE_CODE_ARRAY)
    if kind.code in POINTERS and kind.target().strip_typedefs().code in behind:
        if kind.code in REFERENCES or int(value) != 0:
            return Told(of_pointer, value, gdb.printing.NoOpPointerReferencePrinter(value))
    return None


if hasattr(gdb.printing, "NoOpStructPrinter"):
    gdb.pretty_printers.append(lookup)
    gdb.events.new_objfile.connect(stand_first)
    gdb.events.stop.connect(stand_first)

"""Methods of C++'s own types that programs have as templates: what a program never calls is not compiled, so that gdb cannot
call it either. Here they only read: a key that is not there is told, and not made. What reads a collection stands with the
texts.
"""

import gdb
import gdb.xmethod

TEXT = r"^std::(__cxx11::)?basic_string<char,.*>$"
MAP = r"^std::(unordered_)?map<.*>$"
SET = r"^std::(unordered_)?(map|set|multimap|multiset)<.*>$"
OPTIONAL = r"^std::optional<.*>$"


def bytes_of(value):
    """Of a `std::string`, or of what C++ compares with one."""
    value = target_of(value)
    kind = value.type.strip_typedefs()
    if kind.code == gdb.TYPE_CODE_PTR:
        return value.string(encoding="latin-1")
    if kind.code == gdb.TYPE_CODE_ARRAY:
        return value.string(encoding="latin-1").split("\0")[0]
    length = int(value["_M_string_length"])
    return value["_M_dataplus"]["_M_p"].string(encoding="latin-1", length=length) if length else ""


def target_of(value):
    return value.referenced_value() if value.type.strip_typedefs().code in REFERENCES else value


def is_text(kind):
    return re.match(TEXT, str(kind.strip_typedefs().unqualified())) is not None


def is_same(one, other):
    return bytes_of(one) == bytes_of(other) if is_text(target_of(one).type) else bool(target_of(one) == target_of(other))


def found(value, key):
    """The values of a key in a map; in a set, the key itself."""
    printer = librarys(value)
    children = iter(printer.children())
    if hint_of(printer) == "map":
        return (member for (_, own), (_, member) in zip(children, children) if is_same(own, key))
    return (own for _, own in children if is_same(own, key))


def at(value, key):
    for member in found(value, key):
        return member
    raise gdb.GdbError("there is no such key")


def contained(value):
    for _, member in librarys(value).children():
        return member
    raise gdb.GdbError("it has no value")


def key_of(kind):
    return kind.template_argument(0)


METHODS = (
    (TEXT, "operator==", lambda kind: kind, lambda value, other: bytes_of(value) == bytes_of(other)),
    (TEXT, "operator!=", lambda kind: kind, lambda value, other: bytes_of(value) != bytes_of(other)),
    (MAP, "operator[]", key_of, at),
    (MAP, "at", key_of, at),
    (SET, "count", key_of, lambda value, key: len(list(found(value, key)))),
    (SET, "contains", key_of, lambda value, key: any(True for _ in found(value, key))),
    (OPTIONAL, "operator*", None, contained),
    (OPTIONAL, "value", None, contained),
    (OPTIONAL, "has_value", None, lambda value: any(True for _ in librarys(value).children())),
)


class Method(gdb.xmethod.XMethodWorker):
    def __init__(self, takes, run):
        self.takes, self.run = takes, run

    def get_arg_types(self):
        return self.takes

    def __call__(self, value, *others):
        Told.is_busy = True
        try:
            # gdb gives the object's address.
            is_address = value.type.strip_typedefs().code == gdb.TYPE_CODE_PTR
            return self.run(value.dereference() if is_address else value, *others)
        finally:
            Told.is_busy = False


class Methods(gdb.xmethod.XMethodMatcher):
    def __init__(self):
        super().__init__("baton")

    def match(self, kind, name):
        kind = kind.strip_typedefs().unqualified()
        for pattern, method, takes, run in METHODS:
            if name == method and re.match(pattern, str(kind)):
                if takes is None:
                    return [Method(None, run)]
                takes = takes(kind)
                texts = [gdb.lookup_type("char").const().pointer()] if is_text(takes) else []
                return [Method(one, run) for one in [takes, *texts]]
        return None


gdb.xmethod.register_xmethod_matcher(None, Methods(), replace=True)

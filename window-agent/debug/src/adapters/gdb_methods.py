"""Methods of C++'s own types that programs have as templates: what a program never calls is not compiled, so that gdb cannot
call it either. Here they only read: a key that is not there is told, and not made. What reads a collection stands with the
texts.

Members are gone through one by one. What orders, hashes or compares keys in its own way is left to the program.
"""

import gdb
import gdb.xmethod

TEXT = r"^std::(__cxx11::)?basic_string<char,.*>$"
MAP = r"^std::(unordered_)?map<.*>$"
SET = r"^std::(unordered_)?(map|set|multimap|multiset)<.*>$"
OPTIONAL = r"^std::optional<.*>$"
COMPARISONS = r"^std::(less|greater|hash|equal_to)<"
# Keys for which these mean the same as `==`.
PLAIN = (gdb.TYPE_CODE_INT, gdb.TYPE_CODE_CHAR, gdb.TYPE_CODE_BOOL, gdb.TYPE_CODE_ENUM, gdb.TYPE_CODE_PTR)
# Members that are looked at for a key.
MAX_SEARCHED = 100_000


class Problem(Exception):
    """In a sentence for who asked."""


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
    children = (child for _, child in printer.children())
    members = zip(children, children) if hint_of(printer) == "map" else ((own, own) for own in children)
    for place, (own, member) in enumerate(members):
        if place == MAX_SEARCHED:
            raise Problem("The debugger looks at the first %d members alone." % MAX_SEARCHED)
        if is_same(own, key):
            yield member


def at(value, key):
    for member in found(value, key):
        return member
    raise Problem("It has no such key.")


def contained(value):
    for _, member in librarys(value).children():
        return member
    raise Problem("It has no value.")


def key_of(kind):
    """None where keys are compared in the program's own way."""
    key, name = kind.template_argument(0), str(kind)
    first = 2 if re.match(MAP, name) or name.startswith(("std::multimap<", "std::unordered_multimap<")) else 1
    comparisons = 2 if name.startswith("std::unordered_") else 1
    own = key.strip_typedefs()
    is_plain = own.code in PLAIN or is_text(own)
    try:
        theirs = [str(kind.template_argument(first + n)) for n in range(comparisons)]
    except RuntimeError:
        # Some compilers leave out what nobody chose, and what somebody chose cannot be told from it.
        return None
    return key if is_plain and all(re.match(COMPARISONS, comparison) for comparison in theirs) else None


METHODS = (
    (TEXT, "operator==", lambda kind: kind, lambda value, other: bytes_of(value) == bytes_of(other)),
    (TEXT, "operator!=", lambda kind: kind, lambda value, other: bytes_of(value) != bytes_of(other)),
    (MAP, "operator[]", key_of, at),
    (MAP, "at", key_of, at),
    (SET, "count", key_of, lambda value, key: len(list(found(value, key)))),
    (SET, "contains", key_of, lambda value, key: any(True for _ in found(value, key))),
    (OPTIONAL, "operator*", lambda _: (), contained),
    (OPTIONAL, "value", lambda _: (), contained),
    (OPTIONAL, "has_value", lambda _: (), lambda value: any(True for _ in librarys(value).children())),
)


class Method(gdb.xmethod.XMethodWorker):
    # Of the last one: gdb says of each that Python failed.
    problem = None

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
        except Problem as problem:
            Method.problem = str(problem)
            raise
        finally:
            Told.is_busy = False


class Methods(gdb.xmethod.XMethodMatcher):
    def __init__(self):
        super().__init__("baton")

    def match(self, kind, name):
        kind = kind.strip_typedefs().unqualified()
        for pattern, method, takes, run in METHODS:
            if name == method and re.match(pattern, str(kind)):
                takes = takes(kind)
                if takes is None or takes == ():
                    return [] if takes is None else [Method(None, run)]
                texts = [gdb.lookup_type("char").const().pointer()] if is_text(takes) else []
                return [Method(one, run) for one in [takes, *texts]]
        return None


gdb.xmethod.register_xmethod_matcher(None, Methods(), replace=True)


def evaluated(*args, **named):
    """With what a method here says of its failure."""
    Method.problem = None
    try:
        return gdbs_own(*args, **named)
    except gdb.error as error:
        if Method.problem is None:
            raise
        raise gdb.error(Method.problem) from error


gdbs_own, gdb.parse_and_eval = gdb.parse_and_eval, evaluated

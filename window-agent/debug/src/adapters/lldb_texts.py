"""Texts for the collections of C++ and Rust: how many there are, and the first of them. lldb's own tell the number alone,
some of them a false one, and walk from the beginning to each member of a tree or a chain.

Of what is not initialized yet no more is read than these few.
"""

import lldb

MAX_PARTS = 20
# Characters of a value, and of one in it.
MAX_TEXT = 400
MAX_PART = 200
# Collections in collections that are told with their members.
MAX_DEPTH = 2
# What a step into a function passes over: what lldb itself does, and libstdc++'s iterators.
PASSED_OVER = "^std::|^([A-Za-z_][A-Za-z0-9_:]* )?__gnu_cxx::"
# Of a tree; one of this height has more nodes than there is memory for.
MAX_HEIGHT = 128

STD = r"^(const )?std::(__cxx11::|__1::|__debug::)?"
COLLECTIONS = (
    STD + r"(vector|deque|list|forward_list|(unordered_)?(multi)?(map|set))<.+>( ?&)?$",
    r"^(alloc::(vec::Vec|collections::vec_deque::VecDeque)|std::collections::hash::(map::HashMap|set::HashSet))<.+>$",
    r"^&(mut )?\[.+\]$",
)
# Of all but characters, which lldb tells as a text.
ARRAY = r"[^r] ?\[[0-9]+\]$"
SINGLES = {
    "elements": ARRAY,
    "array": STD + r"array<.+>( ?&)?$",
    "pair": STD + r"pair<.+>( ?&)?$",
    "tuple_": STD + r"tuple<.*>( ?&)?$",
    "optional": STD + r"optional<.+>( ?&)?$",
    "variant": STD + r"variant<.+>( ?&)?$",
    "counted": r"^alloc::(rc::Rc|sync::Arc)<.+>$",
    "owner": STD + r"(unique_ptr|shared_ptr)<.+>( ?&)?$",
}

depth = 0


def cut(text, limit=MAX_PART):
    return text if len(text) <= limit else text[:limit] + "..."


def of(value):
    """As it stands in another one."""
    told = value.GetSummary() or value.GetValue()
    if told is not None:
        return cut(told.strip())
    parts = [value.GetChildAtIndex(place) for place in range(min(value.GetNumChildren(), MAX_PARTS))]
    if not parts or depth > MAX_DEPTH:
        return "{...}"
    return cut("{%s}" % ", ".join("%s=%s" % (part.GetName(), inner(part)) for part in parts))


def inner(part):
    return (part.GetSummary() or part.GetValue() or "{...}").strip()


def telling(tell):
    """What fails has lldb's own text."""

    def told(value, _):
        global depth
        depth += 1
        try:
            return cut(tell(value.GetSyntheticValue() or value), MAX_TEXT)
        except Exception:
            return ""
        finally:
            depth -= 1

    return told


def members(value):
    count = value.GetNumChildren()
    is_map = "map<" in value.GetTypeName().lower().split("<", 1)[0] + "<"
    told = []
    for place in range(min(count, MAX_PARTS)):
        member = value.GetChildAtIndex(place)
        if not member.IsValid():
            break
        pair = [member.GetChildAtIndex(at) for at in (0, 1)] if is_map and member.GetNumChildren() == 2 else None
        told.append(": ".join(of(part) for part in pair) if pair else of(member))
    if len(told) < count:
        told.append("...")
    return count, told


@telling
def collection(value):
    if not value.IsSynthetic():
        raise ValueError("what lldb knows of it are its fields")
    if depth > MAX_DEPTH:
        return "size=%d" % value.GetNumChildren()
    count, told = members(value)
    return "size=%d {%s}" % (count, ", ".join(told))


@telling
def elements(value):
    return "{%s}" % ", ".join(members(value)[1])


@telling
def array(value):
    elements = value.GetNonSyntheticValue().GetChildMemberWithName("_M_elems")
    _, told = members(elements if elements.IsValid() else value)
    return "{%s}" % ", ".join(told)


@telling
def pair(value):
    return "(%s, %s)" % tuple(of(value.GetChildMemberWithName(name)) for name in ("first", "second"))


def heads(value):
    """Of a tuple that this lldb knows nothing of: each part of it is the base of the one before."""
    own, others = [], []
    for place in range(value.GetNumChildren()):
        child = value.GetChildAtIndex(place)
        kind = child.GetTypeName()
        if kind.startswith("std::_Head_base<"):
            own.append(child.GetChildMemberWithName("_M_head_impl"))
        elif kind.startswith("std::_Tuple_impl<"):
            others += heads(child)
    return own + others


@telling
def tuple_(value):
    told = [of(head) for head in heads(value)] or members(value)[1]
    return "(%s)" % ", ".join(told)


@telling
def optional(value):
    return of(value.GetChildAtIndex(0)) if value.GetNumChildren() else "nullopt"


@telling
def variant(value):
    member = value.GetChildAtIndex(0)
    return "%s (%s)" % (of(member), member.GetTypeName())


@telling
def counted(value):
    """Rust's: what it holds behind how many hold it."""
    held, strong, weak = (value.GetChildMemberWithName(name) for name in ("value", "strong", "weak"))
    if not (held.IsValid() and strong.IsValid() and weak.IsValid()):
        raise ValueError("it is made of something else")
    return "strong=%s, weak=%s %s" % (strong.GetValue(), weak.GetValue(), of(held))


@telling
def owner(value):
    """A pointer, and what is behind it."""
    plain = value.GetNonSyntheticValue()
    pointer = plain.GetChildMemberWithName("_M_ptr")
    if not pointer.IsValid():
        pointer = value.GetChildMemberWithName("pointer")
    if not pointer.IsValid() and plain.GetByteSize() == plain.GetProcess().GetAddressByteSize():
        # The pointer alone: who deletes takes no place.
        kind = plain.GetType().GetTemplateArgumentType(0).GetPointerType()
        pointer = plain.CreateValueFromAddress("pointer", plain.GetLoadAddress(), kind)
    if not pointer.IsValid():
        raise ValueError("it is made of something else")
    address = pointer.GetValueAsUnsigned()
    return "%#x %s" % (address, of(pointer.Dereference())) if address else "nullptr"


def pointer_at(value, address):
    error = lldb.SBError()
    pointer = value.GetProcess().ReadPointerFromMemory(address, error)
    if error.Fail() or not pointer:
        raise ValueError("nothing is there")
    return pointer


def first_of_tree(self):
    return self.left(self.Mheader).GetValueAsUnsigned()


def next_in_tree(self, node):
    """As `_Rb_tree_increment`; a node begins with its color and the three addresses."""
    size = self.valobj.GetProcess().GetAddressByteSize()
    parent, left, right = (lambda node, n=n: pointer_at(self.valobj, node + n * size) for n in (1, 2, 3))

    def has(place, node):
        try:
            return place(node)
        except ValueError:
            return 0

    if has(right, node):
        node = right(node)
        for _ in range(MAX_HEIGHT):
            if not has(left, node):
                break
            node = left(node)
        return node
    above = parent(node)
    for _ in range(MAX_HEIGHT):
        if has(right, above) != node:
            break
        node, above = above, parent(above)
    return above if has(right, node) != above else node


def remember_places(kind, first, following):
    """Each member is reached from the one before, by its address."""
    own_child, own_update = kind.get_child_at_index, kind.update

    def update(self):
        self.baton_place = None
        return own_update(self)

    def get_child_at_index(self, index):
        if index < 0 or index >= self.num_children():
            return None
        try:
            at, node = self.baton_place or (0, None)
            if node is None or at > index:
                at, node = 0, first(self)
            for _ in range(at, index):
                node = following(self, node)
            self.baton_place = (index, node)
            return self.valobj.CreateValueFromAddress("[%d]" % index, node + self.skip_size, self.data_type)
        except AttributeError:
            return own_child(self, index)
        except Exception:
            # It is not made yet.
            return None

    kind.update, kind.get_child_at_index = update, get_child_at_index


def element_type(self):
    """g++ does not tell the parameters of an allocator."""
    return self.head.GetType().GetCanonicalType().GetTemplateArgumentType(1)


def mend():
    from lldb.formatters.cpp import gnu_libstdcpp as own

    own.StdUnorderedMapSynthProvider.extract_type = element_type
    remember_places(
        own.StdUnorderedMapSynthProvider,
        lambda self: self.next.GetValueAsUnsigned(),
        lambda self, node: pointer_at(self.valobj, node),
    )
    remember_places(own.StdMapLikeSynthProvider, first_of_tree, next_in_tree)


def make_counters(debugger):
    """What hits of breakpoints are counted in: each of 256 and its number. A stopped program is needed to make it."""
    frame = debugger.GetSelectedTarget().GetProcess().GetSelectedThread().GetSelectedFrame()
    options = lldb.SBExpressionOptions()
    options.SetLanguage(lldb.eLanguageTypeC_plus_plus)
    options.SetTimeoutInMicroSeconds(1_000_000)
    options.SetTryAllThreads(False)
    frame.EvaluateExpression("long long $_baton_hits[512] = {}", options)


def add(debugger):
    try:
        mend()
    except (ImportError, AttributeError):
        # Another lldb has others.
        pass
    texts = [("collection", pattern) for pattern in COLLECTIONS] + list(SINGLES.items())
    for function, pattern in texts:
        debugger.HandleCommand('type summary add -w baton -F baton_texts.%s -x "%s"' % (function, pattern))
    debugger.HandleCommand("type category enable baton")
    debugger.HandleCommand("settings set target.process.thread.step-avoid-regexp " + PASSED_OVER)

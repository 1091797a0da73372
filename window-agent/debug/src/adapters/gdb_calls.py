"""Functions that expressions call, conditions that fail, and steps into C++'s own library.

gdb tells each call as if the program had gone on and stopped again, and forgets its frames and variables over it. Where one
call needs another, as one with a text in quotes does, it takes the program to be running from then on. Here a call is no
move of the program: frames stay, and variables are read anew. Only what stops the program inside of a call is told.

A condition that cannot be evaluated stops the program, and nobody is told why. One that names what is not known at its
place switches the breakpoint off, which is called verified all the same.

A log point is asked before its condition is, and before its hits are counted: it logs every one.

Hits can be passed over, and are then counted anew whenever a breakpoint is set. Here a condition counts them.

A step into a function ends in what makes its arguments, a text or an iterator: the library's headers are passed over.
"""

import re
import signal
import sys

import gdb


# What assigns, or counts.
CHANGE = r"\+\+|--|[^=!<>]=[^=]"
# A condition on the number of hits, and the breakpoint's own before it.
COUNTED = re.compile(r"(?:\((?P<own>.*)\) && )?\$_baton_hit\((\d+), (\d), (\d+)\)", re.DOTALL)


class Hits(gdb.Function):
    """Whether this hit of a breakpoint is one to stop at: `$_baton_hit(ID, OPERATOR, NUMBER)`."""

    OPERATORS = (int.__eq__, int.__gt__, int.__ge__, int.__lt__, int.__le__, lambda n, limit: n % limit == 0)

    def __init__(self):
        super().__init__("_baton_hit")
        self.counts = {}

    def invoke(self, *asked):
        key = tuple(int(number) for number in asked)
        met = self.is_next(*key)
        self.counts[key] = self.counts.get(key, 0) + 1
        return met

    def is_next(self, *key):
        _, operator, limit = key
        return self.OPERATORS[operator](self.counts.get(key, 0) + 1, limit)


hits = Hits()


def parts(condition):
    """Of a breakpoint's condition its own, and what counts its hits."""
    counted = COUNTED.fullmatch(condition or "")
    if counted is None:
        return condition, None
    return counted["own"], tuple(int(number) for number in counted.groups()[1:])


class Calls:
    """In place of what gdb's own modules for the protocol do about moves."""

    def __init__(self):
        # The calls that are under way; too many where gdb failed between the two words about one.
        self.depth = 0
        self.events = self.varref = None
        self.clears = []
        # Log points whose conditions were said to fail.
        self.told = set()
        # A description of a breakpoint is asked for within another.
        self.is_asking = False

    def take_over(self, *_):
        """Once gdb's modules are there; those of another version may be others."""
        if self.events is not None:
            return
        self.events = sys.modules.get("gdb.dap.events")
        self.varref = sys.modules.get("gdb.dap.varref")
        if self.events is None or self.varref is None:
            self.events = None
            return
        clears = (
            ("frames", "_clear_frame_ids"),
            ("varref", "clear_vars"),
            ("scopes", "clear_scopes"),
            ("globalvars", "clear"),
        )
        try:
            self.clears = [getattr(sys.modules["gdb.dap." + module], name) for module, name in clears]
            moves = (
                (gdb.events.cont, self.events._cont, self.on_cont),
                (gdb.events.stop, self.events._on_stop, self.on_stop),
                (gdb.events.inferior_call, self.events._on_inferior_call, self.on_call),
                (gdb.events.exited, self.events._on_exit, self.on_exit),
            )
            for name in ("inferior_running", "_suppress_cont", "send_event"):
                getattr(self.events, name)
        except (AttributeError, KeyError):
            return
        for clear in self.clears:
            gdb.events.cont.disconnect(clear)
        for registry, theirs, ours in moves:
            registry.disconnect(theirs)
            registry.connect(ours)
        self.mend_log_points()
        self.mend_descriptions()
        # What fails has a text of its own, and none among what the program prints.
        gdb.set_parameter("python print-stack", "none")

    def on_cont(self, event):
        if self.depth and not self.events._suppress_cont:
            return
        self.depth = 0
        self.move(event)

    def move(self, event):
        for clear in self.clears:
            clear(event)
        self.events._cont(event)

    def on_stop(self, event):
        if self.depth and not self.events.inferior_running:
            # It is inside of a function that an expression called.
            self.depth = 0
            self.move(event)
        elif isinstance(event, gdb.BreakpointEvent):
            for breakpoint in event.breakpoints:
                self.tell_failure(breakpoint)
        self.events._on_stop(event)

    def on_exit(self, event):
        """Theirs tells a program that a signal ended as one that exited with 0."""
        number = None if hasattr(event, "exit_code") else gdb.convenience_variable("_exitsignal")
        try:
            name = "" if number is None else signal.Signals(int(number)).name
        except ValueError:
            name = "signal %d" % int(number)
        self.events.send_event("exited", {"exitCode": getattr(event, "exit_code", 0), "signal": name})
        self.events._on_exit(event)

    def mend_log_points(self):
        kind = getattr(sys.modules.get("gdb.dap.breakpoint"), "_PrintBreakpoint", None)
        if kind is None:
            return
        own = kind.stop

        def stop(point):
            # gdb counts down itself, behind this.
            if self.is_met(point) and not point.ignore_count:
                own(point)
            return False

        kind.stop = stop

    def mend_descriptions(self):
        module = sys.modules.get("gdb.dap.breakpoint")
        own = getattr(module, "_breakpoint_descriptor", None)
        if own is None:
            return

        def describe(point):
            told = own(point)
            why = self.why_off(point)
            if why is not None:
                told.update(verified=False, reason="failed", message=why)
            return told

        module._breakpoint_descriptor = describe

    def why_off(self, point):
        """Of a breakpoint that its condition switches off at each of its places."""
        if not point.condition or self.is_asking:
            return None
        shown = gdb.execute("info breakpoints %d" % point.number, to_string=True)
        places = re.findall(r"^%d\.\d+\s+(\S+)" % point.number, shown, re.MULTILINE)
        if not places or any(place != "N*" for place in places):
            return None
        self.is_asking = True
        try:
            # It is refused, and nothing changes.
            point.condition = point.condition
        except gdb.error as error:
            return str(error)
        finally:
            self.is_asking = False
        return None

    def is_met(self, point):
        # gdb asks it once more, and what it changes must not be changed twice.
        own, counted = parts(point.condition)
        if own and re.search(CHANGE, own):
            return True
        try:
            is_met = not own or bool(gdb.parse_and_eval(own))
        except gdb.error as error:
            if point.number not in self.told:
                self.told.add(point.number)
                self.tell(own, error)
            return False
        return is_met and (counted is None or hits.is_next(*counted))

    def tell(self, condition, error):
        told = "The condition `%s` cannot be evaluated: %s\n" % (condition, error)
        self.events.send_event("output", {"category": "console", "output": told})

    def tell_failure(self, breakpoint):
        """Without calling or changing anything once more."""
        own, _ = parts(breakpoint.condition)
        if not own:
            return
        try:
            with gdb.with_parameter("may-write-memory", False), gdb.with_parameter("may-write-registers", False):
                with gdb.with_parameter("may-call-functions", False):
                    gdb.parse_and_eval(own)
        except gdb.error as error:
            if not re.search("may-call-functions|is not allowed", str(error)):
                self.tell(own, error)

    def on_call(self, event):
        if isinstance(event, gdb.InferiorCallPreEvent):
            self.depth += 1
            return
        self.depth = max(0, self.depth - 1)
        if not self.events.inferior_running:
            self.read_anew()

    def read_anew(self):
        """The function may have changed anything."""
        for variable in self.varref.all_variables:
            try:
                if isinstance(variable, self.varref.VariableReference):
                    self.renew(variable)
                else:
                    variable.reset_children()
            except gdb.error:
                # It is no more.
                pass

    def renew(self, variable):
        value = variable._value
        if value.type.code not in (gdb.TYPE_CODE_REF, gdb.TYPE_CODE_RVALUE_REF) and value.address is not None:
            variable._value = value.address.dereference()
        variable._update_value()


calls = Calls()
gdb.events.new_objfile.connect(calls.take_over)
for folder in ("/usr/include", "/usr/local/include"):
    for part in ("*", "bits/*", "ext/*", "debug/*"):
        gdb.execute("skip -gfi %s/c++/*/%s" % (folder, part), to_string=True)

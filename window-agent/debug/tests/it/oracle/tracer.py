"""What a program does, as the interpreter's own tracer (`sys.settrace`) tells it.

tracer.py PROGRAM < ["expression", ...] prints one JSON object:

- code_lines: the lines that have code;
- events: one for each call, line and return in the program's own frames:
  kind, thread and frame (numbers of their own), stack ([function, line], innermost
  first), locals ({name: text}), values (of the expressions; null for one that fails);
- stdout: what it prints; exit: its exit code;
- uncaught: the exception that ends it (type, text, stack), or null.
"""
import contextlib
import io
import json
import sys
import threading
import types

MAX_EVENTS = 20_000

path = sys.argv[1]
expressions = [compile(text, "expression", "eval") for text in json.load(sys.stdin)]
with open(path, encoding="utf-8") as file:
    code = compile(file.read(), path, "exec")
events = []
frames = {}
threads = {}


def lines_of(code):
    inner = (const for const in code.co_consts if isinstance(const, types.CodeType))
    own = {line for _, _, line in code.co_lines() if line}
    return own.union(*(lines_of(const) for const in inner))


def own_stack(frame):
    stack = []
    while frame is not None:
        if frame.f_code.co_filename == path:
            stack.append([frame.f_code.co_name, frame.f_lineno])
        frame = frame.f_back
    return stack


def plain(values):
    shown = {}
    for name, value in values.items():
        if not name.startswith("_") and isinstance(value, (int, str, list)):
            shown[name] = repr(value)
    return shown


def value_of(expression, frame):
    try:
        return repr(eval(expression, frame.f_globals, frame.f_locals))
    except Exception:
        return None


def trace(frame, kind, _argument):
    if frame.f_code.co_filename != path:
        return None
    if kind != "exception":
        # The frame is kept, so that its number stays its own.
        number, _ = frames.setdefault(id(frame), (len(frames), frame))
        events.append({
            "kind": kind,
            "thread": threads.setdefault(threading.current_thread(), len(threads)),
            "frame": number,
            "stack": own_stack(frame),
            "locals": plain(frame.f_locals),
            "values": [value_of(expression, frame) for expression in expressions],
        })
        if len(events) > MAX_EVENTS:
            raise SystemExit("too many events")
    return trace


def uncaught_of(error):
    stack = []
    step = error.__traceback__
    while step is not None:
        if step.tb_frame.f_code.co_filename == path:
            stack.insert(0, [step.tb_frame.f_code.co_name, step.tb_lineno])
        step = step.tb_next
    return {"type": type(error).__name__, "text": str(error), "stack": stack}


printed = io.StringIO()
uncaught = None
main = types.ModuleType("__main__")
with contextlib.redirect_stdout(printed):
    threading.settrace(trace)
    sys.settrace(trace)
    try:
        exec(code, main.__dict__)
    except Exception as error:
        sys.settrace(None)
        uncaught = uncaught_of(error)
    finally:
        sys.settrace(None)

json.dump({
    "code_lines": sorted(lines_of(code)),
    "events": events,
    "stdout": printed.getvalue(),
    "exit": 1 if uncaught else 0,
    "uncaught": uncaught,
}, sys.stdout)

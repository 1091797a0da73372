"""What debugpy leaves undone about what takes long, in the program that it debugs.

It lets an expression block the program for ever, with advice about its own settings in the program's output, and never
answers one that ends the interpreter. It asks each object for its text at each stop, however long that takes, and lets
other threads go on meanwhile: then the program is told to have stopped once more, and is asked once more.

Here an expression is interrupted after `SECONDS`, which stands where this is run, and a text after one second: a class whose
text takes longer is not asked again. Both as by Ctrl+C, of which the program itself hears nothing.
"""

import ctypes
import signal
import sys
import threading
import time
import types

import pydevd
from _pydevd_bundle import pydevd_constants, pydevd_safe_repr, pydevd_vars

TEXT_SECONDS = 1.0
# What was sent has come by then.
SETTLE_SECONDS = 0.05


class TooLong(Exception):
    pass


class Limit:
    """Interrupts what runs within it, and nothing else."""

    def __init__(self, seconds, takes_signal):
        self.seconds, self.takes_signal = seconds, takes_signal
        self.lock = threading.Lock()
        self.was_sent = self.is_over = False
        self.thread = threading.get_ident()
        self.handler = None

    def __enter__(self):
        self.take_signal()
        self.timer = pydevd.get_global_debugger().timeout_tracker.call_on_timeout(self.seconds, self.send)
        self.timer.__enter__()

    def take_signal(self):
        """A signal interrupts what waits, too. The program's own handler must not hear of it, nor its event loop."""
        if not self.takes_signal or threading.current_thread() is not threading.main_thread():
            return
        handler = signal.getsignal(signal.SIGINT)
        if handler is not None and hasattr(signal, "pthread_kill"):
            self.wakeup = signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGINT, signal.default_int_handler)
            self.handler = handler

    def send(self):
        with self.lock:
            if self.is_over:
                return
            self.was_sent = True
            if self.handler is not None:
                signal.pthread_kill(self.thread, signal.SIGINT)
            else:
                ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(self.thread), ctypes.py_object(KeyboardInterrupt))

    def __exit__(self, kind, error, trace):
        try:
            with self.lock:
                self.is_over = True
            if self.was_sent and not (kind and issubclass(kind, KeyboardInterrupt)):
                time.sleep(SETTLE_SECONDS)
        except KeyboardInterrupt:
            # It came when all was done.
            pass
        finally:
            self.timer.__exit__(kind, error, trace)
            if self.handler is not None:
                self.give_signal_back()

    def give_signal_back(self):
        """But not over what an expression has set."""
        if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
            signal.signal(signal.SIGINT, self.handler)
        own = signal.set_wakeup_fd(self.wakeup)
        if own != -1:
            signal.set_wakeup_fd(own)


def within(seconds, run, takes_signal=True):
    limit = Limit(seconds, takes_signal)
    try:
        with limit:
            return run()
    except KeyboardInterrupt:
        if not limit.was_sent:
            raise
    raise TooLong


def limit_expressions():
    own = pydevd_vars.evaluate_expression

    def evaluate_expression(py_db, frame, expression, is_exec):
        # Who asks for the program's handlers sees them.
        takes_signal = "signal" not in expression
        try:
            return within(limits.seconds, lambda: own(py_db, frame, expression, is_exec), takes_signal)
        except (SystemExit, TooLong) as error:
            # Only an `Exception` is answered.
            failed = type(type(error).__name__, (Exception,), {"__module__": "builtins"})(*error.args)
            if is_exec:
                raise failed from None
            return pydevd_vars.ExceptionOnEvaluate(failed, type(failed), error.__traceback__)

    pydevd_vars.evaluate_expression = evaluate_expression
    pydevd_constants.PYDEVD_WARN_EVALUATION_TIMEOUT = 1e6


def limit_texts():
    texts = pydevd_safe_repr.SafeRepr
    own, too_long = texts._repr_other, set()

    def text_of(self, value, level):
        kind = type(value)
        if not isinstance(kind.__repr__, types.FunctionType):
            return own(self, value, level)
        if kind not in too_long:
            try:
                return within(TEXT_SECONDS, lambda: list(own(self, value, level)))
            except TooLong:
                too_long.add(kind)
        return ["<%s: its __repr__ takes longer than %d s>" % (kind.__name__, TEXT_SECONDS)]

    texts._repr_other = text_of


limits = sys.modules.get("baton_limits")
if limits is None:
    limits = sys.modules["baton_limits"] = types.ModuleType("baton_limits")
    limit_expressions()
    limit_texts()
limits.seconds = SECONDS

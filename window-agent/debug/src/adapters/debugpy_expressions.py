"""What debugpy leaves undone about expressions, in the program that it debugs: one that takes long is interrupted as by
Ctrl+C, and one that ends the interpreter has failed. debugpy itself lets the first one block the program for ever, tells
advice about its own settings in the program's output, and never answers the second.

`SECONDS` stands where this is run.
"""

import sys


def tune(seconds):
    constants = sys.modules["_pydevd_bundle.pydevd_constants"]
    constants.PYDEVD_INTERRUPT_THREAD_TIMEOUT = seconds
    constants.PYDEVD_WARN_EVALUATION_TIMEOUT = 1e6
    values = sys.modules["_pydevd_bundle.pydevd_vars"]
    own = values.evaluate_expression
    if hasattr(own, "is_batons"):
        return

    def evaluate_expression(py_db, frame, expression, is_exec):
        try:
            return own(py_db, frame, expression, is_exec)
        except SystemExit as error:
            # Only an `Exception` is answered.
            failed = type("SystemExit", (Exception,), {"__module__": "builtins"})(*error.args)
            if is_exec:
                raise failed from None
            return values.ExceptionOnEvaluate(failed, type(failed), error.__traceback__)

    evaluate_expression.is_batons = True
    values.evaluate_expression = evaluate_expression


tune(SECONDS)

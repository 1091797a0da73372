import com.sun.jdi.AbsentInformationException;
import com.sun.jdi.ClassNotLoadedException;
import com.sun.jdi.IncompatibleThreadStateException;
import com.sun.jdi.InvalidTypeException;
import com.sun.jdi.LocalVariable;
import com.sun.jdi.Location;
import com.sun.jdi.ObjectReference;
import com.sun.jdi.StackFrame;
import com.sun.jdi.ThreadReference;
import com.sun.jdi.Value;

/**
 * A frame of a stopped thread, looked up each time.
 *
 * A method that an expression calls runs in the thread: what was known of its frames is worth nothing afterwards.
 */
final class Frame {
    private final ThreadReference thread;
    private final int index;

    Frame(ThreadReference thread, int index) {
        this.thread = thread;
        this.index = index;
    }

    private StackFrame now() {
        try {
            return thread.frame(index);
        } catch (IncompatibleThreadStateException e) {
            throw new IllegalStateException("the thread is running");
        }
    }

    ObjectReference thisObject() {
        return now().thisObject();
    }

    Location location() {
        return now().location();
    }

    LocalVariable visibleVariableByName(String name) throws AbsentInformationException {
        return now().visibleVariableByName(name);
    }

    Value getValue(LocalVariable variable) {
        return now().getValue(variable);
    }

    void setValue(LocalVariable variable, Value value) throws InvalidTypeException, ClassNotLoadedException {
        now().setValue(variable, value);
    }
}

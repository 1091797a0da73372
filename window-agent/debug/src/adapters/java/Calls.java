import com.sun.jdi.ArrayReference;
import com.sun.jdi.ArrayType;
import com.sun.jdi.BooleanValue;
import com.sun.jdi.ClassLoaderReference;
import com.sun.jdi.ClassNotLoadedException;
import com.sun.jdi.ClassObjectReference;
import com.sun.jdi.ClassType;
import com.sun.jdi.Field;
import com.sun.jdi.IncompatibleThreadStateException;
import com.sun.jdi.InterfaceType;
import com.sun.jdi.InvalidTypeException;
import com.sun.jdi.InvocationException;
import com.sun.jdi.Method;
import com.sun.jdi.ObjectReference;
import com.sun.jdi.PrimitiveValue;
import com.sun.jdi.ReferenceType;
import com.sun.jdi.StringReference;
import com.sun.jdi.ThreadReference;
import com.sun.jdi.Value;
import com.sun.jdi.VirtualMachine;
import com.sun.jdi.request.EventRequest;
import com.sun.jdi.request.EventRequestManager;
import com.sun.jdi.request.InvalidRequestStateException;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.stream.Collectors;

/**
 * Calls methods of the program in a stopped thread: chooses between those of one name, and fits the arguments, as Java
 * does. What is made on the way is kept from the program's garbage collector until {@link #release}.
 */
final class Calls {
    /** How much is done to arguments so that a method takes them; less is tried first. */
    private enum Phase { AS_THEY_ARE, BOXED, SPREAD }

    private static final Map<String, String> BOXES = Map.of(
        "boolean", "java.lang.Boolean", "byte", "java.lang.Byte", "short", "java.lang.Short", "char", "java.lang.Character",
        "int", "java.lang.Integer", "long", "java.lang.Long", "float", "java.lang.Float", "double", "java.lang.Double");
    /** What numbers become without a cast. */
    private static final Map<String, List<String>> WIDER = Map.of(
        "byte", List.of("short", "int", "long", "float", "double"),
        "short", List.of("int", "long", "float", "double"),
        "char", List.of("int", "long", "float", "double"),
        "int", List.of("long", "float", "double"),
        "long", List.of("float", "double"),
        "float", List.of("double"));

    /** What takes a whole number that is small enough. */
    private static final Set<String> NARROW = Set.of("byte", "short", "char");

    private static final String CONSTRUCTOR = "<init>";
    /** What is thrown for a class that is not there; on some disks a name differs by its case. */
    private static final Set<String> UNKNOWN = Set.of("java.lang.ClassNotFoundException", "java.lang.NoClassDefFoundError");

    private final ThreadReference thread;
    private final VirtualMachine vm;
    private final List<ObjectReference> held = new ArrayList<>();

    Calls(ThreadReference thread) {
        this.thread = thread;
        this.vm = thread.virtualMachine();
    }

    <T extends ObjectReference> T hold(T made) {
        made.disableCollection();
        held.add(made);
        return made;
    }

    void release() {
        held.forEach(ObjectReference::enableCollection);
        held.clear();
    }

    /** Of an object. */
    Value call(ObjectReference of, String name, List<Value> arguments) {
        Method method = pick(of.referenceType(), name, false, arguments);
        return invoke(of, method, arguments);
    }

    /** Of an object, as this class above its own has it. */
    Value callAbove(ObjectReference of, ReferenceType above, String name, List<Value> arguments) {
        return invoke(of, pick(above, name, false, arguments), arguments, ObjectReference.INVOKE_NONVIRTUAL);
    }

    /** Of a class. */
    Value call(ReferenceType of, String name, List<Value> arguments) {
        Method method = pick(of, name, true, arguments);
        return invoke(null, method, arguments);
    }

    /** A static field, for which its class is initialized. */
    Value ofClass(ReferenceType type, Field field) {
        ReferenceType of = field.declaringType();
        if (!of.isInitialized()) load(of.name(), of.classLoader());
        return type.getValue(field);
    }

    /** A new object. */
    Value create(ReferenceType type, List<Value> arguments) {
        boolean isPossible = type instanceof ClassType && !type.isAbstract() && !((ClassType) type).isEnum();
        if (!isPossible) throw new IllegalArgumentException("`new` cannot make a " + type.name());
        return invoke(null, pick(type, CONSTRUCTOR, false, arguments), arguments);
    }

    /** A new array of what is of this class. */
    ArrayReference array(ClassObjectReference of, int length) {
        List<ReferenceType> known = vm.classesByName("java.lang.reflect.Array");
        ReferenceType arrays = known.isEmpty() ? load("java.lang.reflect.Array", null) : known.get(0);
        return (ArrayReference) call(arrays, "newInstance", List.of(of, vm.mirrorOf(length)));
    }

    /** `int.class` and the like. */
    ClassObjectReference classOf(String primitive) {
        ReferenceType box = vm.classesByName(BOXES.get(primitive)).get(0);
        return (ClassObjectReference) box.getValue(box.fieldByName("TYPE"));
    }

    /** Loads and initializes a class; `null` when there is none of that name. */
    ReferenceType load(String name, ClassLoaderReference loader) {
        String signature = "(Ljava/lang/String;ZLjava/lang/ClassLoader;)Ljava/lang/Class;";
        Method method = vm.classesByName("java.lang.Class").get(0).methodsByName("forName", signature).get(0);
        List<Value> arguments = Arrays.asList(hold(vm.mirrorOf(name)), vm.mirrorOf(true), loader);
        try {
            return ((ClassObjectReference) run(null, method, arguments, 0)).reflectedType();
        } catch (InvocationException e) {
            if (UNKNOWN.contains(e.exception().referenceType().name())) return null;
            throw new IllegalArgumentException("cannot load " + name + ": " + told(e.exception()));
        }
    }

    // Methods.

    private Method pick(ReferenceType type, String name, boolean isStatic, List<Value> arguments) {
        List<Method> named = new ArrayList<>(type.methodsByName(name));
        named.removeIf(method -> isStatic && !method.isStatic());
        boolean isNew = name.equals(CONSTRUCTOR);
        named.removeIf(method -> isNew && !method.declaringType().equals(type));
        if (named.isEmpty()) {
            String what = isStatic ? " has no static method `" : " has no method `";
            throw new IllegalArgumentException(type.name() + what + name + "`");
        }
        for (Phase phase : Phase.values()) {
            List<Method> fitting =
                named.stream().filter(method -> fits(method, arguments, phase)).collect(Collectors.toList());
            // One that a compiler made for an older signature says less.
            Comparator<Method> order = Comparator.comparing((Method method) -> method.isBridge() || method.isAbstract());
            for (Method method : fitting.stream().sorted(order).collect(Collectors.toList())) {
                if (fitting.stream().allMatch(other -> isAsSpecific(method, other))) return method;
            }
            if (!fitting.isEmpty()) return fitting.get(0);
        }
        String given = arguments.stream().map(Calls::typeName).collect(Collectors.joining(", "));
        String what = isNew ? "constructor" : "method `" + name + "`";
        throw new IllegalArgumentException("no " + what + " of " + type.name() + " takes (" + given + ")");
    }

    private boolean fits(Method method, List<Value> arguments, Phase phase) {
        List<String> types = method.argumentTypeNames();
        if (phase != Phase.SPREAD) {
            if (types.size() != arguments.size()) return false;
            for (int n = 0; n < types.size(); n++) {
                if (!converts(arguments.get(n), types.get(n), phase)) return false;
            }
            return true;
        }
        int rest = types.size() - 1;
        if (!method.isVarArgs() || arguments.size() < rest) return false;
        for (int n = 0; n < arguments.size(); n++) {
            String type = n < rest ? types.get(n) : part(types.get(rest));
            if (!converts(arguments.get(n), type, phase)) return false;
        }
        return true;
    }

    private boolean isAsSpecific(Method method, Method other) {
        List<String> types = method.argumentTypeNames();
        List<String> others = other.argumentTypeNames();
        if (types.size() != others.size()) return types.size() > others.size();
        for (int n = 0; n < types.size(); n++) {
            if (!widens(types.get(n), others.get(n))) return false;
        }
        return true;
    }

    private boolean converts(Value value, String to, Phase phase) {
        if (value == null) return !isPrimitive(to);
        String from = value.type().name();
        if (widens(from, to)) return true;
        if (phase == Phase.AS_THEY_ARE) return false;
        if (value instanceof PrimitiveValue) return !isPrimitive(to) && widens(BOXES.get(from), to);
        Value inside = unboxed(value);
        return inside != value && isPrimitive(to) && widens(inside.type().name(), to);
    }

    /** Whether a value of one type is one of the other without a box. */
    private boolean widens(String from, String to) {
        if (from.equals(to)) return true;
        if (isPrimitive(from)) return WIDER.getOrDefault(from, List.of()).contains(to);
        if (isPrimitive(to)) return false;
        if (to.equals("java.lang.Object")) return true;
        for (ReferenceType type : vm.classesByName(from)) {
            for (ReferenceType wanted : vm.classesByName(to)) {
                if (isSubtype(type, wanted)) return true;
            }
        }
        return false;
    }

    private Value invoke(ObjectReference of, Method method, List<Value> given) {
        return invoke(of, method, given, 0);
    }

    private Value invoke(ObjectReference of, Method method, List<Value> given, int how) {
        try {
            return run(of, method, given, how);
        } catch (InvocationException e) {
            throw new IllegalArgumentException(shown(method) + " threw " + told(e.exception()));
        }
    }

    private static String shown(Method method) {
        return (method.isConstructor() ? "new " + method.declaringType().name() : method.name()) + "()";
    }

    /** The program may collect what is made here while the next method runs, if nobody holds it. */
    private Value run(ObjectReference of, Method method, List<Value> given, int how) throws InvocationException {
        Value result = runOnly(of, method, given, how);
        return result instanceof ObjectReference ? hold((ObjectReference) result) : result;
    }

    private Value runOnly(ObjectReference of, Method method, List<Value> given, int how) throws InvocationException {
        Set<String> tried = new HashSet<>();
        while (true) {
            try {
                return runOnce(of, method, given, how);
            } catch (ClassNotLoadedException e) {
                // It is loaded, but the loader of the method's class has not come upon it; nothing was called yet.
                String name = e.className();
                boolean isNew = tried.add(name) && load(binary(name), method.declaringType().classLoader()) != null;
                if (!isNew) throw new IllegalArgumentException("cannot call " + shown(method) + ": " + e.getMessage());
            }
        }
    }

    /** A class's name as `Class.forName` wants it, which differs for arrays. */
    private static String binary(String name) {
        int end = name.indexOf("[]");
        return end < 0 ? name : "[".repeat((name.length() - end) / 2) + "L" + name.substring(0, end) + ";";
    }

    private Value runOnce(ObjectReference of, Method method, List<Value> given, int how)
        throws InvocationException, ClassNotLoadedException {
        try {
            List<Value> arguments = fitted(method, given);
            int options = ObjectReference.INVOKE_SINGLE_THREADED | how;
            ReferenceType type = method.declaringType();
            try (Quiet quiet = new Quiet(vm)) {
                if (method.isConstructor()) {
                    return ((ClassType) type).newInstance(thread, method, arguments, options);
                }
                if (!method.isStatic()) return of.invokeMethod(thread, method, arguments, options);
                return type instanceof ClassType
                    ? ((ClassType) type).invokeMethod(thread, method, arguments, options)
                    : ((InterfaceType) type).invokeMethod(thread, method, arguments, options);
            }
        } catch (InvalidTypeException | IncompatibleThreadStateException e) {
            throw new IllegalArgumentException("cannot call " + shown(method) + ": " + e.getMessage());
        }
    }

    /** While this is open no breakpoint stops what is called: whoever waits for the value would wait for ever. */
    private static final class Quiet implements AutoCloseable {
        private final List<EventRequest> paused = new ArrayList<>();
        private final List<EventRequest> loose = new ArrayList<>();

        Quiet(VirtualMachine vm) {
            EventRequestManager manager = vm.eventRequestManager();
            List<EventRequest> all = new ArrayList<>(manager.breakpointRequests());
            all.addAll(manager.exceptionRequests());
            for (EventRequest request : all) {
                // Where one stops its own thread alone, others run now, and are to be stopped.
                if (!request.isEnabled() || request.suspendPolicy() != EventRequest.SUSPEND_ALL) continue;
                request.disable();
                paused.add(request);
            }
            // A condition is worked out by the thread that would hear of a class that comes, and let it go on.
            if (!Thread.currentThread().getName().equals("jdi-event-loop")) return;
            for (EventRequest request : new ArrayList<>(manager.classPrepareRequests())) {
                if (request.isEnabled() && change(request, EventRequest.SUSPEND_NONE)) loose.add(request);
            }
        }

        private static boolean change(EventRequest request, int policy) {
            try {
                request.disable();
                request.setSuspendPolicy(policy);
                request.enable();
                return true;
            } catch (InvalidRequestStateException e) {
                // It was removed in the meantime.
                return false;
            }
        }

        @Override
        public void close() {
            loose.forEach(request -> change(request, EventRequest.SUSPEND_ALL));
            for (EventRequest request : paused) {
                try {
                    request.enable();
                } catch (InvalidRequestStateException e) {
                    // It was removed in the meantime.
                }
            }
        }
    }

    private List<Value> fitted(Method method, List<Value> given) throws ClassNotLoadedException, InvalidTypeException {
        List<String> types = method.argumentTypeNames();
        boolean isSpread = !fits(method, given, Phase.BOXED);
        int plain = isSpread ? types.size() - 1 : types.size();
        List<Value> arguments = new ArrayList<>();
        for (int n = 0; n < plain; n++) arguments.add(fitted(given.get(n), types.get(n)));
        if (isSpread) {
            List<Value> rest = new ArrayList<>();
            for (Value value : given.subList(plain, given.size())) rest.add(fitted(value, part(types.get(plain))));
            ArrayReference array = hold(((ArrayType) method.argumentTypes().get(plain)).newInstance(rest.size()));
            if (!rest.isEmpty()) array.setValues(rest);
            arguments.add(array);
        }
        return arguments;
    }

    private Value fitted(Value value, String type) {
        if (isPrimitive(type)) return primitive(type, value);
        return value instanceof PrimitiveValue ? boxed((PrimitiveValue) value) : value;
    }

    /** A value as a variable of this type takes it; what is too wide for that is refused, or cut where there is a cast. */
    Value assigned(Value value, String type, boolean isCast) {
        if (converts(value, type, Phase.BOXED)) return fitted(value, type);
        Value inside = unboxed(value);
        boolean isNumber = inside instanceof PrimitiveValue && !(inside instanceof BooleanValue);
        if (isNumber && isPrimitive(type) && !type.equals("boolean")) {
            PrimitiveValue number = (PrimitiveValue) inside;
            PrimitiveValue cut = primitive(type, number);
            boolean isShort = NARROW.contains(type) && widens(number.type().name(), "int");
            if (isCast || isShort && cut.intValue() == number.intValue()) return cut;
        }
        String what = value == null ? "null" : "a value of type " + typeName(value);
        throw new IllegalArgumentException(what + " cannot be assigned to what is of type " + type);
    }

    private static String told(ObjectReference exception) {
        String type = exception.referenceType().name();
        Field field = exception.referenceType().fieldByName("detailMessage");
        Value message = field == null ? null : exception.getValue(field);
        return message instanceof StringReference ? type + ": " + ((StringReference) message).value() : type;
    }

    // Values.

    /** A value as `+` with a text has it. */
    String text(Value value) {
        if (value == null) return "null";
        if (value instanceof StringReference) return ((StringReference) value).value();
        if (!(value instanceof ObjectReference)) return value.toString();
        if (value instanceof ArrayReference) return Shown.of(value);
        return text(call((ObjectReference) value, "toString", List.of()));
    }

    /** A number, in a box or not. */
    PrimitiveValue number(Value value) {
        Value inside = unboxed(value);
        if (inside instanceof PrimitiveValue && !(inside instanceof BooleanValue)) return (PrimitiveValue) inside;
        throw new IllegalArgumentException("expected a number, found a value of type " + typeName(value));
    }

    /** What a cast to a primitive type gives. */
    PrimitiveValue primitive(String type, Value value) {
        if (type.equals("boolean") && unboxed(value) instanceof BooleanValue) return (PrimitiveValue) unboxed(value);
        PrimitiveValue number = number(value);
        switch (type) {
            case "byte": return vm.mirrorOf(number.byteValue());
            case "short": return vm.mirrorOf(number.shortValue());
            case "char": return vm.mirrorOf(number.charValue());
            case "int": return vm.mirrorOf(number.intValue());
            case "long": return vm.mirrorOf(number.longValue());
            case "float": return vm.mirrorOf(number.floatValue());
            case "double": return vm.mirrorOf(number.doubleValue());
            default: throw new IllegalArgumentException("a " + typeName(value) + " cannot be cast to " + type);
        }
    }

    ObjectReference boxed(PrimitiveValue value) {
        String type = value.type().name();
        for (ReferenceType box : vm.classesByName(BOXES.get(type))) {
            for (Method method : box.methodsByName("valueOf")) {
                boolean isMeant = method.argumentTypeNames().equals(List.of(type));
                if (isMeant) return (ObjectReference) invoke(null, method, List.of(value));
            }
        }
        throw new IllegalArgumentException("cannot make an object of the " + type);
    }

    /** What is in a box; any other value as it is. */
    static Value unboxed(Value value) {
        if (!(value instanceof ObjectReference)) return value;
        ObjectReference object = (ObjectReference) value;
        if (!BOXES.containsValue(object.referenceType().name())) return value;
        return object.getValue(object.referenceType().fieldByName("value"));
    }

    private static String typeName(Value value) {
        return value == null ? "null" : value.type().name();
    }

    // Types.

    static boolean isPrimitive(String type) {
        return BOXES.containsKey(type);
    }

    /** The type of what an array has. */
    static String part(String array) {
        return array.endsWith("[]") ? array.substring(0, array.length() - 2) : array.replaceFirst("\\.\\.\\.$", "");
    }

    static boolean isSubtype(ReferenceType type, ReferenceType of) {
        if (type.equals(of) || of.name().equals("java.lang.Object")) return true;
        if (type instanceof ArrayType && of instanceof ArrayType) {
            try {
                com.sun.jdi.Type part = ((ArrayType) type).componentType();
                com.sun.jdi.Type other = ((ArrayType) of).componentType();
                return part instanceof ReferenceType && other instanceof ReferenceType
                    && isSubtype((ReferenceType) part, (ReferenceType) other);
            } catch (ClassNotLoadedException e) {
                return false;
            }
        }
        List<InterfaceType> above = new ArrayList<>();
        if (type instanceof ClassType) {
            ClassType base = ((ClassType) type).superclass();
            if (base != null && isSubtype(base, of)) return true;
            above = ((ClassType) type).interfaces();
        } else if (type instanceof InterfaceType) {
            above = ((InterfaceType) type).superinterfaces();
        }
        return above.stream().anyMatch(one -> isSubtype(one, of));
    }
}

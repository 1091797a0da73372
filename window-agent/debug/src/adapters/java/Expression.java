import com.sun.jdi.AbsentInformationException;
import com.sun.jdi.ArrayReference;
import com.sun.jdi.ArrayType;
import com.sun.jdi.BooleanValue;
import com.sun.jdi.ClassLoaderReference;
import com.sun.jdi.ClassNotLoadedException;
import com.sun.jdi.ClassObjectReference;
import com.sun.jdi.ClassType;
import com.sun.jdi.DoubleValue;
import com.sun.jdi.Field;
import com.sun.jdi.FloatValue;
import com.sun.jdi.InvalidTypeException;
import com.sun.jdi.LocalVariable;
import com.sun.jdi.LongValue;
import com.sun.jdi.ObjectReference;
import com.sun.jdi.PrimitiveValue;
import com.sun.jdi.ReferenceType;
import com.sun.jdi.StringReference;
import com.sun.jdi.ThreadReference;
import com.sun.jdi.Value;
import com.sun.jdi.VirtualMachine;

import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Locale;
import java.util.Set;
import java.util.function.Supplier;
import java.util.stream.Collectors;

/**
 * Works out an expression of Java in a frame of a stopped thread, as Java would.
 *
 * It has the operators, casts, calls, assignments and names of Java, and makes objects and arrays, but no lambdas. The
 * right side of `&&` and `||`, and what `?:` does not choose, is read and not worked out. A value has the type that it
 * has now, not the one that it is declared with.
 */
final class Expression {
    /** Where classes are looked for that the program has not loaded, after its own. */
    private static final List<String> OFTEN =
        List.of("java.util.stream", "java.util.function", "java.time", "java.math", "java.io", "java.nio.file");
    /** What binds least comes first. */
    private static final String[][] LEVELS = {
        {"||"}, {"&&"}, {"|"}, {"^"}, {"&"}, {"==", "!="}, {"<", ">", "<=", ">=", "instanceof"},
        {"<<", ">>", ">>>"}, {"+", "-"}, {"*", "/", "%"},
    };
    private static final String[] ASSIGNMENTS =
        {"=", "+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=", "<<=", ">>=", ">>>="};
    private static final String[] STEPS = {"++", "--"};

    /** What changes a variable. */
    private interface Write {
        void of(Value value) throws InvalidTypeException, ClassNotLoadedException;
    }

    /** A variable, a field or an element. */
    private static final class Place {
        final String type;
        final Supplier<Value> read;
        final Write write;

        Place(String type, Supplier<Value> read, Write write) {
            this.type = type;
            this.read = read;
            this.write = write;
        }
    }

    private final Tokens tokens;
    /** What was read last, and the tokens that name it, from one to before another. */
    private Place place;
    private int placeFrom;
    private int placeEnd;
    /** Who asks whether something is true does not want it changed. */
    private boolean mayAssign = true;
    /** False in a part that is read only. */
    private boolean isLive = true;
    private final VirtualMachine vm;
    private final Frame frame;
    private final Calls calls;
    /** Texts of the expression's own. */
    private final Set<Long> literals = new HashSet<>();

    Expression(String source, ThreadReference thread, Frame frame) {
        this.vm = thread.virtualMachine();
        this.frame = frame;
        this.calls = new Calls(thread);
        this.tokens = new Tokens(source);
    }

    /** The value; `null` is Java's. */
    Value evaluate() {
        try {
            Value value = assignment();
            if (tokens.peek().kind != Tokens.Kind.END) throw Tokens.unreadable(tokens.peek().text);
            return value;
        } finally {
            calls.release();
        }
    }

    /** The value of a condition. */
    boolean isTrue() {
        mayAssign = false;
        return truth(evaluate());
    }

    // Reading.

    private Value assignment() {
        int from = tokens.next();
        Value value = conditional();
        int end = tokens.next();
        String sign = tokens.takeOneOf(ASSIGNMENTS);
        if (sign == null) return value;
        Place to = target(from, end, sign);
        Value right = assignment();
        return isLive ? store(to, sign.substring(0, sign.length() - 1), value, right) : null;
    }

    /** What these tokens name, for it to be changed. */
    private Place target(int from, int end, String sign) {
        if (!mayAssign) throw new IllegalArgumentException("a condition cannot change anything; compare with `==`");
        boolean isPlace = place != null && placeFrom == from && placeEnd == end;
        if (isLive && !isPlace) {
            throw new IllegalArgumentException("`" + sign + "` can change a variable, a field or an element, and nothing else");
        }
        return place;
    }

    private Value store(Place to, String operator, Value before, Value right) {
        boolean isText = operator.equals("+") && to.type.equals("java.lang.String");
        Value result = isText ? joined(before, right) : right;
        if (operator.isEmpty()) {
            result = right instanceof StringReference ? interned(right) : right;
        } else if (!isText) {
            result = operation(operator, before, right);
        }
        Value fitting = calls.assigned(result, to.type, !operator.isEmpty());
        try {
            to.write.of(fitting);
        } catch (InvalidTypeException | ClassNotLoadedException e) {
            throw new IllegalArgumentException("it cannot be assigned: " + e.getMessage());
        }
        return fitting;
    }

    private Value read(Place from, int firstToken) {
        Value value = from.read.get();
        place = from;
        placeFrom = firstToken;
        placeEnd = tokens.next();
        return value;
    }

    private Value conditional() {
        Value condition = binary(0);
        if (!tokens.take("?")) return condition;
        boolean isTrue = isLive && truth(condition);
        Value first = part(isTrue, this::assignment);
        tokens.expect(":");
        Value second = part(!isTrue, this::conditional);
        return isTrue ? first : second;
    }

    private Value part(boolean isChosen, Supplier<Value> read) {
        boolean before = isLive;
        isLive = before && isChosen;
        try {
            return read.get();
        } finally {
            isLive = before;
        }
    }

    private Value binary(int level) {
        if (level == LEVELS.length) return unary();
        Value left = binary(level + 1);
        while (true) {
            String sign = tokens.takeOneOf(LEVELS[level]);
            if (sign == null) return left;
            if (sign.equals("instanceof")) {
                String type = tokens.type();
                if (type == null) throw Tokens.unreadable(tokens.peek().text);
                left = isLive ? vm.mirrorOf(isInstance(left, type)) : null;
            } else if (sign.equals("||") || sign.equals("&&")) {
                boolean isDecided = isLive && truth(left) == sign.equals("||");
                Value right = part(!isDecided, () -> binary(level + 1));
                if (isLive) left = vm.mirrorOf(isDecided ? sign.equals("||") : truth(right));
            } else {
                Value right = binary(level + 1);
                left = isLive ? operation(sign, left, right) : null;
            }
        }
    }

    private Value unary() {
        if (tokens.take("!")) {
            Value value = unary();
            return isLive ? vm.mirrorOf(!truth(value)) : null;
        }
        if (tokens.take("-")) {
            // The least number has no positive counterpart.
            if (tokens.peek().kind == Tokens.Kind.NUMBER) return members(number("-" + tokens.advance().text), tokens.next());
            Value value = unary();
            return isLive ? negated(calls.number(value)) : null;
        }
        if (tokens.take("+")) {
            Value value = unary();
            return isLive ? operation("+", vm.mirrorOf(0), calls.number(value)) : null;
        }
        if (tokens.take("~")) {
            Value value = unary();
            return isLive ? operation("^", vm.mirrorOf(-1), value) : null;
        }
        String step = tokens.takeOneOf(STEPS);
        if (step != null) {
            int from = tokens.next();
            Value value = unary();
            Place to = target(from, tokens.next(), step);
            return isLive ? store(to, step.substring(1), value, vm.mirrorOf(1)) : null;
        }
        String type = tokens.castType();
        if (type == null) return postfix();
        Value value = unary();
        return isLive ? cast(type, value) : null;
    }

    private Value postfix() {
        int from = tokens.next();
        Value value = members(primary(), from);
        int end = tokens.next();
        String step = tokens.takeOneOf(STEPS);
        if (step == null) return value;
        Place to = target(from, end, step);
        if (isLive) store(to, step.substring(1), value, vm.mirrorOf(1));
        return value;
    }

    private Value members(Value of, int from) {
        Value value = of;
        while (true) {
            if (tokens.take(".")) {
                String name = tokens.name();
                if (tokens.at("(")) {
                    List<Value> arguments = arguments();
                    value = isLive ? calls.call(object(value, name + "()"), name, arguments) : null;
                } else {
                    value = isLive ? field(value, name, from) : null;
                }
            } else if (tokens.take("[")) {
                Value index = assignment();
                tokens.expect("]");
                value = isLive ? read(element(value, index), from) : null;
            } else {
                return value;
            }
        }
    }

    private Value primary() {
        Tokens.Token token = tokens.advance();
        switch (token.kind) {
            case NUMBER:
                return number(token.text);
            case TEXT:
                return isLive ? literal(Tokens.unescaped(token.text)) : null;
            case CHAR:
                return vm.mirrorOf(Tokens.unescaped(token.text).charAt(0));
            case NAME:
                return named(token.text);
            default:
                if (!token.is("(")) throw Tokens.unreadable(token.text);
                Value value = assignment();
                tokens.expect(")");
                return value;
        }
    }

    private Value named(String name) {
        int from = tokens.next() - 1;
        switch (name) {
            case "true":
            case "false":
                return vm.mirrorOf(name.equals("true"));
            case "null":
                return null;
            case "this":
                return isLive ? self() : null;
            case "new":
                return created();
            case "super":
                return above();
            default:
        }
        if (tokens.at("(")) {
            List<Value> arguments = arguments();
            return isLive ? own(name, arguments) : null;
        }
        if (!isLive) return null;
        Place variable = variable(name);
        if (variable != null) return read(variable, from);
        ReferenceType type = typeHere(name);
        if (type == null) throw unknown(name, "no variable here, and no class, has this name");
        return ofClass(type, from);
    }

    private static IllegalArgumentException unknown(String name, String why) {
        String hint = Character.isUpperCase(name.charAt(0)) ? "; write a class with its package" : "";
        return new IllegalArgumentException("cannot find `" + name + "`: " + why + hint);
    }

    private Value created() {
        String name = tokens.type();
        if (name == null) throw Tokens.unreadable(tokens.peek().text);
        if (tokens.at("{") && name.endsWith("[]")) return listed(name);
        if (tokens.at("[")) return sized(name);
        List<Value> arguments = arguments();
        if (!isLive) return null;
        ReferenceType type = typeNamed(name, true);
        if (type == null) throw unknown(name, "no class has this name");
        return calls.create(type, arguments);
    }

    /** An array of this type with all that it has, in braces. */
    private Value listed(String type) {
        String part = Calls.part(type);
        List<Value> values = new ArrayList<>();
        tokens.expect("{");
        while (!tokens.at("}")) {
            values.add(tokens.at("{") && part.endsWith("[]") ? listed(part) : assignment());
            if (!tokens.take(",")) break;
        }
        tokens.expect("}");
        if (!isLive) return null;
        ArrayReference array = calls.array(classOf(part), values.size());
        for (int n = 0; n < values.size(); n++) put(array, n, calls.assigned(values.get(n), part(array), false));
        return array;
    }

    /** An array of so many of this type, or of arrays of them. */
    private Value sized(String of) {
        List<Value> sizes = new ArrayList<>();
        StringBuilder type = new StringBuilder(of);
        while (!tokens.at("[]") && tokens.take("[")) {
            sizes.add(assignment());
            tokens.expect("]");
            type.append("[]");
        }
        while (tokens.take("[]")) type.append("[]");
        return isLive ? sized(type.toString(), sizes) : null;
    }

    private ArrayReference sized(String type, List<Value> sizes) {
        String part = Calls.part(type);
        ArrayReference array = calls.array(classOf(part), calls.number(sizes.get(0)).intValue());
        List<Value> more = sizes.subList(1, sizes.size());
        for (int n = 0; !more.isEmpty() && n < array.length(); n++) put(array, n, sized(part, more));
        return array;
    }

    private ClassObjectReference classOf(String type) {
        if (type.endsWith("[]")) return calls.array(classOf(Calls.part(type)), 0).referenceType().classObject();
        if (Calls.isPrimitive(type)) return calls.classOf(type);
        ReferenceType known = typeNamed(type, true);
        if (known == null) throw unknown(type, "no class has this name");
        return known.classObject();
    }

    private static String part(ArrayReference array) {
        return ((ArrayType) array.referenceType()).componentTypeName();
    }

    private static void put(ArrayReference array, int at, Value value) {
        try {
            array.setValue(at, value);
        } catch (InvalidTypeException | ClassNotLoadedException e) {
            throw new IllegalArgumentException("it cannot be an element: " + e.getMessage());
        }
    }

    /** What the class above this one has. */
    private Value above() {
        tokens.expect(".");
        String name = tokens.name();
        ReferenceType own = frame.location().declaringType();
        ReferenceType above = own instanceof ClassType ? ((ClassType) own).superclass() : null;
        if (above == null) throw new IllegalArgumentException("there is no `super` here");
        if (tokens.at("(")) {
            List<Value> arguments = arguments();
            return isLive ? calls.callAbove(self(), above, name, arguments) : null;
        }
        if (!isLive) return null;
        Field field = above.fieldByName(name);
        if (field == null) throw new IllegalArgumentException(above.name() + " has no field `" + name + "`");
        return field.isStatic() ? calls.ofClass(above, field) : self().getValue(field);
    }

    private List<Value> arguments() {
        List<Value> arguments = new ArrayList<>();
        tokens.expect("(");
        if (tokens.take(")")) return arguments;
        do {
            arguments.add(assignment());
        } while (tokens.take(","));
        tokens.expect(")");
        return arguments;
    }

    // Literals.

    private Value number(String written) {
        String text = written.replace("_", "").toLowerCase(Locale.ROOT);
        boolean isHex = text.startsWith("0x") || text.startsWith("-0x");
        char last = text.charAt(text.length() - 1);
        if (!isHex && last == 'f') return vm.mirrorOf(Float.parseFloat(text));
        if (!isHex && (last == 'd' || text.contains(".") || text.contains("e"))) {
            return vm.mirrorOf(Double.parseDouble(text));
        }
        boolean isLong = last == 'l';
        String digits = isLong ? text.substring(0, text.length() - 1) : text;
        boolean isNegative = digits.startsWith("-");
        String positive = isNegative ? digits.substring(1) : digits;
        int base = 10;
        if (positive.startsWith("0x") || positive.startsWith("0b")) {
            base = positive.charAt(1) == 'x' ? 16 : 2;
            positive = positive.substring(2);
        } else if (positive.length() > 1 && positive.startsWith("0")) {
            base = 8;
        }
        try {
            if (base == 10) {
                return isLong ? vm.mirrorOf(Long.parseLong(digits)) : vm.mirrorOf(Integer.parseInt(digits));
            }
            long bits = isLong ? Long.parseUnsignedLong(positive, base) : Integer.parseUnsignedInt(positive, base);
            long value = isNegative ? -bits : bits;
            return isLong ? vm.mirrorOf(value) : vm.mirrorOf((int) value);
        } catch (NumberFormatException e) {
            throw new IllegalArgumentException("the number " + written + " is too large");
        }
    }

    private Value literal(String text) {
        StringReference literal = calls.hold(vm.mirrorOf(text));
        literals.add(literal.uniqueID());
        return literal;
    }

    // Names.

    private ObjectReference self() {
        ObjectReference self = frame.thisObject();
        if (self == null) throw new IllegalArgumentException("there is no `this` in a static method");
        return self;
    }

    /** A variable, a field, or what a local class was given; `null` when there is none. */
    private Place variable(String name) {
        try {
            LocalVariable local = frame.visibleVariableByName(name);
            if (local != null) {
                return new Place(local.typeName(), () -> frame.getValue(local), value -> frame.setValue(local, value));
            }
        } catch (AbsentInformationException e) {
            // Compiled without -g: there are fields still.
        }
        for (ObjectReference object = frame.thisObject(); object != null; object = outer(object)) {
            for (String written : new String[] {name, "val$" + name}) {
                Field field = object.referenceType().fieldByName(written);
                if (field != null) return of(object, field);
            }
        }
        for (ReferenceType type : enclosing()) {
            Field field = type.fieldByName(name);
            if (field != null && field.isStatic()) return of(type, field);
        }
        return null;
    }

    private static Place of(ObjectReference object, Field field) {
        return new Place(field.typeName(), () -> object.getValue(field), value -> {
            expectChangeable(field);
            object.setValue(field, value);
        });
    }

    private Place of(ReferenceType type, Field field) {
        return new Place(field.typeName(), () -> calls.ofClass(type, field), value -> {
            expectChangeable(field);
            ((ClassType) field.declaringType()).setValue(field, value);
        });
    }

    /** What is final may be known to be so wherever it is read. */
    private static void expectChangeable(Field field) {
        if (field.isFinal()) throw new IllegalArgumentException("`" + field.name() + "` is final");
    }

    /** The object in which an object of an inner class lives. */
    private static ObjectReference outer(ObjectReference object) {
        for (Field field : object.referenceType().fields()) {
            if (field.name().startsWith("this$")) return (ObjectReference) object.getValue(field);
        }
        return null;
    }

    /** The class of the frame's method, and those around it. */
    private List<ReferenceType> enclosing() {
        List<ReferenceType> types = new ArrayList<>();
        ReferenceType type = frame.location().declaringType();
        types.add(type);
        String name = type.name();
        for (int at = name.lastIndexOf('$'); at > 0; at = name.lastIndexOf('$', at - 1)) {
            types.addAll(vm.classesByName(name.substring(0, at)));
        }
        return types;
    }

    private Value own(String name, List<Value> arguments) {
        for (ObjectReference object = frame.thisObject(); object != null; object = outer(object)) {
            if (!object.referenceType().methodsByName(name).isEmpty()) return calls.call(object, name, arguments);
        }
        for (ReferenceType type : enclosing()) {
            if (!type.methodsByName(name).isEmpty()) return calls.call(type, name, arguments);
        }
        throw new IllegalArgumentException("cannot find the method `" + name + "`");
    }

    /** The class that the names from here on mean; nothing more is taken when they mean none. */
    private ReferenceType typeHere(String first) {
        int before = tokens.next();
        StringBuilder name = new StringBuilder(first);
        while (true) {
            // What begins with a small letter may be any mistake, for which nothing is to run in the program.
            boolean isClass = Character.isUpperCase(name.charAt(name.lastIndexOf(".") + 1));
            ReferenceType type = typeNamed(name.toString(), isClass);
            if (type != null) return type;
            if (!tokens.takesMember()) break;
            name.append('.').append(tokens.advance().text);
        }
        tokens.backTo(before);
        return null;
    }

    /** A class by the name that it has here; of what is not known here, any class that is loaded will do. */
    private ReferenceType typeNamed(String name, boolean mayLoad) {
        List<String> full = new ArrayList<>(List.of(name));
        for (ReferenceType type : enclosing()) full.add(type.name() + "$" + name);
        List<String> imported = mayLoad ? Imports.named(name, enclosing()) : List.of();
        if (imported.size() == 1) {
            full.addAll(imported);
            ReferenceType only = known(full);
            if (only != null) return only;
        }
        String own = frame.location().declaringType().name();
        full.add(own.substring(0, own.lastIndexOf('.') + 1) + name);
        full.add("java.lang." + name);
        full.add("java.util." + name);
        // Two of one name: one of them is written with its package.
        full.addAll(imported);
        ReferenceType meant = mayLoad ? known(full) : loaded(full);
        if (meant != null) return meant;
        ReferenceType any = null;
        for (ReferenceType type : vm.allClasses()) {
            boolean isMeant = type.name().endsWith("." + name) || type.name().endsWith("$" + name);
            if (isMeant && type.classLoader() != null) return type;
            if (isMeant && any == null) any = type;
        }
        if (any != null || !mayLoad) return any;
        return load(OFTEN.stream().map(pack -> pack + "." + name).collect(Collectors.toList()));
    }

    private ReferenceType known(List<String> names) {
        ReferenceType found = loaded(names);
        return found == null ? load(names) : found;
    }

    private ReferenceType load(List<String> names) {
        ClassLoaderReference loader = frame.location().declaringType().classLoader();
        for (String name : names) {
            for (String written : spellings(name)) {
                ReferenceType found = calls.load(written, loader);
                if (found != null) return found;
            }
        }
        return null;
    }

    /** By their whole names. */
    private ReferenceType loaded(List<String> names) {
        for (String name : names) {
            for (String written : spellings(name)) {
                List<ReferenceType> found = vm.classesByName(written);
                if (!found.isEmpty()) return found.get(0);
            }
        }
        return null;
    }

    /** Classes in classes may be written with dots: what the name can be. */
    private static List<String> spellings(String name) {
        List<String> all = new ArrayList<>();
        StringBuilder written = new StringBuilder(name);
        for (int at = name.length(); at > 0; at = name.lastIndexOf('.', at - 1)) {
            if (at < name.length()) written.setCharAt(at, '$');
            all.add(written.toString());
        }
        return all;
    }

    private Value ofClass(ReferenceType of, int from) {
        ReferenceType type = of;
        while (true) {
            tokens.expect(".");
            String name = tokens.name();
            if (name.equals("class")) return type.classObject();
            if (name.equals("this")) return outer(type);
            if (tokens.at("(")) return calls.call(type, name, arguments());
            Field field = type.fieldByName(name);
            if (field != null && field.isStatic()) return read(of(type, field), from);
            String full = type.name() + "$" + name;
            List<ReferenceType> known = vm.classesByName(full);
            ReferenceType inner = known.isEmpty() ? calls.load(full, type.classLoader()) : known.get(0);
            if (inner == null) throw new IllegalArgumentException(type.name() + " has no static `" + name + "`");
            type = inner;
        }
    }

    private Value outer(ReferenceType type) {
        for (ObjectReference object = self(); object != null; object = outer(object)) {
            if (Calls.isSubtype(object.referenceType(), type)) return object;
        }
        throw new IllegalArgumentException("there is no `this` of " + type.name() + " here");
    }

    // Values.

    private static ObjectReference object(Value value, String member) {
        if (value == null) throw new IllegalArgumentException("`" + member + "` of null");
        if (value instanceof ObjectReference) return (ObjectReference) value;
        throw new IllegalArgumentException("`" + member + "` of a value of type " + value.type().name());
    }

    private Value field(Value of, String name, int from) {
        ObjectReference object = object(of, name);
        if (object instanceof ArrayReference && name.equals("length")) {
            return vm.mirrorOf(((ArrayReference) object).length());
        }
        Field field = object.referenceType().fieldByName(name);
        if (field != null) return read(of(object, field), from);
        throw new IllegalArgumentException(object.referenceType().name() + " has no field `" + name + "`");
    }

    private Place element(Value of, Value index) {
        if (!(of instanceof ArrayReference)) throw new IllegalArgumentException("[] of what is not an array");
        ArrayReference array = (ArrayReference) of;
        int at = calls.number(index).intValue();
        if (at >= 0 && at < array.length()) {
            return new Place(part(array), () -> array.getValue(at), value -> array.setValue(at, value));
        }
        throw new IllegalArgumentException("index " + at + " is out of bounds: the array has " + array.length());
    }

    private static boolean truth(Value value) {
        Value inside = Calls.unboxed(value);
        if (inside instanceof BooleanValue) return ((BooleanValue) inside).value();
        String type = value == null ? "null" : value.type().name();
        throw new IllegalArgumentException("expected true or false, found a value of type " + type);
    }

    private boolean isInstance(Value value, String type) {
        ReferenceType wanted = typeNamed(type, false);
        // Of a class that is not loaded there is no object.
        return value instanceof ObjectReference && wanted != null
            && Calls.isSubtype(((ObjectReference) value).referenceType(), wanted);
    }

    private Value cast(String type, Value value) {
        if (Calls.isPrimitive(type)) return calls.primitive(type, value);
        if (value == null) return null;
        boolean isPrimitive = value instanceof PrimitiveValue;
        ObjectReference object = isPrimitive ? calls.boxed((PrimitiveValue) value) : (ObjectReference) value;
        if (isInstance(object, type)) return object;
        throw new IllegalArgumentException("a " + object.referenceType().name() + " cannot be cast to " + type);
    }

    private Value operation(String sign, Value left, Value right) {
        if (sign.equals("==") || sign.equals("!=")) return vm.mirrorOf(isSame(left, right) == sign.equals("=="));
        if (sign.equals("+") && (left instanceof StringReference || right instanceof StringReference)) {
            return joined(left, right);
        }
        Value a = Calls.unboxed(left);
        Value b = Calls.unboxed(right);
        if (a instanceof BooleanValue && b instanceof BooleanValue) {
            boolean first = ((BooleanValue) a).value();
            boolean second = ((BooleanValue) b).value();
            switch (sign) {
                case "&": return vm.mirrorOf(first & second);
                case "|": return vm.mirrorOf(first | second);
                case "^": return vm.mirrorOf(first ^ second);
                default: throw new IllegalArgumentException("`" + sign + "` needs numbers");
            }
        }
        PrimitiveValue first = calls.number(a);
        PrimitiveValue second = calls.number(b);
        boolean isShift = sign.equals("<<") || sign.startsWith(">>");
        try {
            boolean isDouble = first instanceof DoubleValue || second instanceof DoubleValue;
            if (isDouble || first instanceof FloatValue || second instanceof FloatValue) {
                return ofReals(sign, first.doubleValue(), second.doubleValue(), isDouble);
            }
            boolean isLong = first instanceof LongValue || !isShift && second instanceof LongValue;
            return ofIntegers(sign, first.longValue(), second.longValue(), isLong);
        } catch (ArithmeticException e) {
            throw new IllegalArgumentException("division by zero");
        }
    }

    private Value joined(Value left, Value right) {
        return calls.hold(vm.mirrorOf(calls.text(left) + calls.text(right)));
    }

    private Value negated(PrimitiveValue number) {
        if (number instanceof DoubleValue) return vm.mirrorOf(-number.doubleValue());
        if (number instanceof FloatValue) return vm.mirrorOf(-number.floatValue());
        if (number instanceof LongValue) return vm.mirrorOf(-number.longValue());
        return vm.mirrorOf(-number.intValue());
    }

    private boolean isSame(Value left, Value right) {
        if (left == null || right == null) return left == right;
        if (left instanceof ObjectReference && right instanceof ObjectReference) {
            return interned(left).equals(interned(right));
        }
        Value a = Calls.unboxed(left);
        Value b = Calls.unboxed(right);
        if (a instanceof BooleanValue && b instanceof BooleanValue) return a.equals(b);
        return ((BooleanValue) operation("<=", a, b)).value() && ((BooleanValue) operation(">=", a, b)).value();
    }

    /** Java has one object for all literals of a text. */
    private Value interned(Value value) {
        boolean isLiteral = literals.contains(((ObjectReference) value).uniqueID());
        return isLiteral ? calls.call((ObjectReference) value, "intern", List.of()) : value;
    }

    /** What floats give is exact in a double until it is rounded, also by `%`. */
    private Value ofReals(String sign, double a, double b, boolean isDouble) {
        double result;
        switch (sign) {
            case "+": result = a + b; break;
            case "-": result = a - b; break;
            case "*": result = a * b; break;
            case "/": result = a / b; break;
            case "%": result = a % b; break;
            default: return order(sign, a < b, a > b, a == b);
        }
        return isDouble ? vm.mirrorOf(result) : vm.mirrorOf((float) result);
    }

    /** The lower half of a result is what ints give. */
    private Value ofIntegers(String sign, long a, long b, boolean isLong) {
        long distance = isLong ? b : b & (Integer.SIZE - 1);
        long result;
        switch (sign) {
            case "+": result = a + b; break;
            case "-": result = a - b; break;
            case "*": result = a * b; break;
            case "/": result = a / b; break;
            case "%": result = a % b; break;
            case "&": result = a & b; break;
            case "|": result = a | b; break;
            case "^": result = a ^ b; break;
            case "<<": result = a << distance; break;
            case ">>": result = a >> distance; break;
            case ">>>": result = (isLong ? a : Integer.toUnsignedLong((int) a)) >>> distance; break;
            default: return order(sign, a < b, a > b, a == b);
        }
        return isLong ? vm.mirrorOf(result) : vm.mirrorOf((int) result);
    }

    private Value order(String sign, boolean isLess, boolean isMore, boolean isEqual) {
        switch (sign) {
            case "<": return vm.mirrorOf(isLess);
            case ">": return vm.mirrorOf(isMore);
            case "<=": return vm.mirrorOf(isLess || isEqual);
            case ">=": return vm.mirrorOf(isMore || isEqual);
            default: throw new IllegalArgumentException("`" + sign + "` needs whole numbers");
        }
    }
}

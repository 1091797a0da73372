import com.sun.jdi.AbsentInformationException;
import com.sun.jdi.ArrayReference;
import com.sun.jdi.BooleanValue;
import com.sun.jdi.ClassLoaderReference;
import com.sun.jdi.DoubleValue;
import com.sun.jdi.Field;
import com.sun.jdi.FloatValue;
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
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Collectors;

/**
 * Works out an expression of Java in a frame of a stopped thread, as Java would.
 *
 * It has the operators, casts, calls and names of Java, but nothing that makes or changes something by itself: no
 * assignments, no arrays, no lambdas. The right side of `&&` and `||`, and what `?:` does not choose, is read and not
 * worked out. A value has the type that it has now, not the one that it is declared with.
 */
final class Expression {
    private enum Kind { TEXT, CHAR, NUMBER, NAME, SIGN, END }

    private static final class Token {
        final Kind kind;
        final String text;

        Token(Kind kind, String text) {
            this.kind = kind;
            this.text = text;
        }

        boolean is(String sign) {
            return (kind == Kind.SIGN || kind == Kind.NAME) && text.equals(sign);
        }
    }

    private static final Pattern TOKEN = Pattern.compile(
        "(?<text>\"(?:\\\\.|[^\"\\\\])*\")"
            + "|(?<char>'(?:\\\\u+[0-9a-fA-F]{4}|\\\\.|[^'\\\\])')"
            + "|(?<number>0[xX][0-9a-fA-F_]+[lL]?|0[bB][01_]+[lL]?"
            + "|(?:[0-9][0-9_]*\\.?[0-9_]*|\\.[0-9][0-9_]*)(?:[eE][-+]?[0-9]+)?[lLfFdD]?)"
            + "|(?<name>\\p{javaJavaIdentifierStart}\\p{javaJavaIdentifierPart}*)"
            + "|(?<sign>>>>|<<|>>|<=|>=|==|!=|&&|\\|\\||[-+*/%<>!~&|^?:.,()\\[\\]])");
    /** Where classes are looked for that the program has not loaded, after its own. */
    private static final List<String> OFTEN =
        List.of("java.util.stream", "java.util.function", "java.time", "java.math", "java.io", "java.nio.file");
    /** What binds least comes first. */
    private static final String[][] LEVELS = {
        {"||"}, {"&&"}, {"|"}, {"^"}, {"&"}, {"==", "!="}, {"<", ">", "<=", ">=", "instanceof"},
        {"<<", ">>", ">>>"}, {"+", "-"}, {"*", "/", "%"},
    };
    /** Names that are none. */
    private static final Set<String> WORDS = Set.of("true", "false", "null", "this", "super", "instanceof", "new");

    private final List<Token> tokens = new ArrayList<>();
    private int next;
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
        Matcher matcher = TOKEN.matcher(source);
        int at = 0;
        while (at < source.length()) {
            if (Character.isWhitespace(source.charAt(at))) {
                at++;
                continue;
            }
            matcher.region(at, source.length());
            if (!matcher.lookingAt()) throw unreadable(source.substring(at, at + 1));
            for (Kind kind : Kind.values()) {
                String text = kind == Kind.END ? null : matcher.group(kind.name().toLowerCase(Locale.ROOT));
                if (text != null) tokens.add(new Token(kind, text));
            }
            at = matcher.end();
        }
        tokens.add(new Token(Kind.END, "the end"));
    }

    /** The value; `null` is Java's. */
    Value evaluate() {
        try {
            Value value = conditional();
            if (peek().kind != Kind.END) throw unreadable(peek().text);
            return value;
        } finally {
            calls.release();
        }
    }

    /** The value of a condition. */
    boolean isTrue() {
        return truth(evaluate());
    }

    // Reading.

    private Value conditional() {
        Value condition = binary(0);
        if (!take("?")) return condition;
        boolean isTrue = isLive && truth(condition);
        Value first = part(isTrue, this::conditional);
        expect(":");
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
            String sign = takeOneOf(LEVELS[level]);
            if (sign == null) return left;
            if (sign.equals("instanceof")) {
                String type = type();
                if (type == null) throw unreadable(peek().text);
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
        if (take("!")) {
            Value value = unary();
            return isLive ? vm.mirrorOf(!truth(value)) : null;
        }
        if (take("-")) {
            // The least number has no positive counterpart.
            if (peek().kind == Kind.NUMBER) return members(number("-" + advance().text));
            Value value = unary();
            return isLive ? negated(calls.number(value)) : null;
        }
        if (take("+")) {
            Value value = unary();
            return isLive ? operation("+", vm.mirrorOf(0), calls.number(value)) : null;
        }
        if (take("~")) {
            Value value = unary();
            return isLive ? operation("^", vm.mirrorOf(-1), value) : null;
        }
        String type = castType();
        if (type == null) return members(primary());
        Value value = unary();
        return isLive ? cast(type, value) : null;
    }

    private Value members(Value of) {
        Value value = of;
        while (true) {
            if (take(".")) {
                String name = name();
                if (at("(")) {
                    List<Value> arguments = arguments();
                    value = isLive ? calls.call(object(value, name + "()"), name, arguments) : null;
                } else {
                    value = isLive ? field(value, name) : null;
                }
            } else if (take("[")) {
                Value index = conditional();
                expect("]");
                value = isLive ? element(value, index) : null;
            } else {
                return value;
            }
        }
    }

    private Value primary() {
        Token token = advance();
        switch (token.kind) {
            case NUMBER:
                return number(token.text);
            case TEXT:
                return isLive ? literal(unescaped(token.text)) : null;
            case CHAR:
                return vm.mirrorOf(unescaped(token.text).charAt(0));
            case NAME:
                return named(token.text);
            default:
                if (!token.is("(")) throw unreadable(token.text);
                Value value = conditional();
                expect(")");
                return value;
        }
    }

    private Value named(String name) {
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
                throw new IllegalArgumentException("`" + name + "` is not supported in an expression");
            default:
        }
        if (at("(")) {
            List<Value> arguments = arguments();
            return isLive ? own(name, arguments) : null;
        }
        if (!isLive) return null;
        Supplier<Value> variable = variable(name);
        if (variable != null) return variable.get();
        ReferenceType type = typeHere(name);
        if (type == null) throw unknown(name, "no variable here, and no class, has this name");
        return ofClass(type);
    }

    private static IllegalArgumentException unknown(String name, String why) {
        String hint = Character.isUpperCase(name.charAt(0)) ? "; write a class with its package" : "";
        return new IllegalArgumentException("cannot find `" + name + "`: " + why + hint);
    }

    private Value created() {
        String name = type();
        if (name == null) throw unreadable(peek().text);
        if (!at("(")) throw new IllegalArgumentException("`new` of an array is not supported in an expression");
        List<Value> arguments = arguments();
        if (!isLive) return null;
        ReferenceType type = typeNamed(name, true);
        if (type == null) throw unknown(name, "no class has this name");
        return calls.create(type, arguments);
    }

    private List<Value> arguments() {
        List<Value> arguments = new ArrayList<>();
        expect("(");
        if (take(")")) return arguments;
        do {
            arguments.add(conditional());
        } while (take(","));
        expect(")");
        return arguments;
    }

    /** A type in parentheses, before what it is for; else nothing is taken. */
    private String castType() {
        int before = next;
        if (take("(")) {
            String type = type();
            if (type != null && take(")") && (Calls.isPrimitive(type) || isOperand(peek()))) return type;
        }
        next = before;
        return null;
    }

    private static boolean isOperand(Token token) {
        boolean isSign = token.kind == Kind.SIGN || token.kind == Kind.END;
        return isSign ? "(!~".contains(token.text) : !token.is("instanceof");
    }

    /** A type without what it is of; `null` where none stands. */
    private String type() {
        if (peek().kind != Kind.NAME || WORDS.contains(peek().text)) return null;
        StringBuilder type = new StringBuilder(advance().text);
        while (at(".") && tokens.get(next + 1).kind == Kind.NAME) {
            next++;
            type.append('.').append(advance().text);
        }
        if (at("<") && !passTypeArguments()) return null;
        while (at("[") && tokens.get(next + 1).is("]")) {
            next += 2;
            type.append("[]");
        }
        return type.toString();
    }

    private boolean passTypeArguments() {
        int depth = 0;
        do {
            Token token = advance();
            if (token.is("<")) {
                depth++;
            } else if (token.kind == Kind.SIGN && token.text.startsWith(">")) {
                depth -= token.text.length();
            } else if (token.kind != Kind.NAME && !(token.kind == Kind.SIGN && ",.?[]&".contains(token.text))) {
                return false;
            }
        } while (depth > 0);
        return depth == 0;
    }

    private Token peek() {
        return tokens.get(next);
    }

    private Token advance() {
        Token token = tokens.get(next);
        if (token.kind != Kind.END) next++;
        return token;
    }

    private boolean at(String sign) {
        return peek().is(sign);
    }

    private boolean take(String sign) {
        if (!at(sign)) return false;
        next++;
        return true;
    }

    private String takeOneOf(String[] signs) {
        for (String sign : signs) {
            if (take(sign)) return sign;
        }
        return null;
    }

    private void expect(String sign) {
        if (!take(sign)) throw new IllegalArgumentException("expected `" + sign + "`, found `" + peek().text + "`");
    }

    private String name() {
        if (peek().kind != Kind.NAME) throw unreadable(peek().text);
        return advance().text;
    }

    private static IllegalArgumentException unreadable(String text) {
        String why = text.equals("=") ? "an expression cannot assign" : "unexpected `" + text + "`";
        return new IllegalArgumentException(why);
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

    private static String unescaped(String quoted) {
        StringBuilder text = new StringBuilder();
        for (int at = 1; at < quoted.length() - 1; at++) {
            char next = quoted.charAt(at);
            if (next != '\\') {
                text.append(next);
                continue;
            }
            char escaped = quoted.charAt(++at);
            int plain = "btnfrs".indexOf(escaped);
            if (plain >= 0) {
                text.append("\b\t\n\f\r ".charAt(plain));
            } else if (escaped == 'u') {
                while (quoted.charAt(at) == 'u') at++;
                text.append((char) Integer.parseInt(quoted.substring(at, at + 4), 16));
                at += 3;
            } else if (escaped >= '0' && escaped <= '7') {
                int end = at;
                while (end < at + (escaped < '4' ? 3 : 2) && "01234567".indexOf(quoted.charAt(end)) >= 0) end++;
                text.append((char) Integer.parseInt(quoted.substring(at, end), 8));
                at = end - 1;
            } else {
                text.append(escaped);
            }
        }
        return text.toString();
    }

    // Names.

    private ObjectReference self() {
        ObjectReference self = frame.thisObject();
        if (self == null) throw new IllegalArgumentException("there is no `this` in a static method");
        return self;
    }

    /** A variable, a field, or what a local class was given; `null` when there is none. */
    private Supplier<Value> variable(String name) {
        try {
            LocalVariable local = frame.visibleVariableByName(name);
            if (local != null) return () -> frame.getValue(local);
        } catch (AbsentInformationException e) {
            // Compiled without -g: there are fields still.
        }
        for (ObjectReference object = frame.thisObject(); object != null; object = outer(object)) {
            for (String written : new String[] {name, "val$" + name}) {
                Field field = object.referenceType().fieldByName(written);
                ObjectReference holder = object;
                if (field != null) return () -> holder.getValue(field);
            }
        }
        for (ReferenceType type : enclosing()) {
            Field field = type.fieldByName(name);
            if (field != null && field.isStatic()) return () -> calls.ofClass(type, field);
        }
        return null;
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
        int before = next;
        StringBuilder name = new StringBuilder(first);
        while (true) {
            // What begins with a small letter may be any mistake, for which nothing is to run in the program.
            boolean isClass = Character.isUpperCase(name.charAt(name.lastIndexOf(".") + 1));
            ReferenceType type = typeNamed(name.toString(), isClass);
            if (type != null) return type;
            if (!at(".") || tokens.get(next + 1).kind != Kind.NAME) break;
            next++;
            name.append('.').append(advance().text);
        }
        next = before;
        return null;
    }

    /** A class by the name that it has here. Imports are not known: any class of that name that is loaded will do. */
    private ReferenceType typeNamed(String name, boolean mayLoad) {
        List<String> full = new ArrayList<>(List.of(name));
        for (ReferenceType type : enclosing()) full.add(type.name() + "$" + name);
        String own = frame.location().declaringType().name();
        full.add(own.substring(0, own.lastIndexOf('.') + 1) + name);
        full.add("java.lang." + name);
        full.add("java.util." + name);
        for (String candidate : full) {
            ReferenceType found = loaded(candidate);
            if (found != null) return found;
        }
        ReferenceType meant = mayLoad ? load(full) : null;
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

    /** By its whole name. */
    private ReferenceType loaded(String name) {
        for (String written : spellings(name)) {
            List<ReferenceType> found = vm.classesByName(written);
            if (!found.isEmpty()) return found.get(0);
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

    private Value ofClass(ReferenceType of) {
        ReferenceType type = of;
        while (true) {
            expect(".");
            String name = name();
            if (name.equals("class")) return type.classObject();
            if (name.equals("this")) return outer(type);
            if (at("(")) return calls.call(type, name, arguments());
            Field field = type.fieldByName(name);
            if (field != null && field.isStatic()) return calls.ofClass(type, field);
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

    private Value field(Value of, String name) {
        ObjectReference object = object(of, name);
        if (object instanceof ArrayReference && name.equals("length")) {
            return vm.mirrorOf(((ArrayReference) object).length());
        }
        Field field = object.referenceType().fieldByName(name);
        if (field != null) return object.getValue(field);
        throw new IllegalArgumentException(object.referenceType().name() + " has no field `" + name + "`");
    }

    private Value element(Value of, Value index) {
        if (!(of instanceof ArrayReference)) throw new IllegalArgumentException("[] of what is not an array");
        ArrayReference array = (ArrayReference) of;
        int at = calls.number(index).intValue();
        if (at >= 0 && at < array.length()) return array.getValue(at);
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
            return calls.hold(vm.mirrorOf(calls.text(left) + calls.text(right)));
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

import com.sun.jdi.ArrayReference;
import com.sun.jdi.ClassObjectReference;
import com.sun.jdi.ClassType;
import com.sun.jdi.Field;
import com.sun.jdi.ObjectReference;
import com.sun.jdi.PrimitiveValue;
import com.sun.jdi.ReferenceType;
import com.sun.jdi.StringReference;
import com.sun.jdi.ThreadReference;
import com.sun.jdi.Value;

import java.math.BigDecimal;
import java.math.BigInteger;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.time.Instant;
import java.time.LocalDate;
import java.time.LocalTime;
import java.time.Period;
import java.time.YearMonth;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.UUID;

/**
 * Values of Java's library as people write them: `[1, 2, 3]`, `{"a"=1}`, `2026-11-28`.
 *
 * All is read from fields. No code of the program runs, so that nothing changes, and nothing hangs, by being looked at.
 * What another JDK keeps in other fields is told as before, by its class.
 */
final class Shown {
    /** Parts of a value that are written. */
    private static final int PARTS = 10;
    /** Characters of a text, and of all parts. */
    private static final int CHARACTERS = 300;
    /** Values within each other. */
    private static final int DEPTH = 3;
    /** Parts that can be looked at one by one. */
    private static final int MEMBERS = 1_000;

    private static final Set<String> BOXES = Set.of(
        "java.lang.Integer", "java.lang.Long", "java.lang.Short", "java.lang.Byte", "java.lang.Double",
        "java.lang.Float", "java.lang.Boolean", "java.lang.Character", "java.lang.StringBuilder",
        "java.lang.StringBuffer", "java.util.UUID");

    private Shown() {
    }

    /** A value in a line. */
    static String of(Value value) {
        return of(value, 0);
    }

    /** Whether a value is all that there is to it. */
    static boolean isPlain(ObjectReference object) {
        String name = object.referenceType().name();
        return name.startsWith("java.time.") || name.startsWith("java.math.") || BOXES.contains(name);
    }

    /** What is in a collection, by name; `null` for what is none. */
    static List<Map.Entry<String, Value>> members(ObjectReference object) {
        Parts parts;
        try {
            parts = parts(object);
        } catch (RuntimeException e) {
            return null;
        }
        if (parts == null) return null;
        List<Map.Entry<String, Value>> members = new ArrayList<>();
        for (Value[] part : parts.all) {
            String name = part.length == 1 ? "[" + members.size() + "]" : of(part[0], 1);
            members.add(new java.util.AbstractMap.SimpleEntry<>(name, part[part.length - 1]));
        }
        int told = members.size();
        if (parts.size > told) {
            String more = "the debugger lists " + told + " of " + parts.size
                + "; an expression tells the others, as in NAME.get(" + told + ")";
            Value text = object.virtualMachine().mirrorOf(more);
            members.add(new java.util.AbstractMap.SimpleEntry<>("...", text));
        }
        return members;
    }

    private static String of(Value value, int depth) {
        if (value == null) return "null";
        if (value instanceof StringReference) return "\"" + cut(((StringReference) value).value()) + "\"";
        if (!(value instanceof ObjectReference)) return value.toString();
        ObjectReference object = (ObjectReference) value;
        if (depth > DEPTH) return "...";
        try {
            Parts parts = parts(object);
            if (parts != null) return parts.written(depth);
            String text = text(object, depth);
            if (text != null) return text;
        } catch (RuntimeException e) {
            // Its fields have other names.
        }
        String name = object.referenceType().name();
        // One that stands alone is told by whoever asks, by as many of its parts as are wanted.
        if (depth == 0) return name + "@" + object.uniqueID();
        return isOfLibrary(name) ? plain(name) + "(...)" : fields(object, depth);
    }

    private static String fields(ObjectReference object, int depth) {
        List<Field> fields = new ArrayList<>();
        for (Field field : object.referenceType().allFields()) {
            if (!field.isStatic() && !field.isSynthetic()) fields.add(field);
        }
        StringBuilder written = new StringBuilder(plain(object.referenceType().name())).append('(');
        for (Field field : fields) {
            if (written.charAt(written.length() - 1) != '(') written.append(", ");
            if (written.length() > CHARACTERS) {
                written.append("...");
                break;
            }
            written.append(field.name()).append('=').append(of(object.getValue(field), depth + 1));
        }
        return written.append(')').toString();
    }

    private static boolean isOfLibrary(String name) {
        return name.startsWith("java.") || name.startsWith("javax.") || name.startsWith("jdk.")
            || name.startsWith("sun.") || name.startsWith("com.sun.");
    }

    private static String plain(String name) {
        return name.substring(Math.max(name.lastIndexOf('.'), name.lastIndexOf('$')) + 1);
    }

    private static String cut(String text) {
        return text.length() <= CHARACTERS ? text : text.substring(0, CHARACTERS) + "...";
    }

    // ---- fields ----

    private static Field find(ObjectReference object, String name) {
        for (Field field : object.referenceType().allFields()) {
            if (field.name().equals(name) && !field.isStatic()) return field;
        }
        return null;
    }

    private static Value get(ObjectReference object, String name) {
        Field field = find(object, name);
        if (field == null) throw new IllegalArgumentException(name);
        return object.getValue(field);
    }

    private static ObjectReference object(ObjectReference object, String name) {
        return (ObjectReference) get(object, name);
    }

    private static int integer(ObjectReference object, String name) {
        return ((PrimitiveValue) get(object, name)).intValue();
    }

    private static long number(ObjectReference object, String name) {
        return ((PrimitiveValue) get(object, name)).longValue();
    }

    private static String string(ObjectReference object, String name) {
        return ((StringReference) get(object, name)).value();
    }

    private static byte[] bytes(ObjectReference object, String name) {
        List<Value> values = ((ArrayReference) get(object, name)).getValues();
        byte[] bytes = new byte[values.size()];
        for (int n = 0; n < bytes.length; n++) bytes[n] = ((PrimitiveValue) values.get(n)).byteValue();
        return bytes;
    }

    private static boolean isA(ObjectReference object, String name) {
        ReferenceType type = object.referenceType();
        ClassType known = type instanceof ClassType ? (ClassType) type : null;
        while (known != null && !known.name().equals(name)) known = known.superclass();
        return known != null;
    }

    // ---- texts ----

    /** A value that is no collection; `null` for one that is not known. */
    private static String text(ObjectReference object, int depth) {
        if (object instanceof ClassObjectReference) return "class " + ((ClassObjectReference) object).reflectedType().name();
        if (object instanceof ThreadReference) return "Thread(" + ((ThreadReference) object).name() + ")";
        if (isA(object, "java.lang.Enum")) return string(object, "name");
        switch (object.referenceType().name()) {
            case "java.lang.Integer": case "java.lang.Long": case "java.lang.Short": case "java.lang.Byte":
            case "java.lang.Double": case "java.lang.Float": case "java.lang.Boolean": case "java.lang.Character":
            case "java.util.concurrent.atomic.AtomicInteger": case "java.util.concurrent.atomic.AtomicLong":
                return get(object, "value").toString();
            case "java.util.concurrent.atomic.AtomicBoolean":
                return integer(object, "value") == 0 ? "false" : "true";
            case "java.util.concurrent.atomic.AtomicReference":
                return of(get(object, "value"), depth + 1);
            case "java.lang.StringBuilder": case "java.lang.StringBuffer":
                return "\"" + cut(built(object)) + "\"";
            case "java.util.Optional":
                Value value = get(object, "value");
                return value == null ? "Optional.empty" : "Optional[" + of(value, depth + 1) + "]";
            case "java.util.OptionalInt": case "java.util.OptionalLong": case "java.util.OptionalDouble":
                String kind = plain(object.referenceType().name());
                return integer(object, "isPresent") == 0 ? kind + ".empty" : kind + "[" + get(object, "value") + "]";
            case "java.math.BigInteger":
                return big(object).toString();
            case "java.math.BigDecimal":
                ObjectReference unscaled = object(object, "intVal");
                BigInteger digits = unscaled == null ? BigInteger.valueOf(number(object, "intCompact")) : big(unscaled);
                return new BigDecimal(digits, integer(object, "scale")).toString();
            case "java.util.UUID":
                return new UUID(number(object, "mostSigBits"), number(object, "leastSigBits")).toString();
            case "java.util.Date":
                return Instant.ofEpochMilli(number(object, "fastTime")).toString();
            case "java.time.LocalDate":
                return date(object).toString();
            case "java.time.LocalTime":
                return time(object).toString();
            case "java.time.LocalDateTime":
                return date(object(object, "date")) + "T" + time(object(object, "time"));
            case "java.time.OffsetDateTime":
                return of(get(object, "dateTime"), depth + 1) + string(object(object, "offset"), "id");
            case "java.time.ZonedDateTime":
                String at = of(get(object, "dateTime"), depth + 1) + string(object(object, "offset"), "id");
                ObjectReference zone = object(object, "zone");
                return zone.equals(object(object, "offset")) ? at : at + "[" + string(zone, "id") + "]";
            case "java.time.ZoneOffset": case "java.time.ZoneRegion":
                return string(object, "id");
            case "java.time.Instant":
                return Instant.ofEpochSecond(number(object, "seconds"), integer(object, "nanos")).toString();
            case "java.time.Duration":
                return Duration.ofSeconds(number(object, "seconds"), integer(object, "nanos")).toString();
            case "java.time.Period":
                return Period.of(integer(object, "years"), integer(object, "months"), integer(object, "days")).toString();
            case "java.time.Year":
                return Integer.toString(integer(object, "year"));
            case "java.time.YearMonth":
                return YearMonth.of(integer(object, "year"), integer(object, "month")).toString();
            case "java.io.File":
                return string(object, "path");
            case "sun.nio.fs.UnixPath":
                return new String(bytes(object, "path"), StandardCharsets.UTF_8);
            case "java.util.regex.Pattern":
                return string(object, "pattern");
            default:
                return null;
        }
    }

    private static String built(ObjectReference builder) {
        byte[] bytes = bytes(builder, "value");
        int count = integer(builder, "count");
        if (integer(builder, "coder") == 0) return new String(bytes, 0, count, StandardCharsets.ISO_8859_1);
        java.nio.CharBuffer chars = ByteBuffer.wrap(bytes, 0, 2 * count).order(java.nio.ByteOrder.nativeOrder()).asCharBuffer();
        return chars.toString();
    }

    private static BigInteger big(ObjectReference object) {
        List<Value> words = ((ArrayReference) get(object, "mag")).getValues();
        ByteBuffer magnitude = ByteBuffer.allocate(4 * words.size());
        for (Value word : words) magnitude.putInt(((PrimitiveValue) word).intValue());
        return new BigInteger(integer(object, "signum"), magnitude.array());
    }

    private static LocalDate date(ObjectReference object) {
        return LocalDate.of(integer(object, "year"), integer(object, "month"), integer(object, "day"));
    }

    private static LocalTime time(ObjectReference object) {
        return LocalTime.of(integer(object, "hour"), integer(object, "minute"), integer(object, "second"), integer(object, "nano"));
    }

    // ---- collections ----

    /** What is in a collection: values, or keys with values. */
    private static final class Parts {
        final List<Value[]> all;
        final int size;
        final boolean isMap;

        Parts(List<Value[]> all, int size, boolean isMap) {
            this.all = all;
            this.size = size;
            this.isMap = isMap;
        }

        static Parts list(List<? extends Value> values, int size) {
            List<Value[]> all = new ArrayList<>();
            for (Value value : values) all.add(new Value[] {value});
            return new Parts(all, size, false);
        }

        /** The keys of a map alone. */
        Parts keys() {
            List<Value> keys = new ArrayList<>();
            for (Value[] part : all) keys.add(part[0]);
            return list(keys, size);
        }

        String written(int depth) {
            StringBuilder written = new StringBuilder();
            int n = 0;
            for (Value[] part : all) {
                if (n == PARTS || written.length() > CHARACTERS) break;
                if (n++ > 0) written.append(", ");
                if (isMap) written.append(of(part[0], depth + 1)).append('=');
                written.append(of(part[part.length - 1], depth + 1));
            }
            if (n < size) written.append(n > 0 ? ", ... " : "... ").append(size - n).append(" more");
            return isMap ? "{" + written + "}" : "[" + written + "]";
        }
    }

    private static Parts parts(ObjectReference object) {
        if (object instanceof ArrayReference) return array((ArrayReference) object, 0, ((ArrayReference) object).length());
        String name = object.referenceType().name();
        if (!name.startsWith("java.util.")) return null;
        switch (name.substring("java.util.".length())) {
            case "ArrayList":
                return array(object(object, "elementData"), 0, integer(object, "size"));
            case "Vector": case "Stack":
                return array(object(object, "elementData"), 0, integer(object, "elementCount"));
            case "PriorityQueue":
                return array(object(object, "queue"), 0, integer(object, "size"));
            case "Arrays$ArrayList":
                return parts(object(object, "a"));
            case "concurrent.CopyOnWriteArrayList":
                return parts(object(object, "array"));
            case "concurrent.CopyOnWriteArraySet":
                return parts(object(object, "al"));
            case "ArrayDeque":
                return deque(object);
            case "LinkedList":
                return linked(object(object, "first"), integer(object, "size"));
            case "ArrayList$SubList": case "ImmutableCollections$SubList":
                return part(parts(object(object, "root")), integer(object, "offset"), integer(object, "size"));
            case "ImmutableCollections$ListN":
                return parts(object(object, "elements"));
            case "ImmutableCollections$List12": case "ImmutableCollections$Set12":
                return oneOrTwo(object);
            case "ImmutableCollections$SetN":
                return sparse((ArrayReference) get(object, "elements"), 1, integer(object, "size"));
            case "ImmutableCollections$Map1":
                return new Parts(Collections.singletonList(new Value[] {get(object, "k0"), get(object, "v0")}), 1, true);
            case "ImmutableCollections$MapN":
                return sparse((ArrayReference) get(object, "table"), 2, integer(object, "size"));
            case "HashMap":
                return hashed((ArrayReference) get(object, "table"), "value", integer(object, "size"));
            case "Hashtable":
                return hashed((ArrayReference) get(object, "table"), "value", integer(object, "count"));
            case "Properties":
                return parts(object(object, "map"));
            case "concurrent.ConcurrentHashMap":
                return hashed((ArrayReference) get(object, "table"), "val", integer(object, "baseCount"));
            case "LinkedHashMap":
                return chained(object(object, "head"), integer(object, "size"));
            case "TreeMap":
                List<Value[]> sorted = new ArrayList<>();
                walk(object(object, "root"), sorted);
                return new Parts(sorted, integer(object, "size"), true);
            case "HashSet": case "LinkedHashSet": case "concurrent.ConcurrentHashMap$KeySetView":
                return parts(object(object, "map")).keys();
            case "TreeSet":
                return parts(object(object, "m")).keys();
            case "EnumMap":
                return enums(object);
            case "RegularEnumSet":
                return flags(object);
            case "Collections$SingletonList": case "Collections$SingletonSet":
                return Parts.list(Collections.singletonList(get(object, "element")), 1);
            case "Collections$SingletonMap":
                return new Parts(Collections.singletonList(new Value[] {get(object, "k"), get(object, "v")}), 1, true);
            case "Collections$EmptyList": case "Collections$EmptySet":
                return Parts.list(Collections.emptyList(), 0);
            case "Collections$EmptyMap":
                return new Parts(Collections.emptyList(), 0, true);
            default:
                boolean isAround = name.startsWith("java.util.Collections$Unmodifiable")
                    || name.startsWith("java.util.Collections$Synchronized") || name.startsWith("java.util.Collections$Checked");
                if (!isAround) return null;
                return parts(object(object, find(object, "m") != null ? "m" : "c"));
        }
    }

    private static Parts array(ObjectReference array, int from, int size) {
        int n = Math.min(size, MEMBERS);
        return Parts.list(n == 0 ? Collections.<Value>emptyList() : ((ArrayReference) array).getValues(from, n), size);
    }

    private static Parts part(Parts whole, int from, int size) {
        int end = Math.min(whole.all.size(), from + size);
        return new Parts(whole.all.subList(Math.min(from, end), end), size, whole.isMap);
    }

    private static Parts deque(ObjectReference deque) {
        List<Value> ring = ((ArrayReference) get(deque, "elements")).getValues();
        int head = integer(deque, "head"), size = Math.floorMod(integer(deque, "tail") - head, ring.size());
        List<Value> values = new ArrayList<>();
        for (int n = 0; n < Math.min(size, MEMBERS); n++) values.add(ring.get((head + n) % ring.size()));
        return Parts.list(values, size);
    }

    private static Parts linked(ObjectReference node, int size) {
        List<Value> values = new ArrayList<>();
        for (; node != null && values.size() < MEMBERS; node = object(node, "next")) values.add(get(node, "item"));
        return Parts.list(values, size);
    }

    private static Parts oneOrTwo(ObjectReference object) {
        List<Value> values = new ArrayList<>();
        values.add(get(object, "e0"));
        Value second = get(object, "e1");
        // An object of no class of its own stands for nothing.
        boolean isOne = second == null || second.type().name().equals("java.lang.Object");
        if (!isOne) values.add(second);
        return Parts.list(values, values.size());
    }

    /** Of an array with gaps, `width` values for each part. */
    private static Parts sparse(ArrayReference table, int width, int size) {
        List<Value> values = table.getValues();
        List<Value[]> parts = new ArrayList<>();
        for (int n = 0; n + width <= values.size() && parts.size() < MEMBERS; n += width) {
            if (values.get(n) != null) parts.add(values.subList(n, n + width).toArray(new Value[0]));
        }
        return new Parts(parts, size, width == 2);
    }

    private static Parts hashed(ArrayReference table, String value, int size) {
        List<Value[]> parts = new ArrayList<>();
        List<Value> first = table == null ? Collections.emptyList() : table.getValues();
        for (Value entry : first) {
            ObjectReference node = (ObjectReference) entry;
            // A tree of nodes that are a chain as well.
            if (node != null && node.referenceType().name().endsWith("$TreeBin")) node = object(node, "first");
            for (; node != null && parts.size() < MEMBERS; node = object(node, "next")) {
                parts.add(new Value[] {get(node, "key"), get(node, value)});
            }
        }
        return new Parts(parts, Math.max(size, parts.size()), true);
    }

    private static Parts chained(ObjectReference node, int size) {
        List<Value[]> parts = new ArrayList<>();
        for (; node != null && parts.size() < MEMBERS; node = object(node, "after")) {
            parts.add(new Value[] {get(node, "key"), get(node, "value")});
        }
        return new Parts(parts, size, true);
    }

    private static void walk(ObjectReference node, List<Value[]> parts) {
        if (node == null || parts.size() >= MEMBERS) return;
        walk(object(node, "left"), parts);
        if (parts.size() < MEMBERS) parts.add(new Value[] {get(node, "key"), get(node, "value")});
        walk(object(node, "right"), parts);
    }

    private static Parts enums(ObjectReference map) {
        List<Value> keys = ((ArrayReference) get(map, "keyUniverse")).getValues();
        List<Value> values = ((ArrayReference) get(map, "vals")).getValues();
        List<Value[]> parts = new ArrayList<>();
        for (int n = 0; n < keys.size(); n++) {
            Value value = values.get(n);
            // It keeps an object of its own for a value that is null.
            boolean isNull = value != null && value.type().name().startsWith("java.util.EnumMap$");
            if (value != null) parts.add(new Value[] {keys.get(n), isNull ? null : value});
        }
        return new Parts(parts, integer(map, "size"), true);
    }

    private static Parts flags(ObjectReference set) {
        List<Value> all = ((ArrayReference) get(set, "universe")).getValues();
        long flags = number(set, "elements");
        List<Value> values = new ArrayList<>();
        for (int n = 0; n < all.size(); n++) {
            if ((flags >> n & 1) != 0) values.add(all.get(n));
        }
        return Parts.list(values, values.size());
    }
}

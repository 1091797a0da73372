import com.sun.jdi.ReferenceType;

import java.io.DataInputStream;
import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.util.ArrayList;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Set;

/**
 * What a file imports, as far as its code uses it: a class keeps the whole names of all that its code and its members
 * name, and its source need not be there.
 */
final class Imports {
    /** Kinds of entries of a table of constants, section 4.4 of the specification of the virtual machine. */
    private static final int TEXT = 1;
    private static final int LONG = 5;
    private static final int DOUBLE = 6;
    private static final int METHOD_HANDLE = 15;
    /** Those with one index. */
    private static final Set<Integer> SHORT = Set.of(7, 8, 16, 19, 20);

    private Imports() {
    }

    /** The whole names of classes that these know by a name of one word. */
    static List<String> named(String name, List<ReferenceType> types) {
        List<String> used = named(name, types, false);
        // What methods take and give back need not be named where they are called.
        return used.isEmpty() ? named(name, types, true) : used;
    }

    private static List<String> named(String name, List<ReferenceType> types, boolean ofMethods) {
        Set<String> found = new LinkedHashSet<>();
        for (ReferenceType type : types) {
            for (String text : texts(type)) {
                if (!text.contains(name) || text.startsWith("(") != ofMethods) continue;
                boolean isDescriptor = text.contains(";");
                for (String part : text.split("[;<>()\\[*+:-]")) {
                    String full = isDescriptor ? part.replaceFirst("^[BCDFIJSZV]*L", "") : part;
                    boolean isMeant = full.endsWith("/" + name) || full.endsWith("$" + name);
                    if (isMeant && full.contains("/")) found.add(full.replace('/', '.'));
                }
            }
        }
        return new ArrayList<>(found);
    }

    private static List<String> texts(ReferenceType type) {
        if (!type.virtualMachine().canGetConstantPool()) return List.of();
        List<String> all = new ArrayList<>();
        try (DataInputStream in = new DataInputStream(new ByteArrayInputStream(type.constantPool()))) {
            while (in.available() > 0) {
                int kind = in.readUnsignedByte();
                if (kind == TEXT) {
                    all.add(in.readUTF());
                } else {
                    in.skipBytes(size(kind));
                }
            }
        } catch (IOException e) {
            // What could be read is better than nothing.
        }
        return all;
    }

    private static int size(int kind) {
        if (kind == LONG || kind == DOUBLE) return 8;
        if (kind == METHOD_HANDLE) return 3;
        return SHORT.contains(kind) ? 2 : 4;
    }
}

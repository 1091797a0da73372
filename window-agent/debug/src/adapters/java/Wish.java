import com.sun.jdi.StringReference;
import com.sun.jdi.ThreadReference;
import com.sun.jdi.Value;

import java.util.HashMap;
import java.util.Map;
import java.util.function.Consumer;

/**
 * What a breakpoint does beside stopping where a condition holds: it counts its hits, or logs. The adapter has neither.
 *
 * Both are lines before the condition, and begin with a character that no condition has: `hits ID OPERATOR NUMBER`, and
 * `log MESSAGE`, with another such character in place of the ends of its lines.
 */
final class Wish {
    private static final String HITS = "\1hits ";
    private static final String LOG = "\1log ";
    private static final char LINE_END = '\2';
    /** How often the condition held, for each of the lines about hits. */
    private static final Map<String, Long> COUNTS = new HashMap<>();

    private final ThreadReference thread;
    private final Consumer<String> print;
    private final String hits;
    private final String log;
    private String condition;

    Wish(String written, ThreadReference thread, Consumer<String> print) {
        this.thread = thread;
        this.print = print;
        condition = written;
        hits = line(HITS);
        String message = line(LOG);
        log = message == null ? null : message.replace(LINE_END, '\n');
    }

    /** What stands behind this in the first line, which is taken away; `null` where that is another one. */
    private String line(String start) {
        if (!condition.startsWith(start)) return null;
        int end = condition.indexOf('\n');
        String found = condition.substring(start.length(), end);
        condition = condition.substring(end + 1);
        return found;
    }

    /** Whether the program is to stop. What is to be logged is. */
    boolean stops() {
        try {
            if (!condition.isEmpty() && !expression(condition).isTrue()) return false;
        } catch (RuntimeException e) {
            print.accept("the condition `" + condition + "` failed: " + e.getMessage() + "\n");
            return log == null;
        }
        if (hits != null && !isCounted()) return false;
        if (log != null) print.accept(message() + "\n");
        return log == null;
    }

    private Expression expression(String text) {
        return new Expression(text, thread, new Frame(thread, 0));
    }

    private boolean isCounted() {
        long count = COUNTS.merge(hits, 1L, Long::sum);
        String[] parts = hits.split(" ");
        long number = Long.parseLong(parts[2]);
        switch (parts[1]) {
            case "==": return count == number;
            case ">": return count > number;
            case ">=": return count >= number;
            case "<": return count < number;
            case "<=": return count <= number;
            default: return count % number == 0;
        }
    }

    /** With values in place of what stands in braces. */
    private String message() {
        StringBuilder told = new StringBuilder();
        int from = 0;
        for (int open = log.indexOf('{'); open >= 0; open = log.indexOf('{', from)) {
            int close = end(open + 1);
            if (close <= open + 1) break;
            told.append(log, from, open).append(value(log.substring(open + 1, close)));
            from = close + 1;
        }
        return told.append(log.substring(from)).toString();
    }

    /** Where the brace is that ends an expression; those in its texts are the texts'. */
    private int end(int from) {
        int depth = 1;
        char quote = 0;
        for (int i = from; i < log.length(); i++) {
            char c = log.charAt(i);
            if (quote != 0) {
                if (c == '\\') i++;
                if (c == quote) quote = 0;
            } else if (c == '"' || c == '\'') {
                quote = c;
            } else if (c == '{') {
                depth++;
            } else if (c == '}' && --depth == 0) {
                return i;
            }
        }
        return -1;
    }

    /** One that fails is told in its place. */
    private String value(String expression) {
        try {
            Value value = expression(expression).evaluate();
            return value instanceof StringReference ? ((StringReference) value).value() : Shown.of(value);
        } catch (RuntimeException e) {
            return e.getMessage();
        }
    }
}

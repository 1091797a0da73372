import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Set;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** The words and signs of an expression of Java, which are taken one after the other. */
final class Tokens {
    enum Kind { TEXT, CHAR, NUMBER, NAME, SIGN, END }

    static final class Token {
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
            + "|(?<sign>>>>=|<<=|>>=|>>>|<<|>>|\\+\\+|--|->|::|[-+*/%&|^]=|<=|>=|==|!=|&&|\\|\\|"
            + "|[-+*/%<>=!~&|^?:.,(){}\\[\\]])");
    /** Names that are none. */
    private static final Set<String> WORDS = Set.of("true", "false", "null", "this", "super", "instanceof", "new");

    private final List<Token> all = new ArrayList<>();
    private int next;

    /** Of an expression, or of a statement that is one. */
    Tokens(String written) {
        String source = written.strip().replaceFirst("\\s*;$", "");
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
                if (text != null) all.add(new Token(kind, text));
            }
            at = matcher.end();
        }
        all.add(new Token(Kind.END, "the end"));
        for (Token token : all) {
            if (token.is("->") || token.is("::")) throw unreadable(token.text);
        }
    }

    /** A type in parentheses, before what it is for; else nothing is taken. */
    String castType() {
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
    String type() {
        if (peek().kind != Kind.NAME || WORDS.contains(peek().text)) return null;
        StringBuilder type = new StringBuilder(advance().text);
        while (takesMember()) type.append('.').append(advance().text);
        if (at("<") && !passTypeArguments()) return null;
        while (take("[]")) type.append("[]");
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

    /** Takes the dot before a name. */
    boolean takesMember() {
        boolean isMember = at(".") && all.get(next + 1).kind == Kind.NAME;
        if (isMember) next++;
        return isMember;
    }

    /** Which one is next. */
    int next() {
        return next;
    }

    /** Reads on from there. */
    void backTo(int earlier) {
        next = earlier;
    }

    Token peek() {
        return all.get(next);
    }

    Token advance() {
        Token token = all.get(next);
        if (token.kind != Kind.END) next++;
        return token;
    }

    /** Brackets with nothing in them are `[]`. */
    boolean at(String sign) {
        if (sign.equals("[]")) return at("[") && all.get(next + 1).is("]");
        return peek().is(sign);
    }

    boolean take(String sign) {
        if (!at(sign)) return false;
        next += sign.equals("[]") ? 2 : 1;
        return true;
    }

    String takeOneOf(String[] signs) {
        for (String sign : signs) {
            if (take(sign)) return sign;
        }
        return null;
    }

    void expect(String sign) {
        if (!take(sign)) throw new IllegalArgumentException("expected `" + sign + "`, found `" + peek().text + "`");
    }

    String name() {
        if (peek().kind != Kind.NAME) throw unreadable(peek().text);
        return advance().text;
    }

    static IllegalArgumentException unreadable(String text) {
        boolean isLambda = text.equals("->") || text.equals("::");
        String why = isLambda ? "a lambda is not supported in an expression" : "unexpected `" + text + "`";
        return new IllegalArgumentException(why);
    }

    /** What stands in quotes. */
    static String unescaped(String quoted) {
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
}

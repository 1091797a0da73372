import com.sun.jdi.AbsentInformationException;
import com.sun.jdi.Location;
import com.sun.jdi.ReferenceType;
import com.sun.jdi.VirtualMachine;
import com.sun.jdi.request.BreakpointRequest;
import com.sun.jdi.request.ClassPrepareRequest;
import com.sun.jdi.request.EventRequest;
import com.sun.jdi.request.EventRequestManager;

import java.nio.file.Path;
import java.util.List;
import java.util.Set;

/** Where the code of a line of a file is, and what stops there. */
final class Lines {
    /** The adapter's own name of the property in which a request has its file. */
    private static final String PATH = "jdi-bp-source";

    private Lines() {
    }

    /** In a class, or in another one that was compiled from the same file: those in it, and those beside it. */
    static List<Location> of(ReferenceType type, int line) throws AbsentInformationException {
        List<Location> found = type.locationsOfLine(line);
        if (!found.isEmpty()) return found;
        String source = type.sourceName();
        String folder = packageOf(type);
        for (ReferenceType other : type.virtualMachine().allClasses()) {
            if (!other.isPrepared() || !packageOf(other).equals(folder)) continue;
            try {
                if (source.equals(other.sourceName())) found = other.locationsOfLine(line);
            } catch (AbsentInformationException e) {
                // It was compiled without lines.
            }
            if (!found.isEmpty()) break;
        }
        return found;
    }

    /** Has every class that is compiled from a file told when it comes, whatever its name. */
    static void await(VirtualMachine vm, String path) {
        if (!path.endsWith(".java") || !vm.canUseSourceNameFilters()) return;
        ClassPrepareRequest request = vm.eventRequestManager().createClassPrepareRequest();
        request.addSourceNameFilter(Path.of(path).getFileName().toString());
        request.putProperty(PATH, path);
        request.setSuspendPolicy(EventRequest.SUSPEND_ALL);
        request.enable();
    }

    /** The file of these that a class is compiled from; an empty text for none. */
    static String path(Set<String> paths, ReferenceType type) {
        try {
            // A file need not lie in the folder that its package names.
            for (String folder : new String[] {packageOf(type).replace('.', '/'), ""}) {
                String end = "/" + folder + type.sourceName();
                for (String path : paths) {
                    if (path.endsWith(end)) return path;
                }
            }
        } catch (AbsentInformationException e) {
            // It was compiled without its file.
        }
        return "";
    }

    /**
     * What stops at a line, not enabled. A class that comes is told once for each that waited for it: a second request
     * at the same place would be a second stop.
     */
    static BreakpointRequest request(EventRequestManager manager, Location place, String path) {
        for (BreakpointRequest known : manager.breakpointRequests()) {
            if (known.location().equals(place) && path != null && path.equals(known.getProperty(PATH))) {
                known.disable();
                return known;
            }
        }
        return manager.createBreakpointRequest(place);
    }

    private static String packageOf(ReferenceType type) {
        return type.name().substring(0, type.name().lastIndexOf('.') + 1);
    }
}

"""A debug adapter for what no real one shows on demand; the name of the program says how it behaves.

threads: has none. mute: answers nothing but what a stop needs. uninitialized: never says `initialized`.
dies: exits with 3 at `evaluate`. complains: the same, with a reason on its standard error. pointerless: stops without
an instruction pointer, and can disassemble. stackless: stops without a stack.
"""

import json
import os
import sys

out, seq, how = sys.stdout.buffer, 0, ""


def send(message):
    global seq
    seq += 1
    body = json.dumps({"seq": seq, **message}).encode()
    out.write(b"Content-Length: %d\r\n\r\n%s" % (len(body), body))
    out.flush()


def answer(request, body=None):
    send({"type": "response", "request_seq": request["seq"], "success": True, "command": request["command"],
          "body": body or {}})


def event(name, body=None):
    send({"type": "event", "event": name, "body": body or {}})


def handle(request):
    global how
    command, arguments = request["command"], request.get("arguments") or {}
    if command == "initialize":
        return answer(request, {"supportsConfigurationDoneRequest": True, "supportsDisassembleRequest": True,
                                "supportsModulesRequest": True})
    if command == "launch":
        how = os.path.basename(arguments["program"]).split(".")[0]
        if how == "uninitialized":
            return
        answer(request)
        return event("initialized")
    if command == "configurationDone":
        answer(request)
        if how != "threads":
            event("stopped", {"reason": "entry", "threadId": 1, "allThreadsStopped": True})
        return
    if command == "stackTrace":
        frame = {"id": 1, "name": "main", "line": 1, "column": 1, "source": {"path": arguments.get("x", "/x")}}
        return answer(request, {"stackFrames": [] if how == "stackless" else [frame]})
    if command == "threads":
        return answer(request, {"threads": [] if how == "threads" else [{"id": 1, "name": "main"}]})
    if command == "evaluate" and how in ("dies", "complains"):
        if how == "complains":
            print("the disk is full", file=sys.stderr, flush=True)
        os._exit(3)
    if how == "mute" and command in ("evaluate", "modules", "scopes"):
        return
    answer(request)
    if command == "disconnect":
        event("terminated")
        sys.exit(0)


while True:
    length = 0
    while line := sys.stdin.buffer.readline().strip():
        if line.lower().startswith(b"content-length:"):
            length = int(line.split(b":")[1])
    if not length:
        break
    handle(json.loads(sys.stdin.buffer.read(length)))

"""The same scenario spoken to debugpy directly: one session, figures in milliseconds as one JSON line."""

import json
import subprocess
import sys
import threading
import time
from queue import Queue

PROGRAM, LINE, STEPS = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])


class Adapter:
    """One adapter over standard input and output; answers and events in order of arrival."""

    def __init__(self):
        self.process = subprocess.Popen(
            [sys.executable, "-m", "debugpy.adapter"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        self.seq = 0
        self.messages = Queue()
        self.seen = []
        threading.Thread(target=self.read, daemon=True).start()

    def read(self):
        stream = self.process.stdout
        while header := stream.readline():
            length = int(header.split(b":")[1])
            stream.readline()
            self.messages.put(json.loads(stream.read(length)))

    def send(self, command, arguments=None):
        self.seq += 1
        body = json.dumps({"seq": self.seq, "type": "request", "command": command, "arguments": arguments or {}})
        data = body.encode()
        self.process.stdin.write(b"Content-Length: %d\r\n\r\n%s" % (len(data), data))
        self.process.stdin.flush()
        return self.seq

    def wait(self, wanted):
        for position, message in enumerate(self.seen):
            if wanted(message):
                return self.seen.pop(position)
        while True:
            message = self.messages.get(timeout=30)
            if wanted(message):
                return message
            self.seen.append(message)

    def event(self, name):
        return self.wait(lambda message: message["type"] == "event" and message["event"] == name)

    def answer(self, seq):
        return self.wait(lambda message: message["type"] == "response" and message["request_seq"] == seq).get("body")

    def snapshot(self):
        """Waits for a stop, then fetches stack and locals."""
        thread = self.event("stopped")["body"]["threadId"]
        frames = self.answer(self.send("stackTrace", {"threadId": thread}))["stackFrames"]
        scopes = self.answer(self.send("scopes", {"frameId": frames[0]["id"]}))["scopes"]
        self.answer(self.send("variables", {"variablesReference": scopes[0]["variablesReference"]}))
        return thread


def main():
    begin = time.perf_counter()
    adapter = Adapter()
    adapter.answer(adapter.send("initialize", {"adapterID": "debugpy", "linesStartAt1": True, "pathFormat": "path"}))
    launch = {"program": PROGRAM, "console": "internalConsole", "request": "launch", "type": "debugpy"}
    adapter.send("launch", launch)
    adapter.event("initialized")
    adapter.send("setBreakpoints", {"source": {"path": PROGRAM}, "breakpoints": [{"line": LINE}]})
    adapter.send("configurationDone")
    thread = adapter.snapshot()
    first_stop = (time.perf_counter() - begin) * 1e3
    steps = []
    for _ in range(STEPS):
        begin = time.perf_counter()
        adapter.send("next", {"threadId": thread})
        thread = adapter.snapshot()
        steps.append((time.perf_counter() - begin) * 1e3)
    adapter.answer(adapter.send("disconnect", {"terminateDebuggee": True}))
    adapter.process.stdin.close()
    adapter.process.kill()
    adapter.process.wait(timeout=10)
    print(json.dumps({"first_stop_ms": first_stop, "steps_ms": steps}))


main()

"""Plays a plan (see gdb.py) in delve itself: `python3 delve.py PLAN`, in the folder of the program."""
import atexit
import json
import socket
import subprocess
import sys
import threading

MOVES = {"continue": "continue", "over": "next", "into": "step", "out": "stepOut"}
OPEN = "API server listening at: "

with open(sys.argv[1], encoding="utf-8") as file:
    plan = json.load(file)
arguments = ["dlv", "debug", "--headless", "--api-version=2", "--listen=127.0.0.1:0", "--output", plan["told"] + ".bin"]
# Of its own group: its program ends with it.
delve = subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True)
address = None
said = []
for line in delve.stdout:
    said.append(line)
    if line.startswith(OPEN):
        address = line[len(OPEN):].strip().rsplit(":", 1)
        break
assert address, "".join(said)
printed = []
reader = threading.Thread(target=lambda: printed.extend(delve.stdout), daemon=True)
reader.start()
connection = socket.create_connection((address[0], int(address[1])))
answers = connection.makefile(encoding="utf-8")


def ask(method, **params):
    request = {"method": "RPCServer." + method, "params": [params], "id": 0}
    connection.sendall(json.dumps(request).encode())
    answer = json.loads(answers.readline())
    if answer["error"] is not None:
        raise RuntimeError(answer["error"])
    return answer["result"]


def evaluate(expression):
    scope = {"GoroutineID": -1, "Frame": 0}
    try:
        return ask("Eval", Scope=scope, Expr=expression, Cfg={"MaxStringLen": 64})["Variable"]["value"]
    except RuntimeError:
        return None


def look(state, move, is_on_the_way, asked):
    frames = ask("Stacktrace", Id=-1, Depth=50, Full=False, Cfg=None)["Locations"]
    own = [[frame["function"]["name"], frame["line"]] for frame in frames if frame["file"] == plan["source"]]
    point = (state["currentThread"] or {}).get("breakPoint")
    hit = [points[point["id"]]] if point and point["id"] in points else []
    if hit and move != "continue" and not is_on_the_way:
        # Of a step that ends at a breakpoint delve's adapter tells now the one, now the other.
        hit = None
    stop = {"stack": own, "hit": hit, "locals": {}, "value": None}
    # Where a deferred function begins, what it has of its surroundings is not in place yet.
    is_deferred = bool(own) and own[0][0].endswith(".func1")
    if frames and frames[0]["file"] == plan["source"] and not is_deferred:
        values = {name: evaluate(name) for name in plan["names"]}
        stop["locals"] = {name: value for name, value in values.items() if value is not None}
        stop["value"] = evaluate(asked)
    return stop


def way_on(move, stack):
    """What is done at a stop with that stack instead, where a move leads nowhere, or beside a thread that runs."""
    if not stack or (move == "out" and len(stack) < 2):
        return "continue"
    return "over" if move == "into" and stack[0][0].endswith("in_thread") else move


# An error ends it too.
atexit.register(delve.kill)
points = {}
for point in plan["points"]:
    wish = {"file": plan["source"], "line": point["line"], "Cond": point["condition"] or ""}
    if point["hits"]:
        wish["HitCond"] = "%(operator)s %(count)d" % point["hits"]
    try:
        made = ask("CreateBreakpoint", Breakpoint=wish)
    except RuntimeError as error:
        # The compiler left out what cannot be reached.
        assert "could not find statement" in str(error), error
        continue
    points[made["Breakpoint"]["id"]] = point["line"]
stops, waiting = [], []
state, name = ask("Command", name="continue")["State"], "continue"
for asked, move in zip(plan["asked"], plan["moves"]):
    if state["exited"]:
        break
    is_on_the_way = state["NextInProgress"]
    if is_on_the_way:
        # A breakpoint elsewhere interrupted the step: it goes on with the next move, and the adapter takes no other.
        waiting.append(len(stops))
    stop = look(state, name, is_on_the_way, asked)
    stops.append(stop)
    name = MOVES["continue" if is_on_the_way else way_on(move, stop["stack"])]
    try:
        state = ask("Command", name=name)["State"]
    except RuntimeError as error:
        assert "has exited with status" in str(error), error
        state = {"exited": True, "exitStatus": int(str(error).rsplit(" ", 1)[1])}
is_over, code = state["exited"], state.get("exitStatus")
try:
    ask("Detach", Kill=True)
except (RuntimeError, OSError, ValueError):
    pass
delve.wait()
reader.join()
with open(plan["output"], "w", encoding="utf-8") as file:
    file.writelines(printed)
with open(plan["told"], "w", encoding="utf-8") as file:
    json.dump({"stops": stops, "waiting": waiting, "over": is_over, "exit": code if is_over else None}, file)

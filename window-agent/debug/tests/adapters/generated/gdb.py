"""Plays a plan in gdb itself: `BATON_PLAN=PLAN gdb -batch -nx -x gdb.py PROGRAM`.

A plan is JSON: source, points ([{line, condition, hits: {operator, count}, logs}]), moves, asked (one for each stop),
names (of variables), output (a file for what the program prints), told (a file for what came of it):
stops ([{stack, hit, locals, value}]) and exit.
"""
import collections
import json
import operator
import os

import gdb

MOVES = {"continue": "continue", "over": "next", "into": "step", "out": "finish"}
OPERATORS = {
    "==": operator.eq,
    ">": operator.gt,
    ">=": operator.ge,
    "<": operator.lt,
    "<=": operator.le,
    "%": lambda n, count: n % count == 0,
}

with open(os.environ["BATON_PLAN"], encoding="utf-8") as file:
    plan = json.load(file)
points, stops = {}, []
hit, code, is_over = [], None, False
logs, logged = set(), []
# By line. gdb itself can pass over the first hits alone.
counted, n_hits, passed = {}, collections.Counter(), False


def counts(n, operator, count):
    return OPERATORS[operator](n, count)


def on_stop(event):
    global hit, passed
    numbers = [point.number for point in getattr(event, "breakpoints", [])]
    own = [points[number] for number in numbers if number in points]
    n_hits.update(own)
    hit = [line for line in own if line not in counted or counts(n_hits[line], **counted[line])]
    passed = bool(own) and not hit
    for line in logs.intersection(hit):
        logged.append("say log %d %s\n" % (line, gdb.parse_and_eval("a")))


def on_exit(event):
    global code, is_over
    code, is_over = getattr(event, "exit_code", None), True


def own_frames():
    frame = gdb.newest_frame()
    while frame is not None:
        place = frame.find_sal()
        if place.symtab is not None and place.symtab.fullname() == plan["source"]:
            yield frame, place.line
        frame = frame.older()


def text_of(ask):
    try:
        return str(ask())
    except (gdb.error, ValueError):
        return None


def look(asked):
    own = list(own_frames())
    stop = {"stack": [[frame.name(), line] for frame, line in own], "hit": sorted(hit), "locals": {}, "value": None}
    newest = gdb.newest_frame()
    if own and own[0][0] == newest:
        values = {name: text_of(lambda: newest.read_var(name)) for name in plan["names"]}
        stop["locals"] = {name: value for name, value in values.items() if value is not None}
        stop["value"] = text_of(lambda: gdb.parse_and_eval(asked))
    return stop


def go(move):
    gdb.execute(move)
    # What only logs, or does not count, does not stop; it stands where nothing steps.
    while not is_over and (passed or hit and logs.issuperset(hit)):
        hit.clear()
        gdb.execute("continue")


def way_on(move, stack):
    """What is done at a stop with that stack instead, where a move leads nowhere, or beside a thread that runs."""
    if not stack or (move == "out" and len(stack) < 2):
        return "continue"
    return "over" if move == "into" and stack[0][0].endswith("in_thread") else move


for line in ["set confirm off", "set pagination off", "set width 0"]:
    gdb.execute(line)
for point in plan["points"]:
    breakpoint = gdb.Breakpoint(source=plan["source"], line=point["line"])
    if point["condition"]:
        breakpoint.condition = point["condition"]
    if point["hits"]:
        counted[point["line"]] = point["hits"]
    points[breakpoint.number] = point["line"]
    if point["logs"]:
        logs.add(point["line"])
gdb.events.stop.connect(on_stop)
gdb.events.exited.connect(on_exit)
go("run > " + plan["output"])
for asked, move in zip(plan["asked"], plan["moves"]):
    if is_over:
        break
    stop = look(asked)
    stops.append(stop)
    hit = []
    go(MOVES[way_on(move, stop["stack"])])
with open(plan["output"], "a", encoding="utf-8") as file:
    file.writelines(logged)
with open(plan["told"], "w", encoding="utf-8") as file:
    json.dump({"stops": stops, "over": is_over, "exit": code}, file)

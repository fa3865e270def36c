"""One-line faults, drawn by chance from a seed over the product's C, to see which tests find them:

    drawn_faults.py list SEED COUNT             what is drawn, one fault a line
    drawn_faults.py plant SEED COUNT TREE       writes them into the sources of TREE, all at once: $CSSL_DRAWN=N makes the Nth happen

Three kinds, as many of each: a condition is negated, a bound is off by one, a call is left out. Assertions and log lines stay. The
programs of TREE are compiled with -include tests/lib/drawn_fault.h.
"""

import collections
import pathlib
import random
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
FOLDERS = ("proto", "smtp", "net", "conf", "ragent", "sslagent", "smtpproxy", "csslctl", "bench")

Fault = collections.namedtuple("Fault", "path line kind text planted")  # `planted` has {n} for its number

CONDITION = re.compile(r"^(\t+(?:\} else )?(?:if|while) \()(.*)(\)(?: \{)?)$")
LOOP = re.compile(r"^(\t+for \([^;]*; )([^;]*)(;.*)$")
BOUND = re.compile(r"(?<=[\w)\]]) (<=|>=|<|>) (?=[\w(-])")
CALL = re.compile(r"^(\t+)([a-z_0-9]+\(.*\);)$")
NO_CALL = re.compile(r"\t+(assert|log_\w+|LOG\w*|return|sizeof|static|defined)\b")
NEIGHBOUR = {"<": "<=", "<=": "<", ">": ">=", ">=": ">"}


def is_whole(text):
    """Its brackets are balanced: it does not go on in another line."""
    depth = 0
    for c in text:
        depth += (c == "(") - (c == ")")
        if depth < 0:
            return False
    return depth == 0 and '"' not in text


def negated(line):
    found = CONDITION.match(line)
    if found and is_whole(found.group(2)):
        yield f"{found.group(1)}DRAWN({{n}}) != !!({found.group(2)}){found.group(3)}"


def off_by_one(line):
    found = CONDITION.match(line) or LOOP.match(line)
    if not found or not is_whole(found.group(2)):
        return
    begin, text, end = found.groups()
    for bound in BOUND.finditer(text):
        other = f"{text[:bound.start(1)]}{NEIGHBOUR[bound.group(1)]}{text[bound.end(1):]}"
        yield f"{begin}DRAWN({{n}}) ? ({other}) : ({text}){end}"


def left_out(line):
    found = CALL.match(line)
    if found and is_whole(found.group(2)) and not NO_CALL.match(line):
        yield f"{found.group(1)}if (!DRAWN({{n}})) {found.group(2)}"


KINDS = {"a condition negated": negated, "a bound off by one": off_by_one, "a call left out": left_out}


def without_braces(text):
    return text.replace("{", "{{").replace("}", "}}").replace("{{n}}", "{n}")


def sites(kind):
    """All faults of a kind that the sources have room for."""
    names = subprocess.run(["git", "ls-files", "*.c"], cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True).stdout.split()
    for name in sorted(name for name in names if name.split("/")[0] in FOLDERS):
        for number, line in enumerate((ROOT / name).read_text().splitlines(), 1):
            for planted in KINDS[kind](line):
                yield Fault(name, number, kind, line.strip(), without_braces(planted))


def drawn(seed, count):
    """At most one in a line."""
    chance, found = random.Random(seed), []
    rooms = {kind: list(sites(kind)) for kind in KINDS}
    while len(found) < count:
        kind = list(KINDS)[len(found) % len(KINDS)]
        fault = chance.choice(rooms[kind])
        if (fault.path, fault.line) not in {(one.path, one.line) for one in found}:
            found.append(fault)
    return found


def plant(faults, tree):
    for number, fault in enumerate(faults, 1):
        path = tree / fault.path
        lines = path.read_text().splitlines()
        assert lines[fault.line - 1].strip() == fault.text, f"{path}:{fault.line} is another line"
        lines[fault.line - 1] = fault.planted.format(n=number)
        path.write_text("\n".join(lines) + "\n")


def main(what, seed, count, tree=None):
    faults = drawn(int(seed), int(count))
    for number, fault in enumerate(faults, 1):
        print(f"{number} {fault.path}:{fault.line} {fault.kind}: {fault.text}")
    if what == "plant":
        plant(faults, pathlib.Path(tree))


if __name__ == "__main__":
    main(*sys.argv[1:])

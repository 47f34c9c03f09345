#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""
switch.py plant LIST TREE     makes the sources of TREE such that they hold all of the kernel's
                              mutants, each behind a number, so that one build does for all
switch.py choose IMAGE N      sets the number in the image that was built

A mutant changes a line; the line and what becomes of it are put side by side, and which of them
runs is asked at run time of ring3_mutant[3]. The other words of it are to find it by.
"""
import pathlib
import re
import struct
import subprocess
import sys

MAGIC = (0x6D757461, 0x6E742172, 0x696E6733)
HOME = "kernel/arch/ring3/kernel/setup.c"
DECLARE = "extern volatile unsigned int ring3_mutant[4];\n"


def switched(number, was, now):
    """A line that is `now` if that mutant is chosen and `was` if not."""
    chosen = f"ring3_mutant[3] == {number}"
    indent = was[: len(was) - len(was.lstrip())]
    condition = re.compile(r"\s*if \((.*)\)( \{)?$")
    old, new = condition.match(was), condition.match(now)
    if old and new:
        return f"{indent}if ({chosen} ? ({new[1]}) : ({old[1]})){old[2] or ''}"
    if was.lstrip().startswith("for ("):
        old, new = was.split(";"), now.split(";")
        old[1] = f" ({chosen} ? ({new[1]}) : ({old[1]}))"
        return ";".join(old)
    rest = re.compile(r"\s*(.*)\) \{$")  # of a condition that began above
    old, new = rest.match(was), rest.match(now)
    if old and new:
        return f"{indent}({chosen} ? ({new[1]}) : ({old[1]}))) {{"
    if was.rstrip().endswith(";"):
        return f"{indent}{{ if ({chosen}) {{ {now.strip()} }} else {{ {was.strip()} }} }}"
    sys.exit(f"switch.py: cannot put a switch here: {was.strip()}")


def mutants(path):
    lines = [line for line in path.read_text().splitlines() if line and line[0] != "#"]
    return [(n + 1, *line.split("\t")) for n, line in enumerate(lines)]


def plant(list_file, tree):
    changed = {}
    for number, part, name, _, sed in mutants(pathlib.Path(list_file)):
        if part not in ("kernel", "driver"):
            continue
        path = pathlib.Path(tree) / name
        original = path.read_text().splitlines()
        out = subprocess.run(["sed", sed, str(path)], check=True, capture_output=True, text=True)
        mutated = out.stdout.splitlines()
        lines = changed.setdefault(path, list(original))
        for at, (was, now) in enumerate(zip(original, mutated)):
            if was != now:
                lines[at] = switched(number, was, now)
    home = pathlib.Path(tree) / HOME
    changed.setdefault(home, home.read_text().splitlines())
    for path, lines in changed.items():
        last = max(at for at, line in enumerate(lines) if line.startswith("#include"))
        lines.insert(last + 1, DECLARE.strip())
        if path == home:
            words = ", ".join(f"{word:#x}" for word in MAGIC)
            lines.append(f"volatile unsigned int ring3_mutant[4] = {{ {words}, 0 }};")
        path.write_text("\n".join(lines) + "\n")


def choose(image, number):
    data = bytearray(pathlib.Path(image).read_bytes())
    magic = struct.pack("<3I", *MAGIC)
    at = data.find(magic)
    if at < 0 or data.find(magic, at + 1) >= 0:
        sys.exit("switch.py: the image has no mutants, or they can't be told apart")
    data[at + 12 : at + 16] = struct.pack("<I", number)
    pathlib.Path(image).write_bytes(data)


if sys.argv[1:2] == ["plant"] and len(sys.argv) == 4:
    plant(sys.argv[2], sys.argv[3])
elif sys.argv[1:2] == ["choose"] and len(sys.argv) == 4:
    choose(sys.argv[2], int(sys.argv[3]))
else:
    sys.exit(__doc__)

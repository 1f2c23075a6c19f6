"""Checks the memory remarks of a compilation: check-peak.py REMARKS PLAN_TEXT."""
import re
import sys

remarks, plan = (open(path, encoding="utf-8").read() for path in sys.argv[1:3])
programs = re.findall(r"memory: program (\w+) needs (\d+) transient bytes; at most (\d+) are live at once", remarks)
for name, needed, bound in programs:
    if int(needed) < int(bound) or int(needed) > 1.03 * int(bound):
        sys.exit(f"program {name} needs {needed} bytes; the lower bound is {bound}")
arena = re.search(r'plan.arena @transient "activation" (\d+) bytes', plan)
peak = max(int(needed) for _, needed, _ in programs)
if int(arena.group(1)) != peak:
    sys.exit(f"the arena has {arena.group(1)} bytes, the largest program needs {peak}")
print(f"{len(programs)} programs, peak {peak} bytes")

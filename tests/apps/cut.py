# SPDX-License-Identifier: GPL-2.0
"""Opens again what memory of ring3's its parent has, and tries to make it smaller; says how many there were."""
import os

if os.fork():
    os.wait()
    os._exit(0)

seen = 0
for number in range(1100):
    path = f"/proc/{os.getppid()}/fd/{number}"
    try:
        target = os.readlink(path)
        if "ring3" not in target:
            continue
        again = os.open(path, os.O_RDWR)
    except OSError:
        continue
    size = os.fstat(again).st_size
    # Placeholders are empty.
    if not size:
        continue
    seen += 1
    for smaller in (size - 4096, 4096):
        try:
            os.ftruncate(again, smaller)
            print("cut", target)
        except PermissionError:
            pass
print(seen)

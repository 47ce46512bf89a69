# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Say what lscpu, numactl and hwloc see of this machine, as JSON. Takes nothing from the collection that it checks.

python3 independent_tools.py RESERVED, a list such as 0,24: also, what hwloc says of that reservation.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections import defaultdict
from typing import Iterable
from xml.etree import ElementTree


def main() -> None:
    reserved = sys.argv[1]
    seen = {"lscpu": lscpu(), "numactl": numactl(), "hwloc": hwloc(), "reserved": reservation(reserved)}
    print(json.dumps(seen))


def lscpu() -> dict[str, object]:
    # Its JSON is none where a CPU is offline.
    table = output("lscpu", "--all", "--parse=CPU,CORE,SOCKET,NODE,ONLINE,CACHE")
    rows = [line.split(",") for line in table.splitlines() if not line.startswith("#")]
    online = [row for row in rows if row[4] in ("Y", "yes")]
    return {
        "online": text(int(row[0]) for row in online),
        "offline": text(int(row[0]) for row in rows if row not in online),
        "cores": sorted(groups(online, 1).values()),
        "sockets": sorted(groups(online, 2).values()),
        "numa_nodes": groups(online, 3),
        # Of the caches, the last.
        "l3_caches": sorted(groups(online, -1).values()),
    }


def groups(rows: list[list[str]], column: int) -> dict[str, str]:
    found = defaultdict(list)
    for row in rows:
        found[row[column]].append(int(row[0]))
    return {key: text(cpus) for key, cpus in found.items()}


def numactl() -> dict[str, object]:
    told = output("numactl", "--hardware")
    cpus = dict(re.findall(r"^node (\d+) cpus:(.*)$", told, re.MULTILINE))
    rows = {number: row.split() for number, row in re.findall(r"^ *(\d+):(.*)$", told, re.MULTILINE)}
    return {
        "numa_nodes": {number: text(map(int, cpus[number].split())) for number in cpus},
        "numa_distances": {number: dict(zip(rows, map(int, row))) for number, row in rows.items()},
    }


def hwloc() -> dict[str, object]:
    machine = ElementTree.fromstring(output("lstopo-no-graphics", "--of", "xml"))

    def cpus(kind: str) -> list[str]:
        return sorted(
            of_mask(element.attrib["cpuset"]) for element in machine.iter("object") if element.attrib["type"] == kind
        )

    return {
        "online": cpus("Machine")[0],
        "cores": cpus("Core"),
        "sockets": cpus("Package"),
        "dies": cpus("Die"),
        "l3_caches": cpus("L3Cache"),
    }


def of_mask(mask: str) -> str:
    """Return a set of hwloc's: words of 32 bits from the highest on, such as 0x10,0x01001001."""
    words = [word[2:].rjust(8, "0") for word in mask.split(",")]
    number = int("".join(words), 16)
    return text(bit for bit in range(number.bit_length()) if number >> bit & 1)


def reservation(reserved: str) -> dict[str, object]:
    units = ["pu:%d" % cpu for cpu in of_text(reserved)]
    ask = ("hwloc-calc", "--physical-input")
    return {
        "count": int(output(*ask, "--number-of", "pu", *units)),
        "parts": output(*ask, "--largest", *units).split(),
        "numa_nodes": output(*ask, "--physical-output", "--intersect", "numanode", *units).strip().split(","),
    }


def of_text(ranges: str) -> list[int]:
    ends = [part.split("-") for part in ranges.split(",")]
    return [cpu for end in ends for cpu in range(int(end[0]), int(end[-1]) + 1)]


def text(numbers: Iterable[int]) -> str:
    """Return the kernel's list format, 0-3,8."""
    ranges: list[list[int]] = []
    for number in sorted(numbers):
        if ranges and ranges[-1][1] == number - 1:
            ranges[-1][1] = number
        else:
            ranges.append([number, number])
    return ",".join(str(first) if first == last else "%d-%d" % (first, last) for first, last in ranges)


def output(*command: str) -> str:
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout


if __name__ == "__main__":
    main()

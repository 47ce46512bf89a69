# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Print how often each interrupt that can be moved came to these CPUs: python3 interrupts.py 1,5"""

from __future__ import annotations

import os
import stat
import sys


def main() -> None:
    with open("/proc/interrupts", encoding="ascii") as file:
        columns = ["CPU" + cpu for cpu in sys.argv[1].split(",")]
        header = file.readline().split()
        places = [header.index(column) for column in columns]
        for line in file:
            number, *counts = line.split()
            path = "/proc/irq/%s/smp_affinity" % number.rstrip(":")
            if os.path.exists(path) and os.stat(path).st_mode & stat.S_IWUSR:
                print(number, *(counts[place] for place in places))


if __name__ == "__main__":
    main()

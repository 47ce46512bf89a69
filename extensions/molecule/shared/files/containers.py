# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Say where the containers of this machine may run, as JSON: {container: CPUs}. Asks runc and the kernel alone.

Once from outside, of the container's process, and once from inside, of a process that runc starts in the container;
"from outside, from inside" where they differ.
"""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

RUNC = ("runc", "--root", "/run/containerd/runc/k8s.io")
NAME = "io.kubernetes.cri.container-name"


def main() -> None:
    listed = json.loads(output("list", "--format", "json")) or ()
    running = [one for one in listed if one["status"] == "running" and NAME in (one["annotations"] or ())]
    print(json.dumps({one["annotations"][NAME]: seen(one) for one in running}))


def seen(container: dict) -> str:
    outside = allowed(Path("/proc/%d/status" % container["pid"]).read_text())
    inside = allowed(output("exec", container["id"], "cat", "/proc/self/status"))
    return outside if outside == inside else "%s from outside, %s from inside" % (outside, inside)


def allowed(status: str) -> str:
    return re.search(r"^Cpus_allowed_list:\s*(.*)$", status, re.MULTILINE)[1]


def output(*arguments: str) -> str:
    return subprocess.run([*RUNC, *arguments], check=True, stdout=subprocess.PIPE, text=True).stdout


if __name__ == "__main__":
    main()

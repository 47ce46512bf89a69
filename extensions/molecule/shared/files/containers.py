# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Say where the containers of this machine may run, as JSON: {"ids": {container: id}, "cpus": {container: CPUs}}.

Asks runc and the kernel alone: once from outside, of the container's process, and once from inside, of a process that
runc starts in the container.
"""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from typing import Any

RUNC = ("runc", "--root", "/run/containerd/runc/k8s.io")
NAME = "io.kubernetes.cri.container-name"


def main() -> None:
    listed = json.loads(output("list", "--format", "json")) or ()
    running = [
        container
        for container in listed
        if container["status"] == "running" and NAME in (container["annotations"] or ())
    ]
    named = {container["annotations"][NAME]: container for container in running}
    ids = {name: container["id"] for name, container in named.items()}
    print(json.dumps({"ids": ids, "cpus": {name: cpus(container) for name, container in named.items()}}))


def cpus(container: dict[str, Any]) -> str:
    outside = allowed(Path("/proc/%d/status" % container["pid"]).read_text())
    inside = allowed(output("exec", container["id"], "cat", "/proc/self/status"))
    return outside if outside == inside else "%s from outside, %s from inside" % (outside, inside)


def allowed(status: str) -> str:
    (found,) = re.findall(r"^Cpus_allowed_list:\s*(.*)$", status, re.MULTILINE)
    return str(found)


def output(*arguments: str) -> str:
    return subprocess.run([*RUNC, *arguments], check=True, stdout=subprocess.PIPE, text=True).stdout


if __name__ == "__main__":
    main()

# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Start containers as containerd and runc do it with the systemd driver: a scope in the pod's slice, and its cpuset.

python3 runtime.py CONTAINERS, as JSON: {name: {"uid": of the pod, "qos": class, "id": of the container, "cpus": list}}
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

V2 = Path("/sys/fs/cgroup")
# Of cgroup v1; systemd leaves this hierarchy to others.
V1 = V2 / "cpuset"


def main() -> None:
    for name, container in json.loads(sys.argv[1]).items():
        start(name, container)


def start(name: str, container: dict[str, str]) -> None:
    pod = "pod" + container["uid"].replace("-", "_")
    slices = ["kubepods", "kubepods-" + pod]
    if container["qos"] != "guaranteed":
        slices[1:] = ["kubepods-" + container["qos"], "kubepods-%s-%s" % (container["qos"], pod)]
    names = [part + ".slice" for part in slices]
    scope = "cri-containerd-%s.scope" % container["id"]
    properties = ["--slice=" + names[-1], "--unit=" + scope, "--property=Delegate=yes"]
    if not V1.exists():
        properties.append("--property=AllowedCPUs=" + container["cpus"])
    process = subprocess.Popen(
        ["systemd-run", "--quiet", "--scope", *properties, "sleep", "infinity"],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    wait_for(process.pid, "/%s/%s\n" % ("/".join(names), scope))
    if V1.exists():
        confine(process.pid, [*names, scope], container["cpus"])
    # The kubelet names the log of a container for it.
    Path("/var/log/containers", "%s_shop_%s-%s.log" % (name, name, container["id"])).touch()


def wait_for(pid: int, cgroup: str) -> None:
    """Wait until systemd-run has become the process that it starts, in the cgroup that systemd made."""
    for _attempt in range(600):
        if cgroup in Path("/proc/%d/cgroup" % pid).read_text():
            return
        time.sleep(0.1)
    raise SystemExit("no %s" % cgroup)


def confine(pid: int, names: list[str], cpus: str) -> None:
    """Give it a cgroup in the hierarchy of cpusets; those above have all CPUs."""
    directory = V1
    for name in names:
        above, directory = directory, directory / name
        directory.mkdir(exist_ok=True)
        for file in ("cpuset.cpus", "cpuset.mems"):
            (directory / file).write_text((above / file).read_text())
    (directory / "cpuset.cpus").write_text(cpus)
    (directory / "cgroup.procs").write_text(str(pid))


if __name__ == "__main__":
    main()

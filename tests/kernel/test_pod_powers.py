# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the pod that saves a node without ssh could do to it, if its image were hostile: what is left of root's power.

It runs as the pod does: with the capabilities of daemonset.yml, no new ones, and with read-only mounts.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

MANIFEST = Path(__file__).parents[2] / "extensions/without_ssh/daemonset.yml"

# A process of the node, which says where it keeps a text.
_VICTIM = """\
import ctypes, sys
text = ctypes.create_string_buffer(b"as it was")
print(ctypes.addressof(text), flush=True)
sys.stdin.readline()
print(text.value.decode())
"""
# Tries each of these, and says what became of it: an error's name, or "done".
_TRIES = """\
import ctypes, errno, json, os, signal, socket, stat, sys
victim, address, directory = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
library = ctypes.CDLL(None, use_errno=True)

def call(name, *arguments):
    words = [ctypes.c_long(argument) if isinstance(argument, int) else argument for argument in arguments]
    if getattr(library, name)(*words) < 0:
        raise OSError(ctypes.get_errno(), "")

def write_memory():
    os.pwrite(os.open("/proc/%d/mem" % victim, os.O_RDWR), b"taken over\\0", address)

tries = {
    "a file": lambda: open(directory + "/secret", "w"),
    "the memory of a process": write_memory,
    "a process is traced": lambda: call("ptrace", 16, victim, 0, 0),
    "a process's files": lambda: os.open("/proc/%d/fd/0" % victim, os.O_RDONLY),
    "a process's root": lambda: os.listdir("/proc/%d/root" % victim),
    "a process's variables": lambda: open("/proc/%d/environ" % victim).read(),
    "a device": lambda: os.mknod("/dev/shm/kubenode-disk", stat.S_IFBLK | 0o600, os.makedev(7, 0)),
    "a mount": lambda: call("mount", b"none", directory.encode(), b"tmpfs", 0, 0),
    "a namespace": lambda: call("unshare", 0x20000),
    "root's file": lambda: open(directory + "/secret").read(),
    "root's socket": lambda: socket.socket(socket.AF_UNIX).connect(directory + "/socket"),
    "a signal": lambda: os.kill(victim, signal.SIGCONT),
}
found = {}
for name, attempt in tries.items():
    try:
        attempt()
        found[name] = "done"
    except OSError as error:
        found[name] = errno.errorcode[error.errno]
with open("/proc/self/status") as file:
    found["capabilities"] = next(line.split()[1] for line in file if line.startswith("CapEff"))
print(json.dumps(found))
"""
_POD = """\
directory=$1 capabilities=$2
shift 2
mount --make-rprivate /
for place in / "$directory"; do
    mount --bind "$place" "$place"
    mount -o remount,bind,ro "$place"
done
cd "$directory"
exec setpriv --no-new-privs --inh-caps=-all --bounding-set="-all$capabilities" "$@"
"""


@pytest.fixture
def security() -> dict[str, Any]:
    """Return what the manifest says of the container's rights."""
    items = yaml.safe_load(MANIFEST.read_text("utf-8"))["items"]
    (daemon_set,) = (item for item in items if item["kind"] == "DaemonSet")
    found: dict[str, Any] = daemon_set["spec"]["template"]["spec"]["containers"][0]["securityContext"]
    return found


def tried(directory: Path, capabilities: list[str]) -> tuple[dict[str, str], str]:
    """Return what became of each try, and the text of the node's process afterwards."""
    secret = directory / "secret"
    secret.write_text("a key", encoding="ascii")
    secret.chmod(0o600)
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(directory / "socket"))
        (directory / "socket").chmod(0o600)
        server.listen()
        command = [sys.executable, "-c", _VICTIM]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as victim:
            assert victim.stdin is not None
            assert victim.stdout is not None
            address = victim.stdout.readline().strip()
            added = "".join(",+" + name.lower() for name in capabilities)
            pod = ["unshare", "--mount", "sh", "-ec", _POD, "sh", str(directory), added]
            tries = [sys.executable, "-c", _TRIES, str(victim.pid), address, str(directory)]
            done = subprocess.run([*pod, *tries], stdout=subprocess.PIPE, text=True, check=True)
            victim.send_signal(signal.SIGCONT)
            text, _error = victim.communicate("\n")
    found: dict[str, str] = json.loads(done.stdout)
    return found, text.strip()


# What is refused to a pod that has no more rights than it needs.
REFUSED = {
    "a file": "EROFS",
    "the memory of a process": "EACCES",
    "a process is traced": "EPERM",
    "a process's files": "EACCES",
    "a process's root": "EACCES",
    "a process's variables": "EACCES",
    "a device": "EPERM",
    "a mount": "EPERM",
    "a namespace": "EPERM",
}
# What root may do without any capability. By a runtime's socket it is root on the node.
LEFT = ("root's file", "root's socket", "a signal")


@pytest.mark.skipif(os.geteuid() != 0, reason="takes root")
@pytest.mark.needs("unshare", "setpriv", "mount")
def test_the_pod_writes_to_no_process_of_the_node_and_still_can_become_root(
    tmp_path: Path, security: dict[str, Any]
) -> None:
    assert security["capabilities"] == {"drop": ["ALL"], "add": ["SYS_CHROOT"]}
    assert (security["privileged"], security["allowPrivilegeEscalation"]) == (False, False)
    found, text = tried(tmp_path, security["capabilities"]["add"])
    assert text == "as it was"
    assert found == {**REFUSED, **dict.fromkeys(LEFT, "done"), "capabilities": "%016x" % (1 << 18)}


@pytest.mark.skipif(os.geteuid() != 0, reason="takes root")
@pytest.mark.needs("unshare", "setpriv", "mount")
def test_with_sys_ptrace_the_pod_could_write_to_every_process(tmp_path: Path) -> None:
    """Why the pod does not have it."""
    found, text = tried(tmp_path, ["SYS_CHROOT", "SYS_PTRACE"])
    assert (found["the memory of a process"], text) == ("done", "taken over")

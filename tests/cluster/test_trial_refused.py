# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Trial starts where the system refuses them something: room, a right, a call, a runtime. What is answered is true."""

from __future__ import annotations

import errno
import os
import platform
import sys
from pathlib import Path
from typing import Any, Iterator

import pytest

from ansible_collections.kubenode.cpu_manager.tests.playbooks.conftest import ansible_playbook
from ansible_collections.kubenode.cpu_manager.tests.running.lacking import need
from ansible_collections.kubenode.cpu_manager.tests.support import kubernetes
from ansible_collections.kubenode.cpu_manager.tests.support.cpus_of_machine import alone
from ansible_collections.kubenode.cpu_manager.tests.support.numbers import how_many

from .fleet import ROLLOUT
from .kubelet_node import saved
from .test_trial import WANTED, trials
from .trial_node import CHECKPOINT, STATIC, LiveNode

# Enough of a kubelet where only what is done before it is looked at.
_STARTS = """\
#!/bin/sh
[ "$1" != --version ] || exec echo Kubernetes vVERSION
echo '{"policyName":"static"}' > /var/lib/kubelet/cpu_manager_state || exec echo "no checkpoint"
echo "Starting Kubelet Plugin Manager"
exec sleep 1000
""".replace("VERSION", kubernetes.version())
_SAYS = """\
#!/bin/sh
[ "$1" != --version ] || exec echo Kubernetes vVERSION
echo $(grep ^Cap /proc/self/status)
exit 1
""".replace("VERSION", kubernetes.version())
# A file system of this size over a directory, with what is in it, and so many bytes left. The checkout may be in /tmp.
_FULL = """\
set -e
path=$1 left=$2 checkout=$3
shift 3
mkdir /opt/copied /opt/checkout
[ "$path" = /tmp ] || cp -a "$path/." /opt/copied
mount --bind "$checkout" /opt/checkout
mount -t tmpfs -o size=4m none "$path"
cp -a /opt/copied/. "$path"
if [ ! -d "$checkout" ]; then
    mkdir -p "$checkout"
    mount --bind /opt/checkout "$checkout"
fi
umount /opt/checkout
free=$(stat --file-system --format=%f "$path")
head -c $((free * 4096 - left)) /dev/zero > "$path/filler"
exec "$@"
"""
_NOEXEC = 'mount --bind "$1" "$1"; mount -o remount,bind,noexec "$1"; shift; exec "$@"'
NO_ROOM = "a trial has its files in memory, and not enough room for them there"


def full(path: str, left: int) -> list[str]:
    """Return the words in front of a command that runs where this directory has so many bytes left."""
    return ["sh", "-c", _FULL, "sh", path, str(left), str(Path(__file__).parents[2])]


def noexec(program: str) -> list[str]:
    """Return the words in front of a command that runs where this program may not be executed."""
    return ["sh", "-c", _NOEXEC, "sh", program]


@pytest.fixture
def node(real_kubelet: Path, tmp_path: Path) -> Iterator[LiveNode]:
    """Yield a node with the real kubelet."""
    need("unshare", "mount")
    with alone():
        yield LiveNode(real_kubelet, tmp_path / "node")


@pytest.fixture
def quick(tmp_path: Path) -> Iterator[LiveNode]:
    """Yield a node whose kubelet is a program that starts at once."""
    need("unshare", "mount")
    with alone():
        yield quick_node(tmp_path, _STARTS)


def quick_node(directory: Path, program: str) -> LiveNode:
    """Return a node whose kubelet is this program."""
    programs = directory / "programs"
    programs.mkdir()
    (programs / "kubelet").write_text(program, encoding="utf-8")
    (programs / "kubelet").chmod(0o755)
    made = LiveNode(programs, directory / "node")
    made.configure({**STATIC, "healthzPort": 0})
    return made


def answer_of(node: LiveNode, *before: str, **request: Any) -> tuple[bool | None, str]:
    """Return what a trial answers, and why it does not say: nothing has changed and nothing is left."""
    done = node.answer("try", *before, **request)
    assert done["after"] == done["before"]
    answer = done["answer"]
    assert bool(answer["reason"]) == (answer["starts"] is None)
    return answer["starts"], answer["reason"]


# --- room -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", ["/run", "/tmp", "/etc", "/var/log"])
def test_a_trial_needs_no_room_on_the_nodes_disk(quick: LiveNode, path: str) -> None:
    """Its own files are in memory."""
    assert answer_of(quick, *full(path, 0)) == (True, "")


@pytest.mark.parametrize("left", [0, 4096, 1_000_000])
def test_where_the_kubelets_disk_is_full_a_start_is_none(quick: LiveNode, left: int) -> None:
    starts, reason = answer_of(quick, *full("/var/lib/kubelet", left))
    assert starts is None
    assert reason == "it starts where it has room for its files, and the file system of /var/lib/kubelet is full"


def test_a_refusal_is_one_with_a_full_disk_too(node: LiveNode) -> None:
    assert answer_of(node, *full("/var/lib/kubelet", 0))[0] is None
    assert answer_of(node, *full("/var/lib/kubelet", 3_000_000)) == (True, "")
    node.configure({**STATIC, "reservedSystemCPUs": "999"})
    assert answer_of(node, *full("/var/lib/kubelet", 0)) == (False, "")


# Pages of 4 KiB: the fewest let not even the mounts be made, and with the most a kubelet starts alone.
@pytest.mark.parametrize("pages", [1, 2, 3, 4, 6, 8, 16])
def test_where_a_trial_itself_has_no_room(quick: LiveNode, pages: int) -> None:
    starts, reason = answer_of(quick, room=pages * 4096)
    assert starts is True or reason.endswith(NO_ROOM)
    assert starts is (True if pages > 8 else None if pages < 6 else starts)


def test_where_what_is_planned_does_not_fit(quick: LiveNode) -> None:
    """The last file ends in its midst. What is beside a planned one takes no room."""
    large = "#" * 900_000
    planned = {"/run/planned/%d" % number: large for number in range(3)}
    assert answer_of(quick, room=2 << 20, files=planned) == (None, "cannot be tried: /run/planned/2: " + NO_ROOM)
    quick.write("/etc/kubernetes/large", large)
    assert answer_of(quick, room=1 << 20, files={"/etc/kubernetes/planned": large}) == (True, "")
    assert answer_of(quick, room=4 << 20, files=planned) == (True, "")


def test_a_large_file_that_is_named_takes_no_room(quick: LiveNode) -> None:
    quick.flags.append("--tls-cert-file=/run/large")
    grow = ["sh", "-c", 'head -c 100000000 /dev/zero > /run/large; exec "$@"', "sh"]
    assert answer_of(quick, *grow) == (True, "")


def test_where_kubelet_and_runtime_have_no_room(node: LiveNode) -> None:
    """Wherever they end, there is no refusal of the kubelet's: it would start with these files."""
    sizes = [24, 48, 96, 192, 384, 768, 1536, 3072]
    for size in sizes[:: len(sizes) // how_many("TRIAL_ROOMS", 4, 8)]:
        assert answer_of(node, room=size << 10)[0] is not False
    assert answer_of(node)[0] is True


def test_a_rollout_goes_by_the_prediction_where_the_disk_is_full(node: LiveNode, tmp_path: Path) -> None:
    """There is room for what the rollout itself writes; without, it refuses that."""
    node.configure({"cpuManagerPolicy": "none"})
    node.write(CHECKPOINT, saved("none", "").decode("ascii"))
    host = {
        **WANTED,
        "ansible_python_interpreter": str(node.python(*full("/var/lib/kubelet", 500_000))),
        "kubelet_target_version": kubernetes.version(),
        "kubelet_manage_service": False,
    }
    run = ansible_playbook(tmp_path / "run", ROLLOUT, {"node": host}, "--check")
    assert run.status == 0, run.account()
    (first, *_more) = trials(run, "node")
    assert (first["starts"], first["told"]) == (None, "")
    said = "the start after the change is only predicted: it starts where it has room for its files"
    assert said in " ".join(run.output.split())
    needed = ansible_playbook(tmp_path / "needed", ROLLOUT, {"node": {**host, "kubelet_trial": "always"}}, "--check")
    assert needed.status != 0
    assert said in " ".join(str(needed.last("node")["msg"]).split())


# --- rights and calls -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("capability", "reason"),
    [
        ("sys_admin", "unshare pid: Operation not permitted"),
        ("setpcap", "prctl PR_CAPBSET_DROP: Operation not permitted"),
        ("net_admin", "the loopback interface: Operation not permitted"),
        ("dac_override", "no cgroups of its own can be made: /sys/fs/cgroup"),
    ],
)
def test_without_a_right(quick: LiveNode, capability: str, reason: str) -> None:
    need("setpriv")
    starts, said = answer_of(quick, "setpriv", "--bounding-set=-" + capability, "--inh-caps=-all")
    assert starts is None
    assert said.startswith("cannot be tried: " + reason)


def test_no_lacking_right_is_taken_for_a_refusal(node: LiveNode) -> None:
    need("setpriv")
    names = ["chown", "fowner", "kill", "setuid", "sys_chroot", "sys_resource", "sys_ptrace", "ipc_lock"]
    for name in names[:: len(names) // how_many("TRIAL_RIGHTS", 2, 8)]:
        assert answer_of(node, "setpriv", "--bounding-set=-" + name, "--inh-caps=-all")[0] is not False


def test_what_the_module_could_hand_on_does_not_come_to_the_kubelet(tmp_path: Path) -> None:
    """Of root, a program has what is inheritable, whatever the bounding set says."""
    need("unshare", "mount", "setpriv")
    with alone():
        node = quick_node(tmp_path, _SAYS)
        message = node.answer("try", "setpriv", "--inh-caps=+sys_admin,+net_admin")["answer"]["message"]
    words = message.replace(":", "").split()
    held = {name: int(value, 16) for name, value in zip(words[::2], words[1::2])}
    assert held["CapInh"] == 0
    for capability in ("CapPrm", "CapEff", "CapBnd"):
        assert held[capability]
        assert not held[capability] & (1 << 34 | 1 << 24 | 1 << 21 | 1 << 12)


# By the kernel's numbers on each kind of machine.
_CALLS = {
    "x86_64": {"unshare": 272, "mount": 165, "capset": 126, "prctl": 157, "sched_setaffinity": 203, "socket": 41},
    "aarch64": {"unshare": 97, "mount": 40, "capset": 91, "prctl": 167, "sched_setaffinity": 122, "socket": 198},
}
# Runs a command in which this call fails with this error: seccomp(2), with a filter of three steps.
_REFUSING = """\
import ctypes, os, struct, sys
number, error, *command = sys.argv[1:]
steps = [(0x20, 0, 0, 0), (0x15, 0, 1, int(number)), (0x06, 0, 0, 0x50000 | int(error)), (0x06, 0, 0, 0x7FFF0000)]
kept = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *step) for step in steps))
program = ctypes.create_string_buffer(struct.pack("HxxxxxxP", len(steps), ctypes.addressof(kept)))
library = ctypes.CDLL(None, use_errno=True)
assert library.prctl(38, 1, 0, 0, 0) == 0
assert library.prctl(22, 2, program) == 0, os.strerror(ctypes.get_errno())
os.execvp(command[0], command)
"""


@pytest.mark.parametrize(
    ("call", "error", "reason"),
    [
        ("unshare", errno.EACCES, "unshare pid"),
        ("mount", errno.EPERM, "mount /"),
        ("mount", errno.EACCES, "mount /"),
        ("capset", errno.EPERM, "capset"),
        ("prctl", errno.EACCES, "prctl PR_SET_PDEATHSIG"),
        ("sched_setaffinity", errno.EPERM, "it cannot be kept to the CPUs 0"),
        ("socket", errno.EACCES, "the loopback interface"),
    ],
)
def test_where_a_security_module_refuses_a_call(quick: LiveNode, call: str, error: int, reason: str) -> None:
    numbers = _CALLS.get(platform.machine())
    if numbers is None:
        pytest.skip("the numbers of the calls are not known here")
    before = [sys.executable, "-c", _REFUSING, str(numbers[call]), str(error)]
    assert answer_of(quick, *before) == (None, "cannot be tried: %s: %s" % (reason, os.strerror(error)))


def test_where_any_mount_is_refused(quick: LiveNode) -> None:
    need("strace")
    strace = ["strace", "--follow-forks", "--seccomp-bpf", "--output=/dev/null"]
    for number in range(1, 31, 30 // how_many("TRIAL_MOUNTS", 5, 30)):
        starts, reason = answer_of(quick, *strace, "--inject=mount:error=EACCES:when=%d" % number)
        assert starts is None
        assert reason.startswith("cannot be tried: mount /")
        assert reason.endswith(": Permission denied")


def test_where_a_program_may_not_be_executed(node: LiveNode) -> None:
    reason = "cannot be tried: /opt/bin/kubelet: Permission denied"
    assert answer_of(node, *noexec("/opt/bin/kubelet")) == (None, reason)
    starts, reason = answer_of(node, *noexec("/opt/bin/containerd"))
    assert starts is None
    assert reason.endswith("there is none for a trial: the private one did not start: Permission denied")
    node.configure({**STATIC, "reservedSystemCPUs": "999"})
    assert answer_of(node, *noexec("/opt/bin/containerd"))[0] is False

# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Trial starts do no harm to a node: to its disks, its memory, its kernel's log and its time, whatever is started."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any, Callable, Iterator

import pytest

from ansible_collections.kubenode.cpu_manager.tests.running.lacking import need
from ansible_collections.kubenode.cpu_manager.tests.support import kubernetes
from ansible_collections.kubenode.cpu_manager.tests.support.cpus_of_machine import alone

from .test_trial_refused import quick_node
from .trial_node import LiveNode

_PYTHON = os.path.realpath(sys.executable)
# A kubelet that does this, in Python.
_DOES = """\
#!%s -S
import os, socket, sys, time
if "--version" in sys.argv:
    print("Kubernetes vVERSION")
    sys.exit()

def wait_for(path, seconds):
    deadline = time.monotonic() + seconds
    while not os.path.exists(path) and time.monotonic() < deadline:
        time.sleep(0.05)
    return os.path.exists(path)

%s
""".replace("VERSION", kubernetes.version())
# Does something of the node as soon as the kubelet of the trial runs; `trial` are the processes of the trial.
_DURING = """\
import fcntl, glob, json, os, signal, subprocess, sys, time

def processes():
    for path in glob.glob("/proc/[0-9]*/cmdline"):
        try:
            with open(path, "rb") as file:
                if b"kubelet\\0--config" in file.read():
                    yield int(path.split("/")[2])
        except OSError:
            pass

while not list(processes()):
    time.sleep(0.02)
(procs,) = [
    *glob.glob("/sys/fs/cgroup/pids/kubenode-kubelet-trial/cgroup.procs"),
    *glob.glob("/sys/fs/cgroup/kubenode-kubelet-trial/trial/cgroup.procs"),
]
with open(procs) as file:
    trial = sorted(int(line) for line in file)
%s
"""
_BESIDE = '%s; python=$1; program=$2; shift 2; "$python" -c "$program" > /dev/null & exec "$@"'
# Seconds until all that happens outside has happened.
_LONG = 20


def during(program: str, before: str = ":") -> list[str]:
    """Return the words in front of a command: some shell before it, and this Python beside it, as soon as the
    kubelet runs."""
    return ["sh", "-ec", _BESIDE % before, "sh", _PYTHON, _DURING % program]


MakeKubelet = Callable[[str], LiveNode]


@pytest.fixture
def kubelet(tmp_path: Path) -> Iterator[MakeKubelet]:
    """Yield a function that makes a node whose kubelet does this. One test at a time has it, as the cgroups of this
    machine are looked at."""
    need("unshare", "mount")
    with alone():
        yield lambda does: quick_node(tmp_path, _DOES % (_PYTHON, does))


def said(node: LiveNode, *before: str, **request: Any) -> str:
    """Return with which words the kubelet of a trial has ended."""
    answer = node.answer("try", *before, **request)["answer"]
    assert answer["starts"] is False, answer
    return str(answer["message"])


def reason(node: LiveNode, *before: str, **request: Any) -> str:
    """Return why a trial does not say whether the kubelet starts."""
    answer = node.answer("try", *before, **request)["answer"]
    assert answer["starts"] is None, answer
    return str(answer["reason"])


# --- its time, and who ends it --------------------------------------------------------------------------------

_DRIPS = """\
with open("/var/lib/kubelet/cpu_manager_state", "w") as file:
    file.write('{"policyName":"static"}')
server = socket.create_server(("127.0.0.1", 10248))
print("Starting Kubelet Plugin Manager", flush=True)
while True:
    connection = server.accept()[0]
    try:
        while True:
            connection.send(b"H")
            time.sleep(0.1)
    except OSError:
        pass
"""


def test_a_kubelet_that_drips_at_healthz_does_not_make_a_trial_longer(kubelet: MakeKubelet) -> None:
    node = kubelet(_DRIPS)
    node.configure({"cpuManagerPolicy": "static", "reservedSystemCPUs": "0"})
    answer = node.tried(timeout=5)
    assert (answer["starts"], answer["reason"]) == (True, "")
    assert "whether its /healthz says ok: it did not in time" in answer["not_tried"]
    # Its 5 s, and what is before and behind them on a machine that does other things.
    assert answer["seconds"] < 15


def test_a_kubelet_that_does_not_say_its_version_does_not_make_a_trial_longer(kubelet: MakeKubelet) -> None:
    node = kubelet("")
    path = node.programs / "kubelet"
    path.write_text("#!/bin/sh\nexec sleep 1000\n", encoding="utf-8")
    answer = node.tried(timeout=5)
    assert answer["reason"] == "cannot be tried: /opt/bin/kubelet --version does not end in time"
    assert answer["seconds"] < 15


_OF_KERNEL = "the kernel has ended or refused a process of the trial: the trial has reached its limit of "
_OF_PROCESS = "cannot be tried: the process of the trial "
_EATS = "held = []\n    while True:\n        held.append(bytearray(b'x' * (1 << 24)))"
_ENDS = {
    "memory": ("if True:\n    " + _EATS, _OF_KERNEL + "memory, 768 MiB"),
    "memory of a child": (
        "if os.fork() == 0:\n    %s\nos.wait()\nsys.exit('Error: my child is gone')" % _EATS,
        _OF_KERNEL + "memory, 768 MiB",
    ),
    "processes": (
        "try:\n    while os.fork():\n        pass\nexcept OSError as error:\n    sys.exit(str(error))\ntime.sleep(9)",
        _OF_KERNEL + "768 processes",
    ),
    "its own signal": ("os.kill(os.getpid(), 9)", "it was ended by signal 9, which the trial has not sent"),
    "its own fault": ("os.abort()", "it was ended by signal 6, which the trial has not sent"),
}


@pytest.mark.parametrize("name", _ENDS)
def test_who_has_ended_the_kubelet_of_a_trial_is_told(kubelet: MakeKubelet, name: str) -> None:
    does, expected = _ENDS[name]
    done = kubelet(does).answer("try")
    assert done["after"] == done["before"]
    assert (done["answer"]["starts"], done["answer"]["reason"]) == (None, expected)


def test_who_has_ended_a_trial_itself_is_told(kubelet: MakeKubelet) -> None:
    """The first process inside, which tells of all others, is killed by another program, or stands still."""
    node = kubelet("time.sleep(1000)")
    killed = during("os.kill(trial[0], signal.SIGKILL)")
    assert reason(node, *killed) == _OF_PROCESS + "was killed by another program (signal 9)"
    stopped = during("os.kill(trial[0], signal.SIGSTOP)")
    assert reason(node, *stopped, timeout=5) == _OF_PROCESS + "did not end in time, and was killed"


# --- the lock of trials ---------------------------------------------------------------------------------------

# Another user holds all that he can open, and what he can put in the lock's place where everybody may write.
_HELD = """\
for top in /sys/fs/cgroup /sys/fs/cgroup/*; do
    [ -L "$top" ] || [ ! -e "$top/cgroup.procs" ] || mkdir -p "$top/kubenode-kubelet-trial"
done
setpriv --reuid 65534 --regid 65534 --clear-groups "$1" -IS -c '
import fcntl, glob, os, time
if %r:
    open("/run/kubenode-kubelet-trial.lock", "w").close()
held = []
for pattern in ("/sys/fs/cgroup/kubenode-kubelet-trial", "/sys/fs/cgroup/*/kubenode-kubelet-trial", "/run/*trial*"):
    for path in glob.glob(pattern):
        held.append(os.open(path, os.O_RDONLY))
        fcntl.flock(held[-1], fcntl.LOCK_SH)
assert held
print("held", flush=True)
time.sleep(1000)' > /opt/held &
until grep -q held /opt/held; do sleep 0.05; done
shift
exec "$@"
"""


@pytest.mark.needs("setpriv")
@pytest.mark.parametrize("puts", [False, True])
def test_no_other_user_can_keep_a_node_from_trials(kubelet: MakeKubelet, puts: bool) -> None:
    """With what a trial that was killed has left; and with a file in its place where /run is as /tmp."""
    held = ["sh", "-ec", _HELD % puts, "sh", _PYTHON]
    assert said(kubelet("sys.exit('Error: it was tried')"), *held) == "Error: it was tried"


# --- mounts ---------------------------------------------------------------------------------------------------

_SHARED = "mount --make-rshared /; mkdir -p /opt/late /var/lib/late"


@pytest.mark.parametrize("place", ["/opt/late", "/var/lib/late"])
def test_what_is_mounted_outside_during_a_trial_does_not_come_in(kubelet: MakeKubelet, place: str) -> None:
    node = kubelet(
        "assert wait_for('/opt/mounted', %d)\n"
        "print('Error: it is there' if os.path.exists('%s/there') else 'Error: it is not there')\nsys.exit(1)"
        % (_LONG, place)
    )
    mounts = "subprocess.run('mount -t tmpfs none %s; : > %s/there; : > /opt/mounted', shell=True, check=True)"
    assert said(node, *during(mounts % (place, place), _SHARED)) == "Error: it is not there"


_DISK = """\
mount --make-rshared /
head -c 4194304 /dev/zero > /opt/disk
mkfs.ext2 -q -F /opt/disk
losetup -f --show /opt/disk > /opt/device
mkdir -p /var/lib/disk "/var/lib/kubelet/pods/1/volumes/disk"
mount "$(cat /opt/device)" %s"""
_UNMOUNTS = """\
device = open("/opt/device").read().strip()
found = "free"
try:
    subprocess.run(["umount", %r], check=True)
    # As who locks or detaches a disk: the kernel refuses it as long as one mount is left anywhere.
    os.close(os.open(device, os.O_RDWR | os.O_EXCL))
except Exception as error:
    found = str(error)
subprocess.run("umount -l %s; losetup -d " + device, shell=True)
with open("/opt/found.new", "w") as file:
    file.write("Error: " + found)
os.rename("/opt/found.new", "/opt/found")
"""


@pytest.mark.needs("losetup", "mkfs.ext2")
@pytest.mark.parametrize("place", ["/var/lib/disk", "/var/lib/kubelet/pods/1/volumes/disk"])
def test_a_disk_that_is_unmounted_during_a_trial_is_free_at_once(kubelet: MakeKubelet, place: str) -> None:
    node = kubelet("assert wait_for('/opt/found', %d)\nprint(open('/opt/found').read())\nsys.exit(1)" % _LONG)
    assert said(node, *during(_UNMOUNTS % (place, place), _DISK % place)) == "Error: free"


# --- the kernel's log -----------------------------------------------------------------------------------------

_LOGS = """\
said = []
for flags in (os.O_WRONLY, os.O_RDWR):
    log = os.open("/dev/kmsg", flags)
    os.write(log, b"%s: Out of memory: Killed process 1 (systemd)")
# A kubelet opens it to read, and ends where it cannot.
said.append("read %%r" %% os.read(os.open("/dev/kmsg", os.O_RDONLY), 100))
import ctypes
# Clear the log, read it, and read what nobody has read yet; and of the console.
said += ["%%d" %% ctypes.CDLL(None).klogctl(number, ctypes.create_string_buffer(100), 100) for number in (5, 2, 4, 6)]
print("Error:", *said)
sys.exit(1)
"""


def test_nothing_of_a_trial_comes_into_the_kernels_log(kubelet: MakeKubelet) -> None:
    name = "kubenode-trial-%d" % os.getpid()
    before = _log()
    assert said(kubelet(_LOGS % name)) == "Error: read b'' -1 -1 -1 -1"
    after = _log()
    assert name.encode("ascii") not in after
    # It was not cleared, either.
    assert before[-100:] in after


def _log() -> bytes:
    descriptor = os.open("/dev/kmsg", os.O_RDONLY | os.O_NONBLOCK)
    lines = []
    try:
        while True:
            try:
                lines.append(os.read(descriptor, 8192))
            except BrokenPipeError:  # what was there has been overwritten meanwhile
                continue
    except BlockingIOError:
        return b"".join(lines)
    finally:
        os.close(descriptor)


# --- memory ---------------------------------------------------------------------------------------------------


def test_what_a_trial_starts_is_ended_first_where_memory_is_short(real_kubelet: Path, tmp_path: Path) -> None:
    """A kubelet gives itself -999, and containerd what it has: a pod that has no limit has 1000."""
    need("unshare", "mount")
    program = (
        "time.sleep(0.5)\nscores = []\n"
        "for pid in trial:\n"
        "    name = open('/proc/%d/comm' % pid).read().strip()\n"
        "    scores.append([name, int(open('/proc/%d/oom_score_adj' % pid).read())])\n"
        "with open('/var/lib/scores.new', 'w') as file:\n    json.dump(scores, file)\n"
        "os.rename('/var/lib/scores.new', '/var/lib/scores')\n"
    )
    with alone():
        node = LiveNode(real_kubelet, tmp_path / "node")
        answer = node.answer("try", *during(program))["answer"]
    assert answer["starts"] is True
    scores = json.loads((node.root / "var/lib/scores").read_text("utf-8"))
    started = {name: score for name, score in scores if name in ("kubelet", "containerd")}
    assert started == {"kubelet": 1000, "containerd": 1000}
    # The process that tells of it.
    assert [score for name, score in scores if name not in started] == [0]


def test_a_kubelet_of_a_trial_cannot_give_itself_another_place(kubelet: MakeKubelet) -> None:
    node = kubelet(
        "try:\n    open('/proc/self/oom_score_adj', 'w').write('-999')\nexcept OSError as error:\n    print(error)\n"
        "print('Error:', open('/proc/self/oom_score_adj').read())\nsys.exit(1)"
    )
    assert said(node) == "Error: 1000"


_SHORT = """\
sed 's/^\\(MemAvailable\\|MemFree\\|Inactive(file)\\): .*/\\1: 150000 kB/' /proc/meminfo > /opt/meminfo
mount --bind /opt/meminfo /proc/meminfo
exec "$@"
"""


def test_a_node_that_is_short_of_memory_is_left_alone(kubelet: MakeKubelet) -> None:
    short = ["sh", "-ec", _SHORT, "sh"]
    said_why = "cannot be tried: the node has 146 MiB of memory free; its kubelet keeps 100, and a trial needs 256"
    node = kubelet("sys.exit('Error: it was tried')")
    assert reason(node, *short) == said_why
    assert said(node) == "Error: it was tried"


# --- the network that it does not have ------------------------------------------------------------------------

_ASKS = {
    "metadata": "socket.create_connection(('169.254.169.254', 80), 5)",
    "a cloud": "socket.create_connection(('ec2.eu-west-1.amazonaws.com', 443), 5)",
    "a service of the node": "socket.create_connection(('127.0.0.1', 6443), 5)",
}


@pytest.mark.parametrize("name", _ASKS)
def test_who_asks_the_network_is_not_refused(kubelet: MakeKubelet, name: str) -> None:
    """As a kubelet whose cloud provider is built in, at its start."""
    node = kubelet("try:\n    %s\nexcept OSError as error:\n    print('Error:', error)\nsys.exit(1)" % _ASKS[name])
    assert reason(node).startswith("it asks somebody in the network, and a trial has none (")


def test_a_cloud_provider_that_the_kubelet_does_not_have_is_refused(real_kubelet: Path, tmp_path: Path) -> None:
    need("unshare", "mount")
    with alone():
        node = LiveNode(real_kubelet, tmp_path / "node")
        node.flags.append("--cloud-provider=aws")
        assert 'unknown cloud provider "aws"' in said(node)

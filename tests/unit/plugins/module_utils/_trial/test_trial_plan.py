# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Tests of plugins/module_utils/_trial/trial_plan.py."""

from __future__ import annotations

import errno
from typing import Any

import pytest

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._trial.trial_paths import ROOM, SOCKET
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._trial.trial_plan import (
    CONTAINERD,
    CRIO,
    SYSTEMD,
    CgroupMount,
    Ending,
    TrialPlan,
    UntriedError,
    Words,
    differs,
    judge,
    kept_free,
    memory_for,
    not_tried,
    private_runtime,
    read_hierarchies,
    told_of,
    why_silent,
    words_of,
)
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.cpuset import CPUSet


def plan(words: tuple[str, ...] = (), **values: Any) -> TrialPlan:
    return TrialPlan("/usr/bin/kubelet", words, values, "/var/lib/kubelet", {}, CPUSet(), (), ())


# --- the command line -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("values", "address"),
    [
        ({}, ("127.0.0.1", 10248)),
        ({"healthzPort": 1}, ("127.0.0.1", 1)),
        ({"healthzPort": 0}, None),
        ({"healthzPort": 65535}, ("127.0.0.1", 65535)),
        ({"healthzPort": 65536}, None),
        ({"healthzPort": "no number"}, None),
        ({"healthzBindAddress": "0.0.0.0"}, ("127.0.0.1", 10248)),
        ({"healthzBindAddress": "::"}, ("::1", 10248)),
        ({"healthzBindAddress": "10.0.0.5"}, ("10.0.0.5", 10248)),
    ],
)
def test_where_it_says_that_it_is_healthy(values: dict[str, Any], address: tuple[str, int] | None) -> None:
    assert plan(**values).health_address() == address


# --- the runtime ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [CONTAINERD, CRIO])
def test_a_private_runtime_shares_nothing(kind: str) -> None:
    tomllib = pytest.importorskip("tomllib")
    runtime = private_runtime("/usr/bin/" + kind, kind)
    assert all(path.startswith(ROOM + "/") for path in runtime.files)
    config = runtime.files[runtime.command[2]]
    for value in paths_in(tomllib.loads(config)):
        assert value.startswith(ROOM + "/")
    assert SOCKET in config
    # Drop-ins of the node's own would be read, too.
    assert runtime.command[3:] == (["--config-dir", ""] if kind == CRIO else [])


def paths_in(value: Any) -> list[str]:
    if isinstance(value, str):
        return [value] if value.startswith("/") else []
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [path for item in inner for path in paths_in(item)]


# --- cgroups --------------------------------------------------------------------------------------------------

V1 = """\
30 23 0:26 / /sys/fs/cgroup ro,nosuid - tmpfs tmpfs ro,mode=755
31 30 0:27 / /sys/fs/cgroup/unified rw,nosuid - cgroup2 cgroup2 rw,nsdelegate
32 30 0:28 / /sys/fs/cgroup/systemd rw - cgroup cgroup rw,xattr,name=systemd
33 30 0:29 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct
34 30 0:30 / /sys/fs/cgroup/cpuset rw - cgroup cgroup rw,cpuset,clone_children
35 30 0:29 / /var/lib/other/cpu rw - cgroup cgroup rw,cpu,cpuacct
36 30 0:29 / /sys/fs/cgroup/again\\040here rw - cgroup cgroup rw,cpu,cpuacct
"""
V2 = "30 23 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate,memory_recursiveprot\n"


def test_a_trial_that_may_take_longer_gives_each_step_more_time() -> None:
    assert [plan()._replace(patience=patience).scaled(10) for patience in (8, 45, 450)] == [10, 10, 100]


def test_hierarchies() -> None:
    assert read_hierarchies(V2) == [CgroupMount("/sys/fs/cgroup", "cgroup2")]
    assert read_hierarchies(V1) == [
        CgroupMount("/sys/fs/cgroup/unified", "cgroup2"),
        CgroupMount("/sys/fs/cgroup/systemd", "cgroup", "none,name=systemd"),
        CgroupMount("/sys/fs/cgroup/cpu,cpuacct", "cgroup", "cpu,cpuacct"),
        CgroupMount("/sys/fs/cgroup/cpuset", "cgroup", "cpuset"),
    ]


def test_a_hierarchy_whose_path_has_a_blank() -> None:
    line = "36 30 0:29 / /sys/fs/cgroup/of\\040cpus rw - cgroup cgroup rw,cpu\n"
    assert read_hierarchies(line) == [CgroupMount("/sys/fs/cgroup/of cpus", "cgroup", "cpu")]


def test_without_cgroups_there_is_no_trial() -> None:
    with pytest.raises(UntriedError, match="no cgroups"):
        read_hierarchies("30 23 0:26 / / rw - ext4 /dev/vda rw\n")


# --- what the kubelet says ------------------------------------------------------------------------------------

FATAL = b'F1127 03:43:25.123456   12 kubelet.go:99] Failed to start ContainerManager start cpu manager error: "x"'


@pytest.mark.parametrize(
    ("line", "text"),
    [
        (FATAL, 'Failed to start ContainerManager start cpu manager error: "x"'),
        (
            b'E1127 03:43:25.1   12 run.go:74] "command failed" err="failed: \\"a\\"\\nb"',
            'command failed: failed: "a"\nb',
        ),
        (b'E1127 03:43:25.1 12 a.go:1] "Failed" node="n" err="why" more="x"', "Failed: why"),
        (b'E1127 03:43:25.1 12 a.go:1] "Failed" node="n"', "Failed"),
        (b'E1127 03:43:25.1 12 a.go:1] "Failed" err="a\\tb\\\\c"', "Failed: a\tb\\c"),
        (b'{"ts":1.5,"caller":"a.go","msg":"command failed","err":"why"}', "command failed: why"),
        (b'{"ts":1.5,"caller"', '{"ts":1.5,"caller"'),
        (b"panic: could not restore", "panic: could not restore"),
        (b"\xff", "\ufffd"),
    ],
)
def test_words_of_a_line(line: bytes, text: str) -> None:
    assert words_of(line) == text


@pytest.mark.parametrize("size", [1, 7, 100000])
def test_the_first_fatal_line_counts(size: int) -> None:
    said = (
        b"E1127 03:43:25.1 12 a.go:1] no matter\n"
        + FATAL
        + b"\ngoroutine 1 [running]:\nF1127 03:43:26.1 1 b.go:1] later\n"
    )
    words = Words()
    for start in range(0, len(said), size):
        words.hear(said[start : start + size])
    assert words.why() == words_of(FATAL)


def test_else_the_last_error_and_else_the_last_line() -> None:
    words = Words()
    words.hear(
        b"E1127 03:43:25.1 1 a.go:1] first\nE1127 03:43:25.2 1 a.go:1] second\nI1127 03:43:25.3 1 a.go:1] no error\n"
    )
    assert words.why() == "second"
    words = Words()
    words.hear(b"Error: one\nUsage:\n")
    assert words.why() == "Error: one"
    words = Words()
    words.hear(b"first\n\nlast without an end")
    assert words.why() == "last without an end"
    words = Words()
    for number in range(20):
        words.hear(b"line\n" * 10000 + b"%d\n" % number)
    assert words.why() == "19"
    assert Words().why() == ""


def test_the_start_is_heard_in_two_parts_and_in_json() -> None:
    words = Words()
    words.hear(b'{"ts":1,"msg":"Starting Kubelet Plu')
    assert not words.has_started
    words.hear(b'gin Manager"}\n')
    assert words.has_started


def test_of_much_that_is_said_little_is_kept() -> None:
    words = Words()
    for _time in range(100):
        words.hear(b"x" * (1 << 20))
    assert len(words.why()) <= 2000


# --- what it means --------------------------------------------------------------------------------------------

OWN = ("cgroup-driver",)


@pytest.mark.parametrize(
    ("ending", "starts", "reason"),
    [
        (Ending(has_started=True), True, ""),
        (Ending(status=255, message="Invalid cpuset"), False, ""),
        (Ending(status=1, message="why", has_started=True), False, ""),
        (Ending(failed="a saved node"), None, "cannot be tried: a saved node"),
        (Ending(seconds=45.2), None, "in 45 s it has neither started nor ended"),
        (Ending(asked_runtime=True), None, "no refusal before it asked the container runtime, and there is none"),
        (Ending(asked_runtime=True, runtime_fault="no"), None, "none for a trial: no"),
        # What it did says nothing, and what made it so does.
        (Ending(has_started=True, doubt="the disk is full"), None, "the disk is full"),
        (Ending(status=255, message="no such file", doubt="the runtime ended"), None, "the runtime ended"),
        (Ending(seconds=45.2, doubt="no room"), None, "no room"),
        (Ending(status=1, message="write /x: No space left on device"), None, "enough room for something"),
        (Ending(status=-9, message="x"), None, "ended by signal 9, which the trial has not sent"),
        (Ending(status=-9, message="x", limit="no memory"), None, "ended or refused a process of the trial: no memory"),
        # Of a process that the kubelet needed.
        (Ending(status=1, message="why", limit="768 processes"), None, "a process of the trial: 768 processes"),
        (Ending(has_started=True, limit="no memory"), True, ""),
        (Ending(status=0), None, "ended with status 0 and said nothing"),
        (Ending(status=1, message="open /x: permission denied"), None, "a trial may not (permission denied)"),
        (Ending(status=1, message="mkdir /x: read-only file system"), None, "(read-only file system)"),
        (Ending(status=1, message="mount: Operation not permitted"), None, "(operation not permitted)"),
        (Ending(status=1, message="unknown flag: --cgroup-driver"), None, "does not take a flag that a trial needs"),
        (Ending(status=1, message="unknown flag: --no-such"), False, ""),
        (Ending(status=1, message="dial %s: refused" % SOCKET), None, "container runtime of the trial"),
    ],
)
def test_verdicts(ending: Ending, starts: bool | None, reason: str) -> None:
    verdict = judge(ending, OWN)
    assert verdict.starts is starts
    assert reason in verdict.reason
    assert bool(verdict.reason) == (starts is None)


_AWS = 'could not init cloud provider "aws": error finding instance i-0: '
# As kubelets have said it of clouds, of their metadata and of names; each with what the reason has of it.
UNREACHED = {
    _AWS
    + '"RequestError: send request failed\\ncaused by: dial tcp: lookup ec2.example.org: no such host"': "no such host",
    _AWS + "NoCredentialProviders: no valid providers in chain": "could not init cloud provider",
    "dial tcp 169.254.169.254:80: connect: network is unreachable": "network is unreachable",
    "lookup x on 127.0.0.53:53: read udp 127.0.0.1:4->127.0.0.53:53: read: connection refused": "connection refused",
    "lookup node.example.org: Temporary failure in name resolution": "temporary failure in name resolution",
    "lookup node.example.org on [::1]:53: server misbehaving": "server misbehaving",
    "dial tcp 10.0.0.2:443: connect: no route to host": "no route to host",
    "dial tcp 10.0.0.2:443: i/o timeout": "i/o timeout",
}


@pytest.mark.parametrize("message", UNREACHED)
def test_nobody_is_reached_in_a_trial_and_that_is_no_refusal(message: str) -> None:
    verdict = judge(Ending(status=1, message="failed to run Kubelet: " + message), OWN)
    assert verdict.starts is None
    assert verdict.reason == "it asks somebody in the network, and a trial has none (%s)" % UNREACHED[message]


@pytest.mark.parametrize(
    "message",
    [
        'failed to run Kubelet: unknown cloud provider "aws"',
        'cloud provider "gce" was specified, but built-in cloud providers are disabled.',
        "failed to run Kubelet: could not detect clusterCIDR: no network",
        'invalid argument "x" for "--node-ip" flag',
        "listen tcp 127.0.0.1:10248: bind: address already in use",
        "unable to load client CA file /etc/kubernetes/pki/ca.crt: no such file or directory",
    ],
)
def test_a_refusal_that_names_clouds_and_addresses_is_one(message: str) -> None:
    assert judge(Ending(status=1, message=message), OWN).starts is False


@pytest.mark.parametrize(
    ("is_late", "number", "limit", "told"),
    [
        (True, 9, "", "did not end in time, and was killed"),
        # Who is late is killed, whatever has made it late.
        (True, 0, "its memory", "did not end in time, and was killed"),
        (False, 9, "its memory", "was killed by the kernel: its memory"),
        (False, 9, "", "was killed by another program (signal 9)"),
        (False, 15, "", "was killed by another program (signal 15)"),
        (False, 0, "", "ended and said nothing"),
    ],
)
def test_who_has_ended_a_trial_is_told(is_late: bool, number: int, limit: str, told: str) -> None:
    assert why_silent(is_late, number, limit) == "the process of the trial " + told


# --- the memory and the mounts of the node --------------------------------------------------------------------

_MIB, _GIB = 1 << 20, 1 << 30


@pytest.mark.parametrize(
    ("hard", "kept"),
    [
        (None, 100 * _MIB),
        ({}, 100 * _MIB),
        ({"nodefs.available": "10%"}, 100 * _MIB),
        ({"memory.available": "1Gi"}, _GIB),
        ({"memory.available": "500M"}, 500_000_000),
        ({"memory.available": "5%"}, _GIB // 2),
        ({"memory.available": "0%"}, 0),
        # None, as a kubelet reads it.
        ({"memory.available": "100%"}, 0),
        # With these no kubelet runs.
        ({"memory.available": "much"}, 0),
        ({"memory.available": "much%"}, 0),
        ({"memory.available": "nan%"}, 0),
        ({"memory.available": "inf%"}, 0),
        ({"memory.available": ["1Gi"]}, 0),
        ("no map", 100 * _MIB),
    ],
)
def test_what_a_kubelet_keeps_free(hard: Any, kept: int) -> None:
    assert kept_free(hard, 10 * _GIB) == kept


def test_a_trial_takes_no_memory_by_which_pods_would_be_evicted() -> None:
    assert memory_for(10 * _GIB, _GIB) == 768 * _MIB
    assert memory_for(_GIB, 500 * _MIB) == 524 * _MIB
    assert memory_for(356 * _MIB, 100 * _MIB) == 256 * _MIB
    said = "^the node has 355 MiB of memory free; its kubelet keeps 100, and a trial needs 256$"
    with pytest.raises(UntriedError, match=said):
        memory_for(356 * _MIB - 1, 100 * _MIB)
    with pytest.raises(UntriedError):
        memory_for(_GIB, 10 * _GIB)


def test_pods_disks_and_containers_are_not_kept_busy() -> None:
    made = plan(
        (
            "--root-dir=/var/lib/kubelet",
            "--config=/data/kubelet/config.yaml",
            "--image-credential-provider-bin-dir=/data/plugins",
        ),
        staticPodPath="/srv/manifests",
        podLogsDir="/var/log/pods",
    )
    needed = [
        *("/", "/usr", "/usr/local", "/lib64", "/etc", "/etc/kubernetes/pki", "/proc", "/proc/sys/vm/panic_on_oom"),
        *("/sys", "/sys/fs/cgroup", "/sys/kernel/security", "/opt/bin/kubelet", "/nix/store", "/snap/kubelet/7"),
        *("/dev", "/run", "/tmp", "/var", "/var/lib/kubelet", "/data", "/data/plugins", "/data/plugins/nfs"),
    ]
    let_go = [
        *("/var/lib/kubelet/pods/1/volumes/x", "/var/lib/kubelet/plugins/csi/mount", "/var/lib/kubelet/pki"),
        *("/run/netns/cni-1", "/run/containerd/io/rootfs", "/run/user/0", "/dev/shm", "/tmp/x", "/var/log/audit"),
        *(
            "/var/lib/containerd/x",
            "/mnt/disks/ssd0",
            "/media/usb",
            "/srv",
            "/srv/manifests",
            "/home",
            "/libs",
            "/data/other",
        ),
    ]
    on_the_way = {
        "/",
        "/dev",
        "/run",
        "/tmp",
        "/var",
        "/var/log",
        "/var/lib",
        "/var/lib/kubelet",
        "/data",
        "/data/kubelet",
    }
    assert made.not_needed([*needed, *let_go], on_the_way) == let_go
    # What only a trial's copies cover is not read below its top.
    assert made.not_needed(["/run/kubernetes/ca", "/run/x"], {"/run", "/run/kubernetes", "/run/kubernetes/ca"}) == [
        "/run/x"
    ]


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (OSError(errno.EPERM, "Operation not permitted", "mount /x"), "mount /x: Operation not permitted"),
        (OSError(errno.EAGAIN, "Resource temporarily unavailable"), "a call: Resource temporarily unavailable"),
        (OSError(errno.ENOSPC, "x", "/run/x"), "/run/x: a trial has its files in memory, and not enough room for them"),
    ],
)
def test_what_the_system_refuses_to_a_trial(error: OSError, told: str) -> None:
    assert told_of(error).startswith(told)
    is_denied = error.errno == errno.EPERM
    assert told_of(error, "sysadm_t") == told_of(error) + (", in the domain sysadm_t" if is_denied else "")
    assert told_of(error, "unconfined") == told_of(error)


def test_what_was_not_tried() -> None:
    least = not_tried("cgroupfs", True)
    assert any("API server" in what for what in least)
    assert len(not_tried(SYSTEMD, False, False)) == len(least) + 3


@pytest.mark.parametrize(
    ("starts", "predicted", "is_other"),
    [(True, False, True), (False, True, True), (True, True, False), (None, True, False), (True, None, False)],
)
def test_where_they_differ(starts: bool | None, predicted: bool | None, is_other: bool) -> None:
    assert differs(starts, predicted) is is_other


def test_what_was_tried_is_the_same_whatever_pods_came_and_went() -> None:
    state = "/var/lib/kubelet/cpu_manager_state"
    first = plan(("--v=2",), maxPods=1)._replace(contents={"/c": b"1", state: b"1"})
    digest = first.digest([state])
    assert first._replace(contents={state: None, "/c": b"1"}).digest([state]) == digest
    changed = (
        first._replace(contents={"/c": b"2"}),
        first._replace(contents={"/c": None}),
        first._replace(words=("--v=3",)),
        first._replace(values={"maxPods": 2}),
        first._replace(kubelet="/opt/bin/kubelet"),
    )
    assert len({digest, *(tried.digest([state]) for tried in changed)}) == 1 + len(changed)
    assert len(digest) == 32
    turned = {path: first.contents[path] for path in reversed(list(first.contents))}
    assert first._replace(contents={"/b": b"", **turned}).digest([state]) == (
        first._replace(contents={**first.contents, "/b": b""}).digest([state])
    )
    # Of bytes that are no text.
    assert first._replace(words=("--v=\udcff",)).digest([state]) != digest

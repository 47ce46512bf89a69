# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A trial start decided: with which flags and runtime a kubelet is started, what it must not reach, and what its words
mean. Pure.

Source: cmd/kubelet/app/server.go in Kubernetes; klog's header of a line; docs/man/containerd-config.toml.5.md; mount
options in mountinfo as in proc_pid_mountinfo(5), of cgroup v1 as in cgroups(7).
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import re
from typing import Any, Container, Iterable, Mapping, NamedTuple, Sequence

from .._base.errors import InputError
from .._base.quantity import millis
from .._kubelet.configuration import COMMON_DEFAULTS, EVICTION_HARD, MEMORY_AVAILABLE, reached_at
from ..cpuset import CPUSet
from .trial_paths import ROOM, SOCKET, NodePaths, is_below, node_paths, trial_words, why_untried

# Seconds. The first form of this took 6 on a busy machine.
PATIENCE = 45.0
RUNTIME_PATIENCE = 10.0
# How long a kubelet that has started may take to say that it is healthy.
HEALTH_PATIENCE = 3.0

# A threshold of eviction that is none.
_NO_THRESHOLD = "100%"
# Bytes. A kubelet and a containerd that start take 150 MB, the files included that they write.
MOST_MEMORY, LEAST_MEMORY = 768 << 20, 256 << 20

CONTAINERD, CRIO = "containerd", "crio"
SYSTEMD = "systemd"


# Of a trial that there cannot be.
UNTRIED = "cannot be tried: %s"


class UntriedError(Exception):
    """A trial cannot be had here. The message says why."""


class CgroupMount(NamedTuple):
    """Where a hierarchy of cgroups is mounted, and what makes a mount of it: ("cgroup2", "") or ("cgroup", "cpu")."""

    path: str
    kind: str
    options: str = ""


class TrialPlan(NamedTuple):
    """What is started, and on what.

    words: the kubelet's, as the node gives them. values: its configuration as far as it can be read. root: its root
    directory. contents: {path: what is planned there, None for nothing}. cpus: where the trial runs. named_cgroups:
    those that the configuration names and that are there. hierarchies: of all cgroups. runtime: a program and its
    kind, None for none. patience: seconds. directory: in which the kubelet is started. memory: the limit in bytes.
    """

    kubelet: str
    words: Sequence[str]
    values: Mapping[str, Any]
    root: str
    contents: Mapping[str, bytes | None]
    cpus: CPUSet
    named_cgroups: Sequence[str]
    hierarchies: Sequence[CgroupMount]
    runtime: tuple[str, str] | None = None
    patience: float = PATIENCE
    directory: str = "/"
    memory: int = MOST_MEMORY

    def scaled(self, seconds: float) -> float:
        """Return how long a part of a usual trial takes in this one, which may take longer."""
        return seconds * max(1.0, self.patience / PATIENCE)

    def command(self, minor: int) -> list[str]:
        """Return the command line of a kubelet 1.`minor`. Raises UntriedError where there is none for a trial."""
        why = why_untried(self.words, minor)
        if why:
            raise UntriedError(why)
        return [self.kubelet, *trial_words(self.words, minor)]

    def paths(self) -> NodePaths:
        """Return what of the node's files it has."""
        return node_paths(self.words, self.values, self.root, self.directory)

    def not_needed(self, targets: Sequence[str], on_the_way: Container[str]) -> list[str]:
        """Return the places of mounts that a trial does not need. on_the_way: all directories above what it reads.

        Pods, containers and disks come and go, and a mount that is not let go keeps them busy.
        """
        tops = self.paths().read
        others = [target for target in targets if not (target in on_the_way or _SYSTEM.fullmatch(target))]
        return [target for target in others if not any(target == top or is_below(target, top) for top in tops)]

    def digest(self, states: Sequence[str]) -> str:
        """Return a short text that is the same for the same program, words, configuration and files.

        states: the paths of what changes with each pod that comes and goes, and does not count.
        """
        contents = sorted((path, content) for path, content in self.contents.items() if path not in states)
        tried = repr((self.kubelet, list(self.words), self.values, contents))
        return hashlib.sha256(tried.encode("utf-8", "surrogateescape")).hexdigest()[:_DIGITS]

    def health_address(self) -> tuple[str, int] | None:
        """Return where it says that it is healthy; None for nowhere."""
        port = self.values.get("healthzPort", COMMON_DEFAULTS["healthzPort"])
        if not isinstance(port, int) or not 0 < port < 1 << 16:
            return None
        return reached_at(str(self.values.get("healthzBindAddress") or "127.0.0.1")), port


# What of a machine is there as long as it runs.
_SYSTEM = re.compile("/(?:bin|etc|gnu|lib(?:32|64|x32)?|nix|opt|proc|sbin|snap|sys|usr)(?:/.*)?", re.DOTALL)
# Directories that are empty in a trial.
COVERED = ("/run", "/var/run", "/tmp", "/var/log")
# Of a digest: enough to tell what one node was ever to start with from all else.
_DIGITS = 32


# --- the command line -----------------------------------------------------------------------------------------

# What of a start is therefore not tried.
NOT_TRIED = (
    "the API server: the kubelet was started without its kubeconfig",
    "how it authenticates and authorizes those who ask it",
    "pods, static ones too, and the network",
)
_NOT_SYSTEMD = "the cgroup driver systemd and its slices: it had cgroupfs, in cgroups of its own"
_NO_RUNTIME = "what it checks after it has asked the container runtime"


# --- the container runtime ------------------------------------------------------------------------------------

_CONTAINERD_CONFIG = """\
version = 2
root = "{room}/root"
state = "{room}/state"
disabled_plugins = [
  "io.containerd.internal.v1.opt",
  "io.containerd.internal.v1.restart",
  "io.containerd.snapshotter.v1.aufs",
  "io.containerd.snapshotter.v1.blockfile",
  "io.containerd.snapshotter.v1.btrfs",
  "io.containerd.snapshotter.v1.devmapper",
  "io.containerd.snapshotter.v1.zfs",
]
[grpc]
address = "{socket}"
[ttrpc]
address = "{socket}.ttrpc"
[plugins."io.containerd.nri.v1.nri"]
disable = true
[plugins."io.containerd.grpc.v1.cri"]
disable_apparmor = true
disable_cgroup = true
stream_server_address = "127.0.0.1"
[plugins."io.containerd.grpc.v1.cri".cni]
bin_dir = "{room}/none"
conf_dir = "{room}/cni"
"""
_CRIO_CONFIG = """\
[crio]
root = "{room}/root"
runroot = "{room}/state"
storage_driver = "vfs"
log_dir = "{room}/log"
version_file = "{room}/version"
version_file_persist = ""
clean_shutdown_file = ""
[crio.api]
listen = "{socket}"
stream_address = "127.0.0.1"
stream_port = "0"
[crio.runtime]
cgroup_manager = "cgroupfs"
conmon_cgroup = "pod"
hooks_dir = []
namespaces_dir = "{room}/ns"
container_exits_dir = "{room}/exits"
container_attach_socket_dir = "{room}/attach"
[crio.network]
network_dir = "{room}/cni"
plugin_dirs = ["{room}/none"]
[crio.nri]
enable_nri = false
"""
# It names a network that nobody calls: without one, the node is not ready.
_CNI = '{"cniVersion": "0.4.0", "name": "none", "plugins": [{"type": "none"}]}\n'


class PrivateRuntime(NamedTuple):
    """How a runtime of a trial's own is started: its files by path, and its command line."""

    files: Mapping[str, str]
    command: Sequence[str]


def private_runtime(program: str, kind: str) -> PrivateRuntime:
    """Return a runtime that shares nothing with that of the node. Version 2 is what containerd 1.3 to 2.x
    understand."""
    config = ROOM + "/runtime.conf"
    text = (_CRIO_CONFIG if kind == CRIO else _CONTAINERD_CONFIG).format(room=ROOM, socket=SOCKET)
    more = ["--config-dir", ""] if kind == CRIO else []
    return PrivateRuntime({config: text, ROOM + "/cni/none.conflist": _CNI}, [program, "--config", config, *more])


# --- cgroups --------------------------------------------------------------------------------------------------

_CGROUPS = "/sys/fs/cgroup"
# What a mount of v1 shows beside its controllers.
_NO_CONTROLLERS = re.compile("rw|ro|xattr|noprefix|clone_children|cpuset_v2_mode|favordynmods|release_agent=.*|none")
_OCTAL = re.compile(r"\\([0-7]{3})")


def read_hierarchies(mountinfo: str) -> list[CgroupMount]:
    """Return the hierarchies of cgroups at their usual place, each once. Raises UntriedError where there is none."""
    found: dict[tuple[str, str], CgroupMount] = {}
    for line in mountinfo.splitlines():
        left, _dash, right = line.partition(" - ")
        path = _OCTAL.sub(lambda match: chr(int(match.group(1), 8)), left.split(" ")[4])
        kind, _source, options = right.split(" ")[:3]
        if kind not in ("cgroup", "cgroup2") or not (path == _CGROUPS or is_below(path, _CGROUPS)):
            continue
        names = [name for name in options.split(",") if not _NO_CONTROLLERS.fullmatch(name)]
        if kind == "cgroup2":
            names = []
        elif all(name.startswith("name=") for name in names):
            names.insert(0, "none")
        found.setdefault((kind, ",".join(names)), CgroupMount(path, kind, ",".join(names)))
    if not found:
        raise UntriedError("no cgroups are mounted below %s" % _CGROUPS)
    return list(found.values())


# --- what the kubelet says ------------------------------------------------------------------------------------

# All versions that were tried say this when their managers have started.
_STARTED = b"Starting Kubelet Plugin Manager"
_LONGEST = 1 << 16
_MOST_OF_MESSAGE = 2000
_FATAL = re.compile(rb"^(?:F\d{4} \d\d:.*|panic: .*)$", re.MULTILINE)
_ERROR = re.compile(rb'^(?:E\d{4} \d\d:.*|\{"ts":.*"err":.*|Error: .*)$', re.MULTILINE)
_HEADER = re.compile(r"^[EF]\d{4} \S+ +\d+ [^] ]+\] ")
_QUOTED = r'"((?:[^"\\]|\\.)*)"'
_STRUCTURED = re.compile(r"%s(?:(?: .*?)? err=%s.*|(?: .*)?)" % (_QUOTED, _QUOTED))
_ESCAPES = {"n": "\n", "t": "\t"}


class Words:
    """What a kubelet says, of which only that is kept by which its end is understood."""

    def __init__(self) -> None:
        self.has_started = False
        self._fatal = self._error = self._last = b""
        self._rest = b""

    def hear(self, chunk: bytes) -> None:
        """Hear what it says next."""
        text = self._rest + chunk
        self.has_started = self.has_started or _STARTED in text
        end = text.rfind(b"\n") + 1
        self._rest = text[end:][:_LONGEST]
        self._take(text[:end])

    def _take(self, lines: bytes) -> None:
        # A fatal line is the first of many, as all goroutines are shown behind it.
        fatal = None if self._fatal else _FATAL.search(lines)
        if fatal:
            self._fatal = fatal.group()[:_LONGEST]
        for found in _ERROR.finditer(lines):
            self._error = found.group()[:_LONGEST]
        last = lines.rstrip().rpartition(b"\n")[2]
        self._last = last[:_LONGEST] or self._last

    def why(self) -> str:
        """Return why it has ended, in its own words; empty where it said nothing."""
        self._take(self._rest + b"\n")
        self._rest = b""
        return words_of(self._fatal or self._error or self._last)


def words_of(line: bytes) -> str:
    """Return what a line of a kubelet's log says, without time and place, as plain text: a message and its error."""
    text = _HEADER.sub("", line.decode("utf-8", "replace").strip())
    if text.startswith("{"):
        try:
            said = json.loads(text)
            text = ": ".join(str(said[key]) for key in ("msg", "err") if said.get(key))
        except (AttributeError, ValueError):
            pass
    else:
        structured = _STRUCTURED.fullmatch(text)
        if structured:
            text = ": ".join(_unquoted(part) for part in structured.groups() if part)
    return text[:_MOST_OF_MESSAGE]


def _unquoted(text: str) -> str:
    return re.sub(r"\\(.)", lambda match: _ESCAPES.get(match.group(1), match.group(1)), text)


# --- what it means --------------------------------------------------------------------------------------------


class Ending(NamedTuple):
    """How a trial went, as it is told by the process inside.

    failed: why the kubelet could not be started at all. status: of the kubelet that has ended, negative for a signal.
    has_started, is_healthy: of one that has not. asked_runtime: whether it came so far, where there was none. doubt:
    why what it did says nothing of a start of the service. limit: which limit its processes have met.
    """

    version: str = ""
    seconds: float = 0.0
    failed: str = ""
    status: int | None = None
    message: str = ""
    has_started: bool = False
    is_healthy: bool = True
    asked_runtime: bool = False
    runtime_fault: str = ""
    doubt: str = ""
    limit: str = ""
    state: str | None = None


class TrialVerdict(NamedTuple):
    """starts: None where the trial does not say. reason: why it does not."""

    starts: bool | None
    message: str = ""
    reason: str = ""


# What the system says to a process that may not do something: a trial may do less than a service.
_DENIALS = [os.strerror(number).lower() for number in (errno.EACCES, errno.EPERM, errno.EROFS)]
_NO_SPACE = os.strerror(errno.ENOSPC).lower()
# What the system, Go and the C library say where nobody is reached, and a kubelet whose cloud provider is built in and
# does not reach its cloud: a trial has no network. The kubelet's words are all that it gives.
_OF_NETWORK = (errno.ENETUNREACH, errno.EHOSTUNREACH, errno.ENETDOWN, errno.ECONNREFUSED, errno.EADDRNOTAVAIL)
_UNREACHED = [
    *(os.strerror(number).lower() for number in (*_OF_NETWORK, errno.ETIMEDOUT)),
    *("no such host", "server misbehaving", "i/o timeout"),
    *("temporary failure in name resolution", "name or service not known", "could not init cloud provider"),
]
# What AppArmor says of a process that it holds to nothing.
_UNCONFINED = "unconfined"


def told_of(error: OSError, domain: str = "") -> str:
    """Return what the system refused to a trial, as the reason why there is none.

    domain: what SELinux or AppArmor holds the trial to, as the kernel says it; empty where nothing does.
    """
    if error.errno == errno.ENOSPC:
        return "%s: a trial has its files in memory, and not enough room for them there" % error.filename
    told = "%s: %s" % (error.filename or "a call", error.strerror)
    is_denied = error.errno in (errno.EACCES, errno.EPERM) and domain not in ("", _UNCONFINED)
    return "%s, in the domain %s" % (told, domain) if is_denied else told


def why_silent(is_late: bool, number: int, limit: str) -> str:
    """Return why the process of a trial has said nothing.

    is_late: whether its time was over. number: of the signal that has ended it, 0 for none. limit: which it has met.
    """
    if is_late:
        return "the process of the trial did not end in time, and was killed"
    if limit:
        return "the process of the trial was killed by the kernel: %s" % limit
    if number:
        return "the process of the trial was killed by another program (signal %d)" % number
    return "the process of the trial ended and said nothing"


def kept_free(hard: object, total: int) -> int:
    """Return how many bytes of memory a kubelet keeps free with these thresholds of eviction. total: those of the
    node."""
    given = hard.get(MEMORY_AVAILABLE) if isinstance(hard, Mapping) else None
    text = str(given or EVICTION_HARD[MEMORY_AVAILABLE])
    if text == _NO_THRESHOLD:
        return 0
    try:
        return int(total * float(text[:-1]) / 100) if text.endswith("%") else millis(text) // 1000
    except (InputError, ValueError, OverflowError):  # with which no kubelet runs
        return 0


def memory_for(free: int, kept: int) -> int:
    """Return the limit of a trial's memory: what a node has beyond what its kubelet keeps free. Raises UntriedError.

    free: bytes as the kubelet counts them. kept: bytes; where less is free, it evicts pods.
    """
    if free - kept < LEAST_MEMORY:
        sizes = tuple(size >> 20 for size in (free, kept, LEAST_MEMORY))
        raise UntriedError("the node has %d MiB of memory free; its kubelet keeps %d, and a trial needs %d" % sizes)
    return min(free - kept, MOST_MEMORY)


def judge(ending: Ending, own: Iterable[str] = ()) -> TrialVerdict:
    """Return whether the kubelet starts. own: the names of the flags that the trial has added."""
    if ending.has_started and ending.status is None:
        return TrialVerdict(None if ending.doubt else True, reason=ending.doubt)
    reason = _why_unsaid(ending, own)
    return TrialVerdict(None if reason else False, ending.message, reason)


def _why_unsaid(ending: Ending, own: Iterable[str]) -> str:
    """Return why a trial in which no kubelet has started says nothing of a start; empty where it does: it was
    refused."""
    status, message = ending.status, ending.message
    denial = next((denial for denial in _DENIALS if denial in message.lower()), "")
    unreached = next((words for words in _UNREACHED if words in message.lower()), "")
    of_runtime = ": " + ending.runtime_fault if ending.runtime_fault else ""
    reasons = (
        (bool(ending.failed), UNTRIED % ending.failed),
        (bool(ending.doubt), ending.doubt),
        (bool(ending.limit), "the kernel has ended or refused a process of the trial: %s" % ending.limit),
        (
            ending.asked_runtime,
            "no refusal before it asked the container runtime, and there is none for a trial%s" % of_runtime,
        ),
        (status is None, "in %.0f s it has neither started nor ended" % ending.seconds),
        (status is not None and status < 0, "it was ended by signal %d, which the trial has not sent" % -(status or 0)),
        (not message, "it ended with status %s and said nothing" % status),
        (bool(denial), "what a service may do, a trial may not (%s)" % denial),
        (SOCKET in message, "it does not get on with the container runtime of the trial"),
        (bool(unreached), "it asks somebody in the network, and a trial has none (%s)" % unreached),
        (_NO_SPACE in message.lower(), "a trial does not have enough room for something (%s)" % _NO_SPACE),
        (
            any("unknown flag: --%s" % name in message for name in own),
            "this kubelet does not take a flag that a trial needs",
        ),
    )
    return next((reason for holds, reason in reasons if holds), "")


def not_tried(driver: str, has_runtime: bool, is_healthy: bool = True) -> list[str]:
    """Return what a real start has beyond the trial. driver: of cgroups, as it is configured."""
    return [
        *NOT_TRIED,
        *([_NOT_SYSTEMD] if driver == SYSTEMD else []),
        *([] if has_runtime else [_NO_RUNTIME]),
        *([] if is_healthy else ["whether its /healthz says ok: it did not in time"]),
    ]


def differs(starts: bool | None, predicted: bool | None) -> bool:
    """Return whether the kubelet has said something else than was predicted."""
    return starts is not None and predicted is not None and starts != predicted

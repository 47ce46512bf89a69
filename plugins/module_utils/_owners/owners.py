# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Who manages CPUs on a node, by what each leaves in places that are root's. _node/owners_found.py has those that take
a kubelet.

A file alone does not say that a program still works: most of them leave files behind. So on a live node an owner
counts as active where its process runs, or where systemd or the kubelet starts it or has it registered. Of a saved
node, whatever was saved counts. Sources: deployment/helm and pkg/driver/cdi.go of kubernetes-sigs/dra-driver-cpu;
deployment/helm and pkg/resmgr/cache/cache.go of containers/nri-plugins; deploy/ of weka/nri-cpuset;
pkg/koordlet/runtimehooks/config.go of koordinator-sh/koordinator; the manifests of gocrane/crane, nokia/CPU-Pooler and
intel/cri-resource-manager; cmd/katalyst-agent/app/options/qrm of
kubewharf/katalyst-core;
k8s.io/dynamic-resource-allocation/kubeletplugin.
"""

from __future__ import annotations

import re
from typing import Any, Iterable, Iterator, Mapping, NamedTuple, Sequence

from .._base.errors import CPUManagerError, InputError
from .._base.tree import GORESCTRL, RESCTRL, Tree
from .._host import layers as layers_of
from .._host.layers import (
    INTERRUPTS,
    IRQBALANCE,
    MANAGER,
    WORKQUEUES,
    enabled_at,
    is_there,
    members,
    members_at,
    names_in,
    text_at,
)
from ..cpuset import CPUSet

# Which profile tuned has, and whether it keeps the system off some CPUs, as cpu-partitioning and realtime do.
#
# Its source: tuned/consts.py and profiles/ of tuned. From 2.24 on, profiles are in a directory "profiles" below the old
# ones.


ACTIVE_PROFILE, PROFILE_MODE = "/etc/tuned/active_profile", "/etc/tuned/profile_mode"
# The first that has a profile counts.
_PROFILES = ("/etc/tuned/profiles", "/etc/tuned", "/usr/lib/tuned/profiles", "/usr/lib/tuned")
_PROFILE = "%s/%s/tuned.conf"
# Options by which a profile moves what is not its CPUs' work off them: (section, option).
_ISOLATING = (("scheduler", "isolated_cores"), ("systemd", "cpu_affinity"), ("irqbalance", "banned_cpus"))
_CORES = "isolated_cores"
# The cgroups whose processes the scheduler's plugin leaves alone.
_NO_PODS = "cgroup_ps_blacklist"
# What of such a line stays: its beginning, and its end with a comment.
_CORES_LINE = re.compile(
    rb"([ \t]*isolated_cores[ \t]*=(?:[ \t]*(?=[^\s#]))?)(?:[^\s#][^ \t\r\n]*(?:[ \t]+[^ \t\r\n#][^ \t\r\n]*)*)?"
    rb"([ \t]*(?:(?<=[ \t])#[^\r\n]*)?[\r\n]*)"
)
# A file of variables has no sections.
_VARIABLES = "[variables]\n"
# What a value says that only tuned can work out: one of its functions, or another variable.
_WORKED_OUT = "${"
# Which layer of a host a plugin of tuned sets, by which of its options.
_LAYERS = (
    ("scheduler", "isolated_cores", INTERRUPTS),
    ("irqbalance", "banned_cpus", IRQBALANCE),
    ("systemd", "cpu_affinity", MANAGER),
)
_WORKQUEUES = re.compile(r"/sys/(?=.*workqueue)[^\n]*/cpumask")
# Options of a section that decide whether it counts, and how it is merged with that of an included profile.
_OF_SECTION = ("type", "enabled", "replace", "drop")
_YES = ("1", "true", "True")
# By which the scheduler plugin leaves interrupts alone.
_NO_INTERRUPTS = ("irq_process", ("0", "false", "False"))
_COMMAND_LINE = "cmdline"
# Arguments of the kernel that say on which CPUs its work is done.
_ARGUMENTS = ("nohz_full", "rcu_nocbs", "isolcpus", "irqaffinity")
# Where a profile's own file cannot be read, the beginning of its name says it.
_KNOWN = ("cpu-partitioning", "realtime", "openshift-node-performance")
# A profile includes others, and each of these others.
_MOST_PROFILES = 32

_Sections = Mapping[str, Mapping[str, str]]


class Tuned(NamedTuple):
    """What tuned is set to.

    profiles: the active ones. mode: "manual", "auto", or empty. isolates: whether they keep work off CPUs.
    isolated_text: which, as it is written, which may be one of tuned's functions; isolated: the CPUs, None where the
    text gives none. variables: the file in which they are set; empty where the profile itself does. files: those read.
    layers: of the host, those that the profile sets. arguments: of the kernel, those that it gives. moves_pods: whether
    the processes of containers are kept off these CPUs, too.
    """

    profiles: tuple[str, ...]
    mode: str
    isolates: bool
    isolated_text: str
    isolated: CPUSet | None
    variables: str
    files: tuple[str, ...]
    layers: tuple[str, ...] = ()
    arguments: tuple[str, ...] = ()
    moves_pods: bool = False

    @property
    def is_worked_out(self) -> bool:
        """Whether tuned works the CPUs out itself, by a function."""
        return _WORKED_OUT in self.isolated_text


def read_tuned(tree: Tree) -> Tuned | None:
    """Return what tuned is set to; None where it has no active profile."""
    profiles = tuple(text_at(tree, ACTIVE_PROFILE).split())
    if not profiles:
        return None
    files: list[str] = [ACTIVE_PROFILE]
    chain = list(_chain(tree, profiles, files))
    isolates = any(option in sections.get(section, {}) for sections in chain for section, option in _ISOLATING)
    if len(files) == 1:
        isolates = any(profile.startswith(_KNOWN) for profile in profiles)
    text, variables = _isolated(tree, chain) if isolates else ("", "")
    merged = _merged(chain)
    scheduler = merged.get("scheduler", {})
    return Tuned(
        profiles,
        text_at(tree, PROFILE_MODE).strip(),
        isolates,
        text,
        _cpus(text),
        variables,
        (*files, *([variables] if variables else [])),
        tuple(_layers(merged)),
        tuple(_arguments(merged)),
        _CORES in scheduler and "kubepods" not in scheduler.get(_NO_PODS, ""),
    )


def with_isolated(content: bytes, cpus: CPUSet) -> bytes:
    """Return a file of variables with these isolated CPUs, all else to the byte: the last line with them counts."""
    lines = content.splitlines(keepends=True)
    value = str(cpus).encode("ascii")
    for number in reversed(range(len(lines))):
        found = _CORES_LINE.fullmatch(lines[number])
        if found is not None:
            before, after = found.groups()
            return b"".join([*lines[:number], before, value, after, *lines[number + 1 :]])
    end = b"" if not lines or content.endswith((b"\n", b"\r")) else b"\n"
    return b"%s%s%s=%s\n" % (content, end, _CORES.encode("ascii"), value)


def isolated_in(content: bytes) -> CPUSet | None:
    """Return the isolated CPUs that a file of variables gives; None where it gives none."""
    return _cpus(_parse(_VARIABLES + content.decode("utf-8", "replace")).get("variables", {}).get(_CORES, ""))


def essence(text: str) -> str:
    """Return what is read here of a profile's file, or of a file of variables, as a file of its own."""
    lines = []
    for section, options in _parse(_VARIABLES + text).items():
        found = {name: _essence_of(section, name, value) for name, value in options.items()}
        read = ["%s=%s\n" % (name, value) for name, value in found.items() if value]
        lines += ["[%s]\n" % section, *read] if read else []
    return "".join(lines)


def _essence_of(section: str, name: str, value: str) -> str:
    """Return what is read of an option; empty for nothing."""
    if name.startswith(_COMMAND_LINE):
        # It may have secrets in it.
        return " ".join("%s=%s" % (word, cpus) for word, cpus in _words(value))
    if section in ("main", "variables"):
        return value if name == "include" or (section, name) == ("variables", _CORES) else ""
    read = (*_OF_SECTION, _NO_INTERRUPTS[0], _NO_PODS, *(option for _plugin, option in _ISOLATING))
    return value if name in read or _WORKQUEUES.fullmatch(name) else ""


def _merged(chain: Sequence[_Sections]) -> dict[str, dict[str, str]]:
    """Return the sections of all profiles together, as tuned merges them."""
    merged: dict[str, dict[str, str]] = {}
    for sections in reversed(chain):
        for name, options in sections.items():
            left = {} if options.get("replace") in _YES else dict(merged.get(name, {}))
            for option in re.split("[,;]", options.get("drop", "")):
                left.pop(option.strip(), None)
            # The type of a section, and whether it is enabled, do not pass on from a profile that is included.
            merged[name] = {**left, "type": name, "enabled": _YES[0], **options}
    return {name: options for name, options in merged.items() if options["enabled"] in _YES}


def _layers(merged: _Sections) -> Iterator[str]:
    """Yield the layers of a host that these sections set, each once."""
    found = set()
    for options in merged.values():
        found |= {layer for plugin, option, layer in _LAYERS if options["type"] == plugin and options.get(option)}
        if options["type"] == "sysfs" and any(map(_WORKQUEUES.fullmatch, options)):
            found.add(WORKQUEUES)
        option, off = _NO_INTERRUPTS
        if options["type"] == "scheduler" and options.get(option) in off:
            found.discard(INTERRUPTS)
    yield from (layer for layer in (INTERRUPTS, WORKQUEUES, IRQBALANCE, MANAGER) if layer in found)


def _arguments(merged: _Sections) -> Iterator[str]:
    """Yield the arguments of the kernel that these sections give, in the order of _ARGUMENTS."""
    given = {
        word
        for options in merged.values()
        for name, value in options.items()
        if options["type"] == "bootloader" and name.startswith(_COMMAND_LINE)
        for word, _cpus_of_it in _words(value)
    }
    yield from (name for name in _ARGUMENTS if name in given)


def _words(value: str) -> Iterator[tuple[str, str]]:
    """Yield the arguments of a command line that are about CPUs, each with its value."""
    for word in value.lstrip("+-").split():
        name, _equals, cpus = word.partition("=")
        if name in _ARGUMENTS:
            yield name, cpus


def _chain(tree: Tree, profiles: Sequence[str], files: list[str]) -> Iterator[_Sections]:
    """Yield the sections of these profiles and of all that they include; those that count first come first."""
    waiting = list(reversed(profiles))
    met: set[str] = set()
    while waiting and len(met) < _MOST_PROFILES:
        name = waiting.pop(0)
        path = "" if name in met else _path_of(tree, name)
        met.add(name)
        if path:
            files.append(path)
            sections = _parse(text_at(tree, path))
            yield sections
            # What is a function of tuned names profiles that only it can work out.
            waiting += [
                word for word in re.split(r"[,;\s]+", sections.get("main", {}).get("include", "")) if "$" not in word
            ]


def _path_of(tree: Tree, name: str) -> str:
    if not re.fullmatch(r"[\w.+-]+", name) or name.startswith("."):
        return ""
    paths = (_PROFILE % (directory, name) for directory in _PROFILES)
    return next((path for path in paths if is_there(tree, path)), "")


def _isolated(tree: Tree, chain: Sequence[_Sections]) -> tuple[str, str]:
    """Return the isolated CPUs as they are written, and the file of variables that has them."""
    for sections in chain:
        text = sections.get("variables", {}).get(_CORES, "")
        # "isolated_cores = ${isolated_cores}" passes on what somebody else sets.
        if text and "${isolated_cores}" not in text:
            return text, ""
        text = sections.get("scheduler", {}).get(_CORES, "")
        if text and "$" not in text:
            return text, ""
    for sections in chain:
        path = sections.get("variables", {}).get("include", "")
        if path.startswith("/"):
            text = _parse(_VARIABLES + text_at(tree, path)).get("variables", {}).get(_CORES, "")
            return text, path
    return "", ""


def _cpus(text: str) -> CPUSet | None:
    try:
        return CPUSet.parse(text) if text else None
    except InputError:
        return None


def _parse(text: str) -> dict[str, dict[str, str]]:
    """Return {section: {option: value}} as tuned reads its files.

    A comment begins a line or follows a blank, and the last of several equal options counts.
    """
    sections: dict[str, dict[str, str]] = {}
    options: dict[str, str] = {}
    for line in map(str.strip, text.splitlines()):
        if line.startswith("[") and line.endswith("]"):
            options = sections.setdefault(line[1:-1].strip(), {})
        elif line and not line.startswith(("#", ";")) and "=" in line:
            name, _equals, value = line.partition("=")
            options[name.strip()] = re.split(r"(?:^|\s)#", value, maxsplit=1)[0].strip().strip("\"'")
    return sections


# Where a container runtime or a plugin of NRI has classes of its own in resctrl, by the library goresctrl.
#
# Sources: rdt_config_file in docs/config.md of containerd and in crio.conf(5); doc/rdt.md of goresctrl.


KEY = "rdt_config_file"

_FILES = (
    "/etc/containerd/config.toml",
    "/etc/crio/crio.conf",
    "/var/lib/rancher/k3s/agent/etc/containerd/config.toml",
    "/var/lib/rancher/rke2/agent/etc/containerd/config.toml",
)
_CLASS_DROP_INS = ("/etc/containerd/conf.d", "/etc/crio/crio.conf.d")


def goresctrl_groups(tree: Tree) -> list[str]:
    """Return the groups that are named as those of goresctrl."""
    return ["%s/%s" % (RESCTRL, name) for name in names_in(tree, RESCTRL) if name.startswith(GORESCTRL)]


def files_with_classes(tree: Tree) -> list[str]:
    """Return the files of container runtimes that name a file of classes."""
    return [path for path in _class_paths(tree) if _has_key(text_at(tree, path))]


def _class_paths(tree: Tree) -> list[str]:
    paths = list(_FILES)
    for directory in _CLASS_DROP_INS:
        try:
            paths += tree.files_below(directory)
        except CPUManagerError:
            continue
    return paths


def _has_key(text: str) -> bool:
    if KEY not in text:
        return False
    from .._base.toml import parse

    try:
        entries = parse(text).entries
    except ValueError:
        return False  # the runtime does not start with it either
    return any(key[-1] == KEY and bool(entry.value) for key, entry in entries.items())


# What CRI-O is configured to do with CPUs: the annotations that a pod may have, and the CPUs that containers share.
#
# Its source: crio.conf(5), pkg/config/config.go and pkg/annotations of CRI-O.


_FILE, _DROP_INS = "/etc/crio/crio.conf", "/etc/crio/crio.conf.d"
_ANNOTATION = "irq-load-balancing.crio.io"
# Of what annotations are allowed: crio.runtime.runtimes.NAME, crio.runtime.workloads.NAME.
WITH_ANNOTATIONS = (("crio", "runtime", "runtimes"), ("crio", "runtime", "workloads"))
ALLOWED = "allowed_annotations"
SHARED = ("crio", "runtime", "shared_cpuset")
# Of crio.runtime.workloads.NAME: where the containers of its pods run, whatever the kubelet says.
PINNED = ("resources", "cpuset")


class CrioSettings(NamedTuple):
    """Which files allow the annotation for interrupts; the CPUs that containers share, and which file says so; which
    files give pods of a workload their CPUs."""

    interrupts: tuple[str, ...] = ()
    shared_cpus: str = ""
    shared: str = ""
    workloads: tuple[str, ...] = ()


def read_crio(tree: Tree) -> CrioSettings:
    """Return what all of CRI-O's files say; of a value that several have, the last counts."""
    texts = {path: text for path in _paths(tree) if (text := text_at(tree, path))}
    if not texts:
        return CrioSettings()
    from .._base.toml import parse

    allowed: dict[tuple[str, ...], str] = {}
    pinned: dict[tuple[str, ...], str] = {}
    shared_cpus, shared = "", ""
    for path, text in texts.items():
        try:
            entries = parse(text).entries
        except ValueError:
            continue  # CRI-O does not start with it either
        for key, entry in entries.items():
            if key[:3] in WITH_ANNOTATIONS and key[-1] == ALLOWED:
                is_allowed = isinstance(entry.value, (list, tuple)) and _ANNOTATION in entry.value
                allowed[key] = path if is_allowed else ""
            elif key == SHARED:
                shared_cpus, shared = str(entry.value), path
            elif key[:3] == WITH_ANNOTATIONS[1] and key[4:] in (PINNED, PINNED[:1]):
                cpus = entry.value.get(PINNED[1]) if isinstance(entry.value, dict) else entry.value
                pinned[key[:5]] = path if cpus else ""
    interrupts = tuple(dict.fromkeys(path for path in allowed.values() if path))
    workloads = tuple(dict.fromkeys(path for path in pinned.values() if path))
    return CrioSettings(interrupts, shared_cpus, shared if shared_cpus else "", workloads)


def _paths(tree: Tree) -> list[str]:
    try:
        return [_FILE, *tree.files_below(_DROP_INS)]
    except CPUManagerError:
        return [_FILE]


KUBELET_STATIC = "kubelet-static"
DRA_CPU = "dra-driver-cpu"
BALLOONS = "nri-balloons"
TOPOLOGY_AWARE = "nri-topology-aware"
WEKA = "nri-weka-cpuset"
KOORDLET = "koordlet"
KATALYST = "katalyst"
CRANE = "crane-agent"
CPU_POOLER = "cpu-pooler"
CRI_RESMGR = "cri-resmgr"
CRIO_INTERRUPTS = "crio-interrupts"
CRIO_SHARED = "crio-shared-cpus"
TUNED = "tuned"
IRQBALANCE_OWNER = "irqbalance"
RECONCILE = "reconcile"
HOUSEKEEPING = "housekeeping"
GORESCTRL_OWNER = "goresctrl"
CACHE = "cache"

_POLICY_PROGRAM = "nri-resource-policy-"


class OwnerKind(NamedTuple):
    """What is fixed of an owner.

    name: what people call it. program: the name of the file whose processes are evidence of it; empty for none.
    in_pods: whether it runs in pods, and not as a service of the host.
    """

    name: str
    program: str = ""
    in_pods: bool = False


# In the order in which they are reported.
OWNERS = {
    KUBELET_STATIC: OwnerKind("the kubelet's static CPU manager policy"),
    DRA_CPU: OwnerKind("the DRA CPU driver", "dracpu", in_pods=True),
    BALLOONS: OwnerKind("the NRI policy balloons", _POLICY_PROGRAM + "balloons", in_pods=True),
    TOPOLOGY_AWARE: OwnerKind("the NRI policy topology-aware", _POLICY_PROGRAM + "topology-aware", in_pods=True),
    WEKA: OwnerKind("the NRI plugin weka-cpuset", "weka-cpuset", in_pods=True),
    KOORDLET: OwnerKind("Koordinator's koordlet", "koordlet", in_pods=True),
    KATALYST: OwnerKind("Katalyst's plugin for CPUs"),
    CRANE: OwnerKind("Crane's crane-agent", "crane-agent", in_pods=True),
    CPU_POOLER: OwnerKind("CPU-Pooler's cpusetter", "cpusetter", in_pods=True),
    CRI_RESMGR: OwnerKind("the CRI Resource Manager", "cri-resmgr", in_pods=True),
    CRIO_INTERRUPTS: OwnerKind("CRI-O's annotation irq-load-balancing", "crio"),
    CRIO_SHARED: OwnerKind("CRI-O's CPUs of containers", "crio"),
    TUNED: OwnerKind("tuned", "tuned"),
    IRQBALANCE_OWNER: OwnerKind("irqbalance", "irqbalance"),
    RECONCILE: OwnerKind("the role reconcile"),
    HOUSEKEEPING: OwnerKind("the role housekeeping"),
    GORESCTRL_OWNER: OwnerKind("a container runtime or plugin with classes of goresctrl"),
    CACHE: OwnerKind("the role cache"),
}
NAMES = {owner: kind.name for owner, kind in OWNERS.items()}
# Of the programs of pods and of the host, by the names of their files.
POD_PROGRAMS = tuple(kind.program for kind in OWNERS.values() if kind.in_pods)
PROGRAMS = tuple(dict.fromkeys(kind.program for kind in OWNERS.values() if kind.program))

STATIC = "static"

POLICIES = {BALLOONS: "balloons", TOPOLOGY_AWARE: "topology-aware"}

# The driver's name, and the kind of its devices as it is in a file's name.
_DRIVER, _DEVICES = "dra.cpu", "dra.k8s.io-cpu"
_REGISTRY, _REGISTERED = "%s/plugins_registry", "-reg.sock"
# /run and /var/run are one directory, but for a saved node.
_CDI = ("/run/cdi", "/var/run/cdi", "/etc/cdi")
CLAIM = "DRA_CPUSET_"
_PLUGINS, _PLUGIN_SETTINGS = "/opt/nri/plugins", "/etc/nri/conf.d"
POLICY_CACHE = "/var/lib/nri-resource-policy/cache"

# Of koordlet's hooks: the runtime's proxy or NRI asks it there. It is gone after a boot.
_KOORDLET = ("/run/koordlet/koordlet.sock", "/var/run/koordlet/koordlet.sock")
# At the kubelet of Katalyst, which has a manager for such plugins, and what that one gave out.
_QRM_PLUGIN = "qrm_cpu_plugin_"
_QRM_CHECKPOINT = "%s/resource-plugins/kubelet_qrm_checkpoint"

_TUNED = "/etc/tuned"
_IRQBALANCE_FILES = ("/etc/sysconfig/irqbalance", "/etc/default/irqbalance")
# Of the policy static; those of the policies dynamic and isolated have a service alone.
_TIMER, _SERVICE = "kubenode-cpu-manager-reconcile.timer", "kubenode-cpu-manager-reconcile.service"
_RECONCILE_SETTINGS = "/etc/kubenode/cpu-manager-reconcile.json"
_RECONCILE_FILES = ("/etc/systemd/system/" + _TIMER, _RECONCILE_SETTINGS)
# Those of its policies by which it gives CPUs out itself.
GIVING_POLICIES = ("dynamic", "isolated")
_JOURNAL = "/var/lib/kubenode-cpu-manager/housekeeping.json"
_CACHE_JOURNAL = "/var/lib/kubenode-cpu-manager/cache.json"


class Owner(NamedTuple):
    """Something that says which CPUs others run on.

    id: one of NAMES. evidence: where it shows, paths on the node and processes. is_active: whether it works, as far as
    that can be seen; what is only left over is there, and not active. agrees_with: the ids of others that it gives the
    same CPUs as it has itself.
    """

    id: str
    name: str
    evidence: tuple[str, ...]
    is_active: bool
    agrees_with: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return plain data, as modules return it."""
        return {"id": self.id, "name": self.name, "evidence": list(self.evidence), "active": self.is_active}


class Facts(NamedTuple):
    """What takes a kubelet, or more than files.

    policy: of the CPU manager, as the kubelet is configured; empty where there is none. kubelet: where that shows.
    processes: {name of a program: its processes}, of those alone that no other user than root can have started.
    claims: processes of containers that have an environment as a CDI file of the DRA driver gives it.
    """

    policy: str = ""
    kubelet: tuple[str, ...] = ()
    kubelet_root: str = "/var/lib/kubelet"
    processes: Mapping[str, Sequence[int]] = {}
    claims: Sequence[int] = ()

    def of(self, owner: str) -> Sequence[int]:
        """Return the processes of the program of an owner."""
        return self.processes.get(OWNERS[owner].program, ())


def find_owners(tree: Tree, facts: Facts) -> list[Owner]:
    """Return who manages CPUs on a node, in the order of NAMES. A file that cannot be read shows nothing."""
    return [
        *_kubelet(facts),
        *_dra_driver(tree, facts),
        *_nri_policies(tree, facts),
        *_weka(tree, facts),
        *_koordlet(tree, facts),
        *_katalyst(tree, facts),
        *_by_process(facts),
        *_crio(tree, facts),
        *_tuned(tree, facts),
        *_irqbalance(tree, facts),
        *_reconcile(tree),
        *_housekeeping(tree),
        *_goresctrl(tree),
        *_cache(tree),
    ]


def _made(owner: str, evidence: Iterable[str], pids: Sequence[int], is_active: bool, name: str = "") -> Iterator[Owner]:
    """Yield the owner with this id, if there is any evidence of it."""
    every = (*evidence, *("process %d" % pid for pid in pids))
    if every:
        yield Owner(owner, name or NAMES[owner], every, is_active)


# --- who gives containers their CPUs --------------------------------------------------------------------------


def _kubelet(facts: Facts) -> Iterator[Owner]:
    if facts.policy == STATIC:
        yield from _made(KUBELET_STATIC, facts.kubelet, (), True)


def _dra_driver(tree: Tree, facts: Facts) -> Iterator[Owner]:
    """Yield the DRA driver; it is active where the kubelet has it registered: the driver takes its socket away when
    it ends."""
    pids = facts.of(DRA_CPU)
    sockets = _registered(tree, facts.kubelet_root)
    evidence = [*sockets, *_cdi_files(tree)]
    if facts.claims:
        evidence.append("%s* in the environment of process %s" % (CLAIM, ", ".join(map(str, facts.claims))))
    yield from _made(DRA_CPU, evidence, pids, bool(sockets or pids or not tree.live))


def _registered(tree: Tree, kubelet_root: str) -> list[str]:
    """Return the driver's sockets at the kubelet: dra.cpu-reg.sock, with a pod's UID in it where two of its pods
    overlap."""
    registry = _REGISTRY % kubelet_root.rstrip("/")
    return [
        "%s/%s" % (registry, name)
        for name in names_in(tree, registry)
        if name.startswith(_DRIVER + "-") and name.endswith(_REGISTERED)
    ]


def _cdi_files(tree: Tree) -> list[str]:
    for directory in _CDI:
        names = [name for name in names_in(tree, directory) if name.startswith((_DRIVER, _DEVICES))]
        if names:
            return ["%s/%s" % (directory, name) for name in names if name.endswith((".json", ".yaml"))]
    return []


def claims_of(tree: Tree) -> frozenset[str]:
    """Return what the DRA driver's CDI files put into the environment of containers, as "DRA_CPUSET_uid=4-7"."""
    lines: set[str] = set()
    for path in _cdi_files(tree):
        devices = members_at(tree, path).get("devices")
        for device in devices if isinstance(devices, list) else ():
            given = members(members(device).get("containerEdits")).get("env")
            for line in given if isinstance(given, list) else ():
                lines |= {line} if isinstance(line, str) and line.startswith(CLAIM) else set()
    return frozenset(lines)


def _nri_policies(tree: Tree, facts: Facts) -> Iterator[Owner]:
    # Of the policy that ran last.
    cached = members_at(tree, POLICY_CACHE).get("PolicyName")
    for owner, policy in POLICIES.items():
        pids = facts.of(owner)
        evidence = [*_plugins(tree, policy), *([POLICY_CACHE] if cached == policy else [])]
        yield from _made(owner, evidence, pids, bool(pids) or not tree.live)


def _weka(tree: Tree, facts: Facts) -> Iterator[Owner]:
    pids = facts.of(WEKA)
    yield from _made(WEKA, _plugins(tree, OWNERS[WEKA].program), pids, bool(pids) or not tree.live)


def _koordlet(tree: Tree, facts: Facts) -> Iterator[Owner]:
    """Yield koordlet; it is active where its socket is: nobody but root makes one there. Without hooks it has no
    socket."""
    sockets = [path for path in _KOORDLET if is_there(tree, path)]
    yield from _made(KOORDLET, sockets[:1], facts.of(KOORDLET), True)


def _by_process(facts: Facts) -> Iterator[Owner]:
    """Yield those that nothing but their process shows."""
    for owner in (CRANE, CPU_POOLER, CRI_RESMGR):
        yield from _made(owner, (), facts.of(owner), True)


def _katalyst(tree: Tree, facts: Facts) -> Iterator[Owner]:
    """Yield Katalyst; it is active where its plugin is registered at the kubelet."""
    root = facts.kubelet_root.rstrip("/")
    sockets = _qrm_plugins(tree, root)
    left = [path for path in (_QRM_CHECKPOINT % root,) if is_there(tree, path)]
    yield from _made(KATALYST, [*sockets, *left], (), bool(sockets) or not tree.live)


def _qrm_plugins(tree: Tree, kubelet_root: str) -> list[str]:
    """Return the sockets of Katalyst's plugins for CPUs at a kubelet: one without its patches registers none."""
    registry = _REGISTRY % kubelet_root
    names = [name for name in names_in(tree, registry) if name.startswith(_QRM_PLUGIN) and name.endswith(".sock")]
    return ["%s/%s" % (registry, name) for name in names]


def _plugins(tree: Tree, policy: str) -> list[str]:
    """Return the files of a policy that the container runtime starts by itself, "10-nri-resource-policy-balloons"."""
    pattern = r"(?:\d\d-)?(?:%s)?%s(?:\.\w+)?" % (_POLICY_PROGRAM, policy)
    return [
        "%s/%s" % (directory, name)
        for directory in (_PLUGINS, _PLUGIN_SETTINGS)
        for name in names_in(tree, directory)
        if re.fullmatch(pattern, name)
    ]


def _crio(tree: Tree, facts: Facts) -> Iterator[Owner]:
    pids = facts.of(CRIO_SHARED)
    is_active = bool(pids or enabled_at(tree, "crio.service")) or not tree.live
    settings = read_crio(tree)
    if settings.interrupts:
        yield from _made(CRIO_INTERRUPTS, settings.interrupts, pids, is_active)
    files = dict.fromkeys([settings.shared, *settings.workloads] if settings.shared else settings.workloads)
    if files:
        yield from _made(CRIO_SHARED, tuple(files), pids, is_active)


# --- who places interrupts and services, and what is ours -----------------------------------------------------


def _tuned(tree: Tree, facts: Facts) -> Iterator[Owner]:
    """Yield tuned, where its profile manages CPUs. It may set all at boot and end, so it is active where it is
    enabled."""
    if not is_there(tree, _TUNED):
        return

    tuned = read_tuned(tree)
    if tuned is None or not tuned.isolates:
        return
    pids = facts.of(TUNED)
    enabled = enabled_at(tree, "tuned.service")
    name = "tuned with the profile %s" % " ".join(tuned.profiles)
    yield from _made(TUNED, [*tuned.files, *enabled], pids, bool(pids or enabled) or not tree.live, name)


def _irqbalance(tree: Tree, facts: Facts) -> Iterator[Owner]:
    """Yield its file alone does nothing."""
    pids = facts.of(IRQBALANCE_OWNER)
    enabled = enabled_at(tree, "irqbalance.service")
    if enabled or pids:
        files = [path for path in _IRQBALANCE_FILES if is_there(tree, path)]
        yield from _made(IRQBALANCE_OWNER, [*enabled, *files], pids, True)


def _reconcile(tree: Tree) -> Iterator[Owner]:
    enabled = [*enabled_at(tree, _TIMER, "timers"), *enabled_at(tree, _SERVICE)]
    files = [path for path in _RECONCILE_FILES if is_there(tree, path)]
    yield from _made(RECONCILE, [*enabled, *files], (), bool(enabled) or not tree.live)


def giving_policy(tree: Tree) -> str:
    """Return by which policy the role reconcile gives CPUs out itself; empty where it follows the kubelet's
    checkpoint, or is not there. Of one that is active, as find_owners() has it."""
    if enabled_at(tree, _TIMER, "timers"):
        return ""
    policy = members_at(tree, _RECONCILE_SETTINGS).get("policy")
    if policy in GIVING_POLICIES:
        return str(policy)
    # Its settings may be elsewhere.
    return " or ".join(GIVING_POLICIES) if enabled_at(tree, _SERVICE) else ""


def _housekeeping(tree: Tree) -> Iterator[Owner]:
    layers = members_at(tree, _JOURNAL).get("layers")
    agrees = undisturbed(layers) if isinstance(layers, list) else ()
    for owner in _made(HOUSEKEEPING, [_JOURNAL] if is_there(tree, _JOURNAL) else [], (), True):
        yield owner._replace(agrees_with=agrees)


def undisturbed(layers: Sequence[object]) -> tuple[str, ...]:
    """Return the owners that the role housekeeping does not contradict where it writes these layers alone.

    It gives tuned the same CPUs by the layer of that name. The others write interrupts and irqbalance's file only.
    """
    found = [TUNED] if layers_of.TUNED in layers else []
    if layers_of.INTERRUPTS not in layers and layers_of.IRQBALANCE not in layers:
        found += [BALLOONS, TOPOLOGY_AWARE, CRIO_INTERRUPTS]
    return tuple(found)


def _goresctrl(tree: Tree) -> Iterator[Owner]:

    yield from _made(GORESCTRL_OWNER, [*files_with_classes(tree), *goresctrl_groups(tree)], (), True)


def _cache(tree: Tree) -> Iterator[Owner]:
    yield from _made(CACHE, [_CACHE_JOURNAL] if is_there(tree, _CACHE_JOURNAL) else [], (), True)

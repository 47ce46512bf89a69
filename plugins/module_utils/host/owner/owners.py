# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Who manages CPUs on a node, by what each leaves in places that are root's. node/owners.py has what takes a kubelet.

A file alone does not say that a program still works: most of them leave files behind. So on a live node an owner counts
as active where its process runs, or where systemd or the kubelet starts it or has it registered. Of a saved node,
whatever was saved counts.
Sources: deployment/helm and pkg/driver/cdi.go of kubernetes-sigs/dra-driver-cpu; deployment/helm and
pkg/resmgr/cache/cache.go of containers/nri-plugins; k8s.io/dynamic-resource-allocation/kubeletplugin.
"""

from __future__ import annotations

import re
from typing import Any, Iterable, Iterator, Mapping, NamedTuple, Sequence

from ...tree import Tree
from .. import layers as layers_of
from ..look import enabled_at, is_there, members, members_at, names_in

KUBELET_STATIC = "kubelet-static"
DRA_CPU = "dra-driver-cpu"
BALLOONS = "nri-balloons"
TOPOLOGY_AWARE = "nri-topology-aware"
CRIO_INTERRUPTS = "crio-interrupts"
CRIO_SHARED = "crio-shared-cpus"
TUNED = "tuned"
IRQBALANCE = "irqbalance"
RECONCILE = "reconcile"
HOUSEKEEPING = "housekeeping"
GORESCTRL = "goresctrl"
CACHE = "cache"

# What people call them, in the order in which they are reported.
NAMES = {
    KUBELET_STATIC: "the kubelet's static CPU manager policy",
    DRA_CPU: "the DRA CPU driver",
    BALLOONS: "the NRI policy balloons",
    TOPOLOGY_AWARE: "the NRI policy topology-aware",
    CRIO_INTERRUPTS: "CRI-O's annotation irq-load-balancing",
    CRIO_SHARED: "CRI-O's shared CPUs",
    TUNED: "tuned",
    IRQBALANCE: "irqbalance",
    RECONCILE: "the role reconcile",
    HOUSEKEEPING: "the role housekeeping",
    GORESCTRL: "a container runtime or plugin with classes of goresctrl",
    CACHE: "the role cache",
}

STATIC = "static"

# The programs, by the names of their files.
DRACPU, CRIO = "dracpu", "crio"
POLICY_PROGRAM = "nri-resource-policy-"
POLICIES = {BALLOONS: "balloons", TOPOLOGY_AWARE: "topology-aware"}

# The driver's name, and the kind of its devices as it is in a file's name.
_DRIVER, _DEVICES = "dra.cpu", "dra.k8s.io-cpu"
_REGISTRY, _REGISTERED = "%s/plugins_registry", "-reg.sock"
# /run and /var/run are one directory, but for a saved node.
_CDI = ("/run/cdi", "/var/run/cdi", "/etc/cdi")
CLAIM = "DRA_CPUSET_"
_PLUGINS, _PLUGIN_SETTINGS = "/opt/nri/plugins", "/etc/nri/conf.d"
POLICY_CACHE = "/var/lib/nri-resource-policy/cache"

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
        """Plain data, as modules return it."""
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


def find_owners(tree: Tree, facts: Facts) -> list[Owner]:
    """Who manages CPUs on a node, in the order of NAMES. A file that cannot be read shows nothing."""
    return [
        *_kubelet(facts),
        *_dra_driver(tree, facts),
        *_nri_policies(tree, facts),
        *_crio(tree, facts),
        *_tuned(tree, facts),
        *_irqbalance(tree, facts),
        *_reconcile(tree),
        *_housekeeping(tree),
        *_goresctrl(tree),
        *_cache(tree),
    ]


def _made(owner: str, evidence: Iterable[str], pids: Sequence[int], is_active: bool, name: str = "") -> Iterator[Owner]:
    """The owner with this id, if there is any evidence of it."""
    every = (*evidence, *("process %d" % pid for pid in pids))
    if every:
        yield Owner(owner, name or NAMES[owner], every, is_active)


# --- who gives containers their CPUs --------------------------------------------------------------------------


def _kubelet(facts: Facts) -> Iterator[Owner]:
    if facts.policy == STATIC:
        yield from _made(KUBELET_STATIC, facts.kubelet, (), True)


def _dra_driver(tree: Tree, facts: Facts) -> Iterator[Owner]:
    """It is active where the kubelet has it registered: the driver takes its socket away when it ends."""
    pids = facts.processes.get(DRACPU, ())
    sockets = _registered(tree, facts.kubelet_root)
    evidence = [*sockets, *_cdi_files(tree)]
    if facts.claims:
        evidence.append("%s* in the environment of process %s" % (CLAIM, ", ".join(map(str, facts.claims))))
    yield from _made(DRA_CPU, evidence, pids, bool(sockets or pids or not tree.live))


def _registered(tree: Tree, kubelet_root: str) -> list[str]:
    """The driver's sockets at the kubelet: dra.cpu-reg.sock, with a pod's UID in it where two of its pods overlap."""
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
    """What the DRA driver's CDI files put into the environment of containers, as "DRA_CPUSET_uid=4-7"."""
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
        pids = facts.processes.get(POLICY_PROGRAM + policy, ())
        evidence = [*_plugins(tree, policy), *([POLICY_CACHE] if cached == policy else [])]
        yield from _made(owner, evidence, pids, bool(pids) or not tree.live)


def _plugins(tree: Tree, policy: str) -> list[str]:
    """The files of a policy that the container runtime starts by itself, "10-nri-resource-policy-balloons"."""
    pattern = r"(?:\d\d-)?(?:%s)?%s(?:\.\w+)?" % (POLICY_PROGRAM, policy)
    return [
        "%s/%s" % (directory, name)
        for directory in (_PLUGINS, _PLUGIN_SETTINGS)
        for name in names_in(tree, directory)
        if re.fullmatch(pattern, name)
    ]


def _crio(tree: Tree, facts: Facts) -> Iterator[Owner]:
    from .crio import read_crio

    pids = facts.processes.get(CRIO, ())
    is_active = bool(pids or enabled_at(tree, "crio.service")) or not tree.live
    settings = read_crio(tree)
    if settings.interrupts:
        yield from _made(CRIO_INTERRUPTS, settings.interrupts, pids, is_active)
    if settings.shared:
        yield from _made(CRIO_SHARED, (settings.shared,), pids, is_active)


# --- who places interrupts and services, and what is ours -----------------------------------------------------


def _tuned(tree: Tree, facts: Facts) -> Iterator[Owner]:
    """tuned, where its profile manages CPUs. It may set all at boot and end, so it is active where it is enabled."""
    if not is_there(tree, _TUNED):
        return
    from .tuned import read_tuned

    tuned = read_tuned(tree)
    if tuned is None or not tuned.isolates:
        return
    pids = facts.processes.get(TUNED, ())
    enabled = enabled_at(tree, "tuned.service")
    name = "tuned with the profile %s" % " ".join(tuned.profiles)
    yield from _made(TUNED, [*tuned.files, *enabled], pids, bool(pids or enabled) or not tree.live, name)


def _irqbalance(tree: Tree, facts: Facts) -> Iterator[Owner]:
    """Its file alone does nothing."""
    pids = facts.processes.get(IRQBALANCE, ())
    enabled = enabled_at(tree, "irqbalance.service")
    if enabled or pids:
        files = [path for path in _IRQBALANCE_FILES if is_there(tree, path)]
        yield from _made(IRQBALANCE, [*enabled, *files], pids, True)


def _reconcile(tree: Tree) -> Iterator[Owner]:
    enabled = [*enabled_at(tree, _TIMER, "timers"), *enabled_at(tree, _SERVICE)]
    files = [path for path in _RECONCILE_FILES if is_there(tree, path)]
    yield from _made(RECONCILE, [*enabled, *files], (), bool(enabled) or not tree.live)


def giving_policy(tree: Tree) -> str:
    """By which policy the role reconcile gives CPUs out itself; empty where it follows the kubelet's checkpoint, or is
    not there. Of one that is active, as find_owners() has it."""
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
    """The owners that the role housekeeping does not contradict where it writes these layers alone.

    It gives tuned the same CPUs by the layer of that name. The others write interrupts and irqbalance's file only.
    """
    found = [TUNED] if layers_of.TUNED in layers else []
    if layers_of.INTERRUPTS not in layers and layers_of.IRQBALANCE not in layers:
        found += [BALLOONS, TOPOLOGY_AWARE, CRIO_INTERRUPTS]
    return tuple(found)


def _goresctrl(tree: Tree) -> Iterator[Owner]:
    from .goresctrl import files_with_classes, goresctrl_groups

    yield from _made(GORESCTRL, [*files_with_classes(tree), *goresctrl_groups(tree)], (), True)


def _cache(tree: Tree) -> Iterator[Owner]:
    yield from _made(CACHE, [_CACHE_JOURNAL] if is_there(tree, _CACHE_JOURNAL) else [], (), True)

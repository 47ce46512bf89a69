# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Whether a node is as the DRA CPU driver needs it, and what its installation there is to be given.

Source: docs/user/installation.md (Compatibility, Container runtime setup) and docs/user/configuration.md (reservedCPUs,
Kubelet configuration prerequisites) in kubernetes-sigs/dra-driver-cpu, v0.2.0.
"""

from __future__ import annotations

import posixpath
from typing import Any, Iterable, Mapping, NamedTuple

from .._base.errors import CPUManagerError, InputError, option
from .._base.quantity import counted, counted_cpus, millis
from .._kubelet.configuration import Configuration
from .._kubelet.gates import Gates
from .._kubelet.settings import plan_settings
from .._node.node import Node
from .._node.owners_found import owners_of
from .._node.runtime import runtime_of
from .._owners.conflicts import refusals
from .._owners.owners import CLAIM, DRA_CPU, KUBELET_STATIC, Owner
from .._runtime.runtime_files import read_state
from ..cpuset import CPUSet
from ..state.acceptance import NONE, readable

# resource.k8s.io/v1.
_FIRST_MINOR = 34
_DRA, _GROUPED = "DynamicResourceAllocation", "DRAConsumableCapacity"
_KUBELET_ROOT = "/var/lib/kubelet"
# The directories that the driver's chart mounts.
_NRI_DIRECTORIES, _CDI_DIRECTORIES = ("/var/run/nri", "/run/nri"), ("/var/run/cdi", "/run/cdi")
_MILLI = 1000


class DRAFinding(NamedTuple):
    """What the driver needs and the node has not. changed: whether the playbook to_dra changes it."""

    id: str
    where: str
    text: str
    remedy: str
    changed: bool = False

    def to_dict(self) -> dict[str, Any]:
        """Return plain data, as modules return it."""
        shown = self._asdict()
        shown["changed_by_to_dra"] = shown.pop("changed")
        return shown


class DriverWish(NamedTuple):
    """reserved: the driver's reservedCPUs, where they are given. allowed: ids of owners that may be there beside it."""

    reserved: CPUSet | None = None
    allowed: tuple[str, ...] = ()
    runtime_version: str | None = None


def driver_report(node: Node, wanted: Mapping[str, object], wish: DriverWish) -> dict[str, Any]:
    """Return what the module dra_info returns, for the node with `wanted` in the kubelet's configuration.

    Raises NodeError where there is no kubelet, or its files cannot be read.
    """
    before = node.needed_configuration()
    plan = plan_settings(wanted, before, node.minor)
    reserved, findings = _reservation(plan.settings, wish.reserved)
    runtime, more = _runtime(node, wish.runtime_version)
    owners = owners_of(node, before)
    findings = [
        *_version(node),
        *_gates(node, plan.configuration),
        *_policy(node, before),
        *findings,
        *more,
        *_owners(owners, wish.allowed),
    ]
    return {
        "ready": not findings,
        "findings": [finding.to_dict() for finding in findings],
        "reserved_cpus": str(reserved),
        "chart_values": _values(node, reserved),
        "runtime": runtime,
        "driver": _driver(owners),
        "settings": {name: plan.found[name] for name in plan.found if plan.found[name] not in ("", {}, [], "0")},
        "notes": _notes(node, plan.configuration),
    }


def _version(node: Node) -> list[DRAFinding]:
    if node.minor >= _FIRST_MINOR:
        return []
    remedy = "upgrade the cluster to 1.%d or later" % _FIRST_MINOR
    return [DRAFinding("kubernetes-version", "", "Kubernetes 1.%d has no resource.k8s.io/v1" % node.minor, remedy)]


def _gates(node: Node, configuration: Configuration) -> list[DRAFinding]:
    if node.minor < _FIRST_MINOR or Gates.of(configuration.values, node.minor).enabled(_DRA):
        return []
    where = configuration.origin(("featureGates", _DRA)) or configuration.source
    return [DRAFinding("feature-gate", where, "the feature gate %s is off" % _DRA, "remove it from featureGates")]


def _policy(node: Node, configuration: Configuration) -> list[DRAFinding]:
    findings = []
    policy, origin = configuration.given(("cpuManagerPolicy",))
    if policy != NONE:
        text = "the kubelet's CPU manager has the policy %s, and only one of both can give out CPUs" % policy
        where = origin or configuration.source
        findings.append(DRAFinding("cpu-manager-policy", where, text, "set it to none", changed=True))
    state = readable(node.checkpoint()).state
    exclusive = CPUSet() if state is None else state.exclusive_cpus()
    if exclusive:
        where = node.tree.path(node.checkpoint_path)
        text = "the checkpoint gives containers the exclusive CPUs %s" % exclusive
        findings.append(
            DRAFinding("checkpoint", where, text, "drain the node and discard the checkpoint", changed=True)
        )
    return findings


def _reservation(settings: Mapping[str, Any], given: CPUSet | None) -> tuple[CPUSet, list[DRAFinding]]:
    """Return the driver's reserved CPUs, which have to be as many as the kubelet takes from the node's allocatable
    CPUs."""
    named = CPUSet.parse(settings["reserved_system_cpus"])
    # reservedSystemCPUs takes the place of both.
    amount = millis(settings["kube_reserved_cpu"]) + millis(settings["system_reserved_cpu"])
    if named:
        amount = _MILLI * len(named)
    reserved = named if given is None else given
    if amount == _MILLI * len(reserved):
        if not named or reserved == named:
            return reserved, []
        where, what = option("driver_reserved_cpus"), "the CPUs %s are others than the kubelet's %s" % (reserved, named)
        return reserved, [DRAFinding("reserved-cpus", where, what, "name the same CPUs")]
    where = option("reserved_system_cpus")
    if given is None:
        text = "the kubelet reserves %s without naming them, and the driver has to reserve the same"
        text %= counted_cpus(amount)
        return reserved, [DRAFinding("reserved-cpus", where, text, "name them there")]
    where = option("driver_reserved_cpus")
    count = counted(len(given), "CPU")
    text = "the driver is to reserve %s (%s), and the kubelet reserves %s" % (count, given, counted_cpus(amount))
    return reserved, [DRAFinding("reserved-cpus", where, text, "name the same CPUs to both")]


def _runtime(node: Node, version: str | None) -> tuple[dict[str, object], list[DRAFinding]]:
    try:
        runtime = runtime_of(node, version)
        state = read_state(node.tree, runtime)
    except InputError:
        raise
    except CPUManagerError as error:
        return {}, [DRAFinding("runtime", error.where, error.what, error.remedy)]
    findings = []
    for name, flag in (("NRI", state.nri), ("CDI", state.cdi)):
        if not flag.on:
            where = node.tree.path(flag.where or runtime.config)
            text, remedy = "%s of %s is off" % (name, runtime.kind), "turn it on with the module runtime_config"
            findings.append(DRAFinding(name.lower(), where, text, remedy, changed=True))
    if posixpath.dirname(state.socket) not in _NRI_DIRECTORIES:
        text = "NRI listens at %s, which the driver's chart does not mount" % state.socket
        findings.append(DRAFinding("nri-socket", runtime.config, text, "let it listen at its default place"))
    elif node.tree.live and state.nri.on and not node.tree.exists(state.socket):
        text = "there is no socket, although NRI is on in the configuration"
        # The runtime is restarted only where its files change.
        is_restarted = not state.cdi.on
        findings.append(DRAFinding("nri-socket", state.socket, text, "restart the container runtime", is_restarted))
    if set(_CDI_DIRECTORIES).isdisjoint(state.spec_dirs):
        text = "cdi_spec_dirs has no %s, where the driver writes its files" % _CDI_DIRECTORIES[0]
        findings.append(DRAFinding("cdi-directories", runtime.config, text, "add it"))
    return {"kind": runtime.kind, "version": runtime.version_text(), **state.to_dict()}, findings


def _owners(owners: Iterable[Owner], allowed: Iterable[str]) -> list[DRAFinding]:
    """Return who else gives out CPUs; the kubelet's own policy is a finding already."""
    errors = refusals([owner for owner in owners if owner.id != KUBELET_STATIC], DRA_CPU, allowed)
    return [DRAFinding("other-owner", error.where, error.what, error.remedy) for error in errors]


def _driver(owners: Iterable[Owner]) -> dict[str, object]:
    """Return the driver on this node. in_use: it runs, or containers have CPUs of its claims."""
    for owner in owners:
        if owner.id == DRA_CPU:
            is_used = owner.is_active or any(line.startswith(CLAIM) for line in owner.evidence)
            return {"found": True, "in_use": is_used, "evidence": list(owner.evidence)}
    return {"found": False, "in_use": False, "evidence": []}


def _values(node: Node, reserved: CPUSet) -> dict[str, object]:
    """Return what the chart's values are to have for this node."""
    values: dict[str, object] = {"driverConfig": {"reservedCPUs": str(reserved)}} if reserved else {"driverConfig": {}}
    root = posixpath.dirname(node.checkpoint_path)
    return values if root == _KUBELET_ROOT else {**values, "kubeletRootDir": root}


def _notes(node: Node, configuration: Configuration) -> list[str]:
    notes = []
    if node.minor >= _FIRST_MINOR and not Gates.of(configuration.values, node.minor).enabled(_GROUPED):
        notes.append(
            "the driver's default mode, grouped, needs the feature gate %s in the API server, the scheduler and the"
            " kubelets of Kubernetes 1.%d" % (_GROUPED, node.minor)
        )
    return [*notes, *node.version_notes()]

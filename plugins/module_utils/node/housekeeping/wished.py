# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What is wished for a node, as its kubelet and its kernel are."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Callable, Collection, NamedTuple, Sequence

from ...cgroup.hierarchy import ROOT, Hierarchy
from ...cgroup.kubepods import Kubepods
from ...cpuset import CPUSet
from ...errors import CPUManagerError, InputError, NodeError, RefusedError, option
from ...host.kernel_line import (
    NAMES,
    Argument,
    compare,
    default_features,
    parse_line,
    same_value,
    split_words,
    wanted_arguments,
)
from ...host.loader.loaders import configured_line, find_loader
from ...host.loader.model import NO_LOADER
from ...host.owner.owners import RECONCILE, giving_policy
from ...host.partitions import pods_on, why_none
from ...host.slices import SYSTEMD_SLICES
from ...tree import Tree
from ..node import Node, cgroup_root_of
from ..places import UNIT_DIRECTORY
from .journal import SLICE, OwnCPUs
from .reserved import kubelet_reservation

if TYPE_CHECKING:
    from ...host.owner.owners import Owner
    from ...kubelet.file.configuration import Configuration

_COMMAND_LINE = "/proc/cmdline"


class KernelLine(NamedTuple):
    """The arguments that are wanted. rows: each as it is, as plain data. reboot: why the node has to be booted."""

    arguments: Sequence[Argument]
    rows: Sequence[dict[str, Any]]
    reboot: Sequence[str]


def reserved_cpus(node: Node, given: CPUSet | None) -> CPUSet:
    """The CPUs that are given, else those that the kubelet reserves. Raises NodeError, RefusedError for neither."""
    if given is not None:
        return given
    configuration = node.needed_configuration()
    found = kubelet_reservation(node, configuration).cpus
    if not found:
        raise RefusedError(
            "the kubelet reserves no CPUs, so it is not known which are the host's; nothing was written",
            # A kubelet that has only flags has no file.
            where=node.tree.root if node.config_path is None else node.tree.path(node.config_path),
            remedy="give them in %s or %s" % (option("reserved_system_cpus"), option("reservation")),
        )
    return found


def own_cpus(
    node: Node,
    configuration: Configuration | None,
    reserved: CPUSet,
    own: OwnCPUs,
    online: CPUSet,
    made: Sequence[str],
    owners: Sequence[Owner] = (),
) -> OwnCPUs:
    """A partition that can be, of CPUs that no pod may use.

    made: the slices that were made for one before. owners: who manages CPUs on the node.

    Raises RefusedError for what cannot be, and for CPUs that are given to pods; NodeError.
    """
    where, nothing = option("partition_cpus"), "; nothing was written"

    def refusal(what: str, remedy: str, at: str = where) -> RefusedError:
        return RefusedError(what + nothing, where=at, remedy=remedy)

    hierarchy = Hierarchy(node.tree)
    reason = why_none(hierarchy)
    if reason:
        raise refusal("partitions cannot be made: %s" % reason, "leave it out on this node")
    if not own.cpus or own.cpus - online:
        raise refusal("CPUs %s are not online" % (own.cpus - online or "(none)"), "give some of %s" % online)
    if own.cpus - reserved:
        what = "CPUs %s are not reserved, so they are the pods'" % (own.cpus - reserved)
        raise refusal(what, "give some of the reserved CPUs %s, or reserve more" % reserved)
    if not reserved & online - own.cpus:
        what = "they are all of the reserved CPUs that are online, and the host's own work would go to those of pods"
        raise refusal(what, "leave at least one of the reserved CPUs %s to the host" % reserved)
    _check_kubelet(node, configuration, own.cpus, refusal)
    _check_reconcile(node.tree, owners, refusal)
    pods = Kubepods(hierarchy, cgroup_root_of(configuration))
    held = pods_on(hierarchy, pods, own.cpus)
    if held:
        what = "CPUs %s belong to pods: %s has some of them%s" % (
            own.cpus,
            hierarchy.place(held[0]),
            ", and %d more" % (len(held) - 1) if held[1:] else "",
        )
        raise refusal(what, "give CPUs that no pod has, or drain the node first")
    is_name = SLICE.fullmatch(own.slice) and own.slice not in SYSTEMD_SLICES and own.slice not in pods.tops
    if not is_name:
        what = "%r can be no slice of its own right below the topmost one" % own.slice
        raise refusal(what, "give a name such as isolated.slice, without a dash", option("partition_slice"))
    unit = "%s/%s" % (UNIT_DIRECTORY, own.slice)
    if own.slice not in made and (own.slice in hierarchy.children(ROOT) or node.tree.exists(unit, follow=False)):
        what = "%s is there, and was not made here" % own.slice
        raise refusal(
            what, "give another name, and the services that are to run there Slice=", option("partition_slice")
        )
    return own


def _check_kubelet(
    node: Node, configuration: Configuration | None, cpus: CPUSet, refusal: Callable[[str, str], RefusedError]
) -> None:
    """Raises RefusedError where the kubelet's static policy gives some of these CPUs to pods."""
    if configuration is None or configuration.values.get("cpuManagerPolicy") != "static":
        return
    # Imported here: it is much, and hardly any node has a partition.
    from ..prediction import certain_config, predicted_starts

    config = certain_config(predicted_starts(node, {}, configuration).found)
    if cpus - config.reserved:
        what = "the kubelet gives CPUs %s to pods, as it reserves %s" % (
            cpus - config.reserved,
            config.reserved or "none",
        )
        raise refusal(what, "reserve them in the kubelet's configuration first")
    if not config.strict_reservation:
        what = "the kubelet gives the reserved CPUs also to containers without exclusive ones"
        raise refusal(what, "set strict-cpu-reservation in cpuManagerPolicyOptions first")


def _check_reconcile(tree: Tree, owners: Sequence[Owner], refusal: Callable[[str, str], RefusedError]) -> None:
    """Raises RefusedError where our own program gives CPUs out: its shared pool has reserved CPUs, too."""
    policy = giving_policy(tree) if any(owner.id == RECONCILE and owner.is_active for owner in owners) else ""
    if policy:
        raise refusal(
            "the role reconcile gives CPUs out here by its policy %s, and the reserved ones to containers without"
            " exclusive ones, too" % policy,
            "take its policy static (reconcile_policy: static) or remove it (reconcile_state: absent), or leave out %s"
            % option("partition_cpus"),
        )


def kernel_line(
    tree: Tree,
    reserved: CPUSet,
    possible: CPUSet,
    features: Sequence[str] | None,
    has_shared_pool: bool,
    is_written: bool,
) -> KernelLine:
    """What the kernel is to be booted with. is_written: or it is only shown.

    Raises InputError, RefusedError for what cannot be wanted, and for a node whose command line is not written here.
    """
    version = 2 if tree.exists("/sys/fs/cgroup/cgroup.controllers") else 1
    chosen = default_features(version) if features is None else features
    arguments = wanted_arguments(reserved, possible, chosen, has_shared_pool)
    loader = find_loader(tree)
    if is_written and loader.kind == NO_LOADER:
        raise RefusedError(
            "the kernel's command line cannot be written: %s; nothing was written" % loader.evidence,
            where=option("kernel_arguments"),
            remedy="leave it off, and give the kernel these arguments by your own means: %s"
            % " ".join(argument.text for argument in arguments),
        )
    booted = tree.read_value(_COMMAND_LINE) or ""
    configured: str | None = None
    try:
        configured = configured_line(tree, loader).text
    except CPUManagerError:
        if is_written:
            raise
    rows = compare(booted, configured, arguments)
    reboot = [
        "%s=%s counts from the next boot on" % (row.name, row.wanted)
        for row in rows
        if is_written and row.wanted and not same_value(row.name, row.booted, row.wanted)
    ]
    kept = {argument.name for argument in arguments if is_written}
    reboot += still_booted(tree, kept)
    return KernelLine(arguments, [row._asdict() for row in rows if row.wanted], reboot)


def waits_for_boot(tree: Tree, reserved: CPUSet) -> list[str]:
    """Why systemd's own affinity is not what its files say, which it reads when it starts."""
    try:
        content = tree.content("/proc/1/status") or b""
    except CPUManagerError:
        return []
    for line in content.decode("ascii", "replace").splitlines():
        name, _colon, value = line.partition(":")
        if name == "Cpus_allowed_list":
            try:
                has = CPUSet.parse(value.strip())
            except InputError:
                return []
            return ["systemd itself runs on CPUs %s until the next boot" % has] if has - reserved else []
    return []


def still_booted(tree: Tree, kept: Collection[str] = ()) -> list[str]:
    """Why a node has to be booted: the arguments of ours that its kernel has, without those that are kept."""
    try:
        words = split_words(parse_line(tree.read_value(_COMMAND_LINE) or ""))[1]
    except NodeError:
        return []
    names = [word.name for word in words if word.name in NAMES and word.name not in kept]
    return ["the kernel runs with %s until the next boot" % name for name in names]

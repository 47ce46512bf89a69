# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which two managers of CPUs contradict each other on one node, why, and the way out. Pure.

Sources: what the documentation of each says of the others, see docs/docsite/rst/owners.rst.
"""

from __future__ import annotations

from typing import Any, Iterable, Iterator, NamedTuple, Sequence

from .._base.errors import InputError, RefusedError, option
from .owners import (
    BALLOONS,
    CACHE,
    CPU_POOLER,
    CRANE,
    CRI_RESMGR,
    CRIO_INTERRUPTS,
    CRIO_SHARED,
    DRA_CPU,
    GORESCTRL_OWNER,
    HOUSEKEEPING,
    IRQBALANCE_OWNER,
    KATALYST,
    KOORDLET,
    KUBELET_STATIC,
    NAMES,
    RECONCILE,
    TOPOLOGY_AWARE,
    TUNED,
    WEKA,
    Owner,
)

# The kind of the error where an owner is in the way.
OTHER_OWNER = "other_owner"

_BOTH_PIN = "both write the cpusets of containers, each by its own account of which CPUs are free"
_TO_NONE = "set the kubelet's cpuManagerPolicy to none"
_REMOVE_POLICY = "uninstall the NRI policy and delete the pods that it has pinned"
_REMOVE_DRIVER = "take the driver off this node, delete the pods with claims and the socket it left"
_NO_RECONCILE = "remove our timer (reconcile_state: absent)"
_NO_CACHE = "put the caches back (cache_state: absent)"
_NOT_OURS = "leave the layers interrupts and irqbalance out of housekeeping_layers here"
_POLICY_CACHES = "the NRI policy sets the affinity of interrupts and neither notices nor reverts what others set"


class Pair(NamedTuple):
    """Two owners that contradict each other: why, and the ways out."""

    first: str
    second: str
    reason: str
    remedy: str


def _pairs_with_policy(policy: str) -> tuple[Pair, ...]:
    """Return what holds of each of the NRI policies."""
    return (
        Pair(KUBELET_STATIC, policy, _BOTH_PIN, "%s, or %s" % (_TO_NONE, _REMOVE_POLICY)),
        Pair(DRA_CPU, policy, _BOTH_PIN, "%s, or %s" % (_REMOVE_DRIVER, _REMOVE_POLICY)),
        Pair(
            policy,
            CRIO_SHARED,
            "CRI-O adds its shared CPUs to the cpuset of a container, or gives it those of its workload, and the policy"
            " writes that cpuset anew",
            "remove shared_cpuset and the cpuset of workloads from CRI-O's configuration, or %s" % _REMOVE_POLICY,
        ),
        Pair(
            policy,
            CRIO_INTERRUPTS,
            "both move interrupts off the CPUs of containers, each from and to what it remembers",
            "remove irq-load-balancing.crio.io from allowed_annotations in CRI-O's configuration, or switch the"
            " policy's control of interrupts off and allow the policy here",
        ),
        Pair(
            policy,
            TUNED,
            "tuned keeps the system and interrupts off fixed CPUs, and the policy gives out all CPUs as its own",
            "take another profile with tuned-adm, or give the policy only tuned's isolated CPUs and allow it here",
        ),
        Pair(
            policy,
            IRQBALANCE_OWNER,
            "irqbalance moves every few seconds the interrupts that the policy has placed, and the policy does not"
            " notice it",
            "disable irqbalance, or switch the policy's control of interrupts off and allow the policy here",
        ),
        Pair(
            policy,
            RECONCILE,
            "the policy writes the cpusets of containers, and the reconcile pass writes them back to what the"
            " kubelet's checkpoint says",
            "%s, or %s" % (_NO_RECONCILE, _REMOVE_POLICY),
        ),
        Pair(policy, HOUSEKEEPING, _POLICY_CACHES, "%s, or %s" % (_NOT_OURS, _REMOVE_POLICY)),
        Pair(
            policy,
            CACHE,
            "the policy gives out CPUs by its own account, and puts containers into classes of its own (goresctrl),"
            " while our groups follow the kubelet's checkpoint",
            "%s, or %s" % (_NO_CACHE, _REMOVE_POLICY),
        ),
    )


# Who else gives containers CPUs by an account of its own: how it does it, and how to be without it.
_WRITERS = {
    WEKA: (
        "the plugin gives containers CPUs by its own account, those that an annotation names among them",
        "uninstall the plugin and delete the pods that it has pinned",
    ),
    KOORDLET: (
        "koordlet writes the cpusets of its own classes of pods, and does not heed the CPUs that the kubelet reserves",
        "take koordlet off this node and delete the pods that it has pinned",
    ),
    KATALYST: (
        "Katalyst's plugin gives containers CPUs in place of the kubelet's CPU manager, and they are in no checkpoint",
        "take Katalyst's agent off this node and give it a kubelet without its patches",
    ),
    CRANE: (
        "crane-agent gives containers CPUs by their pods' annotations, and they are in no checkpoint of the kubelet",
        "take crane-agent off this node and delete the pods that it has pinned",
    ),
    CPU_POOLER: (
        "cpusetter gives all containers the CPUs of pools of its own configuration",
        "take CPU-Pooler off this node and delete the pods that it has pinned",
    ),
    CRI_RESMGR: (
        "the CRI Resource Manager stands between kubelet and runtime and gives all containers CPUs by its own policy",
        "let the kubelet use the runtime's own socket, and take cri-resmgr off this node",
    ),
}


def _pairs_with_writer(writer: str) -> Iterator[Pair]:
    """Yield what holds of each of them."""
    how, way_out = _WRITERS[writer]
    later = list(_WRITERS)[list(_WRITERS).index(writer) + 1 :]
    ways = {
        KUBELET_STATIC: _TO_NONE,
        DRA_CPU: _REMOVE_DRIVER,
        BALLOONS: _REMOVE_POLICY,
        TOPOLOGY_AWARE: _REMOVE_POLICY,
        CRIO_SHARED: "remove shared_cpuset and the cpuset of workloads from CRI-O's configuration",
        RECONCILE: _NO_RECONCILE,
        CACHE: _NO_CACHE,
        **{name: _WRITERS[name][1] for name in later},
    }
    for beside, way in ways.items():
        what = "which our groups do not follow" if beside == CACHE else "and both write the cpusets of containers"
        yield Pair(beside, writer, "%s, %s" % (how, what), "%s, or %s" % (way, way_out))


# Each pair once.
PAIRS = (
    *(pair for writer in _WRITERS for pair in _pairs_with_writer(writer)),
    Pair(
        KUBELET_STATIC,
        DRA_CPU,
        _BOTH_PIN,
        "%s, with the playbook to_dra, or %s" % (_TO_NONE, _REMOVE_DRIVER),
    ),
    *_pairs_with_policy(BALLOONS),
    *_pairs_with_policy(TOPOLOGY_AWARE),
    Pair(
        BALLOONS,
        TOPOLOGY_AWARE,
        "both are policies of nri-plugins for all containers of a node; they share one cache and one socket",
        "uninstall one of them on this node, and remove /var/lib/nri-resource-policy/cache",
    ),
    Pair(
        DRA_CPU,
        CRIO_SHARED,
        "CRI-O adds its shared CPUs to the cpuset of a container, or gives it those of its workload, and the driver"
        " writes that cpuset anew",
        "remove shared_cpuset and the cpuset of workloads from CRI-O's configuration, or %s" % _REMOVE_DRIVER,
    ),
    Pair(
        DRA_CPU,
        RECONCILE,
        "the driver writes the cpusets of containers, and the reconcile pass writes them back to what the kubelet's"
        " checkpoint says",
        "%s, or %s" % (_NO_RECONCILE, _REMOVE_DRIVER),
    ),
    Pair(
        CRIO_SHARED,
        RECONCILE,
        "CRI-O adds its shared CPUs to containers with exclusive ones, and gives those of its workloads other CPUs than"
        " the kubelet does; the reconcile pass would undo that, as the checkpoint does not have it",
        "%s, or remove shared_cpuset and the cpuset of workloads from CRI-O's configuration" % _NO_RECONCILE,
    ),
    Pair(
        CRIO_INTERRUPTS,
        TUNED,
        "both write the CPUs that irqbalance is banned from; CRI-O puts back what it found when it started",
        "take a profile of tuned that leaves irqbalance alone (its section irqbalance with enabled=0) and allow tuned"
        " here, or remove irq-load-balancing.crio.io from allowed_annotations in CRI-O's configuration",
    ),
    Pair(
        CRIO_INTERRUPTS,
        HOUSEKEEPING,
        "CRI-O writes the default affinity of interrupts and irqbalance's banned CPUs for each pod with the annotation,"
        " and puts back what it found when it started",
        "remove irq-load-balancing.crio.io from allowed_annotations in CRI-O's configuration and restart it, or %s"
        % _NOT_OURS,
    ),
    Pair(
        TUNED,
        HOUSEKEEPING,
        "its profile sets the affinity of interrupts, workqueues and services for its own isolated CPUs, and sets it"
        " anew at each of its starts",
        "have the role give tuned the same CPUs (housekeeping_tuned: true), or take another profile with tuned-adm",
    ),
    Pair(
        DRA_CPU,
        CACHE,
        "the driver's exclusive CPUs are in no checkpoint of the kubelet, which our groups follow",
        "%s, or %s" % (_NO_CACHE, _REMOVE_DRIVER),
    ),
    Pair(
        GORESCTRL_OWNER,
        CACHE,
        "both divide the ways of the root group, and goresctrl gives the root what its own configuration says",
        "%s, or remove rdt_config_file from the container runtime's configuration and its groups" % _NO_CACHE,
    ),
)

_BY_IDS = {frozenset((pair.first, pair.second)): pair for pair in PAIRS}


class Contradiction(NamedTuple):
    """Two owners that cannot both have their way on a node."""

    first: Owner
    second: Owner
    reason: str
    remedy: str

    def text(self) -> str:
        """Return a text for people: who, where each was found, and why."""
        return "%s (%s) and %s (%s): %s" % (
            self.first.name,
            _where(self.first),
            self.second.name,
            _where(self.second),
            self.reason,
        )

    def to_dict(self) -> dict[str, Any]:
        """Return plain data, as modules return it."""
        return {"first": self.first.id, "second": self.second.id, "reason": self.reason, "remedy": self.remedy}


def contradictions(owners: Sequence[Owner]) -> list[Contradiction]:
    """Return the pairs among the active ones of these owners that contradict each other, each once."""
    active = [owner for owner in owners if owner.is_active]
    found = []
    for number, first in enumerate(active):
        for second in active[number + 1 :]:
            pair = _BY_IDS.get(frozenset((first.id, second.id)))
            agree = second.id in first.agrees_with or first.id in second.agrees_with
            if pair is not None and not agree:
                found.append(Contradiction(first, second, pair.reason, pair.remedy))
    return found


def refusals(owners: Sequence[Owner], wanted: str, allowed: Iterable[str] = ()) -> list[RefusedError]:
    """Return why the owner that is `wanted` cannot be one beside these; empty where it can.

    allowed: the ids of owners that the operator answers for. Raises InputError for an id that there is not.
    """
    answered = check_allowed(allowed)
    errors = []
    for owner in owners:
        pair = _BY_IDS.get(frozenset((owner.id, wanted)))
        if pair is None or not owner.is_active or owner.id in answered:
            continue
        what = "%s cannot be used beside %s, which was found here (%s): %s" % (
            NAMES[wanted],
            owner.name,
            _where(owner),
            pair.reason,
        )
        remedy = "%s; if it does no harm here, add %s to %s" % (pair.remedy, owner.id, option("allow_owners"))
        errors.append(RefusedError(what, remedy=remedy, kind=OTHER_OWNER))
    return errors


def refuse(owners: Sequence[Owner], wanted: str, allowed: Iterable[str] = ()) -> None:
    """Raise RefusedError, of kind OTHER_OWNER, where refusals() has any; further ones are in its message."""
    errors = refusals(owners, wanted, allowed)
    if not errors:
        return
    what = "; ".join(error.what for error in errors)
    raise RefusedError(what, remedy="; ".join(error.remedy for error in errors), kind=OTHER_OWNER)


def check_allowed(allowed: Iterable[str]) -> frozenset[str]:
    """Return these ids. Raises InputError for one that there is not."""
    ids = frozenset(allowed)
    unknown = sorted(ids - frozenset(NAMES))
    if unknown:
        raise InputError(
            "there is no owner %s" % ", ".join(unknown),
            where=option("allow_owners"),
            remedy="these are: %s" % ", ".join(NAMES),
        )
    return ids


def _where(owner: Owner) -> str:
    """Return the evidence in short."""
    return ", ".join(owner.evidence[:3])

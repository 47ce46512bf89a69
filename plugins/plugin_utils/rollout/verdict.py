# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a run decides from the plans of its hosts. Pure.

Which rollout it goes back from, what it needs the cluster for, and whether a batch, or a node, may be changed.
"""

from __future__ import annotations

import re
from datetime import datetime, timezone
from typing import Any, Collection, Iterable, Iterator, Mapping, NamedTuple, Sequence

from ...module_utils._base.errors import InputError, RefusedError
from ...module_utils.cpuset import CPUSet
from ..report.answers import CLEAN, NO_KUBELET, few, items, line, mapping, text
from .scheduling import Claim, static_hosts

_REPAIR, _CHANGING, _STATIC = "repair", "changing", "static"


class PlannedHost(NamedTuple):
    """A host of a run."""

    name: str
    # What rollout_info answered, and what the run acts with there; each empty of a host that did not come so far.
    plan: Mapping[str, Any] = {}
    fixed: Mapping[str, Any] = {}
    # Whether the host was there when the run got its name.
    is_in_run: bool = False
    # Whether its change failed, and was undone as a whole.
    is_undone: bool = False

    @property
    def is_planned(self) -> bool:
        """Whether the node answered with a plan."""
        return bool(self.plan) and not self.plan.get("failed")

    @property
    def drains(self) -> bool:
        """Whether its pods leave the node, and this run makes them leave."""
        return bool(self.plan.get("drains"))

    @property
    def is_cordoned(self) -> bool:
        """Whether a change that was interrupted has drained the node."""
        return "node" in mapping(mapping(self.plan.get("journal")).get("facts"))

    @property
    def needs_cluster(self) -> bool:
        """Whether its change is more than one call: pods leave first, or one that was interrupted is taken back."""
        return self.drains or bool(self.plan.get("journal"))

    @property
    def node_name(self) -> str:
        """What the cluster calls the node."""
        return str(self.fixed.get("node_name", self.name))

    def needs_room(self, change: str) -> bool:
        """Return whether its pods must find room on other nodes; a repair drains nobody."""
        has_pods = self.drains or bool(mapping(self.plan.get("cpus")).get("exclusive"))
        return bool(self.fixed.get("check_capacity") and change != _REPAIR and self.plan.get("drain") and has_pods)


def refusal(plan: Mapping[str, Any], skip_no_kubelet: bool = False, done_so_far: str = "") -> str:
    """Return all reasons at once why a node is not changed, as text; empty where there is none.

    skip_no_kubelet: whether a node without a kubelet is left out. done_so_far: what was changed; empty for nothing.
    """
    if plan.get("failed"):
        return text(plan.get("msg", "failed"))
    if skip_no_kubelet and plan.get("status") == NO_KUBELET:
        return ""
    rows = [mapping(row) for row in items(plan.get("refusals"))]
    reasons = [
        "; ".join(filter(None, [": ".join(filter(None, [row.get("where"), row.get("text")])), row.get("remedy")]))
        for row in rows
    ]
    begun = "%s: %s: " % (plan.get("node", ""), done_so_far or "nothing was changed")
    return text(begun + "\n".join(reasons)) if reasons else ""


class RunGate(NamedTuple):
    """Which hosts cannot be changed, and which are asked once more whether they can be.

    Ansible ends a run where all hosts of a play have failed. So one that can be changed is asked, too, where the run
    may go on without those that cannot.
    """

    refused: Sequence[str]
    asked: Sequence[str]


def gate_of(
    hosts: Mapping[str, PlannedHost],
    every: Sequence[str],
    left: Collection[str],
    skip_no_kubelet: bool,
    max_fail_percentage: int,
) -> RunGate:
    """Return the gate of a run. every: all hosts of the play. left: those that have neither failed nor were lost."""
    refused = [name for name in every if name in left and refusal(hosts[name].plan, skip_no_kubelet)]
    failed = [name for name in every if name not in left and not hosts[name].plan.get("unreachable")]
    may_go_on = len(refused) + len(failed) <= len(every) * max_fail_percentage / 100
    fine = [name for name in every if name in left and name not in refused] if refused and may_go_on else []
    return RunGate(refused, [*refused, *fine[:1]])


class ClusterNeed(NamedTuple):
    """What a run needs the cluster for."""

    # The hosts that are going to be drained, or were for a change that was interrupted.
    hosts: Sequence[str]
    purpose: str
    # How the run can do without; empty where it cannot.
    alternative: str


def cluster_need(hosts: Iterable[PlannedHost]) -> ClusterNeed:
    """Return what these hosts need the cluster for; no hosts, where for nothing."""
    planned = [host for host in hosts if host.is_planned]
    cordoned = [host.name for host in planned if host.is_cordoned]
    names = list(dict.fromkeys([*(host.name for host in planned if host.drains), *cordoned]))
    more = " and %d more" % (len(names) - 1) if len(names) > 1 else ""
    # What was drained by a change that was interrupted is uncordoned in any case.
    alternative = "" if cordoned else "drain nodes yourself and set kubelet_drain to false"
    return ClusterNeed(names, "draining and uncordoning %s%s" % ("".join(names[:1]), more), alternative)


class Run(NamedTuple):
    """A run before it touches a batch: all hosts of its play, and the names of some of them."""

    hosts: Mapping[str, PlannedHost]
    # In the order in which they are changed.
    all: Sequence[str]
    batch: Sequence[str]
    # Those that have neither failed nor were lost.
    left: Collection[str]

    @property
    def lost(self) -> list[str]:
        """The hosts that were lost during the run. What is down from the start was not touched, and what was undone
        is as it was."""
        gone = (self.hosts[name] for name in self.all if name not in self.left)
        return [host.name for host in gone if host.is_in_run and not host.is_undone]

    @property
    def emptied(self) -> list[PlannedHost]:
        """The hosts of the batch whose pods have to leave."""
        return [self.hosts[name] for name in self.batch if self.hosts[name].plan.get("drain")]

    @property
    def changed(self) -> list[str]:
        """The hosts of the batches before this one, which have had their change, but for those that failed."""
        return [name for name in self.all[: self.all.index(self.batch[0])] if name in self.left]

    def asks(self, change: str) -> PlannedHost | None:
        """Return the host of the batch for whose pods the cluster is asked for room; None where it is not asked."""
        needing = [host for host in map(self.hosts.__getitem__, self.batch) if host.needs_room(change)]
        drained = [host for host in self.emptied if host.drains]
        return next((host for host in needing if host.drains), drained[0]) if needing and drained else None


def refuse_lost(run: Run, max_fail_percentage: int) -> None:
    """Raise RefusedError where more hosts were lost than may fail: Ansible goes on without them."""
    if len(run.lost) > len(run.all) * max_fail_percentage / 100:
        raise RefusedError(
            "%s was lost during this run, and may be cordoned or without its kubelet" % ", ".join(run.lost),
            remedy="this batch was not touched: bring back what was lost, and run again, which takes back what was"
            " begun there",
        )


def static_nodes(run: Run, fleet: Iterable[PlannedHost]) -> list[str]:
    """Return what the cluster calls the nodes whose kubelets give pods exclusive CPUs.

    fleet: also hosts that do not change.
    """
    hosts = {host.name: host for host in fleet}
    plans = {name: host.plan for name, host in hosts.items()}
    return [hosts[name].node_name for name in static_hosts(plans, run.changed)]


def refuse_shortage(run: Run, claims: Sequence[Claim]) -> None:
    """Raise RefusedError where pods find no CPUs on the other nodes."""
    if claims:
        raise RefusedError(
            "when %s are drained, these pods find no CPUs on the other nodes: %s"
            % (_names(run.emptied), "; ".join(claim.to_text() for claim in claims)),
            remedy="these nodes were not touched: take smaller batches with cpu_manager_serial, make room, or set"
            " cpu_manager_check_capacity to false",
        )


def rough_warning(run: Run, change: str, fleet: Iterable[PlannedHost]) -> str:
    """Return where the other nodes may have too few CPUs, by a rough count; empty where they do not.

    What pods ask for is not known, and whoever drains may have drained already.
    """
    if run.asks(change) or not any(run.hosts[name].needs_room(change) for name in run.batch):
        return ""
    away = {*run.batch, *(name for name in run.all if name not in run.left)}
    others = [host for host in fleet if host.name not in away and _policy(host) == _STATIC]
    exclusive = sum(_cpus(host, "exclusive") for host in run.emptied)
    free = sum(_cpus(host, "shared") for host in others)
    if exclusive <= free:
        return ""
    return (
        "exclusive CPUs of pods on %s: %d, CPUs in the shared pools of the other nodes: only %d; this is a rough guard,"
        " from the time before the first batch: as kubelet_drain is false, no cluster was asked what is free"
        % (_names(run.emptied), exclusive, free)
    )


def _policy(host: PlannedHost) -> object:
    return mapping(host.plan.get("found")).get("cpu_manager_policy")


def _cpus(host: PlannedHost, name: str) -> int:
    value = mapping(host.plan.get("cpus")).get(name)
    try:
        return len(CPUSet.parse(str(value or "")))
    except InputError:
        return 0


def _names(hosts: Iterable[PlannedHost]) -> str:
    return ", ".join(host.name for host in hosts)


def may_have_pods(plan: Mapping[str, Any]) -> bool:
    """Return whether pods may have come to a node while a change of it was interrupted, as far as the node says.

    The old checkpoint would take away their CPUs. While the node is cordoned there are none: those that have exclusive
    CPUs then, such as those of DaemonSets, were there before.
    """
    journal = mapping(plan.get("journal"))
    runs = mapping(plan.get("kubelet")).get("pid") is not None
    is_drained = journal.get("phase") == _CHANGING and "node" in mapping(journal.get("facts"))
    return bool(is_drained and journal.get("exclusive_now") and runs)


def in_service_error(plan: Mapping[str, Any]) -> RefusedError:
    """Return why an interrupted change is not taken back on a node that others have brought back into service."""
    return RefusedError(
        "a change of this node was interrupted, and since then its kubelet has started again and given pods the CPUs"
        " %s; nothing was changed" % text(mapping(plan.get("journal")).get("exclusive_now", "")),
        text(plan.get("node", "")),
        "if the node is as it should be, uncordon it and forget the change with rollout_journal, state: absent;"
        " if not, drain it or stop its kubelet, and run again",
    )


# Which rollout a fleet goes back from. Rollouts are named by the times at which the controller began them, and the
# nodes say which they have had. That a node says so proves nothing: a single node does not decide for others, and of
# several, what the others say is told before anything is done.


_TIME = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{6})?(\+00:00)?", re.ASCII)
_LONGEST = 60
_TEMPLATE = re.compile(r"\{(?=[{%#])")

_NAME_IT = "name the rollout to go back from with -e kubelet_rollback_of=TIME"
_LEAVE_OUT = "leave %s out with --limit"
_UNCHANGED = "no node was changed"


class Choice(NamedTuple):
    """What a fleet goes back from."""

    # The rollout; empty where there is a problem.
    rollout: str
    # The nodes that name it and those that do not, and why the rollback is not begun; each empty where there is nothing
    # to say.
    told: str
    problem: str

    def to_dict(self) -> dict[str, str]:
        """Return plain data."""
        return self._asdict()


def plan_back(plan: Mapping[str, Any], rollout: str) -> Mapping[str, Any]:
    """Return a plan of a rollback once it is known which rollout the fleet goes back from; each other plan as it is.

    The node has planned to go back from its own last one. If that is another, it stays as it is, but for a change that
    was interrupted.
    """
    if not rollout or not plan.get("actions") or plan.get("back_of", None) in (None, rollout):
        return plan
    nothing: dict[str, Any] = {name: [] for name in ("drift", "actions", "files", "restart", "resets")}
    refusals = plan.get("refusals") if plan.get("journal") else []
    return {**plan, **nothing, "status": CLEAN, "refusals": refusals, "drain": False, "drains": False}


class _Candidate(NamedTuple):
    """A rollout that nodes name: those that can go back from it, and those that have gone back."""

    time: datetime
    name: str
    nodes: Sequence[str]
    gone_back: Sequence[str]

    @property
    def hosts(self) -> list[str]:
        """The nodes that name it, in whatever way."""
        return [*self.nodes, *self.gone_back]

    @property
    def where(self) -> str:
        parts = ["on %s" % ", ".join(self.nodes)] if self.nodes else []
        parts += ["taken back already on %s" % ", ".join(self.gone_back)] if self.gone_back else []
        return "; ".join(parts)


def choose_rollout(plans: Mapping[str, Mapping[str, Any]], now: str, named: str = "") -> Choice:
    """Return the rollout to go back from: the one that the operator has named, else the newest.

    plans: by host, the answer of rollout_info; of one that could not be reached or planned anything else, with the
    reason in `msg`. now: the time in UTC, as Python's isoformat() writes it. named: empty where the operator names
    none.
    """
    said = {host: list(_said(plan)) for host, plan in plans.items() if "node" in plan}
    # A run that ended before it changed anything has named no rollout, and may have left a node cordoned.
    candidates = _candidates(said) or _candidates(
        {host: [(mapping(plan.get("journal")).get("run"), False)] for host, plan in plans.items()}
    )
    if named:
        found = [candidate for candidate in candidates if candidate.name == named]
        return (
            Choice(named, found[0].where + _without(found[0], candidates, said), "")
            if found
            else _stop("no node names the rollout %s" % named, candidates)
        )
    problem = _unknown(plans) or _no_times(said) or _to_come(candidates, now)
    if problem:
        return _stop(problem, candidates)
    if not candidates:
        # A journal that is refused may have had one.
        reasons = [_TEMPLATE.sub("{ ", line(reason)) for reason in map(refusal, plans.values()) if reason]
        return _stop("; ".join(["no node has had a rollout that it could go back from", *reasons]), [])
    newest = candidates[0]
    others = {host for candidate in candidates[1:] for host in candidate.hosts}.difference(newest.hosts)
    if len(newest.hosts) == 1 and others:
        problem = "only %s names the last rollout, and others name another: " % newest.hosts[0]
        ways_out = "if that is so, as for a canary, %s; if not, %s" % (_NAME_IT, _LEAVE_OUT % "it")
        return _stop(problem + ways_out, candidates)
    told = newest.where + _without(newest, candidates, said)
    if newest.nodes or not candidates[1:]:
        return Choice(newest.name, told, "")
    return Choice(newest.name, "%s; to go further back, %s" % (told, _NAME_IT), "")


def _without(chosen: _Candidate, candidates: Sequence[_Candidate], said: Mapping[str, object]) -> str:
    """Return which nodes do not name the chosen rollout, and what they name instead; empty where all do."""
    named = dict.fromkeys(said, "none")
    named.update((host, candidate.name) for candidate in reversed(candidates) for host in candidate.hosts)
    hosts: dict[str, list[str]] = {}
    for host, name in named.items():
        if host not in chosen.hosts:
            hosts.setdefault(name, []).append(host)
    texts = ", ".join("%s on %s" % (name, few(names)) for name, names in sorted(hosts.items()))
    return "; nodes with another last rollout, or none, stay as they are: " + texts if texts else ""


def _stop(problem: str, candidates: Sequence[_Candidate]) -> Choice:
    told = "; nodes name these rollouts: " + _texts(candidates) if candidates else ""
    return Choice("", "", "%s; %s%s" % (problem, _UNCHANGED, told))


def _texts(candidates: Sequence[_Candidate]) -> str:
    return ", ".join("%s (%s)" % (candidate.name, candidate.where) for candidate in candidates)


def _said(plan: Mapping[str, Any]) -> Iterator[tuple[object, bool]]:
    """Yield (the rollout that a node names, whether it has gone back from it); what it says may be anything."""
    for journal in (plan.get("journal"), plan.get("last")):
        facts = journal.get("facts") if isinstance(journal, Mapping) else None
        if isinstance(facts, Mapping):
            yield from ((facts[name], name == "undone") for name in ("rollout", "undone") if name in facts)


def _candidates(said: Mapping[str, Sequence[tuple[object, bool]]]) -> list[_Candidate]:
    """Return the newest first."""
    found: dict[str, tuple[list[str], list[str]]] = {}
    for host, names in said.items():
        for name, is_undone in names:
            if _time(name) is not None:
                hosts = found.setdefault(str(name), ([], []))[is_undone]
                hosts += [host] if host not in hosts else []
    candidates = [
        _Candidate(time, name, nodes, [host for host in gone_back if host not in nodes])
        for name, (nodes, gone_back) in found.items()
        if (time := _time(name)) is not None
    ]
    return sorted(candidates, reverse=True)


def _time(name: object) -> datetime | None:
    if not isinstance(name, str) or len(name) > _LONGEST or not _TIME.fullmatch(name):
        return None
    try:
        return datetime.fromisoformat(name).replace(tzinfo=timezone.utc)
    except ValueError:
        return None


def _unknown(plans: Mapping[str, Mapping[str, Any]]) -> str:
    """Return one of them may be the only node at the newest rollout: without it, all others would go back from an
    older."""
    hosts = [host for host, plan in plans.items() if "node" not in plan]
    # Ansible keeps what is chosen as a variable, and older versions take such a text for a template.
    reasons = [_TEMPLATE.sub("{ ", line(str(plans[host]["msg"]))) for host in hosts if plans[host].get("msg")]
    what = "the last rollout is not known, as these nodes cannot be reached or planned: %s"
    return _ways_out(what % "; ".join([", ".join(hosts), *reasons])) if hosts else ""


def _no_times(said: Mapping[str, Sequence[tuple[object, bool]]]) -> str:
    found = [host for host, names in said.items() if any(_time(name) is None for name, _is_undone in names)]
    what = "the last rollout is not known, as what the journals of these nodes name is no time of a rollout: %s"
    return _ways_out(what % ", ".join(found)) if found else ""


def _to_come(candidates: Sequence[_Candidate], now: str) -> str:
    moment = _time(now)
    found = [candidate for candidate in candidates if moment is None or candidate.time > moment]
    what = "the time of these rollouts is still to come by the clock here, which says %s: %s; compare the clocks"
    return _ways_out(what % (now, _texts(found))) if found else ""


def _ways_out(problem: str) -> str:
    return "%s; %s if others have had the last rollout, or %s" % (problem, _LEAVE_OUT % "these nodes", _NAME_IT)

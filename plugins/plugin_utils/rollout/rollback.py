# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which rollout a fleet goes back from. Pure.

Rollouts are named by the times at which the controller began them, and the nodes say which they have had. That a node
says so proves nothing: what a single node says does not decide for all others.
"""

from __future__ import annotations

import re
from datetime import datetime, timezone
from typing import Any, Iterator, Mapping, NamedTuple, Sequence

from ..report.answers import line

_TIME = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{6})?(\+00:00)?", re.ASCII)
_LONGEST = 60
_TEMPLATE = re.compile(r"\{(?=[{%#])")

_NAME_IT = "name the rollout to go back from with -e kubelet_rollback_of=TIME"
_LEAVE_OUT = "leave these nodes out with --limit"
_UNCHANGED = "no node was changed"


class Choice(NamedTuple):
    """What a fleet goes back from."""

    # The rollout; empty where there is a problem.
    rollout: str
    # The nodes that name it, and why the rollback is not begun; each empty where there is nothing to say.
    told: str
    problem: str

    def to_dict(self) -> dict[str, str]:
        """Plain data."""
        return self._asdict()


class _Candidate(NamedTuple):
    """A rollout that nodes name: those that can go back from it, and those that have gone back."""

    time: datetime
    name: str
    nodes: Sequence[str]
    gone_back: Sequence[str]

    @property
    def where(self) -> str:
        parts = ["on %s" % ", ".join(self.nodes)] if self.nodes else []
        parts += ["taken back already on %s" % ", ".join(self.gone_back)] if self.gone_back else []
        return "; ".join(parts)


def choose_rollout(plans: Mapping[str, Mapping[str, Any]], now: str, named: str = "") -> Choice:
    """The rollout to go back from: the one that the operator has named, else the newest.

    plans: by host, the answer of rollout_info; of one that could not be reached or planned anything else, with the
    reason in `msg`. now: the time in UTC, as Python's isoformat() writes it. named: empty where the operator names
    none.
    """
    said = {host: list(_said(plan)) for host, plan in plans.items() if "node" in plan}
    candidates = _candidates(said)
    if named:
        found = [candidate for candidate in candidates if candidate.name == named]
        return Choice(named, found[0].where, "") if found else _stop("no node names the rollout %s" % named, candidates)
    problem = _unknown(plans) or _no_times(said) or _to_come(candidates, now)
    if problem:
        return _stop(problem, candidates)
    if not candidates:
        return _stop("no node has had a rollout that it could go back from", [])
    newest = candidates[0]
    names_it = {*newest.nodes, *newest.gone_back}
    others = {host for candidate in candidates[1:] for host in (*candidate.nodes, *candidate.gone_back)} - names_it
    if len(names_it) == 1 and others:
        problem = (
            "only %s names the last rollout, and others name another: if that is so, as for a canary, %s; if not, %s"
        )
        return _stop(problem % (*names_it, _NAME_IT, _LEAVE_OUT.replace("these nodes", "it")), candidates)
    if newest.nodes:
        return Choice(newest.name, newest.where, "")
    further = "; to go further back, %s: %s" % (_NAME_IT, _texts(candidates[1:])) if candidates[1:] else ""
    return Choice(newest.name, newest.where + further, "")


def _stop(problem: str, candidates: Sequence[_Candidate]) -> Choice:
    told = "; nodes name these rollouts: " + _texts(candidates) if candidates else ""
    return Choice("", "", "%s; %s%s" % (problem, _UNCHANGED, told))


def _texts(candidates: Sequence[_Candidate]) -> str:
    return ", ".join("%s (%s)" % (candidate.name, candidate.where) for candidate in candidates)


def _said(plan: Mapping[str, Any]) -> Iterator[tuple[object, bool]]:
    """(the rollout that a node names, whether it has gone back from it); what it says may be anything."""
    for journal in (plan.get("journal"), plan.get("last")):
        facts = journal.get("facts") if isinstance(journal, Mapping) else None
        if isinstance(facts, Mapping):
            yield from ((facts[name], name == "undone") for name in ("rollout", "undone") if name in facts)


def _candidates(said: Mapping[str, Sequence[tuple[object, bool]]]) -> list[_Candidate]:
    """The newest first."""
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
    """One of them may be the only node at the newest rollout: without it, all others would go back from an older."""
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
    return "%s; %s if others have had the last rollout, or %s" % (problem, _LEAVE_OUT, _NAME_IT)

# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What became of a fleet in a run that changes nodes, as one line. Pure."""

from __future__ import annotations

from typing import Any, Collection, Mapping, Sequence

from .report.answers import NO_KUBELET
from .report.texts import line

_REPORT = "ansible-playbook kubenode.cpu_manager.drift_report"
# Hosts that are named, of those that failed.
_NAMED = 5


def change_summary(
    nodes: Sequence[Mapping[str, Any]],
    left: Collection[str],
    check_mode: bool = False,
    skip_no_kubelet: bool = False,
) -> str:
    """How many nodes were changed, and what comes next.

    nodes: what answers.collect() made of the last result of rollout_info of each host. left: the hosts that have
    neither failed nor been lost. check_mode: nothing was changed.
    """
    changed, unchanged, without, failed = 0, 0, 0, []
    for node in nodes:
        if node["host"] not in left:
            failed.append(line(node["host"]))
        elif skip_no_kubelet and node["status"] == NO_KUBELET:
            without += 1
        elif node.get("actions") or node.get("journal"):
            changed += 1
        else:
            unchanged += 1
    if failed:
        following = "see why above, and run again"
    elif check_mode and changed:
        following = "run it without --check"
    else:
        following = _REPORT
    return "%s %d, unchanged %d, left out %d, failed %d%s; next: %s" % (
        "would change" if check_mode else "changed",
        changed,
        unchanged,
        without,
        len(failed),
        _named(failed),
        following,
    )


def _named(hosts: Sequence[str]) -> str:
    if not hosts:
        return ""
    more = len(hosts) - _NAMED
    return " (%s%s)" % (", ".join(hosts[:_NAMED]), " and %d more" % more if more > 0 else "")

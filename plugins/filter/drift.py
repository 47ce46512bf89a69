# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The forms of the drift report. Each filter is documented in the file of its name beside this one."""

from __future__ import annotations

from collections import Counter
from typing import Any, Callable, Mapping, Sequence

from jinja2 import Environment, StrictUndefined

from ..module_utils.fleet.plan import plan_text
from ..module_utils.fleet.report import NO_KUBELET, collect, counted, line, view
from ..module_utils.fleet.table import table

# The classes of statuses; every other one is bad.
_CLASSES = {"clean": "clean", "nothing wanted": "unset", NO_KUBELET: "none"}


def _split(nodes: Sequence[Mapping[str, Any]], skip: bool) -> tuple[list[dict[str, Any]], list[str]]:
    """The views of the nodes that are shown one by one, and the names of those that are skipped."""
    skipped = [line(node["host"]) for node in nodes if skip and node["status"] == NO_KUBELET]
    return [view(node) for node in nodes if not (skip and node["status"] == NO_KUBELET)], skipped


def drift_table(nodes: Sequence[Mapping[str, Any]], skip_hosts_without_kubelet: bool = False) -> str:
    return table(*_split(nodes, skip_hosts_without_kubelet))


def drift_page(
    nodes: Sequence[Mapping[str, Any]],
    template: str,
    title: str,
    made: str,
    skip_hosts_without_kubelet: bool = False,
) -> str:
    views, skipped = _split(nodes, skip_hosts_without_kubelet)
    for shown in views:
        shown["class"] = _CLASSES.get(shown["status"], "failed")
    statuses = sorted(Counter(line(node["status"]) for node in nodes).items())
    # Its own environment: that of Ansible's templates escapes nothing by itself.
    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    page = environment.from_string(str(template)).render(
        title=line(title),
        made=line(made),
        count=counted(list(nodes), "node"),
        statuses=statuses,
        nodes=views,
        skipped=skipped,
    )
    return str(page)


class FilterModule:
    """The filters of the role drift_report, and of the plans of the role kubelet."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        """Their names and functions."""
        return {"drift_nodes": collect, "drift_table": drift_table, "drift_page": drift_page, "plan_text": plan_text}

#!/usr/bin/env python
# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Draws the pictures of concepts.rst, as the static policy of this collection takes CPUs: python docs/draw_cpus.py"""

from __future__ import annotations

import importlib
import sys
from html import escape
from pathlib import Path
from typing import Any, NamedTuple

HERE = Path(__file__).resolve().parent
# The core imports nothing from outside of this directory.
CORE = HERE.parent / "plugins"
PICTURES = HERE / "docsite" / "rst" / "images"

MACHINE = "2 sockets x 6 cores x 2 threads"
VERSION = 36

CELL_WIDTH, CELL_HEIGHT, GAP, MARGIN = 44, 34, 8, 16
LINE = 22
SHARED, RESERVED = "#f3f6fb", "#c9ced6"
COLORS = ("#f6c87a", "#9ad1b0", "#d3b3e6", "#f2a9a0")


class Panel(NamedTuple):
    """One machine. options: of the static policy; pods: (name, how many CPUs it asks for) as they arrive."""

    title: str
    reserved: str
    pods: tuple[tuple[str, int], ...] = ()
    options: tuple[str, ...] = ()


PANELS = {
    "cpus-taken.svg": (
        Panel("Before: no pod has CPUs of its own", "0,12"),
        Panel("After four pods have arrived in this order", "0,12", (("A", 12), ("B", 4), ("C", 1), ("D", 1))),
    ),
    "cpus-whole-cores.svg": (
        Panel("Without options: B and C share a core", "0,12", (("A", 4), ("B", 3), ("C", 1))),
        Panel("full-pcpus-only", "0,12", (("A", 4), ("B", 3), ("C", 1)), ("full_pcpus_only",)),
    ),
    "cpus-across-numa.svg": (
        Panel("Without options: one NUMA node first", "0,12", (("A", 16),)),
        Panel("distribute-cpus-across-numa", "0,12", (("A", 16),), ("distribute_cpus_across_numa",)),
    ),
}


def core(name: str) -> Any:
    """Return a file of the core, without installing the collection."""
    sys.path.insert(0, str(CORE))
    try:
        return importlib.import_module("module_utils." + name)
    finally:
        sys.path.pop(0)


def answers(panel: Panel) -> tuple[dict[int, str], list[str]]:
    """Return ({CPU: whose it is}, a line for each pod), by the static policy."""
    cpusets, pods_of, static = core("cpuset"), core("_containers.pods"), core("policy.static")
    topology = core("topology.kubelet_view").kubelet_view(core("topology.description").describe_machine(MACHINE))
    options = core("policy.options").StaticOptions(**dict.fromkeys(panel.options, True))
    reserved = cpusets.CPUSet.parse(panel.reserved)
    policy = static.new_static_policy(topology, options, 1000 * len(reserved), reserved, "none", VERSION)
    manager = core("policy.manager").CPUManager(policy, core("policy.hints").TopologyManager("none", "container", []))
    owners = dict.fromkeys(reserved, "reserved")
    lines = ["reserved: %s" % reserved]
    for name, count in panel.pods:
        asked = {"cpu": 1000 * count, "memory": 1000}
        container = pods_of.Container("main", pods_of.APP, asked, asked)
        admission = manager.add(pods_of.Pod(name, name, (container,)))
        what = "%s asks for %d CPU%s" % (name, count, "" if count == 1 else "s")
        if admission.admitted:
            cpus = manager.cpus_of(name, "main")
            owners.update(dict.fromkeys(cpus, name))
            lines.append("%s: %s" % (what, cpus))
        else:
            lines.append("%s: refused, %s" % (what, admission.message.partition(":")[2].strip()))
    manager.remove_stale()
    return owners, [*lines, "shared pool: %s" % manager.state.snapshot().default_cpu_set]


def draw(panels: tuple[Panel, ...]) -> str:
    """Return the picture, as the text of an SVG file: one machine below the other."""
    drawn, top, width = [], MARGIN, 0
    for panel in panels:
        parts, right, top = draw_panel(panel, top)
        drawn += parts
        width = max(width, right)
    return "\n".join(
        [
            '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" height="%d" role="img"'
            ' font-family="sans-serif" font-size="14">' % (width, top, width, top),
            "<title>%s</title>" % escape("; ".join(panel.title for panel in panels)),
            '<rect width="100%" height="100%" fill="white"/>',
            *drawn,
            "</svg>\n",
        ]
    )


def draw_panel(panel: Panel, top: int) -> tuple[list[str], int, int]:
    """Return (the elements of one machine, its right edge, its lower edge)"""
    owners, lines = answers(panel)
    names = [name for name, _count in panel.pods]
    topology = core("topology.description").describe_machine(MACHINE)
    parts = [text(MARGIN, top + 14, panel.title, ' font-weight="bold"')]
    top += LINE
    left = MARGIN
    for socket in topology.sockets:
        cores = [group.cpus for group in topology.cores if group.cpus <= socket.cpus]
        width = len(cores) * (CELL_WIDTH + GAP) + GAP
        height = LINE + 2 * CELL_HEIGHT + 2 * GAP
        parts.append(box(left, top, width, height, "none", "#4a6fa5"))
        parts.append(text(left + GAP, top + 16, "socket %d, NUMA node %d" % (socket.id, socket.id)))
        for column, cpus in enumerate(cores):
            x = left + GAP + column * (CELL_WIDTH + GAP)
            for row, cpu in enumerate(cpus):
                y = top + LINE + row * CELL_HEIGHT
                parts += draw_cpu(x, y, cpu, owners.get(cpu, ""), names)
        left += width + 2 * GAP
    top += LINE + 2 * CELL_HEIGHT + 3 * GAP
    for line in lines:
        parts.append(text(MARGIN, top + 14, line))
        top += LINE
    return parts, left - 2 * GAP + MARGIN, top + MARGIN


def draw_cpu(x: int, y: int, cpu: int, owner: str, names: list[str]) -> list[str]:
    """Return a thread of a core: its number, and whose it is."""
    color = RESERVED if owner == "reserved" else COLORS[names.index(owner)] if owner else SHARED
    sign = {"reserved": "R"}.get(owner, owner)
    return [
        box(x, y, CELL_WIDTH, CELL_HEIGHT, color, "#333"),
        text(x + 4, y + 13, str(cpu), ' font-size="11"'),
        *([text(x + 26, y + 25, sign, ' font-weight="bold"')] if sign else []),
    ]


def box(x: int, y: int, width: int, height: int, fill: str, stroke: str) -> str:
    return '<rect x="%d" y="%d" width="%d" height="%d" rx="3" fill="%s" stroke="%s"/>' % (
        x,
        y,
        width,
        height,
        fill,
        stroke,
    )


def text(x: int, y: int, words: str, more: str = "") -> str:
    return '<text x="%d" y="%d"%s>%s</text>' % (x, y, more, escape(words))


def pictures() -> dict[str, str]:
    """Return {name of the file: text}"""
    return {name: draw(panels) for name, panels in PANELS.items()}


if __name__ == "__main__":
    for name, picture in pictures().items():
        (PICTURES / name).write_text(picture, "utf-8")

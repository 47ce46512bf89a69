# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""On which CPUs the kernel handles interrupts.

Source: Linux's Documentation/core-api/irq/irq-affinity.rst and Documentation/filesystems/proc.rst.
"""

from __future__ import annotations

from ..errors import NodeError, RefusedError
from ..tree import Tree, is_number
from .layers import INTERRUPTS, MASK, Setting
from .names import shown
from .reading import read_cpus, read_setting

_IRQ = "/proc/irq"
_NAMES = "/proc/interrupts"
DEFAULT = _IRQ + "/default_smp_affinity"
# No interrupt has a longer number.
_MOST_DIGITS = 9


def read_interrupts(tree: Tree) -> list[Setting]:
    """The CPUs of interrupts that are new, and then those of each that has a handler, by their numbers.

    One without a handler takes those of new ones when it gets one. One that the kernel manages itself is FIXED on a new
    kernel; an older one lets it look as any other, and refuses a change with EIO.
    """
    found = [read_setting(tree, INTERRUPTS, "new interrupts", DEFAULT, MASK)]
    handlers = _handlers(tree)
    for number in _numbers(tree):
        if handlers is not None and number not in handlers:
            continue
        place = "%s/%d/" % (_IRQ, number)
        name = ("%d %s" % (number, (handlers or {}).get(number, ""))).rstrip()
        setting = read_setting(tree, INTERRUPTS, name, place + "smp_affinity_list")
        if setting is not None:
            # Of all the CPUs, mostly the first one that has room.
            found.append(setting._replace(effective=read_cpus(tree, place + "effective_affinity_list")))
    return [setting for setting in found if setting is not None]


def _numbers(tree: Tree) -> list[int]:
    try:
        names = tree.names(_IRQ)
    except (NodeError, RefusedError):
        return []
    return sorted(int(name) for name in names if is_number(name) and len(name) <= _MOST_DIGITS)


def _handlers(tree: Tree) -> dict[int, str] | None:
    """{number: who handles it}, of the interrupts that anybody does; None where that is not known."""
    try:
        content = tree.content(_NAMES)
    except (NodeError, RefusedError):
        return None
    if content is None or not content.lstrip().startswith(b"CPU"):
        return None
    found = {}
    for line in content.splitlines()[1:]:
        label, _colon, rest = line.partition(b":")
        number = label.strip()
        if number.isdigit() and len(number) <= _MOST_DIGITS:
            # The names of the handlers come last, after two blanks; before them are a count for each CPU and the chip.
            found[int(number)] = shown(rest.rpartition(b"  ")[2].strip())
    return found

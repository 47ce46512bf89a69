# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

from textwrap import indent

# The count, as an option of a module.
_COUNT = r"""
  count:
    description:
      - How many CPUs to reserve, exactly.
      - One that would split a core is refused with the two nearest counts, unless O(allow_split_core=true).
    type: int
"""
# The count in one option with all others.
_COUNT_IN_RESERVATION = r"""
  count:
    description:
      - How many CPUs to reserve, exactly. Give one of this, O(reservation.fraction) and O(reservation.curve).
    type: int
"""
_FRACTION_TO_NEAR_DEVICE = r"""
  fraction:
    description:
      - Which part of the CPUs to reserve, rounded up to whole cores.
    type: float
  curve:
    description:
      - The part to reserve by the size of the machine, in steps, rounded up to whole cores.
    type: list
    elements: dict
    suboptions:
      cpus:
        description:
          - How many CPUs this step is for; all others when it is not given, in the last step.
        type: int
      fraction:
        description:
          - Which part of these CPUs to reserve.
        type: float
        required: true
  strategy:
    description:
      - V(packed) fills one NUMA node after the other. V(spread) takes as many cores of each, give or take one.
    type: str
    choices: [packed, spread]
    default: packed
  allow_split_core:
    description:
      - Reserve a part of one core where the count is no sum of whole cores, instead of failing.
    type: bool
    default: false
  near_device:
    description:
      - Begin with the NUMA node of this network device.
    type: str
"""
_MEMORY = r"""
  memory:
    description:
      - V(auto) plans the kubelet's C(reservedMemory), too, where the policy of its memory manager is C(Static). It adds
        up to C(kubeReserved), C(systemReserved) and C(evictionHard), to the byte, and is of the NUMA nodes that the
        reserved CPUs are on, by how many each has. Alone, without a count of CPUs, it leaves the CPUs as they are.
    type: str
    choices: [auto]
"""

RESERVATION = r"""
  reservation:
    description:
      - Plan O(reserved_system_cpus) from the node's own topology, as M(kubenode.cpu_manager.reserved_cpus) does.
    type: dict
    suboptions:
""" + indent(_COUNT_IN_RESERVATION + _FRACTION_TO_NEAR_DEVICE + _MEMORY, "      ")


# Annotated, as ansible-test's yamllint takes what is plainly assigned there for a literal.
class ModuleDocFragment:
    """A reservation that is planned for each node."""

    DOCUMENTATION: str = "options:" + RESERVATION

    # The same without the option around it.
    PLANNER: str = "options:" + _COUNT + _FRACTION_TO_NEAR_DEVICE

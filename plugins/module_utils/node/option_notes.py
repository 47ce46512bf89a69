# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Notes on options that do not do what they are for: of a configuration, and of what containers have. Pure."""

from __future__ import annotations

from typing import Any, Iterator, Mapping, NamedTuple

from ..cpuset import CPUSet
from ..errors import Note
from ..kubelet.start.finding import Host
from ..policy.option_harms import Harm, option_harms, scattered
from ..policy.options import StaticOptions
from ..state.assignments import State
from ..topology.model import Topology


class Chosen(NamedTuple):
    """The options of the static policy, as they are read, and all settings."""

    options: StaticOptions
    settings: Mapping[str, Any]

    def harms(self, host: Host) -> list[Harm]:
        """What is wrong with them on this machine."""
        manager, options = (self.settings["topology_manager_policy" + end] for end in ("", "_options"))
        return list(option_harms(self.options, host.topology, manager, options, host.minor, len(host.nodes())))


def option_notes(
    found: Chosen, wanted: Chosen, host: Host, topology: Topology, state: State | None, pod_names: Mapping[str, str]
) -> list[str]:
    """Notes on what is found, on what is wanted in its place, and on who has scattered CPUs."""
    harms = found.harms(host)
    notes: list[str] = [_note(harm) for harm in harms]
    notes += [_note(harm, "with the wanted settings: ") for harm in wanted.harms(host) if harm not in harms]
    owners = () if state is None else named_owners(state, pod_names)
    return [*notes, *(Note("option-ineffective", text) for text in scattered(found.options, topology, owners))]


def _note(harm: Harm, begin: str = "") -> Note:
    return Note(harm.check, "%s%s: %s; %s" % (begin, harm.where, harm.cause, harm.remedy))


def named_owners(state: State, pod_names: Mapping[str, str]) -> Iterator[tuple[str, CPUSet]]:
    """Who has exclusive CPUs, by the name for a message. pod_names: {pod UID: its name}, of those that are known."""
    for uid, container, cpus in state.owners():
        pod = "pod %s" % pod_names.get(uid, uid)
        yield ("%s, container %s" % (pod, container) if container else pod), cpus

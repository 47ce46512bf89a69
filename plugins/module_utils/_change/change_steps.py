# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which steps a change of a node has, in their order; where it goes on after its process died; and how it ends. Pure.

At no moment a state of the kubelet's managers is there with a configuration that refuses it, wherever the change stops
and the node boots: the states that will be refused go first, the configuration is written, and then the states are
repaired.
"""

from __future__ import annotations

from typing import Any, Iterable, Iterator, Mapping, Sequence

from .._node.drift import RECONCILE, START_KUBELET, STATE_ACTIONS
from .._node.drift import START as REFUSED_START
from .._rollout.rollout_journal import CHANGED, is_state
from .._rollout.rollout_plan import ROLLBACK

# The journal says it first: a running kubelet would write its checkpoint again.
STOP = "Stop the kubelet"
# No more containers get CPUs now: which states would be refused is found out, and these go.
SAVE = "Save what is about to be changed"
CONFIGURE = "Write the kubelet's configuration"
RESTORE = "Restore the configuration from before the last change"
STATES = "Reset or repair the checkpoint if the kubelet would refuse it"
WRITE_RUNTIME = "Write the container runtime's configuration"
# Before the kubelet is back: no container is made meanwhile, and its health check is of both.
RESTART_RUNTIME = "Restart the container runtime"
# A kubelet that refuses its checkpoint answers at first and dies later.
START = "Start the kubelet"
END = "Write down that the change is done"
CPUSETS = "Write the cpusets of containers as the checkpoint says"

# The steps back.
STOP_AGAIN = "Stop the kubelet again"
RESTORE_FILES = "Restore the files"
RESTART_RUNTIME_BACK = "Restart the container runtime as it was"
START_BACK = "Start the kubelet as it was"
END_BACK = "Write down that the change is taken back"

_OF_STATES = frozenset(("checkpoint", "memory_state", "containers", REFUSED_START))
_NOT_COMPARED = STATE_ACTIONS | {RECONCILE}


def steps_of(plan: Mapping[str, Any], change: str) -> list[str]:
    """Return the steps that carry a plan out; see the module rollout_info for its shape."""
    cpusets = [CPUSETS] if RECONCILE in plan["actions"] else []
    if START_KUBELET not in plan["actions"]:
        return cpusets
    is_back = change == ROLLBACK
    runtime = []
    if plan["runtime"] is not None:
        # A rollback has put its files back with all others.
        runtime = [RESTART_RUNTIME] if is_back else [WRITE_RUNTIME, RESTART_RUNTIME]
    return [STOP, SAVE, RESTORE if is_back else CONFIGURE, STATES, *runtime, START, END, *cpusets]


def goes_on(begun: Sequence[str]) -> bool:
    """Return whether a change whose process died goes on to its end, by the steps that had begun; otherwise it goes
    back.

    The kubelet was verified before the end began.
    """
    return bool(begun) and begun[-1] in (END, CPUSETS)


def is_made(phase: str, is_own: bool) -> bool:
    """Return whether an open change only has to come to its end: one that another run has made and verified."""
    return phase == CHANGED and not is_own


def configuration_of(files: Iterable[str]) -> list[str]:
    """Return those of the files of a change that are no states of the kubelet's managers."""
    return [path for path in files if not is_state(path)]


def differences(shown: Mapping[str, Any], now: Mapping[str, Any], is_drained: bool) -> Iterator[str]:
    """Yield what of a plan is no longer as it was shown.

    What containers have changes all the time, and is judged once more when the kubelet is stopped: states and cpusets
    are not compared, only whether something would be lost that was not.
    """
    for refusal in now["refusals"]:
        yield "%s: %s" % (refusal["where"], refusal["text"]) if refusal["where"] else str(refusal["text"])
    if now["drains"] and not shown["drains"] and not is_drained:
        yield "pods have to leave the node first, and none had to"
    if _written(shown) != _written(now):
        yield "it is now to do: %s; and was: %s" % (_listed(_written(now)), _listed(_written(shown)))
    if START_KUBELET not in now["actions"]:
        return
    if list(shown["files"]) != list(now["files"]):
        yield "it changes the files %s now, and not %s" % (_listed(now["files"]), _listed(shown["files"]))
    before, after = (_settings(plan) for plan in (shown, now))
    for name in sorted(before.keys() | after.keys()):
        if before.get(name) != after.get(name):
            yield "%s: %s now, and was %s" % (name, _change(after.get(name)), _change(before.get(name)))


def _written(plan: Mapping[str, Any]) -> list[str]:
    return [action for action in plan["actions"] if action not in _NOT_COMPARED]


def _settings(plan: Mapping[str, Any]) -> dict[str, tuple[str, str]]:
    """Return {subject: (found, wanted)}"""
    rows = [row for row in plan["drift"] if row["subject"] not in _OF_STATES]
    return {str(row["subject"]): (str(row["found"]), str(row["wanted"])) for row in rows}


def _change(values: tuple[str, str] | None) -> str:
    return "as wanted" if values is None else "%s -> %s" % values


def _listed(words: Iterable[str]) -> str:
    return ", ".join(words) or "nothing"

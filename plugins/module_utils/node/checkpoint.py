# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What is to become of a node's checkpoint. Pure: it reads and writes nothing."""

from __future__ import annotations

from typing import Any, Mapping, NamedTuple, Sequence

from ..errors import InputError, RefusedError, option
from ..state.assignments import State
from ..state.checkpoint import (
    CheckpointError,
    ContainerIDs,
    Format1,
    decode_checkpoint,
    format_for,
    migrated,
    write_checkpoint,
)
from ..state.golang import GoError, read_cpus
from ..state.repair import Loss, Pin, pins_of, repair
from ..state.validation import CPUManagerConfig
from ..state.verdict import ACCEPTED, Judgement, judge, readable

# What of a checkpoint can be given, and what an answer says beside it.
_GIVEN = {"policy", "default_cpu_set", "assignments", "pod_assignments"}
_SAID = set(Judgement("").to_dict())


class Plan(NamedTuple):
    """The file as it is and as it is to be."""

    old: bytes | None
    # None: no file.
    new: bytes | None
    before: Judgement
    after: Judgement
    # The exclusive CPUs of containers that run and would lose them.
    losses: Sequence[Loss] = ()
    # Those of pods that no longer exist.
    stale: Sequence[Pin] = ()

    @property
    def changed(self) -> bool:
        """Whether there is anything to do."""
        return self.old != self.new

    def to_dict(self) -> dict[str, Any]:
        """Plain data, as modules return it."""
        return {
            "checkpoint": self.before.to_dict(),
            "after": self.after.to_dict(),
            "lost": [{**loss.pin._asdict(), "why": loss.why} for loss in self.losses],
            "stale": [pin._asdict() for pin in self.stale],
        }


def loss_error(path: str, plan: Plan) -> RefusedError | None:
    """Why this plan is not to be carried out while containers run; None where none loses CPUs. path: the file."""
    if not plan.losses:
        return None
    refusal = "; the kubelet refuses the file as it is: " + plan.before.reason if plan.before.reason else ""
    losses = "; ".join(loss.to_text() for loss in plan.losses)
    return RefusedError(
        "these containers would lose their exclusive CPUs: %s%s; nothing was written" % (losses, refusal),
        path,
        "drain the node and set %s: true" % option("discard_assignments"),
        kind="assignments",
    )


def plan_absent(old: bytes | None) -> Plan:
    """Remove the file."""
    losses = [Loss(pin, "the checkpoint is removed") for pin in pins_of(old)]
    return Plan(old, None, readable(old), readable(None), losses)


def plan_valid(
    old: bytes | None,
    config: CPUManagerConfig,
    live_pods: Sequence[str] | None = None,
    container_ids: ContainerIDs | None = None,
    discard: bool = False,
) -> Plan:
    """Repair the file where a kubelet with this configuration would refuse it, or where it names pods that are gone.

    An accepted file in which two pods have the same CPU is repaired only with `discard`, since one of them loses it.
    """
    before = judge(old, config, container_ids)
    if old is None:
        return Plan(old, old, before, before)
    mended = repair(pins_of(old, container_ids), config, live_pods)
    accepted = before.verdict == ACCEPTED
    if accepted and ((mended.losses and not discard) or not (mended.losses or mended.stale)):
        return Plan(old, old, before, before)
    new = None
    # Nothing to keep: a kubelet that finds no file writes the right one itself.
    if accepted or mended.state.assignments or mended.state.pod_assignments:
        new = _written(config, mended.state, container_ids)
    return Plan(old, new, before, judge(new, config, container_ids), mended.losses, mended.stale)


def plan_present(old: bytes | None, new: bytes, config: CPUManagerConfig) -> Plan:
    """Put this content there. Raises RefusedError when a kubelet with this configuration would refuse it."""
    after = judge(new, config)
    if after.verdict != ACCEPTED:
        raise RefusedError("a kubelet with this configuration would refuse what is to be written: %s" % after.reason)
    kept = set(pins_of(new))
    losses = [Loss(pin, "what is to be written does not give them") for pin in pins_of(old) if pin not in kept]
    return Plan(old, new, judge(old, config), after, losses)


def plan_format(old: bytes | None, config: CPUManagerConfig, container_ids: ContainerIDs | None = None) -> Plan:
    """Write the file as the version that `config` names writes it, with the same state.

    Raises RefusedError for a file that is damaged, InputError for what that format cannot hold.
    """
    before = readable(old)
    if old is None:
        return Plan(old, old, before, before)
    if before.state is None or before.policy_name is None or not before.checksum_right:
        raise RefusedError(
            "the checkpoint is damaged and cannot be converted",
            remedy="use %s: valid to repair it" % option("state"),
        )
    state = before.state
    if before.version == Format1.version:
        try:
            state = migrated(decode_checkpoint(old), container_ids or {}).state()
        except CheckpointError as error:
            raise InputError(str(error), remedy="give those that run in %s" % option("container_ids")) from error
    kind = format_for(config.minor, config.pod_level)
    if before.version == kind.version:
        return Plan(old, old, before, before)
    new = write_checkpoint(before.policy_name, state, kind, container_ids)
    return Plan(old, new, before, readable(new))


def given_content(given: Mapping[str, Any], config: CPUManagerConfig) -> bytes:
    """The file for a state in the form that checkpoint_info returns. Raises InputError, which names the part."""

    def cpus(where: str, text: Any) -> Any:
        try:
            return read_cpus("" if text is None else str(text))
        except GoError as error:
            raise InputError(str(error), where="%s.%s" % (option("checkpoint"), where)) from error

    unknown = sorted(set(given) - _SAID - _GIVEN)
    if unknown:
        raise InputError("%s is none of %s" % (unknown[0], ", ".join(sorted(_GIVEN))), where=option("checkpoint"))
    assignments = {
        str(pod): {
            str(name): cpus("assignments.%s.%s" % (pod, name), text)
            for name, text in _mapping("assignments.%s" % pod, containers).items()
        }
        for pod, containers in _mapping("assignments", given.get("assignments")).items()
    }
    whole_pods = {
        str(pod): cpus("pod_assignments.%s" % pod, text)
        for pod, text in _mapping("pod_assignments", given.get("pod_assignments")).items()
    }
    state = State(cpus("default_cpu_set", given.get("default_cpu_set")), assignments, whole_pods)
    return write_checkpoint(
        str(given.get("policy") or config.policy_name), state, format_for(config.minor, config.pod_level)
    )


def _mapping(where: str, value: Any) -> Mapping[str, Any]:
    if value is not None and not isinstance(value, Mapping):
        raise InputError("is not a mapping, but %r" % (value,), where="%s.%s" % (option("checkpoint"), where))
    return value or {}


def _written(config: CPUManagerConfig, state: State, container_ids: ContainerIDs | None) -> bytes:
    return write_checkpoint(config.policy_name, state, format_for(config.minor, config.pod_level), container_ids)

# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What is to become of a node's checkpoint. Pure: it reads and writes nothing."""

from __future__ import annotations

from typing import Any, Iterable, Mapping, NamedTuple, Sequence

from .._base.errors import GoError, InputError, RefusedError, option
from .._base.golang import read_cpus
from .._base.versions import version_notes
from ..state.acceptance import ACCEPTED, CPUManagerConfig, Judgement, judge, readable
from ..state.assignments import State
from ..state.checkpoint import decode_checkpoint, other_members, read_checkpoint
from ..state.formats import (
    Checkpoint,
    CheckpointError,
    ContainerIDs,
    Format1,
    Format3,
    Format4,
    era_of,
    migrated,
    since_of,
)
from ..state.repair import Loss, Pin, pins_of, repair
from ..state.writing import format_for, write_checkpoint

# What of a checkpoint can be given, and what an answer says beside it.
_GIVEN = {"policy", "default_cpu_set", "assignments", "pod_assignments"}
_SAID = {*Judgement("").to_dict(), "lost"}


class CheckpointPlan(NamedTuple):
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
    # What a change of the kubelet's version makes of the file.
    notes: Sequence[str] = ()

    @property
    def changed(self) -> bool:
        """Whether there is anything to do."""
        return self.old != self.new

    def to_dict(self) -> dict[str, Any]:
        """Return plain data, as modules return it."""
        return {
            "checkpoint": self.before.to_dict(),
            "after": self.after.to_dict(),
            "lost": [{**loss.pin._asdict(), "why": loss.why} for loss in self.losses],
            "stale": [pin._asdict() for pin in self.stale],
            "notes": list(self.notes),
        }


def loss_error(path: str, plan: CheckpointPlan) -> RefusedError | None:
    """Return why this plan is not to be carried out while containers run; None where none loses CPUs. path: the
    file."""
    if not plan.losses:
        return None
    refusal = (
        "; a kubelet with these settings refuses the file as it is: " + plan.before.reason if plan.before.reason else ""
    )
    losses = "; ".join(loss.to_text() for loss in plan.losses)
    return RefusedError(
        "these containers would lose their exclusive CPUs: %s%s; nothing was written" % (losses, refusal),
        path,
        "drain the node and set %s: true" % option("discard_assignments"),
        kind="assignments",
    )


def plan_absent(old: bytes | None) -> CheckpointPlan:
    """Remove the file."""
    losses = [Loss(pin, "the checkpoint is removed") for pin in pins_of(old)]
    return CheckpointPlan(old, None, readable(old), readable(None), losses)


def plan_valid(
    old: bytes | None,
    config: CPUManagerConfig,
    live_pods: Sequence[str] | None = None,
    container_ids: ContainerIDs | None = None,
    discard: bool = False,
) -> CheckpointPlan:
    """Repair the file where a kubelet with this configuration would refuse it, or where it names pods that are gone.

    An accepted file in which two pods have the same CPU is repaired only with `discard`, since one of them loses it.
    """
    before = judge(old, config, container_ids)
    if old is None:
        return CheckpointPlan(old, old, before, before)
    notes = format_notes(old, config)
    repaired = repair(pins_of(old, container_ids), config, live_pods)
    accepted = before.verdict == ACCEPTED
    if accepted and ((repaired.losses and not discard) or not (repaired.losses or repaired.stale)):
        return CheckpointPlan(old, old, before, before, notes=notes)
    new = None
    # Nothing to keep: a kubelet that finds no file writes the right one itself.
    if accepted or repaired.state.assignments or repaired.state.pod_assignments:
        new = _written(config.policy_name, repaired.state, config, old, container_ids)
    after = judge(new, config, container_ids)
    return CheckpointPlan(old, new, before, after, repaired.losses, repaired.stale, change_notes(old, new, config))


def plan_present(old: bytes | None, new: bytes, config: CPUManagerConfig) -> CheckpointPlan:
    """Put this content there. Raises RefusedError when a kubelet with this configuration would refuse it."""
    after = judge(new, config)
    if after.verdict != ACCEPTED:
        raise RefusedError("a kubelet with this configuration would refuse what is to be written: %s" % after.reason)
    kept = set(pins_of(new))
    losses = [Loss(pin, "what is to be written does not give them") for pin in pins_of(old) if pin not in kept]
    return CheckpointPlan(old, new, judge(old, config), after, losses, notes=format_notes(new, config))


def plan_format(
    old: bytes | None, config: CPUManagerConfig, container_ids: ContainerIDs | None = None
) -> CheckpointPlan:
    """Write the file as the version that `config` names writes it, with the same state.

    Raises RefusedError for a file that is damaged, InputError for what that format cannot hold.
    """
    before = readable(old)
    if old is None:
        return CheckpointPlan(old, old, before, before)
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
    if before.version == kind.version and not _is_unverified_before_v4(_decoded(old)):
        return CheckpointPlan(old, old, before, before)
    new = _written(before.policy_name, state, config, old, container_ids)
    return CheckpointPlan(old, new, before, readable(new), notes=change_notes(old, new, config))


def given_content(given: Mapping[str, object], config: CPUManagerConfig) -> bytes:
    """Return the file for a state in the form that checkpoint_info returns. Raises InputError, which names the part."""

    def cpus(where: str, text: object) -> Any:
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
    return _written(str(given.get("policy") or config.policy_name), state, config)


def _mapping(where: str, value: object) -> Mapping[str, object]:
    if value is not None and not isinstance(value, Mapping):
        raise InputError("is not a mapping, but %r" % (value,), where="%s.%s" % (option("checkpoint"), where))
    return value or {}


def _written(
    policy_name: str,
    state: State,
    config: CPUManagerConfig,
    old: bytes | None = None,
    container_ids: ContainerIDs | None = None,
) -> bytes:
    """Return the file with this state, in the format of the version that `config` names, with what is not known of
    the old."""
    kind = format_for(config.minor, config.pod_level)
    return write_checkpoint(policy_name, state, kind, container_ids, other_members(old))


# --- from one version of the kubelet to another, and back ------------------------------------------------------


_WAY_BACK = "of that, kubelets before %s read the CPUs of containers, but not those of whole pods"


def with_assumed_version(old: bytes | None, config: CPUManagerConfig) -> tuple[CPUManagerConfig, list[str]]:
    """Return the configuration for a kubelet whose version is not known, and the notes on the version that is assumed.

    That is the one in `config`, or the oldest that writes a file like the one that is there.
    """
    found = _decoded(old)
    if found is None or config.minor >= since_of(found.version):
        return config, version_notes(config.minor, True)
    oldest = since_of(found.version)
    why = "the oldest that writes format v%d" % found.version
    return config._replace(minor=oldest), version_notes(oldest, True, why)


def format_notes(content: bytes | None, config: CPUManagerConfig) -> list[str]:
    """Return what the kubelet of the version that `config` names makes of the file's format, and what it loses of the
    file.

    For an upgrade and a downgrade; empty where the file is in the format of that version and nothing is lost.
    """
    found = _decoded(content)
    if content is None or found is None:
        return []
    notes = []
    kubelet, first = "the kubelet 1.%d" % config.minor, "1.%d" % since_of(Format4.version)
    reads = era_of(config.minor).pod_level_reads if config.pod_level else era_of(config.minor).reads
    if isinstance(found, Format4) and Format4.version not in reads:
        notes.append("%s reads of this file, of format v4, only the format v2 beside its member data" % kubelet)
        notes += _dropped_notes(found.others, kubelet)
        if not found.text_is_right:
            notes.append("the member data of this file is damaged: whether whole pods have CPUs is not known for sure")
    elif found.version < Format4.version and Format4.version in reads:
        notes.append(
            "%s reads this file, of format v%d, and writes format v4 in its place; %s"
            % (kubelet, found.version, _WAY_BACK % first)
        )
    elif found.version == Format3.version and found.version not in reads:
        text = "%s refuses this file, of format v3, as it is without the feature gate PodLevelResourceManagers: %s"
        notes.append(
            text % (kubelet, "drain the node before and take the file out of the way, or write it with state=format")
        )
    lost = _lost_pods(content, found, config)
    if lost:
        remedy = "drain the node before"
        if config.pod_level:
            remedy = "%s: format writes the file as that kubelet does, with them" % option("state")
        notes.append("%s does not take over the CPUs of whole pods: %s; %s" % (kubelet, ", ".join(lost), remedy))
    if _is_unverified_before_v4(found):
        notes.append(
            "what this file, of format v4, says beside its member data is another state or has not the right checksum:"
            " kubelets before %s refuse it or do not verify it; %s: format writes it anew" % (first, option("state"))
        )
    return notes


def change_notes(old: bytes | None, new: bytes | None, config: CPUManagerConfig) -> list[str]:
    """Return what is not kept of the old file, and what the kubelet makes of the new one's format."""
    kept = other_members(new)
    dropped = [member for member in other_members(old) if member not in kept]
    notes = _dropped_notes(dropped, "the new file")
    if isinstance(_decoded(new), Format4) and not isinstance(_decoded(old), Format4):
        notes.append("the new file is of format v4; %s" % (_WAY_BACK % ("1.%d" % since_of(Format4.version))))
    return [*notes, *format_notes(new, config)]


def _lost_pods(content: bytes, found: Checkpoint, config: CPUManagerConfig) -> list[str]:
    """Return the whole pods whose CPUs are in a file that the kubelet reads, and which it does not take over."""
    if not isinstance(found, Format3) or not found.pod_entries:
        return []
    try:
        read = read_checkpoint(content, config.minor, config.pod_level)
    except CheckpointError:
        return []  # it does not start, and nothing is lost without a word
    taken = (read.pod_entries if config.pod_level and isinstance(read, Format3) else None) or {}
    return ["pod %s: CPUs %s" % item for item in sorted(found.pod_entries.items()) if item[0] not in taken]


def _dropped_notes(others: Iterable[tuple[str, object]], by: str) -> list[str]:
    names = ", ".join(sorted(name for name, _value in others))
    return ["%s does not have these members of data, which are of a newer kubelet: %s" % (by, names)] if names else []


def _decoded(content: bytes | None) -> Checkpoint | None:
    try:
        return None if content is None else decode_checkpoint(content)
    except CheckpointError:
        return None


def _is_unverified_before_v4(found: Checkpoint | None) -> bool:
    """Return whether this is a good format 4 that older kubelets refuse or do not verify. No released kubelet writes
    one."""
    return isinstance(found, Format4) and found.text_is_right and not found.outer_is_right

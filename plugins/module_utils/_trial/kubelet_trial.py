# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Would this node's own kubelet start with what is planned: it is started, out of reach of everything, and ended."""

from __future__ import annotations

import os
import posixpath
import re
from contextlib import suppress
from typing import Any, Mapping, NamedTuple, Sequence

from .._base.errors import MALFORMED, CPUManagerError, InputError, RefusedError, noted, option
from .._base.tree import OverlaidTree, Tree, fault_of
from .._base.versions import minor_version
from .._host.services import settings_of, unit_command
from .._kubelet.configuration import COMMON_DEFAULTS, HARD
from .._kubelet.distributions import service_of
from .._kubelet.flag_files import find_words
from .._kubelet.installation import Installation, trusted_program, trusted_users
from .._kubelet.redacted_words import said_redacted, secrets_in
from .._kubelet.start.predict import Prediction
from .._node.exclusive import read_exclusive
from .._node.node import Node
from .._node.start_check import ALWAYS, AUTO, NEVER, planned_contents, predict_alone, removed_states
from ..cpuset import CPUSet
from .trial_cgroups import TrialCgroups
from .trial_paths import added_flags, trial_words
from .trial_plan import (
    CONTAINERD,
    CRIO,
    PATIENCE,
    SYSTEMD,
    UNTRIED,
    CgroupMount,
    Ending,
    TrialPlan,
    UntriedError,
    differs,
    judge,
    kept_free,
    memory_for,
    not_tried,
    read_hierarchies,
)
from .trial_sandbox import carry_out

_KUBELET = "kubelet"
_MEMINFO = "/proc/meminfo"
# With cgroup v2, a kubelet counts as free what is free and what files have that nobody reads.
_SIZES = ("MemTotal", "MemAvailable", "MemFree", "Inactive(file)")
_SIZE = re.compile("^([A-Za-z()_]+): +([0-9]{1,15}) kB$", re.MULTILINE)
_DELETED = " (deleted)"
# Where a runtime is looked for that does not run.
_PROGRAMS = ("/usr/local/bin/%s", "/usr/bin/%s", "/usr/local/sbin/%s", "/usr/sbin/%s", "/opt/bin/%s", "/bin/%s")


class Trial(NamedTuple):
    """What the kubelet of a node says of a start; see the module kubelet_trial.

    differs: whether something else was predicted of what was tried. mistaken: (where, text) of each refusal that was
    predicted and is none. of: what was tried, as a short text that is the same for the same. state: the CPU manager's
    afterwards.
    """

    starts: bool | None
    message: str = ""
    reason: str = ""
    version: str | None = None
    seconds: float = 0.0
    runtime: str | None = None
    not_tried: Sequence[str] = ()
    differs: bool = False
    mistaken: Sequence[tuple[str, str]] = ()
    of: str = ""
    state: bytes | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return plain data, as modules return it."""
        names = ("starts", "message", "reason", "version", "seconds", "runtime")
        return {**{name: getattr(self, name) for name in names}, "not_tried": list(self.not_tried)}


REFUSED_BY_KUBELET, NOT_TRIED_KIND = "kubelet_refused", "not_tried"


def with_trial(
    report: Mapping[str, Any],
    node: Node,
    wanted: Mapping[str, object],
    files: Mapping[str, bytes | None],
    is_needed: bool,
    before: object = None,
) -> dict[str, Any]:
    """Return the plan of a node's change, with what its kubelet says of the start with these settings and files.

    is_needed: whether the change is refused where there is no answer. before: what this has returned as `trial`.
    """
    trial = try_start(node, wanted, files, before=_read_trial(before))
    refusals: list[dict[str, Any]] = list(report["refusals"])
    notes: list[str] = []
    has_said = trial.starts is not None
    told = "tried by kubelet %s, %s s" % (trial.version, trial.seconds) if has_said else ""
    if trial.starts is None and is_needed:
        refusals.append(_untried_error(trial).to_row())
    elif trial.starts is None:
        notes.append(_UNTRIED % trial.reason)
    elif not trial.starts:
        refusals.append(_refused_error(trial, told).to_row())
    elif trial.differs:
        notes.append(_WRONG % (told, "; ".join(text for _where, text in trial.mistaken)))
    noted_more = noted(notes)
    return {
        **report,
        **{name: [*report[name], *noted_more[name]] for name in noted_more},
        "starts": report["starts"] and trial.starts is not False,
        "refusals": refusals,
        "trial": {
            **trial.to_dict(),
            "prediction_differs": trial.differs,
            "mistaken": [list(pair) for pair in trial.mistaken],
            "of": trial.of,
            "told": told,
        },
    }


def mistaken_by(
    node: Node, wanted: Mapping[str, object], files: Mapping[str, bytes | None], before: object = None
) -> frozenset[tuple[str, str]]:
    """Return (where, text) of what is predicted to be refused of this start, with which the node's kubelet starts."""
    return frozenset(try_start(node, wanted, files, before=_read_trial(before)).mistaken)


_UNTRIED = "the start after the change is only predicted: %s"
_WRONG = "%s: it starts with what is planned, for which a refusal was predicted: %s"


def _refused_error(trial: Trial, told: str) -> RefusedError:
    of_prediction = ", which was not predicted" if trial.differs else ""
    return RefusedError(
        "the kubelet does not start with what is planned (%s)%s: %s" % (told, of_prediction, trial.message),
        remedy="correct what it names; to go by the prediction alone, set %s: %s" % (option("trial"), NEVER),
        kind=REFUSED_BY_KUBELET,
    )


def _untried_error(trial: Trial) -> RefusedError:
    return RefusedError(
        _UNTRIED % trial.reason,
        "%s: %s" % (option("trial"), ALWAYS),
        "set it to %s to go by the prediction where there is no trial" % AUTO,
        NOT_TRIED_KIND,
    )


def _read_trial(before: object) -> Trial | None:
    """Return an earlier trial as with_trial has returned it; None of anything else."""
    try:
        found: Any = before
        pairs = [(str(where), str(text)) for where, text in found["mistaken"]]
        names = ("starts", "message", "reason", "version", "seconds", "runtime", "not_tried")
        values = {name: found[name] for name in names}
        return Trial(differs=bool(found["prediction_differs"]), mistaken=pairs, of=str(found["of"]), **values)
    except MALFORMED:
        return None


def try_start(
    node: Node,
    wanted: Mapping[str, object],
    files: Mapping[str, bytes | None],
    program: str | None = None,
    before: Trial | None = None,
    is_planned: bool = True,
    patience: float = PATIENCE,
) -> Trial:
    """Let the kubelet of a node start with these settings and files.

    before: an earlier trial, which is the answer where the same was tried. is_planned: whether it is held against what
    is predicted of the node's version, by which a change is planned, and not of the version that was started. patience:
    how many seconds it may take. Raises NodeError where there is no kubelet.
    """
    try:
        if not node.tree.live:
            raise UntriedError("a saved node")
        planned, plan = _planned(node, wanted, files, program)
    except UntriedError as error:
        return Trial(None, reason=UNTRIED % error)
    of = plan.digest(node.state_paths)
    if before is not None and before.of == of:
        return before
    try:
        with TrialCgroups(plan.hierarchies, plan.memory) as cgroups:
            ending = carry_out(plan._replace(patience=patience), cgroups)
    except UntriedError as error:
        ending = Ending(failed=str(error))
    verdict = judge(ending, added_flags(plan.words))
    prediction = None
    if verdict.starts is not None:
        prediction = _prediction_of(planned if is_planned else of_version(planned, ending.version))
    has_differed = prediction is not None and differs(verdict.starts, prediction.starts)
    driver = str(plan.values.get("cgroupDriver", COMMON_DEFAULTS["cgroupDriver"]))
    has_runtime = plan.runtime is not None and not ending.runtime_fault
    message, reason = (
        said_redacted(text, plan.words, secrets_in(plan.values)) for text in (verdict.message, verdict.reason)
    )
    return Trial(
        verdict.starts,
        message,
        reason,
        ending.version or None,
        ending.seconds,
        plan.runtime[0] if plan.runtime is not None and has_runtime else None,
        [] if ending.failed else not_tried(driver, has_runtime, ending.is_healthy),
        has_differed,
        _refusals_in(prediction) if verdict.starts else [],
        of,
        None if ending.state is None else ending.state.encode("utf-8"),
    )


def _prediction_of(node: Node) -> Prediction:
    """Return what is predicted of the trial itself, which has other words than the kubelet's own start."""
    return predict_alone(node, lambda words: trial_words(words, node.minor))


def _refusals_in(prediction: Prediction | None) -> list[tuple[str, str]]:
    findings = () if prediction is None else prediction.findings
    return [(finding.where, finding.text) for finding in findings if finding.fatal]


def of_version(node: Node, version: str | None) -> Node:
    return node.of_version(minor_version(version)) if version else node


def with_files(node: Node, contents: Mapping[str, bytes | None]) -> Node:
    return node.on(OverlaidTree(node.tree, contents)) if contents else node


def _planned(
    node: Node, wanted: Mapping[str, object], files: Mapping[str, bytes | None], program: str | None
) -> tuple[Node, TrialPlan]:
    """Return the node as it is planned, and what is started. Raises UntriedError, NodeError."""
    installation = node.installation
    if installation is None:
        raise node.missing()
    own_program = _program_of(node, installation)
    try:
        written = planned_contents(with_files(node, files), wanted) if wanted else {}
    except RefusedError as error:
        raise UntriedError("what is wanted is not written on this node: %s" % error) from error
    contents: dict[str, bytes | None] = {**files, **written, **removed_states(node)}
    planned = with_files(node, contents)
    values: Mapping[str, Any] = {}
    with suppress(CPUManagerError):  # which the kubelet will refuse, too
        configuration = planned.configuration()
        values = {} if configuration is None else configuration.values
    words = find_words(
        planned.tree, installation.distribution, installation.command_line if installation.pid is not None else ()
    )
    with open("/proc/self/mountinfo", encoding="utf-8", errors="surrogateescape") as file:
        hierarchies = read_hierarchies(file.read())
    return planned, TrialPlan(
        program or own_program,
        words,
        values,
        posixpath.dirname(node.checkpoint_path),
        contents,
        _quiet_cpus(node, values),
        [name for name in _named_cgroups(values) if _is_there(name, values, hierarchies)],
        hierarchies,
        _runtime_of(node, values),
        directory=_directory_of(node, installation),
        memory=_memory_of(node),
    )


# --- the kubelet ----------------------------------------------------------------------------------------------


def _program_of(node: Node, installation: Installation) -> str:
    """Return the program of the node's kubelet. Raises UntriedError where there is none of its own, or others may
    write it."""
    distribution = installation.distribution
    if installation.pid is not None:
        program = _running_program(installation.pid)
        name = posixpath.basename(installation.command_line[0])
    else:
        command = unit_command(node.tree, service_of(node.tree, distribution))
        program = command[0] if command else ""
        name = posixpath.basename(program)
        if not program:
            raise UntriedError("no kubelet runs, and no unit of systemd says how it is started")
    if name != _KUBELET:
        raise UntriedError("the kubelet of %s is a part of another program (%s)" % (distribution.name, program or name))
    if not posixpath.isabs(program) or not os.path.isfile(program):
        raise UntriedError("the kubelet's program is not there (%s)" % (program or "others than root may write it"))
    fault = fault_of(node.tree, program)
    if fault is not None:
        raise UntriedError("others than root may write the kubelet's program: %s: %s" % (fault.path, fault.why))
    return program


def _directory_of(node: Node, installation: Installation) -> str:
    """Return where the kubelet is started, at which relative paths begin. Raises UntriedError where that is not
    known."""
    if installation.pid is not None:
        with suppress(OSError):
            return os.readlink("/proc/%d/cwd" % installation.pid)
    service = service_of(node.tree, installation.distribution)
    given = [value for _path, name, value in settings_of(node.tree, service) if name == "WorkingDirectory"]
    directory = (given[-1] if given else "").lstrip("-") or "/"
    if not directory.startswith("/") or "%" in directory:
        raise UntriedError("it is not known here where the kubelet is started (WorkingDirectory=%s)" % directory)
    return directory


def _running_program(pid: int) -> str:
    """Return the path of a process's program; what took its place, where it was replaced. Empty where it is not
    trusted."""
    try:
        program = trusted_program(pid) if trusted_users(pid) else ""
    except (OSError, ValueError):
        return ""
    return program[: -len(_DELETED)] if program.endswith(_DELETED) else program


# --- the runtime ----------------------------------------------------------------------------------------------


def _runtime_of(node: Node, values: Mapping[str, Any]) -> tuple[str, str] | None:
    """Return the program of the node's container runtime and its kind; None where there is none that can be started."""
    endpoint = node.runtime_endpoint(None) or str(values.get("containerRuntimeEndpoint") or "")
    kinds = (CRIO,) if CRIO in endpoint else (CONTAINERD, CRIO)
    running = _running_runtimes(node.tree)
    for kind in kinds:
        for program in [*running.get(kind, ()), *(form % kind for form in _PROGRAMS)]:
            if os.path.isfile(program) and fault_of(node.tree, program) is None:
                return program, kind
    return None


def _running_runtimes(tree: Tree) -> dict[str, list[str]]:
    """Return {kind: the programs of such runtimes that run}, of those that only root can have put there."""
    found: dict[str, list[str]] = {}
    for pid in tree.numbered("/proc", ""):
        with suppress(CPUManagerError, OSError, ValueError):
            name = tree.read_value("/proc/%d/comm" % pid)
            if name in (CONTAINERD, CRIO) and trusted_users(pid):
                program = _running_program(pid)
                if posixpath.basename(program) == name:
                    found.setdefault(name, []).append(program)
    return found


# --- the machine ----------------------------------------------------------------------------------------------


def _quiet_cpus(node: Node, values: Mapping[str, Any]) -> CPUSet:
    """Return the reserved CPUs; where none are, those that no container has for itself."""
    taken = node.topology.isolated
    with suppress(CPUManagerError):
        recorded = read_exclusive(node, node.found()[0])
        taken |= CPUSet() if recorded.state is None else recorded.state.exclusive_cpus()
    reserved = CPUSet()
    with suppress(InputError):
        reserved = CPUSet.parse(str(values.get("reservedSystemCPUs") or "")) & node.topology.online
    return reserved - taken or node.topology.online - taken or node.topology.online


def _memory_of(node: Node) -> int:
    """Return the limit of a trial's memory in bytes. Raises UntriedError where the node does not have it to spare."""
    text = node.tree.read_value(_MEMINFO) or ""
    sizes = {name: int(size) << 10 for name, size in _SIZE.findall(text)}
    if not set(_SIZES) <= set(sizes):
        raise UntriedError("%s does not say how much memory is free" % _MEMINFO)
    configuration = node.found()[0]
    hard = None if configuration is None else configuration.given((HARD,)).value
    total, available, free, inactive = (sizes[name] for name in _SIZES)
    return memory_for(min(available, free + inactive), kept_free(hard, total))


def _named_cgroups(values: Mapping[str, Any]) -> list[str]:
    fields = ("cgroupRoot", "kubeReservedCgroup", "systemReservedCgroup")
    names = [values.get(field) for field in fields]
    return [name for name in names if isinstance(name, str) and name.strip("/") and ".." not in name.split("/")]


def _is_there(name: str, values: Mapping[str, Any], hierarchies: list[CgroupMount]) -> bool:
    """Return whether the kubelet would find a cgroup that its configuration names; of the driver systemd that is not
    tried."""
    if values.get("cgroupDriver") == SYSTEMD:
        return True
    return any(os.path.isdir("%s/%s" % (hierarchy.path, name.strip("/"))) for hierarchy in hierarchies)

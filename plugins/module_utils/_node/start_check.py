# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Would the kubelet of this node start: its configuration, its machine and its managers' states together."""

from __future__ import annotations

import errno
import os
import stat
from typing import TYPE_CHECKING, Any, Callable, Collection, Iterable, Iterator, Mapping, NamedTuple, Sequence

from .._base.errors import PERMISSION, InputError, NodeError, RefusedError, option
from .._base.golang import quote
from .._base.tree import LARGEST_OF_KUBELET, OverlaidTree, Tree
from .._host.services import missing_files
from .._kubelet.configuration import Configuration, KubeletConfiguration, ReplacedMap
from .._kubelet.distributions import (
    DROP_IN,
    DROP_IN_NAME,
    FLAGS,
    KUBELET_ARG_NAME,
    KUBELET_ROOT,
    PATCH_NAME,
    has_unit,
    service_of,
)
from .._kubelet.effective import NAMES
from .._kubelet.flag_files import find_words, kubelet_arg_paths, place_of_flag, unset_variables, writer_of
from .._kubelet.gates import Gates
from .._kubelet.installation import Installation, may_give_flags
from .._kubelet.placement import Sources, plan_files
from .._kubelet.redacted_words import words_redacted
from .._kubelet.settings import check_wishes, needed_config, plan_settings, start_error
from .._kubelet.start.findings import Checked, Finding, Host, Unknown, harmful, refused
from .._kubelet.start.loading import Absent
from .._kubelet.start.predict import GivenToKubelet, Prediction, Starts, predict, predict_plain
from .._kubelet.state_removal import Removal, boot_removals, overwriter, removals
from ..cpuset import CPUSet
from ..policy.hints import POD, RESTRICTED, SINGLE_NUMA_NODE
from ..policy.options import FULL_PCPUS_ONLY
from ..state.acceptance import (
    REFUSED,
    STATIC,
    CPUManagerConfig,
    Judgement,
    judge,
    readable,
    restore_state,
    switched_off,
)
from ..state.assignments import State
from ..state.checkpoint import restore_error
from ..state.formats import CheckpointError
from ..state.memory_manager import (
    NOT_JUDGED,
    MemoryConfig,
    MemoryStateError,
    judge_memory,
    machine_differences,
    memory_owners,
)
from ..state.memory_manager import STATIC as STATIC_MEMORY
from ..state.restored import (
    CLAIMS,
    DEVICES,
    TWO_SINCE,
    DamageError,
    Restored,
    check_exactly,
    is_as_written,
    read_devices,
    restored_by,
)
from ..topology.kubelet_view import CPUTopology
from .beside_cpus import device_checkpoint, machine_memory
from .node import PARTITIONING, Node
from .reserved_memory import memory_list, planned_memory

if TYPE_CHECKING:
    from .._kubelet.settings import SettingsPlan
    from .._kubelet.start.loading import Absent, DropIns, FileState
    from .container_cpus import Observed


# What keeps systemd from starting a kubelet at all.


def with_unit(tree: Tree, service: str, predictions: Iterable[Prediction]) -> list[Prediction]:
    """Return the predictions, behind what systemd refuses of the service's unit."""
    found = [
        refused(
            "Failed to load environment files: No such file or directory",
            "systemd does not start the service: %s needs the EnvironmentFile %s, which is not there"
            % (file.path, file.value),
            "write the file, or put a - before its path if it need not be there",
            file.path,
        )._replace(context="%s.service: " % service)
        for file in missing_files(tree, service)
    ]
    if not found:
        return list(predictions)
    return [
        prediction._replace(
            findings=[*found, *prediction.findings],
            checked=prediction.checked and prediction.checked._replace(before=[*found, *prediction.checked.before]),
        )
        for prediction in predictions
    ]


# Flags of a kubelet that take the place of a whole map in its files: what that does to its start.


# What is refused for want of what a flag may have taken away: {where: (fields, resource)}.
_WANTING: Mapping[str, tuple[Sequence[str], str]] = {
    "reservedSystemCPUs": (("kubeReserved", "systemReserved"), "cpu"),
    "reservedMemory": (("kubeReserved", "systemReserved"), "memory"),
}


def with_replaced(node: Node, predictions: Iterable[Prediction]) -> list[Prediction]:
    """Return the predictions, each with what such flags take away, as a finding or as the cause of a refusal."""
    try:
        configuration = node.configuration()
    except NodeError:  # which the kubelet refuses, too
        configuration = None
    maps = () if configuration is None else configuration.replaced_maps()
    return [_with_replaced(prediction, maps) for prediction in predictions]


def _with_replaced(prediction: Prediction, maps: Sequence[ReplacedMap]) -> Prediction:
    checked = prediction.checked
    if checked is None or not maps:
        return prediction
    found = [harmful(replaced.to_cause(), replaced.to_remedy(), replaced.flag) for replaced in maps]
    before = [*(_explained(finding, maps) for finding in checked.before), *found]
    checked = checked._replace(before=before)
    return prediction._replace(findings=checked.findings, checked=checked)


def _explained(finding: Finding, maps: Sequence[ReplacedMap]) -> Finding:
    fields, resource = _WANTING.get(finding.where, ((), ""))
    for replaced in maps if finding.fatal else ():
        if replaced.field in fields and resource in replaced.lost:
            return finding._replace(
                cause="%s; %s" % (finding.cause, replaced.to_cause()),
                remedy="add %s=%s to %s in %s, or remove that flag"
                % (resource, replaced.lost[resource], replaced.flag, replaced.place),
            )
    return finding


# The checkpoints that a kubelet restores beside its CPU and memory managers': what it refuses of this node's.


# From then on OpenShift's kubelet takes a default set without the reserved CPUs under workload partitioning.
_PARTITIONED_SINCE = 29
_CAUSE = "the file is damaged, as after a power cut, or a kubelet of another version wrote it"
_REMEDY = "drain the node, stop the kubelet and take the file out of the way before it starts again"


def restored_paths(node: Node) -> dict[str, Restored]:
    """Return {path: what is there} of the files that the kubelet of this node restores, whether they are there or
    not."""
    root = node.checkpoint_path.rpartition("/")[0]
    # The devices' directory does not go with --root-dir.
    return {
        "%s/%s" % (KUBELET_ROOT if file.name == DEVICES else root, file.name): file for file in restored_by(node.minor)
    }


def with_restored(node: Node, *predictions: Prediction) -> list[Prediction]:
    """Return the predictions, each with what its kubelet says of these files. Raises NodeError."""
    by_gates: dict[str, list[Finding | Unknown]] = {}
    answers = []
    for prediction in predictions:
        checked, gates = prediction.checked, prediction.values.get("featureGates")
        if checked is None:
            answers.append(prediction)
            continue
        if repr(gates) not in by_gates:
            enabled = Gates.of(prediction.values, node.minor).enabled
            by_gates[repr(gates)] = list(_found(node, enabled))
        found = by_gates[repr(gates)]
        before = [*checked.before, *(finding for finding in found if isinstance(finding, Finding))]
        checked = checked._replace(before=before)
        unknown = [*prediction.unknown, *(doubt for doubt in found if isinstance(doubt, Unknown))]
        answers.append(prediction._replace(findings=checked.findings, unknown=unknown, checked=checked))
    return answers


def _found(node: Node, enabled: Callable[[str], bool]) -> Iterator[Finding | Unknown]:
    """Yield what is found in the files of states, in the kubelet's order."""
    for path, file in restored_paths(node).items():
        is_read = not file.gate or enabled(file.gate)
        content = stored_state(node.tree, path) if is_read else None
        if content is None:
            continue
        try:
            if not _is_restored(content, file, node.minor):
                yield Unknown("whether the checksum in it is right is not known here", path)
        except DamageError as error:
            yield _finding_of(error, file, path, node.minor)


def _is_restored(content: bytes | Exception, file: Restored, minor: int) -> bool:
    """Return whether that is certain. Raises DamageError where it is certain that it is not."""
    if isinstance(content, Exception):
        raise DamageError(str(content))
    if is_as_written(file, content, minor):
        return True
    return check_exactly(file, content, minor)


def _finding_of(error: DamageError, file: Restored, path: str, minor: int) -> Finding:
    if file.name == DEVICES:
        return harmful(
            "%s (%s): the kubelet forgets which devices running containers have, and can give them to others"
            % (_CAUSE, error),
            _REMEDY,
            path,
            "Continue after failing to read checkpoint file. Device allocation info may NOT be up-to-date",
        )
    if file.name == CLAIMS and error.is_inside:
        return refused("GetEntries() on checkpoint: %s" % error, _CAUSE, _REMEDY, path)
    if file.name == CLAIMS:
        text = "GetOrCreate() on checkpoint state: failed to get checkpoint %s: %s" % (CLAIMS, error)
        return refused(text, _CAUSE, _REMEDY, path)
    is_new, cause = minor >= TWO_SINCE, str(error)
    if error.is_inside:
        cause = "failed to get pod resource %s: %s" % ("information" if is_new else "allocation info", cause)
    text = (
        "could not restore state from checkpoint: %s, please drain this node and delete pod %s checkpoint file %s"
        " before restarting Kubelet" % (cause, "resource information" if is_new else "allocation", quote(path))
    )
    return refused(text, _CAUSE, _REMEDY, path)._replace(context="panic: ")


# What the kubelet of a node is given: its words, its files, and both as they would be with other settings.


def given_of(node: Node) -> GivenToKubelet:
    """Return what the kubelet of this node is given, its words without secrets. Raises NodeError where there is
    none."""
    installation, tree = node.installation, node.tree
    if installation is None:
        raise node.missing()
    path, directory = installation.config_path, installation.config_dir
    if path is not None and not installation.command_line and not tree.exists(path, follow=False):
        raise node.missing()
    if path is None and installation.unread:
        raise node.missing()
    distribution, arguments = installation.distribution, installation.command_line
    words: list[str] = []
    if arguments or may_give_flags(tree, distribution):
        # What the kubelet says of a word has it in quotes.
        words = words_redacted(find_words(tree, distribution, arguments), has_program=False)
    return GivenToKubelet(
        words,
        None if path is None else _state_of(tree, path),
        None if directory is None else _drop_ins(tree, directory),
        path or "",
        directory or "",
    )


def read_sources(node: Node, patches_dir: str | None = None) -> Sources:
    """Return what the kubelet takes its settings from, to be written.

    patches_dir: of kubeadm, the usual one where it is None; an empty text for none. Raises NodeError where there is no
    kubelet, or a file cannot be read.
    """
    node.needed_configuration()
    installation, tree = node.installation, node.tree
    if installation is None:
        raise AssertionError("a configuration without an installation")
    distribution = installation.distribution
    flag_file = distribution.flag_files[0] if distribution.place in (DROP_IN, FLAGS) else None
    flag_paths = []
    if flag_file is not None:
        flag_paths = kubelet_arg_paths(tree, flag_file.path) if distribution.has_kubelet_args else [flag_file.path]
    patch_path = None
    patches_dir = distribution.patches_dir if patches_dir is None else patches_dir
    if distribution.patches_dir is not None and patches_dir and tree.exists(patches_dir):
        patch_path = _inside(patches_dir, PATCH_NAME)
    return Sources(
        installation,
        node.file(),
        node.drop_ins(),
        [(tree.path(path), tree.read_text(path, LARGEST_OF_KUBELET)) for path in flag_paths],
        None if installation.config_dir is None else tree.path(_inside(installation.config_dir, DROP_IN_NAME)),
        tree.path(_inside(flag_file.path + ".d", KUBELET_ARG_NAME))
        if flag_file and distribution.has_kubelet_args
        else None,
        None if patch_path is None else tree.path(patch_path),
        node.parsed(patch_path) if patch_path is not None and tree.exists(patch_path) else None,
        overwriter(tree, service_of(tree, distribution), installation.config_path) if installation.config_path else "",
    )


def _inside(directory: str, name: str) -> str:
    return "%s/%s" % (directory.rstrip("/"), name)


def given_with(node: Node, wanted: Mapping[str, object]) -> GivenToKubelet:
    """Return what it would be given with the wanted settings where they are written; where nothing may be, as if they
    were.

    A file that cannot be read stays as it is.
    """
    plan = _plan(node, wanted)
    if plan is None:
        return given_of(node)
    try:
        contents = _contents(node, plan, wanted)
    except RefusedError:
        import json

        content = json.dumps(plan.configuration.values).encode("utf-8")
        return given_of(node)._replace(arguments=(), file=content, drop_ins=None)
    return given_of(node.on(OverlaidTree(node.tree, contents))) if contents else given_of(node)


def planned_contents(node: Node, wanted: Mapping[str, object]) -> dict[str, bytes]:
    """Return {path: content} of the files that are written for the wanted settings; none where what is there is not
    readable.

    Raises RefusedError where nothing may be written, NodeError where there is no kubelet.
    """
    plan = _plan(node, wanted)
    return {} if plan is None else _contents(node, plan, wanted)


def _contents(node: Node, plan: SettingsPlan, wanted: Mapping[str, object]) -> dict[str, bytes]:
    files = plan_files(read_sources(node, ""), plan, wanted, node.minor)
    return {node.tree.node_path(file.path): file.after.encode("utf-8") for file in files}


def planned_values(
    node: Node, wanted: Mapping[str, object], configuration: Configuration | None = None
) -> dict[str, object] | None:
    """Return the values of the configuration with what is wanted; None where it cannot be read.

    configuration: what the kubelet runs with, where it has been read already.
    """
    plan = _plan(node, wanted, configuration)
    return None if plan is None else plan.configuration.values


def _plan(node: Node, wanted: Mapping[str, object], configuration: Configuration | None = None) -> SettingsPlan | None:
    """Return what becomes of the settings; None where the configuration cannot be read."""
    try:
        return plan_settings(wanted, configuration or node.needed_configuration(), node.minor)
    except NodeError as error:
        if error.kind == PERMISSION:
            raise
        return None


def _state_of(tree: Tree, path: str) -> FileState:
    try:
        content = tree.content(path, LARGEST_OF_KUBELET)
    except NodeError as error:
        if error.kind == PERMISSION:
            raise
        return _place_of(tree.path(path))
    return _missing() if content is None else content


def _missing() -> Absent:
    return Absent.MISSING


def _place_of(here: str) -> Absent:
    """Return what is in the place of a file that cannot be read."""
    try:
        return Absent.DIRECTORY if stat.S_ISDIR(os.stat(here).st_mode) else Absent.UNREADABLE
    except FileNotFoundError:  # a link to nothing
        return Absent.MISSING
    except OSError:
        return Absent.UNREADABLE


def _drop_ins(tree: Tree, directory: str) -> DropIns:
    if not tree.exists(directory, follow=False):
        return _missing()
    if os.path.islink(tree.path(directory)):
        # The kubelet does not follow it.
        return []
    paths = tree.files_below(directory)
    start = len(directory.rstrip("/")) + 1
    return [(path[start:], _state_of(tree, path)) for path in paths]


# Would the kubelet of this node start: its files, flags and machine, the CPU and memory managers' states left out.


# The fields without which it is not certain what the CPU manager starts with.
_OF_CPUS = frozenset(("cpuManagerPolicy", "cpuManagerPolicyOptions", "reservedSystemCPUs", "topologyManagerPolicy"))


def predict_configuration(node: Node, wanted: Mapping[str, object] | None = None) -> Prediction:
    """Return what is predicted of the kubelet of this node with `wanted` in its configuration."""
    (prediction,) = _of_node(node, predict(given_with(node, wanted) if wanted else given_of(node), node.machine()))
    return prediction


def planned_config(node: Node, wanted: Mapping[str, object]) -> CPUManagerConfig:
    """Return what the CPU manager would start with, once these settings are in the kubelet's file."""
    plan_settings(wanted, node.needed_configuration(), node.minor)
    return needed_config(predict_configuration(node, wanted))


def _of_node(node: Node, *predictions: Prediction) -> list[Prediction]:
    """Return the predictions with what more the node's files tell than the kubelet is given."""
    answers = with_restored(node, *predictions)
    installation = node.installation
    if installation is not None:
        answers = [_with_places(node.tree, installation, prediction) for prediction in answers]
    if installation is not None and installation.flags:
        answers = with_replaced(node, answers)
    service = "" if installation is None else service_of(node.tree, installation.distribution)
    if service and has_unit(node.tree, service):
        answers = with_unit(node.tree, service, answers)
    answers = [_with_memory_list(node, prediction) for prediction in answers]
    patched = node.plugin_of_patched()
    if patched:
        text = "a plugin of Katalyst is registered here, which only a kubelet with its patches does: what that one does"
        doubt = Unknown(text + " at its start is not known", patched)
        answers = [prediction._replace(unknown=[*prediction.unknown, doubt]) for prediction in answers]
    return [_without(node.mistaken, prediction) for prediction in answers] if node.mistaken else answers


# Behind it stands the list that a node would take.
MEMORY_LIST = "; the whole list is reservedMemory: "


def _with_memory_list(node: Node, prediction: Prediction) -> Prediction:
    """Return the prediction, whose refusals of reservedMemory have the list that is not refused."""
    checked = prediction.checked
    if checked is None or not any(finding.fatal and finding.where == "reservedMemory" for finding in checked.findings):
        return prediction
    try:
        text = MEMORY_LIST + memory_list(planned_memory(node, prediction.values))
    except InputError:
        return prediction

    def listed(finding: Finding) -> Finding:
        is_meant = finding.fatal and finding.where == "reservedMemory"
        return finding._replace(remedy=finding.remedy + text) if is_meant else finding

    checked = checked._replace(before=list(map(listed, checked.before)), after=list(map(listed, checked.after)))
    return prediction._replace(findings=checked.findings, checked=checked)


def _with_places(tree: Tree, installation: Installation, prediction: Prediction) -> Prediction:
    """Return the prediction, whose remedies name the files that give what is refused, and who writes these."""

    def placed(finding: Finding) -> Finding:
        return _placed(tree, installation, finding) if finding.fatal else finding

    checked, doubts = prediction.checked, [_doubt_placed(tree, installation, doubt) for doubt in prediction.unknown]
    if checked is None:
        return prediction._replace(findings=list(map(placed, prediction.findings)), unknown=doubts)
    checked = checked._replace(before=list(map(placed, checked.before)), after=list(map(placed, checked.after)))
    return prediction._replace(findings=checked.findings, unknown=doubts, checked=checked)


def _doubt_placed(tree: Tree, installation: Installation, doubt: Unknown) -> Unknown:
    is_flag = doubt.where.startswith("--")
    place = place_of_flag(tree, installation.distribution, doubt.where) if is_flag else ""
    return doubt._replace(reason="%s; it is in %s" % (doubt.reason, place)) if place else doubt


_QUOTES = ("'", '"')
# By field: another one, without which it would not be refused.
_WITH = dict.fromkeys(("kubeReservedCgroup", "systemReservedCgroup"), "enforceNodeAllocatable")


def _placed(tree: Tree, installation: Installation, finding: Finding) -> Finding:
    name, distribution = finding.where.partition("=")[0], installation.distribution
    field = name.partition(".")[0]
    flags = [NAMES[key] for key in (field, _WITH.get(field, "")) if key in NAMES]
    given = next((entry for flag in flags for entry in reversed(installation.flags) if entry.name == flag), None)
    if name.startswith("--") or given is not None:
        flag = name if given is None else given.name
        # What is on the command line alone is in no file.
        source = given.source if given is not None and given.source.startswith("/") else ""
        place = place_of_flag(tree, distribution, flag) or source
        if given is not None and given.value[:1] in _QUOTES and given.value[-1:] == given.value[:1]:
            finding = finding._replace(
                cause="%s; the quotes in %s=%s are a part of the value" % (finding.cause, flag, given.value),
                remedy="write it without these quotes",
            )
        unset = unset_variables(tree, distribution, flag)
        if unset:
            finding = finding._replace(cause="%s; no file sets %s in it" % (finding.cause, " and ".join(unset)))
        writer = writer_of(distribution, place)
        written = ", and %s writes it there again" % writer if writer else ""
        told = "%s is" % flag if given is not None else "it is"
        return finding._replace(remedy="%s; %s in %s%s" % (finding.remedy, told, place, written)) if place else finding
    if distribution.pointer and field.isidentifier():
        return finding._replace(remedy="%s; %s" % (finding.remedy, distribution.pointer))
    return finding


def _without(mistaken: Collection[tuple[str, str]], prediction: Prediction) -> Prediction:
    """Return the prediction without refusals that the node's kubelet has been seen not to make.

    It stays as it is where it does not say with what the CPU manager starts: what to do with the checkpoint follows
    from that.
    """
    checked = prediction.checked
    if checked is None or checked.cpu_manager is None:
        return prediction
    before, after = (
        [finding for finding in findings if not (finding.fatal and (finding.where, finding.text) in mistaken)]
        for findings in (checked.before, checked.after)
    )
    checked = checked._replace(before=before, after=after)
    return prediction._replace(findings=checked.findings, checked=checked)


def predicted_starts(node: Node, wanted: Mapping[str, object], configuration: Configuration | None = None) -> Starts:
    """Return what is predicted of this node as it is, and with what is wanted.

    configuration: what the kubelet runs with, where it has been read already.
    """
    found, host = given_of(node), node.machine()
    prediction = None
    if found.is_alone and isinstance(configuration, KubeletConfiguration) and configuration.is_plain:
        prediction = predict_plain(configuration.values, host)
    if prediction is None:
        prediction = predict(found, host)
    planned = prediction if not wanted else _planned(node, wanted, configuration, found, prediction)
    as_found, as_planned = _of_node(node, prediction, planned)
    removal = state_removals(node).get(node.checkpoint_path)
    return Starts(as_found, as_planned, removal, _OWN_RULES if _has_own_states(node) else "")


def _planned(
    node: Node,
    wanted: Mapping[str, object],
    configuration: Configuration | None,
    found: GivenToKubelet,
    prediction: Prediction,
) -> Prediction:
    """Return what is predicted with what is wanted; `prediction` is that of what is found."""
    values = planned_values(node, wanted, configuration) if found.is_alone else None
    plain = None if values is None else predict_plain(values, node.machine())
    if plain is not None:
        return plain
    planned = given_with(node, wanted)
    return prediction if planned == found else predict(planned, node.machine())


def config_after(starts: Starts) -> CPUManagerConfig:
    """Return what the CPU manager would start with after a change.

    Raises RefusedError where the kubelet would refuse what is planned; for what is found already, only where it is not
    certain then with what the CPU manager would start.
    """
    found_before = {(finding.where, finding.text) for finding in starts.found.findings if finding.fatal}
    for finding in starts.planned.findings:
        if finding.fatal and (finding.where, finding.text) not in found_before:
            raise start_error(finding)
    return certain_config(starts.planned)


def certain_config(prediction: Prediction) -> CPUManagerConfig:
    """Return with what the CPU manager would start, were the kubelet to get so far. Raises RefusedError."""
    for finding in prediction.findings:
        if finding.fatal and finding.where.partition(".")[0] in _OF_CPUS:
            raise start_error(finding)
    if prediction.checked is None or prediction.checked.cpu_manager is None:
        return needed_config(prediction)
    check_wishes(prediction.checked.cpu_manager)
    return prediction.checked.cpu_manager


def config_if_certain(prediction: Prediction) -> CPUManagerConfig | None:
    """Return with what the CPU manager would start, were the kubelet to get so far; None where that is not certain."""
    try:
        return certain_config(prediction)
    except RefusedError:
        return None


def start_report(node: Node, wanted: Mapping[str, object]) -> dict[str, Any]:
    """Return what is predicted of a start with `wanted` in the configuration, as plain data; see the module
    start_check.

    Raises NodeError where there is no kubelet.
    """
    # Imported here: only who asks about the start alone asks about the runtime, too.
    from .runtime import driver_findings

    prediction = predict_start(node, wanted)
    findings = [*prediction.findings, *driver_findings(node)]
    return {
        "starts": prediction.starts,
        "kubelet_version": "1.%d" % node.minor,
        "findings": [finding.to_dict() for finding in findings],
        "unknown": [doubt.to_dict() for doubt in prediction.unknown],
        "notes": [*node.version_notes(), *(() if node.installation is None else node.installation.notes)],
    }


def predict_start(node: Node, wanted: Mapping[str, object] | None = None) -> Prediction:
    """Predict whether the kubelet of this node would start with its states as they are, and `wanted` in its
    configuration."""
    return with_states(node, predict_configuration(node, wanted), *_stored_states(node))


# Whether the node's own kubelet tries a start before a change, and what is predicted of that.
#
# Where that can be had, or else the change is refused, or not at all.
AUTO, ALWAYS, NEVER = "auto", "always", "never"


def predict_alone(node: Node, words_of: Callable[[Sequence[str]], Sequence[str]]) -> Prediction:
    """Predict as predict_start does, where no service starts the kubelet. words_of: what it is given in place of its
    own words."""
    given = given_of(node)
    given = given._replace(arguments=words_of(given.arguments))
    (prediction,) = with_restored(node, predict(given, node.machine()))
    return with_states(node, prediction, *_stored_states(node))


def with_states(
    node: Node,
    prediction: Prediction,
    checkpoint: bytes | CheckpointError | None,
    memory_state: bytes | MemoryStateError | None,
) -> Prediction:
    """Return the prediction with what the managers make of these states. An error: the kubelet cannot read the file."""
    checked = prediction.checked
    if checked is None:
        return prediction
    removed = state_removals(node)
    writer = "" if node.installation is None else node.installation.distribution.pointer
    found = [
        *_if_kept(
            removed.get(node.checkpoint_path),
            checkpoint_findings(
                checkpoint, node.checkpoint_path, checked, node.machine(), writer, node.topology.offline
            ),
        ),
        *_if_kept(removed.get(node.checkpoint_path), _partitioning_doubt(checkpoint, node.checkpoint_path, checked)),
        *_if_kept(removed.get(node.memory_state_path), memory_state_findings(memory_state, node, checked)),
    ]
    found = _with_boots(node, found)
    if _has_own_states(node):
        found = [_by_own_rules(entry) if entry.where == node.checkpoint_path else entry for entry in found]
    findings = [entry for entry in found if isinstance(entry, Finding)]
    unknown = [entry for entry in found if isinstance(entry, Unknown)]
    return prediction._replace(
        findings=[*checked.before, *findings, *checked.after], unknown=[*prediction.unknown, *unknown]
    )


_OWN_RULES = "a kubelet of Kubernetes would refuse it, and this one keeps the state by rules of its vendor's"


def _has_own_states(node: Node) -> bool:
    return node.installation is not None and node.installation.distribution.has_own_states


def _by_own_rules(entry: Finding | Unknown) -> Finding | Unknown:
    """Return what is found of a checkpoint, where a vendor's kubelet judges it."""
    if isinstance(entry, Unknown) or not entry.fatal:
        return entry
    return Unknown("%s (%s)" % (_OWN_RULES, entry.text), entry.where)


def state_removals(node: Node) -> dict[str, Removal]:
    """Return {path: Removal} of the managers' states that the kubelet's unit may remove before it starts."""
    installation = node.installation
    service = "" if installation is None else service_of(node.tree, installation.distribution)
    return removals(node.tree, service, node.state_paths) if service and has_unit(node.tree, service) else {}


def _with_boots(node: Node, found: Sequence[Finding | Unknown]) -> list[Finding | Unknown]:
    """Return what is found of states; where one is refused, its remedy says whether a boot surely removes it."""
    installation = node.installation
    # Most kubelets take their states, and to read the units that run before theirs takes longer than all else.
    if installation is None or not any(isinstance(entry, Finding) and entry.fatal for entry in found):
        return list(found)
    service = service_of(node.tree, installation.distribution)
    sources = boot_removals(node.tree, service, node.state_paths) if service else {}
    text = "%s; a boot removes it (%s), by which all pods start anew, too"
    return [
        entry._replace(remedy=text % (entry.remedy, sources[entry.where]))
        if isinstance(entry, Finding) and entry.fatal and entry.where in sources
        else entry
        for entry in found
    ]


def removed_states(node: Node) -> dict[str, None]:
    """Return {path: None} of the managers' states that the kubelet's unit surely removes before it starts."""
    return {path: None for path, removal in state_removals(node).items() if removal.is_sure}


def _if_kept(removal: Removal | None, found: Iterable[Finding | Unknown]) -> Iterator[Finding | Unknown]:
    """Yield what is found of a state, as far as the kubelet finds that state at its start."""
    if removal is not None and removal.is_sure:
        return
    for entry in found:
        if removal is not None and isinstance(entry, Finding) and entry.fatal:
            text = "the kubelet would refuse it (%s), unless %s removes it before, which cannot be read for sure"
            yield Unknown(text % (entry.text, removal.source), entry.where)
        else:
            yield entry


class Managers(NamedTuple):
    """With what the kubelet's managers start; memory: None where none of a known policy does."""

    cpu: CPUManagerConfig
    memory: MemoryConfig | None


def memory_plan(node: Node, prediction: Prediction) -> MemoryPlan:
    """Return what becomes of the memory manager's state with a configuration of which this is predicted."""
    content, checked = node.memory_state(), prediction.checked
    if content is None or checked is None:
        return MemoryPlan(content, "")
    return memory_plan_with(node, memory_config(node, checked))


def memory_plan_with(node: Node, config: MemoryConfig | None) -> MemoryPlan:
    """Return what becomes of the memory manager's state; config: as memory_config() has it."""
    content, removal = node.memory_state(), state_removals(node).get(node.memory_state_path)
    if removal is not None and removal.is_sure:
        return MemoryPlan(content, "")
    return plan_memory_state(content, config)


# --- the checkpoint --------------------------------------------------------------------------------------


def _partitioning_doubt(content: object, path: str, checked: Checked) -> Iterator[Unknown]:
    """Yield whether an older kubelet of OpenShift takes its own default set, which is without the reserved CPUs."""
    config = checked.cpu_manager
    if config is None or not config.is_partitioned or config.minor >= _PARTITIONED_SINCE:
        return
    if not isinstance(content, bytes) or judge(content, config).verdict == REFUSED:
        return
    plain = judge(content, config._replace(is_partitioned=False))
    if plain.verdict == REFUSED:
        text = (
            "OpenShift's workload partitioning is on (%s), and whether its kubelet takes a default set without the"
            " reserved CPUs depends on the patch level of 4.14 and 4.15; an older one refuses it at a start that"
            " follows no boot: %s"
        )
        yield Unknown(text % (PARTITIONING, plain.reason), path)


def checkpoint_findings(
    content: bytes | CheckpointError | None,
    path: str,
    checked: Checked,
    host: Host,
    writer: str = "",
    offline: CPUSet = CPUSet(),
) -> Iterator[Finding]:
    """Yield what the CPU manager would say of its checkpoint, whose path is named in its messages.

    content: an error, where the kubelet cannot read the file. writer: where its configuration comes from. offline: CPUs
    that are switched off.
    """
    if content is None or checked.cpu_manager_policy is None:
        return
    if isinstance(content, CheckpointError):
        remedy = "drain the node, and take what is there out of the way"
        yield _start_refused(restore_error(content, path), "the checkpoint cannot be read", remedy, path)
        return
    # Where the reservation is not known, what is restored can be judged all the same.
    config = checked.cpu_manager or CPUManagerConfig(
        checked.cpu_manager_policy, host.topology.all_cpus(), minor=host.minor, pod_level=checked.pod_level
    )
    judgement = judge(content, config)
    if judgement.verdict != REFUSED:
        yield from _restart_findings(judgement.state, path, checked, host.topology)
        return
    try:
        restore_state(content, config.policy_name, config.minor, config.pod_level)
    except CheckpointError as error:
        found = _start_refused(restore_error(error, path), "the checkpoint cannot be restored", judgement.remedy, path)
        yield found._replace(remedy=found.remedy + _way_back(readable(content), config, writer))
        return
    if checked.cpu_manager is not None:
        cause = "the checkpoint does not agree with the configuration and the node's CPUs"
        yield _start_refused(judgement.reason, cause + switched_off(judgement.state, offline), judgement.remedy, path)


def _way_back(stored: Judgement, config: CPUManagerConfig, writer: str) -> str:
    """Return how to keep what containers have by the policy of their checkpoint; empty where they have nothing."""
    has_cpus = stored.state is not None and stored.state.assignments
    if not has_cpus or stored.policy_name in (None, config.policy_name):
        return ""
    text = "; or set cpuManagerPolicy: %s again, if it was lost by mistake" % stored.policy_name
    return text + ("; %s" % writer if writer else "")


def _start_refused(text: str, cause: str, remedy: str, path: str, manager: str = "cpu") -> Finding:
    return refused(text, cause, remedy, path)._replace(context="start %s manager error: " % manager)


def _stored_states(node: Node) -> tuple[bytes | CheckpointError | None, bytes | MemoryStateError | None]:
    """Return what the kubelet's managers read at their start; errors where they cannot."""
    removed = removed_states(node)
    checkpoint, memory_state = (None if path in removed else stored_state(node.tree, path) for path in node.state_paths)
    return CheckpointError(str(checkpoint)) if isinstance(checkpoint, Exception) else checkpoint, memory_state


def _restart_findings(state: State | None, path: str, checked: Checked, topology: CPUTopology) -> Iterator[Finding]:
    """Yield findings on running pods that the kubelet would refuse when it admits them again, which it does at every
    start."""
    if state is None or checked.cpu_manager is None or not checked.options.full_pcpus_only:
        return
    free = len(state.default_cpu_set - topology.physical_cpus(checked.cpu_manager.reserved))
    # Within a pod that has CPUs as a whole, nobody looks at cores.
    whole = {pod: {"": cpus} for pod, cpus in state.pod_assignments.items()}
    for pod, containers in sorted({**state.assignments, **whole}.items()):
        for container, cpus in sorted(containers.items()):
            count = len(cpus)
            if count % topology.cpus_per_core:
                text = "requested %d cpus not multiple cpus per core = %d" % (count, topology.cpus_per_core)
            elif count > free:
                text = (
                    "not enough free physical CPUs: available physical CPUs = %d, requested CPUs = %d,"
                    " CPUs per core = %d" % (free, count, topology.cpus_per_core)
                )
            else:
                continue
            owner = "pod %s, container %s" % (pod, container) if container else "pod %s" % pod
            cause = "the kubelet would refuse %s, as it admits running pods again" % owner
            yield harmful(cause, "drain the node first, or drop full-pcpus-only", path, "SMT Alignment Error: " + text)


def is_at_risk(node: Node, settings: Mapping[str, Any], observed: Observed | None) -> bool:
    """Return whether a start with these settings, which are those of the running kubelet, can lose a pod. A quick look.

    What a state has of a container is the same before and after. What can be wanted again is what no state has, or
    what is looked for before the state is.
    """
    state = readable(node.checkpoint()).state
    if settings["cpu_manager_policy"] == STATIC and state is not None and state.assignments:
        is_strict = settings["topology_manager_policy"] in (RESTRICTED, SINGLE_NUMA_NODE)
        looks_first = FULL_PCPUS_ONLY in settings["cpu_manager_policy_options"]
        if state.pod_assignments or looks_first or (is_strict and settings["topology_manager_scope"] == POD):
            return True
    if settings["memory_manager_policy"] == STATIC_MEMORY and memory_owners(node.memory_state() or b""):
        return True
    content = None if observed is None or node.hides_names else device_checkpoint(node.tree)
    if content is None or observed is None:
        return False
    here = {(container.pod_uid, container.name) for container in observed.running}
    try:
        return any((uid, name) not in here for uid, name, *_more in read_devices(content).owned)
    except DamageError:
        return False


# --- the memory manager's state -----------------------------------------------------------------------------


def memory_state_findings(
    content: bytes | MemoryStateError | None, node: Node, checked: Checked
) -> Iterator[Finding | Unknown]:
    """Yield what the memory manager would say of its state."""
    config = None if content is None else memory_config(node, checked)
    if content is None or config is None:
        return
    judgement, path = judge_memory(content, config), node.memory_state_path
    if judgement.verdict == NOT_JUDGED:
        yield Unknown(
            "it cannot be determined whether the kubelet would start with this state: %s" % judgement.reason, path
        )
    elif judgement.verdict == REFUSED:
        cause = "the memory manager's state cannot be restored"
        if judgement.restored:
            cause = "the memory manager's state does not agree with the configuration and the node's memory"
        found = _start_refused(judgement.text(path), cause, _REMEDY, path, "memory")
        differing = machine_differences(content, config) if judgement.restored and isinstance(content, bytes) else ()
        yield _with_differences(found, differing) if differing else found


def _with_differences(found: Finding, differing: Sequence[str]) -> Finding:
    """Return the finding of a refused state of the memory manager, with what differs on the machine, and how that
    comes."""
    remedy = (
        "%s; where nobody changed the machine, a boot has moved memory between NUMA nodes, which it can do again (have"
        " the file removed at each boot), or huge pages were allocated after the kubelet's start"
    )
    return found._replace(cause="%s (%s)" % (found.cause, "; ".join(differing)), remedy=remedy % found.remedy)


class MemoryPlan(NamedTuple):
    """The file as it is, and why it has to go."""

    old: bytes | None
    # Why the kubelet would refuse it; empty: it stays.
    reason: str
    # [(pod UID, container)] that lose the memory of their own.
    owners: Sequence[tuple[str, str]] = ()
    # Why it cannot be determined whether the kubelet would refuse it.
    unknown: str = ""

    @property
    def changed(self) -> bool:
        """Whether the file is to be removed, for the kubelet to write a new one."""
        return bool(self.reason)

    @property
    def kept(self) -> bytes | None:
        """What the kubelet then finds."""
        return None if self.changed else self.old

    def to_dict(self) -> dict[str, Any]:
        """Return plain data, as modules return it."""
        verdict = "refused" if self.reason else "not judged" if self.unknown else "accepted"
        return {
            "verdict": "absent" if self.old is None else verdict,
            "reason": self.reason or self.unknown,
            "lost": [{"pod": pod, "container": container} for pod, container in self.owners],
        }


def memory_loss_error(path: str, memory: MemoryPlan) -> RefusedError | None:
    """Return why the file is not to be removed while containers run; None where none loses memory. path: the file."""
    if not memory.owners:
        return None
    owners = ", ".join("pod %s, container %s" % owner for owner in memory.owners)
    return RefusedError(
        "the kubelet would refuse it (%s), and these containers would lose their memory: %s; nothing was written"
        % (memory.reason, owners),
        path,
        "drain the node and set %s: true" % option("discard_assignments"),
        kind="assignments",
    )


def plan_memory_state(old: bytes | None, config: MemoryConfig | None) -> MemoryPlan:
    """Remove a state that the kubelet would refuse with this configuration: it cannot be repaired from outside.

    config: None where the kubelet has no memory manager of a known policy.
    """
    if old is None or config is None:
        return MemoryPlan(old, "")
    verdict, reason, _restored = judge_memory(old, config)
    if verdict == NOT_JUDGED:
        return MemoryPlan(old, "", unknown=reason)
    return MemoryPlan(old, reason, memory_owners(old) if verdict == REFUSED else ())


def stored_state(tree: Tree, path: str) -> bytes | MemoryStateError | None:
    """Return what the kubelet reads at its start from a state's file; None where it writes a new one; or why it cannot
    read.

    A link to nothing is taken for no file. Raises NodeError where the file cannot be read here.
    """
    try:
        return tree.content(path, LARGEST_OF_KUBELET)
    except NodeError:
        said = _said_of(path, tree.path(path))
        if said is None:
            raise
    return MemoryStateError(said) if said else None


def _said_of(path: str, here: str) -> str | None:
    """Return what the kubelet says when it reads this; empty where there is nothing to read; None where it is not
    known."""
    try:
        return "read %s: is a directory" % path if stat.S_ISDIR(os.stat(here).st_mode) else None
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENOTDIR):
            return "open %s: %s" % (path, os.strerror(error.errno).lower())
        return "" if error.errno == errno.ENOENT else None


def memory_config(node: Node, checked: Checked) -> MemoryConfig | None:
    """Return what the memory manager starts with; None where there is none of a known policy."""
    if checked.memory_manager_policy is None:
        return None
    config = MemoryConfig(checked.memory_manager_policy, checked.reserved_memory, node.minor, checked.pod_level)
    if config.policy != STATIC_MEMORY:
        return config
    machine, unknown = machine_memory(node.tree, node.topology)
    return config._replace(machine=machine, unknown=unknown)

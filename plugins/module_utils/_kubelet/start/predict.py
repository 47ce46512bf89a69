# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Would a kubelet start with what it is given? The one place that decides: files, flags, machine and version in, what
it refuses out.

A kubelet goes through its flags, its --config file, the drop-ins, the flags again, the validation, the making of its
managers, their states, and the node's cgroups. Until the validation nothing can be judged behind the first refusal.
After it, all that it would refuse is reported, in its order.
Source: cmd/kubelet/app/server.go.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Callable, Mapping, NamedTuple, Sequence

from ..._base.quantity import DurationError, nanoseconds
from ..configuration import API_VERSION, KIND, is_json
from ..gates import Gates
from ..yaml import read
from ..yaml_nodes import ReadError
from .checks import check_decoded, gate_refusal, unknown_gates
from .findings import Checked, Finding, Host, StartError, Unknown, UnpredictableError, refused

if TYPE_CHECKING:
    from ..state_removal import Removal
    from .findings import StartError
    from .loading import DropIns, FileState, GateCheck, Ignored


# The configuration that nearly all nodes have, decoded at once: one plain file, and flags that only name places.
#
# All that a kubelet could refuse here is left to loading.py and command_line.py, which are compiled on a node only
# where they
# are needed. What is decoded here is what they make of it; a test holds that.


TEXT, SWITCH, DURATION, TEXTS, SWITCHES, LIST = "text", "switch", "duration", "texts", "switches", "list"
# Only as the zero that stands for the default.
ZERO = "zero"

# Of these any value of the right type is taken, or judged by checks.py later.
_BY_KIND: Mapping[str, str] = {
    TEXT: (
        "cgroupRoot clusterDomain containerLogMaxSize containerRuntimeEndpoint cpuManagerPolicy"
        " kubeReservedCgroup memoryManagerPolicy providerID reservedSystemCPUs resolvConf staticPodPath"
        " systemReservedCgroup topologyManagerPolicy topologyManagerScope volumePluginDir"
    ),
    SWITCH: (
        "cgroupsPerQOS cpuCFSQuota enableControllerAttachDetach enableServer failCgroupV1 failSwapOn"
        " makeIPTablesUtilChains mergeDefaultEvictionSettings protectKernelDefaults registerNode rotateCertificates"
        " seccompDefault serverTLSBootstrap singleProcessOOMKill"
    ),
    DURATION: "cpuCFSQuotaPeriod cpuManagerReconcilePeriod",
    TEXTS: "cpuManagerPolicyOptions evictionHard kubeReserved systemReserved topologyManagerPolicyOptions",
    SWITCHES: "featureGates",
    LIST: "allowedUnsafeSysctls clusterDNS enforceNodeAllocatable",
    ZERO: (
        "evictionPressureTransitionPeriod fileCheckFrequency httpCheckFrequency imageMaximumGCAge imageMinimumGCAge"
        " nodeStatusReportFrequency nodeStatusUpdateFrequency runtimeRequestTimeout shutdownGracePeriod"
        " shutdownGracePeriodCriticalPods streamingConnectionIdleTimeout syncFrequency volumeStatsAggPeriod"
    ),
}
# Numbers, and the range in which no kubelet refuses them.
_NUMBERS = {
    "eventBurst": (0, 1 << 31),
    "eventRecordQPS": (0, 1 << 31),
    "healthzPort": (1, 65536),
    "kubeAPIBurst": (0, 1 << 31),
    "kubeAPIQPS": (0, 1 << 31),
    "maxPods": (0, 1 << 31),
    "readOnlyPort": (0, 65536),
}
# Texts of which only these are known to be taken.
_CHOICES = {"cgroupDriver": ("systemd", "cgroupfs"), "healthzBindAddress": ("127.0.0.1", "0.0.0.0")}
# Structs as kubeadm writes them.
_STRUCTS: Mapping[str, object] = {
    "authentication": {
        "anonymous": {"enabled": SWITCH},
        "webhook": {"enabled": SWITCH, "cacheTTL": ZERO},
        "x509": {"clientCAFile": TEXT},
    },
    "authorization": {
        "mode": ("Webhook", "AlwaysAllow"),
        "webhook": {"cacheAuthorizedTTL": ZERO, "cacheUnauthorizedTTL": ZERO},
    },
    "crashLoopBackOff": {},
    "logging": {
        "flushFrequency": ZERO,
        "options": {"json": {"infoBufferSize": ZERO}, "text": {"infoBufferSize": ZERO}},
        "verbosity": ZERO,
    },
    "memorySwap": {},
}
_KINDS: dict[str, object] = {name: kind for kind, names in _BY_KIND.items() for name in names.split()}
_KINDS.update(_STRUCTS)
_KINDS.update(_CHOICES)

# These name files and sockets, and are not judged.
_FLAGS = frozenset(("--bootstrap-kubeconfig", "--cert-dir", "--config", "--config-dir", "--kubeconfig", "--root-dir"))
_LONGEST = 1 << 16
# From this minor version on a kubelet has all of these fields.
_ALL_SINCE = 33


class _NotPlainError(Exception):
    """It takes more to decode this."""


def are_plain(arguments: Sequence[str]) -> bool:
    """Return whether flags only name places."""
    return all(map(_is_plain, arguments))


def plain_file(content: bytes) -> Mapping[str, object] | None:
    """Return the values of a file in plain YAML; None of any other."""
    if len(content) > _LONGEST:
        return None
    try:
        text = content.decode("ascii")
        root = None if is_json(text) else read(text)
    except (ReadError, UnicodeDecodeError):
        return None
    return None if root is None or root.duplicates or not isinstance(root.value, dict) else root.value


def plain_values(values: Mapping[str, object], minor: int) -> dict[str, Any] | None:
    """Return what the kubelet decodes of the values of a file; None where that takes more."""
    if minor < _ALL_SINCE or (values.get("apiVersion"), values.get("kind")) != (API_VERSION, KIND):
        return None
    try:
        return {name: _field(name, value) for name, value in values.items()}
    except _NotPlainError:
        return None


def _is_plain(argument: str) -> bool:
    name, _equals, value = argument.partition("=")
    return name in _FLAGS and bool(value) and value.isprintable()


def _field(name: str, value: object) -> object:
    if name in ("apiVersion", "kind"):
        return value
    if name in _NUMBERS:
        low, high = _NUMBERS[name]
        if not isinstance(value, int) or isinstance(value, bool) or not low <= value < high:
            raise _NotPlainError
        return value
    return _decoded(_KINDS.get(name), value)


def _decoded(kind: object, value: object) -> object:
    if isinstance(kind, Mapping) and isinstance(value, dict):
        return {key: _decoded(kind.get(key), item) for key, item in value.items()}
    if kind == ZERO and value in ("0s", "0", 0) and not isinstance(value, (bool, float)):
        return 0
    if kind == DURATION and isinstance(value, str):
        try:
            return nanoseconds(value)
        except DurationError:
            raise _NotPlainError from None
    if not _is_right(kind, value):
        raise _NotPlainError
    return value


def _is_right(kind: object, value: object) -> bool:
    """Return whether a value that is kept as it is is of this kind."""
    if kind in (TEXTS, SWITCHES):
        item = str if kind == TEXTS else bool
        return isinstance(value, dict) and all(isinstance(element, item) for element in value.values())
    if kind == LIST:
        return isinstance(value, list) and all(isinstance(element, str) for element in value)
    if kind == SWITCH:
        return isinstance(value, bool)
    return isinstance(value, str) and bool(value) and (kind == TEXT or (isinstance(kind, tuple) and value in kind))


# What a kubelet is given, and what is predicted of its start.


class GivenToKubelet(NamedTuple):
    """What a kubelet is given: the words behind its program's name, and the files that these name."""

    arguments: Sequence[str]
    # None without --config, and without --config-dir.
    file: FileState | None
    drop_ins: DropIns | None
    path: str = ""
    config_dir: str = ""

    @property
    def is_alone(self) -> bool:
        """Whether the file is all that counts: there are no drop-ins, and the flags only name places."""
        return self.drop_ins is None and are_plain(self.arguments)


class Prediction(NamedTuple):
    """What a kubelet would do with it."""

    # In the kubelet's order, so the first that is fatal is what it says.
    findings: Sequence[Finding]
    # What it depends on, and cannot be seen.
    unknown: Sequence[Unknown] = ()
    # None where the kubelet does not get so far as to make its managers.
    checked: Checked | None = None
    # What it has decoded by then.
    values: Mapping[str, Any] = {}
    # Those of the findings that are of fields that it does not have.
    ignored: Sequence[Finding] = ()

    @property
    def refusal(self) -> Finding | None:
        """The first refusal; None where there is none."""
        return next((finding for finding in self.findings if finding.fatal), None)

    @property
    def starts(self) -> bool | None:
        """Whether it starts; None where that cannot be determined."""
        if self.refusal is not None:
            return False
        return None if self.unknown else True


class Starts(NamedTuple):
    """What is predicted of a start: of the node as it is found, its managers' states aside, and with what is wanted.

    removal: why the kubelet may not find its CPU manager's state then. own_rules: what is said of that state where a
    vendor's kubelet judges it; empty otherwise.
    """

    found: Prediction
    planned: Prediction
    removal: Removal | None = None
    own_rules: str = ""


# The whole way of a prediction: flags, files, drop-ins, and all that is checked of what they make together.


def check_plain(decoded: Mapping[str, object], host: Host) -> Checked:
    """Return what is found in the values of a plain file."""
    return check_decoded(decoded, Gates({}, host.minor), host, is_plain=True)


def predict_fully(given: GivenToKubelet, host: Host) -> Prediction:
    # Imported here: nearly all nodes have a plain file, and every import costs time on every node.
    from .command_line import apply_flags, check_command, check_creation, check_run, read_command
    from .loading import UNKNOWN, drop_in_doubt, load_configuration

    minor = host.minor
    try:
        command = read_command(given.arguments, minor, host.is_assumed)
        check_command(command, minor, _gate_check(host, "remove the gate from --feature-gates"))
        loaded = load_configuration(
            given.file,
            given.drop_ins,
            minor,
            _gate_check(host, "remove it from featureGates"),
            given.path,
            given.config_dir,
            command.gates,
        )
        values = apply_flags(command, loaded.values)
    except StartError as refusal:
        return Prediction([_finding_of(refusal)])
    except UnpredictableError as error:
        return Prediction([], [Unknown(error.reason, error.where)])
    checked = check_decoded(
        values, Gates(values.get("featureGates") or {}, minor), host, _emptied(values, loaded.values)
    )
    before = list(checked.before)
    late = _refusal_by(lambda: check_run(command, minor))
    if late is not None:
        before.insert(_end_of_validation(before), _finding_of(late))
    late = _refusal_by(lambda: check_creation(command, minor))
    if late is not None:
        before.append(_finding_of(late))
    odd = ignored_findings(loaded.ignored, minor)
    checked = checked._replace(before=[*odd, *before])
    ignored = [finding for finding, entry in zip(odd, loaded.ignored) if entry.member.problem == UNKNOWN]
    unknown = [*checked.unknown, *(Unknown(doubt.reason, doubt.where) for doubt in command.doubts)]
    unknown += [
        Unknown("it is not known whether a kubelet 1.%d has this gate" % minor, "featureGates.%s" % name)
        for name in unknown_gates(values.get("featureGates") or {}, host)
    ]
    doubt = drop_in_doubt(given.drop_ins, minor)
    unknown += [Unknown(doubt, given.config_dir)] if doubt else []
    return Prediction(checked.findings, unknown, checked, values, ignored)


def _gate_check(host: Host, removal: str) -> GateCheck:
    def refusal_of(gates: Mapping[str, bool]) -> Finding | None:
        if not gates:
            return None
        return gate_refusal(gates, host.minor, removal, host.warns_of_gates)

    return refusal_of


def _end_of_validation(findings: Sequence[Finding]) -> int:
    """Return the number of the findings until the kubelet begins to run."""
    from .validation import CONTEXT

    return max((number for number, finding in enumerate(findings, 1) if finding.context == CONTEXT), default=0)


def _refusal_by(check: Callable[[], None]) -> StartError | None:
    try:
        check()
    except StartError as refusal:
        return refusal
    return None


def _finding_of(refusal: StartError) -> Finding:
    finding = refused(refusal.text, refusal.cause, refusal.remedy, refusal.where)
    return finding._replace(context=refusal.context)


def _emptied(values: Mapping[str, Any], before: Mapping[str, Any]) -> frozenset[str]:
    """Return the fields that a flag gives an empty value; those of structs with a dot."""
    names = {name for name, value in values.items() if not value and before.get(name) != value}
    for name, struct in values.items():
        if isinstance(struct, dict) and struct != before.get(name):
            old = before.get(name) or {}
            names.update("%s.%s" % (name, key) for key, value in struct.items() if not value and old.get(key) != value)
    return frozenset(names)


def ignored_findings(ignored: Sequence[Ignored], minor: int) -> list[Finding]:
    """Return what of its files the kubelet 1.`minor` passes over."""
    if not ignored:
        return []
    from .loading import finding_of

    return [finding_of(entry, minor) for entry in ignored]


# The file that most kubelets have.
_USUAL = "/var/lib/kubelet/config.yaml"


def predict_values(values: Mapping[str, object], host: Host, path: str = _USUAL) -> Prediction:
    """Return what the kubelet would do with a file of this path that has these values, and nothing else."""
    prediction = predict_plain(values, host)
    if prediction is not None:
        return prediction
    # Imported here, as below: nearly all nodes have a plain file, and every import costs time on every node.
    from json import dumps

    # In the order in which the kubelet looks at the members of YAML.
    return predict_fully(GivenToKubelet((), dumps(values, sort_keys=True).encode("utf-8"), None, path), host)


def predict(given: GivenToKubelet, host: Host) -> Prediction:
    """Return what the kubelet would do, its managers' states left out; these come between checked.before and
    checked.after."""
    prediction = None
    if isinstance(given.file, bytes) and given.is_alone:
        values = plain_file(given.file)
        prediction = None if values is None else predict_plain(values, host)
    if prediction is not None:
        return prediction

    return predict_fully(given, host)


def predict_plain(values: Mapping[str, object], host: Host) -> Prediction | None:
    """Return what the kubelet would do with a file of these values; None where it takes the whole way to decide."""
    decoded = plain_values(values, host.minor)
    if decoded is None or decoded.get("featureGates"):
        return None

    checked = check_plain(decoded, host)
    return Prediction(checked.findings, checked.unknown, checked, decoded)

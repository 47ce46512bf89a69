# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

from typing import Any, Mapping, Sequence

import pytest

from ansible_collections.kubenode.cpu_manager.plugins.module_utils.kubelet.start.checks.eviction_defaults import (
    EVICTION_HARD,
)
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.kubelet.start.finding import Finding, refused
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.kubelet.start.loading.field_table import (
    KUBELET_CONFIGURATION,
)
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.kubelet.start.loading.file_state import (
    Absent,
    FileState,
)
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.kubelet.start.loading.load import (
    Ignored,
    Loaded,
    drop_in_order,
    load_configuration,
)
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.kubelet.start.loading.members import (
    DUPLICATE,
    SPELLING,
    UNKNOWN,
    Member,
)
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.kubelet.start.refusal import (
    StartError,
    UnpredictableError,
)

_HEAD = "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n"
_PATH, _DIR = "/var/lib/kubelet/config.yaml", "/var/lib/kubelet/config.conf.d"
_FILE_CONTEXT = "failed to load kubelet config file, path: %s, error: failed to load Kubelet config file %s, error " % (
    _PATH,
    _PATH,
)
_WALK = 'failed to merge kubelet configs: failed to walk through kubelet dropin directory "%s": ' % _DIR
_DROP_IN_CONTEXT = _WALK + "failed to load kubelet dropin file, path: %s/1.conf, " % _DIR
_MERGED_CONTEXT = "failed to merge kubelet configs: failed to unmarshal merged JSON into kubelet configuration: "
_PANIC = "panic: failed to merge global and in-flight KubeletConfiguration while setting defaults, error: "
_NO_HEAD = "couldn't get version/kind; json parse error: "
_STRUCT = 'struct { APIVersion string "json:\\"apiVersion,omitempty\\""; Kind string "json:\\"kind,omitempty\\"" }'


def _takes_all(_gates: Mapping[str, bool]) -> None:
    return None


def _load(
    text: str | FileState | None, *drop_ins: str | bytes, minor: int = 36, flag_gates: Mapping[str, bool] | None = None
) -> Loaded:
    """Load a file with a head, and drop-ins with a head, if there are any."""
    file = (_HEAD + text).encode() if isinstance(text, str) else text
    files = [
        ("%d.conf" % number, drop_in if isinstance(drop_in, bytes) else (_HEAD + drop_in).encode())
        for number, drop_in in enumerate(drop_ins, 1)
    ]
    return load_configuration(file, files or None, minor, _takes_all, _PATH, _DIR, flag_gates)


def _given(loaded: Loaded) -> dict[str, Any]:
    """What a file gives, without the head."""
    ignored = {"apiVersion", "kind", *loaded.defaulted}
    return {name: value for name, value in loaded.values.items() if name not in ignored}


def _refusal(file: str | FileState | None, *drop_ins: str | bytes, minor: int = 36) -> tuple[str, str]:
    with pytest.raises(StartError) as error:
        _load(file, *drop_ins, minor=minor)
    assert error.value.cause
    assert error.value.remedy
    return error.value.context, error.value.text


# --- the --config file ---


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (
            Absent.MISSING,
            'failed to read kubelet config file "%s", error: open %s: no such file or directory' % (_PATH, _PATH),
        ),
        (
            Absent.DIRECTORY,
            'failed to read kubelet config file "%s", error: read %s: is a directory' % (_PATH, _PATH),
        ),
        (b"", 'kubelet config file "%s" was empty' % _PATH),
        (b"# nothing\n", "failed to decode: Object 'Kind' is missing in '# nothing\n'"),
        (b"null\n", "failed to decode: Object 'Kind' is missing in 'null\n'"),
        (
            b"kind: KubeletConfiguration",
            "failed to decode: Object 'apiVersion' is missing in 'kind: KubeletConfiguration'",
        ),
        (
            b"kind: a\napiVersion: b/c/d\n",
            "failed to decode: unexpected GroupVersion string: b/c/d",
        ),
        (b"a: \xff\n", "failed to decode: yaml: invalid leading UTF-8 octet"),
        (b"a: b: c\n", "failed to decode: yaml: mapping values are not allowed in this context"),
        (b"[]", "failed to decode: %sjson: cannot unmarshal array into Go value of type %s" % (_NO_HEAD, _STRUCT)),
        (b"hello", "failed to decode: %sjson: cannot unmarshal string into Go value of type %s" % (_NO_HEAD, _STRUCT)),
        (
            b"kind: 5\napiVersion: 5\n",
            "failed to decode: %sjson: cannot unmarshal number into Go struct field .apiVersion of type string"
            % _NO_HEAD,
        ),
        (
            b'{"a": 1,}',
            "failed to decode: %sinvalid character '}' looking for beginning of object key string" % _NO_HEAD,
        ),
        (
            b"apiVersion: v1\nkind: Pod\n",
            (
                'failed to decode: no kind "Pod" is registered for version "v1" in scheme'
                ' "pkg/kubelet/apis/config/scheme/scheme.go:33"'
            ),
        ),
        (
            b"apiVersion: kubelet.config.k8s.io/v1alpha1\nkind: KubeletConfiguration\n",
            (
                'failed to decode: no kind "KubeletConfiguration" is registered for version'
                ' "kubelet.config.k8s.io/v1alpha1" in scheme "pkg/kubelet/apis/config/scheme/scheme.go:33"'
            ),
        ),
        (
            b"apiVersion: kubelet.config.k8s.io/v1\nkind: CredentialProviderConfig\n",
            (
                "failed to cast object to KubeletConfiguration, unexpected type: kubelet.config.k8s.io/v1,"
                " Kind=CredentialProviderConfig"
            ),
        ),
        (
            (_HEAD + "cpuManagerPolicy: 5\n").encode(),
            (
                "failed to decode: json: cannot unmarshal number into Go struct field"
                " KubeletConfiguration.cpuManagerPolicy of type string"
            ),
        ),
        ((_HEAD + "cpuManagerReconcilePeriod: null\n").encode(), 'failed to decode: time: invalid duration ""'),
    ],
)
def test_a_file_that_is_refused(content: FileState, text: str) -> None:
    assert _refusal(content) == (_FILE_CONTEXT, text)


def test_a_relative_path() -> None:
    with pytest.raises(StartError) as error:
        load_configuration(Absent.MISSING, None, 36, _takes_all, "etc/../k.yaml", "")
    assert (error.value.context, error.value.text, error.value.where) == (
        (
            "failed to load kubelet config file, path: etc/../k.yaml, error: failed to load Kubelet config file"
            " etc/../k.yaml, error "
        ),
        'failed to read kubelet config file "/k.yaml", error: open /k.yaml: no such file or directory',
        "/k.yaml",
    )


def test_kinds_of_other_versions() -> None:
    record = b"apiVersion: kubelet.config.k8s.io/v1alpha1\nkind: ImagePullIntent\n"
    assert "unexpected type" in _refusal(record, minor=33)[1]
    assert "no kind" in _refusal(record, minor=32)[1]


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (Absent.UNREADABLE, "it cannot be read here"),
        (b"k8s\0\x01", "it begins like a file in protobuf"),
        (
            b"apiVersion: kubelet.config.k8s.io/__internal\nkind: KubeletConfiguration\n",
            "its apiVersion is the kubelet's internal one",
        ),
        ((_HEAD + "a: " + "[" * 60 + "]" * 60).encode(), "line 3, column 53: more than 50 collections in each other"),
    ],
)
def test_a_file_of_which_nothing_can_be_told(content: FileState, reason: str) -> None:
    with pytest.raises(UnpredictableError) as error:
        load_configuration(content, None, 36, _takes_all, _PATH, _DIR)
    assert (error.value.reason, error.value.where) == (reason, _PATH)


@pytest.mark.parametrize(
    "content",
    [
        (_HEAD + "maxPods: 110.0\n").encode(),
        b"\xff\xfe" + (_HEAD + "maxPods: 110\n").encode("utf-16-le"),
        b' {"apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration", "maxPods": 110}',
        b"Kind: KubeletConfiguration\napiVersion: kubelet.config.k8s.io/v1beta1\nmaxPods: 110\n",
    ],
)
def test_a_file_that_is_read(content: bytes) -> None:
    assert _given(_load(content)) == {"maxPods": 110}


def test_what_does_not_count_in_a_file() -> None:
    assert _load("fooBar: 1\nmaxPods: 1\nmaxPods: 2\n").ignored == (
        Ignored(
            _PATH, Member(DUPLICATE, "", "", ""), 'strict decoding error: line 5: key "maxPods" already set in map'
        ),
        Ignored(
            _PATH,
            Member(UNKNOWN, "fooBar", "fooBar", KUBELET_CONFIGURATION),
            'strict decoding error: unknown field "fooBar"',
        ),
    )
    json = (
        b'{"apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration", "maxPods": 1, "maxPods": 2}'
    )
    assert _load(json).ignored == (
        Ignored(
            _PATH,
            Member(DUPLICATE, "maxPods", "maxPods", KUBELET_CONFIGURATION, "maxPods"),
            'strict decoding error: duplicate field "maxPods"',
        ),
    )


@pytest.mark.parametrize(
    ("text", "hard", "is_default"),
    [
        ("", EVICTION_HARD, True),
        ("evictionHard: null", EVICTION_HARD, True),
        ("evictionHard: {}", {}, False),
        ("evictionHard: {memory.available: 1Gi}", {"memory.available": "1Gi"}, False),
        (
            "evictionHard: {memory.available: 1Gi}\nmergeDefaultEvictionSettings: true",
            {**EVICTION_HARD, "memory.available": "1Gi"},
            False,
        ),
    ],
)
def test_the_default_thresholds_of_a_file(text: str, hard: Mapping[str, str], is_default: bool) -> None:
    loaded = _load(text)
    assert loaded.values["evictionHard"] == hard
    assert ("evictionHard" in loaded.defaulted) == is_default


_RESTARTS = {"maxContainerRestartPeriod": 300 * 10**9}


@pytest.mark.parametrize(
    ("text", "minor", "flag_gates", "restarts", "policy"),
    [
        ("", 34, {}, None, None),
        ("", 35, {}, _RESTARTS, "NeverVerifyPreloadedImages"),
        ("featureGates: {KubeletCrashLoopBackOffMax: false}", 35, {}, None, "NeverVerifyPreloadedImages"),
        ("", 34, {"KubeletCrashLoopBackOffMax": True}, _RESTARTS, None),
        # The file's gate counts, although the flag's will in the end.
        (
            "featureGates: {KubeletCrashLoopBackOffMax: true}",
            34,
            {"KubeletCrashLoopBackOffMax": False},
            _RESTARTS,
            None,
        ),
        (
            "crashLoopBackOff: {maxContainerRestartPeriod: 0s}\nimagePullCredentialsVerificationPolicy: NeverVerify",
            36,
            {},
            {"maxContainerRestartPeriod": 0},
            "NeverVerify",
        ),
    ],
)
def test_defaults_that_depend_on_a_gate(
    text: str, minor: int, flag_gates: Mapping[str, bool], restarts: Any, policy: str | None
) -> None:
    values = _load(text, minor=minor, flag_gates=flag_gates).values
    assert values.get("crashLoopBackOff") == restarts
    assert values.get("imagePullCredentialsVerificationPolicy") == policy


def test_without_a_file() -> None:
    loaded = _load(None, minor=34)
    assert loaded == Loaded(
        {
            "authentication": {"anonymous": {"enabled": True}, "webhook": {"enabled": False}},
            "authorization": {"mode": "AlwaysAllow"},
            "evictionHard": {},
            "readOnlyPort": 10255,
        },
        (),
        frozenset(("authentication", "authorization", "evictionHard", "readOnlyPort")),
    )
    merged = _load(None, "authentication: {webhook: {cacheTTL: 1m}}\nmaxPods: 5\n", minor=34)
    assert merged.values["authentication"]["anonymous"] == {"enabled": True}
    assert merged.values["authentication"]["webhook"] == {"enabled": False, "cacheTTL": 60 * 10**9}
    assert (merged.values["maxPods"], merged.values["evictionHard"]) == (5, {})


# --- feature gates ---


class _Gates:
    """Refuses a gate X that is off, and keeps what it is given."""

    def __init__(self) -> None:
        self.given: list[Mapping[str, bool]] = []

    def __call__(self, gates: Mapping[str, bool]) -> Finding | None:
        self.given.append(gates)
        if gates.get("X", True):
            return None
        return refused("cannot set feature gate X to false", "the cause", "the remedy", "featureGates.X")


@pytest.mark.parametrize(
    ("text", "drop_ins", "given"),
    [
        ("featureGates: {X: false}", ["featureGates: {X: true}"], [{"F": True, "X": False}]),
        ("", ["featureGates: {X: false}"], [{"F": True}, {"F": True, "X": False}]),
    ],
)
def test_gates_are_checked_before_a_drop_in_is_read(
    text: str, drop_ins: Sequence[str], given: list[Mapping[str, bool]]
) -> None:
    gates = _Gates()
    files = [("1.conf", (_HEAD + drop_in).encode()) for drop_in in drop_ins]
    with pytest.raises(StartError) as error:
        load_configuration((_HEAD + text).encode(), files, 36, gates, _PATH, _DIR, {"F": True})
    assert (error.value.context, error.value.text) == (_PANIC, "cannot set feature gate X to false")
    assert (error.value.cause, error.value.remedy, error.value.where) == ("the cause", "the remedy", "featureGates.X")
    assert gates.given == given


def test_of_two_drop_ins_only_the_merge_is_checked() -> None:
    gates = _Gates()
    files = [
        ("1.conf", (_HEAD + "featureGates: {X: false}").encode()),
        ("2.conf", (_HEAD + "featureGates: {X: null}").encode()),
    ]
    load_configuration(_HEAD.encode(), files, 36, gates, _PATH, _DIR)
    assert gates.given == [{}, {}]


# --- drop-ins ---


@pytest.mark.parametrize(
    ("text", "drop_ins", "values"),
    [
        ("maxPods: 5", ["cpuManagerPolicy: none"], {"maxPods": 5, "cpuManagerPolicy": "none"}),
        ("", ["cpuManagerPolicy: 5", "cpuManagerPolicy: none"], {"cpuManagerPolicy": "none"}),
        ("maxPods: 5", ["maxPods: null"], {}),
        (
            "kubeReserved: {cpu: x, memory: 1Gi}",
            ["kubeReserved: {cpu: null}\nsystemReserved: {pid: '1', cpu: null}"],
            {"kubeReserved": {"memory": "1Gi"}, "systemReserved": {"pid": "1"}},
        ),
        # The default, or the file's value, is later in byte order than a spelling that begins in upper case.
        ("", ["CPUManagerPolicy: foo"], {"cpuManagerPolicy": "none"}),
        ("", ["cpumanagerpolicy: foo"], {"cpuManagerPolicy": "foo"}),
        ("kubeReserved: {cpu: '1'}", ["KubeReserved: {memory: x}"], {"kubeReserved": {"cpu": "1", "memory": "x"}}),
        # An empty list is lost on the way.
        ("enforceNodeAllocatable: []", ["maxPods: 5"], {"enforceNodeAllocatable": ["pods"], "maxPods": 5}),
        ("cpuCFSQuota: false", ["maxPods: 5.0"], {"cpuCFSQuota": False, "maxPods": 5}),
        (
            "reservedMemory: [{numaNode: 0, limits: {memory: 1Gi}}]",
            ["reservedMemory: [{numaNode: 1, limits: {memory: null}}]"],
            {"reservedMemory": [{"numaNode": 1, "limits": {"memory": "0"}}]},
        ),
        (
            "cpuManagerReconcilePeriod: 1h30m",
            [b'{"apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration", "maxPods": 7.0}'],
            {"cpuManagerReconcilePeriod": 5400 * 10**9, "maxPods": 7},
        ),
    ],
)
def test_drop_ins(text: str, drop_ins: Sequence[str | bytes], values: dict[str, Any]) -> None:
    assert _given(_load(text, *drop_ins)) == values


@pytest.mark.parametrize(
    ("text", "drop_in", "field", "value"),
    [
        ("", "maxParallelImagePulls: 5", "serializeImagePulls", True),
        ("maxParallelImagePulls: 5", "maxPods: 5", "serializeImagePulls", False),
        ("", "nodeStatusUpdateFrequency: 1m", "nodeStatusReportFrequency", 300 * 10**9),
        ("nodeStatusUpdateFrequency: 1m", "maxPods: 5", "nodeStatusReportFrequency", 60 * 10**9),
        ("", "featureGates: {KubeletCrashLoopBackOffMax: false}", "crashLoopBackOff", _RESTARTS),
        (
            "",
            "evictionHard: {memory.available: 1Gi}",
            "evictionHard",
            {**EVICTION_HARD, "memory.available": "1Gi"},
        ),
        ("evictionHard: {}", "evictionHard: {pid.available: 1%}", "evictionHard", {"pid.available": "1%"}),
        ("evictionHard: {}", "maxPods: 5", "evictionHard", {}),
        ("", "evictionHard: null", "evictionHard", {}),
    ],
)
def test_defaults_that_are_there_before_a_merge(text: str, drop_in: str, field: str, value: Any) -> None:
    assert _load(text, drop_in).values[field] == value


def test_a_default_that_is_not_there() -> None:
    loaded = _load("", "maxPods: 5", minor=34)
    assert set(loaded.values) == {
        "apiVersion", "kind", "maxPods", "evictionHard", "nodeStatusReportFrequency", "serializeImagePulls",
    }  # fmt: skip
    assert loaded.defaulted == {"evictionHard", "nodeStatusReportFrequency", "serializeImagePulls"}


@pytest.mark.parametrize(
    ("content", "context", "text"),
    [
        (b"", "error: ", 'kubelet config file "%s/1.conf" was empty' % _DIR),
        (b"# c\n", "error: ", "Object 'Kind' is missing in '# c\n'"),
        (b"Kind: KubeletConfiguration\n", "error: ", "Object 'Kind' is missing in 'Kind: KubeletConfiguration\n'"),
        (b"a: [\n", "error: ", "yaml: line 1: did not find expected node content"),
        (b"[]", "error: ", "%sjson: cannot unmarshal array into Go value of type %s" % (_NO_HEAD, _STRUCT)),
        (b"{", "error: ", _NO_HEAD + "unexpected end of JSON input"),
        (b'{"a": 1e999}', "error: ", "json: cannot unmarshal number 1e999 into Go value of type float64"),
        (b"apiVersion: v1\nkind: Pod\n", "", "unknown apiVersion/kind: /v1, Kind=Pod"),
        (b"kind: KubeletConfiguration\n", "", "unknown apiVersion/kind: /, Kind=KubeletConfiguration"),
        (
            (_HEAD + "maxPods: 1\nmaxPods: 2\nmaxPods: 3\n").encode(),
            "error: ",
            (
                'strict decoding error: yaml: unmarshal errors:\n  line 4: key "maxPods" already set in map\n'
                '  line 5: key "maxPods" already set in map'
            ),
        ),
        (
            b'{"kind": "X", "a": {"b": 1, "b": 2}, "kind": "X"}',
            "error: ",
            'strict decoding error: duplicate field "a.b", duplicate field "kind"',
        ),
    ],
)
def test_a_drop_in_that_is_refused(content: bytes, context: str, text: str) -> None:
    assert _refusal("", content) == (_DROP_IN_CONTEXT + context, text)


@pytest.mark.parametrize(
    ("drop_in", "text"),
    [
        (
            "cpuManagerPolicy: 5",
            "json: cannot unmarshal number into Go struct field KubeletConfiguration.cpuManagerPolicy of type string",
        ),
        (
            "cpumanagerreconcileperiod: 5",
            (
                "json: cannot unmarshal number into Go struct field KubeletConfiguration.cpuManagerReconcilePeriod of"
                " type string"
            ),
        ),
    ],
)
def test_a_merge_that_is_refused(drop_in: str, text: str) -> None:
    assert _refusal("", drop_in) == (_MERGED_CONTEXT, text)


@pytest.mark.parametrize(
    ("state", "text"),
    [
        (Absent.MISSING, "open %s/1.conf: no such file or directory" % _DIR),
        (Absent.DIRECTORY, "read %s/1.conf: is a directory" % _DIR),
    ],
)
def test_a_drop_in_that_cannot_be_read(state: Absent, text: str) -> None:
    with pytest.raises(StartError) as error:
        load_configuration(_HEAD.encode(), [("1.conf", state)], 36, _takes_all, _PATH, _DIR + "/")
    assert error.value.text == 'failed to read drop-in kubelet config file "%s/1.conf", error: %s' % (_DIR, text)


def test_a_directory_that_is_not_there() -> None:
    with pytest.raises(StartError) as error:
        load_configuration(_HEAD.encode(), Absent.MISSING, 36, _takes_all, _PATH, "/nonexistent")
    assert (error.value.context, error.value.text) == (
        'failed to merge kubelet configs: failed to walk through kubelet dropin directory "/nonexistent": ',
        "lstat /nonexistent: no such file or directory",
    )


def test_a_directory_of_which_nothing_can_be_told() -> None:
    with pytest.raises(UnpredictableError) as error:
        load_configuration(_HEAD.encode(), Absent.UNREADABLE, 36, _takes_all, _PATH, _DIR)
    assert (error.value.reason, error.value.where) == ("it cannot be read here", _DIR)


def test_what_does_not_count_in_a_drop_in() -> None:
    loaded = _load("", "fooBar: 1\nCPUManagerPolicy: foo")
    file = _DIR + "/1.conf"
    assert loaded.ignored == (
        Ignored(
            file,
            Member(SPELLING, "CPUManagerPolicy", "CPUManagerPolicy", KUBELET_CONFIGURATION, "cpuManagerPolicy"),
            "",
        ),
        Ignored(file, Member(UNKNOWN, "fooBar", "fooBar", KUBELET_CONFIGURATION), ""),
    )


def test_the_order_of_drop_ins() -> None:
    names = ["20.conf", "10.conf", "9.conf", "a-b.conf", "a/1.conf", "a.CONF", "B.conf", ".conf", "x.yaml", "y.conf.d"]
    assert drop_in_order(names) == [".conf", "10.conf", "20.conf", "9.conf", "B.conf", "a/1.conf", "a-b.conf"]

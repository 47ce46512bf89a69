# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The kubelet's configuration from the bytes of its --config file and of its drop-ins, or its refusal of them.

The file is decoded, gets its defaults and has its feature gates checked before a drop-in is read. Drop-ins are JSON
merge patches to the JSON of all that, which is then decoded once more.
Source: cmd/kubelet/app/server.go (loadConfigFile, mergeKubeletConfigurations); pkg/kubelet/kubeletconfig;
k8s.io/apimachinery/pkg/runtime/serializer (json, recognizer).
"""

from __future__ import annotations

from difflib import get_close_matches
from enum import Enum
from posixpath import normpath
from typing import TYPE_CHECKING, Any, Callable, Iterator, Mapping, NamedTuple, Optional, Sequence, Union

from ..._base.errors import GoError
from ..._base.golang import Number, Object, quote, read_json
from ..configuration import EVICTION_HARD, is_json, merge_patch
from ..distributions import DROP_IN_SINCE, DROP_IN_SUFFIX
from ..yaml import read
from ..yaml_nodes import ReadError
from .amount import duration_text
from .decode import (
    DEFAULTS,
    DEFAULTS_WITHOUT_FILE,
    DURATION,
    FAIL_CGROUP_V1_SINCE,
    GROUP,
    KINDS,
    KUBELET_CONFIGURATION,
    LIST,
    MAP,
    STRUCT,
    STRUCTS,
    DecodeError,
    GoType,
    decode_file,
    decode_merged,
    find_field,
    fold,
    is_object,
    kind_of,
    pairs,
)
from .findings import Finding, StartError, UnpredictableError, harmful

# What there is in the place of a kubelet's file, or of its directory of drop-ins.


class Absent(Enum):
    """Why a file or a directory has no content to read."""

    MISSING = "no such file or directory"
    DIRECTORY = "is a directory"
    UNREADABLE = "it cannot be read here"


FileState = Union[bytes, Absent]
# What is found below --config-dir: paths relative to it.
DropIns = Union[Sequence["tuple[str, FileState]"], Absent]


# The JSON that drop-ins are merged into.
#
# Its source: cmd/kubelet/app/server.go (mergeKubeletConfigurations), encoding/json (omitempty).


_MAX_DEPTH = 64
_MAX_DUPLICATES = 100

# A place in a tree: (the place that it is in, its key or index).
_Place = Union["tuple[Any, Any]", None]


def plain(value: object, place: _Place, found: list[str], depth: int, path: str) -> Any:
    """Return a JSON value as Go has it in maps and lists. Adds what a strict decoder says of keys that are there twice.

    Raises DecodeError, and UnpredictableError for the file at `path`.
    """
    if depth > _MAX_DEPTH:
        raise UnpredictableError("more than %d collections in each other" % _MAX_DEPTH, path)
    if isinstance(value, Object):
        members: dict[str, Any] = {}
        for key, item in value:
            if key in members and len(found) < _MAX_DUPLICATES:
                text = "duplicate field " + quote("".join(_steps((place, key))).lstrip("."))
                found += [text] if text not in found else []
            members[key] = plain(item, (place, key), found, depth + 1, path)
        return members
    if isinstance(value, list):
        return [plain(item, (place, number), found, depth + 1, path) for number, item in enumerate(value)]
    if isinstance(value, Number):
        return _number(value)
    return value


def _steps(place: _Place) -> Iterator[str]:
    if place is not None:
        outer, key = place
        yield from _steps(outer)
        yield "[%d]" % key if isinstance(key, int) else "." + key


def _number(number: Number) -> int | float:
    if len(number) < 20 and not set(number) - set("-0123456789"):
        return int(number)
    value = float(number)
    if abs(value) == float("inf"):
        text = "json: cannot unmarshal number %s into Go value of type float64" % number
        raise DecodeError(text, "", "a number is out of range", "correct it")
    return value


def encoded(struct: str, values: Mapping[str, object]) -> dict[str, Any]:
    """Return what Go makes JSON of: without what is empty, unless it is a pointer or a struct."""
    members: dict[str, object] = {}
    for name, value in values.items():
        field = STRUCTS[struct][name]
        if value or field.is_pointer or field.type.kind == STRUCT:
            members[name] = _encoded_value(field.type, value)
    return members


def _encoded_value(kind: GoType, value: Any) -> object:
    if kind.kind == DURATION:
        return duration_text(value)
    return encoded(kind.struct, value) if kind.kind == STRUCT else value


def filled(base: Mapping[str, Any], defaults: Mapping[str, Any]) -> dict[str, Any]:
    """Return the JSON with defaults where it has nothing."""
    members = dict(base)
    for name, default in defaults.items():
        if name not in members:
            members[name] = default
        elif isinstance(default, dict) and isinstance(members[name], dict):
            members[name] = filled(members[name], default)
    return members


# The members of a configuration that do not count, or not as they may be meant to.
#
# Its source: sigs.k8s.io/json (kubernetes_patch.go): what its strict decoder lists, encoding/json (decode.go).


UNKNOWN, DUPLICATE, SPELLING = "unknown", "duplicate", "spelling"

# As many as Go lists.
_MOST = 100


class OddMember(NamedTuple):
    """A member that is odd.

    `problem`: no field has its name; its object has it already; or, where upper and lower case do not count, it is
    a `field` in another spelling, of which several may be there. `struct` is the Go struct that it is in.
    """

    problem: str
    path: str
    key: str
    struct: str
    field: str = ""


def odd_members(tree: object, minor: int, folds: bool) -> list[OddMember]:
    """Return the odd members of a configuration, in its order. `folds`: upper and lower case do not count."""
    members = _Walk(minor, folds).struct(KUBELET_CONFIGURATION, tree, "")
    return [member for member, _number in zip(members, range(_MOST))]


class _Walk:
    """A walk through a configuration, as deep as Go's types are."""

    def __init__(self, minor: int, folds: bool) -> None:
        self.minor = minor
        self.folds = folds

    def struct(self, struct: str, value: Any, path: str) -> Iterator[OddMember]:
        prefix = path + "." if path else ""
        seen = set()
        for key, item in pairs(value):
            name = find_field(struct, key, self.minor, self.folds)
            if name is None:
                yield OddMember(UNKNOWN, prefix + key, key, struct)
                continue
            if key in seen:
                yield OddMember(DUPLICATE, prefix + key, key, struct, name)
            elif name != key:
                yield OddMember(SPELLING, prefix + key, key, struct, name)
            seen.add(key)
            yield from self._value(STRUCTS[struct][name].type, item, prefix + name)

    def _value(self, kind: GoType, value: object, path: str) -> Iterator[OddMember]:
        if kind.kind == STRUCT and is_object(value):
            yield from self.struct(kind.struct, value, path)
        elif kind.kind == LIST and isinstance(value, list) and not is_object(value):
            for number, item in enumerate(value):
                yield from self._value(kind.item, item, "%s[%d]" % (path, number))
        elif kind.kind == MAP and isinstance(value, Object):
            seen = set()
            for key, _item in value:
                if key in seen:
                    yield OddMember(DUPLICATE, "%s.%s" % (path, key), key, "")
                seen.add(key)


if TYPE_CHECKING:
    from .findings import Finding

    # The refusal of these feature gates; None where the kubelet takes them.
    GateCheck = Callable[[Mapping[str, bool]], Optional[Finding]]


class Ignored(NamedTuple):
    """A member of a file that does not count, or not as it may be meant to. `text` is what the kubelet logs of it."""

    file: str
    member: OddMember
    text: str


class Loaded(NamedTuple):
    """What the kubelet has before its flags come over it.

    `values`: what is given, by the names of the fields, and those defaults that do not depend on what is found in the
    end: they were filled in before drop-ins and flags came over them, and are given like any other value then.
    `defaulted` names the latter.
    """

    values: dict[str, Any]
    ignored: tuple[Ignored, ...]
    defaulted: frozenset[str]


_DECODE = "failed to decode: "
_MERGE = "failed to merge kubelet configs: "
_PANIC = "panic: failed to merge global and in-flight KubeletConfiguration while setting defaults, error: "
_STRICT = "strict decoding error: "
# Longer names are cut off.
_MOST_SHOWN = 1000

_BROKEN = "it is no YAML or JSON that the kubelet can read"
_REPAIR = "repair the file"
_OTHER_FILE = "name the file that has apiVersion: %s/v1beta1 and kind: %s" % (GROUP, KUBELET_CONFIGURATION)
_PUT_HEAD = "begin it with apiVersion: %s/v1beta1 and kind: %s" % (GROUP, KUBELET_CONFIGURATION)

_SCHEME = 'in scheme "pkg/kubelet/apis/config/scheme/scheme.go:33"'
_HEAD_TYPE = 'struct { APIVersion string "json:\\"apiVersion,omitempty\\""; Kind string "json:\\"kind,omitempty\\"" }'
_NO_HEAD = "couldn't get version/kind; json parse error: "
_PROTOBUF = b"k8s\0"

# What YAML makes of a key such as true or yes, and since when it is no name of a gate. As kubelets were seen to do it.
_SWITCHES, _SWITCHES_ARE_NO_GATES = frozenset(("true", "false")), 36

_CRASH_LOOP, _PULL_POLICY = "crashLoopBackOff", "imagePullCredentialsVerificationPolicy"


def load_configuration(
    file: FileState | None,
    drop_ins: DropIns | None,
    minor: int,
    gate_check: GateCheck,
    path: str,
    config_dir: str,
    flag_gates: Mapping[str, bool] | None = None,
) -> Loaded:
    """Return what the kubelet 1.`minor` makes of its files. Raises StartError or UnpredictableError.

    `file` is None without --config, `drop_ins` None without --config-dir; `path` and `config_dir` are what these
    flags give. `flag_gates` are the gates that --feature-gates gives: they are set before any file is read.
    """
    loading = _Loading(minor, gate_check, flag_gates or {})
    if file is None:
        loading.without_file()
    else:
        loading.load_file(file, path)
    if drop_ins is not None:
        loading.merge(drop_ins, config_dir)
    return Loaded(loading.values, tuple(loading.ignored), frozenset(loading.defaulted))


def drop_in_order(names: Sequence[str]) -> list[str]:
    """Return the paths below --config-dir that count, in the order in which the kubelet walks through them."""
    chosen = [name for name in names if name.endswith(DROP_IN_SUFFIX)]
    return sorted(chosen, key=lambda name: [part.encode("utf-8", "surrogateescape") for part in name.split("/")])


# Before this minor version the directory is an experiment that a variable allows.
_DIRECTORY_SINCE = 30


def drop_in_doubt(drop_ins: DropIns | None, minor: int) -> str:
    """Return what is not known of how the kubelet 1.`minor` takes these drop-ins; "" where all is known."""
    if drop_ins is None or isinstance(drop_ins, Absent) or minor >= DROP_IN_SINCE:
        return ""
    if minor < _DIRECTORY_SINCE:
        text = "a kubelet 1.%d takes --config-dir only with KUBELET_CONFIG_DROPIN_DIR_ALPHA in its environment"
        return text % minor
    names = drop_in_order([name for name, _state in drop_ins])
    return "a kubelet 1.%d merges drop-ins in a way that is not known in full" % minor if names else ""


class _Loading:
    """One load: `values` are what is given so far, `defaulted` those of them that no file gave."""

    def __init__(self, minor: int, gate_check: GateCheck, flag_gates: Mapping[str, bool]) -> None:
        self.minor = minor
        self.gate_check = gate_check
        self.flag_gates = flag_gates
        self.values: dict[str, Any] = {}
        self.ignored: list[Ignored] = []
        self.defaulted: set[str] = set()
        self.legacy: Mapping[str, Any] = {}

    # --- the --config file ---

    def without_file(self) -> None:
        self.legacy = DEFAULTS_WITHOUT_FILE
        self.values = decode_merged(DEFAULTS_WITHOUT_FILE, self.minor)
        # The default thresholds belong to files only.
        self.values["evictionHard"] = {}
        self.defaulted.update(self.values)
        self._set_gated_defaults({})

    def load_file(self, file: FileState, path: str) -> None:
        context = "failed to load kubelet config file, path: %s, error: " % path
        context += "failed to load Kubelet config file %s, error " % path
        absolute = _absolute(path)
        content = _content(file, absolute, context, 'failed to read kubelet config file "%s", error: ' % absolute)
        tree, duplicates = _read(content, absolute, context, _DECODE)
        self._check_head(tree, content, absolute, context)
        try:
            self.values = decode_file(tree, self.minor)
        except DecodeError as error:
            raise StartError(
                _DECODE + error.text, error.cause, error.remedy, error.where or absolute, context
            ) from error
        self._note(tree, False, absolute, duplicates)
        gates = self.values.get("featureGates", {})
        if self.minor >= _SWITCHES_ARE_NO_GATES and not _SWITCHES.isdisjoint(gates):
            gates = self.values["featureGates"] = {name: on for name, on in gates.items() if name not in _SWITCHES}
        self._check_gates(gates)
        self._set_gated_defaults({**self.flag_gates, **gates})
        self._set_eviction_defaults()

    def _check_head(self, tree: object, content: bytes, path: str, context: str) -> None:
        """Check that this is a KubeletConfiguration."""
        version, kind = _head(tree, path, context, _DECODE)
        group, _slash, short = version.rpartition("/")
        for what, name in ((kind, "Kind"), (short, "apiVersion")):
            if not what:
                text = "%sObject '%s' is missing in '%s'" % (_DECODE, name, content.decode("utf-8", "replace"))
                raise StartError(text, "it is no object of Kubernetes", _PUT_HEAD, path, context)
        if short == "__internal":
            raise UnpredictableError("its apiVersion is the kubelet's internal one", path)
        is_registered = group == GROUP and KINDS.get(short, {}).get(kind, self.minor + 1) <= self.minor
        if not is_registered:
            shown = quote(version if group else short)
            text = "%sno kind %s is registered for version %s %s" % (_DECODE, quote(kind), shown, _SCHEME)
            raise StartError(text, "it is a %s of %s" % (kind, version), _OTHER_FILE, path, context)
        if kind != KUBELET_CONFIGURATION:
            text = "failed to cast object to KubeletConfiguration, unexpected type: %s, Kind=%s" % (version, kind)
            raise StartError(text, "it is a %s" % kind, _OTHER_FILE, path, context)

    def _check_gates(self, gates: Mapping[str, bool]) -> None:
        found = self.gate_check({**self.flag_gates, **gates})
        if found is not None:
            raise StartError(found.text, found.cause, found.remedy, found.where, _PANIC)

    def _set_gated_defaults(self, gates: Mapping[str, bool]) -> None:
        """Set defaults that depend on a gate: they stay where a drop-in or a flag turns the gate off."""
        for name, default in _gated_defaults(gates, self.minor).items():
            # An empty text, or struct, counts as none.
            if not self.values.get(name):
                self.values[name] = default
                self.defaulted.add(name)

    def _set_eviction_defaults(self) -> None:
        given = self.values.get("evictionHard")
        if given is None:
            self.values["evictionHard"] = dict(EVICTION_HARD)
            self.defaulted.add("evictionHard")
        elif self.values.get("mergeDefaultEvictionSettings"):
            self.values["evictionHard"] = {**EVICTION_HARD, **given}

    def _note(self, tree: object, is_drop_in: bool, file: str, duplicates: Sequence[str] = ()) -> None:
        """Note what does not count; in a drop-in, the kubelet says nothing of it."""
        self.ignored += [Ignored(file, OddMember(DUPLICATE, "", "", ""), _STRICT + text) for text in duplicates]
        for member in odd_members(tree, self.minor, is_drop_in):
            shown = quote(member.path[:_MOST_SHOWN])
            what = "%s field %s" % ("unknown" if member.problem == UNKNOWN else "duplicate", shown)
            self.ignored.append(Ignored(file, member, "" if is_drop_in else _STRICT + what))

    # --- drop-ins ---

    def merge(self, drop_ins: DropIns, config_dir: str) -> None:
        context = '%sfailed to walk through kubelet dropin directory "%s": ' % (_MERGE, config_dir)
        if isinstance(drop_ins, Absent):
            if drop_ins is not Absent.MISSING:
                raise UnpredictableError(drop_ins.value, config_dir)
            text = "lstat %s: %s" % (config_dir, drop_ins.value)
            cause, remedy = "--config-dir names a directory that is not there", "make it, or remove --config-dir"
            raise StartError(text, cause, remedy, config_dir, context)
        merged = self._base()
        given = set(self.values) - self.defaulted
        states = dict(drop_ins)
        for name in drop_in_order(list(states)):
            path = _clean("%s/%s" % (config_dir, name))
            tree = self._drop_in(states[name], path, context + "failed to load kubelet dropin file, path: %s, " % path)
            merged = merge_patch(merged, tree)
            folded = {fold(key) for key in tree}
            given |= {field for field in STRUCTS[KUBELET_CONFIGURATION] if fold(field) in folded}
        context = _MERGE + "failed to unmarshal merged JSON into kubelet configuration: "
        try:
            values = decode_merged(merged, self.minor)
        except DecodeError as error:
            raise StartError(error.text, error.cause, error.remedy, error.where, context) from error
        gates = values.get("featureGates", {})
        self._check_gates(gates)
        self._keep(values, given)
        self._set_gated_defaults({**self.flag_gates, **gates})

    def _keep(self, values: dict[str, Any], given: set[str]) -> None:
        """Keep, of what is merged, what is given, and of the defaults those that now count as given."""
        fixed = {"serializeImagePulls", "nodeStatusReportFrequency", "evictionHard", _CRASH_LOOP, _PULL_POLICY}
        fixed |= set(self.legacy)
        # Nothing fills these thresholds in again.
        values.setdefault("evictionHard", {})
        self.values = {name: value for name, value in values.items() if name in given or name in fixed}
        if not values.get(_CRASH_LOOP):
            self.values.pop(_CRASH_LOOP, None)
        self.defaulted = {name for name in self.values if name not in given}

    def _drop_in(self, state: FileState, path: str, context: str) -> dict[str, Any]:
        """Return what a drop-in has, checked as the kubelet checks it."""
        error = context + "error: "
        absolute = _absolute(path)
        content = _content(
            state, absolute, error, 'failed to read drop-in kubelet config file "%s", error: ' % absolute
        )
        tree, duplicates = _read(content, absolute, error, "")
        _head(tree, absolute, error, "")
        found: list[str] = []
        try:
            members: dict[str, Any] = plain(tree, None, found, 0, absolute) if is_object(tree) else {}
        except DecodeError as fault:
            raise StartError(fault.text, fault.cause, fault.remedy, absolute, error) from fault
        version, kind = members.get("apiVersion") or "", members.get("kind") or ""
        if not kind:
            text = "Object 'Kind' is missing in '%s'" % content.decode("utf-8", "replace")
            raise StartError(text, "it has no kind", _PUT_HEAD, absolute, error)
        if duplicates:
            found.insert(0, "yaml: unmarshal errors:\n" + "\n".join("  " + text for text in duplicates))
        if found:
            text = _STRICT + ", ".join(found)
            cause = "a key is there twice, which the kubelet refuses in a drop-in"
            raise StartError(text, cause, "keep it once", absolute, error)
        if (version, kind) != (GROUP + "/v1beta1", KUBELET_CONFIGURATION):
            group, _slash, short = version.rpartition("/")
            text = "unknown apiVersion/kind: %s/%s, Kind=%s" % (group, short, kind)
            raise StartError(text, "it is no KubeletConfiguration of v1beta1", _PUT_HEAD, absolute, context)
        self._note(members, True, absolute)
        return members

    def _base(self) -> dict[str, Any]:
        """Return the JSON that drop-ins are merged into: what is given and all defaults."""
        base = encoded(KUBELET_CONFIGURATION, self.values)
        defaults = {**DEFAULTS, "failCgroupV1": self.minor >= FAIL_CGROUP_V1_SINCE}
        frequency = base.get("nodeStatusUpdateFrequency", "0s")
        if frequency != "0s":
            defaults["nodeStatusReportFrequency"] = frequency
        if base.get("maxParallelImagePulls", 1) >= 2:
            defaults["serializeImagePulls"] = False
        return filled(base, defaults)


def _gated_defaults(gates: Mapping[str, bool], minor: int) -> dict[str, object]:
    from ..gates import Gates

    there = Gates(gates, minor)
    defaults: dict[str, Any] = {}
    if there.enabled("KubeletCrashLoopBackOffMax"):
        defaults[_CRASH_LOOP] = {"maxContainerRestartPeriod": 300 * 10**9}
    if there.enabled("KubeletEnsureSecretPulledImages"):
        defaults[_PULL_POLICY] = "NeverVerifyPreloadedImages"
    return defaults


# --- files ---------------------------------------------------------------------------------------------------


def _clean(path: str) -> str:
    return "/" + normpath(path).lstrip("/") if path.startswith("/") else normpath(path)


def _absolute(path: str) -> str:
    """Return the path, where the kubelet runs in the root directory."""
    return _clean(path if path.startswith("/") else "/" + path)


def _content(file: FileState, path: str, context: str, prefix: str) -> bytes:
    if isinstance(file, Absent):
        if file is Absent.UNREADABLE:
            raise UnpredictableError(file.value, path)
        call = "open" if file is Absent.MISSING else "read"
        text = "%s%s %s: %s" % (prefix, call, path, file.value)
        cause = "the file is not there" if file is Absent.MISSING else "it is a directory"
        raise StartError(text, cause, "name a file, or write it", path, context)
    if not file:
        text = 'kubelet config file "%s" was empty' % path
        raise StartError(text, "the file is empty", _PUT_HEAD, path, context)
    return file


def _read(content: bytes, path: str, context: str, prefix: str) -> tuple[Any, list[str]]:
    """Return the tree of a file, and what the kubelet says of the keys that are there twice in YAML."""
    if content.startswith(_PROTOBUF):
        raise UnpredictableError("it begins like a file in protobuf", path)
    if content[:2] not in (b"\xff\xfe", b"\xfe\xff") and is_json(content.decode("utf-8", "surrogateescape")):
        try:
            return read_json(content), []
        except GoError as error:
            raise StartError(prefix + _NO_HEAD + str(error), _BROKEN, _REPAIR, path, context) from error
    try:
        node = read(content)
    except ReadError as error:
        if not error.text:
            raise UnpredictableError(str(error), path) from error
        raise StartError(prefix + error.text, str(error), _REPAIR, path, context) from error
    return node.value, [duplicate.text for duplicate in node.duplicates]


def _head(tree: object, path: str, context: str, prefix: str) -> tuple[str, str]:
    """Return apiVersion and kind, in which upper and lower case do not count here."""
    found = {"apiversion": "", "kind": ""}
    fault = ""
    if tree is not None and kind_of(tree) != "object":
        fault = "json: cannot unmarshal %s into Go value of type %s" % (kind_of(tree), _HEAD_TYPE)
    elif tree is not None:
        for key, value in pairs(tree):
            name = fold(key)
            if name not in found or value is None:
                continue
            if kind_of(value) == "string":
                found[name] = value
            elif not fault:
                field = "kind" if name == "kind" else "apiVersion"
                fault = "json: cannot unmarshal %s into Go struct field .%s of type string" % (kind_of(value), field)
    if fault:
        raise StartError(prefix + _NO_HEAD + fault, "it has no apiVersion and kind", _PUT_HEAD, path, context)
    version = found["apiversion"]
    if version.count("/") > 1:
        text = "%sunexpected GroupVersion string: %s" % (prefix, version)
        raise StartError(text, "no apiVersion is written like this", _PUT_HEAD, path, context)
    return version if version != "/" else "", found["kind"]


# What a kubelet passes over in its files, as findings: misspelt fields, fields of other versions, keys given twice.


# How alike two names are that may be one, of 1.
_SPELLING = 0.8


def finding_of(ignored: Ignored, minor: int) -> Finding:
    """Return what the kubelet 1.`minor` makes of a member of its files."""
    member = ignored.member
    if member.problem == DUPLICATE:
        where = member.path or ignored.file
        return harmful("a key is there twice; the kubelet takes the later one", "keep it once", where, ignored.text)
    if member.problem == SPELLING:
        cause = "the kubelet takes %s for %s, and of two spellings the last in alphabetical order"
        return harmful(cause % (quote(member.key), member.field), "write %s" % member.field, member.path)
    cause = "the kubelet 1.%d has no such field, and ignores it" % minor
    meant = _nearest(member.key, member.struct)
    if meant == member.key:
        since, until = STRUCTS[member.struct][meant].since, STRUCTS[member.struct][meant].until
        remedy = "remove it" if until <= minor else "remove it, or upgrade to Kubernetes 1.%d" % since
    elif meant:
        remedy = "write %s" % meant
        cause += "; upper and lower case count" if meant.lower() == member.key.lower() else ""
    else:
        remedy = "check how it is spelled, or remove it"
    return harmful(cause, remedy, member.path, ignored.text)


def _nearest(name: str, struct: str) -> str | None:
    """Return the field that was meant, of this version or another one."""
    by_lower_case = {field.lower(): field for field in STRUCTS.get(struct, {})}
    found = get_close_matches(name.lower(), by_lower_case, 1, cutoff=_SPELLING)
    return by_lower_case[found[0]] if found else None

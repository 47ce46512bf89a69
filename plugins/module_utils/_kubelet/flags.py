# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""All flags of a kubelet on Linux: what each takes, which field of the KubeletConfiguration it sets, when it existed;
how they are told apart on a command line, and how their values are read.

Who reads what a kubelet is given, effective.py, and who predicts what it says of it, start/command_line.py, do so by
these.
Source: cmd/kubelet/app/options (options.go, globalflags_linux.go); pkg/kubelet/config/flags.go;
k8s.io/component-base/logs/api/v1/options.go; k8s.io/component-base/version/verflag; github.com/spf13/pflag;
Go's strconv and encoding/csv. For 1.29 to 1.32: the first two as they were in 1.30, with what was added and removed
from there to 1.33. When a flag was removed is from the pull request that did it.
"""

from __future__ import annotations

from itertools import islice
from typing import Any, Callable, Iterable, Iterator, Mapping, NamedTuple, Sequence

from .._base.errors import GoError
from .._base.golang import quote
from ..policy.options import BOOLEANS

STRING, BOOL, INT32, INT64, DURATION = "string", "bool", "int32", "int64", "duration"
# Texts with commas between them, read as one line of CSV; each time that the flag is given adds to the list.
STRINGS = "stringSlice"
IP = "ip"
# key=value with commas between them; one key=value each time; key<value; key=value where a key may stand alone.
PAIRS, PAIR, THRESHOLDS, LABELS = "mapStringString", "mapStringString (one)", "mapStringString (<)", "configurationMap"
GATES = "mapStringBool"
# key:value, where a key may have several values.
HEADERS = "colonSeparatedMultimapStringString"
MEMORY, TAINTS = "reserved-memory", "[]v1.Taint"
LEVEL, PATTERNS = "Level", "pattern=N,..."
QUANTITY = "quantity"
VERSION = "version"
# Flags of Go's own package, whose errors have other words.
GO_BOOL, GO_INT, GO_DURATION = "bool of Go", "int of Go", "duration of Go"

# A flag of these takes its value behind "=" only.
SWITCHES = frozenset((BOOL, GO_BOOL, VERSION))

HELP, VERSION_FLAG = "help", "version"
CONFIG, CONFIG_DIR, ROOT_DIR = "config", "config-dir", "root-dir"
MANIFEST_URL, MANIFEST_URL_HEADER = "manifest-url", "manifest-url-header"
FEATURE_GATES, NODE_LABELS, CLOUD_PROVIDER = "feature-gates", "node-labels", "cloud-provider"
LOCK_FILE, EXIT_ON_LOCK = "lock-file", "exit-on-lock-contention"

_ALWAYS = 1000


class Flag(NamedTuple):
    """A flag: `path` is the field that it sets, () where it sets none; it exists in 1.`since` up to before 1.`until`.

    `is_global` are flags of libraries: when the kubelet reads its flags once more, over the file, they have no effect
    and all take a value. `is_read`: what is said of a kubelet's settings depends on it, and effective.py reads it.
    """

    name: str
    kind: str
    path: tuple[str, ...] = ()
    shorthand: str = ""
    is_global: bool = False
    since: int = 0
    until: int = _ALWAYS
    is_read: bool = False


# Flag and field.
_FIELDS = {
    STRING: """
        authorization-mode authorization.mode
        cgroup-driver cgroupDriver
        cgroup-root cgroupRoot
        client-ca-file authentication.x509.clientCAFile
        cluster-domain clusterDomain
        container-log-max-size containerLogMaxSize
        container-runtime-endpoint containerRuntimeEndpoint
        cpu-manager-policy cpuManagerPolicy
        hairpin-mode hairpinMode
        image-service-endpoint imageServiceEndpoint
        kube-api-content-type contentType
        kube-reserved-cgroup kubeReservedCgroup
        kubelet-cgroups kubeletCgroups
        logging-format logging.format
        manifest-url staticPodURL
        memory-manager-policy memoryManagerPolicy
        pod-cidr podCIDR
        pod-manifest-path staticPodPath
        provider-id providerID
        reserved-cpus reservedSystemCPUs
        resolv-conf resolvConf
        system-cgroups systemCgroups
        system-reserved-cgroup systemReservedCgroup
        tls-cert-file tlsCertFile
        tls-min-version tlsMinVersion
        tls-private-key-file tlsPrivateKeyFile
        topology-manager-policy topologyManagerPolicy
        topology-manager-scope topologyManagerScope
        volume-plugin-dir volumePluginDir
    """,
    BOOL: """
        anonymous-auth authentication.anonymous.enabled
        authentication-token-webhook authentication.webhook.enabled
        cgroups-per-qos cgroupsPerQOS
        contention-profiling enableContentionProfiling
        cpu-cfs-quota cpuCFSQuota
        enable-controller-attach-detach enableControllerAttachDetach
        enable-debugging-handlers enableDebuggingHandlers
        enable-server enableServer
        fail-cgroupv1 failCgroupV1
        fail-swap-on failSwapOn
        kernel-memcg-notification kernelMemcgNotification
        local-storage-capacity-isolation localStorageCapacityIsolation
        log-json-split-stream logging.options.json.splitStream
        log-text-split-stream logging.options.text.splitStream
        make-iptables-util-chains makeIPTablesUtilChains
        protect-kernel-defaults protectKernelDefaults
        register-node registerNode
        rotate-certificates rotateCertificates
        rotate-server-certificates serverTLSBootstrap
        runonce runOnce
        serialize-image-pulls serializeImagePulls
    """,
    INT32: """
        container-log-max-files containerLogMaxFiles
        event-burst eventBurst
        event-qps eventRecordQPS
        eviction-max-pod-grace-period evictionMaxPodGracePeriod
        healthz-port healthzPort
        image-gc-high-threshold imageGCHighThresholdPercent
        image-gc-low-threshold imageGCLowThresholdPercent
        iptables-drop-bit iptablesDropBit
        iptables-masquerade-bit iptablesMasqueradeBit
        kube-api-burst kubeAPIBurst
        kube-api-qps kubeAPIQPS
        max-pods maxPods
        node-status-max-images nodeStatusMaxImages
        oom-score-adj oomScoreAdj
        pods-per-core podsPerCore
        port port
        read-only-port readOnlyPort
        registry-burst registryBurst
        registry-qps registryPullQPS
    """,
    INT64: "max-open-files maxOpenFiles pod-max-pids podPidsLimit",
    DURATION: """
        authentication-token-webhook-cache-ttl authentication.webhook.cacheTTL
        authorization-webhook-cache-authorized-ttl authorization.webhook.cacheAuthorizedTTL
        authorization-webhook-cache-unauthorized-ttl authorization.webhook.cacheUnauthorizedTTL
        cpu-cfs-quota-period cpuCFSQuotaPeriod
        cpu-manager-reconcile-period cpuManagerReconcilePeriod
        eviction-pressure-transition-period evictionPressureTransitionPeriod
        file-check-frequency fileCheckFrequency
        http-check-frequency httpCheckFrequency
        log-flush-frequency logging.flushFrequency
        minimum-image-ttl-duration imageMinimumGCAge
        node-status-update-frequency nodeStatusUpdateFrequency
        runtime-request-timeout runtimeRequestTimeout
        streaming-connection-idle-timeout streamingConnectionIdleTimeout
        sync-frequency syncFrequency
        volume-stats-agg-period volumeStatsAggPeriod
    """,
    STRINGS: """
        allowed-unsafe-sysctls allowedUnsafeSysctls
        cluster-dns clusterDNS
        enforce-node-allocatable enforceNodeAllocatable
        tls-cipher-suites tlsCipherSuites
    """,
    IP: "address address healthz-bind-address healthzBindAddress",
    PAIRS: """
        eviction-minimum-reclaim evictionMinimumReclaim
        eviction-soft-grace-period evictionSoftGracePeriod
        kube-reserved kubeReserved
        qos-reserved qosReserved
        system-reserved systemReserved
        topology-manager-policy-options topologyManagerPolicyOptions
    """,
    PAIR: "cpu-manager-policy-options cpuManagerPolicyOptions",
    THRESHOLDS: "eviction-hard evictionHard eviction-soft evictionSoft",
    GATES: "feature-gates featureGates",
    HEADERS: "manifest-url-header staticPodURLHeader",
    MEMORY: "reserved-memory reservedMemory",
    TAINTS: "register-with-taints registerWithTaints",
    LEVEL: "v logging.verbosity",
    PATTERNS: "vmodule logging.vmodule",
    QUANTITY: """
        log-json-info-buffer-size logging.options.json.infoBufferSize
        log-text-info-buffer-size logging.options.text.infoBufferSize
    """,
}

# Those that set no field.
_OWN = {
    STRING: (
        "bootstrap-kubeconfig cert-dir cloud-config cloud-provider config config-dir experimental-mounter-path"
        " hostname-override image-credential-provider-bin-dir image-credential-provider-config kubeconfig lock-file"
        " node-ip pod-infra-container-image root-dir runtime-cgroups"
        # Of older kubelets.
        " azure-container-registry-config cni-bin-dir cni-cache-dir cni-conf-dir container-runtime docker-endpoint"
        " dynamic-config-dir experimental-bootstrap-kubeconfig"
        " master-service-namespace network-plugin non-masquerade-cidr"
    ),
    BOOL: (
        "allow-privileged exit-on-lock-contention experimental-allocatable-ignore-eviction help"
        " keep-terminated-pod-volumes register-schedulable seccomp-default"
    ),
    INT32: "maximum-dead-containers maximum-dead-containers-per-container network-plugin-mtu",
    DURATION: "image-pull-progress-deadline minimum-container-ttl-duration",
    LABELS: NODE_LABELS,
}

# Those of libraries: cAdvisor's, and --version.
_GLOBAL = {
    STRING: (
        "boot-id-file container-hints containerd containerd-namespace event-storage-age-limit event-storage-event-limit"
        " machine-id-file storage-driver-db storage-driver-host storage-driver-password storage-driver-table"
        " storage-driver-user"
        # Of Docker, in older kubelets.
        " docker docker-env-metadata-whitelist docker-root docker-tls-ca docker-tls-cert docker-tls-key"
        # Of klog, in older kubelets.
        " log-backtrace-at log-dir log-file log-file-max-size stderrthreshold"
    ),
    GO_BOOL: (
        "add-dir-header alsologtostderr docker-only docker-tls enable-load-reader log-cadvisor-usage logtostderr"
        " one-output skip-headers skip-log-headers storage-driver-secure"
    ),
    GO_INT: "application-metrics-count-limit",
    GO_DURATION: "global-housekeeping-interval housekeeping-interval storage-driver-buffer-duration",
    VERSION: VERSION_FLAG,
}

# Each sets a field of the KubeletConfiguration itself; all are deprecated and still work in Kubernetes 1.36.
_READ = """
    cpu-manager-policy cpu-manager-policy-options cpu-manager-reconcile-period
    topology-manager-policy topology-manager-scope topology-manager-policy-options
    memory-manager-policy reserved-memory
    kube-reserved system-reserved reserved-cpus kube-reserved-cgroup system-reserved-cgroup
    enforce-node-allocatable eviction-hard
    cpu-cfs-quota cpu-cfs-quota-period
    cgroup-driver cgroup-root container-runtime-endpoint
    healthz-bind-address healthz-port fail-cgroupv1 feature-gates
"""

_SHORTHANDS = {"help": "h", "v": "v"}

_SINCE = {"config-dir": 28, "fail-cgroupv1": 31, "log-text-info-buffer-size": 31, "log-text-split-stream": 31}

# The first minor version without them.
_UNTIL = {
    **{
        name: 37
        for names in _GLOBAL.values()
        for name in names.split()
        if name not in ("housekeeping-interval", VERSION_FLAG)
    },
    **{
        name: minor
        for minor, names in (
            (15, "allow-privileged"),
            (23, "experimental-bootstrap-kubeconfig"),
            (24, "docker docker-env-metadata-whitelist docker-only docker-root"),
            (24, "docker-tls docker-tls-ca docker-tls-cert docker-tls-key"),
            (24, "cni-bin-dir cni-cache-dir cni-conf-dir docker-endpoint dynamic-config-dir"),
            (24, "image-pull-progress-deadline network-plugin network-plugin-mtu non-masquerade-cidr"),
            (26, "add-dir-header alsologtostderr log-backtrace-at log-dir log-file log-file-max-size logtostderr"),
            (26, "one-output skip-headers skip-log-headers stderrthreshold"),
            (27, "container-runtime master-service-namespace"),
            (30, "azure-container-registry-config"),
            (31, "iptables-drop-bit iptables-masquerade-bit keep-terminated-pod-volumes"),
            (34, "cloud-config register-schedulable"),
            (35, "pod-infra-container-image"),
        )
        for name in names.split()
    },
}

# From this minor version on a kubelet has no flags but these. Of older ones some may be missing here.
COMPLETE_SINCE = 29


def _flags() -> dict[str, Flag]:
    found = {}
    read = frozenset(_READ.split())
    for kind, text in _FIELDS.items():
        words = text.split()
        for name, field in zip(words[::2], words[1::2]):
            found[name] = Flag(name, kind, tuple(field.split(".")))
    for table, is_global in ((_OWN, False), (_GLOBAL, True)):
        for kind, text in table.items():
            found.update((name, Flag(name, kind, is_global=is_global)) for name in text.split())
    return {
        name: flag._replace(
            shorthand=_SHORTHANDS.get(name, ""),
            since=_SINCE.get(name, 0),
            until=_UNTIL.get(name, _ALWAYS),
            is_read=name in read,
        )
        for name, flag in found.items()
    }


FLAGS = _flags()
_BY_SHORTHAND = {flag.shorthand: flag for flag in FLAGS.values() if flag.shorthand}


def flag_of(name: str, minor: int) -> Flag | None:
    """Return the flag of this name that the kubelet 1.`minor` has; an underscore is a dash."""
    flag = FLAGS.get(name.replace("_", "-"))
    return flag if flag and flag.since <= minor < flag.until else None


def flag_of_letter(letter: str) -> Flag | None:
    """Return the flag of this one letter."""
    return _BY_SHORTHAND.get(letter)


def removed_in(name: str, minor: int) -> int | None:
    """Return the minor version that removed this flag; None where it is not known, or the kubelet 1.`minor` still
    has it."""
    flag = FLAGS.get(name.replace("_", "-"))
    return flag.until if flag and flag.until <= minor else None


# --- words -------------------------------------------------------------------------------------------

# What follows it are no flags.
END_OF_FLAGS = "--"
# k3s and RKE2 hand its value to their kubelet.
HANDED_ON = "--kubelet-arg"


def bare(name: str) -> str:
    """Return the name of a flag as the table has it, also of one that is written with one dash by mistake."""
    return name.lstrip("-").replace("_", "-")


def split_flags(words: Iterable[str]) -> Iterator[tuple[str, list[str]]]:
    """Yield the name of each flag of a command line, as the table has it, with its words, which are one or two.

    What is no flag with two dashes has no name, and what follows "--" comes with it.
    """
    rest = iter(words)
    for word in rest:
        if word == END_OF_FLAGS:
            yield "", [word, *rest]
            return
        typed, equals, _value = word.partition("=")
        name = typed[2:].replace("_", "-") if typed.startswith("--") else ""
        takes_next = name in FLAGS and FLAGS[name].kind not in SWITCHES and not equals
        yield name, [word, *(islice(rest, 1) if takes_next else ())]


def flag_values(words: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Yield the name of each flag with the text of its value, which is that of a switch that stands alone, or empty."""
    for name, (word, *following) in split_flags(words):
        if name:
            _typed, equals, value = word.partition("=")
            is_alone = name in FLAGS and FLAGS[name].kind in SWITCHES and not equals
            yield name, "true" if is_alone else value or "".join(following)


# --- values: what a flag gives over what it gave before, None for nothing; the errors are in Go's words ---------------

WRONG_SYNTAX, OUT_OF_RANGE = "invalid syntax", "value out of range"

# What Go's strings.TrimSpace cuts off.
GO_SPACE = "\t\n\v\f\r \x85\xa0\u1680\u2028\u2029\u202f\u205f\u3000" + "".join(map(chr, range(0x2000, 0x200B)))


class PartError(GoError):
    """Of a text this part is not as it is `expected`."""

    def __init__(self, text: str, part: str, expected: str) -> None:
        super().__init__(text)
        self.part, self.expected = part, expected


def quoted(text: str) -> str:
    """Return the text as %q prints it, also where bytes in it are no UTF-8."""
    if text.isascii():
        return quote(text)
    return '"%s"' % "".join(_byte(character) or quote(character)[1:-1] for character in text)


def _byte(character: str) -> str:
    """Return a byte that is no UTF-8, which Python keeps as a surrogate."""
    return "\\x%02x" % (ord(character) - 0xDC00) if "\udc80" <= character <= "\udcff" else ""


def bytes_of(text: str) -> bytes:
    """Return the bytes that Python made this text of; a text of JSON may have surrogates that are made of none."""
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return text.encode("utf-8", "surrogatepass")


# --- numbers and switches ---------------------------------------------------------------------------


def read_number(text: str, bits: int) -> int:
    """Return a whole number with its sign, decimal or as 0x1f, 0o17, 017, 0b11, 1_000."""
    digits = text[1:] if text[:1] in ("+", "-") else text
    number = _magnitude(digits, bits, "ParseInt", text)
    number = -number if text[0] == "-" else number
    if not -(1 << bits - 1) <= number < 1 << bits - 1:
        raise number_fault("ParseInt", text, OUT_OF_RANGE)
    return number


def _magnitude(digits: str, bits: int, function: str, text: str) -> int:
    base, rest = 10, digits
    if digits[:1] == "0":
        base = {"b": 2, "o": 8, "x": 16}.get(digits[1:2].lower(), 0) if len(digits) >= 3 else 0
        rest = digits[2:] if base else digits[1:]
        base = base or 8
    number = read_digits(rest, base, 1 << bits, function, text) if digits else None
    if number is None or ("_" in rest and not _is_grouped(digits)):
        raise number_fault(function, text, WRONG_SYNTAX)
    return number


def read_digits(digits: str, base: int, limit: int, function: str, text: str) -> int | None:
    """Return the number, None for another character. From the left: behind a number that is too large, nothing is
    read."""
    number = 0
    for digit in digits:
        if digit == "_" and function == "ParseInt":
            continue
        value = int(digit, 36) if digit.isascii() and digit.isalnum() else base
        if value >= base:
            return None
        number = number * base + value
        if number >= limit:
            raise number_fault(function, text, OUT_OF_RANGE)
    return number


def _is_grouped(digits: str) -> bool:
    """Return whether each underscore stands between digits, or between the prefix of the base and one."""
    last = "_"
    for at, character in enumerate(digits):
        if character == "_" and last == "_":
            return False
        last = "0" if at == 1 and digits[0] == "0" and character in "bBoOxX" else character
    return last != "_"


def number_fault(function: str, text: str, what: str) -> GoError:
    """Return what a function of Go's strconv says of a text."""
    return GoError("strconv.%s: parsing %s: %s" % (function, quoted(text), what))


def read_switch(text: str) -> bool:
    """Return true or false, of a text in the spellings that Go takes."""
    if text not in BOOLEANS:
        raise number_fault("ParseBool", text, WRONG_SYNTAX)
    return BOOLEANS[text]


# --- lists and maps ---------------------------------------------------------------------------------


def read_texts(text: str, before: list[str] | None) -> list[str]:
    """Return one more record of CSV."""
    found = before if before is not None else []
    if '"' not in text and "\n" not in text and "\r" not in text:
        found.extend(text.split(",") if text else ())
    else:
        found.extend(read_record(bytes_of(text)))
    return found


def _reader_of_pairs(sign: str, kinds: str) -> Callable[[str, Any], dict[str, str]]:
    def read(text: str, before: dict[str, str] | None) -> dict[str, str]:
        found = before if before is not None else {}
        for part in text.split(","):
            if part:
                add_pair(part, sign, kinds, found)
        return found

    return read


def add_pair(part: str, sign: str, kinds: str, found: dict[str, str]) -> None:
    """Read one pair. kinds: what Go calls its halves. Raises PartError."""
    key, separator, value = part.partition(sign)
    if not separator:
        raise PartError("malformed pair, expect %s" % kinds, part, "key%svalue" % sign)
    found[key.strip(GO_SPACE)] = value.strip(GO_SPACE)


def read_pair(text: str, before: dict[str, str] | None) -> dict[str, str]:
    """Return one pair; a comma belongs to its value."""
    found = before if before is not None else {}
    add_pair(text, "=", "string=string", found)
    return found


read_pairs = _reader_of_pairs("=", "string=string")
read_thresholds = _reader_of_pairs("<", "string<string")


# --- one record of CSV ------------------------------------------------------------------------------

_BARE = 'bare " in non-quoted field'
_QUOTE = 'extraneous or missing " in quoted-field'


def read_record(content: bytes) -> list[str]:
    """Return the fields of the first line that is not empty. Raises GoError."""
    # One character for each byte: columns are counted in bytes.
    fields = _Reader(content.decode("latin-1")).record()
    return [field.encode("latin-1").decode("utf-8", "surrogateescape") for field in fields]


class _Reader:
    """Reads line by line: a line ends in a line feed, and a carriage return before it belongs to it."""

    def __init__(self, content: str) -> None:
        self.content = content
        self.next = 0
        self.line = ""
        self.number = 0
        # Of the next character of the line, from 0.
        self.at = 0
        self.fields: list[str] = []

    def record(self) -> list[str]:
        while self._next_line():
            if self.line not in ("", "\n"):
                break
        else:
            raise GoError("EOF")
        first = self.number
        while self._field(first):
            pass
        return self.fields

    def _next_line(self) -> bool:
        if self.next == len(self.content):
            self.line, self.at = "", 0
            return False
        end = self.content.find("\n", self.next) + 1
        line = self.content[self.next : end or len(self.content)]
        self.next += len(line)
        if line.endswith("\r\n"):
            line = line[:-2] + "\n"
        elif not end and line.endswith("\r"):
            line = line[:-1]
        self.line, self.at = line, 0
        self.number += 1
        return True

    def _field(self, first: int) -> bool:
        """Read a field; whether another one follows."""
        if self.line[self.at : self.at + 1] == '"':
            self.at += 1
            return self._quoted(first)
        end = self.line.find(",", self.at)
        field = self.line[self.at : end] if end >= 0 else self.line[self.at :].rstrip("\n")
        if '"' in field:
            raise self._fault(first, self.number, self.at + field.index('"'), _BARE)
        self.fields.append(field)
        self.at = end + 1
        return end >= 0

    def _quoted(self, first: int) -> bool:
        parts = []
        while True:
            end = self.line.find('"', self.at)
            if end >= 0:
                parts.append(self.line[self.at : end])
                self.at = end + 1
                behind = self.line[self.at : self.at + 1]
                if behind == '"':
                    parts.append('"')
                    self.at += 1
                    continue
                if behind not in ("", ",", "\n"):
                    raise self._fault(first, self.number, end, _QUOTE)
                self.fields.append("".join(parts))
                self.at += 1
                return behind == ","
            rest = self.line[self.at :]
            parts.append(rest)
            column = self.at + len(rest)
            if not self._next_line():
                raise self._fault(first, self.number, column, _QUOTE)

    def _fault(self, first: int, line: int, column: int, what: str) -> GoError:
        record = "record on line %d; " % first if first != line else ""
        return GoError("%sparse error on line %d, column %d: %s" % (record, line, column + 1, what))


# --- what a flag does to the configuration ----------------------------------------------------------


def put_over(values: Mapping[str, Any], path: Sequence[str], kind: str, given: Any) -> dict[str, Any]:
    """Return a configuration, which stays as it is, with what a flag of this kind gives the field at `path`.

    Feature gates come one by one over those that are there, patterns come behind them; all else takes their place.
    """
    name, rest = path[0], path[1:]
    before = values.get(name)
    if rest:
        given = put_over(before if isinstance(before, dict) else {}, rest, kind, given)
    elif kind == GATES:
        given = {**(before if isinstance(before, Mapping) else {}), **given}
    elif kind == PATTERNS:
        given = [*(before if isinstance(before, list) else ()), *given]
    return {**values, name: given}

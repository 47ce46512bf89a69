# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The checkpoints that a kubelet restores beside those of the CPU and memory managers: which are fatal when damaged.

    dra_manager_state                           1.27 and later: the claims that were prepared for pods
    allocated_pods_state, actuated_pods_state   1.33 and later: the resources that pods were resized to
    pod_status_manager_state                    1.27 to 1.32: the same
    device-plugins/kubelet_internal_checkpoint  the devices that containers have

A kubelet passes over the last one where it is damaged. All others keep it from starting, where their gate
is on. What a kubelet itself wrote is known here at once; check_exactly() looks at everything else as
closely as Go does. Source: pkg/kubelet/checkpointmanager; pkg/kubelet/allocation/state and
pkg/kubelet/status/state (checkpoint.go, state_checkpoint.go); pkg/kubelet/cm/dra/state;
pkg/kubelet/cm/devicemanager.
"""

from __future__ import annotations

import base64
import binascii
import json
import zlib
from typing import Any, Callable, Mapping, NamedTuple, Sequence

from .._base.errors import GoError
from .._base.golang import json_text, read_json
from .checkpoint import unique_members
from .formats import CORRUPTED, fnv
from .memory_manager import TEXT, Map, Problems, Slice, Struct, StructField, StructPlace, Type, Whole

# Since when the sum goes over a text, and since when what was allocated and what was done have a file each.
DATA_SINCE, TWO_SINCE = 32, 33
_NEVER = 1000

CLAIMS, DEVICES = "dra_manager_state", "device-plugins/kubelet_internal_checkpoint"
_ALLOCATED, _ACTUATED, _STATUS = "allocated_pods_state", "actuated_pods_state", "pod_status_manager_state"
_PODS_GATE, _CLAIMS_GATE = "InPlacePodVerticalScaling", "DynamicResourceAllocation"


class DamageError(Exception):
    """The kubelet cannot restore its state from this file; the message is the cause that it gives.

    is_inside: the file itself is in order, and the text in it is not.
    """

    def __init__(self, cause: str, is_inside: bool = False) -> None:
        super().__init__(cause)
        self.is_inside = is_inside


class Restored(NamedTuple):
    """A file that kubelets 1.`since` to before 1.`until` restore, below their root directory."""

    name: str
    # Without this gate they do not; empty: they always do.
    gate: str
    since: int
    until: int = _NEVER


# In the order in which a kubelet restores them.
RESTORED = (
    Restored(CLAIMS, _CLAIMS_GATE, 27),
    Restored(_ALLOCATED, _PODS_GATE, TWO_SINCE),
    Restored(_ACTUATED, _PODS_GATE, TWO_SINCE),
    Restored(_STATUS, _PODS_GATE, 27, TWO_SINCE),
    Restored(DEVICES, "", 0),
)


def restored_by(minor: int) -> list[Restored]:
    """Return what a kubelet 1.`minor` restores, whatever its gates, in its order."""
    return [file for file in RESTORED if file.since <= minor < file.until]


def sum_of_pods(data: str) -> int:
    """Return the sum of the text in a file of pods."""
    return fnv("(string)" + data)


def sum_of_claims(data: str) -> int:
    """Return the sum of the text in a file of claims."""
    return zlib.crc32(data.encode("utf-8"))


def is_as_written(file: Restored, content: bytes, minor: int) -> bool:
    """Return whether it is a text with its sum as a kubelet 1.`minor` writes it, which is certain at once."""
    if file.name == DEVICES or minor < DATA_SINCE:
        return False
    names, sum_of = (
        (("Data", "Checksum"), sum_of_claims) if file.name == CLAIMS else (("data", "checksum"), sum_of_pods)
    )
    try:
        value = json.loads(content.decode("ascii"), object_pairs_hook=unique_members)
        if not isinstance(value, dict) or tuple(value) != names or not isinstance(value[names[0]], str):
            return False
        return isinstance(json.loads(value[names[0]]), dict) and value[names[1]] == sum_of(value[names[0]])
    except (ValueError, RecursionError):
        return False


# The formats of the checkpoints in restored.py: how a kubelet reads them, and which sum it wants.
#
# Its source: as there, and encoding/json (decode.go).


class _Form(NamedTuple):
    """How a file is read. Its first member has what it says, and its last the sum of that."""

    struct: Struct
    # Of what is read; None where the sum is not known here.
    sum_of: Callable[[Mapping[str, Any]], int | None]
    # What the text in the first member is read into.
    inner: Struct | None = None


class _Bytes(Type):
    """A list of bytes, in JSON a text of base64."""

    def read(self, value: object, before: object, problems: Problems, place: StructPlace) -> object:
        if value is None:
            return None
        try:
            return base64.b64decode(str(TEXT.read(value, "", problems, place)), validate=True)
        except (binascii.Error, ValueError):
            problems.add("string", self.name, place)
            return before

    def spew(self, value: Any) -> str:
        return "<nil>" if value is None else "[%s]" % " ".join(map(str, value))


def _sum_of_none(empty: str) -> Callable[[Mapping[str, Any]], int | None]:
    """Return a function that sums a struct whose sum goes over what Go makes of numbers in its entries: only that
    without entries is known."""
    right = fnv(empty)
    return lambda value: right if value["checksum"] == right else None


_SUM = StructField("checksum", "Checksum", Whole("checksum.Checksum"))
_PODS = _Form(
    Struct("state.Checkpoint", [StructField("data", "Data", TEXT), _SUM]),
    lambda value: sum_of_pods(value["data"]),
    Struct("state.PodResourceCheckpointInfo", []),
)
_PODS_BEFORE = _PODS._replace(inner=Struct("state.PodResourceAllocationInfo", []))
_CLAIMS = _Form(
    Struct(
        "state.Checkpoint",
        [StructField("Data", "Data", TEXT), StructField("Checksum", "Checksum", Whole("uint32", bits=32))],
    ),
    lambda value: sum_of_claims(value["Data"]),
    Struct("state.CheckpointData", []),
)
_OLD_PODS = _Form(
    Struct("state.PodResourceAllocationCheckpoint", [_SUM]),
    _sum_of_none(
        "(*state.PodResourceAllocationCheckpoint){AllocationEntries:(map[string]map[string]v1.ResourceList)map[]"
        " ResizeStatusEntries:(map[string]v1.PodResizeStatus)map[] Checksum:(checksum.Checksum)0}"
    ),
)
_OLD_CLAIMS = _Form(
    Struct("state.DRAManagerCheckpoint", [_SUM]),
    _sum_of_none(
        "(*state.DRAManagerCheckpoint){Version:(string)v1 Entries:(state.ClaimInfoStateList)[]"
        " Checksum:(checksum.Checksum)0}"
    ),
)
_DEVICES_DATA = Struct(
    "checkpoint.checkpointData",
    [
        StructField(
            "PodDeviceEntries",
            "PodDeviceEntries",
            Slice(
                Struct(
                    "checkpoint.PodDevicesEntry",
                    [
                        StructField("PodUID", "PodUID", TEXT),
                        StructField("ContainerName", "ContainerName", TEXT),
                        StructField("ResourceName", "ResourceName", TEXT),
                        StructField(
                            "DeviceIDs",
                            "DeviceIDs",
                            Map("checkpoint.DevicesPerNUMA", Slice(TEXT), Whole("int64", signed=True)),
                        ),
                        StructField("AllocResp", "AllocResp", _Bytes("[]uint8")),
                    ],
                )
            ),
        ),
        StructField("RegisteredDevices", "RegisteredDevices", Map("map[string][]string", Slice(TEXT))),
    ],
)
_DEVICES = _Form(
    Struct("checkpoint.Data", [StructField("Data", "Data", _DEVICES_DATA), _SUM._replace(json="Checksum")]),
    lambda value: fnv(_DEVICES_DATA.typed(value["Data"])),
)


def _form_of(file: Restored, minor: int) -> _Form:
    if file.name == DEVICES:
        return _DEVICES
    if file.name == CLAIMS:
        return _CLAIMS if minor >= DATA_SINCE else _OLD_CLAIMS
    return _PODS if minor >= TWO_SINCE else _PODS_BEFORE if minor >= DATA_SINCE else _OLD_PODS


def check_exactly(file: Restored, content: bytes, minor: int) -> bool:
    """Return whether it is certain that a kubelet 1.`minor` restores this.

    Raises DamageError where it is certain that it does not.
    """
    form = _form_of(file, minor)
    value = _read(form.struct, content)
    right, first, last = form.sum_of(value), form.struct.fields[0].json, form.struct.fields[-1].json
    if right is None:
        return False
    if value[last] != right:
        raise DamageError(CORRUPTED)
    if form.inner is not None:
        _read(form.inner, value[first].encode("utf-8"), is_inside=True)
    return True


def _read(struct: Struct, content: bytes, is_inside: bool = False) -> dict[str, Any]:
    problems = Problems()
    try:
        value: dict[str, Any] = struct.read(read_json(content), struct.zero(), problems, StructPlace())
    except GoError as error:
        raise DamageError(str(error), is_inside) from error
    if problems.first:
        raise DamageError(problems.first, is_inside)
    return value


class DeviceState(NamedTuple):
    """What the device manager restores.

    owned: (pod UID, container, resource, {NUMA node: names}) of containers, with -1 for devices that are on none;
    registered: {resource: the names of its healthy devices}.
    """

    owned: list[tuple[str, str, str, dict[int, list[str]]]]
    registered: dict[str, list[str]]


def read_devices(content: bytes) -> DeviceState:
    """Return what the device manager restores of its checkpoint. Raises DamageError where it passes over it."""
    value = _read(_DEVICES.struct, content)
    if value["Checksum"] != _DEVICES.sum_of(value):
        raise DamageError(CORRUPTED)
    data = value["Data"]
    return DeviceState(
        [
            (
                entry["PodUID"],
                entry["ContainerName"],
                entry["ResourceName"],
                {node: names or [] for node, names in (entry["DeviceIDs"] or {}).items()},
            )
            for entry in data["PodDeviceEntries"] or ()
        ],
        {resource: names or [] for resource, names in (data["RegisteredDevices"] or {}).items()},
    )


def with_numbered_devices(content: bytes, rename: Callable[[str], str] = str) -> bytes:
    """Return the same for the device manager, with numbers for the names of devices, and without what containers were
    given.

    rename: makes another name of a container's. Raises DamageError where the device manager passes over it.
    """
    value = _read(_DEVICES.struct, content)
    if value["Checksum"] != _DEVICES.sum_of(value):
        raise DamageError(CORRUPTED)
    numbers: dict[tuple[str, str], str] = {}

    def numbered(resource: str, names: Sequence[str] | None) -> list[str]:
        return [numbers.setdefault((resource, name), str(len(numbers))) for name in names or ()]

    data = value["Data"]
    for entry in data["PodDeviceEntries"] or ():
        places = (entry["DeviceIDs"] or {}).items()
        entry["DeviceIDs"] = {node: numbered(entry["ResourceName"], names) for node, names in places}
        entry["ContainerName"] = rename(entry["ContainerName"])
        entry["AllocResp"] = None
    registered = (data["RegisteredDevices"] or {}).items()
    data["RegisteredDevices"] = {resource: numbered(resource, names) for resource, names in registered}
    value["Checksum"] = _DEVICES.sum_of(value)
    return json_text(value).encode("ascii")


# --- without what is in it ----------------------------------------------------------------------------------

# Behind these, Go meets a character in each of the places where it can be wrong.
_BEGINNINGS = rb"""{} { {"" {"":0 [0 " "\ "\u - 0. 0e n nu nul t f""".split()


def without_content(file: Restored, content: bytes, minor: int) -> bytes | None:
    """Return a short file that names nothing, and of which the kubelet says the same; None where none is known."""
    said = _said(file, content, minor)
    if said is None:
        return None
    if said:
        short = (b'{"checksum":7}', *(text + bytes((byte,)) for text in (b"", *_BEGINNINGS) for byte in range(256)))
        return next((text for text in (b"", *short) if _said(file, text, minor) == said), None)
    form = _form_of(file, minor)
    value, first, last = form.struct.zero(), form.struct.fields[0].json, form.struct.fields[-1].json
    if form.inner is not None:
        value[first] = "{}"
    value[last] = form.sum_of(value)
    # What has no sum here has no entries.
    return content if value[last] is None else json_text(value).encode("ascii")


def _said(file: Restored, content: bytes, minor: int) -> tuple[str, bool] | tuple[()] | None:
    """Return what the kubelet complains of, and whether it is inside; empty where it does not, None where it is not
    known."""
    try:
        return () if check_exactly(file, content, minor) else None
    except DamageError as error:
        return str(error), error.is_inside

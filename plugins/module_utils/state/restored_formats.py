# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The formats of the checkpoints in restored.py: how a kubelet reads them, and which sum it wants.

Source: as there, and encoding/json (decode.go).
"""

from __future__ import annotations

import base64
import binascii
from typing import Any, Callable, Mapping, NamedTuple

from ..errors import GoError
from ..golang import json_text, read_json
from ..golang_types import TEXT, Field, Map, Place, Problems, Slice, Struct, Type, Whole
from .formats import CORRUPTED, fnv
from .restored import CLAIMS, DATA_SINCE, DEVICES, TWO_SINCE, DamageError, Restored, sum_of_claims, sum_of_pods


class _Form(NamedTuple):
    """How a file is read. Its first member has what it says, and its last the sum of that."""

    struct: Struct
    # Of what is read; None where the sum is not known here.
    sum_of: Callable[[Mapping[str, Any]], int | None]
    # What the text in the first member is read into.
    inner: Struct | None = None


class _Bytes(Type):
    """A list of bytes, in JSON a text of base64."""

    def read(self, value: object, before: object, problems: Problems, place: Place) -> object:
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
    """Of a struct whose sum goes over what Go makes of numbers in its entries: only that without entries is known."""
    right = fnv(empty)
    return lambda value: right if value["checksum"] == right else None


_SUM = Field("checksum", "Checksum", Whole("checksum.Checksum"))
_PODS = _Form(
    Struct("state.Checkpoint", [Field("data", "Data", TEXT), _SUM]),
    lambda value: sum_of_pods(value["data"]),
    Struct("state.PodResourceCheckpointInfo", []),
)
_PODS_BEFORE = _PODS._replace(inner=Struct("state.PodResourceAllocationInfo", []))
_CLAIMS = _Form(
    Struct("state.Checkpoint", [Field("Data", "Data", TEXT), Field("Checksum", "Checksum", Whole("uint32", bits=32))]),
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
        Field(
            "PodDeviceEntries",
            "PodDeviceEntries",
            Slice(
                Struct(
                    "checkpoint.PodDevicesEntry",
                    [
                        Field("PodUID", "PodUID", TEXT),
                        Field("ContainerName", "ContainerName", TEXT),
                        Field("ResourceName", "ResourceName", TEXT),
                        Field(
                            "DeviceIDs",
                            "DeviceIDs",
                            Map("checkpoint.DevicesPerNUMA", Slice(TEXT), Whole("int64", signed=True)),
                        ),
                        Field("AllocResp", "AllocResp", _Bytes("[]uint8")),
                    ],
                )
            ),
        ),
        Field("RegisteredDevices", "RegisteredDevices", Map("map[string][]string", Slice(TEXT))),
    ],
)
_DEVICES = _Form(
    Struct("checkpoint.Data", [Field("Data", "Data", _DEVICES_DATA), _SUM._replace(json="Checksum")]),
    lambda value: fnv(_DEVICES_DATA.typed(value["Data"])),
)


def _form_of(file: Restored, minor: int) -> _Form:
    if file.name == DEVICES:
        return _DEVICES
    if file.name == CLAIMS:
        return _CLAIMS if minor >= DATA_SINCE else _OLD_CLAIMS
    return _PODS if minor >= TWO_SINCE else _PODS_BEFORE if minor >= DATA_SINCE else _OLD_PODS


def check_exactly(file: Restored, content: bytes, minor: int) -> bool:
    """Whether it is certain that a kubelet 1.`minor` restores this.

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
        value: dict[str, Any] = struct.read(read_json(content), struct.zero(), problems, Place())
    except GoError as error:
        raise DamageError(str(error), is_inside) from error
    if problems.first:
        raise DamageError(problems.first, is_inside)
    return value


# --- without what is in it ----------------------------------------------------------------------------------

# Behind these, Go meets a character in each of the places where it can be wrong.
_BEGINNINGS = rb"""{} { {"" {"":0 [0 " "\ "\u - 0. 0e n nu nul t f""".split()


def without_content(file: Restored, content: bytes, minor: int) -> bytes | None:
    """A short file that names nothing, and of which the kubelet says the same; None where none is known."""
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
    """What the kubelet complains of, and whether it is inside; empty where it does not, None where it is not known."""
    try:
        return () if check_exactly(file, content, minor) else None
    except DamageError as error:
        return str(error), error.is_inside

# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a kubelet says of the checkpoints of its other managers: intact ones, and what a power cut leaves of them."""

from __future__ import annotations

from typing import Callable

import pytest

from ansible_collections.kubenode.cpu_manager.plugins.module_utils.state.restored import (
    RESTORED,
    DamageError,
    Restored,
    check_exactly,
    is_as_written,
    read_devices,
    restored_by,
    with_numbered_devices,
    without_content,
)
from ansible_collections.kubenode.cpu_manager.tests.machines.device_checkpoint import GPU, device_state

# As kubelets wrote them.
PODS = (
    rb'{"data":"{\"entries\":{\"pod1\":{\"ContainerResources\":{\"container1\":{\"requests\":{\"cpu\":\"1Ki\",'
    rb'\"memory\":\"1Ki\"}}}}}}","checksum":1178570812}'
)
CLAIMS = (
    rb'{"Data":"{\"kind\":\"DRACheckpoint\",\"apiVersion\":\"checkpoint.dra.kubelet.k8s.io/v1\",\"Entries\":'
    rb"[{\"ClaimUID\":\"067798be-454e-4be4-9047-1aa06aea63f7\",\"ClaimName\":\"example\",\"Namespace\":\"default\","
    rb"\"PodUIDs\":{\"139cdb46-f989-4f17-9561-ca10cfb509a6\":{}},\"DriverState\":{\"test-driver.cdi.k8s.io\":"
    rb"{\"Devices\":[{\"PoolName\":\"worker-1\",\"DeviceName\":\"dev-1\",\"RequestNames\":[\"test request\"],"
    rb'\"CDIDeviceIDs\":[\"example.com/example=cdi-example\"]}]}}}]}","Checksum":1597924435}'
)
NO_DEVICES = (
    b'{"Data":{"PodDeviceEntries":null,"RegisteredDevices":{"nvidia.com/gpu":'
    b'["GPU-0650a168-e770-3ea8-8ac3-8a1d419763e0"]}},"Checksum":3952659280}'
)
DEVICES = (
    b'{"Data":{"PodDeviceEntries":[{"PodUID":"9a15d2b5-c152-46b9-96e0-d57032629e1f","ContainerName":"app",'
    b'"ResourceName":"nvidia.com/gpu","DeviceIDs":{"1":["GPU-9b341c59-f96b-ba85-c137-78c3652fea65",'
    b'"GPU-c1e9f249-b37b-81c2-a8d9-ba5ca0294841"]},"AllocResp":"CmsKFk5WSURJQV9WSVNJQkxFX0RFVklDRVMSUUdQVS1jMWU5ZjI0'
    b"OS1iMzdiLTgxYzItYThkOS1iYTVjYTAyOTQ4NDEsR1BVLTliMzQxYzU5LWY5NmItYmE4NS1jMTM3LTc4YzM2NTJmZWE2NRokCg4vZGV2L252aWRp"
    b"YWN0bBIOL2Rldi9udmlkaWFjdGwaAnJ3GiYKDy9kZXYvbnZpZGlhLXV2bRIPL2Rldi9udmlkaWEtdXZtGgJydxoyChUvZGV2L252aWRpYS11dm0t"
    b"dG9vbHMSFS9kZXYvbnZpZGlhLXV2bS10b29scxoCcncaLgoTL2Rldi9udmlkaWEtbW9kZXNldBITL2Rldi9udmlkaWEtbW9kZXNldBoCcncaIAoM"
    b'L2Rldi9udmlkaWExEgwvZGV2L252aWRpYTEaAnJ3GiAKDC9kZXYvbnZpZGlhMhIML2Rldi9udmlkaWEyGgJydw=="}],"RegisteredDevices":'
    b'{"nvidia.com/gpu":["GPU-77a702db-e37f-3a74-d46d-c5713f66058c","GPU-9b341c59-f96b-ba85-c137-78c3652fea65",'
    b'"GPU-c1e9f249-b37b-81c2-a8d9-ba5ca0294841"]}},"Checksum":2530956716}'
)


def complaint(name: str, content: bytes, minor: int = 36) -> str | None:
    """Return what the kubelet complains of, which is empty where it takes the file, None where that is not known."""
    file = file_of(name)
    try:
        is_restored = check_exactly(file, content, minor)
    except DamageError as error:
        assert not is_as_written(file, content, minor)
        return ("inside: " if error.is_inside else "") + str(error)
    return "" if is_restored else None


def file_of(name: str) -> Restored:
    (file,) = (file for file in RESTORED if file.name == name)
    return file


ALLOCATED, ACTUATED, STATUS = "allocated_pods_state", "actuated_pods_state", "pod_status_manager_state"
CLAIM_STATE, DEVICE_STATE = "dra_manager_state", "device-plugins/kubelet_internal_checkpoint"
INTACT = [
    (ALLOCATED, PODS),
    (ACTUATED, PODS),
    (CLAIM_STATE, CLAIMS),
    (DEVICE_STATE, DEVICES),
    (DEVICE_STATE, NO_DEVICES),
]


@pytest.mark.parametrize(
    ("minors", "names"),
    [
        (range(20, 27), [DEVICE_STATE]),
        (range(27, 33), [CLAIM_STATE, STATUS, DEVICE_STATE]),
        (range(33, 38), [CLAIM_STATE, ALLOCATED, ACTUATED, DEVICE_STATE]),
    ],
)
def test_which_versions_restore_what(minors: range, names: list[str]) -> None:
    for minor in minors:
        assert [file.name for file in restored_by(minor)] == names


@pytest.mark.parametrize(("file", "content"), INTACT)
def test_what_a_kubelet_wrote_is_taken(file: str, content: bytes) -> None:
    assert complaint(file, content) == ""
    assert is_as_written(file_of(file), content, 36) is (file != DEVICE_STATE)
    # Go's JSON minds neither blanks nor, of the names, upper and lower case.
    assert complaint(file, content.replace(b'{"', b'{ "', 1).replace(b"hecksum", b"HECKSUM") + b"\n") == ""


@pytest.mark.parametrize(("file", "content"), INTACT)
@pytest.mark.parametrize(
    ("damage", "text"),
    [
        (lambda _content: b"", "unexpected end of JSON input"),
        (lambda content: content[: len(content) // 2], "unexpected end of JSON input"),
        (lambda content: bytes(len(content)), "invalid character '\\x00' looking for beginning of value"),
        (lambda content: content + bytes(9), "invalid character '\\x00' after top-level value"),
        (lambda content: content + b'"cpu":"100m"}', "invalid character '\"' after top-level value"),
        (lambda _content: b'{"checksum":7}', "checkpoint is corrupted"),
        (lambda content: content.replace(b"1", b"7", 1), "checkpoint is corrupted"),
    ],
)
def test_what_is_damaged_is_refused(file: str, content: bytes, damage: Callable[[bytes], bytes], text: str) -> None:
    assert complaint(file, damage(content)) == text


@pytest.mark.parametrize(
    ("file", "content", "text"),
    [
        (ALLOCATED, b"[]", "json: cannot unmarshal array into Go value of type state.Checkpoint"),
        (
            ALLOCATED,
            b'{"data":{}}',
            "json: cannot unmarshal object into Go struct field Checkpoint.data of type string",
        ),
        (
            CLAIM_STATE,
            b'{"Data":"","Checksum":4294967296}',
            "json: cannot unmarshal number 4294967296 into Go struct field Checkpoint.Checksum of type uint32",
        ),
        # Of an older kubelet, which had no Data.
        (CLAIM_STATE, b'{"version":"v1","entries":[],"checksum":11}', "checkpoint is corrupted"),
        (STATUS, b'{"allocationEntries":{},"checksum":11}', "checkpoint is corrupted"),
        # The sum is right, and what it is of is no JSON.
        (
            ALLOCATED,
            b'{"data":"","checksum":441364273}',
            "inside: unexpected end of JSON input",
        ),
        (CLAIM_STATE, b"null", "inside: unexpected end of JSON input"),
        (
            ALLOCATED,
            b'{"data":"[]","checksum":162654009}',
            "inside: json: cannot unmarshal array into Go value of type state.PodResourceCheckpointInfo",
        ),
    ],
)
def test_what_the_kubelet_says_of_odd_ones(file: str, content: bytes, text: str) -> None:
    assert complaint(file, content) == text


@pytest.mark.parametrize("name", [STATUS, CLAIM_STATE])
def test_what_has_its_sum_over_a_struct_is_not_guessed(name: str) -> None:
    """Up to 1.31. What is no JSON is refused for sure."""
    assert complaint(name, b"{", 31) == "unexpected end of JSON input"
    assert str(complaint(name, b"[]", 31)).startswith("json: cannot unmarshal array into Go value of type state.")
    assert complaint(name, b'{"checksum":1,"entries":[{}],"allocationEntries":{"a":{}}}', 31) is None


def test_a_sign_in_names_that_are_no_json_of_go() -> None:
    """Python takes what Go does not, and a lone half of a surrogate pair becomes U+FFFD in Go."""
    assert complaint(ALLOCATED, b'{"data":NaN}') == "invalid character 'N' looking for beginning of value"
    assert complaint(ALLOCATED, rb'{"data":"\ud800","checksum":1}') == "checkpoint is corrupted"


@pytest.mark.parametrize("file", RESTORED)
@pytest.mark.parametrize("minor", [31, 32, 36])
def test_what_is_saved_says_the_same_and_names_nothing(file: Restored, minor: int) -> None:
    intact = [content for name, content in INTACT if name == file.name and minor >= 32]
    texts = [b"", bytes(2), b"{}x", b'{"a"}', b'{"a":1,', b"[1 2", b'"\n', b"{{", b"nuk", b'"\\q', b"1.x"]
    texts += [b'{"checksum":7}'] * (minor >= 32)
    for content in [*intact, *texts, *(content + b'"cpu"' for content in intact)]:
        saved = without_content(file, content, minor)
        assert saved is not None
        assert complaint(file.name, saved, minor) == complaint(file.name, content, minor)
        assert len(saved) < 100


def test_what_cannot_be_told_without_its_content_is_not_saved() -> None:
    assert without_content(file_of(ALLOCATED), b'{"data":1}', 36) is None
    assert without_content(file_of(ALLOCATED), b'{"data":"","checksum":441364273}', 36) is None
    assert without_content(file_of(STATUS), b'{"checksum":1,"allocationEntries":{"a":{}}}', 31) is None


def test_devices_are_numbers_in_a_checkpoint_that_is_restored_alike() -> None:
    names = {"0": ["GPU-8f2a", "GPU-11c0"], "-1": ["GPU-77"]}
    content = device_state({GPU: ["GPU-11c0", "GPU-8f2a", "GPU-77", "GPU-free"]}, ("uid-db", names), container="server")
    assert b"aHVudGVyMg==" in content
    before, saved = read_devices(content), with_numbered_devices(content, rename=str.upper)
    assert check_exactly(file_of(DEVICE_STATE), saved, 36)
    after = read_devices(saved)
    assert after.owned == [("uid-db", "SERVER", GPU, {0: ["0", "1"], -1: ["2"]})]
    assert after.registered == {GPU: ["1", "0", "2", "3"]}
    assert [len(found) for found in after.registered.values()] == [len(found) for found in before.registered.values()]
    for secret in (b"GPU-", b"aHVudGVyMg==", b"server"):
        assert secret not in saved
    assert with_numbered_devices(device_state({})) == device_state({}).replace(b" ", b"")
    with pytest.raises(DamageError):
        with_numbered_devices(content.replace(b"GPU-77", b"GPU-78"))

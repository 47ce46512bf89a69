# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The admission policy on the page of the policy dynamic, evaluated: the pod of the page passes, and no other mount."""

from __future__ import annotations

import copy
import importlib
from typing import Any, Callable

import pytest
import yaml

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._published.publish import PLACE
from ansible_collections.kubenode.cpu_manager.tests.running.lacking import TOOL, lacking

from .pages import CHECKOUT, blocks

PAGE = CHECKOUT / "docs" / "docsite" / "rst" / "dynamic.rst"
DOCUMENTS = [
    document
    for block in blocks(PAGE)
    if block.language == "yaml"
    for document in yaml.safe_load_all(block.text)
    if isinstance(document, dict)
]

DIRECTORY, MOUNT, NAME = "the only directory of the host", "mount %s with" % PLACE, "POD_UID has to be"


def of_kind(kind: str) -> list[dict[str, Any]]:
    return [document for document in DOCUMENTS if document.get("kind") == kind]


def refusals(pod: dict[str, Any]) -> list[str]:
    """Return the messages with which the policy refuses a pod, as the API server evaluates it."""
    try:
        celpy = importlib.import_module("celpy")
    except ImportError:
        lacking(TOOL, "cel-python is not installed")
    environment = celpy.Environment()
    (policy,) = of_kind("ValidatingAdmissionPolicy")
    variables = celpy.json_to_cel({})

    def value(expression: str) -> Any:
        program = environment.program(environment.compile(expression))
        return program.evaluate({"object": celpy.json_to_cel(pod), "variables": variables})

    for variable in policy["spec"]["variables"]:
        variables[celpy.celtypes.StringType(variable["name"])] = value(variable["expression"])
    return [rule["message"] for rule in policy["spec"]["validations"] if not value(rule["expression"])]


def example() -> dict[str, Any]:
    """Return the pod that mounts the directory."""
    (pod,) = (pod for pod in of_kind("Pod") if "volumes" in pod["spec"])
    return copy.deepcopy(pod)


Change = Callable[[dict[str, Any], dict[str, Any], dict[str, Any]], object]


def directory(path: str) -> Change:
    return lambda spec, _container, _mount: spec["volumes"][0]["hostPath"].update(path=path)


def mount(**values: object) -> Change:
    def change(_spec: dict[str, Any], _container: dict[str, Any], mount: dict[str, Any]) -> None:
        mount.update(values)
        for name in [name for name, value in values.items() if value is None]:
            del mount[name]

    return change


def variable(*rows: dict[str, Any]) -> Change:
    return lambda _spec, container, _mount: container.update(env=list(rows))


def moved(name: str) -> Change:
    """Return the same container, and its mount for writing, in another list."""

    def change(spec: dict[str, Any], container: dict[str, Any], mount: dict[str, Any]) -> None:
        mount["readOnly"] = False
        spec[name] = [container]
        spec["containers"] = [{"name": "other"}]

    return change


UID = {"name": "POD_UID", "valueFrom": {"fieldRef": {"fieldPath": "metadata.uid"}}}
LITERAL = {"name": "POD_UID", "value": "nri"}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (directory("/"), DIRECTORY),
        (directory("/run"), DIRECTORY),
        (directory("/run/nri"), DIRECTORY),
        (directory(PLACE + "/0f3f7f0a"), DIRECTORY),
        (directory(PLACE + "/../../nri"), DIRECTORY),
        (mount(readOnly=False), MOUNT),
        (mount(readOnly=None), MOUNT),
        (mount(subPathExpr=None), MOUNT),
        (mount(subPathExpr=None, subPath="nri"), MOUNT),
        (mount(subPathExpr="$(POD_UID)/nri"), MOUNT),
        (mount(subPathExpr="$(OTHER)"), MOUNT),
        (variable(), NAME),
        (variable(LITERAL), NAME),
        (variable(UID, LITERAL), NAME),
        (variable(LITERAL, UID), NAME),
        (variable({"name": "POD_UID", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}), NAME),
        (variable({"name": "POD_UID", "valueFrom": {"configMapKeyRef": {"name": "a", "key": "b"}}}), NAME),
        (moved("initContainers"), MOUNT),
        (moved("ephemeralContainers"), MOUNT),
    ],
)
def test_a_pod_mounts_only_its_own_directory(change: Change, message: str) -> None:
    pod = example()
    (container,) = pod["spec"]["containers"]
    change(pod["spec"], container, container["volumeMounts"][0])
    (refusal,) = refusals(pod)
    assert refusal.startswith(message)


def test_a_second_mount_is_looked_at_too() -> None:
    pod = example()
    mounts = pod["spec"]["containers"][0]["volumeMounts"]
    mounts.append({**mounts[0], "mountPath": "/again", "readOnly": False})
    assert [text[: len(MOUNT)] for text in refusals(pod)] == [MOUNT]
    pod["spec"]["volumes"].append({"name": "host", "hostPath": {"path": "/"}})
    assert len(refusals(pod)) == 2


def test_what_is_right_passes() -> None:
    assert refusals(example()) == []
    assert refusals({"spec": {"containers": [{"name": "app"}]}}) == []
    pod = example()
    pod["spec"]["initContainers"] = [{"name": "first", "volumeMounts": [{"name": "cpu-manager", "mountPath": "/a"}]}]
    assert refusals(pod) == []


def test_the_policy_holds_for_all_ways_to_a_container() -> None:
    (policy,) = of_kind("ValidatingAdmissionPolicy")
    (binding,) = of_kind("ValidatingAdmissionPolicyBinding")
    (rule,) = policy["spec"]["matchConstraints"]["resourceRules"]
    assert set(rule["resources"]) == {"pods", "pods/ephemeralcontainers"}
    assert set(rule["operations"]) == {"CREATE", "UPDATE"}
    assert policy["spec"]["failurePolicy"] == "Fail"
    assert (binding["spec"]["policyName"], binding["spec"]["validationActions"]) == (
        policy["metadata"]["name"],
        ["Deny"],
    )
    assert (
        "cpu-manager.kubenode/published-cpus" in binding["spec"]["matchResources"]["namespaceSelector"]["matchLabels"]
    )

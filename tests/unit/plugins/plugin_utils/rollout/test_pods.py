# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Tests of plugins/plugin_utils/rollout/pods.py."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._containers.pods import (
    pods_from_manifests,
    running_pods,
)
from ansible_collections.kubenode.cpu_manager.plugins.plugin_utils.rollout.pods import (
    DAEMON_SET,
    EMPTY_DIR,
    ENDED,
    ENDING,
    FINALIZER,
    MIRROR,
    NO_CONTROLLER,
    NOT_EVICTED,
    controller_of,
    identities,
    judge_drain,
    stays,
)

RUNNING = {"containerStatuses": [{"name": "app", "state": {"running": {"startedAt": "2026-01-01T00:00:00Z"}}}]}
OVER = {"containerStatuses": [{"name": "app", "state": {"terminated": {"exitCode": 0}}}]}
MIRRORED = {"kubernetes.io/config.mirror": "abc"}
SCRATCH = [{"name": "scratch", "emptyDir": {}}]
ENDS = {"deletionTimestamp": "2026-01-01T00:00:30Z", "deletionGracePeriodSeconds": 30}


def pod(
    name: str = "one", owner: str = "ReplicaSet", volumes: Any = None, status: Any = None, **metadata: Any
) -> dict[str, Any]:
    owners = [{"kind": owner, "name": "x", "controller": True}] if owner else None
    return {
        "metadata": {"namespace": "shop", "name": name, "uid": "u-" + name, "ownerReferences": owners, **metadata},
        "spec": {"nodeName": "worker", "volumes": volumes, "containers": [{"name": "app"}]},
        "status": {"phase": "Running", **RUNNING, **(status or {})},
    }


def verdicts(*pods: Any, **options: bool) -> dict[str, list[tuple[str, str]]]:
    judged = judge_drain(pods, **options)
    return {field: [(verdict.pod, verdict.kind) for verdict in found] for field, found in judged._asdict().items()}


@pytest.mark.parametrize(
    ("manifest", "why"),
    [
        (pod(), ""),
        (pod(owner=""), ""),
        (pod(owner="DaemonSet"), DAEMON_SET),
        (pod(ownerReferences=[{"kind": "DaemonSet", "name": "x"}]), ""),  # it is not the controller
        (pod(ownerReferences=[{"kind": "A"}, {"kind": "DaemonSet", "controller": True}]), DAEMON_SET),
        (pod(owner="Node", annotations=MIRRORED), MIRROR),
        (pod(annotations={"other": "1"}), ""),
        (pod(status={"phase": "Succeeded", **OVER}), ENDED),
        (pod(status={"phase": "Failed", "containerStatuses": None}), ENDED),
        (pod(status={"phase": "Failed"}), ""),  # its container runs yet
        (pod(status={"phase": "Failed", "containerStatuses": [{"state": {"waiting": {}}}]}), ENDED),
        (pod(status={"phase": "Unknown", **OVER}), ""),
        (pod(owner="DaemonSet", status={"phase": "Failed", **OVER}), ENDED),
        ({}, ""),
    ],
)
def test_who_stays(manifest: dict[str, Any], why: str) -> None:
    assert stays(manifest) == why


def test_controllers() -> None:
    assert controller_of(pod(owner="StatefulSet")) == "StatefulSet"
    assert controller_of(pod(owner="")) == ""
    assert controller_of(pod(ownerReferences=[{"kind": "ReplicaSet", "controller": False}])) == ""


def test_a_node_with_pods_of_all_kinds() -> None:
    agent, static, done = pod("agent", "DaemonSet"), pod("static", annotations=MIRRORED), pod("done", status=OVER)
    done["status"]["phase"] = "Succeeded"
    web, alone, scratch = pod("web"), pod("alone", ""), pod("scratch", volumes=SCRATCH)
    everything = (agent, static, done, web, alone, scratch)
    stay = [("shop/agent", DAEMON_SET), ("shop/static", MIRROR), ("shop/done", ENDED)]
    left = [("shop/web", NOT_EVICTED), ("shop/alone", NOT_EVICTED), ("shop/scratch", NOT_EVICTED)]
    refused = [("shop/alone", NO_CONTROLLER), ("shop/scratch", EMPTY_DIR)]
    assert verdicts(*everything) == {"stay": stay, "refused": refused, "left": left}
    assert verdicts(*everything, force=True)["refused"] == [("shop/scratch", EMPTY_DIR)]
    assert verdicts(*everything, delete_emptydir_data=True)["refused"] == [("shop/alone", NO_CONTROLLER)]
    assert verdicts(*everything, force=True, delete_emptydir_data=True)["refused"] == []
    assert verdicts(agent, static, done) == {"stay": stay, "refused": [], "left": []}


def test_a_pod_of_a_daemon_set_with_an_emptydir() -> None:
    """It stays, and yet kubernetes.core fails for it."""
    agent = pod("agent", "DaemonSet", SCRATCH)
    assert verdicts(agent) == {"stay": [("shop/agent", DAEMON_SET)], "refused": [("shop/agent", EMPTY_DIR)], "left": []}
    assert verdicts(agent, delete_emptydir_data=True)["refused"] == []


@pytest.mark.parametrize(
    ("metadata", "status", "kind", "words"),
    [
        ({}, {}, NOT_EVICTED, "PodDisruptionBudget"),
        ({"finalizers": ["a/b"]}, OVER, NOT_EVICTED, "PodDisruptionBudget"),
        (ENDS, {}, ENDING, "for which it has 30 s"),
        ({"deletionTimestamp": "x"}, {}, ENDING, "its containers have not ended"),
        ({**ENDS, "finalizers": ["a/b", "c/d"]}, {}, ENDING, "30 s"),  # first of all they run
        ({**ENDS, "finalizers": ["a/b", "c/d"]}, OVER, FINALIZER, "a/b, c/d"),
    ],
)
def test_why_a_pod_is_left(metadata: dict[str, Any], status: dict[str, Any], kind: str, words: str) -> None:
    judged = judge_drain([pod(status=status, **metadata)])
    ((name, why, text),) = judged.left
    assert (name, why) == ("shop/one", kind)
    assert text.startswith("shop/one: ")
    assert words in text


def test_a_pod_that_ends_already_need_not_be_evicted() -> None:
    alone = pod("alone", "", SCRATCH, **ENDS)
    assert verdicts(alone) == {"stay": [], "refused": [], "left": [("shop/alone", ENDING)]}


def test_identities() -> None:
    """All that the checkpoint's repair reads, and no more."""
    whole = pod("static", created="x", annotations={**MIRRORED, "note": "hunter2"}, labels={"a": "hunter2"})
    whole["metadata"]["creationTimestamp"] = "2026-01-01T00:00:00Z"
    container = {"name": "app", "env": [{"name": "SECRET", "value": "hunter2"}], "args": ["hunter2"]}
    whole["spec"]["containers"] = [container]
    whole["spec"]["initContainers"] = [{**container, "name": "first"}]
    whole["status"]["message"] = "hunter2"
    done = pod("done", status={"phase": "Succeeded"})
    pods = [whole, done]
    left = identities(pods)
    assert "hunter2" not in json.dumps(left)
    assert set(left[0]["metadata"]) == {"name", "namespace", "uid", "creationTimestamp", "annotations"}
    fields = [
        (identity.uid, identity.name, identity.node, identity.phase, identity.created)
        for identity in pods_from_manifests(left)
    ]
    assert fields == [
        (identity.uid, identity.name, identity.node, identity.phase, identity.created)
        for identity in pods_from_manifests(pods)
    ]
    assert [identity.uid for identity in running_pods(pods_from_manifests(left))] == ["abc"]
    # What is not there is not made up.
    assert identities([{}]) == [{"metadata": {}, "spec": {"containers": []}, "status": {}}]


def test_plain_data() -> None:
    assert judge_drain([pod("agent", "DaemonSet")]).to_dict() == {
        "stay": [{"pod": "shop/agent", "kind": DAEMON_SET, "text": ""}],
        "refused": [],
        "left": [],
    }

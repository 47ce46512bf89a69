# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Tests of plugins/plugin_utils/guarded_action.py, that nothing goes around it, and that it knows every name that the
YAML of roles and playbooks reads."""

from __future__ import annotations

import gc
import importlib
import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Callable, Iterator

import pytest
import yaml
from ansible.errors import AnsibleError
from ansible.plugins.action import ActionBase
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.errors import InputError, RefusedError
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._containers.pods import (
    pods_from_manifests,
    read_containers,
)
from ansible_collections.kubenode.cpu_manager.plugins.plugin_utils.guarded_action import (
    _OPTIONS,
    GuardedAction,
    check_facts,
    is_ours,
    needed,
    shown,
    with_reason,
)
from ansible_collections.kubenode.cpu_manager.tests.support.own_variables import (
    FILES,
    options,
    read_in,
    registered_in,
    scoped_in,
)

CHECKOUT = Path(__file__).parents[4]
ROUTED = yaml.safe_load((CHECKOUT / "meta/runtime.yml").read_text(encoding="utf-8"))["plugin_routing"]["modules"]
MODULES = sorted(path.stem for path in (CHECKOUT / "plugins/modules").glob("*.py"))
# What runs on this machine alone, and asks no node.
_HERE = ("assert", "debug", "fail", "import_playbook", "import_role", "import_tasks")
_ON_CONTROLLER = {"ansible.builtin." + name for name in (*_HERE, "include_role", "include_tasks", "meta", "set_fact")}
_KEYWORDS = ("block", "rescue", "always")


@pytest.mark.parametrize("module", MODULES)
def test_every_module_has_an_action_plugin_with_the_base(module: str) -> None:
    """meta/runtime.yml names that of most; tests/playbooks/test_unhappy.py shows that Ansible takes it."""
    plugin = ROUTED.get(module, {"action_plugin": "kubenode.cpu_manager." + module})["action_plugin"]
    name = plugin.replace("kubenode.cpu_manager.", "ansible_collections.kubenode.cpu_manager.plugins.action.")
    assert issubclass(importlib.import_module(name).ActionModule, GuardedAction)


def test_the_collector_does_not_run_while_a_module_is_packed(monkeypatch: pytest.MonkeyPatch) -> None:
    runs = []

    def packed(*_arguments: Any) -> tuple[str, str, bytes, str]:
        runs.append(gc.isenabled())
        return "binary", "", b"", "/path"

    monkeypatch.setattr(ActionBase, "_configure_module", packed)
    GuardedAction._configure_module(object.__new__(GuardedAction), "a.module", {}, {})
    assert (runs, gc.isenabled()) == ([False], True)


@pytest.mark.parametrize(
    ("stderr", "said"),
    [
        ("Traceback:\n  x\nSyntaxError: future feature annotations is not defined\n", "SyntaxError: future feature"),
        ("\x1b[2Jsu: Authentication failure\n\n", "\\x1b[2Jsu: Authentication failure"),
        ("x" * 100000, "x" * 300 + ";"),
    ],
)
def test_what_a_node_says_in_place_of_an_answer_is_the_reason(stderr: str, said: str) -> None:
    answer = with_reason({"failed": True, "msg": "no JSON", "module_stderr": stderr})
    assert str(answer["msg"]).startswith("the module gave no answer: " + said)
    assert len(str(answer["msg"])) < 500


@pytest.mark.parametrize("answer", [{"failed": True, "msg": "x", "module_stderr": "\n"}, {"module_stderr": "warned"}])
def test_another_answer_stays_as_it_is(answer: dict[str, Any]) -> None:
    assert with_reason(answer) == answer


def test_what_failed_is_told_without_secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    """In the words of a command, of the API server or of Python; what did not fail stays as it is."""
    token = {"users": [{"user": {"token": "hunter2"}}]}
    answer = {"msg": "token=hunter2", "module_stderr": "--token hunter2", "rows": ["https://a:hunter2@h"]}
    failed = {**answer, "failed": True, "invocation": {"module_args": {"kubeconfig": token}}}
    monkeypatch.setattr(ActionBase, "run", lambda *_arguments: {})
    action = object.__new__(GuardedAction)
    action._task = SimpleNamespace(collections=[], _role=None, args={})
    action._connection = SimpleNamespace(transport="ssh")
    action._discovered_interpreter_key = None

    def run(act: Callable[[Any], Any]) -> dict[str, Any]:
        monkeypatch.setattr(action, "act", act, raising=False)
        return action.run(task_vars={})

    def refused(_variables: object) -> None:
        raise InputError("token=hunter2 is wrong", "https://a:hunter2@h")

    def ended(_variables: object) -> None:
        raise AnsibleError("no connection: password=hunter2")

    assert "hunter2" not in json.dumps(run(lambda _variables: failed))
    assert run(refused)["msg"] == "https://redacted@h: token=redacted is wrong"
    with pytest.raises(AnsibleError, match="no connection: password=redacted"):
        run(ended)
    assert run(lambda _variables: answer) == answer
    invoked = run(lambda _variables: {"invocation": failed["invocation"]})
    assert "hunter2" not in json.dumps(invoked)


def test_the_module_that_a_task_names_gets_what_all_of_them_take() -> None:
    def chosen(**given: Any) -> tuple[str, dict[str, Any]]:
        action = object.__new__(GuardedAction)
        action._task = SimpleNamespace(args=given)
        return action.chosen(("copy", "file"), {"mode": {"type": "str"}, "owner": {"type": "str"}})

    assert chosen(file={"path": "/x"}, mode="0600") == ("file", {"mode": "0600", "path": "/x"})
    assert chosen(copy={"mode": "0644"}, mode="0600") == ("copy", {"mode": "0644"})
    wrong: dict[str, Any]
    for wrong in ({"mode": "0600"}, {"copy": {}, "file": {}}, {"command": {}}):
        with pytest.raises(AnsibleError):
            chosen(**wrong)


def tasks_of(items: Any, is_here: bool = False) -> Iterator[tuple[dict[str, Any], bool]]:
    """Yield each task, and whether it is done on the controller, wherever the play is."""
    for item in items:
        here = is_here if "delegate_to" not in item else item["delegate_to"] == "localhost"
        inner = [task for key in (*_KEYWORDS, "tasks") for task in item.get(key, ())]
        if inner:
            yield from tasks_of(inner, here)
        elif "roles" not in item and "hosts" not in item:
            yield item, here


FILES_OF_TASKS = sorted(
    path
    for pattern in ("roles/*/tasks/**/*.yml", "playbooks/*.yml", "playbooks/fleet/*.yml", "playbooks/tasks/*.yml")
    for path in CHECKOUT.glob(pattern)
)


@pytest.mark.parametrize("path", FILES_OF_TASKS, ids=lambda path: "/".join(path.parts[-3:]))
def test_no_module_of_others_is_run_on_a_node(path: Path) -> None:
    for task, is_here in tasks_of(yaml.safe_load(path.read_text("utf-8"))):
        (action,) = (key for key in task if "." in key)
        assert is_here or action in _ON_CONTROLLER or action.startswith("kubenode."), task["name"]


# --- texts -----------------------------------------------------------------------------------------


def texts_in(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for key, member in value.items():
            yield from (key, *texts_in(member))
    elif isinstance(value, list):
        for member in value:
            yield from texts_in(member)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
)
CONTROL = st.text(st.characters(max_codepoint=0xA0) | st.sampled_from("\u202e\u2028\ue000\U000e0001\U000f0000\ud800"))


@given(st.dictionaries(CONTROL, JSON | CONTROL, max_size=3), st.booleans())
def test_no_text_of_an_answer_is_obeyed(answer: dict[str, Any], is_ascii: bool) -> None:
    told = json.loads(shown(json.dumps(answer, ensure_ascii=is_ascii)))
    for text in texts_in(told):
        assert not [sign for sign in text if sign not in "\n\t" and not is_shown(sign)], ascii(text)


def is_shown(sign: str) -> bool:
    return sign.isprintable() or (sign.isspace() and ord(sign) > 0x9F and sign not in "\u2028\u2029")


@given(JSON)
def test_an_honest_answer_stays(answer: Any) -> None:
    if all(is_shown(sign) or sign in "\n\t" for text in texts_in(answer) for sign in text):
        for is_ascii in (True, False):
            assert json.loads(shown(json.dumps(answer, ensure_ascii=is_ascii))) == answer


@pytest.mark.parametrize(
    ("printed", "expected"),
    [
        ("junk \x1b]0;owned\x07\n", "junk \\\\x1b]0;owned\\\\x07\n"),
        ('{"a": "\\u001b[2J"}', '{"a": "\\\\x1b[2J"}'),
        ('{"a": "\\\\u001b[2J"}', '{"a": "\\\\u001b[2J"}'),
        ('{"a": "\x9b31m"}', '{"a": "\\\\x9b31m"}'),
        # ssh ends lines as a terminal does.
        ('{"a": "one\\r\\ntwo"}\r\n', '{"a": "one\\ntwo"}\n'),
        ('{"a": "\\ud83d\\ude00 \\u00e9 \\" \\u0022 \\/"}', '{"a": "\\ud83d\\ude00 \\u00e9 \\" \\u0022 \\/"}'),
        ('{"a": "\\ud800"}', '{"a": "\\\\ud800"}'),
        ("trailing \\", "trailing \\"),
    ],
)
def test_what_is_printed_is_shown(printed: str, expected: str) -> None:
    assert shown(printed) == expected


# Ansible has these itself, with priority over facts (ansible_* are not made of facts, or are of no use there).
_OF_ANSIBLE = frozenset(("groups", "hostvars", "role_path", "item"))
# Of a playbook, read after they are registered alone, and too common for names of ours.
_AFTERWARDS = frozenset(("cpu",))


@pytest.mark.parametrize("path", FILES, ids=lambda path: "/".join(path.parts[-4:]))
def test_every_name_that_is_read_is_known(path: Path) -> None:
    names = read_in(path) | registered_in(path)
    others = {name for name in names - scoped_in(path) if not name.startswith("ansible_") and not is_ours(name)}
    assert others - _OF_ANSIBLE - _AFTERWARDS == set()


def test_names_are_found() -> None:
    assert len(set().union(*map(read_in, FILES))) > 200
    assert len(set().union(*map(registered_in, FILES))) > 45


def test_every_option_of_a_role_is_known() -> None:
    assert len(options()) > 100
    assert [name for name in options() if not is_ours(name)] == []


def test_honest_facts_are_left_alone() -> None:
    names = (
        "discovered_interpreter_python distribution module_setup gather_subset packages services processor_vcpus"
        " facter_kernel ohai_platform hostname nodename service_mgr date_time cache_size kube_version reconcile system"
        " local env lsb python cpu proposals saved"
    )
    check_facts({"inventory_hostname": "worker-1", "ansible_facts": dict.fromkeys(names.split(), "x")})
    check_facts({"inventory_hostname": "worker-1"})


@pytest.mark.parametrize(
    "name",
    [
        *("kubelet_kubeconfig", "kubelet_of_tomorrow", "cpu_manager_save_directory", "cache_state", "saved_node"),
        *("kube_override_hostname", "system_reserved", "omit", "group_names", "reconcile_release", "proposal"),
    ],
)
def test_a_name_of_ours_is_refused(name: str) -> None:
    with pytest.raises(RefusedError) as refused:
        check_facts({"inventory_hostname": "worker-1", "ansible_facts": {"distribution": "Debian", name: "x"}})
    assert refused.value.kind == "foreign_fact"
    assert str(refused.value).startswith("worker-1: facts of this host have names of variables")
    assert "(%s)" % name in str(refused.value)
    assert "set_fact and cacheable: true" in refused.value.remedy


def test_a_message_is_short_and_names_no_host_that_a_fact_names() -> None:
    facts = {"kubelet_%s%d" % ("x" * 500, number): 1 for number in range(3000)}
    with pytest.raises(RefusedError) as refused:
        check_facts({"inventory_hostname": "evil", "ansible_facts": {**facts, "inventory_hostname": "evil"}})
    assert str(refused.value).startswith("this host: ")
    assert " and 2996 more" in str(refused.value)
    assert len(str(refused.value)) < 1200


SECRET = "hunter2"
CONTAINER: dict[str, Any] = {
    "name": "main",
    "image": SECRET,
    "args": [SECRET],
    "command": ["sh", "-c", SECRET],
    "env": [{"name": "TOKEN", "value": SECRET}],
    "livenessProbe": {"httpGet": {"httpHeaders": [{"name": "a", "value": SECRET}]}},
    "resources": {"requests": {"cpu": "2", "memory": "1Gi"}, "limits": {"cpu": 2, "memory": "1Gi"}, "claims": [SECRET]},
}
POD: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {
        "name": "web",
        "namespace": "shop",
        "uid": "u-1",
        "creationTimestamp": "2026-11-21T10:15:00Z",
        "labels": {"a": SECRET},
        "annotations": {"kubernetes.io/config.mirror": "m-1", "kubectl.kubernetes.io/last-applied": SECRET},
        "managedFields": [{"x": SECRET}],
    },
    "spec": {
        "nodeName": "worker-1",
        "initContainers": [{**CONTAINER, "name": "first", "restartPolicy": "Always"}],
        "containers": [CONTAINER],
        "volumes": [{"name": "v", "csi": {"nodePublishSecretRef": {"name": SECRET}}}],
        "imagePullSecrets": [{"name": SECRET}],
        "resources": {"limits": {"cpu": "4"}},
    },
    "status": {
        "phase": "Running",
        "qosClass": "Guaranteed",
        "message": SECRET,
        "containerStatuses": [{"name": "main", "allocatedResources": {"cpu": "2"}, "state": {"waiting": SECRET}}],
    },
}
WORKLOAD = {
    "kind": "Deployment",
    "metadata": {"name": "web", "annotations": {"a": SECRET}},
    "spec": {"replicas": 2, "template": {"metadata": {"labels": {"a": SECRET}}, "spec": POD["spec"]}},
}
INSPECTED = {
    "status": {
        "id": "c1",
        "state": "CONTAINER_RUNNING",
        "createdAt": "2026-11-21T10:15:00Z",
        "labels": {
            "io.kubernetes.container.name": "main",
            "io.kubernetes.pod.name": "web",
            "io.kubernetes.pod.namespace": "shop",
            "io.kubernetes.pod.uid": "u-1",
        },
        "annotations": {"a": SECRET},
    },
    "info": {
        "config": {"envs": [{"key": "TOKEN", "value": SECRET}]},
        "runtimeSpec": {
            "process": {"env": [SECRET], "args": [SECRET]},
            "linux": {"cgroupsPath": "kubepods-podu1.slice:cri-containerd:c1", "resources": {"cpu": {"shares": 2048}}},
        },
    },
}


@pytest.mark.parametrize(
    "pods",
    [[POD], [WORKLOAD], [{"kind": "List", "items": [POD, {"kind": "PodList", "items": [WORKLOAD]}]}]],
    ids=["pod", "workload", "lists"],
)
def test_the_pods_are_the_same_and_without_secrets(pods: list[dict[str, Any]]) -> None:
    sent = needed(pods, _OPTIONS["pods"])
    assert SECRET not in json.dumps(sent)
    assert pods_from_manifests(sent) == pods_from_manifests(pods)


def test_the_containers_are_the_same_and_without_secrets() -> None:
    sent = needed([INSPECTED], _OPTIONS["containers"])
    assert SECRET not in json.dumps(sent)
    assert read_containers(sent) == read_containers([INSPECTED])


@pytest.mark.parametrize(
    "pod",
    [
        {**POD, "spec": SECRET},
        {**POD, "spec": [SECRET]},
        {**POD, "metadata": {"name": {"x": 1}}},
        {**POD, "spec": {"containers": {"main": CONTAINER}}},
        {**POD, "spec": {"containers": [SECRET]}},
        {"kind": "List", "items": SECRET},
    ],
)
def test_a_wrong_type_is_refused_all_the_same(pod: dict[str, Any]) -> None:
    sent = needed([pod], _OPTIONS["pods"])
    assert SECRET not in json.dumps(sent)
    with pytest.raises(InputError) as before:
        pods_from_manifests([pod])
    with pytest.raises(InputError) as after:
        pods_from_manifests(sent)
    assert str(after.value).partition(", but")[0] == str(before.value).partition(", but")[0]

# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The role reconcile on a saved node: what it installs, runs, and takes away again."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, Iterator

import pytest

from ansible_collections.kubenode.cpu_manager.plugins.module_utils.cpuset import CPUSet
from ansible_collections.kubenode.cpu_manager.tests.machines.cgroups import (
    SYSTEMD,
    V1,
    container_files,
    pod_path,
    write_cgroups,
)
from ansible_collections.kubenode.cpu_manager.tests.support import pythons
from ansible_collections.kubenode.cpu_manager.tests.support.numbers import IS_FULL
from ansible_collections.kubenode.cpu_manager.tests.support.others import as_root

from .conftest import CopyOf, ansible_playbook, fingerprint, play, task

PROGRAM = "usr/local/lib/kubenode/cpu-manager-reconcile.pyz"
SETTINGS = "etc/kubenode/cpu-manager-reconcile.json"
SERVICE = "etc/systemd/system/kubenode-cpu-manager-reconcile.service"
TIMER = "etc/systemd/system/kubenode-cpu-manager-reconcile.timer"
# One that the service sees, which the tests' own need not be.
PYTHON = "/usr/bin/python3"

# The pod of the demo's epyc, to which its checkpoint gives CPUs 12-15,76-79, and one of the shared pool.
POSTGRES = "0f3f7f0a-90a4-4b39-8a3e-6a9a3fd2f1c4"
WEB = "1a2b3c4d-0000-4000-8000-000000000001"
OWN, SHARED = "12-15,76-79", "0-11,16-75,80-127"
IDS = {POSTGRES: "a" * 64, WEB: "b" * 64}
NAMES = {POSTGRES: ("db-0", "postgres"), WEB: ("web", "nginx")}


def node(root: Path) -> dict[str, Path]:
    """Put cgroups that somebody has changed in the demo's place; give the file of each pod's container."""
    online = "0-127"
    cgroups = {}
    for uid, qos in ((POSTGRES, "Guaranteed"), (WEB, "Burstable")):
        pod = pod_path(SYSTEMD, uid, qos)
        whole = container_files(SYSTEMD, "containerd", pod, IDS[uid], online)
        cgroups.update(whole)
        cgroups.update({path: next(iter(whole.values()))._replace(processes=()) for path in above(pod)})
    logs = root / "var/log/containers"
    for directory in (root / "sys/fs", logs):
        shutil.rmtree(directory)
    write_cgroups(root, V1, cgroups, online, "0-7")
    logs.mkdir(parents=True)
    for uid, (pod_name, container) in NAMES.items():
        (logs / ("%s_shop_%s-%s.log" % (pod_name, container, IDS[uid]))).touch()
    (root / "var/lib/metrics").mkdir()
    (root / "etc/systemd/system").mkdir(parents=True)
    mount = root / V1.mount[1:]
    return {uid: next(mount.rglob("*%s.scope" % IDS[uid])) / "cpuset.cpus" for uid in IDS}


def above(path: str) -> list[str]:
    names = path.split("/")
    return ["/".join(names[:end]) for end in range(1, len(names) + 1)]


def run_program(root: Path, interpreter: str) -> subprocess.CompletedProcess[str]:
    arguments = [interpreter, "-I", str(root / PROGRAM), str(root / SETTINGS)]
    return subprocess.run(arguments, capture_output=True, text=True, check=False)


def test_the_role(copy_of: CopyOf, tmp_path: Path) -> None:
    root = copy_of("epyc", "node")
    files = node(root)
    plays: list[dict[str, Any]] = [
        {
            "name": "Keep cpusets",
            "hosts": "all",
            "gather_facts": False,
            "roles": [{"role": "kubenode.cpu_manager.reconcile"}],
        }
    ]
    variables = {
        "reconcile_node_root": str(root),
        "reconcile_manage_service": False,
        "reconcile_period": "30s",
        "reconcile_textfile": "/var/lib/metrics/cpu.prom",
        "reconcile_use_runtime": False,
        "reconcile_interpreter": PYTHON,
    }
    before = fingerprint(root)
    hosts = {"epyc": variables}
    check = ansible_playbook(tmp_path / "check", plays, hosts, "--check", "--diff")
    assert check.status == 0, check.account()
    assert fingerprint(root) == before
    run = ansible_playbook(tmp_path / "run", plays, hosts)
    assert run.status == 0, run.account()
    again = ansible_playbook(tmp_path / "again", plays, hosts)
    assert again.status == 0, again.account()
    assert "changed=0" in again.output
    assert (root / PROGRAM).stat().st_mode & 0o777 == 0o755
    assert "OnUnitInactiveSec=30s" in (root / TIMER).read_text()
    (interpreter,) = re.findall("^ExecStart=([^ ]+) -I ", (root / SERVICE).read_text(), re.MULTILINE)
    writable = "-/sys/fs/cgroup -/sys/fs/resctrl -/var/lib/kubenode-cpu-manager -/var/lib/metrics"
    assert "ReadWritePaths=%s\n" % writable in (root / SERVICE).read_text()

    # It repairs what somebody has changed, on every Python that a node may have; a second pass says nothing.
    installed = fingerprint(root)
    found = [str(pythons.installed()[version]) for version in pythons.VERSIONS if version in pythons.installed()]
    for python in [interpreter, *(found if IS_FULL else found[:: max(1, len(found) - 1)])]:
        for file in files.values():
            file.write_text("0-127\n")
        done = run_program(root, python)
        assert (done.returncode, done.stderr) == (0, ""), done
        assert sorted(done.stdout.splitlines()) == [
            "written: pod shop/db-0, container postgres: CPUs 0-127 to " + OWN,
            "written: pod shop/web, container nginx: CPUs 0-127 to " + SHARED,
        ]
        assert files[POSTGRES].read_text().strip() == OWN
        assert files[WEB].read_text().strip() == SHARED
        quiet = run_program(root, python)
        assert (quiet.returncode, quiet.stdout) == (0, "")
    metrics = (root / "var/lib/metrics/cpu.prom").read_text()
    assert 'kubenode_cpu_manager_reconcile_containers{result="kept"} 2\n' in metrics
    assert "kubenode_cpu_manager_reconcile_success 1\n" in metrics
    new = set(fingerprint(root)) - set(installed)
    published = {"run/kubenode/cpus/%s/%s.json" % (uid, NAMES[uid][1]) for uid in IDS}
    assert {path for path in new if path.endswith((".json", ".prom"))} == {"var/lib/metrics/cpu.prom", *published}

    # A damaged checkpoint: nothing is written, and the figures say so.
    checkpoint = root / "var/lib/kubelet/cpu_manager_state"
    checkpoint.write_text(checkpoint.read_text().replace("0-11", "0-10"))
    failed = run_program(root, interpreter)
    assert failed.returncode == 1
    assert "is damaged" in failed.stdout
    assert "kubenode_cpu_manager_reconcile_success 0\n" in (root / "var/lib/metrics/cpu.prom").read_text()

    # And away again.
    hosts["epyc"]["reconcile_state"] = "absent"
    assert list((root / "run/kubenode/cpus").rglob("*.json"))
    for expected in ("changed=4", "changed=0"):
        removed = ansible_playbook(tmp_path / "absent", plays, hosts)
        assert removed.status == 0, removed.account()
        assert expected in removed.output
    assert not any((root / path).exists() for path in (PROGRAM, SETTINGS, SERVICE, TIMER, "var/lib/metrics/cpu.prom"))
    assert not list((root / "run/kubenode/cpus").rglob("*.json"))


def test_the_policy_dynamic(copy_of: CopyOf, tmp_path: Path) -> None:
    """Refused beside the kubelet's static policy; else it gives CPUs out, and back."""
    root = copy_of("epyc", "node")
    files = node(root)
    variables: dict[str, Any] = {
        "reconcile_node_root": str(root),
        "reconcile_manage_service": False,
        "reconcile_policy": "dynamic",
        "reconcile_use_runtime": False,
        "reconcile_interpreter": PYTHON,
        "reconcile_textfile": "/var/lib/metrics/cpu.prom",
    }
    plays = play(roles=[{"role": "kubenode.cpu_manager.reconcile"}])
    before = fingerprint(root)
    refused = ansible_playbook(tmp_path / "refused", plays, {"epyc": variables})
    assert refused.last("epyc")["failure"]["kind"] == "other_owner"
    assert "only one of both can give out CPUs" in refused.last("epyc")["msg"]
    wrong = ansible_playbook(tmp_path / "wrong", plays, {"epyc": {**variables, "reconcile_delay": "90s"}})
    assert "delay: 90s is longer than 60 seconds" in wrong.last("epyc")["msg"]
    assert fingerprint(root) == before

    (root / "var/lib/kubelet/cpu_manager_state").unlink()
    configuration = root / "etc/kubernetes/kubelet-config.yaml"
    configuration.write_text(re.sub("cpuManagerPolicy: *static", "cpuManagerPolicy: none", configuration.read_text()))
    before = fingerprint(root)
    for kept, where, message in (
        ({"reconcile_policy": "isolated"}, "reconcile_policy", "the kernel isolates no CPU; boot with isolcpus="),
        ({"reconcile_reserved_cpus": "500"}, "reconcile_reserved_cpus", "the machine has no CPUs 500 to reserve"),
        ({"reconcile_shared_minimum": 500}, "reconcile_shared_minimum", "cannot be kept of 128"),
    ):
        for argument in ((), ("--check",)):
            wrong = ansible_playbook(tmp_path / "wrong", plays, {"epyc": {**variables, **kept}}, *argument)
            assert wrong.last("epyc")["failure"]["where"] == where, wrong.account()
            assert message in wrong.last("epyc")["msg"]
    assert fingerprint(root) == before
    controller = root / "sys/fs/cgroup/cpu,cpuacct"
    for file in files.values():
        shares = controller / file.parent.relative_to(root / V1.mount[1:]) / "cpu.shares"
        shares.parent.mkdir(parents=True)
        shares.write_text("8192\n" if IDS[POSTGRES] in str(file) else "2\n")
    (controller / "cpu.shares").write_text("1024\n")
    run = ansible_playbook(tmp_path / "run", plays, {"epyc": variables})
    assert run.status == 0, run.account()
    assert not (root / TIMER).exists()
    assert "\nType=notify\nRestart=always\n" in (root / SERVICE).read_text()
    arguments = [PYTHON, "-I", str(root / PROGRAM), str(root / SETTINGS)]
    done = subprocess.run([*arguments, "once"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, ""), done
    own, shared = (CPUSet.parse(files[uid].read_text()) for uid in (POSTGRES, WEB))
    assert len(own) == 8
    assert own | shared == CPUSet.parse("0-127")
    assert own.isdisjoint(shared)
    assert "pool: CPUs %s\n" % shared in done.stdout
    metrics = (root / "var/lib/metrics/cpu.prom").read_text()
    assert 'kubenode_cpu_manager_dynamic_cpus{pod_uid="%s",container="postgres"} 8\n' % POSTGRES in metrics
    assert "kubenode_cpu_manager_dynamic_shared_cpus 120\n" in metrics

    # Back to static: all have all CPUs, until the kubelet gives them out again.
    back = ansible_playbook(tmp_path / "back", plays, {"epyc": {**variables, "reconcile_policy": "static"}})
    assert back.status == 0, back.account()
    assert [file.read_text() for file in files.values()] == ["0-127\n"] * 2
    assert (root / TIMER).exists()
    assert not (root / "run/kubenode/cpu-manager.json").exists()


# As systemctl for units that are loaded and started; it writes down what it is to do.
SYSTEMCTL = """\
#!/bin/sh
case "$1" in
show) printf 'LoadState=loaded\\nActiveState=active\\nUnitFileState=enabled\\n' ;;
is-enabled) echo enabled ;;
*) echo "$@" >> %s ;;
esac
"""


# Only this run sees a /run of its own.
PRIVATE_RUN = ("unshare", "--mount", "sh", "-ec", 'mount -t tmpfs none /run; exec "$@"', "sh")


@as_root
def test_a_service_that_has_promised_nothing_is_stopped_all_the_same(tmp_path: Path) -> None:
    """Such as where no pod has run since the boot. What a timer starts is no such service."""
    program, log, place = tmp_path / "bin/systemctl", tmp_path / "log", tmp_path / "place"
    program.parent.mkdir()
    program.write_text(SYSTEMCTL % log)
    program.chmod(0o755)
    environment = {"PATH": "%s:%s" % (program.parent, os.environ["PATH"])}
    variables = {
        "reconcile_node_root": "/",
        "reconcile_interpreter": PYTHON,
        "reconcile_program_path": str(place / "program.pyz"),
        "reconcile_settings_path": str(place / "settings/settings.json"),
        "reconcile_unit_directory": str(place),
        # A service of systemd does not see /tmp; this one is none.
        "reconcile_hidden": [],
    }
    plays = play(roles=[{"role": "kubenode.cpu_manager.reconcile"}])
    name = Path(SERVICE).name
    enabled = place / "multi-user.target.wants" / name
    enabled.parent.mkdir(parents=True)
    for is_enabled in (False, True):
        for state in ("present", "absent"):
            given = json.dumps({**variables, "reconcile_state": state})
            log.write_text("")
            run = ansible_playbook(
                tmp_path / state, plays, {"node": {}}, "-e", given, prefix=PRIVATE_RUN, environment=environment
            )
            assert run.status == 0, run.account()
            if is_enabled and state == "present":
                enabled.symlink_to(place / name)
        assert ("stop %s" % name in log.read_text().splitlines()) == is_enabled


@pytest.mark.parametrize(
    ("role", "switch"),
    [
        ("reconcile", "reconcile_manage_service"),
        ("cache", "cache_manage_service"),
        ("housekeeping", "housekeeping_manage_services"),
    ],
)
def test_no_service_of_this_machine_is_managed_for_a_saved_node(
    copy_of: CopyOf, tmp_path: Path, role: str, switch: str
) -> None:
    root = copy_of("epyc", "node")
    before = fingerprint(root)
    variables = {"kubelet_node_root": str(root), switch: True, "kubelet_reserved_system_cpus": "0-1"}
    plays = play(roles=[{"role": "kubenode.cpu_manager." + role}])
    run = ansible_playbook(tmp_path / "run", plays, {"node": variables})
    assert run.last("node")["failure"]["kind"] == "this_machine", run.account()
    assert run.last("node")["msg"].endswith("; remove %s: the services of a saved node run elsewhere" % switch)
    assert fingerprint(root) == before


@as_root
def test_units_and_settings_of_another_user_become_roots(copy_of: CopyOf, tmp_path: Path) -> None:
    """systemd runs the units as root, and the program goes by its settings."""
    root = copy_of("epyc", "node")
    node(root)
    variables = {"reconcile_node_root": str(root), "reconcile_interpreter": PYTHON, "reconcile_manage_service": False}
    plays = play(roles=[{"role": "kubenode.cpu_manager.reconcile"}])
    assert ansible_playbook(tmp_path / "first", plays, {"epyc": variables}).status == 0
    for path in (SERVICE, TIMER, SETTINGS, str(Path(SETTINGS).parent)):
        os.chown(root / path, 65534, 65534)
        check = ansible_playbook(tmp_path / "check", plays, {"epyc": variables}, "--check")
        assert "changed=1" in check.output, check.account()
        assert (root / path).stat().st_uid == 65534
        run = ansible_playbook(tmp_path / "run", plays, {"epyc": variables})
        assert "changed=1" in run.output, run.account()
        assert ((root / path).stat().st_uid, (root / path).stat().st_gid) == (0, 0)
    # What others may replace again is refused.
    (root / SERVICE).parent.chmod(0o777)
    refused = ansible_playbook(tmp_path / "refused", plays, {"epyc": variables}).last("epyc")
    assert refused["failure"] == {**refused["failure"], "kind": "others_write", "where": str((root / SERVICE).parent)}


@as_root
def test_a_program_of_another_user_is_not_run_to_take_it_away(copy_of: CopyOf, tmp_path: Path) -> None:
    root = copy_of("epyc", "node")
    node(root)
    variables = {"reconcile_node_root": str(root), "reconcile_interpreter": PYTHON, "reconcile_manage_service": False}
    plays = play(roles=[{"role": "kubenode.cpu_manager.reconcile"}])
    assert ansible_playbook(tmp_path / "first", plays, {"epyc": variables}).status == 0
    (root / PROGRAM).write_text("#!/bin/sh\ntouch %s/ran\n" % tmp_path)
    os.chown(root / PROGRAM, 65534, 65534)
    absent = {**variables, "reconcile_state": "absent"}
    refused = ansible_playbook(tmp_path / "absent", plays, {"epyc": absent}).last("epyc")
    assert (refused["failure"]["kind"], refused["failure"]["where"]) == ("others_write", str(root / PROGRAM))
    assert not (tmp_path / "ran").exists()
    (root / PROGRAM).unlink()
    assert ansible_playbook(tmp_path / "again", plays, {"epyc": absent}).status == 0
    assert not (root / SETTINGS).exists()


@pytest.mark.needs("systemd-analyze")
def test_systemd_understands_the_units(copy_of: CopyOf, tmp_path: Path) -> None:
    root = copy_of("xeon", "node")
    (root / "etc/systemd/system").mkdir(parents=True)
    variables = {
        "reconcile_node_root": str(root),
        "reconcile_manage_service": False,
        "reconcile_interpreter": PYTHON,
    }
    plays: list[dict[str, Any]] = [
        {
            "name": "Keep cpusets",
            "hosts": "all",
            "gather_facts": False,
            "roles": [{"role": "kubenode.cpu_manager.reconcile"}],
        }
    ]
    run = ansible_playbook(tmp_path / "run", plays, {"xeon": variables})
    assert run.status == 0, run.account()
    # It wants the files that a unit names, and the manual.
    service = root / SERVICE
    text = (
        service.read_text().replace(" /usr/local", " %s/usr/local" % root).replace(" /etc/kube", " %s/etc/kube" % root)
    )
    service.write_text(re.sub("^Documentation=.*\n", "", text, flags=re.MULTILINE))
    done = subprocess.run(
        ["systemd-analyze", "verify", str(service), str(root / TIMER)], capture_output=True, text=True, check=False
    )
    security = ["systemd-analyze", "security", "--offline=true", "--threshold=15", "--no-pager", str(service)]
    subprocess.run(security, stdout=subprocess.DEVNULL, check=True)
    complaints = [line for line in done.stderr.splitlines() if "kubenode" in line]
    assert not complaints, done.stderr
    assert json.loads((root / SETTINGS).read_text())["textfile"] is None


@pytest.fixture
def hidden() -> Iterator[Path]:
    """Yield a directory below /tmp, of which a service has its own."""
    with tempfile.TemporaryDirectory(dir="/tmp") as name:
        yield Path(name)


def test_a_python_that_the_service_does_not_see(copy_of: CopyOf, hidden: Path, tmp_path: Path) -> None:
    """It is met before anything is written, in a check as well."""
    hosts: dict[str, dict[str, Any]] = {}
    venv = hidden / "venv"
    (venv / "bin").mkdir(parents=True)
    (venv / "bin/python3").symlink_to(PYTHON)
    wanted = {
        "direct": {"reconcile_interpreter": str(venv / "bin/python3")},
        "program": {"reconcile_interpreter": PYTHON, "reconcile_program_path": "/root/reconcile.pyz"},
        "settings": {"reconcile_interpreter": PYTHON, "reconcile_settings_path": "/home/me/../me/settings.json"},
        "figures": {"reconcile_interpreter": PYTHON, "reconcile_textfile": "/var/tmp/cpu.prom"},
        "relative": {"reconcile_interpreter": "python3"},
    }
    for name, variables in wanted.items():
        root = copy_of("xeon", name)
        hosts[name] = {"reconcile_node_root": str(root), "reconcile_manage_service": False, **variables}
    before = {name: fingerprint(Path(variables["reconcile_node_root"])) for name, variables in hosts.items()}
    plays = play(roles=[{"role": "kubenode.cpu_manager.reconcile"}])
    for argument in ((), ("--check",)):
        run = ansible_playbook(tmp_path / "run", plays, hosts, *argument)
        for name, variables in hosts.items():
            assert fingerprint(Path(variables["reconcile_node_root"])) == before[name], name
            assert "msg" in run.last(name), run.account()
        python = run.last("direct")
        assert python["failure"]["kind"] == "hidden"
        assert python["msg"].endswith(
            ": %s: the service does not see what is in /tmp, where this Python is; nothing was written;"
            " name a Python elsewhere in reconcile_interpreter, such as /usr/bin/python3" % (venv / "bin/python3")
        )
        assert "/root/reconcile.pyz: the service does not see what is in /root" in run.last("program")["msg"]
        assert "the service does not see what is in /home" in run.last("settings")["msg"]
        assert "/var/tmp/cpu.prom: the service does not see what is in /var/tmp" in run.last("figures")["msg"]
        assert "reconcile_interpreter: 'python3' is not an absolute path" in run.last("relative")["msg"]


def test_a_python_whose_modules_the_service_does_not_see(tmp_path: Path) -> None:
    """As of a virtual environment in /opt of a Python in /root."""
    # Where the modules of this Python are; its program is elsewhere, in the virtual environment.
    modules = Path(os.__file__).parent
    hidden = [modules] if not str(modules).startswith(("/root", "/home")) else []
    parameters: dict[str, Any] = {
        "path": str(tmp_path / "program.pyz"),
        "interpreter": sys.executable,
        "hidden": ["/root", "/home", *map(str, hidden)],
        "option_names": {"interpreter": "my_python"},
    }
    run = ansible_playbook(
        tmp_path / "run", play(task("reconcile_program", root="/", **parameters)), {"xeon": {}}, "--check"
    )
    assert run.last("xeon")["failure"] == {
        "kind": "hidden",
        "where": sys.executable,
        "remedy": "name a Python elsewhere in my_python, such as /usr/bin/python3",
    }
    assert not (tmp_path / "program.pyz").exists()

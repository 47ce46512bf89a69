# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The programs of services on the machine that the tests run on, with the little power that their services have."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import Iterator

import pytest

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.zipapp import build
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._housekeeping.housekeeping_journal import (
    PATH,
    HousekeepingJournal,
    HousekeepingWish,
    text_of,
)
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.cpuset import CPUSet
from ansible_collections.kubenode.cpu_manager.plugins.modules import housekeeping, reconcile_program
from ansible_collections.kubenode.cpu_manager.tests.machines.services import (
    PYTHON,
    housekeeping_services,
    reconcile_service,
)
from ansible_collections.kubenode.cpu_manager.tests.support.cpus_of_machine import alone

from .systemd import SHARED, run_under_systemd, why_not

# A /run of its own, so that nothing is left; then what hides processes, and the power of the service.
NAMESPACE = 'mount -t tmpfs tmpfs /run && %s exec setpriv --bounding-set=-all,+dac_override "$@"'
# Root's own group may see all, where there is no other.
HIDEPID = "mount -t proc -o %s proc /proc &&"
STATE = 'kubenode_cpu_manager_reconcile_kubelet{state="%s"} 1\n'

QUEUE, WORKQUEUES = Path("/sys/class/net/lo/queues/rx-0/rps_cpus"), Path("/sys/devices/virtual/workqueue")
UNITS = {
    "static.service": reconcile_service(
        textfile=SHARED + "/static.prom",
        reconcile_program_path=SHARED + "/reconcile.pyz",
        reconcile_settings_path=SHARED + "/static.json",
    ),
    "dynamic.service": reconcile_service(
        "dynamic",
        SHARED + "/dynamic.prom",
        reconcile_program_path=SHARED + "/reconcile.pyz",
        reconcile_settings_path=SHARED + "/dynamic.json",
    ).replace("WatchdogSec=5min 10s", "WatchdogSec=3s"),
    **housekeeping_services(path=SHARED + "/housekeeping.pyz"),
}
# It stops the program as if it hung, and waits for another process of it.
SCRIPT = """\
mkdir --parents --mode=700 %(directory)s && cp %(shared)s/journal.json %(path)s
systemctl start static kubenode-housekeeping kubenode-housekeeping-network dynamic && echo "all began"
sleep 5
echo "after 5 seconds: $(systemctl show --property=NRestarts,ActiveState dynamic | sort | xargs)"
kill -STOP "$(systemctl show --property=MainPID --value dynamic)"
for second in $(seq 30); do
    sleep 1
    test "$(systemctl show --property=NRestarts --value dynamic)" = 0 || break
done
echo "after a hang: $(systemctl show --property=NRestarts,ActiveState dynamic | sort | xargs)"
journalctl --no-pager --output=cat --unit=kubenode-housekeeping --unit=kubenode-housekeeping-network
""" % {"directory": os.path.dirname(PATH), "path": PATH, "shared": SHARED}

pytestmark = [
    pytest.mark.needs("unshare", "setpriv", "mount"),
    pytest.mark.skipif(os.geteuid() != 0, reason="only root can make a service of itself"),
    pytest.mark.skipif(Path("/var/lib/kubelet").exists(), reason="this machine has a kubelet"),
]


def one_pass(place: Path, hides: str, **settings: str) -> tuple[int, str, str]:
    """Return one pass of the reconcile program on this machine: its status, what it says, and its figures."""
    program, figures = place / "program.pyz", place / "cpu.prom"
    program.write_bytes(build(reconcile_program.PROGRAM, sys.executable))
    given = {"root": "/", "use_runtime": False, "textfile": str(figures), **settings}
    (place / "settings.json").write_text(json.dumps(given))
    call = [sys.executable, "-I", "-S", str(program), str(place / "settings.json")]
    shell = ["unshare", "--mount", "sh", "-c", NAMESPACE % hides, "sh"]
    done = subprocess.run([*shell, *call], capture_output=True, text=True, check=False)
    assert not done.stderr
    return done.returncode, done.stdout, figures.read_text()


@contextmanager
def kubelet() -> Iterator[int]:
    """Yield a process of root that says it is one, and is no service."""
    with subprocess.Popen(["kubelet", "60"], executable="/bin/sleep") as process:
        try:
            yield process.pid
        finally:
            process.kill()


def test_a_kubelet_that_is_stopped_is_no_error(tmp_path: Path) -> None:
    status, said, figures = one_pass(tmp_path, "")
    assert (status, STATE % "stopped" in figures) == (0, True), said
    assert "kubenode_cpu_manager_reconcile_success 1\n" in figures


@pytest.mark.parametrize("options", ["hidepid=ptraceable", "hidepid=invisible,gid=65534"])
def test_processes_that_are_hidden(tmp_path: Path, options: str) -> None:
    """A pass without its kubelet would go by files that may be of none, and say that all is well."""
    status, said, figures = one_pass(tmp_path, HIDEPID % options)
    assert said == (
        "error: /: whether a kubelet runs here cannot be seen: /proc does not show the processes of others (hidepid=,"
        " ProtectProc=); let it see the kubelet, or name the kubelet's files in config_path and kubelet_root\n"
    )
    assert (status, STATE % "hidden" in figures) == (1, True)
    assert "kubenode_cpu_manager_reconcile_success 0\n" in figures
    named = one_pass(tmp_path, HIDEPID % options, config_path="/etc/kubelet.yaml", kubelet_root="/data/kubelet")
    assert (named[0], STATE % "stopped" in named[2]) == (0, True), named


def test_a_kubelet_whose_program_is_hidden(tmp_path: Path) -> None:
    with kubelet() as pid:
        status, said, figures = one_pass(tmp_path, "")
    assert "cannot be seen: process %d is called so, is no service of a known name" % pid in said
    assert (status, STATE % "hidden" in figures) == (1, True)


@pytest.mark.needs("systemctl")
@pytest.mark.skipif(not Path(PYTHON).exists(), reason="no Python of the system")
@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="this machine has one CPU")
def test_systemd_runs_the_services(tmp_path: Path) -> None:
    """With all that is taken from them, each program does its work, and one that hangs is started anew."""
    if why_not():
        pytest.skip(why_not())
    shared = tmp_path / "shared"
    shared.mkdir()
    (shared / "reconcile.pyz").write_bytes(build(reconcile_program.PROGRAM, PYTHON))
    (shared / "housekeeping.pyz").write_bytes(build(housekeeping.PROGRAM, PYTHON))
    for policy in ("static", "dynamic"):
        figures = "%s/%s.prom" % (SHARED, policy)
        settings = {"root": "/", "policy": policy, "period": "1s", "reserved_cpus": "0", "textfile": figures}
        (shared / (policy + ".json")).write_text(json.dumps(settings))
    wish = HousekeepingWish(CPUSet.parse("0"), ("rps", "workqueues"))
    (shared / "journal.json").write_text(
        text_of(HousekeepingJournal(wish, wish.reserved, "the boot before", {}, {}, {}, (), (), {}, is_done=True))
    )
    with alone():
        written = [QUEUE, WORKQUEUES / "cpumask", *WORKQUEUES.glob("*/cpumask")]
        before = {path: path.read_text() for path in written}
        try:
            QUEUE.write_text("2")
            said = run_under_systemd(tmp_path, UNITS, SCRIPT)
            now = {int(path.read_text().replace(",", ""), 16) for path in written}
        finally:
            for path, text in before.items():
                path.write_text(text)
    assert now == {1}, said
    lines = said.splitlines()
    assert lines[0] == "all began", said
    assert "after 5 seconds: ActiveState=active NRestarts=0" in lines
    assert any(line.startswith("after a hang: ") and line.endswith(" NRestarts=1") for line in lines), said
    for line in ("rps: lo rx-0: ", "workqueues: all unbound workqueues: "):
        assert any(told.startswith(line) for told in lines), said
    for policy in ("static", "dynamic"):
        assert "success 1\n" in (shared / (policy + ".prom")).read_text()

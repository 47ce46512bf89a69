# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Units that remove the kubelet's states: plugins/module_utils/_kubelet/state_removal.py."""

from __future__ import annotations

import tracemalloc
from pathlib import Path

import pytest

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.tree import Tree
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._kubelet.state_removal import (
    SURE,
    UNCLEAR,
    UNREAD,
    boot_removals,
    commands_without_secrets,
    is_made,
    overwriter,
    removals,
)
from ansible_collections.kubenode.cpu_manager.tests.machines.layered import write

UNIT = "etc/systemd/system/kubelet.service"
CPUS, MEMORY = "/var/lib/kubelet/cpu_manager_state", "/var/lib/kubelet/memory_manager_state"
RM = "/bin/rm -f "


def how_of(root: Path) -> str:
    found = removals(Tree(str(root)), "kubelet", [CPUS, MEMORY])
    return found[CPUS].how if CPUS in found else ""


@pytest.mark.parametrize(
    ("command", "how"),
    [
        # Directly.
        (RM + CPUS, SURE),
        ("-/usr/bin/rm " + CPUS, SURE),
        ("/usr/bin/unlink " + CPUS, SURE),
        ("/bin/rm -rf /var/lib/kubelet", SURE),
        ("/bin/rm -f %s %s" % (MEMORY, CPUS), SURE),
        ("/usr/bin/env rm -f " + CPUS, SURE),
        ("/bin/mv %s /var/lib/kubelet/old" % CPUS, SURE),
        ("/bin/mv /var/lib/kubelet /var/lib/kubelet.old", SURE),
        ("/usr/bin/find /var/lib/kubelet -maxdepth 1 -name *_manager_state -delete", SURE),
        ("/usr/bin/find /var/lib/kubelet -name *_state -mtime +1 -delete", UNCLEAR),
        ("/usr/bin/truncate -s 0 " + CPUS, UNCLEAR),
        # What leaves it alone.
        (RM + MEMORY, ""),
        ("/bin/rm -rf /var/lib/kubelet/pods", ""),
        ("/bin/rm -f /var/lib/kubelet", ""),
        # No shell, and so no pattern.
        ("/bin/rm -f /var/lib/kubelet/*_state", ""),
        ("/bin/mv /tmp/state " + CPUS, ""),
        ("/usr/bin/find /var/lib/kubelet -name *.log -delete", ""),
        ("/usr/bin/find /var/lib/kubelet -name *_state", ""),
        ("/bin/mkdir --parents /etc/kubernetes/manifests", ""),
        ("/sbin/iptables -P FORWARD ACCEPT -w 5", ""),
        ("/bin/sh -xc '! /usr/bin/systemctl is-enabled --quiet nm-cloud-setup.service'", ""),
        (
            "/bin/sh -c \"systemd-cgls /system.slice | grep -Eo '[0-9]+ a' | awk '{print $1}' | xargs -r kill\"",
            "",
        ),
        # By a shell.
        ("/bin/sh -c 'rm -f %s'" % CPUS, SURE),
        ("/bin/bash -ec 'rm -f /var/lib/kubelet/*_manager_state'", SURE),
        ("/bin/sh -c '[ -f %s ] && rm %s'" % (CPUS, CPUS), SURE),
        ("/bin/sh -c 'if [ -f %s ]; then rm %s; fi'" % (CPUS, CPUS), SURE),
        ("/bin/sh -c 'mkdir -p /run/x; D=/var/lib/kubelet; rm -rf $D/cpu_manager_state'", SURE),
        ("/bin/sh -c 'if grep -q none %s; then rm %s; fi'" % (CPUS, CPUS), UNCLEAR),
        ("/bin/sh -c 'test -e /etc/keep || rm %s'" % CPUS, UNCLEAR),
        ("/bin/sh -c 'echo > %s'" % CPUS, UNCLEAR),
        ("/bin/sh -c 'ls /x | xargs rm'", UNREAD),
        ("/bin/sh -c 'rm -f \"$$FILE\"'", UNREAD),
        ("/bin/sh -c '# rm %s'" % CPUS, ""),
        # By a program that cannot be read.
        ("/opt/prepare-node", UNREAD),
        ("/bin/sh /opt/missing.sh", UNREAD),
    ],
)
def test_what_a_unit_does_to_the_state_before_the_kubelet_starts(command: str, how: str, tmp_path: Path) -> None:
    write(tmp_path, UNIT, ("[Service]\nExecStartPre=%s\nExecStart=/usr/bin/kubelet\n" % command).encode())
    assert how_of(tmp_path) == how


@pytest.mark.parametrize("setting", ["ExecCondition", "ExecStartPre", "ExecStartPost", "ExecStop", "ExecStopPost"])
def test_each_command_around_the_kubelet_counts(setting: str, tmp_path: Path) -> None:
    write(tmp_path, UNIT, b"[Service]\nExecStart=/usr/bin/kubelet\n")
    write(tmp_path, UNIT + ".d/20-states.conf", ("[Service]\n%s=%s%s\n" % (setting, RM, CPUS)).encode())
    found = removals(Tree(str(tmp_path)), "kubelet", [CPUS, MEMORY])
    # After the start, the kubelet writes it again.
    how = UNCLEAR if setting == "ExecStartPost" else SURE
    assert found == {CPUS: (how, "%s in %s" % (setting, tmp_path / (UNIT + ".d/20-states.conf")))}


def test_a_command_that_a_drop_in_takes_back_does_not_count(tmp_path: Path) -> None:
    write(tmp_path, UNIT, ("[Service]\nExecStartPre=%s%s\nExecStart=/usr/bin/kubelet\n" % (RM, CPUS)).encode())
    write(tmp_path, UNIT + ".d/20-none.conf", b"[Service]\nExecStartPre=\n")
    assert how_of(tmp_path) == ""


@pytest.mark.parametrize(
    ("script", "how"),
    [
        ("#!/bin/bash\nset -e\n# states\nrm -f \\\n  %s\n" % CPUS, SURE),
        ("#!/usr/bin/env sh\nfor f in /var/lib/kubelet/*_state; do rm $f; done\n", UNREAD),
        ("#!/bin/sh\nmkdir -p /etc/kubernetes\n", ""),
        ("#!/usr/bin/python3\nimport os\n", UNREAD),
        ("\x7fELF", UNREAD),
    ],
)
@pytest.mark.parametrize("starter", ["", "/bin/bash "])
def test_a_script_is_read(script: str, how: str, starter: str, tmp_path: Path) -> None:
    write(tmp_path, UNIT, ("[Service]\nExecStartPre=%s/opt/prepare.sh\nExecStart=/x\n" % starter).encode())
    write(tmp_path, "opt/prepare.sh", script.encode())
    assert how_of(tmp_path) == how


FILE = "/etc/kubernetes/kubelet.config"
HERE = "#!/bin/bash\nset -e\nreadonly driver=$(docker info)\ncat <<EOF >%s\ncgroupDriver: $driver\nEOF\n"


@pytest.mark.parametrize(
    ("command", "script", "writes"),
    [
        ("/opt/make.sh", HERE % FILE, True),
        ("/opt/make.sh", "#!/bin/sh\ntest -e %s || cat /x > %s\n" % (FILE, FILE), False),
        ("/opt/make.sh", "#!/bin/sh\nif [ ! -e /x ]; then cat /x > %s; fi\n" % FILE, False),
        ("/opt/make.sh", "#!/bin/sh\necho x >> %s\n" % FILE, False),
        ("/opt/make.sh", "#!/bin/sh\ngrep -q static %s > /dev/null\n" % FILE, False),
        ("/opt/make.sh", "#!/bin/sh\n# cat > %s\n" % FILE, False),
        ("/opt/make.sh", "#!/bin/sh\ncat /x > %s.old\n" % FILE, False),
        ("/opt/gone.sh", "", False),
        ("/bin/sh -c 'cat /x > \"%s\"'" % FILE, "", True),
        ("/bin/cp /opt/kubelet.config " + FILE, "", True),
        ("/bin/cp %s /opt/kubelet.config" % FILE, "", False),
        ("/usr/bin/env install -m 644 /x " + FILE, "", True),
        ("/bin/sed -i s/a/b/ " + FILE, "", False),
    ],
)
def test_what_a_unit_writes_anew_before_the_kubelet_starts(
    command: str, script: str, writes: bool, tmp_path: Path
) -> None:
    write(tmp_path, UNIT, ("[Service]\nExecStartPre=%s\nExecStart=/usr/bin/kubelet\n" % command).encode())
    if script:
        write(tmp_path, "opt/make.sh", script.encode())
    found = overwriter(Tree(str(tmp_path)), "kubelet", FILE)
    assert found == ("ExecStartPre in %s" % (tmp_path / UNIT) if writes else "")


KUBE = "/sys/fs/cgroup/kube.slice"


@pytest.mark.parametrize(
    ("line", "made"),
    [
        ("ExecStartPre=/bin/mkdir -p " + KUBE, True),
        ("ExecStartPre=-/bin/mkdir -p %s/kubelet.service" % KUBE, True),
        ("ExecStartPre=/bin/sh -c 'mkdir -p %s'" % KUBE, True),
        ("ExecStartPre=/bin/sh -c 'C=/sys/fs/cgroup; for h in a; do mkdir -p $$C/kube.slice; done'", None),
        ("ExecStartPre=/bin/sh -c '[ -d %s ] || mkdir -p %s'" % (KUBE, KUBE), None),
        ("ExecStartPre=/opt/make.sh", True),
        ("ExecStartPre=/opt/other", None),
        ("ExecStartPre=/usr/bin/cgcreate -g cpu:/kube.slice", None),
        ("ExecStartPre=/bin/mkdir -p /etc/kubernetes/manifests", False),
        ("ExecStartPre=/bin/rm -f " + CPUS, False),
        # When the kubelet starts, it is too late.
        ("ExecStartPost=/bin/mkdir -p " + KUBE, False),
        ("Slice=kube.slice", True),
        ("Slice=kube-runtime.slice", True),
        ("Slice=system.slice", False),
        ("", False),
    ],
)
def test_which_cgroups_a_unit_makes_before_the_kubelet_starts(line: str, made: bool | None, tmp_path: Path) -> None:
    write(tmp_path, UNIT, ("[Service]\n%s\nExecStart=/usr/bin/kubelet\n" % line).encode())
    write(tmp_path, "opt/make.sh", ("#!/bin/bash\nset -e\nmkdir -p %s\n" % KUBE).encode())
    write(tmp_path, "sys/fs/cgroup/cgroup.controllers", b"cpu\n")
    assert is_made(Tree(str(tmp_path)), "kubelet", KUBE) is made
    # A saved node says the same.
    commands = commands_without_secrets(Tree(str(tmp_path)), "kubelet", [])
    saved = "".join("%s=%s\n" % (command.setting, " ".join(command.words)) for command in commands)
    write(tmp_path, UNIT, ("[Service]\n%s\n%s" % (line if line.startswith("Slice") else "", saved)).encode())
    assert is_made(Tree(str(tmp_path)), "kubelet", KUBE) is made or "/sys/fs/cgroup" not in line


@pytest.mark.parametrize(
    ("hierarchy", "made"),
    [("hugetlb", False), ("cpuset", False), ("memory", None), ("cpu,cpuacct", None), ("pids", None)],
)
def test_of_version_1_a_slice_need_not_be_in_each_hierarchy(hierarchy: str, made: bool | None, tmp_path: Path) -> None:
    write(tmp_path, UNIT, b"[Service]\nSlice=kube.slice\nExecStart=/usr/bin/kubelet\n")
    assert is_made(Tree(str(tmp_path)), "kubelet", "/sys/fs/cgroup/%s/kube.slice" % hierarchy) is made


def test_what_is_sure_counts_before_what_is_not(tmp_path: Path) -> None:
    commands = "".join("ExecStartPre=%s\n" % command for command in ("/opt/a", RM + CPUS, "/opt/b"))
    write(tmp_path, UNIT, ("[Service]\n%sExecStart=/x\n" % commands).encode())
    assert how_of(tmp_path) == SURE


def test_a_script_of_a_script_is_not_read(tmp_path: Path) -> None:
    write(tmp_path, UNIT, b"[Service]\nExecStartPre=/opt/a\nExecStart=/x\n")
    write(tmp_path, "opt/a", b"#!/bin/sh\n/opt/a\nsh /opt/a\n")
    assert how_of(tmp_path) == UNREAD


def test_what_a_hostile_script_makes_of_its_variables_stays_small(tmp_path: Path) -> None:
    write(tmp_path, UNIT, b"[Service]\nExecStartPre=/opt/a\nExecStart=/x\n")
    write(tmp_path, "opt/a", b"#!/bin/sh\nA=%s\n%s\n" % (b"x" * 30000, b"$A " * 10000))
    tracemalloc.start()
    try:
        assert how_of(tmp_path) == UNREAD
        assert tracemalloc.get_traced_memory()[1] < 20 << 20
    finally:
        tracemalloc.stop()


HELPER = "etc/systemd/system/clean.service"
ONESHOT = "[Unit]\n%s\n[Service]\nType=oneshot\n%s\nExecStart=/bin/rm -f " + CPUS + "\n"
BEFORE = "Before=kubelet.service"


@pytest.mark.parametrize(
    ("of_kubelet", "link", "text", "each_start", "each_boot"),
    [
        # As OpenShift since 4.15: enabled for the boot alone.
        ("", "multi-user.target.wants/clean.service", ONESHOT % (BEFORE, ""), False, True),
        # What the kubelet's own unit pulls in runs at each of its starts, but where it stays active.
        ("", "kubelet.service.wants/clean.service", ONESHOT % (BEFORE, ""), True, False),
        ("", "kubelet.service.requires/clean.service", ONESHOT % (BEFORE, "RemainAfterExit=yes"), False, True),
        ("Requires=clean.service\nAfter=clean.service", "", ONESHOT % ("", ""), True, False),
        ("Wants=crio.service clean.service", "", ONESHOT % (BEFORE, ""), True, False),
        # Nothing says that it runs before; that it runs at all; that it ends before.
        ("Wants=clean.service", "", ONESHOT % ("", ""), False, False),
        ("", "", ONESHOT % (BEFORE, ""), False, False),
        ("Wants=clean.service", "", (ONESHOT % (BEFORE, "")).replace("oneshot", "simple"), False, False),
    ],
)
def test_a_unit_that_runs_before_the_kubelets_removes_the_state_too(
    of_kubelet: str, link: str, text: str, each_start: bool, each_boot: bool, tmp_path: Path
) -> None:
    unit = "[Unit]\n%s\n[Service]\nExecStart=/usr/bin/kubelet\n" % of_kubelet
    write(tmp_path, UNIT, unit.encode())
    write(tmp_path, HELPER, text.encode())
    if link:
        write(tmp_path, "etc/systemd/system/" + link, b"")
    assert (how_of(tmp_path) == SURE) is each_start
    found = boot_removals(Tree(str(tmp_path)), "kubelet", [CPUS, MEMORY])
    assert (list(found), "clean.service" in found.get(CPUS, "")) == ([CPUS] * each_boot, each_boot)


def test_a_unit_that_runs_before_the_kubelets_makes_cgroups_for_it(tmp_path: Path) -> None:
    write(tmp_path, UNIT, b"[Unit]\nRequires=clean.service\n[Service]\nExecStart=/usr/bin/kubelet\n")
    write(tmp_path, HELPER, (ONESHOT % (BEFORE, "ExecStart=/bin/mkdir -p %s" % KUBE)).encode())
    assert is_made(Tree(str(tmp_path)), "kubelet", KUBE) is True

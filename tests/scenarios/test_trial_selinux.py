# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Trial starts where SELinux refuses what its policy does not allow, on a virtual machine with Debian's policy."""

from __future__ import annotations

from ansible_collections.kubenode.cpu_manager.tests.cluster.test_trial import recorded_cases

from .conftest import KubeletMachine
from .test_plain_starts import said

# Who root is when it logs in; its domain may do what an administrator does, but not change all mounts.
USERS = "/etc/selinux/default/seusers"
CONFINED = "root:sysadm_u:s0-s0:c0.c1023\n"
DOMAIN = "sysadm_u:sysadm_r:sysadm_t:s0-s0:c0.c1023"


def test_what_is_refused_is_a_reason_and_all_else_is_tried(selinux_machine: KubeletMachine) -> None:
    machine = selinux_machine
    cases = [case for _name, case in recorded_cases()]
    cases = cases[:: len(cases) // 4]
    outcomes = machine.starts_of(cases)
    assert [said(both["tried"]) for both in outcomes] == [said(both["started"]) for both in outcomes]
    assert {both["tried"]["starts"] for both in outcomes} == {True, False}

    machine.run("tee", USERS, given=CONFINED.encode("ascii"))
    assert machine.run("id", "--context").decode("ascii").strip() == DOMAIN
    (both,) = machine.starts_of(cases[:1])
    assert both["tried"]["starts"] is None
    assert both["tried"]["reason"] == "cannot be tried: mount /: Permission denied, in the domain %s" % DOMAIN
    assert machine.run("getenforce") == b"Enforcing\n"

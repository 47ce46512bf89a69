# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""CPUs of init containers, which the other containers of their pod use again."""

from __future__ import annotations

from ansible_collections.kubenode.cpu_manager.tests.machines.values import SMT

from .static_kubelet import Kubelet, pod


def test_app_containers_take_over_from_init_containers() -> None:
    kubelet = Kubelet(SMT)
    guest = pod("init:a=4 b=2 c=2 d=1")
    assert kubelet.allocate(guest, "a") == "1-2,5-6"
    assert kubelet.reusable() == "1-2,5-6"
    assert kubelet.allocate(guest, "b") == "1,5"
    assert kubelet.reusable() == "2,6"
    assert kubelet.allocate(guest, "c") == "2,6"
    assert kubelet.reusable() == ""
    assert kubelet.allocate(guest, "d") == "4"
    assert kubelet.pool() == "0,3,7"
    # The init container's own stay its.
    assert kubelet.cpus("u1", "a") == "1-2,5-6"


def test_what_an_init_container_had_more_stays_out_of_the_pool() -> None:
    kubelet = Kubelet(SMT)
    assert kubelet.allocate_all(pod("init:a=4 b=2")) == ["1-2,5-6", "1,5"]
    assert kubelet.pool() == "0,3-4,7"


def test_reusable_cpus_are_not_preferred() -> None:
    """They are among the free ones, and the order decides: a broken core comes first."""
    kubelet = Kubelet(SMT)
    guest = pod("init:a=2 b=1")
    assert kubelet.allocate_all(guest) == ["1,5", "4"]
    assert kubelet.reusable() == "1,5"


def test_init_containers_reuse_each_others() -> None:
    kubelet = Kubelet(SMT)
    assert kubelet.allocate_all(pod("init:a=2 init:b=4 c=4")) == ["1,5", "1-2,5-6", "1-2,5-6"]
    assert kubelet.pool() == "0,3-4,7"


def test_sidecars_take_over_and_keep() -> None:
    kubelet = Kubelet(SMT)
    guest = pod("init:a=4 sidecar:b=2 init:c=2 d=2")
    assert kubelet.allocate(guest, "a") == "1-2,5-6"
    assert kubelet.allocate(guest, "b") == "1,5"
    assert kubelet.reusable() == "2,6"
    assert kubelet.allocate(guest, "c") == "2,6"
    assert kubelet.allocate(guest, "d") == "2,6"  # never the sidecar's
    assert kubelet.reusable() == ""


def test_only_the_last_pod_has_reusable_cpus() -> None:
    kubelet = Kubelet(SMT)
    guest, late_guest = pod("init:a=4 b=4"), pod("a=1", "u2")
    assert kubelet.allocate(guest, "a") == "1-2,5-6"
    assert kubelet.allocate(late_guest, "a") == "4"
    assert (kubelet.reusable(), kubelet.reusable("u2")) == ("", "")
    assert str(kubelet.refusal(guest, "b")).endswith("requested=4, available=2")


def test_a_shared_container_of_another_pod_changes_nothing_reusable() -> None:
    kubelet = Kubelet(SMT)
    guest = pod("init:a=4 b=4")
    kubelet.allocate(guest, "a")
    assert kubelet.allocate(pod("a=0.5", "u2"), "a") == "shared"
    assert kubelet.allocate(guest, "b") == "1-2,5-6"


def test_reusable_cpus_are_found_again_after_a_restart() -> None:
    """They are in no file; the pod that is admitted again brings them."""
    guest = pod("init:a=4 b=2")
    kubelet = Kubelet(SMT)
    kubelet.allocate(guest, "a")
    again = Kubelet(SMT, state=kubelet.state.snapshot())
    assert again.reusable() == ""
    assert again.allocate(guest, "a") == "1-2,5-6"
    assert again.reusable() == "1-2,5-6"
    assert again.allocate(guest, "b") == "1,5"

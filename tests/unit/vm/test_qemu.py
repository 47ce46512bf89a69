# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Tests of tests/vm/qemu.py."""

from __future__ import annotations

from pathlib import Path

import pytest

from ansible_collections.kubenode.cpu_manager.tests.vm import qemu
from ansible_collections.kubenode.cpu_manager.tests.vm.image import Image
from ansible_collections.kubenode.cpu_manager.tests.vm.recipes import read_recipes
from ansible_collections.kubenode.cpu_manager.tests.vm.shape import find_shape

IMAGE = Image(Path("/cache/base-1"), "1")


def values(shape: str, option: str, with_kvm: bool = False) -> list[str]:
    arguments = qemu.machine_arguments(find_shape(shape), IMAGE, with_kvm, 2500000)
    return [value for name, value in zip(arguments, arguments[1:]) if name == option]


def test_numa_nodes() -> None:
    assert values("uneven-2s3c2t", "-smp") == ["12,maxcpus=12,sockets=2,dies=1,cores=3,threads=2"]
    numa = values("uneven-2s3c2t", "-numa")
    assert numa[:4] == [
        "node,nodeid=0,cpus=0-1,cpus=2-3,cpus=4-5,memdev=memory0",
        "node,nodeid=1,cpus=6-7,cpus=8-9,cpus=10-11",
        "node,nodeid=2,memdev=memory2",
        "dist,src=0,dst=0,val=10",
    ]
    assert numa[-2:] == ["dist,src=2,dst=1,val=28", "dist,src=2,dst=2,val=10"]
    assert values("uneven-2s3c2t", "-m") == ["1024M"]


def test_cpus_that_are_plugged_later() -> None:
    assert values("hotplug-1s8c", "-smp") == ["6,maxcpus=8,sockets=1,dies=1,cores=8,threads=1"]


@pytest.mark.parametrize(
    ("with_kvm", "accelerator", "told"), [(True, "kvm", False), (False, "tcg,thread=single", True)]
)
def test_an_emulated_machine_is_told_its_frequency(with_kvm: bool, accelerator: str, told: bool) -> None:
    assert values("small-2s2c2t", "-accel", with_kvm) == [accelerator]
    assert ("tsc_early_khz=2500000" in values("small-2s2c2t", "-append", with_kvm)[0].split()) == told


def test_the_kernel_hears_of_the_shape() -> None:
    assert {"nosmt", "isolcpus=4-5", "nohz_full=4-5"} <= set(values("nosmt-1s6c2t", "-append")[0].split())
    assert "systemd.unified_cgroup_hierarchy=0" in values("small-2s2c2t-cgroup1", "-append")[0].split()
    unified = values("small-2s2c2t", "-append")[0].split()
    assert [argument.partition("=")[0] for argument in unified if "cgroup" in argument] == ["cgroup_disable"]


def test_a_machine_without_an_l3_cache() -> None:
    shape = find_shape("small-2s2c2t")
    for with_cache in (True, False):
        arguments = qemu.machine_arguments(shape._replace(l3_cache=with_cache), IMAGE, False, 2500000)
        cpu = arguments[arguments.index("-cpu") + 1].split(",")
        assert ("l3-cache=off" in cpu) == (not with_cache)


def test_the_model_of_the_cpu() -> None:
    assert values("xeon-2s12c2t", "-cpu")[0].endswith(",model-id=Intel(R) Xeon(R) CPU E5-2680 v3 @ 2.50GHz")


def test_an_image_has_what_the_one_it_extends_has() -> None:
    recipes = read_recipes()
    assert set(recipes["base"].packages) < set(recipes["runtime"].packages)
    assert recipes["base"].masked_units == recipes["runtime"].masked_units

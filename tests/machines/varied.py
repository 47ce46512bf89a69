# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Nodes of many kinds as files, with secrets beside what the modules read of them."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Callable

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.tree import Tree
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._caches.cache_partition import (
    CacheJournal,
    text_of,
    wish_of,
)
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._housekeeping.at_boot import AtBoot
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._housekeeping.housekeeping import Extras, present
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._housekeeping.housekeeping_journal import (
    HousekeepingWish,
    OwnCPUs,
    read_journal,
    write_journal,
)
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.cpuset import CPUSet
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.state.restored import DEVICES

from . import housekept
from .cgroups import STYLES, read_listed, write_containers, write_memory
from .command import main as write_machine
from .device_checkpoint import GPU, device_state
from .kubelets import KUBELETS, write_kubelet
from .layered import write, write_layers, write_slices
from .resctrl.kernel import Kernel
from .resctrl.node import JOURNAL, give
from .resctrl.node import write_node as write_resctrl_node
from .resctrl.platforms import PLATFORMS, record
from .throttled import OWN_PATH
from .throttled import write_node as write_throttled

DEMO = Path(__file__).parents[2] / "demo"

PROTECTED = """apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
cpuManagerPolicy: static
reservedSystemCPUs: 0-1
memoryManagerPolicy: Static
protectKernelDefaults: true
enforceNodeAllocatable: [pods, kube-reserved]
kubeReservedCgroup: /system.slice
reservedMemory: [{numaNode: 0, limits: {memory: 1124Mi}}]
staticPodURL: https://user:hunter2@example.org/pods
staticPodURLHeader: {Authorization: [Bearer hunter2]}
"""
UNIT = """[Unit]
# hunter2
[Service]
Environment="KUBELET_ARGS=--v=2 --config=/var/lib/kubelet/config.yaml" HTTPS_PROXY=http://user:hunter2@proxy:3128
EnvironmentFile=-/etc/extra.env
ExecStart=/usr/bin/kubelet $KUBELET_ARGS --node-ip ${NODE_IP} \\
    --manifest-url-header=Authorization:hunter2
"""
SECRET = b"hunter2"


def make_busy(root: Path) -> None:
    """Make a node with a running kubelet, pods, a memory manager, network devices, and secrets all over."""
    write_machine(["2s2n4c2t", str(root)])
    listed = read_listed((DEMO / "containers/epyc").read_text("utf-8"))
    write_containers(root, listed, "0-15", "0-1")
    write(root, "/etc/hostname", "busy\n")
    write(root, "/usr/lib/os-release", 'ID="debian"\n')
    (root / "etc/os-release").symlink_to("../usr/lib/os-release")
    write(root, "/var/lib/kubelet/config.yaml", PROTECTED)
    write(
        root, "/var/lib/kubelet/cpu_manager_state", (DEMO / "fleet/epyc/var/lib/kubelet/cpu_manager_state").read_bytes()
    )
    write(
        root, "/var/lib/kubelet/memory_manager_state", '{"policyName":"None","machineState":{},"checksum":4065120681}'
    )
    write(root, "/var/lib/kubelet/kubeadm-flags.env", 'KUBELET_KUBEADM_ARGS="--v=3"\nTOKEN=hunter2\n')
    write(root, "/usr/lib/systemd/system/kubelet.service", UNIT)
    write(root, "/etc/systemd/system/kubelet.service.d/10.conf", "[Service]\nEnvironment=SECRET=hunter2\n")
    write(root, "/etc/extra.env", "NODE_IP=10.0.0.1\nPASSWORD=hunter2\n# hunter2\n")
    (root / "etc/systemd/system/multi-user.target.wants").mkdir()
    wants = root / "etc/systemd/system/multi-user.target.wants/kubelet.service"
    wants.symlink_to("../../../../usr/lib/systemd/system/kubelet.service")
    line = b"/usr/bin/kubelet\0--config=/var/lib/kubelet/config.yaml\0--manifest-url-header\0Authorization:hunter2\0"
    write(root, "/proc/712/cmdline", line)
    write(root, "/proc/712/stat", "712 (kubelet) %s\n" % " ".join(["S", "1"] + ["0"] * 17 + ["5000"] + ["140000"] * 30))
    write(root, "/proc/712/environ", SECRET)
    write(root, "/proc/99/cmdline", b"mysql\0-phunter2\0")
    write(root, "/proc/stat", "cpu 1 2\nbtime 1700000000\nctxt 5\n")
    write(root, "/proc/meminfo", "MemTotal: 134217728 kB\nMemFree: 5 kB\n")
    write(root, "/proc/swaps", "Filename Type Size Used Priority\n")
    write(root, "/proc/mounts", "cgroup2 /sys/fs/cgroup cgroup2 rw 0 0\n//nas/x /mnt cifs rw,password=hunter2 0 0\n")
    for flag, value in {"vm/overcommit_memory": 1, "vm/panic_on_oom": 0, "kernel/panic": 10}.items():
        write(root, "/proc/sys/" + flag, "%d\n" % value)
    for node in (0, 1):
        write(root, "/sys/devices/system/node/node%d/hugepages/hugepages-2048kB/nr_hugepages" % node, "8\n")
    for name, vendor, numa_node in (("0000:25:00.0", "10de", "0"), ("0000:81:00.0", "8086", "1")):
        for attribute, text in (("vendor", "0x" + vendor), ("class", "0x030200"), ("numa_node", numa_node)):
            write(root, "/sys/devices/pci0000:00/%s/%s" % (name, attribute), text + "\n")
        (root / "sys/bus/pci/devices").mkdir(parents=True, exist_ok=True)
        (root / "sys/bus/pci/devices" / name).symlink_to("../../../devices/pci0000:00/" + name)
    write(root, "/sys/devices/pci/eth0/numa_node", "1\n")
    (root / "sys/devices/pci/eth0/net/eth0").mkdir(parents=True)
    (root / "sys/devices/pci/eth0/net/eth0/device").symlink_to("../..")
    (root / "sys/class/net").mkdir(parents=True)
    (root / "sys/class/net/eth0").symlink_to("../../devices/pci/eth0/net/eth0")
    (root / "run/systemd/system").mkdir(parents=True)
    for number, file in enumerate(sorted((root / "sys/fs/cgroup").rglob("cgroup.procs"))):
        if file.read_text("utf-8"):
            write(
                root,
                "/proc/%d/status" % int(file.read_text("utf-8").split()[0]),
                "Name: x\nCpus_allowed_list:\t%d\n" % (number % 3),
            )
    # Nobody reads these.
    write(root, "/etc/shadow", SECRET)
    write(root, "/var/lib/kubelet/pki/kubelet-client-current.pem", SECRET)
    write(root, "/etc/kubernetes/kubelet.conf", "kind: Config\nusers: [{user: {token: hunter2}}]\n")


def make_stopped(root: Path) -> None:
    """Make the busy node, but without its kubelet and with an older kernel."""
    make_busy(root)
    shutil.rmtree(root / "proc/712")
    for name in ("online", "present"):
        (root / "sys/devices/system/cpu" / name).unlink()
    (root / "sys/devices/system/node/node1/cpumap").unlink()


def make_demo(name: str) -> Callable[[Path], None]:
    def make(root: Path) -> None:
        shutil.copytree(DEMO / "fleet" / name, root)
        shapes = dict(line.split() for line in (DEMO / "machines").read_text("utf-8").splitlines())
        containers = DEMO / "containers" / name
        more = ["--containers", str(containers)] if containers.exists() else []
        write_machine([shapes[name], str(root), *more])

    return make


def make_distribution(name: str) -> Callable[[Path], None]:
    def make(root: Path) -> None:
        write_machine(["2s1n4c2t", str(root)])
        write(root, "/etc/hostname", name + "\n")
        write_kubelet(root, KUBELETS[name])

    return make


def make_old(root: Path) -> None:
    """Make a machine with an old kernel and cgroups of v1, whose kubelet is k3s, with a journal of a change."""
    write_machine(["2s1n4c2t+offline3", str(root), "--old-kernel", "--no-cpuinfo"])
    for path, text in {
        "cpuset.cpus": "0-2",
        "cpuset.mems": "0",
        "cgroup.procs": "1\n2",
        "cpuset.cpu_exclusive": "0",
    }.items():
        for place in ("", "/kubepods", "/system"):
            write(root, "/sys/fs/cgroup/cpuset%s/%s" % (place, path), text + "\n")
    for controller in ("cpu,cpuacct", "memory"):
        (root / "sys/fs/cgroup" / controller / "system").mkdir(parents=True)
    (root / "sys/fs/cgroup/cpu").symlink_to("cpu,cpuacct")
    write_kubelet(root, KUBELETS["k3s-rancher"])
    write(root, "/etc/rancher/k3s/config.yaml", "token: hunter2\nkubelet-arg:\n  - v=2\n# hunter2\n")
    config = {"content": "dG9rZW46IGh1bnRlcjIKa3ViZWxldC1hcmc6IFt2PTNdCg==", "mode": 384, "uid": 0, "gid": 0}
    journal = {
        "format": 1,
        "phase": "changing",
        "facts": {},
        "run": "",
        "files": {"/etc/rancher/k3s/config.yaml": config},
    }
    write(root, "/var/lib/kubenode-cpu-manager/change.json", json.dumps(journal))
    last = {**journal, "written": {"/etc/rancher/k3s/config.yaml": config["content"], "/etc/none": None}}
    write(root, "/var/lib/kubenode-cpu-manager/last-change.json", json.dumps(last))


def make_throttled(style: str) -> Callable[[Path], None]:
    def make(root: Path) -> None:
        write_throttled(root, STYLES[style])
        write_memory(root, STYLES[style], {OWN_PATH: 1 << 30})
        given = device_state({GPU: ["gpu-0", "gpu-1"]}, ("uid-db", {"0": ["gpu-0"]}), container="server")
        write(root, "/var/lib/kubelet/" + DEVICES, given.decode("ascii"))
        write(root, "/etc/hostname", style + "\n")

    return make


def _write_kubeadm_node(root: Path, name: str) -> None:
    write_machine(["1s4c2t", str(root)])
    write(root, "/etc/hostname", name + "\n")
    write_kubelet(root, KUBELETS["kubeadm"])


def make_layered(root: Path) -> None:
    """Make a host that keeps to its CPUs in parts only, with secrets beside what is read of it."""
    _write_kubeadm_node(root, "layered")
    write_layers(root, "0-7", "0-3")
    write(root, "/sys/devices/virtual/workqueue/cpumask_requested", "ff\n")
    write(root, "/sys/devices/system/cpu/possible", "0-15\n")
    write_slices(root, "0-7", {"system.slice": "0-1", "user.slice": "", "init.scope": None, "kubepods.slice": ""})
    write(root, "/sys/fs/cgroup/system.slice/irqbalance.service/cgroup.procs", "9\n")
    unit = "# hunter2\n[Slice]\nDescription=hunter2\nAllowedCPUs=0 \\\n 1\n"
    write(root, "/etc/systemd/system/system.slice.d/50.conf", unit)
    write(root, "/usr/lib/systemd/system/init.scope", "[Unit]\nDescription=hunter2\n")
    write(root, "/etc/systemd/system.conf", "[Manager]\nCPUAffinity=0-3\nDefaultEnvironment=A=hunter2\n")
    write(root, "/usr/sbin/irqbalance", b"\x7fELF hunter2 IRQBALANCE_BANNED_CPULIST")
    service = "[Service]\nEnvironment=A=hunter2\nEnvironmentFile=-/etc/irqbalance.env\n"
    write(root, "/usr/lib/systemd/system/irqbalance.service", service)
    write(root, "/etc/irqbalance.env", "IRQBALANCE_ARGS=hunter2\nIRQBALANCE_BANNED_CPULIST='4-7'\n")
    write(root, "/proc/cmdline", "password=hunter2 rcu_nocbs=1-7 quiet\n")
    write(root, "/proc/1/status", "Name:\thunter2\nCpus_allowed_list:\t0-3\n")


def make_owned(root: Path) -> None:
    """Make a node on which many manage CPUs, with secrets beside what is read of it."""
    _write_kubeadm_node(root, "owned")
    write(root, "/var/lib/kubelet/plugins_registry/dra.cpu-reg.sock", "")
    write(root, "/var/run/cdi/dra.cpu.json", '{"devices": [{"containerEdits": {"env": ["PASSWORD=hunter2"]}}]}')
    write(root, "/var/lib/nri-resource-policy/cache", '{"PolicyName": "balloons", "PolicyJSON": "hunter2"}')
    write(root, "/opt/nri/plugins/10-nri-resource-policy-topology-aware", b"\x7fELF hunter2")
    write(root, "/proc/33/cmdline", "/usr/bin/python3\0-Es\0/usr/sbin/tuned\0--password=hunter2\0")
    write(root, "/etc/tuned/active_profile", "ours\n")
    write(root, "/etc/tuned/profile_mode", "manual\n")
    write(root, "/etc/tuned/ours/tuned.conf", "[main]\ninclude=cpu-partitioning\nsummary=hunter2\n")
    profile = "# hunter2\n[variables]\ninclude=/etc/tuned/ours.env\n[scheduler]\nisolated_cores=${isolated_cores}\n"
    write(root, "/usr/lib/tuned/cpu-partitioning/tuned.conf", profile)
    write(root, "/etc/tuned/ours.env", "password=hunter2\nisolated_cores=4-7\n")
    containerd = """version = 2
imports = ["/etc/containerd/conf.d/*.toml"]
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "hunter2"
  [plugins."io.containerd.grpc.v1.cri".registry.configs."example.org".auth]
    password = "hunter2"
[plugins]
  "io.containerd.nri.v1.nri" = {disable = true, plugin_config = "hunter2"}
"""
    write(root, "/etc/containerd/config.toml", containerd)
    write(
        root, "/etc/containerd/conf.d/nri.toml", "version = 2\n[plugins.'io.containerd.nri.v1.nri']\ndisable = false\n"
    )
    shared = '[crio.runtime]\nshared_cpuset = "2-3"\ndefault_env = ["A=hunter2"]\n[crio.runtime.runtimes.high]\n'
    write(root, "/etc/crio/crio.conf.d/99.conf", shared + 'allowed_annotations = ["irq-load-balancing.crio.io"]\n')


def make_divided(name: str) -> Callable[[Path], None]:
    """Return a node whose caches are divided, by us and by others."""

    def make(root: Path) -> None:
        shape = PLATFORMS[name]
        write_kubelet(root, KUBELETS["kubeadm"])
        write_resctrl_node(root, shape)
        give(root, {1}, {0})
        kernel = Kernel(shape)
        for group in ("kubenode.exclusive", "gold"):
            kernel.mkdir("/" + group)
        kernel.groups["gold"].tasks = list(range(70, 170))
        record(root, shape, kernel, "tmpfs /run tmpfs rw,password=hunter2 0 0\n")
        place = "kubepods.slice/kubepods-pod1.slice/cri-containerd-%s.scope" % ("4f" * 32)
        write(root, "/proc/77/cgroup", "0::/%s\n" % place)
        journal = CacheJournal(wish_of({"exclusive_share": 2}), "", shape.caches[0].name, {0: 7}, {0: (4,)})
        write(root, "/" + JOURNAL, text_of(journal))

    return make


def make_brought(root: Path) -> None:
    """Make a node that the role housekeeping has brought to its wish, and others have changed since; with secrets."""
    write_machine(["1s4c2t", str(root)])
    housekept.write_node(root)
    write(root, "/etc/hostname", "brought\n")
    write_kubelet(root, KUBELETS["kubeadm"])
    shutil.rmtree(root / "sys/fs/cgroup/user.slice")
    shutil.rmtree(root / "sys/fs/cgroup/machine.slice")
    write(root, "/" + housekept.IRQBALANCE, "PASSWORD=hunter2\n")
    write(root, "/proc/1/status", "Cpus_allowed_list:\t0-1\n")
    own = OwnCPUs(CPUSet((2, 3)), "isolated", "isolated.slice")
    wish = HousekeepingWish(
        CPUSet((0, 1)), ("interrupts", "slices", "irqbalance", "watchdog", "manager"), partition=own
    )
    tree = Tree(str(root))
    present(tree, wish, Extras(boot=AtBoot(b"hunter2", "/usr/bin/python3")), act=True)
    journal = read_journal(tree)
    assert journal is not None
    write_journal(tree, journal._replace(refused={"/proc/irq/24/smp_affinity_list": "EIO"}, is_done=True))
    write(root, "/proc/irq/24/smp_affinity_list", "0-7\n")
    write(root, "/proc/sys/kernel/watchdog_cpumask", "0-7\n")
    shutil.rmtree(root / "etc/systemd/system/machine.slice.d")
    (root / "etc/systemd/system/kubenode-housekeeping.service").unlink()
    for link in (root / "etc/systemd/system/multi-user.target.wants").iterdir():
        # As it leads on the node itself, whose root is that of its files.
        link.unlink()
        link.symlink_to("../" + link.name)


MACHINES: dict[str, Callable[[Path], None]] = {
    "busy": make_busy,
    "stopped": make_stopped,
    "old": make_old,
    "layered": make_layered,
    "owned": make_owned,
    "brought": make_brought,
    **{"divided-" + name: make_divided(name) for name in ("xeon-snc2-sparse", "atom-l2", "xeon-l3-cdp")},
    **{"throttled-" + style: make_throttled(style) for style in ("v2", "hybrid-v2")},
    **{name: make_demo(name) for name in ("xeon", "epyc", "edge")},
    **{name: make_distribution(name) for name in KUBELETS},
}

# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What is saved is what the modules read, and they say the same of it."""

from __future__ import annotations

import io
import json
import os
import re
import shutil
import tarfile
import tempfile
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any, Callable, Iterator

import pytest
from ansible.module_utils.testing import patch_module_args

from ansible_collections.kubenode.cpu_manager.plugins.module_utils.archive import unpacked
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.cpuset import CPUSet
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.node.cache.journal import (
    Journal,
    text_of,
    wish_of,
)
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.node.housekeeping.at_boot import AtBoot
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.node.housekeeping.bring import present
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.node.housekeeping.journal import (
    OwnCPUs,
    Wish,
    read_journal,
    write_journal,
)
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.node.housekeeping.wanted import Extras
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.node.node import Node
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.node.saved_files import COLLECTION, save_node
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.tree import SAID, Tree, node_name
from ansible_collections.kubenode.cpu_manager.tests.machines import housekept
from ansible_collections.kubenode.cpu_manager.tests.machines.cgroups import STYLES, read_listed, write_containers
from ansible_collections.kubenode.cpu_manager.tests.machines.command import main as write_machine
from ansible_collections.kubenode.cpu_manager.tests.machines.kubelets import KUBELETS, write_kubelet
from ansible_collections.kubenode.cpu_manager.tests.machines.layered import write_layers, write_slices
from ansible_collections.kubenode.cpu_manager.tests.machines.resctrl.kernel import Kernel
from ansible_collections.kubenode.cpu_manager.tests.machines.resctrl.node import JOURNAL, give
from ansible_collections.kubenode.cpu_manager.tests.machines.resctrl.node import write_node as write_resctrl_node
from ansible_collections.kubenode.cpu_manager.tests.machines.resctrl.platforms import PLATFORMS, record
from ansible_collections.kubenode.cpu_manager.tests.machines.throttled import write_node as write_throttled
from ansible_collections.kubenode.cpu_manager.tests.machines.tools import MEMORY

CHECKOUT = Path(__file__).parents[5]
DEMO = CHECKOUT / "demo"
PACKAGE = "ansible_collections.kubenode.cpu_manager.plugins.modules."

WANTED: dict[str, Any] = {
    "cpu_manager_policy": "static",
    "cpu_manager_policy_options": {"full-pcpus-only": True},
    "memory_manager_policy": "Static",
    "reserved_memory": [{"numaNode": 0, "limits": {"memory": "1124Mi"}}],
    "reservation": {"count": 2},
}
PODS = [{"metadata": {"name": "app"}, "spec": {"containers": [{"name": "app"}]}}]
TAKEN_BACK: tuple[str, dict[str, Any]] = ("housekeeping", {"state": "absent"})
# Every module that reads a node, with what makes it read all that it can.
MODULES: list[tuple[str, dict[str, Any]]] = [
    ("drift_info", {}),
    ("drift_info", {"cpu_manager_policy": "static", "reservation": {"count": 2, "near_device": "eth0"}}),
    ("rollout_info", {}),
    ("rollout_info", {**WANTED, "upgrade_to": "1.37"}),
    ("rollout_info", {"change": "rollback"}),
    ("start_check", WANTED),
    ("start_check", {"config_path": "/etc/odd.yaml"}),
    ("kubelet_config", {"cpu_manager_policy": "static", "reservation": {"count": 2}}),
    ("checkpoint", {"discard_assignments": True}),
    ("checkpoint_info", WANTED),
    ("cpu_topology_info", {}),
    ("cpu_topology_info", {"source": "cpuinfo"}),
    ("reserved_cpus", {"count": 2}),
    ("reserved_cpus", {"count": 2, "near_device": "eth0"}),
    ("reserved_cpus", {"count": 2, "near_device": "eth9"}),
    ("allocation_plan", {"pods": PODS}),
    ("reconcile", {}),
    ("throttling_info", {}),
    ("rollout_journal", {"state": "read"}),
    ("rollout_journal", {"state": "read", "source": "last"}),
    ("cpuset", {"path": "kubepods.slice", "cpus": "0-1"}),
    ("cpuset", {"path": "kubepods", "cpus": "0-1"}),
    ("wait_for_kubelet", {}),
    ("housekeeping_info", {}),
    ("housekeeping_info", {"reserved_system_cpus": "0-1"}),
    ("dra_info", {}),
    ("cache_info", {}),
    ("cache_partition", {"exclusive_share": 2}),
    ("cache_partition", {"state": "absent"}),
    # Of a saved node nothing is counted, so there is nothing to wait for.
    ("isolation_info", {"seconds": 1}),
    ("isolation_benchmark", {"seed": 1}),
    ("housekeeping", {"reserved_system_cpus": "0-1"}),
    TAKEN_BACK,
    ("reconcile_program", {}),
    ("runtime_config", {}),
    ("runtime_config", {"nri": True, "cdi": True}),
]
# What shows the most.
FEW = [call for call in MODULES if call[0] in ("rollout_info", "kubelet_config")]

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


def write(root: Path, path: str, text: str | bytes) -> None:
    file = root / path.lstrip("/")
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(text if isinstance(text, bytes) else text.encode())


def make_busy(root: Path) -> None:
    """A node with a running kubelet, pods, a memory manager, network devices, and secrets all over."""
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
    """The same without the kubelet, and with an older kernel."""
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
    """A machine with an old kernel and cgroups of v1, whose kubelet is k3s, with a journal of a change."""
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
    config = {"content": "dG9rZW46IGh1bnRlcjIKa3ViZWxldC1hcmc6IFt2PTJdCg==", "mode": 384, "uid": 0, "gid": 0}
    journal = {
        "format": 1,
        "phase": "changing",
        "facts": {},
        "run": "",
        "files": {"/etc/rancher/k3s/config.yaml": config},
    }
    write(root, "/var/lib/kubenode-cpu-manager/change.json", json.dumps(journal))


def make_throttled(style: str) -> Callable[[Path], None]:
    def make(root: Path) -> None:
        write_throttled(root, STYLES[style])
        write(root, "/etc/hostname", style + "\n")

    return make


def make_layered(root: Path) -> None:
    """A host that keeps to its CPUs in parts only, with secrets beside what is read of it."""
    write_machine(["1s4c2t", str(root)])
    write(root, "/etc/hostname", "layered\n")
    write_kubelet(root, KUBELETS["kubeadm"])
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
    """A node on which many manage CPUs, with secrets beside what is read of it."""
    write_machine(["1s4c2t", str(root)])
    write(root, "/etc/hostname", "owned\n")
    write_kubelet(root, KUBELETS["kubeadm"])
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
    """A node whose caches are divided, by us and by others."""

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
        journal = Journal(wish_of({"exclusive_share": 2}), "", shape.caches[0].name, {0: 7}, {0: (4,)})
        write(root, "/" + JOURNAL, text_of(journal))

    return make


def make_brought(root: Path) -> None:
    """A node that the role housekeeping has brought to its wish, and others have changed since; with secrets."""
    write_machine(["1s4c2t", str(root)])
    housekept.write_node(root)
    write(root, "/etc/hostname", "brought\n")
    write_kubelet(root, KUBELETS["kubeadm"])
    shutil.rmtree(root / "sys/fs/cgroup/user.slice")
    shutil.rmtree(root / "sys/fs/cgroup/machine.slice")
    write(root, "/" + housekept.IRQBALANCE, "PASSWORD=hunter2\n")
    write(root, "/proc/1/status", "Cpus_allowed_list:\t0-1\n")
    own = OwnCPUs(CPUSet((2, 3)), "isolated", "isolated.slice")
    wish = Wish(CPUSet((0, 1)), ("interrupts", "slices", "irqbalance", "watchdog", "manager"), partition=own)
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


@pytest.fixture
def tmp_path() -> Iterator[Path]:
    """In memory where that is possible: saved nodes have thousands of small files."""
    with tempfile.TemporaryDirectory(dir=MEMORY) as directory:
        yield Path(directory)


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where archives are unpacked."""
    directory = tmp_path / "temporary"
    directory.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(directory))
    return directory


class Recorder:
    """The paths that are opened, looked at or listed, as the system calls name them."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.paths: set[str] = set()
        self.listed: set[str] = set()
        for name in ("open", "stat"):
            patch.setattr(os, name, self._recording(getattr(os, name)))
        for name in ("listdir", "scandir"):
            patch.setattr(os, name, self._listing(getattr(os, name)))

    def _recording(self, function: Any) -> Any:
        def record(path: Any, *arguments: Any, **keywords: Any) -> Any:
            with suppress(TypeError, OSError):
                directory = keywords.get("dir_fd")
                above = os.readlink("/proc/self/fd/%d" % directory) if directory is not None else ""
                self.paths.add(os.path.join(above, os.fsdecode(path)))
            return function(path, *arguments, **keywords)

        return record

    def _listing(self, function: Any) -> Any:
        def record(path: Any = ".") -> Any:
            self.listed.add(os.readlink("/proc/self/fd/%d" % path) if isinstance(path, int) else os.fsdecode(path))
            return function(path)

        return record

    def below(self, root: Path) -> set[str]:
        """What of it is there, by the place below a root, past all links."""
        start = "%s/" % root
        found = set()
        for path in self.paths:
            real = os.path.realpath(path)
            if path.startswith(start) and real.startswith(start) and os.path.exists(real):
                found.add(real[len(start) :])
        return found


def ask(capsys: pytest.CaptureFixture[str], root: Path, module: str, parameters: dict[str, Any]) -> dict[str, Any]:
    """What a module prints in check mode."""
    arguments = {"root": str(root), "_ansible_check_mode": True, **parameters}
    with patch_module_args(arguments), pytest.raises(SystemExit):
        import_module(PACKAGE + module).main()
    answer: dict[str, Any] = json.loads(capsys.readouterr().out)
    answer.pop("invocation", None)
    # It is answered, or there is one clear error.
    assert answer.get("failed") is None or "\n" not in answer["msg"], (module, answer)
    if module == "runtime_config":
        # Of a file that may hold passwords only what is read is saved, so what surrounds the change is not the same.
        answer.pop("diff", None)
    return answer


def modules_for(name: str) -> list[tuple[str, dict[str, Any]]]:
    if name == "brought":
        # Its journal is saved without what the files were before: an archive does not say what a way back writes.
        return [call for call in MODULES if call != TAKEN_BACK]
    return FEW if name in KUBELETS or name in ("xeon", "epyc", "edge") else MODULES


def save(root: Path, archive: Path, redact: bool = False) -> dict[str, Any]:
    tree = Tree(str(root))
    content, about = save_node(Node(tree), node_name(tree), redact)
    archive.write_bytes(content)
    return about


def places(archive: Path) -> dict[str, tarfile.TarInfo]:
    with tarfile.open(archive) as opened:
        return {member.name: member for member in opened}


def contents(archive: Path) -> Iterator[tuple[str, bytes]]:
    with tarfile.open(archive) as opened:
        for member in opened:
            file = opened.extractfile(member) if member.isreg() else None
            yield member.name, file.read() if file is not None else b""


def without_root(answer: dict[str, Any], root: str) -> Any:
    return json.loads(json.dumps(answer).replace(root, ""))


@pytest.mark.parametrize("name", MACHINES)
def test_the_modules_say_the_same(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, temporary: Path, name: str
) -> None:
    root, archive = tmp_path / "node", tmp_path / "node.tar.gz"
    MACHINES[name](root)
    save(root, archive)
    for module, parameters in modules_for(name):
        on_node, on_archive = (ask(capsys, place, module, parameters) for place in (root, archive))
        expected = without_root(on_node, str(root))
        found = without_root(on_archive, "%s:" % archive)
        found = json.loads(json.dumps(found).replace(str(archive), "").replace("redacted", "hunter2"))
        assert found == expected, (module, parameters)
    assert list(temporary.iterdir()) == []


def kind(path: str) -> str:
    """A path with the names of one machine taken out."""
    path = re.sub(r"(kubepods|system|user|init)[^/]*(/.*)?/(?=c(group|puset)\.)", "", path)
    path = re.sub(r"hugepages-\d+kB", "hugepages", path)
    return re.sub(r"\d+", "N", path)


def test_what_is_saved_is_what_is_read(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    kinds_read, kinds_saved = set(), set()
    for name, make in MACHINES.items():
        root, archive = tmp_path / name, tmp_path / (name + ".tar.gz")
        make(root)
        save(root, archive)
        with monkeypatch.context() as patch:
            recorder = Recorder(patch)
            for module, parameters in MODULES:
                ask(capsys, root, module, parameters)
        saved = places(archive)
        read = recorder.below(root)
        missing = {path for path in read if path not in saved and not (root / path).is_dir()}
        # Of the processes only the kubelet is saved, and of a mount point nothing is to be read.
        missing -= {path for path in missing if re.fullmatch(r"proc/\d+/(cmdline|status)", path) and "712" not in path}
        assert missing == set(), name
        directories = {path for path in read if (root / path).is_dir()}
        above = {str(parent) for path in saved for parent in Path(path).parents}
        assert {path for path in directories if path not in saved and path not in above} == set(), name
        kinds_read |= {kind(path) for path in read}
        kinds_saved |= {kind(path) for path, member in saved.items() if member.isreg() and member.size}
    unread = kinds_saved - kinds_read - {SAID.lstrip("/")}
    assert unread == set()


@pytest.mark.parametrize("name", ["busy", "old", "layered", "owned", "brought"])
@pytest.mark.parametrize("redact", [False, True])
def test_no_secret_is_saved(tmp_path: Path, name: str, redact: bool) -> None:
    root, archive = tmp_path / "node", tmp_path / "node.tar.gz"
    MACHINES[name](root)
    about = save(root, archive, redact)
    found = dict(contents(archive))
    assert {path for path, content in found.items() if SECRET in content} == set()
    assert b"aHVudGVyMg" not in b"".join(found.values())
    assert about["left_out"] == []
    assert not any("shadow" in path or "pki" in path or path == "etc/kubernetes/kubelet.conf" for path in found)
    if name == "busy":
        assert b"10.0.0.1" in found["etc/extra.env"]
        assert b"--v=2" in found["usr/lib/systemd/system/kubelet.service"]


def test_hashed_names_change_no_answer_but_names(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    root, plain, hashed = tmp_path / "node", tmp_path / "plain.tar.gz", tmp_path / "hashed.tar.gz"
    make_demo("epyc")(root)
    save(root, plain)
    save(root, hashed, redact=True)
    listed = read_listed((DEMO / "containers/epyc").read_text("utf-8"))
    names = {name for container in listed for name in (*container.pod.split("/"), container.container)}
    for path, content in contents(hashed):
        for name in names:
            assert not re.search(r"\b%s\b" % re.escape(name), path) or "/log/" not in path
            assert '"%s"' % name not in content.decode("utf-8", "replace")
    before, after = (ask(capsys, archive, "drift_info", {}) for archive in (plain, hashed))
    assert before["checkpoint"]["verdict"] == after["checkpoint"]["verdict"] == "accepted"
    assert before["enforcement"] == after["enforcement"]
    assert [(owner["use"], owner["cpus"]) for owner in before["owners"]] == [
        (owner["use"], owner["cpus"]) for owner in after["owners"]
    ]
    assert len(before["drift"]) == len(after["drift"]) > 0
    assert before["owners"] != after["owners"]


def test_the_same_files_make_the_same_archive(tmp_path: Path) -> None:
    root = tmp_path / "node"
    make_busy(root)
    node = Node(Tree(str(root)))
    first, second = (save_node(node, "busy", now=1e9)[0] for _time in range(2))
    assert first == second
    assert save_node(node, "busy", now=2e9)[0] != first


def test_times_of_change_are_kept(tmp_path: Path) -> None:
    root, archive = tmp_path / "node", tmp_path / "node.tar.gz"
    make_busy(root)
    config = root / "var/lib/kubelet/config.yaml"
    os.utime(config, (1700000000.25, 1700000000.25))
    save(root, archive)
    opened = unpacked(str(archive))
    assert os.stat(opened.directory + "/var/lib/kubelet/config.yaml").st_mtime == 1700000000.25
    opened.remove()
    assert not os.path.exists(opened.directory)


def test_links_out_of_a_saved_node_are_left_out(tmp_path: Path) -> None:
    root, archive = tmp_path / "node", tmp_path / "node.tar.gz"
    make_demo("xeon")(root)
    write(tmp_path, "secret", SECRET)
    config = Node(Tree(str(root))).config_path or ""
    (root / config.lstrip("/")).unlink()
    (root / config.lstrip("/")).symlink_to(tmp_path / "secret")
    with pytest.raises(Exception, match="leads out"):
        Node(Tree(str(root)))
    (root / "proc/meminfo").symlink_to(tmp_path / "secret")
    (root / config.lstrip("/")).unlink()
    about = save(root, archive)
    assert about["left_out"] == [{"path": "/proc/meminfo", "why": "it is a link out of the node's files"}]
    assert all(SECRET not in content for _path, content in contents(archive))


def test_this_machine(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    archive = tmp_path / "this.tar.gz"
    save(Path("/"), archive)
    for module in ("cpu_topology_info", "drift_info"):
        live, saved = (ask(capsys, place, module, {}) for place in (Path("/"), archive))
        assert json.loads(json.dumps(saved).replace("%s:/" % archive, "/").replace(str(archive), "/")) == live


def test_the_version_is_that_of_the_collection() -> None:
    assert "\nversion: %s\n" % COLLECTION in (CHECKOUT / "galaxy.yml").read_text("utf-8")


def test_the_first_file_says_what_was_saved(tmp_path: Path) -> None:
    root, archive = tmp_path / "node", tmp_path / "node.tar.gz"
    make_busy(root)
    about = save(root, archive)
    with tarfile.open(fileobj=io.BytesIO(archive.read_bytes())) as opened:
        first = opened.next()
        assert first is not None
        assert first.name == SAID.lstrip("/")
        file = opened.extractfile(first)
        assert file is not None
        written = json.loads(file.read())
    assert written == {key: value for key, value in about.items() if key != "files"}

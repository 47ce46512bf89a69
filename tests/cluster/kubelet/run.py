# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""One life of a stand-in, from its start to its end."""

from __future__ import annotations

import math
import os
import shutil
import signal
import sys
import time
from contextlib import ExitStack, suppress
from datetime import datetime
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Callable, Sequence

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.quantity import nanoseconds
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.tree import Tree, node_name
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.versions import minor_version
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._node.node import Node

from ..api import API
from ..node import Description, NodeAgent
from ..ports import LOOPBACK
from .configuration import CommandLine, StartError, effective_configuration
from .faults import DIES, HANGS, NO_RUNTIME, REFUSES, Fault, fault_of
from .managers import MEMORY, Managers
from .servers import serve
from .static_pods import static_pods

# Seconds for which a kubelet answers before it looks at its checkpoint.
LATE = 0.5


class Kubelet:
    """A kubelet of a release, such as "1.36.0", with its flags."""

    def __init__(self, tree: Tree, release: str, arguments: Sequence[str], faults: Sequence[Fault] = ()) -> None:
        self.tree, self.release, self.arguments, self.faults = tree, release, arguments, faults
        # An event could be in use by what the signal interrupts.
        self._told: SimpleQueue[None] = SimpleQueue()

    def run(self) -> int:
        """Run the kubelet, and return the exit status."""
        signal.signal(signal.SIGTERM, lambda _number, _frame: self._told.put(None))
        with ExitStack() as stack:
            stack.callback(self._show_process())
            try:
                self._live(stack)
            except (StartError, OSError) as error:
                log("E", str(error))
                return 1
        return 0

    def _live(self, stack: ExitStack) -> None:
        command_line = CommandLine.parse(self.arguments)
        values = effective_configuration(self.tree, command_line)
        fault = fault_of(values, self.faults) or Fault("", {})
        if fault.how == REFUSES:
            raise StartError("failed to run Kubelet: what the test wants")
        if fault.how == HANGS:
            self._is_told_to_end()
            return
        places = command_line.places
        release = minor_version(self.release)
        managers = Managers(Node(self.tree, places["config"], places["root-dir"], release), values)
        serve(self.tree, places["root-dir"], values)
        log("I", "Started kubelet")
        name = places["hostname-override"] or node_name(self.tree).lower()
        own_pods = static_pods(self.tree, values.get("staticPodPath", ""), name)
        agent = None
        if places["kubeconfig"]:
            api = API(Path(self.tree.path(places["kubeconfig"])))
            place = values.get("address", LOOPBACK), values["port"]
            description = Description(name, "v" + self.release, *_amounts(managers), *place)
            agent = stack.enter_context(NodeAgent(api, description, managers, own_pods))
        if fault.how == NO_RUNTIME or self._is_told_to_end(LATE):
            self._is_told_to_end()
            return
        managers.start()
        for pod in own_pods:
            managers.admit(pod)
        log("I", "[cpumanager] starting with %s policy" % values["cpuManagerPolicy"])
        log("I", "Starting Kubelet Plugin Manager")
        if agent:
            agent.start()
        else:
            managers.all_told()
        period = nanoseconds(values["cpuManagerReconcilePeriod"]) / 10**9
        end = time.monotonic() + fault.after if fault.how == DIES else math.inf
        while not self._is_told_to_end(min(period, max(0.0, end - time.monotonic()))):
            if time.monotonic() >= end:
                raise StartError("panic: what the test wants")
            managers.reconcile()

    def _is_told_to_end(self, seconds: float | None = None) -> bool:
        """Return whether it is, for ever or within so many seconds."""
        with suppress(Empty):
            self._told.put(self._told.get(timeout=seconds))
            return True
        return False

    def _show_process(self) -> Callable[[], None]:
        """Be in the /proc of a node that is not this machine. Returns what ends that."""
        if self.tree.live:
            return lambda: None
        here = Path(self.tree.path("/proc"))
        for left in self.tree.numbered("/proc", ""):
            shutil.rmtree(here / str(left))
        process = here / str(os.getpid())
        process.mkdir(parents=True)
        (process / "cmdline").write_bytes(
            b"".join(word.encode("utf-8") + b"\0" for word in ("kubelet", *self.arguments))
        )
        return lambda: shutil.rmtree(process)


def _amounts(managers: Managers) -> tuple[dict[str, str], dict[str, str]]:
    """Return a node's capacity, and what of it pods may ask for."""
    rest = {"memory": str(managers.host.memory or MEMORY), "pods": "110"}
    cpus = {"cpu": str(managers.host.topology.num_cpus)}
    return {**cpus, **rest}, {"cpu": "%dm" % managers.allocatable_millicores(), **rest}


def log(level: str, text: str) -> None:
    """Print a line as the kubelet logs it."""
    now = datetime.now().astimezone().strftime("%m%d %H:%M:%S.%f")
    print("%s%s %d] %s" % (level, now, os.getpid(), text), file=sys.stderr, flush=True)

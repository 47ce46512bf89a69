# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The command line: write the machine of a name below a directory."""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.errors import InputError
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.cpuset import CPUSet

from . import __doc__ as grammar
from .cgroups import read_listed, write_containers
from .shape import parse_name
from .tools import run_lscpu, run_lstopo
from .tree import write_tree


def main(arguments: list[str] | None = None) -> None:
    """Write one machine. Ends the process with a message for a name that is none."""
    parser = argparse.ArgumentParser(
        prog="python tests/machines",
        description="Write the /sys and /proc/cpuinfo of a machine.",
        epilog=grammar,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("name", metavar="NAME", help="the machine's shape, such as 2s2n12c2t+offline5")
    parser.add_argument("directory", metavar="DIR", help="where its /sys and /proc go; may exist, without them")
    parser.add_argument(
        "--containers",
        metavar="FILE",
        help="also write the cgroups of these containers, one a line: UID QOS-CLASS NAMESPACE/POD CONTAINER CPUS",
    )
    parser.add_argument("--no-cpuinfo", action="store_true", help="write no /proc/cpuinfo")
    parser.add_argument("--no-numa", action="store_true", help="as a kernel that was built without NUMA")
    parser.add_argument(
        "--old-kernel", action="store_true", help="as a kernel before 4.11: no cache ids, no dies, old names"
    )
    parser.add_argument(
        "--outputs",
        metavar="DIR2",
        help="also write there what lscpu and lstopo print of this machine, as NAME.lscpu, NAME.hwloc2.xml, ...",
    )
    options = parser.parse_args(arguments)
    try:
        shape = parse_name(options.name)
        write_tree(
            shape.topology(),
            options.directory,
            shape.whole(),
            with_cpuinfo=not options.no_cpuinfo,
            with_numa=not options.no_numa,
            old_kernel=options.old_kernel,
        )
        if options.containers:
            listed = read_listed(Path(options.containers).read_text(encoding="utf-8"))
            topology = shape.topology()
            nodes = CPUSet(node.id for node in topology.numa_nodes)
            write_containers(Path(options.directory), listed, str(topology.online), str(nodes))
        if options.outputs:
            _write_outputs(options.directory, os.path.join(options.outputs, options.name))
    except (InputError, OSError) as error:
        parser.error(str(error))


def _write_outputs(root: str, path: str) -> None:
    for ending, text in (
        ("lscpu", run_lscpu(root)),
        ("all.lscpu", run_lscpu(root, with_all=True)),
        ("hwloc1.xml", run_lstopo(root, version=1)),
        ("hwloc2.xml", run_lstopo(root)),
    ):
        with open("%s.%s" % (path, ending), "w", encoding="utf-8") as file:
            file.write(text)

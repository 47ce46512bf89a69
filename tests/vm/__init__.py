# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Machines that run: QEMU guests of any CPU topology, from Debian packages alone.

    python tests/vm up worker xeon-2s12c2t    # or: python -m tests.vm ...
    python tests/vm ssh worker lscpu
    python tests/vm down worker

shapes.yml says which machines there are (read by shape.py), images.yml what is installed in them (read by recipes.py,
made by image.py, once: the user's cache keeps them). From a shape, qemu.py tells QEMU's arguments and acpi.py the
firmware's table of CPUs; both only decide. guest.py starts, restores, names and ends machines; machine.py is one of
them, over QEMU's monitor (monitor.py) and ssh. host.py knows what this host can do: which programs are missing, KVM or
emulation.

A machine's files are in build/vm/NAME and vanish with it. `ssh -F build/vm/ssh_config NAME` works, too.
"""

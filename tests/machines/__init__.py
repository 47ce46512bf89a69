# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Machines that exist only as files: a name says a shape, a shape makes a topology, and a topology makes a tree.

    python tests/machines 2s2n12c2t /tmp/node     # or: python -m tests.machines ...

writes the /sys and /proc/cpuinfo of a machine of two sockets, each of two NUMA nodes, each of twelve cores, each of two
threads. In a test:

    shape = parse_name("2s8c2t+offline3")         # shape.py
    topology = shape.topology()
    write_tree(topology, root, shape.whole())     # tree.py
    lscpu(topology)                               # texts.py: what the tools would print of it

The names
---------

    NAME    = LEVELS FLAG*
    LEVELS  = (COUNT LETTER)+, from the outside in; each count is "in each of the level before"

      s   sockets          d   dies              n   NUMA nodes       l   L3 caches
      c   cores            t   threads of each core (1 unless said)
      e   further cores, with one thread each, behind those of c: a hybrid machine

    Each letter comes once at most. s, d, n and l stand in any order, but dies and L3 caches are in sockets: 2s1n4c has
    a NUMA node in each socket, 1n2s4c one for both, 1s1l2n4c one L3 cache for two NUMA nodes. Then come c, t and e, of
    which only c must be there. Without s or n the machine has one of it; without d each socket is a die; without l
    there is one L3 cache in each of the innermost groups; 0l is a machine without.

    FLAG    =
      +adjacent           threads of a core have adjacent CPU numbers. Otherwise, as Linux mostly numbers them, first
                          come the first threads of all cores, then the second ones in the same order
      +interleaved        neighbouring cores are numbered in turn over the NUMA nodes, as Dell's firmware does it
      +memoryCOUNT        further NUMA nodes, with memory only, nearest to the first, second, ... node with CPUs
      +nodesLIST          the ids of the NUMA nodes, those with memory only last
      +distancesA,B,C     of a NUMA node to itself, to others of its socket, and to those of others (10,12,21)
      +offlineLIST        CPUs that are switched off
      +isolatedLIST       CPUs that the kernel was told to isolate
      +nohzLIST           CPUs that the kernel was told to run without ticks (nohz_full)

    A LIST is a CPU list such as 0-3,8. Flags come in this order, each once. Examples:

      2s2n12c2t                             96 CPUs, NUMA in the socket
      2s4n2l4c2t+adjacent                   128 CPUs, two L3 caches in each NUMA node
      2s1n10c2t+interleaved+offline5,29     a Dell with two threads switched off
      1s6c2t8e+adjacent                     six cores of two threads and eight of one, all on one L3 cache
      4s1n4c+nodes0,8,16,24                 NUMA node ids as on POWER
      2s1n4c2t+memory2+nodes0-1,4-5         two NUMA nodes with CPUs and two with memory only
"""

// Copyright (c) 2026, the kubenode.cpu_manager developers
// GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
// SPDX-License-Identifier: GPL-3.0-or-later
//
// The CPUs of a node for the page of a fleet: who owns which, as a table and as a map of its sockets and cores.
//
// The page has it in one script with report.js, which gives it what makes elements, and what finds shared values.
"use strict";
function cpuMap({ value, make, header, hide }) {
  const MOST_CPUS = 8192;
  const USES = ["exclusive", "reserved", "shared", "offline"];

  // "0-3,8" as numbers; what is no list of CPUs is empty, as a node may write anything.
  function cpusOf(text) {
    const cpus = [];
    if (!/^\d{1,5}(-\d{1,5})?(,\d{1,5}(-\d{1,5})?)*$/.test(text || "")) return cpus;
    for (const part of text.split(",")) {
      const [first, last] = part.split("-").map(Number);
      const end = last === undefined ? first : last;
      for (let cpu = first; cpu <= end && cpus.length < MOST_CPUS; cpu += 1) cpus.push(cpu);
    }
    return cpus;
  }

  // a, b, ... z, aa, ab: a letter for each owner of exclusive CPUs, on its CPUs and in the table.
  function letters(number) {
    return (number >= 26 ? letters(Math.floor(number / 26) - 1) : "") + String.fromCharCode(97 + (number % 26));
  }

  function usesOf(node) {
    let exclusive = 0;
    return (node.owners === undefined ? [] : value(node.owners)).map(([use, owner, cpus]) => {
      if (use !== "exclusive") return { use, owner, cpus, mark: use === "reserved" ? "R" : "", isOdd: false };
      exclusive += 1;
      return { use, owner, cpus, mark: letters(exclusive - 1), isOdd: exclusive % 2 === 0 };
    });
  }

  function ofCpus(node, group) {
    const pools = node.pools === undefined ? {} : value(node.pools);
    const uses = usesOf(node);
    const table = make("table", "uses");
    const add = (name, mark, owner, cpus) => table.append(make("tr", "", header("row", name),
      make("td", "", mark ? make("b", "", mark + " ") : "", owner), make("td", "", make("code", "", cpus))));
    if (pools.online) add("online", "", "", pools.online);
    for (const { use, owner, cpus, mark } of uses) if (cpus) add(use, mark, owner, cpus);
    if (pools.stranded) add("stranded", "", "", pools.stranded);
    if (pools.isolated) add("isolated", "", "", pools.isolated);
    if (pools.reserved_wanted) add("reserved, wanted", "", "", pools.reserved_wanted);
    const shown = make("details", "cpus", make("summary", "", "CPUs and their owners"));
    // Thousands of cells, that few readers want.
    shown.addEventListener("toggle", () => {
      if (group.map) shown.append(map(node.host, group.map, uses, pools), key());
      shown.append(table);
    }, { once: true });
    return [shown];
  }

  function map(host, drawn, uses, pools) {
    const isolated = new Set(cpusOf(pools.isolated));
    const wanted = new Set(cpusOf(pools.reserved_wanted));
    const noUse = { use: "unknown", owner: "", mark: "", isOdd: false };
    const useOf = new Map();
    for (const use of uses) for (const cpu of cpusOf(use.cpus)) useOf.set(cpu, use);
    const cell = (cpu) => {
      const { use, owner, mark, isOdd } = useOf.get(cpu) || noUse;
      const kind = USES.includes(use) ? use : "unknown";
      const made = make("span", "cpu " + kind, String(cpu), mark ? make("b", "", mark) : "");
      for (const [name, is] of [["odd", isOdd], ["wanted", wanted.has(cpu)], ["isolated", isolated.has(cpu)]]) {
        made.classList.toggle(name, is);
      }
      made.title = "CPU " + cpu + ": " + use + (owner ? " to " + owner : "") + (isolated.has(cpu) ? ", isolated" : "") +
        (wanted.has(cpu) ? ", reserved in the wanted state" : "");
      return made;
    };
    const boxes = (members) => members.map((member) => member.core
      ? make("span", "core", ...member.core.map(cell))
      : make("div", "box", make("b", "", member.name), make("div", "", ...boxes(member.members))));
    const shown = make("div", "map", ...boxes(drawn.boxes));
    if (drawn.offline.length) {
      const core = make("span", "core row", ...drawn.offline.map(cell));
      shown.append(make("div", "box", make("b", "", "offline"), make("div", "", core)));
    }
    shown.setAttribute("role", "img");
    shown.setAttribute("aria-label", "The CPUs of " + host + " by socket and core; the table below has them as text");
    return shown;
  }

  function key() {
    const sample = (name, text, mark) => hide(make("span", "cpu " + name, text, mark ? make("b", "", mark) : ""));
    return make("p", "key", "A column is a core with its threads.", sample("reserved", "0", "R"), "reserved",
      sample("exclusive", "1", "a"), sample("exclusive odd", "2", "b"), "exclusive, with the letter of the owner",
      sample("shared", "3"), "shared", sample("offline", "4"), "offline", sample("isolated", "5"), "isolated",
      sample("wanted", "6"), "reserved in the wanted state");
  }

  return ofCpus;
}

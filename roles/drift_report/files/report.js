// Copyright (c) 2026, the kubenode.cpu_manager developers
// GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
// SPDX-License-Identifier: GPL-3.0-or-later
//
// Search, filters and the details of nodes for the page of a fleet.
//
// What is shown is a function of the part of the URL behind "#": filters and open nodes, as in #check=a&node=worker-3.
// Each text of a node becomes text: nothing here makes HTML of a string.
"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const rows = Array.from(document.querySelectorAll("#nodes .node"));
  const groups = Array.from(document.querySelectorAll("#nodes .group"));
  const chunks = Array.from(document.querySelectorAll("#nodes .rows, #nodes .names"));
  const lists = Array.from(document.querySelectorAll("#nodes .calm"), (list) =>
    ({ list, open: list.open, size: list.querySelector(".size"), all: list.querySelectorAll(".node").length }));
  const form = document.getElementById("tools");
  const count = document.getElementById("count");
  const FILTERS = ["q", "state", "severity", "check", "findings", "group"];
  const MOST_OPEN = 50; // nodes in one URL

  // --- what is looked for -----------------------------------------------------------------------------

  const value = (number) => data.values[number];
  const placesOf = (node) => node.places === undefined ? [] : value(node.places);
  const groupTexts = data.groups.map((group) => group.text.toLowerCase());
  const rowOf = new Map();
  const nodes = data.nodes.map((node, number) => {
    const findings = (node.findings || []).map(value);
    const words = [node.host, node.state, ...findings.map((finding) => finding.check),
      ...placesOf(node).map((place) => place.pod + "/" + place.container)];
    if (!rowOf.has(node.host)) rowOf.set(node.host, number);
    return { node, findings, text: words.join("\n").toLowerCase(), shown: true };
  });

  function filtersOf(hash) {
    const parameters = new URLSearchParams(hash.replace(/^#/, ""));
    const filters = { node: [...new Set(parameters.getAll("node"))].slice(-MOST_OPEN) };
    for (const name of FILTERS) filters[name] = parameters.get(name) || "";
    return filters;
  }

  // Findings that are waived match where they are wanted by name only: they count for nothing else, too.
  function findingMatches(finding, filters) {
    if (filters.findings === "waived" ? !finding.waived : finding.waived) return false;
    return (!filters.check || finding.check === filters.check) &&
      (!filters.severity || finding.severity === filters.severity) &&
      (!filters.findings || filters.findings === "waived" || finding.since === filters.findings);
  }

  function matcher(filters) {
    const terms = filters.q.toLowerCase().split(/\s+/).filter(Boolean);
    const termsOfGroups = groupTexts.map((text) => terms.filter((term) => !text.includes(term)));
    const states = filters.state ? filters.state.split(",") : null;
    const ofFinding = filters.check || filters.severity || filters.findings;
    return ({ node, findings, text }) =>
      (!filters.group || data.groups[node.group].id === filters.group) &&
      (!states || states.includes(node.state)) &&
      termsOfGroups[node.group].every((term) => text.includes(term)) &&
      (!ofFinding || findings.some((finding) => findingMatches(finding, filters)));
  }

  // --- showing it -------------------------------------------------------------------------------------

  let now = filtersOf("");

  function show(filters) {
    now = filters;
    const isFiltered = FILTERS.some((name) => filters[name]);
    const matches = matcher(filters);
    const open = new Set(filters.node.filter((host) => rowOf.has(host)).map((host) => rowOf.get(host)));
    const inGroup = new Array(groups.length).fill(0);
    const inChunk = new Map();
    let found = 0;
    nodes.forEach((entry, number) => {
      const row = rows[number];
      const isMatch = matches(entry);
      // A node that is open stays: a link to it works with every filter.
      const isShown = isMatch || open.has(number);
      if (isShown !== entry.shown) row.hidden = !(entry.shown = isShown);
      if (isMatch) found += 1;
      if (isShown) {
        inGroup[entry.node.group] += 1;
        inChunk.set(row.parentNode, (inChunk.get(row.parentNode) || 0) + 1);
      }
      if (open.has(number) !== Boolean(entry.isOpen)) (entry.isOpen ? close : unfold)(number);
    });
    groups.forEach((group, number) => { group.hidden = !inGroup[number]; });
    for (const chunk of chunks) chunk.hidden = !inChunk.has(chunk);
    for (const { list, open: isOpen, size, all } of lists) {
      let shown = 0;
      for (const chunk of list.querySelectorAll(".names")) shown += inChunk.get(chunk) || 0;
      list.hidden = !shown;
      if (isFiltered) list.open = true;
      else if (!list.querySelector(".open")) list.open = isOpen;
      size.textContent = shown === all ? String(all) : shown + " of " + all;
    }
    const name = nodes.length === 1 ? " node" : " nodes";
    count.textContent = isFiltered ? found + " of " + nodes.length + name : nodes.length + name;
    document.getElementById("reset").hidden = !isFiltered;
    document.getElementById("nothing").hidden = found + open.size > 0;
    for (const name of FILTERS) setField(form.elements[name], filters[name]);
  }

  function setField(field, wanted) {
    // What is being typed stays as it is.
    if (field.value === wanted || (field.type === "search" && field === document.activeElement)) return;
    field.value = wanted;
    // A link may hold several states, or what this report does not have.
    if (field.value === wanted) return;
    field.append(new Option(wanted.replaceAll(",", ", "), wanted));
    field.value = wanted;
  }

  function go(filters) {
    const parameters = new URLSearchParams();
    for (const name of FILTERS) if (filters[name]) parameters.set(name, filters[name]);
    for (const host of filters.node) parameters.append("node", host);
    const hash = parameters.toString();
    history.replaceState(null, "", hash ? "#" + hash : location.href.replace(/#.*/, ""));
    show(filters);
  }

  // --- one node ---------------------------------------------------------------------------------------

  function make(tag, name, ...children) {
    const made = document.createElement(tag);
    if (name) made.className = name;
    made.append(...children.filter((child) => child !== null && child !== ""));
    return made;
  }

  function unfold(number) {
    const entry = nodes[number];
    entry.isOpen = true;
    const row = rows[number];
    row.classList.add("open");
    row.append(detail(entry));
    row.firstElementChild.setAttribute("aria-expanded", "true");
    const list = row.closest("details");
    if (list) list.open = true;
  }

  function close(number) {
    nodes[number].isOpen = false;
    rows[number].classList.remove("open");
    rows[number].lastElementChild.remove();
    rows[number].firstElementChild.setAttribute("aria-expanded", "false");
  }

  function detail({ node, findings }) {
    const shown = make("div", "detail");
    const group = data.groups[node.group];
    const lookedAt = (node.looked_at || "").replace("T", " ").replace("Z", " UTC");
    shown.append(make("p", "dim", lookedAt ? "Read " + lookedAt + ". " : "", "State: " + node.state + "."));
    if (node.message) shown.append(make("p", "message", node.message));
    for (const refusal of node.refusals === undefined ? [] : value(node.refusals)) {
      shown.append(make("p", "message refusal", "Cannot be changed: " + refusal));
    }
    if (findings.length) {
      shown.append(make("h4", "", "Findings"), make("ul", "", ...findings.map(ofFinding)));
    }
    if (node.actions) shown.append(make("p", "", make("b", "", "To do: "), node.actions + "."));
    if (node.ways) shown.append(...ofWays(node.ways.map(value)));
    if (node.looks !== undefined) shown.append(...ofLooks(value(node.looks)));
    if (node.elsewhere !== undefined) shown.append(...ofElsewhere(value(node.elsewhere)));
    if (node.owners !== undefined || node.pools !== undefined || group.map) shown.append(...ofCpus(node, group));
    if (node.places !== undefined) shown.append(...ofPlaces(placesOf(node)));
    if (node.containers !== undefined) shown.append(...ofContainers(value(node.containers)));
    return shown;
  }

  function ofFinding(finding) {
    const about = Object.hasOwn(data.checks, finding.check) ? data.checks[finding.check] : { title: "" };
    const kind = ["danger", "warning"].includes(finding.severity) ? finding.severity : "note";
    const link = make("a", "", make("code", "", finding.check));
    link.href = "#check=" + encodeURIComponent(finding.check);
    const glyph = make("i", "glyph " + kind);
    glyph.setAttribute("aria-hidden", "true");
    const head = make("p", "head", make("span", "severity " + kind, glyph, " " + finding.severity),
      make("span", "title", about.title), link, " ");
    if (finding.since === "new") head.append(make("b", "badge new", "new"));
    if (finding.waived) head.append(make("span", "badge waived", "waived"));
    const facts = ["subject", "wanted", "found", "source"].map((name) => [name, finding[name]]);
    const days = Math.floor((Date.parse(document.querySelector("time").dateTime) - Date.parse(finding.first_seen)) / 864e5);
    const age = days > 0 ? ", " + days + (days === 1 ? " day" : " days") + " before this report" : "";
    facts.push(["first seen", finding.first_seen.replace("T", " ").replace("Z", " UTC") + age]);
    if (finding.waived) {
      const { reason, until } = finding.waived;
      facts.push(["waived", reason + (until ? " (until " + until + ")" : "")]);
    }
    const isPair = finding.wanted || finding.found;
    const list = make("dl", "");
    for (const [name, text] of facts) {
      const isMissing = !text && isPair && (name === "wanted" || name === "found");
      if (text || isMissing) {
        const shown = isMissing ? "nothing" : name === "waived" ? text : make("code", "", text);
        list.append(make("div", "", make("dt", "", name), make("dd", "", shown)));
      }
    }
    return make("li", "finding " + kind + (finding.waived ? " is-waived" : ""), head,
      finding.text ? make("p", "", finding.text) : null, list,
      finding.remedy ? make("p", "", make("b", "", "What to do: "), finding.remedy) : null);
  }

  // A value that is null was not read, or does not apply: that is not the same as equal.
  function ofWays(ways) {
    const columns = ["wanted", "files", "kubelet", "checkpoint", "kernel"];
    const table = make("table", "ways");
    table.append(make("thead", "", make("tr", "", ...["subject", ...columns].map((name) => header("col", name)))));
    const body = table.appendChild(make("tbody", ""));
    for (const way of ways) {
      const cells = columns.map((name) => {
        const isOdd = way.odd.includes(name);
        const cell = way[name] === null ? make("td", "dim", unseen("not read"), hide(make("span", "", "–")))
          : make("td", isOdd ? "odd" : "", ...(isOdd ? [hide(make("span", "sign", "≠")), unseen("stands out: ")] : []),
            way[name] ? make("code", "", way[name]) : "nothing");
        // On a small screen, where the places are no columns.
        cell.dataset.place = name;
        return cell;
      });
      body.append(make("tr", "", header("row", way.subject), ...cells));
    }
    return [make("h4", "", "The same setting in five places (≠ stands out; – not read, or does not apply)"),
      wide(table, "the same setting in five places")];
  }

  // In a part of its own, as it may be wider than the screen.
  function wide(table, name) {
    const shown = make("div", "wide", table);
    shown.tabIndex = 0;
    shown.setAttribute("role", "region");
    shown.setAttribute("aria-label", "Table: " + name);
    return shown;
  }

  // --- what the node was looked at for ----------------------------------------------------------------

  const percent = (number) => number === null ? "–" : number + " %";
  const FATES = { refused: "refused", loses: "loses its exclusive CPUs", gains: "moves to exclusive CPUs" };
  const LOOKS = {
    isolation: {
      title: "Who ran on the exclusive CPUs",
      columns: ["CPUs", "verdict", "own", "not its own", "by whom"],
      cells: (row) => [row.cpus, row.verdict || "–", percent(row.own_percent), percent(row.foreign_percent),
        row.by.join("; ")],
      isOdd: (row) => row.verdict === "disturbed",
      none: "No container has exclusive CPUs.",
    },
    throttling: {
      title: "Quotas and throttling",
      columns: ["exclusive CPUs", "limit", "throttled in"],
      cells: (row) => [row.exclusive || "–", limitOf(row),
        row.throttled_percent === null ? "–" : row.throttled_percent + " % of the periods"],
      isOdd: (row) => Boolean(row.exclusive) && row.limit_cpus !== null,
      none: "No container has a quota.",
    },
    housekeeping: {
      title: "Where the host's own work may run",
      columns: ["settings", "to change", "fixed by the kernel", "such as"],
      cells: (row) => [String(row.settings), String(row.to_change), String(row.fixed), row.examples.join("; ")],
      isOdd: (row) => row.to_change > 0,
      first: "layer",
      rows: (look) => look.layers,
      over: (look) => "reserved CPUs " + look.reserved,
      none: "No layer was found.",
    },
    cache: {
      title: "Ways of the caches",
      columns: ["whose", "CPUs", "ways", "mode", "processes", "in the caches"],
      cells: (row) => [row.owner, row.cpus || "–", row.ways || "–", row.mode, String(row.processes),
        row.occupancy === null ? "–" : (row.occupancy / 1048576).toFixed(1) + " MiB"],
      isOdd: (row) => row.owner !== "ours" && row.owner !== "root",
      first: "group",
      rows: (look) => look.groups,
      over: (look) => look.exclusive ? "exclusive CPUs " + look.exclusive : "no exclusive CPUs",
      none: "Nothing is divided.",
    },
    trial: {
      title: "A trial start of the kubelet",
      columns: ["version", "starts", "checkpoint", "what it said", "predicted"],
      cells: (row) => [row.version, row.starts ? "yes" : "no", row.checkpoint, row.message || "–",
        row.differs ? "otherwise" : "the same"],
      isOdd: (row) => !row.starts || row.differs,
      first: "kubelet",
      rows: (look) => look.trials,
      over: (look) => "in " + look.seconds + " s",
      none: "No kubelet was started.",
    },
    impact: {
      title: "What becomes of the pods",
      columns: ["with the wanted settings", "pods", "refused", "why", "cure"],
      cells: (row) => [FATES[row.fate] || row.fate, String(row.pods), String(row.refused),
        [row.reason, row.message].filter(Boolean).join(", ") + (row.inexact ? " (not exact: " + row.inexact + ")" : ""),
        row.cure || "–"],
      isOdd: (row) => row.fate === "refused",
      first: "workload",
      rows: (look) => look.workloads,
      over: (look) => look.changes ? "afterwards " + look.afterwards.exclusive + " exclusive CPUs, "
        + look.afterwards.allocatable + " still to be given" : "nothing changes",
      none: "All pods stay as they are.",
    },
  };

  function limitOf(row) {
    if (row.limit_cpus === null) return "none";
    const quota = row.quota_us === null || row.period_us === null ? ""
      : ": " + row.quota_us / 1000 + " ms in each " + row.period_us / 1000 + " ms";
    return row.limit_cpus + (row.limit_cpus === 1 ? " CPU" : " CPUs") + quota + (row.limit_of ? ", of the " + row.limit_of : "");
  }

  function ofLooks(looks) {
    return Object.keys(looks).filter((name) => Object.hasOwn(LOOKS, name)).flatMap((name) => {
      const { title, columns, cells, isOdd, none, first = "container", rows: rowsOf, over: overOf } = LOOKS[name];
      const look = looks[name];
      const over = !look.is_measured ? "not measured" : overOf ? overOf(look)
        : look.seconds === null ? "since each cgroup was made" : "in " + look.seconds + " s";
      const head = make("h4", "", title + " (" + over + ")");
      const rows = rowsOf ? rowsOf(look) : look.containers;
      if (!rows.length) return look.is_measured ? [head, make("p", "dim", none)] : [head];
      const table = make("table", "looks");
      table.append(make("thead", "", make("tr", "", ...[first, ...columns].map((text) => header("col", text)))));
      const body = table.appendChild(make("tbody", ""));
      for (const row of rows) {
        const odd = isOdd(row) ? "odd" : "";
        body.append(make("tr", odd, header("row", row[first]), ...cells(row).map((text) => make("td", "", text))));
      }
      const more = look.left_out ? make("p", "dim", "And " + look.left_out + " more.") : "";
      return [head, wide(table, title), ...(more ? [more] : [])];
    });
  }

  // cpu_map.js, which the page has before this file.
  const ofCpus = cpuMap({ value, make, header, hide });

  // For those who hear the page.
  const unseen = (text) => make("span", "hidden", text);

  function hide(element) {
    element.setAttribute("aria-hidden", "true");
    return element;
  }

  function header(scope, name) {
    const cell = make("th", "", name);
    cell.scope = scope;
    return cell;
  }

  function ofElsewhere(elsewhere) {
    const snippet = make("pre", "", elsewhere.snippet);
    snippet.tabIndex = 0;
    const shown = [make("h4", "", "Set elsewhere: " + elsewhere.name), make("p", "", elsewhere.why)];
    return elsewhere.snippet ? [...shown, snippet] : shown;
  }

  function ofPlaces(places) {
    const columns = ["pod", "container", "use", "cpus", "cores", "numa_nodes", "caches", "throttled_percent", "since"];
    const names = { cpus: "CPUs", numa_nodes: "NUMA nodes", caches: "L3 caches", throttled_percent: "throttled in" };
    const table = make("table", "looks");
    table.append(make("thead", "", make("tr", "", ...columns.map((name) => header("col", names[name] || name)))));
    const body = table.appendChild(make("tbody", ""));
    for (const place of places) {
      const [pod, ...cells] = columns.map((name) => place[name] === null || place[name] === "" ? "–"
        : name === "throttled_percent" ? percent(place[name]) : place[name]);
      body.append(make("tr", place.cores === "split" ? "odd" : "", header("row", pod),
        ...cells.map((text) => make("td", "", text))));
    }
    return [make("h4", "", "Where the containers are"), wide(table, "where the containers are")];
  }

  function ofContainers(counts) {
    return [make("p", "dim", "Containers, by cgroups of version " + counts.version + ": " + counts.kept +
      " with the CPUs that the checkpoint gives them, " + counts.different + " with others, " + counts.skipped +
      " not compared, such as sandboxes.")];
  }

  // --- what a person does -----------------------------------------------------------------------------

  // A link holds what it adds: the other filters and the open nodes stay.
  document.addEventListener("click", (event) => {
    const link = event.target.closest ? event.target.closest("a[href*='=']") : null;
    if (!link || event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return;
    event.preventDefault();
    const wanted = filtersOf(link.getAttribute("href"));
    if (wanted.node.length) {
      const [host] = wanted.node;
      const others = now.node.filter((name) => name !== host);
      go({ ...now, node: others.length < now.node.length ? others : [...others, host] });
      return;
    }
    go({ ...filtersOf(""), ...wanted, q: now.q, node: now.node });
    document.getElementById("nodes").scrollIntoView();
  });

  // A person who types sees each letter at once, and the list in the next frame.
  let waiting = 0;
  form.addEventListener("input", () => {
    cancelAnimationFrame(waiting);
    waiting = requestAnimationFrame(() => {
      const wanted = { ...now };
      for (const name of FILTERS) wanted[name] = form.elements[name].value;
      go(wanted);
    });
  });
  form.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("reset", (event) => {
    event.preventDefault();
    for (const name of FILTERS) form.elements[name].value = "";
    form.elements.q.focus();
    go({ ...filtersOf(""), node: now.node });
  });
  document.addEventListener("keydown", (event) => {
    const isTyping = event.target.matches && event.target.matches("input, select");
    if (event.key === "/" && !isTyping && !event.ctrlKey && !event.metaKey) {
      event.preventDefault();
      form.elements.q.focus();
    }
  });

  function follow() {
    // The link that skips to the nodes changes nothing of what is shown.
    if (location.hash && !location.hash.includes("=")) return;
    const filters = filtersOf(location.hash);
    show(filters);
    const row = rows[rowOf.get(filters.node[filters.node.length - 1])];
    if (row) {
      row.scrollIntoView();
      row.firstElementChild.focus({ preventScroll: true });
    } else if (location.hash) {
      document.getElementById("nodes").scrollIntoView();
    }
  }

  window.addEventListener("hashchange", follow);
  form.hidden = false;
  // Without a script the links lead to rows; with it they open them.
  for (const row of rows) row.firstElementChild.setAttribute("aria-expanded", "false");
  show(now);
  follow();
})();

// Copyright (c) 2026, the kubenode.cpu_manager developers
// GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
// SPDX-License-Identifier: GPL-3.0-or-later
//
// Explains a line of a kubelet's log on the page of errors, as plugins/plugin_utils/refusals.py does, with the same table.
"use strict";

const MOST_READ = 65536;
const MOST_FOUND = 10;
const HEAD = /^[A-Z][a-z]{2} [ \d]\d [\d:]{8} \S{1,255} [^\s:]{1,255}: /gm;
const ESCAPE = /\\+(u00[0-9a-fA-F]{2}|[nrt]|)/g;
const VALUE = 0, TEXT = 1, REASON = 2;

function plain(message) {
  const unescaped = (_all, escape) => escape.startsWith("u00")
    ? String.fromCharCode(parseInt(escape.slice(1), 16)) : escape ? " " : "";
  return message.replace(HEAD, "").replace(ESCAPE, unescaped).split(/\s+/).filter(Boolean).join(" ");
}

function spanOf(said, parts) {
  let begin = -1, end = 0;
  for (const part of parts) {
    const found = said.indexOf(part, end);
    if (found < 0) return null;
    if (begin < 0) begin = found;
    end = found + part.length;
  }
  return { begin, end };
}

// How well a row of the table fits, by the form of most letters; null where it does not.
function matched(said, row, number) {
  const found = row.forms.map(({ text, parts }) => {
    const span = spanOf(said, parts);
    return span && { ...span, letters: (parts.join("").match(/\p{L}/gu) || []).length, text };
  }).filter(Boolean);
  if (!found.length) return null;
  found.sort((one, two) => two.letters - one.letters || one.begin - two.begin || one.end - two.end);
  const preference = row.within.some((part) => said.includes(part)) ? REASON : row.is_value ? VALUE : TEXT;
  return { ...found[0], preference, number };
}

function explain(message, table) {
  const said = plain(message.slice(0, MOST_READ));
  const matches = table.map((row, number) => matched(said, row, number)).filter(Boolean);
  matches.sort((one, two) => two.preference - one.preference || two.letters - one.letters || one.begin - two.begin
    || one.end - two.end || one.number - two.number);
  const kept = [];
  for (const match of matches) {
    if (match.preference === VALUE && kept.length && kept[0].preference !== VALUE) break;
    const isWithin = (better) => (match.letters !== better.letters || match.begin !== better.begin
      || match.end !== better.end) && match.begin < better.end && better.begin < match.end;
    if (!kept.some(isWithin)) kept.push(match);
  }
  return kept.slice(0, MOST_FOUND).map((match) => ({ ...table[match.number], text: match.text }));
}

function element(name, text, ...children) {
  const made = document.createElement(name);
  if (text) made.textContent = text;
  made.append(...children);
  return made;
}

function shown(row) {
  const facts = element("dl");
  const add = (name, value) => facts.append(element("dt", name), element("dd", "", value));
  if (row.cause) add("Cause", row.cause + ".");
  if (row.remedy) add("Remedy", row.remedy + ".");
  if (row.check) {
    const link = element("a", row.check);
    link.href = "checks.html#" + row.check;
    add("Check of the drift report", link);
  }
  return element("li", "", element("code", row.text), facts);
}

function addField() {
  const field = document.createElement("textarea");
  Object.assign(field, { id: "said-by-kubelet", rows: 4, spellcheck: false });
  const label = element("label", "A line of the kubelet's log, as it is:");
  label.htmlFor = field.id;
  const answer = element("div");
  answer.setAttribute("aria-live", "polite");
  field.addEventListener("input", () => {
    if (!field.value.trim()) return answer.replaceChildren();
    const found = explain(field.value, REFUSALS);
    answer.replaceChildren(found.length ? element("ul", "", ...found.map(shown))
      : element("p", "No text of this page is in it."));
  });
  const form = element("div", "", label, field, answer);
  form.className = "explain";
  document.querySelector("article h1").after(form);
}

if (typeof document === "undefined") module.exports = { explain };
else document.addEventListener("DOMContentLoaded", addField);

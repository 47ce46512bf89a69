// Copyright (c) 2026, the kubenode.cpu_manager developers
// GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
// SPDX-License-Identifier: GPL-3.0-or-later
//
// Opens pages of the documentation site in one Chromium and prints what it saw, as JSON.
//
//     node site.js JOB     JOB: {"modules", "chromium", "pictures": folder or null, "pages": {name: address},
//                                "widths": [pixels], "search": address, "words": [text],
//                                "errors": address, "line": text}
"use strict";
const fs = require("node:fs");
const path = require("node:path");

const job = JSON.parse(fs.readFileSync(process.argv[2], "utf-8"));
const { chromium } = require(path.join(job.modules, "playwright-core"));
const AXE = fs.readFileSync(path.join(job.modules, "axe-core", "axe.min.js"), "utf-8");
const QUIET = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
  "--disable-component-update", "--disable-sync"];

// What a person sees of a page: how wide it is, how small its smallest text is, and what axe says.
async function look(page, address) {
  await page.goto(address);
  const seen = await page.evaluate(() => ({
    width: document.documentElement.scrollWidth,
    text: Math.min(...Array.from(document.querySelectorAll("article :is(p, li, td, code, pre)"),
      (element) => parseFloat(getComputedStyle(element).fontSize))),
  }));
  await page.evaluate(AXE);
  const result = await page.evaluate(() => window.axe.run(document, { resultTypes: ["violations"] }));
  seen.violations = result.violations.map(({ id, impact, nodes }) => ({ id, impact, where: nodes[0].html }));
  seen.passed = result.passes.map((rule) => rule.id);
  return seen;
}

async function search(page, words) {
  await page.goto(job.search + "?q=" + encodeURIComponent(words));
  await page.waitForFunction(() => document.querySelector("#search-results > p.search-summary")
    && !document.querySelector("#search-progress:not(:empty)"), undefined, { timeout: 20000 });
  await page.waitForFunction(() => /finished|did not match/.test(document.getElementById("search-results").innerText),
    undefined, { timeout: 20000 });
  return page.evaluate(() => Array.from(document.querySelectorAll("#search-results li a"), (link) => link.href));
}

// What the page of errors answers to a line that is pasted into its field.
async function explain(page) {
  await page.goto(job.errors);
  await page.getByLabel("A line of the kubelet's log").fill(job.line);
  return page.evaluate(() => ({
    texts: Array.from(document.querySelectorAll(".explain li > code"), (element) => element.textContent),
    links: Array.from(document.querySelectorAll(".explain li a"), (element) => element.href),
  }));
}

async function main() {
  const browser = await chromium.launch({ executablePath: job.chromium, args: QUIET });
  const seen = { pages: {}, searches: {}, requests: [], complaints: [] };
  for (const width of job.widths) {
    const context = await browser.newContext({ viewport: { width, height: 900 } });
    const page = await context.newPage();
    page.on("request", (request) => seen.requests.push(request.url()));
    page.on("pageerror", (error) => seen.complaints.push(error.message));
    for (const [name, address] of Object.entries(job.pages)) {
      seen.pages[name + " " + width] = await look(page, address);
      if (job.pictures) await page.screenshot({ path: path.join(job.pictures, name + "-" + width + ".png") });
    }
    await context.close();
  }
  const page = await browser.newPage();
  for (const words of job.words) seen.searches[words] = await search(page, words);
  seen.explained = await explain(page);
  await browser.close();
  process.stdout.write(JSON.stringify(seen));
}

main();

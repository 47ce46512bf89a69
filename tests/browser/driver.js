// Copyright (c) 2026, the kubenode.cpu_manager developers
// GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
// SPDX-License-Identifier: GPL-3.0-or-later
//
// Opens pages of reports in one Chromium and prints what it saw, as JSON: {scenario: what it saw, or {"error"}}.
//
//     node driver.js JOB     JOB: {"modules", "chromium", "pictures": folder or null, "pages": {name: path}}
"use strict";
const fs = require("node:fs");
const path = require("node:path");
const { pathToFileURL } = require("node:url");

const job = JSON.parse(fs.readFileSync(process.argv[2], "utf-8"));
const { chromium } = require(path.join(job.modules, "playwright-core"));
const AXE = fs.readFileSync(path.join(job.modules, "axe-core", "axe.min.js"), "utf-8");
const QUIET = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
  "--disable-component-update", "--disable-sync"];
const url = (name, hash = "") => pathToFileURL(job.pages[name]).href + hash;

// A page with what it loaded and complained about; a scenario gets it and returns plain data.
async function withPage(browser, options, work) {
  const context = await browser.newContext({ viewport: { width: 1280, height: 1000 }, ...options });
  context.setDefaultTimeout(10000);
  const page = await context.newPage();
  const seen = { requests: [], complaints: [] };
  page.on("request", (request) => seen.requests.push(request.url()));
  page.on("console", (message) => message.type() === "error" && seen.complaints.push(message.text()));
  page.on("pageerror", (error) => seen.complaints.push(error.message));
  try {
    return await work(page, seen);
  } finally {
    await context.close();
  }
}

async function picture(page, name) {
  if (job.pictures) await page.screenshot({ path: path.join(job.pictures, name + ".png") });
}

const visible = (page) => page.evaluate(() =>
  Array.from(document.querySelectorAll("#nodes .node")).filter((row) => row.checkVisibility())
    .map((row) => row.firstElementChild.textContent));
const count = (page) => page.locator("#count").textContent();
const hash = (page) => page.evaluate(() => location.hash);

// --- speed --------------------------------------------------------------------------------------------

// The time from a person's letter until the second frame after it, so that the first one is painted.
async function timeSearch(page, words) {
  return page.evaluate(async (query) => {
    const frame = () => new Promise((done) => { requestAnimationFrame(done); });
    const field = document.querySelector("#tools [name=q]");
    await frame();
    const start = performance.now();
    field.value = query;
    field.dispatchEvent(new Event("input", { bubbles: true }));
    await frame();
    await frame();
    return { query, milliseconds: performance.now() - start, count: document.getElementById("count").textContent };
  }, words);
}

async function speed(browser, name, searches) {
  return withPage(browser, {}, async (page) => {
    // The best of three: something else on this machine can take the processor.
    const times = { painted: Infinity, ready: Infinity };
    for (let attempt = 0; attempt < 3; attempt += 1) {
      await page.goto(url(name), { waitUntil: "load" });
      await page.waitForFunction(() => performance.getEntriesByName("first-contentful-paint").length);
      const seen = await page.evaluate(() => ({
        painted: performance.getEntriesByName("first-contentful-paint")[0].startTime,
        ready: performance.getEntriesByType("navigation")[0].domContentLoadedEventEnd,
      }));
      for (const key of Object.keys(times)) times[key] = Math.min(times[key], seen[key]);
    }
    const found = [];
    for (const words of searches) found.push(await timeSearch(page, words));
    const start = Date.now();
    await page.goto(url(name, "#node=" + encodeURIComponent(job.last)));
    await page.reload();
    await page.locator(".node.open .detail").waitFor();
    return { ...times, searches: found, linked: Date.now() - start };
  });
}

// --- what a person does -------------------------------------------------------------------------------

async function use(browser) {
  return withPage(browser, {}, async (page, seen) => {
    const did = { seen };
    await page.goto(url("small"));
    await picture(page, "light");
    did.start = await count(page);
    await page.keyboard.press("Tab");
    did.first_stop = await page.evaluate(() => document.activeElement.textContent);
    await page.keyboard.press("Enter");
    await page.keyboard.press("/");
    did.slash = await page.evaluate(() => document.activeElement.name);
    await page.keyboard.type("WOULD-NOT-START fra1");
    await page.waitForFunction(() => document.getElementById("count").textContent.includes(" of "));
    did.typed = { count: await count(page), nodes: await visible(page), hash: await hash(page) };
    await page.locator(".skip").focus();
    await page.keyboard.press("Enter");
    did.skipped = { count: await count(page), focus: await page.evaluate(() => document.activeElement.id) };
    await page.locator("#reset").click();
    did.reset = { count: await count(page), hash: await hash(page) };

    await page.locator(".checks td.number a").first().click();
    did.check = { count: await count(page), nodes: await visible(page), hash: await hash(page) };
    const link = page.locator(".rows .node:not([hidden]) > a").first();
    did.opened = await link.textContent();
    did.before = await link.getAttribute("aria-expanded");
    await link.focus();
    await page.keyboard.press("Enter");
    did.after = await link.getAttribute("aria-expanded");
    await page.reload();
    did.reloaded = { hash: await hash(page), count: await count(page), nodes: await visible(page),
      open: await page.locator(".node.open > a").allTextContents(),
      focus: await page.evaluate(() => document.activeElement.textContent) };
    did.detail = await page.locator(".node.open .detail").innerText();
    did.cells_before = await page.locator(".cpu").count();
    await page.locator(".cpus > summary").click();
    await page.locator(".map").waitFor();
    did.titles = await page.evaluate(() => Array.from(document.querySelectorAll(".map .cpu"), (cell) => cell.title));
    await picture(page, "open");
    await page.emulateMedia({ media: "print" });
    did.printed = { nodes: await visible(page), tools: await page.locator("#tools").isVisible() };
    await page.emulateMedia({ media: "screen" });
    await page.locator(".node.open > a").click();
    did.closed = await hash(page);

    const filters = { state: "refused", severity: "note", group: "3", findings: "waived" };
    did.filters = {};
    for (const [name, value] of Object.entries(filters)) {
      await page.goto(url("small", "#" + name + "=" + value));
      did.filters[name] = { nodes: await visible(page), field: await page.locator("[name=" + name + "]").inputValue() };
    }
    await page.locator(".tile.unread a").first().click();
    did.unread = { nodes: await visible(page), hash: await hash(page) };
    return did;
  });
}

async function withoutScript(browser) {
  return withPage(browser, { javaScriptEnabled: false }, async (page) => {
    await page.goto(url("small"));
    return { text: await page.locator("main").innerText(), rows: await page.locator(".rows > .node").allTextContents(),
      tools: await page.locator("#tools").isVisible() };
  });
}

async function accessibility(browser, colorScheme, options = {}) {
  return withPage(browser, { colorScheme, ...options }, async (page) => {
    await page.goto(url("small", "#node=" + encodeURIComponent(job.refused)));
    await page.locator(".cpus > summary").click();
    await page.locator(".checks summary").first().click();
    await picture(page, "open-" + colorScheme + (options.viewport ? "-narrow" : ""));
    const odd = await page.locator(".ways td.odd").allTextContents();
    await page.evaluate(AXE);
    // What is far from the screen is looked at, too.
    await page.evaluate(() => {
      const [style] = document.styleSheets;
      style.insertRule(".group, .rows, .names { content-visibility: visible !important }", style.cssRules.length);
    });
    const result = await page.evaluate(() => window.axe.run(document, { resultTypes: ["violations"] }));
    const violations = result.violations.map(({ id, impact, nodes }) => ({ id, impact, where: nodes[0].html }));
    return { host: job.refused, odd, violations, passed: result.passes.map((rule) => rule.id) };
  });
}

// --- where things are ---------------------------------------------------------------------------------

// With all rows open. What a node was looked at for is a table that may be wider than the screen, and scrolls.
async function geometry(browser, width, pageName) {
  return withPage(browser, { viewport: { width, height: 1000 } }, async (page) => {
    await page.goto(url(pageName));
    await page.evaluate(() => {
      const [style] = document.styleSheets;
      style.insertRule(".group, .rows, .names { content-visibility: visible !important }", style.cssRules.length);
      document.querySelectorAll(".calm").forEach((list) => { list.open = true; });
    });
    const lists = await page.evaluate(() => Array.from(document.querySelectorAll(".names"), (list) =>
      Array.from(list.children, (row) => ({ text: row.textContent, width: row.getBoundingClientRect().width,
        height: row.getBoundingClientRect().height, of: list.getBoundingClientRect().width }))).flat());
    await page.evaluate(() => {
      Array.from(document.querySelectorAll(".rows .node > a")).forEach((link) => link.click());
      document.querySelectorAll(".cpus > summary, .checks summary").forEach((summary) => summary.click());
    });
    await page.locator(".uses").first().waitFor();
    await picture(page, "width-" + width);
    return page.evaluate((names) => {
      const broken = new Set();
      const cut = new Set();
      const scrolls = (element) => element.closest(".looks");
      const walker = document.createTreeWalker(document.querySelector("main"), NodeFilter.SHOW_TEXT);
      const range = document.createRange();
      for (let text = walker.nextNode(); text; text = walker.nextNode()) {
        const element = text.parentElement;
        if (!element.checkVisibility() || element.closest(".hidden, pre, option")) continue;
        for (const match of text.data.matchAll(/[A-Za-z_]{2,28}/g)) {
          range.setStart(text, match.index);
          range.setEnd(text, match.index + match[0].length);
          const boxes = Array.from(range.getClientRects());
          if (new Set(boxes.map((box) => Math.round(box.top))).size > 1) broken.add(match[0]);
          if (!scrolls(element) && boxes.some((box) => box.right > innerWidth || box.left < 0)) cut.add(match[0]);
        }
      }
      const table = document.querySelector(".checks");
      const frame = table.parentElement;
      return { names, broken: Array.from(broken), cut: Array.from(cut),
        page: document.documentElement.scrollWidth, heads: Array.from(table.tHead.rows[0].cells, (cell) => cell.innerText),
        checks: [frame.scrollWidth, frame.clientWidth] };
    }, lists);
  });
}

// --- hostile nodes ------------------------------------------------------------------------------------

const FOREIGN = "img, iframe, object, embed, svg:not(.bar), script:not([id=data]), [onload], [onerror], [style]";

async function hostile(page, seen, name) {
  seen.requests.length = 0;
  await page.goto(url(name));
  await page.evaluate(() => {
    Array.from(document.querySelectorAll(".rows .node > a")).slice(0, 5).forEach((link) => link.click());
    document.querySelectorAll(".cpus > summary").forEach((summary) => summary.click());
  });
  await page.waitForTimeout(100); // an image that cannot be loaded says so later
  return page.evaluate(([foreign, requests]) => ({
    requests,
    title: document.title,
    is_owned: document.title === "owned" || document.body.id === "owned",
    open: document.querySelectorAll(".node.open").length,
    foreign: Array.from(document.querySelectorAll(foreign))
      .filter((element) => element !== document.scripts[document.scripts.length - 1])
      .map((element) => element.outerHTML),
    text: document.body.textContent,
  }), [FOREIGN, [...seen.requests]]);
}

// --- all of it ----------------------------------------------------------------------------------------

async function main() {
  const browser = await chromium.launch({ executablePath: job.chromium, args: QUIET });
  const results = {};
  const run = async (name, work) => {
    try {
      results[name] = await work();
    } catch (error) {
      results[name] = { error: String(error.stack) };
    }
  };
  for (const name of job.speed) await run("speed " + name, () => speed(browser, name, job.searches));
  await run("use", () => use(browser));
  await run("without script", () => withoutScript(browser));
  await run("light", () => accessibility(browser, "light"));
  await run("dark", () => accessibility(browser, "dark"));
  await run("narrow", () => accessibility(browser, "light", { viewport: { width: 400, height: 900 } }));
  for (const width of job.widths) await run("width " + width, () => geometry(browser, width, "long texts"));
  await withPage(browser, {}, async (page, seen) => {
    for (const name of Object.keys(job.pages)) {
      if (name.startsWith("hostile")) await run(name, () => hostile(page, seen, name));
    }
  });
  await browser.close();
  process.stdout.write(JSON.stringify(results));
}

main();

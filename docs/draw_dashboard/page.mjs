// Copyright (c) 2026, the kubenode.cpu_manager developers
// GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
// SPDX-License-Identifier: GPL-3.0-or-later
//
// A dashboard as Grafana draws it. window.drawn: {"dashboard", "answers": {id of a panel: [answer to each target]},
// "chosen": {variable: values}, "begin", "end", "step"}, the times in milliseconds.

import {
  EventBusSrv, FieldType, Registry, ThemeContext, ThresholdsMode, applyFieldOverrides, createTheme, dateTime,
  getFieldDisplayValues,
} from "@grafana/data";
import {
  BigValue, BigValueColorMode, BigValueGraphMode, GlobalStyles, InlineLabel, PanelChrome, PanelContextProvider,
  TimeSeries, VizRepeater,
} from "@grafana/ui";
import { createElement as h } from "react";
import { createRoot } from "react-dom/client";

const { dashboard, answers, chosen, begin, end, step } = window.drawn;
const theme = createTheme({ colors: { mode: "light" } });
const timeRange = { from: dateTime(begin), to: dateTime(end), raw: { from: "now-7d", to: "now" } };
// Grafana's measures: of a dashboard's row and column, and between panels.
const ROW = 30;
const GAP = 8;
const COLUMNS = 24;
const WIDTH = document.documentElement.clientWidth - 2 * GAP;

// What the panels of Grafana take where a dashboard does not say it.
const THRESHOLDS = { mode: ThresholdsMode.Absolute, steps: [{ value: -Infinity, color: "green" }, { value: 80, color: "red" }] };
const LINES = { drawStyle: "line", lineWidth: 1, fillOpacity: 0, pointSize: 5, showPoints: "auto", spanNulls: false,
  lineInterpolation: "linear", gradientMode: "none", axisPlacement: "auto", axisBorderShow: false };
const DEFAULTS = {
  stat: { color: { mode: "thresholds" }, thresholds: THRESHOLDS },
  timeseries: { color: { mode: "palette-classic" }, thresholds: THRESHOLDS, custom: LINES },
};

// Which settings of a dashboard there are; Grafana has them with its editors.
const setting = (path, isCustom) => ({ id: (isCustom ? "custom." : "") + path, path, isCustom, name: path,
  process: (value) => value, shouldApply: (field) => field.type === FieldType.number });
const SETTINGS = new Registry(() => [
  ...["unit", "min", "max", "decimals", "color", "thresholds", "mappings", "noValue"].map((path) => setting(path, false)),
  ...Object.keys(LINES).map((path) => setting(path, true)),
]);

// --- data ---------------------------------------------------------------------------------------------

function framesOf(panel) {
  const frames = panel.targets.flatMap((target, place) => answers[panel.id][place].map((series) => {
    const points = series.values || [series.value];
    const name = target.legendFormat.replace(/\{\{\s*(\w+)\s*\}\}/g, (_all, label) => series.metric[label] || "");
    return {
      refId: target.refId,
      length: points.length,
      fields: [
        { name: "Time", type: FieldType.time, config: { interval: step }, values: points.map((point) => point[0] * 1000) },
        { name: "Value", type: FieldType.number, config: { displayNameFromDS: name }, labels: series.metric,
          values: points.map((point) => Number(point[1])) },
      ],
    };
  }));
  const own = panel.fieldConfig;
  const defaults = { ...DEFAULTS[panel.type], ...own.defaults };
  return applyFieldOverrides({ data: frames, fieldConfig: { ...own, defaults }, fieldConfigRegistry: SETTINGS,
    replaceVariables: (text) => text, theme, timeZone: "utc" });
}

// --- panels -------------------------------------------------------------------------------------------

function Stat({ panel, width, height }) {
  const { textMode = "auto", colorMode = BigValueColorMode.Value, graphMode = BigValueGraphMode.Area,
    reduceOptions = { calcs: ["lastNotNull"], values: false } } = panel.options;
  const frames = framesOf(panel);
  const values = () => getFieldDisplayValues({ fieldConfig: panel.fieldConfig, reduceOptions, data: frames, theme,
    replaceVariables: (text) => text, sparkline: graphMode !== BigValueGraphMode.None, timeZone: "utc" });
  const value = ({ value: shown, width: valueWidth, height: valueHeight, count }) => h(BigValue, {
    value: shown.display, sparkline: shown.sparkline, width: valueWidth, height: valueHeight, count, textMode, colorMode,
    graphMode, theme,
  });
  return h(VizRepeater, { getValues: values, renderValue: value, source: frames, width, height, renderCounter: 0, autoGrid: true,
    orientation: "auto" });
}

function Lines({ panel, width, height }) {
  const { legend = {} } = panel.options;
  return h(TimeSeries, { frames: framesOf(panel), structureRev: 1, width, height, timeRange, timeZone: "utc",
    legend: { displayMode: "list", calcs: [], showLegend: true, ...legend } });
}

const KINDS = { stat: Stat, timeseries: Lines };

function Panel({ panel }) {
  const { x, y, w, h: rows } = panel.gridPos;
  const column = (WIDTH - GAP * (COLUMNS - 1)) / COLUMNS;
  const width = w * column + (w - 1) * GAP;
  const height = rows * ROW + (rows - 1) * GAP;
  const style = { position: "absolute", left: GAP + x * (column + GAP), top: y * (ROW + GAP), width, height };
  if (panel.type === "row") return h("div", { style: { ...style, ...theme.typography.h5, lineHeight: height + "px" } }, panel.title);
  return h("div", { style }, h(PanelChrome, { title: panel.title, width, height },
    (innerWidth, innerHeight) => h(KINDS[panel.type], { panel, width: innerWidth, height: innerHeight })));
}

function Chosen() {
  const names = dashboard.templating.list.map(({ name, label }) => h("div", { key: name, style: { display: "flex" } },
    h(InlineLabel, { width: "auto" }, label), h("div", { style: { lineHeight: "32px", paddingRight: 16 } }, chosen[name].join(" + "))));
  return h("div", { style: { display: "flex", padding: GAP } }, h("div", { style: { ...theme.typography.h4, flex: 1, lineHeight: "32px" } },
    dashboard.title), ...names, h(InlineLabel, { width: "auto" }, "Last 7 days"));
}

function Dashboard() {
  const bottom = Math.max(...dashboard.panels.map(({ gridPos }) => gridPos.y + gridPos.h));
  const context = { eventsScope: "global", eventBus: new EventBusSrv() };
  return h(ThemeContext.Provider, { value: theme }, h(GlobalStyles), h(PanelContextProvider, { value: context }, h(Chosen),
    h("div", { style: { position: "relative", height: bottom * (ROW + GAP) } },
      dashboard.panels.map((panel) => h(Panel, { panel, key: panel.id })))));
}

// The letters of a graph are measured when it is drawn.
const letters = new FontFace("Inter", "url(/public/fonts/inter/Inter-Regular.woff2)");
document.fonts.add(await letters.load());
createRoot(document.getElementById("root")).render(h(Dashboard));

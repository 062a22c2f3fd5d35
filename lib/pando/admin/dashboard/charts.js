// Charts of the samples, drawn by uPlot. Each is a figure with a sentence that says the newest values.

import { html, useEffect, useRef } from "./vendor/preact.js";
import { bytes, clock, moment, number, seconds } from "./words.js";

const HEIGHT = 170;
const CHANGES = ["refork.finished", "reload.finished", "reboot.finished", "monitor.upgraded"];

const CHARTS = [
  {
    title: "Latency", unit: seconds, lines: [
      ["p50", "--series-1", (s, pool) => s.pools[pool]?.p50], ["p95", "--series-2", (s, pool) => s.pools[pool]?.p95],
      ["p99", "--series-3", (s, pool) => s.pools[pool]?.p99],
      ["queue p95", "--series-4", (s, pool) => s.pools[pool]?.queue]]
  },
  {
    title: "Requests per second", unit: number, lines: [
      ["requests", "--series-1", (s, pool) => s.pools[pool]?.requests],
      ["errors (5xx)", "--series-3", (s, pool) => s.pools[pool]?.errors]]
  },
  {
    title: "Workers", unit: number, lines: [
      ["ready", "--series-2", (s, pool) => s.pools[pool]?.workers],
      ["busy", "--series-1", (s, pool) => s.pools[pool]?.busy],
      ["requests in the queue", "--series-4", (s, pool) => s.pools[pool]?.queued]]
  },
  {
    title: "Memory of all processes", unit: bytes, stacked: true, lines: [
      ["shared", "--shared", (s) => s.shared],
      ["private: workers", "--own", (s) => s.private?.worker],
      ["private: mold", "--mold", (s) => s.private?.mold],
      ["private: others", "--other", (s) => others(s.private)]]
  },
  {
    title: "Memory by generation", unit: bytes, stacked: true, lines: ["--series-1", "--series-2", "--series-4"].map((colour, at, all) => {
      const mine = (s, pool) => Object.entries(s.pools[pool]?.memory ?? {}).filter(([number]) => number % all.length === at);
      return ["generation", colour, (s, pool) => mine(s, pool).reduce((sum, [, size]) => sum + size, 0),
        (s, pool) => mine(s, pool).map(([number, size]) => `${number}: ${bytes(size)}`).join(", ") || "–"];
    })
  }
];

// What a line says of a sample, if it says more than its value.
const words = ([, , , text], sample, pool) => (text && sample ? text(sample, pool) : undefined);

const others = (own) =>
  own && Object.entries(own).reduce((sum, [role, size]) => (["worker", "mold"].includes(role) ? sum : sum + size), 0);

export function Charts({ samples, pool, changes }) {
  return html`<div class="charts">${CHARTS.map((chart) => html`
    <${Chart} key=${chart.title} chart=${chart} samples=${samples} pool=${pool} changes=${changes} />`)}</div>`;
}

function Chart({ chart, samples, pool, changes }) {
  const place = useRef(null);
  const drawn = useRef(null);
  const newest = useRef(null); // what a chart that is drawn anew shows, for instance in other colours
  newest.current = { samples, pool, changes };

  useEffect(() => {
    const draw = () => {
      drawn.current?.destroy();
      const data = columns(chart, newest.current.samples, newest.current.pool);
      drawn.current = new uPlot(options(chart, place.current, newest), data, place.current);
    };
    draw();
    const resized = new ResizeObserver(() => drawn.current.setSize({ width: width(place.current), height: HEIGHT }));
    resized.observe(place.current);
    const theme = matchMedia("(prefers-color-scheme: dark)");
    theme.addEventListener("change", draw);
    return () => {
      resized.disconnect();
      theme.removeEventListener("change", draw);
      drawn.current.destroy();
    };
  }, []);
  useEffect(() => {
    drawn.current.setData(columns(chart, samples, pool));
    drawn.current.setLegend({ idx: samples.length - 1 });
  }, [samples, pool, changes]);

  return html`<figure><figcaption>${chart.title}</figcaption>
    <div ref=${place} role="img" aria-label=${spoken(chart, samples, pool)}></div></figure>`;
}

function spoken(chart, samples, pool) {
  const newest = samples.at(-1);
  if (!newest) return `${chart.title}: no values yet`;
  const values = chart.lines.map((line) => `${line[0]} ${words(line, newest, pool) ?? chart.unit(line[2](newest, pool))}`);
  return `${chart.title}, newest values: ${values.join(", ")}`;
}

const width = (element) => Math.max(element.clientWidth, 200);

// The columns of a stacked chart are sums, from the bottom up; uPlot fills each down to the axis, the highest first.
function columns(chart, samples, pool) {
  const values = chart.lines.map(([, , value]) => samples.map((sample) => value(sample, pool) ?? null));
  if (chart.stacked) {
    for (let line = 1; line < values.length; line += 1) {
      values[line] = values[line].map((value, at) => (value ?? 0) + (values[line - 1][at] ?? 0));
    }
    values.reverse();
  }
  return [samples.map((sample) => sample.t), ...values];
}

function options(chart, element, newest) {
  const style = getComputedStyle(element);
  const colour = (name) => style.getPropertyValue(name).trim();
  const axis = { stroke: colour("--text"), grid: { stroke: colour("--line"), width: 1 }, ticks: { show: false } };
  const lines = chart.stacked ? [...chart.lines].reverse() : chart.lines;
  return {
    width: width(element), height: HEIGHT,
    series: [{ label: "time", value: (plot, time) => (time ? moment(time) : "–") }, ...lines.map((line, at) => ({
      label: line[0], stroke: colour(line[1]), width: 1.5, points: { show: false },
      fill: chart.stacked ? colour(line[1]) : undefined,
      value: (plot, value, series, index) => words(line, newest.current.samples[index], newest.current.pool) ??
        chart.unit(chart.stacked ? part(plot, at + 1, index) : value)
    }))],
    axes: [{ ...axis, space: 70, values: (plot, ticks) => ticks.map((tick) => clock(tick).slice(0, 5)) },
      { ...axis, size: 64, values: (plot, ticks) => ticks.map(chart.unit) }],
    scales: { y: { range: (plot, low, high) => [0, high > 0 ? high * 1.1 : 1] } },
    hooks: {
      draw: [(plot) => drawChanges(plot, newest.current.changes, colour("--mark"))],
      setLegend: [(plot) => { if (plot.legend.idx == null) plot.setLegend({ idx: plot.data[0].length - 1 }, false); }]
    },
    cursor: { y: false, points: { size: 6 } }
  };
}

function part(plot, line, index) {
  const [whole, below] = [plot.data[line]?.[index], plot.data[line + 1]?.[index] ?? 0];
  return whole === undefined || whole === null ? null : whole - below;
}

// A dashed line for each refork, reload, reboot and upgrade.
function drawChanges(plot, changes, stroke) {
  const { ctx, bbox } = plot;
  ctx.save();
  ctx.strokeStyle = stroke;
  ctx.setLineDash([4, 4]);
  for (const time of changes) {
    const x = Math.round(plot.valToPos(time, "x", true));
    if (x < bbox.left || x > bbox.left + bbox.width) continue;
    ctx.beginPath();
    ctx.moveTo(x, bbox.top);
    ctx.lineTo(x, bbox.top + bbox.height);
    ctx.stroke();
  }
  ctx.restore();
}

export const isChange = (event) => CHANGES.includes(event.event);

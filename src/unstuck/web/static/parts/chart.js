// Charts over time: uPlot in the colours of the theme, with one cursor for all of them.

import { html, useEffect, useRef } from "../lib/dom.js";
import { count } from "../lib/text.js";
import { ms } from "../lib/time.js";
import { theme } from "../lib/theme.js";
import uPlot from "../vendor/uplot.js";

const HEIGHT = 168;
const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
// Lengths of time that read well, in ms.
const LENGTHS = [1, 2, 5, 10, 20, 50, 100, 200, 500, ...[1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 43200, 86400].map((each) => 1000 * each)];
const clocks = uPlot.sync("overview");

// lines: [{label, tone, values, isArea}]; unit: "ms" or "" for numbers. `at`: seconds since 1970.
export const Chart = ({ label, at, lines, unit = "" }) => {
  const frame = useRef(null);
  const plot = useRef(null);
  const told = unit === "ms" ? (value) => ms(value) : (value) => count(value);
  const data = [at, ...lines.map((line) => line.values)];
  const key = `${lines.map((line) => line.label + line.tone).join()} ${theme.value}`;

  useEffect(() => {
    const width = () => Math.max(120, frame.current?.clientWidth ?? 0);
    const text = colour("dim");
    const axis = { stroke: text, font: "11px system-ui", grid: { stroke: colour("edge"), width: 1 }, ticks: { show: false } };
    plot.current = new uPlot(
      {
        width: width(),
        height: HEIGHT,
        cursor: { sync: { key: clocks.key }, y: false, points: { size: 7 } },
        legend: { live: true },
        scales: { x: { time: true }, y: { range: (_, low, high) => [0, Math.max(high ?? 0, unit === "ms" ? 10 : 4) * 1.1] } },
        axes: [
          { ...axis, space: 70, values: "{HH}:{mm}" },
          { ...axis, size: 52, space: 34, ...(unit === "ms" ? { incrs: LENGTHS } : {}), values: (_, splits) => splits.map(told) },
        ],
        series: [
          { label: "at", value: (_, value) => (value == null ? "" : new Date(value * 1000).toLocaleTimeString("en-GB", { hour: "2-digit", minute: "2-digit" })) },
          ...lines.map((line) => ({
            label: line.label,
            stroke: colour(line.tone),
            fill: line.isArea ? `${colour(line.tone)}33` : undefined,
            width: 2,
            dash: line.isDashed ? [6, 4] : undefined,
            // A line has two ends; what happened in one minute alone is a point.
            points: { size: 6, show: (self, place) => self.data[place].filter((value) => value != null).length === 1 },
            spanGaps: true,
            value: (_, value) => (value == null ? "–" : told(value)),
          })),
        ],
      },
      data,
      frame.current,
    );
    const watch = new ResizeObserver(() => plot.current?.setSize({ width: width(), height: HEIGHT }));
    watch.observe(frame.current);
    return () => {
      watch.disconnect();
      plot.current.destroy();
      plot.current = null;
    };
  }, [key]);

  useEffect(() => plot.current?.setData(data));
  return html`<div class="chart" ref=${frame} role="img" aria-label=${label}></div>`;
};

export const Bars = ({ label, rows }) => {
  const most = Math.max(1, ...rows.map((row) => row.parts.reduce((sum, part) => sum + part.number, 0)));
  return html`<ul class="bars" aria-label=${label}>${rows.map(
    (row) => html`<li key=${row.name}>
      <a href=${row.href} class="bar-name" title=${row.name}>${row.name}</a>
      <span class="bar-track">${row.parts
        .filter((part) => part.number)
        .map((part) => html`<span key=${part.label} class="bar ${part.tone}" style=${{ width: `${(100 * part.number) / most}%` }} title=${`${count(part.number)} ${part.label}`}></span>`)}</span>
      <span class="bar-number">${row.told}</span>
    </li>`,
  )}</ul>`;
};

// Long writes towards a steady state: rate, write amplification and p99 over the bytes written.

import type { ExperimentPoint, Pattern, RoundSummary } from "./api_types";
import { fill, h } from "./dom";
import { distinctColour } from "./paint";
import { Plot, type Plane } from "./plot";
import { link } from "./route";
import { saveCsv } from "./save";
import { bytes, count, duration, linearTicks, logTicks, threeDigits, tickDuration, tickNumber } from "./format";

type Quantity = "ios_per_s" | "write_amplification" | "p99_ns";
interface Line { label: string; tone: string; dash: number[]; width: number; rounds: RoundSummary[]; run: string }

const QUANTITIES: [Quantity, string, string, (value: number) => string][] = [
  ["ios_per_s", "Rate", "I/Os per second", count],
  ["write_amplification", "Write amplification", "write amplification", tickNumber],
  ["p99_ns", "p99", "response time", tickDuration],
];
const DASHES = [[], [7, 4], [2, 3], [7, 3, 2, 3]];

/** Rounds of the runs of a micro-benchmark; null if its runs have none. */
export function rounds(key: string, name: string, title: string, patterns: Pattern[]): HTMLElement | null {
  const runs = patterns.flatMap(({ pattern, points }) => points.filter((of) => of.rounds.some((each) => each.length)).map((of): [string, ExperimentPoint] => [pattern, of]));
  if (!runs.length) return null;
  const lines = runs.flatMap(([pattern, of], i) => of.rounds.map((rounds, repetition): Line => ({
    label: `${pattern} ${of.label}`, tone: distinctColour(i), dash: DASHES[i % DASHES.length]!, width: repetition ? 0.6 : 1.2, rounds, run: of.runs[repetition] ?? of.runs[0]!,
  })));
  const most = Math.max(...lines.flatMap((line) => line.rounds.map((each) => each.written_bytes)));
  const [unit, unitName] = most >= 2 ** 30 ? [2 ** 30, "GiB"] : [2 ** 20, "MiB"];
  const readout = h("p", { class: "readout", "aria-live": "polite" });
  const idle = () => fill(readout, "The thick half of a line decides; thin lines are further repetitions. Click a line to see its run.");
  const figure = ([field, words, label, tick]: (typeof QUANTITIES)[number]): HTMLElement | null => {
    const values = lines.flatMap((line) => line.rounds.map((each) => each[field])).filter((each): each is number => Boolean(each));
    if (!values.length) return null;
    const nearest = (x: number, y: number, plane: Plane): [Line, RoundSummary] | null => {
      const far = (each: RoundSummary) => Math.hypot(plane.x(each.written_bytes / unit) - plane.x(x), plane.y(each[field] || 1e-9) - plane.y(y));
      const every = lines.flatMap((line) => line.rounds.map((each): [Line, RoundSummary] => [line, each]));
      const best = every.reduce((one, other) => (far(other[1]) < far(one[1]) ? other : one));
      return far(best[1]) < 24 ? best : null;
    };
    const plot = new Plot({
      title: `${title}: ${words}`, name: `${name}-${field}`, height: 220,
      x: { range: { low: 0, high: (most / unit) * 1.03 }, label: `written [${unitName}]`, ticks: linearTicks, tick: () => tickNumber },
      y: { range: { low: Math.min(...values) / 1.4, high: Math.max(...values) * 1.4 }, log: true, label, ticks: logTicks, tick: () => tick },
      paint: (pen, plane) => {
        for (const line of lines) {
          const points = line.rounds.filter((each) => each[field]).map((each): [number, number] => [plane.x(each.written_bytes / unit), plane.y(each[field]!)]);
          const half = Math.floor(points.length / 2);
          pen.line(points.slice(0, half + 1), line.tone, line.width, line.dash);
          pen.line(points.slice(half), line.tone, line.width * 2, line.dash);
        }
      },
      at: (x, y, plane) => {
        const found = x === null ? null : nearest(x, y, plane);
        plot.over.style.cursor = found ? "pointer" : "default";
        if (!found) return idle();
        const [{ label }, round] = found;
        const amplification = round.write_amplification === null ? "" : `, write amplification ${threeDigits(round.write_amplification)}`;
        fill(readout, h("b", {}, `${label} after ${bytes(round.written_bytes)}`), `: ${round.ios_per_s === null ? "–" : count(round.ios_per_s)} IOPS${amplification}, p99 ${duration(round.p99_ns)}`);
      },
      clicked: (x, y, plane) => {
        const found = nearest(x, y, plane);
        if (found) location.hash = link("run", [key, found[0].run]);
      },
    });
    return h("article", {}, h("h4", {}, words), plot.node);
  };
  idle();
  const rows = () => lines.flatMap((line) => line.rounds.map((each) => [line.label, line.run, each.written_bytes, each.ios_per_s, each.write_amplification, each.p99_ns]));
  return h("section", { "aria-label": `${title} over the bytes written` },
    h("h4", {}, "Over the bytes written"),
    h("ul", { class: "legend" }, runs.map(([pattern, of], i) => h("li", { vars: { "--hue": distinctColour(i) } }, `${pattern} ${of.label}`))),
    h("div", { class: "multiples thirds" }, QUANTITIES.map(figure)), readout,
    h("span", { class: "buttons" }, "Save ", h("button", { type: "button", onclick: () => saveCsv(`${name}-rounds`, ["experiment", "run", "written_bytes", "ios_per_s", "write_amplification", "p99_ns"], rows()) }, "CSV")));
}

// The last minutes of a served device: IOPS, p99, write amplification and free blocks over time.

import type { ExportNow } from "./api_types";
import { color, fill, h } from "./dom";
import { Plot } from "./plot";
import { saveCsv } from "./save";
import { count, linearTicks, tickDuration, tickNumber } from "./format";

const SPAN_S = 300;
/** The axis is shorter while there are few samples. */
const SHORTEST_SPAN_S = 60;

interface Sample { at: number; written: number; programmed: number | null; values: (number | null)[] }
interface Chart { title: string; label: string; hue: string; tick: (value: number) => string }

const CHARTS: Chart[] = [
  { title: "IOPS", label: "I/Os per second", hue: "rr", tick: count },
  { title: "p99", label: "response time", hue: "rw", tick: tickDuration },
  { title: "Write amplification", label: "write amplification", hue: "sw", tick: tickNumber },
  { title: "Free blocks", label: "erased blocks", hue: "sr", tick: count },
];

export class History {
  readonly node = h("section", { "aria-label": "The last minutes" });
  private readonly samples: Sample[] = [];
  private plots: Plot[] = [];

  constructor(private readonly name: string) {}

  /** Adds the state of an export at a time [s]. */
  add(now: ExportNow, at: number): void {
    if ((this.samples.at(-1)?.at ?? 0) > at) this.samples.length = 0; // the server was started again
    const before = this.samples.at(-1);
    const written = now.bytes_written + now.bytes_zeroed;
    const programmed = now.flash?.programmed_bytes ?? null;
    const host = before ? written - before.written : 0;
    const { recent } = now;
    this.samples.push({ at, written, programmed, values: [
      recent.count / (recent.span_ns / 1e9), recent.p99_ns,
      before && before.programmed !== null && programmed !== null && host > 0 ? (programmed - before.programmed) / host : null,
      now.flash?.free_blocks ?? null] });
    while (this.samples[0]!.at < at - SPAN_S) this.samples.shift();
    for (const plot of this.plots) plot.draw();
  }

  private span(): number {
    const covered = this.samples.length ? this.samples.at(-1)!.at - this.samples[0]!.at : 0;
    return Math.min(Math.max(2 ** Math.ceil(Math.log2(covered / SHORTEST_SPAN_S)) * SHORTEST_SPAN_S, SHORTEST_SPAN_S), SPAN_S);
  }

  /** Makes the charts in a view, which removes them when it is left. */
  mount(): HTMLElement {
    const view = this;
    this.plots = CHARTS.map(({ title, label, hue, tick }, i) => new Plot({
      title: `${title}: ${this.name}`, name: `${this.name}-${title.toLowerCase().replaceAll(" ", "-")}`, height: 190,
      x: { get range() { return { low: -view.span(), high: 0 }; }, label: "time before now [s]", ticks: linearTicks, tick: () => (value) => String(Math.abs(value)) },
      y: { get range() { return { low: 0, high: Math.max(...view.samples.map(({ values }) => values[i] ?? 0), 1e-9) * 1.1 }; }, label, size: 72, ticks: linearTicks, tick: () => tick },
      paint: (pen, plane) => {
        const now = this.samples.at(-1)?.at ?? 0;
        const points = this.samples.map(({ at, values }): [number, number] => [plane.x(at - now), values[i] === null ? NaN : plane.y(values[i]!)]);
        pen.line(points, color(hue), 1.8);
        for (const [x, y] of points) if (Number.isFinite(y)) pen.dot(x, y, 1.6, color(hue));
      },
    }));
    const rows = () => this.samples.map(({ at, values }) => [at - this.samples.at(-1)!.at, ...values]);
    fill(this.node, h("div", { class: "multiples" }, CHARTS.map(({ title }, i) => h("article", {}, h("h3", {}, `${title}, ${this.name}`), this.plots[i]!.node))),
      h("span", { class: "buttons" }, "Save ", h("button", { type: "button", onclick: () => saveCsv(`${this.name}-history`, ["seconds", "iops", "p99_ns", "write_amplification", "free_blocks"], rows()) }, "CSV")));
    return this.node;
  }

  remove(): void {
    for (const plot of this.plots) plot.remove();
    this.plots = [];
  }
}

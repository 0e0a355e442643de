// Distribution of the response times of the visible range: a histogram, and the share of I/Os
// that took no longer.

import type { Picture, Plain } from "./api";
import { color, h } from "./dom";
import { Plot } from "./plot";
import { saveCsv } from "./save";
import { count, duration, linearTicks, powerTicks } from "./format";

export class Spread {
  readonly node: HTMLElement;
  private readonly plot: Plot;
  private counts: number[] = [];
  private first = 0;
  private low = 1;
  private high = 10;

  constructor(private readonly run: Plain) {
    const view = this;
    this.plot = new Plot({
      title: `Response times: ${run.id}`, name: `${run.id}-histogram`, height: 230,
      x: { get range() { return { low: Math.log10(view.low), high: Math.log10(view.high) }; }, label: "response time", ticks: powerTicks, tick: () => (value) => duration(10 ** value) },
      y: { get range() { return { low: 0, high: Math.max(...view.counts, 1) * 1.08 }; }, label: "I/Os", ticks: (low, high, about) => linearTicks(low, high, about), tick: () => count },
      right: { range: { low: 0, high: 1.04 }, label: "share at most this slow", ticks: () => [0, 0.25, 0.5, 0.75, 1], tick: () => (value) => `${Math.round(value * 100)} %` },
      paint: (pen, plane, right) => {
        const edge = (i: number) => plane.x(Math.log10(Math.max(run.edges_ns[this.first + i], 1)));
        this.counts.forEach((n, i) => {
          if (n) pen.rect(edge(i), plane.y(n), Math.max(edge(i + 1) - edge(i) - 1, 1), plane.y(0) - plane.y(n), color("rr"), 0.75);
        });
        const total = this.counts.reduce((sum, n) => sum + n, 0);
        let below = 0;
        const points: [number, number][] = [[edge(0), right!(0)]];
        this.counts.forEach((n, i) => {
          below += n;
          points.push([edge(i + 1), right!(below / total)]);
        });
        if (total) pen.line(points, color("ink"), 1.5);
      },
    });
    this.node = h("details", { class: "panel", open: true, hidden: true }, h("summary", {}, h("h2", {}, "Distribution")), this.plot.node,
      this.plot.saving([["CSV", () => saveCsv(`${run.id}-histogram`, ["from_ns", "to_ns", "count"], this.counts.map((n, i) => [run.edges_ns[this.first + i], run.edges_ns[this.first + i + 1], n]))]]));
  }

  draw(picture: Picture): void {
    const { spread } = picture.at;
    this.node.hidden = !spread;
    if (!spread) return;
    const n = picture.classes ?? 0;
    this.first = picture.first_class ?? 0;
    this.counts = Array.from({ length: n }, () => 0);
    for (let i = 0; i < spread.length; i++) this.counts[i % n]! += spread[i]!;
    this.low = Math.max(this.run.edges_ns[this.first] / 1.1, 0.9);
    this.high = this.run.edges_ns[this.first + n] * 1.1;
    this.plot.draw();
  }

  remove(): void {
    this.plot.remove();
  }
}

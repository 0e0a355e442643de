// Distributions of response times: of the visible range as a histogram, and of several runs on the
// same axes as the share of slower I/Os.

import type { RunView, Spread as Histogram } from "./api_types";
import type { Picture } from "./api";
import { color, h } from "./dom";
import { Plot } from "./plot";
import { saveCsv } from "./save";
import { count, linearTicks, powerTicks, tickDuration } from "./format";

export class Spread {
  readonly node: HTMLElement;
  private readonly plot: Plot;
  private counts: number[] = [];
  private first = 0;
  private low = 1;
  private high = 10;

  constructor(private readonly run: RunView) {
    const view = this;
    this.plot = new Plot({
      title: `Response times: ${run.id}`, name: `${run.id}-histogram`, height: 230,
      x: { get range() { return { low: Math.log10(view.low), high: Math.log10(view.high) }; }, label: "response time", ticks: powerTicks, tick: () => (value) => tickDuration(10 ** value) },
      y: { get range() { return { low: 0, high: Math.max(...view.counts, 1) * 1.08 }; }, label: "I/Os", ticks: (low, high, about) => linearTicks(low, high, about), tick: () => count },
      right: { range: { low: 0, high: 1.04 }, label: "share at most this slow", ticks: () => [0, 0.25, 0.5, 0.75, 1], tick: () => (value) => `${Math.round(value * 100)} %` },
      paint: (pen, plane, right) => {
        const edge = (i: number) => plane.x(Math.log10(Math.max(run.edges_ns[this.first + i]!, 1)));
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
    this.low = Math.max(this.run.edges_ns[this.first]! / 1.1, 0.9);
    this.high = this.run.edges_ns[this.first + n]! * 1.1;
    this.plot.draw();
  }

  remove(): void {
    this.plot.remove();
  }
}

export interface Tail { words: string; hue: string; dash?: number[]; spread: Histogram }

interface Steps { tail: Tail; at: number[]; share: number[] }

/** Shares of slower I/Os at the lower edge of each class; zero at the maximum. */
function steps(tail: Tail): Steps {
  const { counts, edges_ns, longest_ns, count } = tail.spread;
  const [at, share]: [number[], number[]] = [[], []];
  let remaining = count;
  counts.forEach((n: number, i: number) => {
    at.push(edges_ns[i]!);
    share.push(remaining / count);
    remaining -= n;
  });
  return { tail, at: [...at, longest_ns], share: [...share, 0] };
}

export function tails(name: string, runs: Tail[]): HTMLElement | null {
  const all = runs.filter((each) => each.spread.count).map(steps);
  if (!all.length) return null;
  const ends = all.flatMap((each) => [each.at[0]!, each.at.at(-1)!]);
  const [low, high] = [Math.min(...ends) / 1.2, Math.max(...ends) * 1.4];
  const least = Math.min(0.1, ...all.flatMap((each) => each.share).filter((each) => each > 0)) / 1.5;
  const shares = [1, 0.1, 0.01, 1e-3, 1e-4, 1e-5, 1e-6, 1e-7].filter((each) => each >= least);
  const plot = new Plot({
    title: `Share of slower I/Os: ${name}`, name: `${name}-ccdf`, height: 240,
    x: { range: { low: Math.log10(low), high: Math.log10(high) }, label: "response time", ticks: powerTicks, tick: () => (value) => tickDuration(10 ** value) },
    y: { range: { low: least, high: 1.3 }, log: true, label: "share of slower I/Os", ticks: () => shares, tick: () => (value) => (value >= 0.01 ? `${Math.round(value * 100)} %` : `${Number((value * 100).toPrecision(1))} %`) },
    paint: (pen, plane) => {
      for (const { tail, at, share } of all) {
        const points: [number, number][] = at.flatMap((value, i): [number, number][] => {
          const x = plane.x(Math.log10(value));
          const y = plane.y(Math.max(share[i]!, least));
          return i ? [[x, plane.y(share[i - 1]!)], [x, y]] : [[x, y]];
        });
        pen.line(points, tail.hue, 1.8, tail.dash);
      }
    },
  });
  return h("div", {}, h("p", { class: "quiet" }, "Share of I/Os slower than a response time, without the start-up: the further left and down, the better. A step is a class of response times, 6 to 12 % wide; the last one ends at the maximum."), plot.node,
    plot.saving([["CSV", () => saveCsv(`${name}-ccdf`, ["run", "response_time_ns", "share_longer"], all.flatMap((each) => each.at.map((value, i) => [each.tail.words, value, each.share[i]])))]]));
}

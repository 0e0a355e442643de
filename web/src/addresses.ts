// Addresses of the visible I/Os: offset over number, coloured by response time.

import { fetchArrays, type Picture } from "./api";
import { fill, h } from "./dom";
import { RangePanel } from "./panel";
import { HEAT } from "./heat";
import { Plot } from "./plot";
import { bytes, count, duration, linearTicks } from "./format";

const SCALE = HEAT;

export class Addresses extends RangePanel<Picture> {
  private readonly plot: Plot;
  private readonly status = h("p", { class: "quiet" });
  private readonly legend = h("ul", { class: "legend" });
  private least = 1;
  private most = 10;

  constructor(private readonly key: string, private readonly name: string, select: (io: number) => void) {
    super("Addresses");
    const view = this;
    const at = (name: string) => this.data?.at[name] ?? new Float64Array(0);
    this.plot = new Plot({
      title: `Addresses: ${name}`, name: `${name}-addresses`, height: 260,
      x: { get range() { return { low: view.data?.start ?? 0, high: Math.max(view.data?.stop ?? 1, (view.data?.start ?? 0) + 1) }; }, label: "number of the I/O", ticks: linearTicks, tick: () => count },
      y: { get range() { return view.span(); }, label: "offset", size: 76, ticks: (low, high, about) => binaryTicks(low, high, about), tick: () => bytes },
      paint: (pen, plane) => {
        const [numbers, offsets, times] = [at("number"), at("offset_bytes"), at("response_time_ns")];
        // Slow I/Os last, so that they are on top.
        const order = Array.from(numbers.keys()).sort((a, b) => times[a]! - times[b]!);
        for (const i of order) pen.dot(plane.x(numbers[i]!), plane.y(offsets[i]!), 1.6, this.hue(times[i]!));
      },
      clicked: (x, y, plane) => {
        const [numbers, offsets] = [at("number"), at("offset_bytes")];
        let [best, least] = [-1, 12];
        for (let i = 0; i < numbers.length; i++) {
          const far = Math.hypot(plane.x(numbers[i]!) - plane.x(x), plane.y(offsets[i]!) - plane.y(y));
          if (far < least) [best, least] = [i, far];
        }
        if (best >= 0) select(numbers[best]!);
      },
    });
    this.node.append(this.legend, this.plot.node, this.status, this.plot.saving());
  }

  private span(): { low: number; high: number } {
    const offsets = this.data?.at.offset_bytes ?? new Float64Array(0);
    let [low, high] = [Infinity, 0];
    for (const each of offsets) [low, high] = [Math.min(low, each), Math.max(high, each)];
    if (!(high >= low)) return { low: 0, high: 1 };
    const margin = Math.max((high - low) * 0.03, 512);
    return { low: low - margin, high: high + margin };
  }

  private step(ns: number): number {
    const share = Math.log(ns / this.least) / Math.max(Math.log(this.most / this.least), 1e-9);
    return Math.min(Math.max(Math.floor(share * SCALE.length), 0), SCALE.length - 1);
  }

  private hue(ns: number): string {
    return SCALE[this.step(ns)]!;
  }

  protected request(from: number, to: number): Promise<Picture> {
    return fetchArrays("addresses", { key: this.key, run: this.name, from, to });
  }

  protected show(data: Picture): void {
    const times = data.at.response_time_ns ?? new Float64Array(0);
    [this.least, this.most] = [Infinity, 1];
    for (const each of times) [this.least, this.most] = [Math.min(this.least, Math.max(each, 1)), Math.max(this.most, each)];
    const step = (this.most / this.least) ** (1 / SCALE.length);
    fill(this.legend, SCALE.map((each, i) => h("li", { vars: { "--hue": each } }, `from ${duration(this.least * step ** i)}`)));
    const all = data.stop - data.start;
    fill(this.status, times.length < all ? `${count(times.length)} of ${count(all)} I/Os: the slowest, and a sample of the others.` : `All ${count(all)} I/Os.`, data.at.offset_bytes ? "" : " This log has no offsets.");
    this.plot.draw();
  }

  remove(): void {
    this.plot.remove();
  }
}

/** Ticks at multiples of a power of two: sizes that have short names. */
function binaryTicks(low: number, high: number, about: number): number[] {
  const step = 2 ** Math.ceil(Math.log2(Math.max((high - low) / Math.max(about, 1), 1)));
  const ticks: number[] = [];
  for (let at = Math.max(Math.ceil(low / step), 0) * step; at <= high; at += step) ticks.push(at);
  return ticks;
}


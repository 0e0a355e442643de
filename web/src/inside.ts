// The device log of a run: free blocks and write amplification over the visible
// stretch, erases of each block, and valid pages of blocks.

import { ask, type Plain } from "./api";
import { color, fill, h } from "./dom";
import { heat, HEAT } from "./heat";
import type { Axis } from "./paint";
import { Plot, type Range, type Scale } from "./plot";
import { saveCsv } from "./save";
import { count, linearTicks, three, tickOf } from "./words";

export class Inside {
  readonly node: HTMLDetailsElement;
  private readonly body = h("div");
  private readonly plots: Plot[] = [];
  private readonly following: Plot[] = [];
  private found: Plain = null;
  private asked = false;
  private seen: Range = { low: 0, high: 1 };
  private axis: Axis = "number";

  constructor(private readonly key: string, private readonly name: string) {
    this.node = h("details", { class: "panel", open: true }, h("summary", {}, h("h2", {}, "Inside the device")), this.body);
    this.node.addEventListener("toggle", () => void this.tell());
  }

  /** Follows the visible stretch. */
  of(seen: Range, axis: Axis): void {
    [this.seen, this.axis] = [seen, axis];
    void this.tell();
    for (const plot of this.following) plot.draw();
  }

  private async tell(): Promise<void> {
    if (this.asked || !this.node.open) return;
    this.asked = true;
    this.found = await ask("inside", { key: this.key, run: this.name }).catch(() => null);
    if (!this.found) {
      fill(this.body, h("p", { class: "quiet" }, "What was recorded cannot be read; `uflip verify` says why."));
      return;
    }
    const { found } = this;
    fill(this.body,
      h("div", { class: "multiples" },
        this.over("Free blocks", "blocks", [["free blocks of all dies", found.erased_blocks, "sr"]], "Blocks that are erased and can be filled. Where a die has no more than its reserve, it collects first."),
        this.over("Write amplification", "bytes programmed a byte", [["between one sample and the next", found.write_amplification, "rw"]], "Bytes programmed over bytes that the host wrote."),
        this.erases(), found.valid ? this.valid() : null));
    this.of(this.seen, this.axis);
  }

  private places(): number[] {
    return this.axis === "number" ? this.found.ios : this.found.at_ns;
  }

  /** Lines over the same stretch as the response times above. */
  private over(title: string, label: string, lines: [string, (number | null)[], string][], words: string): HTMLElement | null {
    const view = this;
    const known = lines.flatMap(([, values]) => values.filter((value) => value !== null));
    if (!known.length) return null;
    const most = Math.max(...known) || 1;
    const x: Scale = {
      get range() { return view.seen; },
      get label() { return view.axis === "number" ? "number of the I/O" : "since the run began"; },
      ticks: (low, high, about) => linearTicks(low, high, about), tick: (low, high) => tickOf(view.axis, low, high),
    };
    const plot = new Plot({
      title: `${title}: ${this.name}`, name: `${this.name}-${title.toLowerCase().replaceAll(" ", "-")}`, height: 200, x,
      y: { range: { low: 0, high: most * 1.08 }, label, ticks: linearTicks, tick: () => three },
      paint: (pen, plane) => {
        const places = this.places();
        for (const [, values, hue] of lines) pen.line(values.map((value, i) => [plane.x(places[i]!), value === null ? NaN : plane.y(value)]), color(hue), 1.6);
      },
    });
    this.plots.push(plot);
    this.following.push(plot);
    const save = () => saveCsv(`${this.name}-inside`, ["ios", "at_ns", "erased_blocks", "least_erased_blocks", "write_amplification"], this.found.ios.map((ios: number, i: number) => [ios, this.found.at_ns[i], this.found.erased_blocks[i], this.found.least_erased_blocks[i], this.found.write_amplification[i]]));
    return h("article", {}, h("h3", {}, title), h("p", { class: "quiet" }, words), plot.node, plot.saving([["CSV", save]]));
  }

  private erases(): HTMLElement {
    const { found } = this;
    const rows: string[] = found.dies.map((each: Plain) => `${each.channel}/${each.die}`);
    const columns = found.erases[0]?.length ?? 0;
    const place = (i: number) => (i / columns) * found.blocks_per_die;
    const map = heat({
      title: `Erases during ${this.name}`, name: `${this.name}-erases`, rows, values: found.erases, x: { low: 0, high: found.blocks_per_die }, at: place,
      xLabel: "block of the die", yLabel: "channel/die", words: (value) => `${count(value)} erases`,
    });
    this.plots.push(map.plot);
    return h("article", {}, h("h3", {}, "Erases of blocks"), h("p", { class: "quiet" }, `${count(found.erased)} during this run; the most of the blocks of a column.`), map.node);
  }

  private valid(): HTMLElement {
    const counts: number[] = this.found.valid;
    const pages = counts.length - 1;
    const wide = Math.ceil((pages + 1) / 64);
    const bars = Array.from({ length: Math.ceil(counts.length / wide) }, (_, i) => counts.slice(i * wide, (i + 1) * wide).reduce((sum, n) => sum + n, 0));
    const plot = new Plot({
      title: `Valid pages of full blocks after ${this.name}`, name: `${this.name}-valid-pages`, height: 200,
      x: { range: { low: -0.5, high: pages + 0.5 }, label: "valid pages of a block", ticks: (low, high, about) => linearTicks(low, high, about).filter((each) => each >= 0 && Number.isInteger(each)), tick: () => count },
      y: { range: { low: 0, high: Math.max(...bars, 1) * 1.08 }, label: "blocks", ticks: linearTicks, tick: () => count },
      paint: (pen, plane) => bars.forEach((n, i) => {
        const [left, right] = [plane.x(i * wide - 0.5), plane.x((i + 1) * wide - 0.5)];
        if (n) pen.rect(left, plane.y(n), Math.max(right - left - 1, 1), plane.y(0) - plane.y(n), HEAT[2]!);
      }),
    });
    this.plots.push(plot);
    return h("article", {}, h("h3", {}, "Valid pages"), h("p", { class: "quiet" }, "Of full blocks, after the run: the further left a block stands, the less its collection has to copy."), plot.node,
      plot.saving([["CSV", () => saveCsv(`${this.name}-valid-pages`, ["valid_pages", "blocks"], counts.map((n, i) => [i, n]))]]));
  }

  remove(): void {
    for (const plot of this.plots) plot.remove();
  }
}

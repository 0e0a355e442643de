// The device log of a run: free blocks and write amplification over the visible
// range, erases of each block, and valid pages of blocks.

import type { DeviceLogView } from "./api_types";
import { fetchJson } from "./api";
import { color, fill, h } from "./dom";
import { heat, HEAT } from "./heat";
import type { Axis } from "./paint";
import { Plot, type Range, type Scale } from "./plot";
import { saveCsv } from "./save";
import { count, linearTicks, tickNumber, tickOf } from "./format";

export class Inside {
  readonly node: HTMLDetailsElement;
  private readonly body = h("div");
  private readonly plots: Plot[] = [];
  private readonly following: Plot[] = [];
  private data: DeviceLogView | null = null;
  private requested = false;
  private visible: Range = { low: 0, high: 1 };
  private axis: Axis = "number";

  constructor(private readonly key: string, private readonly name: string) {
    this.node = h("details", { class: "panel", open: true }, h("summary", {}, h("h2", {}, "Inside the device")), this.body);
    this.node.addEventListener("toggle", () => void this.load());
  }

  /** Follows the visible range. */
  follow(visible: Range, axis: Axis): void {
    [this.visible, this.axis] = [visible, axis];
    void this.load();
    for (const plot of this.following) plot.draw();
  }

  private async load(): Promise<void> {
    if (this.requested || !this.node.open) return;
    this.requested = true;
    this.data = await fetchJson("inside", { key: this.key, run: this.name }).catch(() => null);
    if (!this.data) {
      fill(this.body, h("p", { class: "quiet" }, "The device log cannot be read; `uflip verify` reports the reason."));
      return;
    }
    const { data } = this;
    fill(this.body,
      h("div", { class: "multiples" },
        this.over("Free blocks", "blocks", [["free blocks of all dies", data.erased_blocks, "sr"]], "Blocks that are erased and can be filled. A die with no more than its reserve collects first."),
        this.over("Write amplification", "write amplification", [["between one sample and the next", data.write_amplification, "rw"]], "Bytes programmed over bytes that the host wrote."),
        this.erases(), data.valid ? this.valid() : null));
    this.follow(this.visible, this.axis);
  }

  private positions(): number[] {
    return this.axis === "number" ? this.data!.ios : this.data!.at_ns;
  }

  /** Lines over the same range as the response times above. */
  private over(title: string, label: string, lines: [string, (number | null)[], string][], words: string): HTMLElement | null {
    const view = this;
    const numbers = lines.flatMap(([, values]) => values.filter((value) => value !== null));
    if (!numbers.length) return null;
    const most = Math.max(...numbers) || 1;
    const x: Scale = {
      get range() { return view.visible; },
      get label() { return view.axis === "number" ? "number of the I/O" : "since the run began"; },
      ticks: (low, high, about) => linearTicks(low, high, about), tick: (low, high) => tickOf(view.axis, low, high),
    };
    const plot = new Plot({
      title: `${title}: ${this.name}`, name: `${this.name}-${title.toLowerCase().replaceAll(" ", "-")}`, height: 200, x,
      y: { range: { low: 0, high: most * 1.08 }, label, ticks: linearTicks, tick: () => tickNumber },
      paint: (pen, plane) => {
        const positions = this.positions();
        for (const [, values, hue] of lines) pen.line(values.map((value, i) => [plane.x(positions[i]!), value === null ? NaN : plane.y(value)]), color(hue), 1.6);
      },
    });
    this.plots.push(plot);
    this.following.push(plot);
    const save = () => saveCsv(`${this.name}-inside`, ["ios", "at_ns", "erased_blocks", "least_erased_blocks", "write_amplification"], this.data!.ios.map((ios: number, i: number) => [ios, this.data!.at_ns[i], this.data!.erased_blocks[i], this.data!.least_erased_blocks[i], this.data!.write_amplification[i]]));
    return h("article", {}, h("h3", {}, title), h("p", { class: "quiet" }, words), plot.node, plot.saving([["CSV", save]]));
  }

  private erases(): HTMLElement {
    const { data } = this;
    const rows: string[] = data!.dies.map((each) => `${each.channel}/${each.die}`);
    const columns = data!.erases[0]?.length ?? 0;
    const firstBlock = (i: number) => (i / columns) * data!.blocks_per_die;
    const map = heat({
      title: `Erases during ${this.name}`, name: `${this.name}-erases`, rows, values: data!.erases, x: { low: 0, high: data!.blocks_per_die }, at: firstBlock,
      xLabel: "block of the die", yLabel: "channel/die", words: (value) => `${count(value)} erase${value === 1 ? "" : "s"}`,
    });
    this.plots.push(map.plot);
    return h("article", {}, h("h3", {}, "Erases of blocks"), h("p", { class: "quiet" }, `${count(data!.erased)} during this run; a column shows its most erased block.`), map.node);
  }

  private valid(): HTMLElement {
    const counts = this.data!.valid!;
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
    return h("article", {}, h("h3", {}, "Valid pages"), h("p", { class: "quiet" }, "Of full blocks, after the run: the further left a block is, the less its collection copies."), plot.node,
      plot.saving([["CSV", () => saveCsv(`${this.name}-valid-pages`, ["valid_pages", "blocks"], counts.map((n, i) => [i, n]))]]));
  }

  remove(): void {
    for (const plot of this.plots) plot.remove();
  }
}

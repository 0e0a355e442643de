// The slowest I/Os of the visible range, and their common traits.

import type { Io, Slowest as SlowIos } from "./api_types";
import { fetchJson, type Picture } from "./api";
import { fill, h, table, type Child } from "./dom";
import { RangePanel } from "./panel";
import { saveCsv } from "./save";
import { bytes, count, duration, modeName, percent, threeDigits } from "./format";

const MAX_AUTO_OPEN_IOS = 2_000_000;

export class Slowest extends RangePanel<SlowIos & { from: number; to: number }> {
  private readonly body = h("div");
  private chosen: number | null = null;

  /** `visit` shows an I/O among its neighbours; the list stays. */
  constructor(private readonly key: string, private readonly name: string, private readonly visit: (io: number) => void) {
    super("Slowest I/Os");
    this.node.append(this.body);
  }

  protected started(picture: Picture): void {
    if (picture.io_count <= MAX_AUTO_OPEN_IOS) this.node.open = true;
  }

  /** An I/O was selected, here or elsewhere: stepping continues from it. */
  choose(io: number): void {
    this.chosen = io;
  }

  step(by: number): void {
    const ios = this.data?.ios ?? [];
    if (!ios.length) return;
    const at = ios.findIndex((io) => io.number === this.chosen);
    this.visit(ios[at < 0 ? (by > 0 ? 0 : ios.length - 1) : (at + by + ios.length) % ios.length]!.number);
  }

  protected async request(from: number, to: number): Promise<SlowIos & { from: number; to: number }> {
    return { ...(await fetchJson("slowest", { key: this.key, run: this.name, from, to })), from, to };
  }

  protected show(data: SlowIos & { from: number; to: number }): void {
    const has = (name: keyof Io) => data.ios.some((io) => io[name] !== undefined);
    const causes = data.ios.some((io) => io.causes.length);
    fill(this.body,
      data.traits.length ? h("div", {}, h("h3", {}, "Common traits of the slow I/Os"),
        h("p", { class: "quiet" }, `The slowest ${count(data.slow)} of ${count(data.count)}, from ${duration(data.least_ns)} on; the most significant first.`),
        table(["", "", "of the slow", "of all", "times as often"], data.traits.map((each): Child[] => [each.name, each.value, percent(each.slow), percent(each.every), `×${threeDigits(each.lift)}`]), "Traits of the slow I/Os", 2))
        : h("p", { class: "quiet" }, "No trait is more frequent among the slow I/Os than among all."),
      h("h3", {}, "Each I/O"),
      table(["I/O", "response time", has("mode") ? "what" : "", has("offset_bytes") ? "offset" : "", "idle before", causes ? "main causes" : ""], data.ios.map((io): Child[] => [
        h("button", { type: "button", class: "link", onclick: () => this.visit(io.number) }, count(io.number)), duration(io.response_time_ns),
        io.mode === undefined ? "" : `${modeName(io.mode)} ${io.io_size_bytes ? bytes(io.io_size_bytes) : ""}`, io.offset_bytes === undefined ? "" : bytes(io.offset_bytes),
        io.idle_before_ns === undefined ? "–" : duration(io.idle_before_ns),
        io.causes.slice(0, 2).map((each) => `${each.words} ${percent(each.ns / io.response_time_ns!)}`).join(", "),
      ]), `The slowest I/Os from ${count(data.from)} to ${count(data.to - 1)}`, 1),
      h("span", { class: "buttons" }, h("button", { type: "button", onclick: () => this.save(data) }, "Save CSV")));
  }

  private save(data: SlowIos): void {
    const words = [...new Set<string>(data.ios.flatMap((io) => io.causes.map((each) => each.name)))];
    saveCsv(`${this.name}-slowest`, ["number", "response_time_ns", "offset_bytes", "io_size_bytes", "submit_ns", ...words], data.ios.map((io) => [
      io.number, io.response_time_ns, io.offset_bytes, io.io_size_bytes, io.submit_ns, ...words.map((name) => io.causes.find((each) => each.name === name)?.ns ?? 0)]));
  }
}

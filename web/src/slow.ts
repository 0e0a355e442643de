// The slowest I/Os of the visible range, and their common traits.

import { fetchJson, type Picture, type Plain } from "./api";
import { fill, h, table, type Child } from "./dom";
import { RangePanel } from "./panel";
import { saveCsv } from "./save";
import { bytes, count, duration, modeName, percent, threeDigits } from "./format";

const MAX_AUTO_OPEN_IOS = 2_000_000;

export class Slowest extends RangePanel<Plain> {
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
    const ios: Plain[] = this.data?.ios ?? [];
    if (!ios.length) return;
    const at = ios.findIndex((io) => io.number === this.chosen);
    this.visit(ios[at < 0 ? (by > 0 ? 0 : ios.length - 1) : (at + by + ios.length) % ios.length].number);
  }

  protected async request(from: number, to: number): Promise<Plain> {
    return { ...(await fetchJson("slowest", { key: this.key, run: this.name, from, to })), from, to };
  }

  protected show(data: Plain): void {
    const has = (name: string) => data.ios.some((io: Plain) => io[name] !== undefined);
    const causes = data.ios.some((io: Plain) => io.causes.length);
    fill(this.body,
      data.traits.length ? h("div", {}, h("h3", {}, "Common traits of the slow I/Os"),
        h("p", { class: "quiet" }, `The slowest ${count(data.slow)} of ${count(data.count)}, from ${duration(data.least_ns)} on; the most significant first.`),
        table(["", "", "of the slow", "of all", "times as often"], data.traits.map((each: Plain): Child[] => [each.name, each.value, percent(each.slow), percent(each.every), `×${threeDigits(each.lift)}`]), "Traits of the slow I/Os", 2))
        : h("p", { class: "quiet" }, "No trait is more frequent among the slow I/Os than among all."),
      h("h3", {}, "Each I/O"),
      table(["I/O", "response time", has("mode") ? "what" : "", has("offset_bytes") ? "offset" : "", "idle before", causes ? "main causes" : ""], data.ios.map((io: Plain): Child[] => [
        h("button", { type: "button", class: "link", onclick: () => this.visit(io.number) }, count(io.number)), duration(io.response_time_ns),
        io.mode === undefined ? "" : `${modeName(io.mode)} ${io.io_size_bytes ? bytes(io.io_size_bytes) : ""}`, io.offset_bytes === undefined ? "" : bytes(io.offset_bytes),
        io.idle_before_ns === undefined ? "–" : duration(io.idle_before_ns),
        io.causes.slice(0, 2).map((each: Plain) => `${each.words} ${percent(each.ns / io.response_time_ns)}`).join(", "),
      ]), `The slowest I/Os from ${count(data.from)} to ${count(data.to - 1)}`, 1),
      h("span", { class: "buttons" }, h("button", { type: "button", onclick: () => this.save(data) }, "Save CSV")));
  }

  private save(data: Plain): void {
    const words = [...new Set<string>(data.ios.flatMap((io: Plain) => io.causes.map((each: Plain) => each.name)))];
    saveCsv(`${this.name}-slowest`, ["number", "response_time_ns", "offset_bytes", "io_size_bytes", "submit_ns", ...words], data.ios.map((io: Plain) => [
      io.number, io.response_time_ns, io.offset_bytes, io.io_size_bytes, io.submit_ns, ...words.map((name) => io.causes.find((each: Plain) => each.name === name)?.ns ?? 0)]));
  }
}

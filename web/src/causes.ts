// Causes of the response times of the visible range: all I/Os beside the slowest hundredth.

import type { CauseMeans, RangeCauses } from "./api_types";
import { fetchJson } from "./api";
import { fill, h } from "./dom";
import { RangePanel } from "./panel";
import { activity } from "./paint";
import { saveCsv } from "./save";
import { count, duration, percent } from "./format";

type Column = "every_ns" | "slow_ns";

export class Causes extends RangePanel<RangeCauses> {
  private readonly body = h("div");

  constructor(private readonly key: string, private readonly name: string) {
    super("Causes");
    this.node.append(this.body);
  }

  protected started(): void {
    this.node.open = true;
  }

  protected request(from: number, to: number): Promise<RangeCauses> {
    return fetchJson("causes", { key: this.key, run: this.name, from, to });
  }

  protected show(data: RangeCauses): void {
    const { causes } = data;
    const sum = (column: Column) => causes.reduce((total, each) => total + each[column], 0);
    const [every, slow] = [sum("every_ns"), sum("slow_ns")];
    const order = [...causes].sort((one, other) => other.slow_ns / slow - one.slow_ns / slow || other.every_ns - one.every_ns);
    const bar = (words: string, total: number, column: Column) => [
      h("span", { class: "what" }, words, h("b", {}, ` ${duration(total)}`)),
      h("span", { class: "stack", "aria-hidden": "true" }, order.filter((each) => each[column] > 0).map((each) =>
        h("span", { title: `${each.words}: ${duration(each[column])}, ${percent(each[column] / total)}`, vars: { "--share": `${(100 * each[column]) / total}%`, "--hue": activity(each.name) } })))];
    const cell = (each: CauseMeans, column: Column, total: number) => [h("td", { class: "n" }, duration(each[column])), h("td", { class: "n" }, percent(each[column] / total))];
    fill(this.body,
      h("div", { class: "stacks" }, bar(`all ${count(data.count)} I/Os${data.sampled ? " of a sample" : ""}, mean`, every, "every_ns"), bar(`slowest ${count(data.slow)}, mean`, slow, "slow_ns")),
      h("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "Causes of all and of slow I/Os" }, h("table", {},
        h("thead", {}, h("tr", {}, h("th", { scope: "col" }, "time spent on"), h("th", { scope: "col", class: "n", colspan: 2 }, "all I/Os"), h("th", { scope: "col", class: "n", colspan: 2 }, "slowest 1 %"))),
        h("tbody", {}, order.map((each) => h("tr", {}, h("th", { scope: "row" }, h("span", { class: "dot", vars: { "--hue": activity(each.name) } }), each.words), cell(each, "every_ns", every), cell(each, "slow_ns", slow)))))),
      h("p", { class: "quiet" }, `Mean time of an I/O of the visible range. The slowest hundredth are those from ${duration(data.least_ns)} on.`,
        data.sampled ? " The range is long: eight parts of it, evenly spaced, are counted." : ""),
      h("span", { class: "buttons" }, "Save ", h("button", { type: "button", onclick: () => saveCsv(`${this.name}-causes`, ["cause", "every_ns", "slow_ns"], causes.map((each) => [each.name, each.every_ns, each.slow_ns])) }, "CSV")));
  }
}

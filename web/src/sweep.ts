// A sweep: varied parameters and measures as parallel coordinates, the Pareto front, and
// all points as a table.

import { fetchJson } from "./api";
import { facts, fill, h } from "./dom";
import { onLeave, updateQuery, type Route } from "./route";
import { Scatter } from "./scatter";
import { Parallel, Scale, valueText, type Axis, type Brush, type Line } from "./parallel";
import { saveCsv } from "./save";
import { count, dateText } from "./format";

const MAX_ROWS = 200;
// The default objectives, if they were measured; the first available response time.
const COSTS = ["spare_bytes", "memory_bytes"];
const RESPONSE_MEASURES = ["p99", "read_p99", "write_p99", "mean", "iops", "write_amplification"];

function objectives(axes: Axis[]): string[] {
  const names = axes.map((axis) => axis.name);
  const gain = RESPONSE_MEASURES.find((name) => names.includes(name));
  return [...COSTS.filter((name) => names.includes(name)), ...(gain ? [gain] : [])];
}

function brushesIn(text: string | undefined): Map<string, Brush> {
  const parts = (text ?? "").split(",").map((each) => /^(\w+):([^~]+)~([^~]+)$/.exec(each)).filter((each) => each !== null);
  return new Map(parts.map(([, name, low, high]) => [name!, { low: Number(low), high: Number(high) }]));
}

/** Shades of the values of an axis, distinct from the page in both colour schemes. */
const SHADES = ["#f2b134", "#ef8a3c", "#e05f4e", "#bf4a7a", "#8f4fa8", "#5a5fc0"];

export async function show(main: HTMLElement, route: Route): Promise<void> {
  const sweep = await fetchJson("sweep", { key: route.parts[0] ?? "" });
  const axes: Axis[] = sweep.axes;
  const lines: Line[] = sweep.rows.map((values, i) => ({ index: sweep.places[i]!, values }));
  const device = new Map<number, string>(sweep.places.map((index, i) => [index, sweep.devices[i]!]));
  const column = new Map(axes.map((axis, i) => [axis.name, i]));
  const measuresIn = (names: string[]) => names.filter((name) => column.has(name) && !axes[column.get(name)!]!.varies);
  const chosen = new Set(measuresIn(route.query.measures === undefined ? objectives(axes) : route.query.measures.split(",")));
  const brushes = brushesIn(route.query.brush);
  for (const name of brushes.keys()) if (!column.has(name)) brushes.delete(name);
  let by = column.has(route.query.colour ?? "") ? route.query.colour! : measuresIn([...chosen]).at(-1) ?? axes[0]?.name ?? "";
  let selected: number | null = route.query.point === undefined ? null : Number(route.query.point);
  let sort = column.has((route.query.sort ?? "").replace("-", "")) ? route.query.sort! : "";
  let only = route.query.front === "1";
  let onFront = new Set<number>();

  const figure = new Parallel(sweep.name, (name, brush) => {
    if (brush) brushes.set(name, brush);
    else brushes.delete(name);
    draw();
  }, select);
  const scatter = new Scatter(sweep.name, select);
  const sides = (["x", "y"] as const).map((side, i) => chooser(column.has(route.query[side] ?? "") ? route.query[side]! : measuresIn([...chosen]).at(-i) ?? axes[i]?.name ?? "", (name) => updateQuery({ [side]: name })));
  onLeave(() => { figure.remove(); scatter.remove(); });
  const status = h("p", { class: "quiet", role: "status" });
  const legend = h("ul", { class: "legend" });
  const limits = h("div", { class: "bar" });
  const card = h("section", { "aria-label": "One point", hidden: true });
  const head = h("tr");
  const body = h("tbody");
  const value = (line: Line, name: string) => line.values[column.get(name)!] ?? null;
  const passes = (line: Line) => [...brushes].every(([name, { low, high }]) => {
    const at = value(line, name);
    return at !== null && at >= low && at <= high;
  });
  const isKept = (line: Line) => passes(line) && (!only || onFront.has(line.index));

  function select(index: number | null): void {
    selected = index;
    draw();
  }

  function hues(): (line: Line) => string {
    const axis = axes[column.get(by)!];
    if (!axis) return () => SHADES[2]!;
    const scale = new Scale(axis, lines.map((line) => value(line, by)));
    const shade = (at: number | null) => (at === null ? SHADES[0]! : SHADES[Math.min(Math.floor(Math.min(Math.max(scale.share(at), 0), 1) * SHADES.length), SHADES.length - 1)]!);
    fill(legend, axis.words ? axis.words.map((word, i) => h("li", { vars: { "--hue": shade(i) } }, word)) : SHADES.map((each, i) => h("li", { vars: { "--hue": each } }, `from ${valueText(axis, scale.at(i / SHADES.length))}`)),
      chosen.size > 1 ? h("li", { class: "stroke" }, "strong, with dots: on the Pareto front") : null);
    return (line) => shade(value(line, by));
  }

  function draw(): void {
    updateQuery({ measures: [...chosen].join(","), brush: [...brushes].map(([name, { low, high }]) => `${name}:${Number(low.toPrecision(6))}~${Number(high.toPrecision(6))}`).join(","), colour: by, sort, point: selected, front: only ? "1" : "" });
    const names = [...chosen];
    onFront = frontOf(names);
    const shown = axes.filter((axis) => axis.varies || chosen.has(axis.name));
    const scaleOf = (axis: Axis) => new Scale(axis, lines.map((line) => value(line, axis.name)));
    const common = { lines, isKept, hue: hues(), selected };
    figure.show({ axes: shown, scales: shown.map(scaleOf), columns: shown.map((axis) => column.get(axis.name)!), front: onFront, brushes, ...common });
    const [x, y] = sides.map((side) => ({ scale: scaleOf(axes[column.get(side.value)!]!), column: column.get(side.value)! }));
    if (x && y && lines.length) scatter.show({ x, y, front: frontOf(sides.map((side) => side.value)), ...common });
    const remaining = lines.filter(isKept);
    fill(status, `${count(remaining.length)} of ${count(lines.length)} points`, names.length > 1 ? `; ${count(onFront.size)} on the front of ${names.join(", ").replaceAll("_", " ")}` : "", remaining.length > MAX_ROWS ? `; the table has the first ${MAX_ROWS}` : "", sweep.complete ? "" : `; ${count(sweep.points - lines.length)} are not measured yet`);
    fill(limits, [...brushes].map(([name, { low, high }]) => h("button", { type: "button", onclick: () => { brushes.delete(name); draw(); } }, `${name.replaceAll("_", " ")}: ${words(name, low, high)} ✕`)));
    drawTable(shown, remaining);
    drawCard();
  }

  /** The points on the front of these measures, among those that pass the limits. */
  function frontOf(names: string[]): Set<number> {
    const objectives = names.map((name) => axes[column.get(name)!]!);
    if (new Set(names).size < 2 || objectives.some((axis) => !axis.better)) return new Set();
    const passing = lines.filter(passes);
    const rows = passing.map((line) => objectives.map((axis) => { const at = value(line, axis.name); return at === null ? null : -axis.better * at; }));
    return new Set(front(rows).map((i) => passing[i]!.index));
  }

  function words(name: string, low: number, high: number): string {
    const axis = axes[column.get(name)!]!;
    if (axis.words) return axis.words.filter((_, i) => i >= low && i <= high).join(", ");
    return `${valueText(axis, low)} to ${valueText(axis, high)}`;
  }

  function drawTable(shown: Axis[], remaining: Line[]): void {
    const down = sort.startsWith("-");
    const name = sort.replace("-", "");
    const rows = [...remaining];
    if (name) rows.sort((a, b) => ((value(a, name) ?? Infinity) - (value(b, name) ?? Infinity)) * (down ? -1 : 1) || a.index - b.index);
    fill(head, h("th", { scope: "col" }, "Point"), shown.map((axis) => h("th", { scope: "col", class: "n", "aria-sort": axis.name === name ? (down ? "descending" : "ascending") : "none" },
      h("button", { type: "button", class: "sort", onclick: () => { sort = sort === axis.name ? `-${axis.name}` : axis.name; draw(); } }, axis.name.replaceAll("_", " "), h("span", { "aria-hidden": "true" }, axis.name === name ? (down ? " ↓" : " ↑") : "")))), h("th", { scope: "col" }, "Front"));
    fill(body, rows.slice(0, MAX_ROWS).map((line) => h("tr", line.index === selected ? { "aria-current": "true" } : {},
      h("th", { scope: "row" }, h("button", { type: "button", class: "link", onclick: () => select(line.index) }, String(line.index))),
      shown.map((axis) => h("td", { class: "n" }, valueText(axis, value(line, axis.name)))), h("td", {}, onFront.has(line.index) ? "yes" : ""))));
  }

  function drawCard(): void {
    const line = lines.find((each) => each.index === selected);
    card.hidden = !line;
    if (!line) return fill(card);
    fill(card, h("div", { class: "card" }, h("div", { class: "bar" }, h("h2", {}, `Point ${line.index}`),
      h("span", { class: "buttons" }, h("a", { href: location.hash }, "Link to it"), h("button", { type: "button", onclick: () => select(null) }, "Close"))),
      facts([...axes.map((axis): [string, string] => [axis.name.replaceAll("_", " "), valueText(axis, value(line, axis.name))]), ["device", h("code", {}, device.get(line.index) ?? "")]])));
  }

  const measures = axes.filter((axis) => !axis.varies);
  fill(main,
    h("nav", { class: "crumbs", "aria-label": "Place" }, h("a", { href: "#/results" }, "Results"), " › ", h("span", { "aria-current": "page" }, sweep.name)),
    h("h1", {}, sweep.name, h("span", { class: "badge" }, "simulated")),
    facts([["device", h("code", {}, sweep.device)], ["pattern", h("code", {}, sweep.pattern)], ["varies", sweep.vary.join(", ")], ["points", count(sweep.points)], ["date (UTC)", dateText(sweep.created_utc)]]),
    lines.length ? null : h("p", { class: "notice" }, "No point is measured yet."),
    h("fieldset", { class: "measures" }, h("legend", {}, "Measures, and the objectives of the front"), measures.map((axis) => {
      const box = h("input", { type: "checkbox", onchange: () => { if (box.checked) chosen.add(axis.name); else chosen.delete(axis.name); draw(); } });
      box.checked = chosen.has(axis.name);
      return h("label", {}, box, " ", axis.name.replaceAll("_", " "));
    })),
    h("div", { class: "bar" },
      h("label", {}, "colour by ", chooser(by, (name) => { by = name; })),
      h("label", {}, fronted(), " only the front"),
      figure.saving([["CSV", () => saveCsv(sweep.name, ["point", ...axes.map((axis) => axis.name), "front"], lines.filter(isKept).map((line) => [line.index, ...axes.map((axis) => (axis.words ? valueText(axis, value(line, axis.name)) : value(line, axis.name))), onFront.has(line.index)]))]])),
    h("p", { class: "quiet" }, "Drag along an axis to keep the lines that pass there, click the axis to release it; click a line for its point."),
    legend, figure.node, limits, status, card,
    h("h2", {}, "Any two"),
    h("div", { class: "bar" }, h("label", {}, "horizontal ", sides[0]!), h("label", {}, "vertical ", sides[1]!)),
    h("p", { class: "quiet" }, "Ringed and joined: no other point is better in one of the two without being worse in the other. Click a point for its numbers."),
    scatter.node,
    h("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "Table of points" }, h("table", {}, h("caption", {}, "Points"), h("thead", {}, head), body)));
  draw();

  function chooser(name: string, chose: (name: string) => void): HTMLSelectElement {
    const node = h("select", { onchange: () => { chose(node.value); draw(); } }, axes.map((axis) => h("option", { value: axis.name, selected: axis.name === name }, axis.name.replaceAll("_", " "))));
    return node;
  }

  function fronted(): HTMLElement {
    const node = h("input", { type: "checkbox", onchange: () => { only = node.checked; draw(); } });
    node.checked = only;
    return node;
  }
}

/** The Pareto front, of points for which no other is at least as good in all objectives and better in
    one: indices of rows; lower is better for every number, and rows with a missing number are excluded. */
function front(rows: (number | null)[][]): number[] {
  const complete = rows.map((row, index) => ({ row: row as number[], index })).filter(({ row }) => row.every((value) => value !== null));
  // In this order no point is beaten by a later one.
  complete.sort((a, b) => {
    const i = a.row.findIndex((value, j) => value !== b.row[j]);
    return i < 0 ? a.index - b.index : a.row[i]! - b.row[i]!;
  });
  const best: typeof complete = [];
  for (const one of complete)
    if (!best.some((other) => other.row.every((value, i) => value <= one.row[i]!) && other.row.some((value, i) => value !== one.row[i]))) best.push(one);
  return best.map(({ index }) => index);
}

// The list of results: sorting, filtering, and comparison of the selected ones.

import type { Failed, Glance, SweepGlance, WarningRow } from "./api_types";
import { fetchJson } from "./api";
import { fill, h, debounce, svg, table, type Child } from "./dom";
import { link, updateQuery, type Route } from "./route";
import { buttons, saveCsv } from "./save";
import { count, dateText, duration, percent } from "./format";

const BATCH = 20;
const MAX_ROWS = 300;

/** A folder, first with the fields of its manifest, then with those of its runs; or an error. */
type Row = Pick<Failed, "key"> & Partial<Omit<Glance, "key">> & Partial<Omit<WarningRow, "key">> & { name: string; error?: Failed["error"]; loaded?: boolean }

/** `sortKey`: the sort key of a row; null without a number. */
interface Column { name: string; title: string; number?: boolean; extra?: boolean; help?: string; sortKey(row: Row): string | number | null; cell(row: Row): Child }

/** Characteristics that are shown without *All columns*: the four baselines. */
const BASELINES = 4;

/** Columns of the list; those that are `extra` are shown on request. */
function columnsOf(names: string[]): Column[] {
  const number = (row: Row, i: number): Child => (row.loaded ? row.cells?.[i] ?? "–" : "…");
  const conditions: Column[] = [
    { name: "scale", title: "Scale", extra: true, sortKey: (row) => row.scale ?? "", cell: (row) => row.scale },
    { name: "state", title: "State", extra: true, sortKey: (row) => row.state ?? "", cell: (row) => row.state },
    { name: "durability", title: "Durability", extra: true, sortKey: (row) => row.durability ?? "", cell: (row) => row.durability },
    { name: "known", title: "Converged", extra: true, number: true, sortKey: (row) => (row.experiments ? row.known! / row.experiments : null),
      cell: (row) => (row.loaded ? (row.experiments ? h("span", { title: `${row.known} of ${row.experiments} means have converged` }, percent(row.known! / row.experiments)) : "–") : "…") },
  ];
  const characteristics = names.map((title, i): Column => ({ name: `c${i}`, title, number: true, extra: i >= BASELINES, sortKey: (row) => row.numbers?.[i] ?? null, cell: (row) => number(row, i) }));
  return [
    { name: "name", title: "Result", sortKey: (row) => row.name, cell: () => null },
    { name: "device", title: "Device", sortKey: (row) => row.device ?? "", cell: (row) => [row.device, " ", row.simulated ? h("span", { class: "badge" }, "simulated") : null] },
    { name: "created_utc", title: "Date (UTC)", sortKey: (row) => row.created_utc ?? "", cell: (row) => h("span", { class: "nowrap" }, dateText(row.created_utc!)) },
    ...characteristics.slice(0, BASELINES),
    { name: "tail", title: "Tail", number: true, help: "Response time of random writes, or of the only pattern, from the median (left) to the maximum (right), logarithmic", sortKey: (row) => longest(row), cell: (row) => (row.loaded ? sparkline(row) : "…") },
    { name: "warnings", title: "Warnings", number: true, sortKey: (row) => row.warnings?.length ?? 0, cell: (row) => h("span", { title: row.warnings!.join(", ") }, row.warnings!.length || "–") },
    ...conditions, ...characteristics.slice(BASELINES),
  ];
}

const PERCENTILES = ["p50", "p90", "p95", "p99", "p99.9", "max"];

function longest(row: Row): number | null {
  return row.tail?.times_ns.at(-1) ?? null;
}

/** The tail of a result as a small line, with its maximum. */
function sparkline(row: Row): Child {
  const points = (row.tail?.times_ns ?? []).map((ns, i): [number, number | null] => [i, ns]).filter((each): each is [number, number] => each[1] !== null && each[1] > 0);
  if (points.length < 2) return "–";
  const [width, height] = [64, 18];
  const logs = points.map(([, ns]) => Math.log10(ns));
  const low = Math.min(...logs);
  const span = Math.max(Math.max(...logs) - low, 1); // at least a decade, so that noise is flat
  const path = points.map(([i], n) => `${((i / (PERCENTILES.length - 1)) * (width - 4) + 2).toFixed(1)},${(height - 2 - ((logs[n]! - low) / span) * (height - 4)).toFixed(1)}`).join(" ");
  const words = `${row.tail!.pattern}: ${points.map(([i, ns]) => `${PERCENTILES[i]} ${duration(ns)}`).join(", ")}`;
  return h("span", { class: "spark", title: words, role: "img", "aria-label": words }, svg("svg", { width, height, viewBox: `0 0 ${width} ${height}` }, svg("polyline", { points: path })), duration(points.at(-1)![1]));
}

/** Order of two rows; rows without a number come last in both directions. */
function order(a: string | number | null, b: string | number | null, sign: number): number {
  if (a === null || b === null) return Number(a === null) - Number(b === null);
  return sign * (a < b ? -1 : a > b ? 1 : 0);
}

export async function show(main: HTMLElement, route: Route): Promise<void> {
  const list = await fetchJson("results");
  const rows = list.results as Row[];
  if (!location.hash && rows.length === 1 && !list.sweeps.length && rows[0]!.run) { // nothing to choose from
    location.replace(link("run", [rows[0]!.key, rows[0]!.run]));
    return;
  }
  const all = columnsOf(list.columns);
  let columns = all.filter((each) => !each.extra);
  const chosen = new Set((route.query.chosen ?? "").split(",").filter(Boolean));
  let sort = route.query.sort ?? "-created_utc";
  let filterText = route.query.filter ?? "";

  /** Columns that a phone has no space for are hidden there. */
  const classOf = (column: Column) => [column.number ? "n" : "", ["device", "created_utc", "c0", "c1", "c2", "warnings"].includes(column.name) ? "spacious" : ""].filter(Boolean).join(" ");
  const more = h("input", { type: "checkbox", onchange: () => {
    updateQuery({ columns: more.checked ? "all" : null });
    showColumns();
  } });
  more.checked = route.query.columns === "all";
  const showColumns = () => {
    columns = more.checked ? all : all.filter((each) => !each.extra);
    drawHead();
    draw();
  };

  const body = h("tbody");
  const head = h("tr");
  const status = h("p", { class: "quiet", role: "status" });
  const compare = h("button", { type: "button", class: "main", onclick: () => (location.hash = link("compare", [[...chosen].join(",")])) });
  const filter = h("input", { type: "search", value: filterText, placeholder: "device, date, state …", oninput: debounce(120, () => {
    filterText = filter.value;
    updateQuery({ filter: filterText });
    draw();
  }) });

  function drawHead(): void {
    fill(head, h("th", { scope: "col" }, h("span", { class: "unseen" }, "Compare")), columns.map((column) => {
      const down = sort === `-${column.name}`;
      const sorted = down || sort === column.name;
      return h("th", { scope: "col", class: classOf(column), title: column.help, "aria-sort": sorted ? (down ? "descending" : "ascending") : "none" },
        h("button", { type: "button", class: "sort", onclick: () => {
          sort = down ? column.name : `-${column.name}`;
          updateQuery({ sort });
          drawHead();
          draw();
        } }, column.title, h("span", { "aria-hidden": "true" }, sorted ? (down ? " ↓" : " ↑") : "")));
    }));
  }

  function matchingRows(): Row[] {
    const terms = filterText.toLowerCase().split(/\s+/).filter(Boolean);
    const column = all.find((each) => each.name === sort.replace("-", "")) ?? all[0]!;
    const sign = sort.startsWith("-") ? -1 : 1;
    const text = (row: Row) => `${row.name} ${row.device ?? ""} ${row.created_utc ?? ""} ${row.scale ?? ""} ${row.state ?? ""} ${row.durability ?? ""} ${row.status ?? ""} ${(row.warnings ?? []).join(" ")}`.toLowerCase();
    return rows
      .filter((row) => terms.every((word) => text(row).includes(word)))
      .sort((one, other) => order(column.sortKey(one), column.sortKey(other), sign) || one.name.localeCompare(other.name));
  }

  function rowOf(row: Row): HTMLElement {
    const about = [row.scale, row.state, row.durability].filter(Boolean).join(", ");
    const unfinished = row.status !== "complete" ? h("span", { class: "badge" }, row.status) : null;
    const name = h("th", { scope: "row" }, h("a", { href: row.run ? link("run", [row.key, row.run]) : link("result", [row.key]) }, row.name), unfinished,
      row.error ? null : h("div", { class: "quiet" }, h("span", { class: "narrow" }, `${row.device}${row.simulated ? " (simulated)" : ""} · `), about, h("span", { class: "narrow" }, row.warnings!.length ? ` · ${row.warnings!.length} ${row.warnings!.length === 1 ? "warning" : "warnings"}` : "")));
    if (row.error) return h("tr", { class: "broken" }, h("td"), h("th", { scope: "row" }, row.name), h("td", { colspan: columns.length - 1 }, [row.error.what, row.error.got, row.error.action].filter(Boolean).join(" · ")));
    const box = h("input", { type: "checkbox", "aria-label": `Compare ${row.name}`, onchange: () => {
      if (box.checked) chosen.add(row.key);
      else chosen.delete(row.key);
      updateQuery({ chosen: [...chosen].join(",") });
      drawChosen();
    } });
    box.checked = chosen.has(row.key);
    return h("tr", {}, h("td", {}, box), name, columns.slice(1).map((column) => h("td", { class: classOf(column) }, column.cell(row))));
  }

  function drawChosen(): void {
    compare.disabled = chosen.size < 2 || chosen.size > 8;
    fill(compare, chosen.size < 2 ? "Select two or more to compare" : `Compare ${chosen.size}`);
  }

  function draw(): void {
    const matching = matchingRows();
    fill(body, matching.slice(0, MAX_ROWS).map(rowOf));
    fill(status, `${matching.length} of ${rows.length} results`, matching.length > MAX_ROWS ? `; the first ${MAX_ROWS} are shown` : "");
  }

  fill(main,
    h("h1", {}, "Results"),
    h("p", { class: "quiet" }, list.roots.length ? "In " : "Published results, the newest first", list.roots.map((each: string) => [h("code", {}, each), " "])),
    sweeps(list.sweeps),
    rows.length || list.sweeps.length ? null : h("p", { class: "notice" }, "No results yet: ", h("code", {}, "uflip run sim:demo --out results/demo"), " makes the first."),
    h("div", { class: "bar" },
      h("label", {}, "Filter ", filter), compare, h("label", {}, more, " all columns"),
      buttons([["CSV", () => saveCsv("results", ["name", "device", "created_utc", "scale", "state", "durability", "status", "known", "experiments", "warnings", ...list.columns], matchingRows().map((row) =>
        [row.name, row.device, row.created_utc, row.scale, row.state, row.durability, row.status, row.known, row.experiments, (row.warnings ?? []).join(" "), ...(row.cells ?? [])]))]])),
    status,
    h("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "Table of results" }, h("table", { class: "results" }, h("thead", {}, head), body)),
    h("p", { class: "quiet" }, "Tail: response time of random writes, or of the only pattern, from the median to the maximum, on a logarithmic scale."),
    h("details", {}, h("summary", {}, "How to read the other columns"), h("p", { class: "quiet" }, "Converged: the share of experiments with a 95 % interval within ±5 % of the mean. ", list.note)));
  showColumns();
  drawChosen();
  void loadRows(main, rows, matchingRows, draw);
}

/** Table of the sweeps. */
function sweeps(list: (SweepGlance | Failed)[]): HTMLElement | null {
  if (!list.length) return null;
  return table(["Sweep", "Device", "Varies", "Points", "Date (UTC)"], list.map((each): Child[] => "error" in each
    ? [each.name ?? "", [each.error.what, each.error.got].filter(Boolean).join(" · "), "", "", ""]
    : [h("a", { href: link("sweep", [each.key]) }, each.name), each.device, each.vary.join(", "), [count(each.points), each.complete ? null : h("span", { class: "badge" }, "not finished")], dateText(each.created_utc)]), "Sweeps", 3);
}

/** Data from runs takes longer than data from manifests: visible rows are requested first. */
async function loadRows(main: HTMLElement, rows: Row[], matchingRows: () => Row[], draw: () => void): Promise<void> {
  const by = new Map(rows.map((row) => [row.key, row]));
  for (;;) {
    const next = matchingRows().filter((row) => !row.loaded && !row.error).slice(0, BATCH);
    const pending = next.length ? next : rows.filter((row) => !row.loaded && !row.error).slice(0, BATCH);
    if (!pending.length || !main.isConnected) return;
    const response = await fetchJson("rows", { keys: pending.map((row) => row.key).join(",") }).catch(() => ({ rows: [] }));
    for (const each of response.rows) Object.assign(by.get(each.key) ?? {}, each, { loaded: true });
    for (const row of pending) row.loaded = true;
    draw();
  }
}

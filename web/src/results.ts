// The list of results: sorting, filtering, and comparison of the selected ones.

import type { Failed, Glance, SweepGlance, WarningRow } from "./api_types";
import { fetchJson } from "./api";
import { fill, h, debounce, table, type Child } from "./dom";
import { link, updateQuery, type Route } from "./route";
import { buttons, saveCsv } from "./save";
import { count, percent, dateText } from "./format";

const BATCH = 20;
const MAX_ROWS = 300;

/** A folder, first with the fields of its manifest, then with those of its runs; or an error. */
type Row = Pick<Failed, "key"> & Partial<Omit<Glance, "key">> & Partial<Omit<WarningRow, "key">> & { name: string; error?: Failed["error"]; loaded?: boolean }

/** `sortKey`: the sort key of a row; null without a number. */
interface Column { name: string; title: string; number?: boolean; sortKey(row: Row): string | number | null }

function columnsOf(names: string[]): Column[] {
  return [
    { name: "name", title: "Result", sortKey: (row) => row.name },
    { name: "device", title: "Device", sortKey: (row) => row.device ?? "" },
    { name: "created_utc", title: "Date (UTC)", sortKey: (row) => row.created_utc ?? "" },
    { name: "scale", title: "Scale", sortKey: (row) => row.scale ?? "" },
    { name: "state", title: "State", sortKey: (row) => row.state ?? "" },
    { name: "durability", title: "Durability", sortKey: (row) => row.durability ?? "" },
    { name: "known", title: "Converged", number: true, sortKey: (row) => (row.experiments ? row.known! / row.experiments : null) },
    { name: "warnings", title: "Warnings", number: true, sortKey: (row) => row.warnings?.length ?? 0 },
    ...names.map((title, i): Column => ({ name: `c${i}`, title, number: true, sortKey: (row) => row.numbers?.[i] ?? null })),
  ];
}

/** Order of two rows; rows without a number come last in both directions. */
function order(a: string | number | null, b: string | number | null, sign: number): number {
  if (a === null || b === null) return Number(a === null) - Number(b === null);
  return sign * (a < b ? -1 : a > b ? 1 : 0);
}

export async function show(main: HTMLElement, route: Route): Promise<void> {
  const list = await fetchJson("results");
  const rows = list.results as Row[];
  const columns = columnsOf(list.columns);
  const chosen = new Set((route.query.chosen ?? "").split(",").filter(Boolean));
  let sort = route.query.sort ?? "-created_utc";
  let filterText = route.query.filter ?? "";

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
      return h("th", { scope: "col", class: column.number ? "n" : "", "aria-sort": sorted ? (down ? "descending" : "ascending") : "none" },
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
    const column = columns.find((each) => each.name === sort.replace("-", "")) ?? columns[0]!;
    const sign = sort.startsWith("-") ? -1 : 1;
    const all = (row: Row) => `${row.name} ${row.device ?? ""} ${row.created_utc ?? ""} ${row.scale ?? ""} ${row.state ?? ""} ${row.durability ?? ""} ${row.status ?? ""} ${(row.warnings ?? []).join(" ")}`.toLowerCase();
    return rows
      .filter((row) => terms.every((word) => all(row).includes(word)))
      .sort((one, other) => order(column.sortKey(one), column.sortKey(other), sign) || one.name.localeCompare(other.name));
  }

  function rowOf(row: Row): HTMLElement {
    const name = h("th", { scope: "row" }, h("a", { href: link("result", [row.key]) }, row.name));
    if (row.error) return h("tr", { class: "broken" }, h("td"), h("th", { scope: "row" }, row.name), h("td", { colspan: columns.length - 1 }, [row.error.what, row.error.got, row.error.action].filter(Boolean).join(" · ")));
    const box = h("input", { type: "checkbox", "aria-label": `Compare ${row.name}`, onchange: () => {
      if (box.checked) chosen.add(row.key);
      else chosen.delete(row.key);
      updateQuery({ chosen: [...chosen].join(",") });
      drawChosen();
    } });
    box.checked = chosen.has(row.key);
    const codes = row.warnings!;
    const unfinished = row.status !== "complete" ? h("span", { class: "badge" }, row.status) : null;
    const converged: Child = row.loaded ? (row.experiments ? h("span", { title: `${row.known} of ${row.experiments} means have converged` }, percent(row.known! / row.experiments)) : "–") : "…";
    return h("tr", {},
      h("td", {}, box), name,
      h("td", {}, row.device, row.simulated ? h("span", { class: "badge" }, "simulated") : null),
      h("td", { class: "nowrap" }, dateText(row.created_utc!), unfinished),
      h("td", {}, row.scale), h("td", {}, row.state), h("td", {}, row.durability),
      h("td", { class: "n" }, converged),
      h("td", { class: "n", title: codes.join(", ") }, codes.length || "–"),
      list.columns.map((_: string, i: number) => h("td", { class: "n" }, row.loaded ? row.cells?.[i] ?? "–" : "…")));
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
      h("label", {}, "Filter ", filter), compare,
      buttons([["CSV", () => saveCsv("results", ["name", "device", "created_utc", "scale", "state", "durability", "status", "known", "experiments", "warnings", ...list.columns], matchingRows().map((row) =>
        [row.name, row.device, row.created_utc, row.scale, row.state, row.durability, row.status, row.known, row.experiments, (row.warnings ?? []).join(" "), ...(row.cells ?? [])]))]])),
    status,
    h("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "Table of results" }, h("table", { class: "results" }, h("thead", {}, head), body)),
    h("p", { class: "quiet" }, "Converged: the share of experiments with a 95 % interval within ±5 % of the mean. ", list.note));
  drawHead();
  drawChosen();
  draw();
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

// The explorer: selects the view of a URL.

import { Failure } from "./api";
import { errorNotice, fill, h } from "./dom";
import { help } from "./keys";
import { leave, read, type Route } from "./route";
import * as compare from "./compare";
import * as inside from "./inside_page";
import * as play from "./play";
import * as result from "./result";
import * as results from "./results";
import * as run from "./run";
import * as served from "./served";
import * as sweep from "./sweep";

type View = (main: HTMLElement, route: Route) => Promise<void>;
const VIEWS: Record<string, View> = { results: results.show, result: result.show, run: run.show, inside: inside.show, compare: compare.show, play: play.show, served: served.show, sweep: sweep.show };

// Views of the server: a results site runs nothing, and has pages of its own around these.
const views = (document.body.dataset.views ?? "").split(" ");
const LINKS: Record<string, [string, string]> = { site: ["../", "Site"], results: ["#/results", "Results"], play: ["#/play", "Play"], served: ["#/served", "Served"] };
const ON_DEMAND = ["play", "served"];

const main = document.getElementById("main")!;
const head = document.getElementById("head")!;
let first = true;

/** The view of a URL, among those that the server supports. */
function viewOf(name: string): View {
  if (Object.hasOwn(VIEWS, name) && (!ON_DEMAND.includes(name) || views.includes(name))) return VIEWS[name]!;
  throw new Failure({
    what: "The explorer has no such view", where: "the address", got: location.hash,
    allowed: `${views.filter((each) => Object.hasOwn(VIEWS, each)).map((each) => `#/${each}`).join(", ")}, and what is opened from there`, action: "open the page from the list",
  });
}

async function showView(): Promise<void> {
  const route = read();
  leave();
  document.body.dataset.busy = "1";
  // A new element: a view that was left while waiting fills an element that is not shown.
  const page = h("div", {}, h("p", { class: "quiet" }, "Loading …"));
  fill(main, page);
  try {
    await viewOf(route.view)(page, route);
  } catch (error) {
    if ((error as Error).name !== "AbortError") fill(page, errorNotice(error));
  }
  if (!page.isConnected) return;
  delete document.body.dataset.busy;
  document.title = `${main.querySelector("h1")?.textContent ?? "uflip"} · uflip explore`;
  if (!first) {
    scrollTo(0, 0);
    main.focus({ preventScroll: true });
  }
  first = false;
}

// Its URL is not a view: it navigates within the current one.
document.querySelector(".skip")?.addEventListener("click", (event) => {
  event.preventDefault();
  main.focus();
});
fill(head, h("a", { class: "brand", href: "#/results" }, "uflip", h("span", {}, " explore")), h("nav", { "aria-label": "Views" }, ...views.map((name) => h("a", { href: LINKS[name]![0] }, LINKS[name]![1]))), help());
addEventListener("hashchange", () => void showView());
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => void showView()); // colours are on canvases
void showView();

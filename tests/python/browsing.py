"""A page of the explorer in a real browser, with its console errors; shared by its tests."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import resources
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

WIDE, PHONE = {"width": 1280, "height": 800}, {"width": 390, "height": 844}
AXE = json.dumps({"resultTypes": ["violations"]})


class Watched:
    """A page, and everything that it complained about or asked of others."""

    def __init__(self, browser: "Browser", **options: Any) -> None:
        self.context = browser.new_context(viewport=options.pop("viewport", WIDE), **options)
        self.page = self.context.new_page()
        self.page.set_default_timeout(15_000)
        self.said: list[str] = []
        self.asked: list[str] = []
        self.page.on("console", lambda message: self.said.append(message.text))
        self.page.on("pageerror", lambda error: self.said.append(str(error)))
        self.page.on("request", lambda request: self.asked.append(request.url))


@contextmanager
def quiet(browser: "Browser", url: str, **options: Any) -> Iterator[Watched]:
    """A page that complains of nothing and asks nobody but the server at `url`."""
    found = Watched(browser, **options)
    yield found
    found.context.close()
    assert found.said == [], "the console is empty"
    kinds = (url, "data:", "blob:", "about:")
    assert [asked for asked in found.asked if not asked.startswith(kinds)] == []


def check_usable(page: "Page", name: str) -> None:
    """Nothing serious stands between a page and somebody who cannot see or point, at any width."""
    page.evaluate((resources.files("axe_playwright_python") / "axe.min.js").read_text("utf-8"))
    report = page.evaluate(f"axe.run(document, {AXE})")
    serious = [
        f"{each['id']}: {[node['html'][:90] for node in each['nodes']][:3]}"
        for each in report["violations"]
        if each["impact"] in ("serious", "critical")
    ]
    assert serious == [], name
    wide = page.evaluate("document.documentElement.scrollWidth")
    assert wide <= page.viewport_size["width"], f"{name} scrolls sideways"  # type: ignore[index]


def check_in_all_looks(page: "Page", name: str) -> None:
    """The same in the light, in the dark, and on a phone."""
    page.emulate_media(color_scheme="dark")
    check_usable(page, f"{name}, dark")
    page.emulate_media(color_scheme="light")
    page.set_viewport_size(PHONE)  # type: ignore[arg-type]
    check_usable(page, f"{name}, phone")
    page.set_viewport_size(WIDE)  # type: ignore[arg-type]

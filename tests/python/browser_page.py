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


class MonitoredPage:
    """A page with its console messages and requested URLs."""

    def __init__(self, browser: "Browser", **options: Any) -> None:
        self.context = browser.new_context(viewport=options.pop("viewport", WIDE), **options)
        self.page = self.context.new_page()
        self.page.set_default_timeout(60_000)
        self.console_messages: list[str] = []
        self.requested_urls: list[str] = []
        self.page.on("console", lambda message: self.console_messages.append(message.text))
        self.page.on("pageerror", lambda error: self.console_messages.append(str(error)))
        self.page.on("request", lambda request: self.requested_urls.append(request.url))


@contextmanager
def monitored_page(browser: "Browser", url: str, **options: Any) -> Iterator[MonitoredPage]:
    """Open a page; check that its console stays empty and it requests only `url`."""
    monitored = MonitoredPage(browser, **options)
    yield monitored
    monitored.context.close()
    assert monitored.console_messages == [], "the console is empty"
    kinds = (url, "data:", "blob:", "about:")
    assert [
        request_url for request_url in monitored.requested_urls if not request_url.startswith(kinds)
    ] == []


def check_usable(page: "Page", name: str) -> None:
    """Check that a page has no serious accessibility violation and does not scroll sideways."""
    page.evaluate((resources.files("axe_playwright_python") / "axe.min.js").read_text("utf-8"))
    report = page.evaluate(f"axe.run(document, {AXE})")
    serious = [
        f"{each['id']}: {[node['html'][:90] for node in each['nodes']][:3]}"
        for each in report["violations"]
        if each["impact"] in ("serious", "critical")
    ]
    assert serious == [], name
    width = page.evaluate("document.documentElement.scrollWidth")
    assert width <= page.viewport_size["width"], f"{name} scrolls sideways"  # type: ignore[index]


def check_in_all_themes(page: "Page", name: str) -> None:
    """Check accessibility in the light and dark themes, and on a phone."""
    page.emulate_media(color_scheme="dark")
    check_usable(page, f"{name}, dark")
    page.emulate_media(color_scheme="light")
    page.set_viewport_size(PHONE)  # type: ignore[arg-type]
    check_usable(page, f"{name}, phone")
    page.set_viewport_size(WIDE)  # type: ignore[arg-type]

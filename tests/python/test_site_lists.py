"""Lists of a site with many results agree with a naive list, on both databases."""

import json
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from command_line import uflip
from forged_results import forge_results
from site_server import SiteServer, postgres, site_server
from sqlalchemy import insert, select
from test_markup import OBEYED, TERMINAL

from uflip.profiles import read_profile
from uflip.results import Results
from uflip.site import browse, figures, pages, publishing
from uflip.site.accounts import new_token
from uflip.site.browse import SORTS, ResultQuery
from uflip.site.examiner import model_of
from uflip.site.site import Site, open_site
from uflip.site.tables import Account, DeviceRecord, ResultRecord, words_of

RESULTS, DEVICES = 400, 12
BASELINES = ("sr_ms", "rr_ms", "sw_ms", "rw_ms")
MODELS = ("Maker", "maker", "Straße", "100%", "a_b", "C:\\x", '"quoted"')


@dataclass
class Filled:
    """A site with results, and the same results as plain rows."""

    site: Site
    rows: list[dict[str, Any]]
    devices: list[dict[str, Any]]

    def naive(self, holds: Callable[[dict[str, Any]], bool]) -> set[str]:
        """Return the ids of published rows that satisfy a predicate."""
        return {row["id"] for row in self.rows if row["published_utc"] and holds(row)}

    def value(self, row: dict[str, Any], sort: str) -> Any:
        """Return the sort key of a row."""
        column = SORTS[sort].column
        table = self.devices[row["device_id"] - 1] if column.class_ is DeviceRecord else row
        return table[column.key]


def fill_tables(site: Site) -> Filled:
    """Write rows like those of submissions; many have equal sort keys."""
    rng = random.Random(5)
    devices = [
        {"slug": f"d-{n}", "kind": rng.choice(["sim", "file"]), "published": 0,
         "model": f"{rng.choice(MODELS)} {n % 3}", "capacity_bytes": (n + 1) << 30}
        for n in range(DEVICES)
    ]  # fmt: skip
    with site.sessions.begin() as session:
        for name in ("alice", "bob"):
            new_token(session, name, "submitter")
        session.execute(insert(DeviceRecord), devices)
    rows = [_row(rng, devices) for _ in range(RESULTS)]
    with site.sessions.begin() as session:
        session.execute(insert(ResultRecord), rows)
        for device in session.scalars(select(DeviceRecord.id)):
            publishing.update_device(session, device)
    return Filled(site, rows, devices)


def _row(rng: random.Random, devices: list[dict[str, Any]]) -> dict[str, Any]:
    day = f"202{rng.randrange(3)}-01-0{rng.randint(1, 9)}T00:00:00Z"
    device = 1 + rng.randrange(DEVICES)
    result, firmware = f"{rng.getrandbits(48):012x}", rng.choice(["", "FW1", "F\u00dcR"])
    # Replays and benchmarks of other things have no baselines, and some lack one. Of some devices
    # there are no others, of some no standard ones.
    lacks = {2: [rng.choice(BASELINES)], 3: BASELINES}.get(device % 4, ())
    lacks = BASELINES if rng.random() < 0.5 else lacks
    scales = ["quick", "replay"] if device % 4 == 1 else ["quick", "standard", "replay"]
    return {
        "id": result, "account_id": rng.choice([1, 2]), "device_id": device, "folder_id": "f",
        "submitted_utc": day, "created_utc": day, "uflip_version": "0",
        "published_utc": day if rng.random() < 0.8 else None, "firmware": firmware,
        "scale": rng.choice(scales),
        "state": rng.choice(["random", "as-is"]),
        "durability": "cached", "status": "complete", "runs": rng.randrange(3),
        "experiments": 1, "known": 1, "warnings": rng.randrange(4), "cells": None, "bytes": 1,
        "device_class": rng.choice(["usb", None]),
        "words": words_of(devices[device - 1]["model"], firmware, result),
    } | {
        name: None if name in lacks else rng.choice([0.1, 0.1 + 0.2, rng.random()])
        for name in BASELINES
    }  # fmt: skip


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def filled_site(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Filled]:
    folder = tmp_path_factory.mktemp("lists") / "site"
    if request.param == "sqlite":
        made = fill_tables(open_site(folder))
        yield made
        made.site.close()
        return
    with postgres() as url:
        made = fill_tables(open_site(folder, url))
        yield made
        made.site.close()


def all_pages(
    site: Site, query: Callable[..., ResultQuery], *, back: bool = False
) -> tuple[list[str], set[tuple[int, bool]]]:
    """Turn all pages, from the first on or back from the last; ids, and counts."""
    ids: list[str] = []
    counted: set[tuple[int, bool]] = set()
    cursor: dict[str, str] = {}
    with site.sessions() as session:
        while True:
            listing = browse.results(session, None, query(**cursor))
            counted.add((listing.at_least, listing.counted))
            page_ids = [row.id for row in listing.page.rows]
            ids = page_ids + ids if back else ids + page_ids
            onward = listing.page.before if back else listing.page.after
            if onward is None:
                return ids, counted
            cursor = {"before" if back else "after": onward}


@pytest.mark.parametrize("sort", SORTS)
@pytest.mark.parametrize("sign", ["", "-"])
def test_pages_are_consecutive_in_every_order(filled_site: Filled, sort: str, sign: str) -> None:
    ids, counted = all_pages(filled_site.site, partial(ResultQuery, sort=sign + sort, per_page=37))
    by_id = {row["id"]: row for row in filled_site.rows}
    assert len(ids) == len(set(ids))
    assert set(ids) == filled_site.naive(lambda row: True)
    assert counted == {(len(ids), True)}
    values = [filled_site.value(by_id[each], sort) for each in ids]
    present = [value for value in values if value is not None]
    # Rows without a value come last, in either order.
    assert values == present + [None] * (len(values) - len(present))
    if sort == "device":  # databases have their own order of texts
        assert len({*present}) == sum(
            a != b for a, b in zip([None, *present], present, strict=False)
        )
    else:
        assert present == sorted(present, reverse=bool(sign))
    for value in {*values}:
        same = [each for each in ids if filled_site.value(by_id[each], sort) == value]
        assert same == sorted(same, reverse=bool(sign)), "equal keys are ordered by id"
    # Back from the end: the same, the other way round.
    with filled_site.site.sessions() as session:
        query = ResultQuery(sort=sign + sort, per_page=500)
        everything = browse.results(session, None, query).page.rows
        last = browse._cursor_text(everything[-1].sort_value, everything[-1].sort_row)
    before, _ = all_pages(
        filled_site.site,
        lambda **cursor: ResultQuery(**{"before": last} | cursor, sort=sign + sort, per_page=23),
        back=True,
    )
    assert before == ids[:-1]


@pytest.mark.parametrize(
    "words",
    ["maker", "MAKER 1", "ak er", "straße", "STRASSE", "100%", "%", "_", "a_b", "c:\\x", '"quot',
     '"', "fw1", "FÜR", "aker 2 fw1", "nothing-has-this", "a", "1", "*", "NOT", "maker OR x", "^m",
     "-", "a-b", "(", "ma ke r"],
)  # fmt: skip
def test_search_matches_all_words(filled_site: Filled, words: str) -> None:
    def holds(row: dict[str, Any]) -> bool:
        model = filled_site.devices[row["device_id"] - 1]["model"]
        texts = [each.casefold() for each in (model, row["firmware"], row["id"])]
        return all(any(w in each for each in texts) for w in words.casefold().split())

    ids, _ = all_pages(filled_site.site, partial(ResultQuery, words, per_page=100))
    assert set(ids) == filled_site.naive(holds)


def test_id_is_found_by_any_part(filled_site: Filled) -> None:
    for row in filled_site.rows[:20]:
        ids, _ = all_pages(filled_site.site, partial(ResultQuery, row["id"][3:9]))
        assert ids == [row["id"]] if row["published_utc"] else ids == []


def test_filters_select_matching_results(filled_site: Filled) -> None:
    for filters, holds in (
        ({"year": "2021"}, lambda row: row["created_utc"][:4] == "2021"),
        ({"capacity": "3GiB..5GiB"}, lambda row: row["device_id"] in (3, 4)),
        ({"capacity": "3GiB"}, lambda row: row["device_id"] == 3),
        ({"capacity": "..3GiB"}, lambda row: row["device_id"] < 3),
        ({"capacity": "11GiB.."}, lambda row: row["device_id"] >= 11),
        ({"class": "usb"}, lambda row: row["device_class"] == "usb"),
        ({"firmware": "FW1", "state": "random"},
         lambda row: (row["firmware"], row["state"]) == ("FW1", "random")),
        ({"device": "d-4", "scale": "quick"},
         lambda row: (row["device_id"], row["scale"]) == (5, "quick")),
    ):  # fmt: skip
        ids, _ = all_pages(
            filled_site.site, partial(ResultQuery, "", tuple(filters.items()), per_page=19)
        )
        assert set(ids) == filled_site.naive(holds), filters


def test_count_stops_at_limit(filled_site: Filled, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(browse, "MAX_COUNTED", 100)
    with filled_site.site.sessions() as session:
        listing = browse.results(session, None, ResultQuery(per_page=10))
        few = browse.results(session, None, ResultQuery(filters=(("device", "d-4"),), per_page=10))
    assert (listing.at_least, listing.counted) == (100, False)
    assert few.at_least == len(filled_site.naive(lambda row: row["device_id"] == 5))
    assert few.counted


def test_device_table_matches_published_results(filled_site: Filled) -> None:
    """Anything may be published, withdrawn and deleted: the table is what a recount gives."""
    rng = random.Random(9)
    remaining = {row["id"]: row for row in filled_site.rows}
    with filled_site.site.sessions.begin() as session:
        alice = session.scalars(select(Account).where(Account.name == "alice")).one()
    for step in range(120):
        name = rng.choice([*remaining])
        with filled_site.site.sessions.begin() as session:
            result = session.get_one(ResultRecord, name)
            if step % 3 == 0:
                publishing.publish(session, alice, result)
                remaining[name]["published_utc"] = "now"
            elif step % 3 == 1:
                publishing.withdraw(session, alice, result)
                remaining[name]["published_utc"] = None
        if step % 3 == 2:
            filled_site.site.intake.delete(name, "alice")
            del remaining[name]
    filled_site.rows[:] = remaining.values()
    expected, ranks = {}, set()
    for number, device in enumerate(filled_site.devices, 1):
        published = [r for r in filled_site.rows if r["device_id"] == number and r["published_utc"]]
        if published:
            some = [r for r in published if any(r[name] is not None for name in BASELINES)]
            whole = [r for r in some if all(r[name] is not None for name in BASELINES)]
            standard = [r for r in whole if r["scale"] == "standard"]
            best = standard or whole or some or published
            newest = max(best, key=lambda r: (r["created_utc"], r["id"]))
            expected[device["slug"]] = (len(published), newest["id"])
            ranks.add((bool(standard), bool(whole), bool(some)))
    assert len(ranks) == 4, "devices of every kind"
    with filled_site.site.sessions() as session:
        listed = [*browse.every_device(session)]
        assert {each.slug: (each.results, each.id) for each in listed} == expected
        assert browse.count_devices(session) == len(expected)
        sizes = [each.capacity_bytes for each in browse.devices(session, "-capacity", "", "").rows]
    assert sizes == sorted(sizes, reverse=True)


def test_device_page_shows_spread_of_equal_conditions(filled_site: Filled) -> None:
    with filled_site.site.sessions() as session:
        device, results = browse.device(session, None, filled_site.devices[3]["slug"])
        spreads = pages._spread(results)
    mine = [r for r in filled_site.rows if r["device_id"] == device.id and r["published_utc"]]
    frame = pd.DataFrame(mine).groupby(["scale", "state", "durability"])
    names = [*BASELINES]
    least, most = frame[names].min(), frame[names].max()
    assert [(each.scale, each.state, each.durability) for each in spreads] == [*frame.groups]
    for each in spreads:
        key = (each.scale, each.state, each.durability)
        assert each.results == len(frame.get_group(key))
        spread = [(least.loc[key, name], most.loc[key, name]) for name in names]
        assert each.cells == [None if pd.isna(low) else (low, high) for low, high in spread]


def test_figures_have_every_device_and_no_blocked_style(filled_site: Filled) -> None:
    """The policy of the pages forbids the attribute `style`."""
    with filled_site.site.sessions() as session:
        listed = browse.devices(session, "device", "", "").rows
        drawn = figures.scatter(listed)
        trends = [figures.trend(browse.device(session, None, each.slug)[1]) for each in listed]
    assert drawn is not None
    points = [each for each in listed if each.sw_ms and each.rw_ms]
    texts = {each.text for each in drawn.elements}
    assert texts >= {each.device for each in points}
    assert texts >= {"simulated" if each.kind == "sim" else "measured" for each in points}
    assert any(trends)
    figures_drawn = [drawn, *filter(None, trends)]
    assert not any("style" in each.attributes for one in figures_drawn for each in one.elements)
    assert figures.scatter(points[:1]) is None


def test_device_without_results_is_removed(filled_site: Filled) -> None:
    of_device = [row["id"] for row in filled_site.rows if row["device_id"] == 2]
    for name in of_device:
        with filled_site.site.sessions() as session:
            assert session.get(DeviceRecord, 2) is not None
        filled_site.site.intake.delete(name, "alice")
    filled_site.rows[:] = [row for row in filled_site.rows if row["device_id"] != 2]
    with filled_site.site.sessions() as session:
        assert session.get(DeviceRecord, 2) is None


# Labels of devices on a site, and the grouping of results by device.


SMALL = "sim:demo?blocks_per_die=64"


def _measure(device: str, out: Path) -> Path:
    outcome = uflip("run", device, "--scale", "quick", "--only", "order", "-q", "--out", out)
    assert outcome.code == 0, outcome.err
    return out


@pytest.fixture(scope="module")
def result_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return _measure(SMALL, tmp_path_factory.mktemp("devices") / "result")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SiteServer]:
    with site_server(tmp_path_factory.mktemp("served") / "site") as site:
        yield site


def _publish(server: SiteServer, folder: Path) -> dict[str, Any]:
    token = server.token("alice")
    outcome = uflip("submit", folder, server.url, "--token", token, "--publish", "--json")
    assert outcome.code == 0, outcome.err
    address = f"/api/v1/results/{json.loads(outcome.out)['id']}"
    result: dict[str, Any] = server.client().get(address).json()
    return result


def _forge(folder: Path, out: Path, **device: object) -> Path:
    """Return the same results with another description of the device."""
    return forge_results(folder, out, lambda content: content["device"].update(device))


def test_differently_configured_devices_are_separate(
    server: SiteServer, result_dir: Path, tmp_path: Path
) -> None:
    plain = _publish(server, result_dir)
    slow = _publish(server, _measure(f"{SMALL}&program_ns=3000000", tmp_path / "slow"))
    same = _publish(server, _measure("sim:demo?program_ns=3ms&blocks_per_die=64&seed=1",
                                        tmp_path / "same"))  # fmt: skip
    assert plain["device"] == "demo?blocks_per_die=64"
    assert slow["device"] == "demo?blocks_per_die=64&program_ns=3000000"
    assert slow["device_slug"] == same["device_slug"] != plain["device_slug"]
    # The page of a result shows the difference, and no spread combines them.
    assert "program_ns=3000000" in server.client().get(f"/results/{slow['id']}").text
    page = server.client().get(f"/devices/{plain['device_slug']}").text
    assert plain["id"] in page
    assert slow["id"] not in page
    assert {each["results"] for each in server.client().get("/api/v1/devices").json()} == {1, 2}


def test_device_is_identified_by_profile_not_name(result_dir: Path, tmp_path: Path) -> None:
    plain = Results.load(_measure("sim:demo", tmp_path / "plain")).manifest.device
    assert model_of(plain) == "demo"
    # The profile of another device under the plain name, or under a name without a profile.
    for url in ("sim:demo", "sim:", "sim:dftl", "sim:demo?program_ns=1", "sim:demo?nothing=1"):
        folder = _forge(result_dir, tmp_path / url.replace("?", "-"), url=url)
        model = model_of(Results.load(folder).manifest.device)
        assert model.startswith("demo, profile "), (url, model)
    path = tmp_path / "own.toml"
    path.write_text(read_profile("demo")[1])
    mine = Results.load(_measure(f"sim:{path}?blocks_per_die=64", tmp_path / "own")).manifest.device
    assert model_of(mine).startswith("own, profile ")


def test_terminal_codes_in_names_are_escaped(
    server: SiteServer, result_dir: Path, tmp_path: Path
) -> None:
    named = {"model": f"drive {TERMINAL} gpj", "firmware": f"1{TERMINAL}2"}
    result = _publish(server, _forge(result_dir, tmp_path / "forged", **named))
    assert result["firmware"] == named["firmware"], "the API returns the original text"
    addresses = ("/", "/devices", f"/devices/{result['device_slug']}", f"/results/{result['id']}")
    for address in addresses:
        response = server.client().get(address)
        assert response.status_code == 200
        assert OBEYED.search(response.text) is None, address
        assert "drive \\x1b[2J" in response.text
        assert "\\u202e" in response.text
    missing = server.client().get("/results/%1b%5b2J%e2%80%ae")
    assert missing.status_code == 404
    assert OBEYED.search(missing.text) is None

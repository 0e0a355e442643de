"""Locations of patterns: made by tools/gen_locations.py of crates/engine/src/location/."""

from typing import Literal, NamedTuple

Location = Literal[
    "sequential",
    "random",
    "ordered",
    "partitioned",
    "zipf",
    "hotcold",
    "zones",
    "super_fast_hash",
]
DRAWN: tuple[str, ...] = (
    "random",
    "zipf",
    "hotcold",
    "zones",
    "super_fast_hash",
)
"""Random locations."""


class LocationParameter(NamedTuple):
    """A parameter of a location: a whole number."""

    name: str
    location: str
    is_signed: bool
    help: str


LOCATION_PARAMETERS = (
    LocationParameter("incr", "ordered", True, "Increment in I/Os, also 0 and negative"),
    LocationParameter("partitions", "partitioned", False, "Partitions of the target"),
    LocationParameter("skew_percent", "zipf", False, "Zipf's θ in hundredths"),
    LocationParameter("hot_space_percent", "hotcold", False, "Share of the target that is hot"),
    LocationParameter("hot_io_percent", "hotcold", False, "Share of the I/Os to the hot area"),
    LocationParameter("zone_ios", "zones", False, "I/Os that fill a zone"),
    LocationParameter("open_zones", "zones", False, "Number of zones written in turn"),
    LocationParameter("zone_capacity_ios", "zones", False, "I/Os after which a zone is full"),
    LocationParameter("random_turns", "zones", False, "1: write pointers of random zones"),
)

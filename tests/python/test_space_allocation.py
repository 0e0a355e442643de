"""Does no run touch what an earlier one wrote sequentially (uFLIP §4.2), by a list of all I/Os?

The model uses no footprint and no allocator: it makes every run of a plan on a device that does
nothing, takes the offsets that the engine really went to, and keeps a list of blocks.
"""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import stored
from hypothesis import given, settings
from hypothesis import strategies as st

from uflip.benchmark import Choices, Plan, make_plan, read_plan, write_plan
from uflip.benchmark.target_spaces import BLOCK, SPACING, SpaceAllocator
from uflip.data.device import DeviceInfo
from uflip.device.opener import open_device
from uflip.errors import UsageError
from uflip.footprint import (
    Extents,
    all_but_written_sequentially,
    merge_extents,
    union,
    written_sequentially,
)
from uflip.spec import Basic, Spec, baseline, basic, mix

KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30
# As sold: "32 GB", "16 GB" and "4 GB" (uFLIP Table 2).
LARGE, MIDDLE, SMALL = 32_002_539_520, 16_106_127_360, 3_900_702_720


def device(capacity: int) -> DeviceInfo:
    return stored.device_info(capacity_bytes=capacity)


def longest(spec: Spec) -> Spec:
    """The pattern at the most I/Os that it may make, without its pauses."""
    no_pause = {"time": None, "pause": None, "burst": None} if isinstance(spec, Basic) else {}
    return spec.but(stop=None, io_count=spec.most_ios, **no_pause)


def blocks_of(spec: Spec, capacity: int) -> tuple[set[int], set[int]]:
    """All blocks that the I/Os of a run hit, and those that its sequential writes hit."""
    with open_device("null", size=capacity) as nothing:
        trace = nothing.run(longest(spec))
    offset, size, mode, component = (
        np.asarray(trace.column(name)).astype(np.int64)
        for name in ("offset_bytes", "io_size_bytes", "mode", "component")
    )
    sequential = np.array([part.location != "random" for part in spec.parts])
    writes = (mode == 1) & sequential[component]
    # No I/O of a plan is longer than four blocks; whatever an I/O hits is within its ends.
    every: set[int] = set()
    written: set[int] = set()
    for which, hit in ((np.ones_like(writes), every), (writes, written)):
        first, last = offset[which] // BLOCK, (offset + size - 1)[which] // BLOCK
        for step in range(int((last - first).max(initial=0)) + 1):
            hit.update(np.unique(np.minimum(first + step, last)).tolist())
    return every, written


def first_violation(plan: Plan) -> str | None:
    """The first run that touches what an earlier one wrote sequentially since the last reset."""
    disturbed: set[int] = set()
    for run in plan.runs:
        if run.reset_before:
            disturbed.clear()
        every, written = blocks_of(run.spec, plan.target_size)
        if not disturbed.isdisjoint(every):
            return run.id
        disturbed |= written
    return None


@pytest.mark.parametrize(
    ("capacity", "scale", "choices", "seed"),
    [
        (LARGE, "standard", Choices(method="paper"), 1),
        (LARGE, "quick", Choices(method="auto", repetitions=2), 2),
        (MIDDLE, "standard", Choices(method="paper", repetitions=1), 3),
        (SMALL, "standard", Choices(method="paper", repetitions=1), 4),
        (SMALL, "quick", Choices(method="auto", repetitions=3), 5),
        (2 * GIB, "standard", Choices(repetitions=1, only=("mix", "order", "locality")), 6),
        (65 * MIB + 512, "quick", Choices(), 7),
        (64 * MIB, "quick", Choices(repetitions=2, io_size=4096), 8),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_run_avoids_sequentially_written_space(
    capacity: int, scale: str, choices: Choices, seed: int
) -> None:
    plan = make_plan(device(capacity), scale, seed, choices)
    assert any(run.spec.writes_sequentially for run in plan.runs)
    assert first_violation(plan) is None


def test_oracle_detects_overlapping_runs() -> None:
    plan = make_plan(device(GIB), "quick", 1, Choices(only=("order", "mix")))
    assert first_violation(plan) is None
    ordered = [n for n, run in enumerate(plan.runs) if run.pattern == "SW"]
    one, other = ordered[1], ordered[3]
    offset = plan.runs[one].spec.target_offset
    moved = replace(plan.runs[other], spec=plan.runs[other].spec.but(target_offset=offset))
    assert first_violation(replace(plan, runs=(*plan.runs[:other], moved))) == moved.id
    # A random pattern over the whole device after the first that disturbed it.
    read = replace(plan.runs[one], id="read", spec=baseline("RR", target_size="1GiB", io_count=999))
    assert first_violation(replace(plan, runs=(*plan.runs[: other + 1], read))) == "read"


def test_state_of_large_device_is_never_reset() -> None:
    """uFLIP §4.2: "for the large flash devices (32 GB) the state is in fact never reset"."""
    paper = make_plan(device(LARGE), "standard", 1, Choices(method="paper"))
    assert (paper.repetitions, paper.resets, paper.fewest_resets) == (3, 0, 0)
    assert paper.why_reset == {}
    # For automatic lengths the plan reserves the maximum; the minimum needs no reset either.
    auto = make_plan(device(LARGE), "standard", 1)
    assert auto.fewest_resets == 0
    assert 0 < auto.resets == len(auto.why_reset) <= 3


def test_each_reset_has_a_reason() -> None:
    plan = make_plan(device(SMALL), "standard", 1, Choices(method="paper"))
    assert plan.resets == len(plan.why_reset) > 0
    assert set(plan.why_reset) == {run.id for run in plan.runs if run.reset_before}
    for why in plan.why_reset.values():
        assert "not yet touched" in why


def test_targets_are_far_apart_when_no_reset_is_needed() -> None:
    assert make_plan(device(2000 * GIB), "standard", 1).block_bytes == SPACING
    assert make_plan(device(LARGE), "standard", 1, Choices(method="paper")).block_bytes == BLOCK


# Footprints


SLOTS = st.integers(min_value=1, max_value=70)


@st.composite
def patterns(draw: st.DrawFn) -> Spec:
    """A basic pattern in a target of a few I/Os, so that most of them come round."""
    io_size = draw(st.sampled_from([512, 4096, 1536]))
    location = draw(st.sampled_from(["sequential", "random", "ordered", "partitioned"]))
    degree = draw(st.integers(1, 4))
    parameters: dict[str, Any] = {"parallel_degree": degree}
    parts = 1
    if location == "ordered":
        parameters["incr"] = draw(st.integers(-9, 9))
    if location == "partitioned":
        parts = parameters["partitions"] = draw(st.integers(1, 7))
    shift = draw(st.integers(0, 3)) * 512
    size = (draw(SLOTS) * parts * io_size + shift + draw(st.integers(0, 3)) * 512) * degree
    return basic(
        draw(st.sampled_from(["read", "write"])),
        location,
        io_size=io_size,
        io_shift=shift,
        target_offset=draw(st.integers(0, 5)) * 512,
        target_size=size + degree * io_size,
        io_count=draw(st.integers(1, 90)),
        **parameters,
    )


@st.composite
def specifications(draw: st.DrawFn) -> Spec:
    if draw(st.booleans()):
        return draw(patterns())
    parts = [draw(patterns()) for _ in range(2)]
    first, second = (part.but(io_count=None, parallel_degree=None) for part in parts)
    return mix(first, second, draw(st.integers(1, 5)), io_count=draw(st.integers(1, 40)))


@settings(max_examples=300, deadline=None)
@given(specifications())
def test_footprint_matches_ios_of_engine(spec: Spec) -> None:
    with open_device("null", size=8 * MIB) as nothing:
        trace = nothing.run(spec)
    offset, size, mode, component = (
        np.asarray(trace.column(name)).astype(np.int64)
        for name in ("offset_bytes", "io_size_bytes", "mode", "component")
    )
    sequential = np.array([part.location != "random" for part in spec.parts])
    writes = (mode == 1) & sequential[component]
    extents = written_sequentially(spec)
    assert sectors(extents) == hit(offset[writes], size[writes])
    # Random patterns count with all that they may touch.
    others = sectors(all_but_written_sequentially(spec))
    assert others >= hit(offset[~writes], size[~writes])
    if sequential.all():
        assert others == hit(offset[~writes], size[~writes])


def sectors(extents: Extents) -> set[int]:
    pairs = zip(extents.begins.tolist(), extents.ends.tolist(), strict=True)
    return {sector for begin, end in pairs for sector in range(begin // 512, end // 512)}


def hit(offsets: Any, sizes: Any) -> set[int]:
    return {
        sector
        for offset, size in zip(offsets.tolist(), sizes.tolist(), strict=True)
        for sector in range(offset // 512, (offset + size) // 512)
    }


STRETCHES = st.lists(st.tuples(st.integers(0, 60), st.integers(1, 9)), max_size=8)


def extents_of(stretches: list[tuple[int, int]]) -> Extents:
    begins = np.array([begin for begin, _ in stretches], dtype=np.int64)
    return merge_extents(begins, begins + np.array([size for _, size in stretches], dtype=np.int64))


@given(STRETCHES, STRETCHES, st.integers(1, 8))
def test_extents_behave_as_byte_sets(
    one: list[tuple[int, int]], other: list[tuple[int, int]], block: int
) -> None:
    a, b = extents_of(one), extents_of(other)
    bytes_a, bytes_b = bytes_of(a), bytes_of(b)
    assert a.size == len(bytes_a)
    assert bytes_of(union([a, b])) == bytes_a | bytes_b
    assert bytes_of(a.in_blocks(block)) == {
        byte
        for each in bytes_a
        for byte in range(each // block * block, each // block * block + block)
    }
    assert a.overlaps(b) == bool(bytes_a & bytes_b)
    if a.overlaps(b):
        begin, end = a.first_overlap(b)
        assert set(range(begin, end)) <= bytes_a & bytes_b
        assert begin == min(bytes_a & bytes_b)
    assert all(later > end for later, end in zip(a.begins[1:], a.ends[:-1], strict=True))


def bytes_of(extents: Extents) -> set[int]:
    pairs = zip(extents.begins.tolist(), extents.ends.tolist(), strict=True)
    return {byte for begin, end in pairs for byte in range(begin, end)}


# Places


def ordered(incr: int, count: int, io_size: int = 64 * KIB) -> Spec:
    return basic(
        "write",
        "ordered",
        incr=incr,
        io_size=io_size,
        io_count=count,
        target_size=max(abs(incr), 1) * count * io_size,
    )


@settings(deadline=None)
@given(
    st.integers(min_value=8, max_value=64).map(lambda n: n * MIB),
    st.lists(
        st.builds(
            ordered,
            st.sampled_from([-1, 0, 1, 2, 3, 16, 64]),
            st.integers(1, 40),
            st.sampled_from([4 * KIB, 64 * KIB, 96 * KIB]),
        ),
        max_size=25,
    ),
    st.sampled_from([BLOCK, SPACING]),
)
def test_target_is_found_whenever_one_exists(capacity: int, specs: list[Spec], block: int) -> None:
    """Compare with a list of blocks, and a search through all offsets."""
    allocator, used = SpaceAllocator(capacity, block=block), set[int]()
    for spec in specs:
        if spec.target_size > capacity:
            continue
        moved, why = allocator.move(spec)
        shape = blocks(spec.but(target_offset=0), block)
        aligned = SPACING if shape == set(range(len(shape))) else block
        free_offsets = [
            offset
            for offset in range(0, capacity - spec.target_size + 1, aligned)
            if used.isdisjoint(each + offset // block for each in shape)
        ]
        assert (why is None) == bool(free_offsets)
        if why is not None:
            used.clear()
        assert moved.end <= capacity
        assert used.isdisjoint(blocks(moved, block))
        used |= blocks(moved, block)


def blocks(spec: Spec, block: int) -> set[int]:
    pairs = written_sequentially(spec).in_blocks(block)
    stretches = zip(pairs.begins.tolist(), pairs.ends.tolist(), strict=True)
    return {each for begin, end in stretches for each in range(begin // block, end // block)}


def test_gapped_patterns_interleave() -> None:
    allocator = SpaceAllocator(GIB + MIB, block=BLOCK)
    spec = ordered(16, 1024)
    for _ in range(8):
        assert allocator.move(spec).reset is None
    assert allocator.allocated_bytes == GIB
    assert "1 MiB of the device were not yet touched" in str(allocator.move(spec).reset)


def test_exhausted_space_message_counts_written_bytes() -> None:
    allocator = SpaceAllocator(4 * MIB)
    spec = baseline("SW", io_size=32 * KIB, target_size=5 * MIB // 2, io_count=80)
    assert allocator.move(spec).reset is None
    assert "sequentially to 2.5 MiB within 2.5 MiB" in str(allocator.move(spec).reset)


def test_mix_leaves_other_half_undisturbed() -> None:
    half = 32 * GIB
    reads = baseline("RR", io_size=32768, target_size=half)
    mixed = mix(reads, baseline("SW", io_size=32768, target_size=MIB), 2, io_count=32)
    allocator = SpaceAllocator(64 * GIB)
    first = allocator.move(mixed).spec
    assert (first.second.target_offset, first.first.target_offset) == (0, half)
    # Sequential writes in the second half: random reads must not touch it any more.
    allocator.move(ordered(1, 40 * GIB // (64 * KIB)))
    assert "no" in str(allocator.move(mixed).reset)


def test_overlap_in_plan_file_is_reported_by_bytes(tmp_path: Any) -> None:
    plan = make_plan(device(GIB), "quick", 1, Choices(only=("order",)))
    wide = next(run for run in plan.runs if run.pattern == "SW" and run.value == 256)
    one = replace(wide, reset_before=False)
    spec = one.spec.but(io_count=8, io_ignore=0, target_offset=0, target_size=64 * MIB)
    path = tmp_path / "plan.toml"

    def written(offset: int) -> None:
        other = replace(one, id="other", spec=spec.but(target_offset=offset))
        path.write_text(write_plan(replace(plan, runs=(replace(one, spec=spec), other))))

    written(32 * KIB)
    assert len(read_plan(path, plan.device).runs) == 2
    written(8 * MIB)
    with pytest.raises(UsageError, match="write sequentially to the same target space") as caught:
        read_plan(path, plan.device)
    assert caught.value.got == f"both write bytes {8 * MIB} to {8 * MIB + 32 * KIB}"

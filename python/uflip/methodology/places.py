"""Places on the device for runs with sequential writes: next to each other, never on each other.

    0          cursor                                     capacity
    |  run 81  |  run 82  |                                   |
               +--> next place; at the end of the device a reset of its state, and again from 0

**Source**: uFLIP (CIDR 2009) §4.1 and §4.2: sequential writes disturb the state of a device most,
so they are directed to distinct target spaces, and the state is reset when the device is used up.
**Faithful**: distinct target spaces, in the order of the runs; a reset only when they are used up.
**Simplified**: what is left at the end of the device when a place does not fit is not used.
**Ambiguous**: where exactly a place begins. At multiples of `ALIGNMENT`, so that no run begins in
a flash block that another has half filled, on most devices. Where the repetitions of other runs
go: the paper does not say. Here to places of their own (`elsewhere`), drawn by chance: what a read
costs depends on the dies that its pages happen to lie on, and three visits to one place agree
perfectly about that place and say nothing about the device.
"""

from uflip.experiment import run_seed
from uflip.microbench.mix import half_size
from uflip.spec import Spec, writes_sequentially

ALIGNMENT = 1 << 20


class Places:
    """Hands out target spaces on a device of a given capacity, from an offset on [bytes]."""

    def __init__(self, capacity: int, cursor: int = 0) -> None:
        self.capacity = capacity
        self.rounds = 0
        """How often the end of the device was passed."""
        self.handed_out = 0
        """Sum of all places [bytes]."""
        self._cursor = cursor

    def move(self, spec: Spec) -> Spec:
        """Return the specification with its target in a place of its own."""
        if spec["kind"] == "mix":
            return self._move_mix(spec)
        return spec | {"target_offset": self.take(spec["target_size"], self.capacity)}

    def _move_mix(self, spec: Spec) -> Spec:
        """Move the sequential writes of a mix; the other pattern gets the other half."""
        writer, other = "first", "second"
        if not writes_sequentially(spec[writer]):
            writer, other = other, writer
        half = half_size(self.capacity, spec[writer]["io_size"])
        offset = self.take(spec[writer]["target_size"], half)
        return spec | {
            writer: spec[writer] | {"target_offset": offset},
            other: spec[other] | {"target_offset": half if offset < half else 0},
        }

    def take(self, size: int, part: int) -> int:
        """Hand out a place that crosses no border between parts of the device.

        Parameters
        ----------
        size : int
            Size of the place [bytes], at most `part`.
        part : int
            Size of a part [bytes]; the capacity where the device is not divided.

        Returns
        -------
        int
            Offset [bytes].
        """
        offset = self._next(size, part)
        self._cursor = offset + size
        self.handed_out += size
        return offset

    def _next(self, size: int, part: int) -> int:
        cursor = -(-self._cursor // ALIGNMENT) * ALIGNMENT
        for border in range(0, self.capacity - part + 1, part):
            offset = max(cursor, border)
            if offset + size <= border + part:
                return offset
        self.rounds += 1
        return 0


def elsewhere(spec: Spec, capacity: int, seed: int) -> Spec:
    """Return the specification with targets at places drawn by chance, where they leave room.

    Parameters
    ----------
    spec : Spec
        A basic pattern or a mix, of which each component stays in its half.
    capacity : int
        Size of the device [bytes].
    seed : int
        The same seed gives the same places.
    """
    if spec["kind"] != "mix":
        return spec | _drawn(spec, 0, capacity, seed)
    moved = {}
    for name in ("first", "second"):
        part = spec[name]
        half = half_size(capacity, part["io_size"])
        begin = half if part["target_offset"] >= half else 0
        moved[name] = part | _drawn(part, begin, half, run_seed(seed, name, "", 0))
    return spec | moved


def _drawn(part: Spec, begin: int, size: int, seed: int) -> Spec:
    """Where a target goes in a part of the device."""
    choices = (size - part["target_size"]) // ALIGNMENT + 1
    return {} if choices < 2 else {"target_offset": begin + seed % choices * ALIGNMENT}

"""A printed value: its quantity, its location in the paper, and its number of digits."""

import re
from dataclasses import dataclass

NUMBER = re.compile(r"(?P<about>(?:about|around|approximately) )?(?P<number>[\d,]*\.?\d+)")


@dataclass(frozen=True)
class Value:
    """One printed number, or one statement in words.

    Attributes
    ----------
    id : str
        Identifier in profiles and reproductions: paper/section/quantity.
    where : str
        Paper, and table, figure or section.
    device : str
        The profile that models the device.
    quantity : str
        What was measured.
    printed : str
        As the paper prints it; words where it prints words.
    unit : str
        Its unit; "" for a plain ratio, count or word.
    determined_by : tuple of str
        Ids of values from which this one follows, by arithmetic or because the paper prints the
        same value twice: a constant that was fitted to one of them was fitted to this one as well.
    """

    id: str
    where: str
    device: str
    quantity: str
    printed: str
    unit: str = ""
    determined_by: tuple[str, ...] = ()

    @property
    def number(self) -> float | None:
        """Return the printed number; None for words.

        Examples
        --------
        >>> Value("x", "", "", "", "about 3,000").number
        3000.0
        """
        match = NUMBER.fullmatch(self.printed)
        return None if match is None else float(match["number"].replace(",", ""))

    @property
    def about(self) -> bool:
        """Return whether the paper prints "about": the number is less exact than its digits."""
        match = NUMBER.fullmatch(self.printed)
        return match is not None and match["about"] is not None

    @property
    def half_a_digit(self) -> float:
        """Return half a unit of the last printed digit: nearer numbers round to the printed one.

        Examples
        --------
        >>> [Value("x", "", "", "", text).half_a_digit for text in ("9", "0.4", "16.81")]
        [0.5, 0.05, 0.005]
        """
        decimals = self.printed.partition(".")[2]
        return 0.5 * 10.0 ** -len(decimals)


@dataclass(frozen=True)
class Paper:
    """A paper, whose values are written as lines of a table.

    Attributes
    ----------
    prefix : str
        Prefix of the ids of its values.
    name : str
        Name of the paper, before each section or figure.
    device : str
        The profile of its device, if it has only one.
    """

    prefix: str
    name: str
    device: str = ""

    def value(  # noqa: PLR0917 - a line of a table, in the order of its columns
        self,
        name: str,
        where: str,
        quantity: str,
        printed: str,
        unit: str = "",
        determined_by: tuple[str, ...] = (),
    ) -> Value:
        """Make a value of the paper's one device; `name` and `determined_by` without the prefix."""
        return self.value_of(name, where, self.device, quantity, printed, unit, determined_by)

    def value_of(  # noqa: PLR0917 - the same with a column for the device
        self,
        name: str,
        where: str,
        device: str,
        quantity: str,
        printed: str,
        unit: str = "",
        determined_by: tuple[str, ...] = (),
    ) -> Value:
        """Make a value of one of the paper's devices."""
        ids = tuple(f"{self.prefix}/{other}" for other in determined_by)
        location = f"{self.name} {where}"
        return Value(f"{self.prefix}/{name}", location, device, quantity, printed, unit, ids)

"""Throughput by degree of parallelism, and the factor by which it grows."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Scaling:
    """Throughput at several degrees."""

    over: str  #: Name of the degree: "LUNs", "threads", "pages".
    mb_per_s: dict[int, float]  #: Throughput by degree [MB/s].

    def degree_name(self, degree: int) -> str:
        """Return a degree with its name.

        >>> Scaling("LUNs", {}).degree_name(1), Scaling("LUNs", {}).degree_name(2)
        ('1 LUN', '2 LUNs')
        """
        return f"{degree} {self.over if degree != 1 else self.over.removesuffix('s')}"

    def factors(self) -> dict[int, float]:
        """Return throughput relative to that of the lowest degree.

        >>> Scaling("LUNs", {1: 16.0, 2: 24.0}).factors()
        {1: 1.0, 2: 1.5}
        """
        first = self.mb_per_s[min(self.mb_per_s)]
        return {degree: value / first for degree, value in self.mb_per_s.items()}

"""What the repetitions of an experiment say together: how far apart, how well the mean is known.

A run knows its own mean, and what it says is true of the time and the place at which it was made.
How much that differs from another time and another place, only repetitions tell.

**Source** uFLIP (CIDR 2009) §5.1: "differences ... were typically within 5%". Student's interval
for the mean of a few independent repetitions. With many of them, what one knows of itself does not
matter any more, as the scatter of their means holds all of it: they are batches that lie far apart.
Of these the interval is the wider of Student's and that by the scatter of all experiments of a sort
(`peers`), and of one that is not like them its own, whatever its neighbours have in common
(`neighbours`); where there are no others of its sort it is that of batch means (Skart: Tafazzoli et
al. 2011; Willink 2005), stretched for skewness and for what neighbours have in common.
**Faithful** Each experiment is run three times; their range is reported.
**Simplified** A repetition counts as much as any other, however long it was.
**Ambiguous** When an experiment has converged. Here: the interval for the mean of all is narrow
enough, of fewer than `MANY` the wider of two, that which follows from those of the runs and that
which follows from how the repetitions scatter, and nothing speaks against it. A single one is what
it says itself. An interval of 95 % is shown, and a claim rests on one of 98 % (`claimed`): it is
asked for again and again while rounds go on, and whoever looks five times at a chance of one in
twenty is wrong more often than that.
Reads of few places are known by their repetitions alone, of which there must be `FEWEST_PLACES`.
What speaks against it: of fewer than `MANY`, whatever speaks against one of them but that it is
wide. Of more, (1) that their beginnings differ from their ends beyond chance (Welch's way to find a
start-up, across replications), and (2) that slow I/Os were seen in fewer than ten episodes, in all.
What is narrow enough: 5 % of the mean, or 2 % of the slowest baseline. What a device does in 0.2 ms
need not be known to 10 µs where another pattern takes it 20 ms; what all findings compare is
responses of one device.
"""

from collections.abc import Sequence
from math import sqrt

from uflip import _native
from uflip.data.summary import MeanSummary, Together
from uflip.results import autocorrelation
from uflip.results.autocorrelation import MANY
from uflip.results.convergence import FEW_PLACES
from uflip.results.variance_pooling import Peers, Scatter, fewest, is_odd, peers_of, supported

AGREEMENT = 0.05
CONFIDENCE = 0.95
CLAIM = 0.98
"""With this confidence an experiment is said to have converged: one claim in fifty may be false."""
SHARE_OF_SLOWEST = 0.02
# So many repetitions of reads of few places, each at others, are believed.
FEWEST_PLACES = 8
# A doubt that a few others can make up for, as they do for `FEW_PLACES`.
WIDE = "interval_too_wide"
FEW_EPISODES = "too_few_slow_episodes"
FEWEST_EPISODES = 10
# As within a run: what differs by less than this share of what is allowed does not matter, and what
# does must be beyond a chance of one in a hundred.
NARROW = 0.25
BEYOND_CHANCE = 0.99


def disagreement(means: Sequence[float | None]) -> float | None:
    """The range of several means relative to its middle; None for fewer than two.

    Examples
    --------
    >>> disagreement([0.95, 1.0, 1.05])
    0.1
    """
    known = [mean for mean in means if mean is not None]
    if len(known) < 2:
        return None
    low, high = min(known), max(known)
    return round(2 * (high - low) / (high + low), 6) if high > 0 else 0.0


def together(
    repetitions: Sequence[MeanSummary], slowest_ns: float | None = None, peers: Peers | None = None
) -> Together:
    """What the repetitions of an experiment say together.

    Parameters
    ----------
    repetitions
        `mean_ns`, `half_width_ns`, `converged` and `reasons` of each; `slow_episodes` and
        `opening_ns` where they are known.
    slowest_ns
        Mean of the slowest baseline of the device, where it is known [ns].
    peers
        What other experiments of the same sort say about the scatter of repetitions
        (`peers_among`).

    Returns
    -------
    dict
        `mean_ns` and `half_width_ns` [ns], of all repetitions with a mean; `converged`. Null where
        a repetition does not know it.

    Examples
    --------
    >>> run = {"half_width_ns": 3.0, "converged": True}
    >>> together([run | {"mean_ns": 100.0}, run | {"mean_ns": 100.5}, run | {"mean_ns": 99.5}])
    {'mean_ns': 100.0, 'half_width_ns': 1.732, 'converged': True}
    >>> together([run | {"mean_ns": 100.0}, run | {"mean_ns": 102.0}, run | {"mean_ns": 98.0}])
    {'mean_ns': 100.0, 'half_width_ns': 4.968, 'converged': False}
    """
    means = [each["mean_ns"] for each in repetitions if each["mean_ns"] is not None]
    if not means:
        return {"mean_ns": None, "half_width_ns": None, "converged": None}
    mean = sum(means) / len(means)
    said = [each["half_width_ns"] for each in repetitions]
    many = MANY <= len(means) == len(repetitions)
    few_places = of_few_places(repetitions)
    if few_places:
        peers = None
    by_scatter = many or (few_places and 1 < len(means) == len(repetitions))
    if not by_scatter and (None in said or None in [each["converged"] for each in repetitions]):
        known = [each["converged"] for each in repetitions]
        return {
            "mean_ns": mean,
            "half_width_ns": None,
            "converged": False if False in known else None,
        }
    allowed = allowed_ns(mean, slowest_ns)
    half_width = _scatter(means, allowed, peers)
    if not many and None not in said:
        known_ns = [each for each in said if each is not None]
        half_width = max(sqrt(sum(each * each for each in known_ns)) / len(known_ns), half_width)
    believable = _are_believable(repetitions, allowed) if many else all(map(_is_one, repetitions))
    return {
        "mean_ns": mean,
        "half_width_ns": round(half_width, 3),
        "converged": believable
        and len(means) >= (FEWEST_PLACES if few_places else least(means, allowed, peers))
        and claimed(means, half_width, allowed, peers) <= allowed,
    }


def peers_among(
    experiments: Sequence[Sequence[MeanSummary]], slowest_ns: float | None = None
) -> Peers | None:
    """What the experiments of a sort say together about how their repetitions scatter."""
    every = [
        [ns for run in runs if (ns := run["mean_ns"]) is not None]
        for runs in experiments
        if not of_few_places(runs)
    ]
    return peers_of(
        [
            Scatter(means, allowed_ns(sum(means) / len(means), slowest_ns))
            for means in every
            if means
        ]
    )


def of_few_places(repetitions: Sequence[MeanSummary]) -> bool:
    """Whether each repetition says nothing of places but its own; no peers speak for such."""
    return any(FEW_PLACES in (run["reasons"] or ()) for run in repetitions if "reasons" in run)


def claimed(
    means: Sequence[float], half_width: float, allowed: float, peers: Peers | None = None
) -> float:
    """Half the width that a claim rests on [ns], of repetitions with an interval of 95 %.

    With peers that of 98 % by their scatter and its own, and at least its own, so that what
    scatters more than its peers is not believed for their sake. Without, of few, that which many
    have of so few, several times Student's: three that lie together by chance are no evidence.
    """
    if len(means) < 2:
        return half_width
    wide = [half_width]
    if len(means) >= MANY or peers is not None:
        wide.append(own(means, allowed, CLAIM, peers))
    if peers is not None and allowed > 0:
        wide.append(supported(peers, Scatter(means, allowed), CLAIM)[0])
    elif len(means) < MANY:
        wide.append(stretched(means, CLAIM))
    return max(wide)


def allowed_ns(mean_ns: float, slowest_ns: float | None) -> float:
    """Half the width of an interval that is narrow enough [ns].

    Examples
    --------
    >>> allowed_ns(100.0, None), allowed_ns(100.0, 400.0)
    (5.0, 8.0)
    """
    return max(AGREEMENT * mean_ns, SHARE_OF_SLOWEST * (slowest_ns or 0.0))


def _is_one(run: MeanSummary) -> bool:
    """Whether nothing speaks against a run but what others make up for."""
    reasons = run.get("reasons") or ()
    return bool(run["converged"]) or (bool(reasons) and {*reasons} <= {WIDE, FEW_PLACES})


def _are_believable(runs: Sequence[MeanSummary], allowed: float) -> bool:
    """Whether nothing speaks against the mean of many repetitions."""
    doubted = any(FEW_EPISODES in (run.get("reasons") or ()) for run in runs)
    if doubted and sum(run.get("slow_episodes") or 0 for run in runs) < FEWEST_EPISODES:
        return False
    if any(run.get("opening_ns") is None for run in runs):
        return all(map(_is_one, runs))
    return not begin_otherwise(runs, allowed)


def begin_otherwise(runs: Sequence[MeanSummary], allowed: float) -> bool:
    """Whether many repetitions begin otherwise than they end, beyond chance and by what matters.

    No further repetition changes that.
    """
    openings = [ns for run in runs if (ns := run.get("opening_ns")) is not None]
    if not MANY <= len(openings) == len(runs):
        return False
    by_chance: float = _native.half_width(openings, BEYOND_CHANCE)
    opening: float = abs(sum(openings)) / len(openings)
    return opening > max(NARROW * allowed, by_chance)


def _scatter(means: Sequence[float], allowed: float, peers: Peers | None) -> float:
    """Half the width of the interval by how repetitions scatter [ns]; 0 of one.

    What eight values say of their skewness and of what neighbours have in common is mostly chance,
    which stretches an interval several times. Peers show it better, where there are any.
    """
    if len(means) < 2:
        return 0.0
    if len(means) >= MANY and (peers is None or allowed <= 0):
        return max(stretched(means, CONFIDENCE), own(means, allowed, CONFIDENCE, None))
    if len(means) < MANY or peers is None:
        return student(means, CONFIDENCE)
    theirs = supported(peers, Scatter(means, allowed), CONFIDENCE)[0]
    return max(own(means, allowed, CONFIDENCE, peers), theirs)


def least(means: Sequence[float], allowed: float, peers: Peers | None) -> int:
    """So many repetitions of an experiment are believed."""
    if peers is None or len(means) < 2 or allowed <= 0:
        return 1
    return fewest(peers, Scatter(means, allowed))


def own(means: Sequence[float], allowed: float, confidence: float, peers: Peers | None) -> float:
    """Half the width of the interval of the mean by an experiment's own repetitions [ns].

    Student's, and of one that no peers speak for by all that its neighbours may have in common.
    """
    speak = peers is not None and not is_odd(peers, Scatter(means, allowed))
    if len(means) < MANY or speak:
        return student(means, confidence)
    return autocorrelation.alone(means, confidence)


def student(means: Sequence[float], confidence: float) -> float:
    """Half the width of Student's interval of the mean of two or more repetitions [ns]."""
    n, middle = len(means), sum(means) / len(means)
    variance = sum((each - middle) ** 2 for each in means) / (n - 1)
    return float(_native.student_quantile(1 - confidence, n - 1)) * sqrt(variance / n)


def stretched(means: Sequence[float], confidence: float) -> float:
    """Half the width of the interval of batch means [ns]: of few, several times Student's."""
    return float(_native.half_width(list(means), confidence))

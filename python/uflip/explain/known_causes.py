"""Causes of slow I/Os that the simulator recorded: the check of what response times alone show."""

from uflip.explain.finding import FOUND, Finding, Number
from uflip.explain.io_log import IoLog
from uflip.explain.slow_set import slow_flags

TOPIC = "causes"
MOST = 4
MIN_SHARE = 0.01


def describe_causes(log: IoLog) -> list[Finding]:
    """Return what the slow I/Os of a simulated device spent more time on than the others."""
    findings = []
    for subject, rows in log.subjects if log.causes else []:
        slow = slow_flags(log, rows)
        if slow is None or slow[0].all():
            continue
        flags = slow[0]
        extra = {
            name: float(column[rows][flags].mean() - column[rows][~flags].mean())
            for name, column in log.causes.items()
        }
        total = sum(each for each in extra.values() if each > 0)
        ranked = sorted(extra, key=lambda name: -extra[name])[:MOST]
        shown = [name for name in ranked if extra[name] > MIN_SHARE * total]
        numbers: dict[str, Number] = {f"extra_{name}": extra[name] for name in shown}
        numbers["slow_ios"] = int(flags.sum())
        text = ", ".join(
            f"{name.removesuffix('_ns').replace('_', ' ')} {extra[name] / total:.0%}"
            for name in shown
        )
        statement = f"recorded by the simulator: the extra time of slow {subject} went to {text}"
        findings.append(
            Finding(
                topic=TOPIC, subject=subject, verdict=FOUND, statement=statement, numbers=numbers
            )
        )
    return findings

"""A report as plain values, which become `report.json`."""

from collections.abc import Mapping
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any

import msgspec

from ops.analysis.calibration.report import spending_json
from ops.analysis.report.judging import Judging, Rubric
from ops.analysis.report.repetition import gini, share_of_top
from ops.analysis.report.report import Report
from ops.analysis.report.success import Success, Tally, total
from ops.statistics.blocking import Blocking
from ops.statistics.shares import share_json

FORMAT = 1
Json = dict[str, Any]


def as_json(report: Report) -> Json:
    selection = report.selection
    return {
        "format": FORMAT,
        "source": report.source,
        "run": report.run,
        "rubric": report.rubric,
        "evaluation": msgspec.to_builtins(report.evaluation),
        "selection": {
            "split": selection.split.value if selection.split else None,
            "since": moment(selection.since_s),
            "until": moment(selection.until_s),
        },
        "num_episodes": report.num_episodes,
        "num_left_out": report.num_left_out,
        "num_not_whole": report.num_not_whole,
        "first_ended": moment(report.first_s),
        "last_ended": moment(report.last_s),
        "success": {**_success(report.success), "by_seen": _by_label(report.seen.tallies())},
        "usage": {
            kind: {name: asdict(spread) for name, spread in figures.items()}
            for kind, figures in report.usage.spreads().items()
        },
        "causes": {
            "counts": {kind: dict(counts) for kind, counts in report.causes.counts.items()},
            "reasons": {cause: dict(reasons.most_common()) for cause, reasons in report.causes.reasons.items()},
            "outcomes": {outcome: dict(verdicts) for outcome, verdicts in report.causes.outcomes.items()},
        },
        "blocking": _blocking(report.blocking),
        "judging": _judging(report.judging),
        "step_limits": {
            kind: [share_json(share) for share in limited.curve()] for kind, limited in report.limits.by_kind.items()
        },
        "repetition": _repetition(report),
        "staleness": {"spans": _by_number(report.staleness.spans), "lags": _by_number(report.staleness.lags)},
        "workers": {
            "browsers": dict(report.workers.browsers),
            "policies": dict(report.workers.policies),
            "judges": dict(report.judging.by_judge),
        },
        "training": [{"version": row.version, **row.metrics} for row in report.training],
    }


def moment(time_s: float | None) -> str | None:
    """In UTC; None also where no calendar has it."""
    try:
        return None if time_s is None else datetime.fromtimestamp(time_s, UTC).isoformat(timespec="seconds")
    except (ValueError, OverflowError, OSError):
        return None


def _tally(tally: Tally) -> Json:
    return {**asdict(tally), "success": share_json(tally.success), "reward": tally.reward, "parsed": share_json(tally.parsed)}


def _tallies(tallies: Mapping[str, Tally]) -> Json:
    return {kind: _tally(tally) for kind, tally in tallies.items()}


def _success(success: Success) -> Json:
    groupings = ("difficulty", "distribution", "published_split", "domain", "site", "family", "version")
    return {
        "overall": _tallies(success.overall),
        **{f"by_{name}": _by_label(getattr(success, f"by_{name}")) for name in groupings},
    }


def _by_label(groups: Mapping[Any, Mapping[str, Tally]]) -> Json:
    return {str(label): _tallies(tallies) for label, tallies in groups.items()}


def _blocking(blocking: Blocking) -> Json:
    return {
        "visits": share_json(blocking.total.blocked),
        "sites": {site: share_json(visits.blocked) for site, visits in blocking.by_site.items()},
        "egresses": {egress: share_json(visits.blocked) for egress, visits in blocking.by_egress.items()},
        "providers": dict(blocking.by_provider.most_common()),
        "elsewhere": blocking.num_elsewhere,
        "lifted": blocking.num_lifted,
    }


def _judging(judging: Judging) -> Json:
    return {
        "rubrics": {name: _rubric(rubric) for name, rubric in judging.rubrics.items()},
        "disagreement": [
            {"rubrics": list(names), **share_json(pair.disagreement)} for names, pair in sorted(judging.pairs.items())
        ],
    }


def _rubric(rubric: Rubric) -> Json:
    return {
        "verdicts": dict(rubric.verdicts),
        "num_blocked": rubric.num_blocked,
        "spending": spending_json(rubric.spending),
        "seconds": asdict(rubric.seconds.spread()),
        "stages": {
            name: {"passed": share_json(stage.passed), "vote_agreement": stage.vote_agreement}
            for name, stage in rubric.stages.items()
        },
        "usage": [
            {name: getattr(usage, name) for name in usage.__struct_fields__} for _, usage in sorted(rubric.usage.items())
        ],
    }


def _repetition(report: Report) -> Json:
    sites = [total(tallies).num_episodes for tallies in report.success.by_site.values()]
    tasks = list(report.repetition.tasks.values())
    return {
        "sites": {"number": len(sites), "top_10": share_json(share_of_top(sites)), "gini": gini(sites)},
        "tasks": {"number": len(tasks), "top_10": share_json(share_of_top(tasks)), "gini": gini(tasks)},
        "within_episodes": {
            end: {**asdict(sums), "shares": {name: share_json(share) for name, share in sums.shares().items()}}
            for end, sums in report.repetition.by_end.items()
        },
    }


def _by_number(counts: Mapping[int, int]) -> Json:
    return {str(number): counts[number] for number in sorted(counts)}

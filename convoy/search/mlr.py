# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""The throughput search: RFC 9971's, by its reference implementation, PyPI's MLRsearch.

It asks for trials; what it concludes about each goal is a Conclusion. What is ours: trials that say
nothing about the device are left out (and repeated), and a search that ran out of time still says
how far it came.
"""

import enum
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from MLRsearch import (
    AbstractMeasurer,
    Config,
    GoalResult,
    MeasurementResult,
    MultipleLossRatioSearch,
    SearchGoal,
)

from convoy.search.goals import Goal

LEAST_PPS = 1000.0
TRIES = 8  # trials in a row that say nothing, after which a search gives a rate up, or itself
REFUSALS = 2  # of these, that could not be offered: nor can any higher rate


@dataclass(frozen=True)
class Answer:
    """What became of a trial's packets. offered_pkts counts those that were lost."""

    offered_pkts: int
    lost_pkts: int


class Nothing(enum.Enum):
    """A trial that says nothing about the device."""

    LOAD_NOT_REACHED = "the tester cannot offer this rate"
    DISTURBED = "the tester or the device was preempted"


# One trial at a rate (packets per second) for so many seconds.
Measure = Callable[[float, float], Answer | Nothing]


class _DisturbedError(Exception):
    """The machine is too busy to go on."""


@dataclass(frozen=True)
class Conclusion:
    """What a search says about one goal. Rates in packets per second."""

    goal: str
    rate_pps: float | None  # conditional throughput (RFC 9971); None: not even LEAST_PPS is kept
    lower_pps: float | None  # highest load that meets the goal
    upper_pps: float | None  # lowest load that does not; None: none was found
    regular: bool  # both bounds were found, as close as the goal asks for
    remark: str = ""  # why it is irregular
    lower_bound: bool = False  # it is, because no more could be offered

    def as_json(self) -> dict[str, Any]:
        """Return it as results keep it."""
        return dict(vars(self))


class _Measurer(AbstractMeasurer):  # type: ignore[misc]
    """Gives the search what it wants; knows which loads could not be offered."""

    def __init__(self, measure: Measure, most_pps: float, mrr_pps: float) -> None:
        self._measure = measure
        self._most_pps = most_pps
        self._mrr_pps = mrr_pps
        self.guesses = mrr_pps < most_pps  # the highest load is answered from the MRR
        self.load_not_reached_pps: set[float] = set()
        self._most_offered_pps = float("inf")  # what is not below cannot be offered

    def measure(self, intended_duration: float, intended_load: float) -> MeasurementResult:
        """Do a trial."""
        answer: Answer | Nothing = Nothing.LOAD_NOT_REACHED
        if self.guesses and intended_load >= self._most_pps * (1 - 1e-9):
            # The search begins at the highest load to learn what comes through; that is guessed.
            sent = round(self._most_pps * intended_duration)
            through = round(self._mrr_pps * intended_duration)
            answer = Answer(sent, max(sent - through, 0))
        elif intended_load < self._most_offered_pps:
            answer = self._ask(intended_load, intended_duration)
        if isinstance(answer, Nothing):
            self.load_not_reached_pps.add(intended_load)
            self._most_offered_pps = min(self._most_offered_pps, intended_load)
            sent = round(intended_load * intended_duration)
            answer = Answer(sent, sent)
        return MeasurementResult(
            intended_duration=intended_duration,
            intended_load=intended_load,
            offered_count=answer.offered_pkts,
            loss_count=answer.lost_pkts,
        )

    def _ask(self, rate_pps: float, duration_s: float) -> Answer | Nothing:
        output: list[Nothing] = []
        while len(output) < TRIES:
            answer = self._measure(rate_pps, duration_s)
            if isinstance(answer, Answer):
                return answer
            output.append(answer)
            if output.count(Nothing.LOAD_NOT_REACHED) == REFUSALS:
                return Nothing.LOAD_NOT_REACHED
        raise _DisturbedError


def _forget_the_guess(engine: MultipleLossRatioSearch) -> None:
    engine.database.load_to_stats.pop(engine.limit_handler.max_load.hashable(), None)


def _result(engine: MultipleLossRatioSearch, goal: SearchGoal) -> GoalResult:
    target = engine.scaling.goal_to_final_target[goal]
    return GoalResult.from_bounds(bounds=engine.database.get_relevant_bounds(target=target))


def _run(engine: MultipleLossRatioSearch, measurer: _Measurer, goals: Sequence[SearchGoal]) -> None:
    """Search, and where a bound is the highest load, offer that; a guess bounds nothing."""
    engine.search(measurer, debug=lambda text: None)
    highest = engine.limit_handler.max_load
    results = [_result(engine, goal) for goal in goals]
    bounds = [one.relevant_lower_bound for one in results]
    bounds += [one.relevant_upper_bound for one in results]
    if measurer.guesses and any(bound and float(bound) == float(highest) for bound in bounds):
        measurer.guesses = False
        _forget_the_guess(engine)
        engine.main_loop(highest, highest)


def _goal(goal: Goal) -> SearchGoal:
    return SearchGoal(
        loss_ratio=goal.loss_ratio,
        exceed_ratio=goal.exceed_ratio,
        relative_width=goal.width,
        initial_trial_duration=goal.trial_s,
        final_trial_duration=goal.trial_s,
        duration_sum=goal.sum_s,
        preceding_targets=2,
        expansion_coefficient=2,
        fail_fast=False,
    )


def _conclude(goal: Goal, result: GoalResult, load_not_reached: set[float], cut: str) -> Conclusion:
    lower, upper = result.relevant_lower_bound, result.relevant_upper_bound
    through = result.conditional_throughput
    lower_pps = float(lower) if lower else None
    upper_pps = float(upper) if upper else None
    # The search rounds loads; a bound that was never offered says nothing about the device.
    limited = upper_pps is not None and upper_pps in load_not_reached
    remark = f"{cut}: {'a lower bound' if through else 'no rate'}" if cut else ""
    if cut:
        limited = False
    elif lower_pps is None:
        remark = f"not even {LEAST_PPS:.0f} packets/s meet the goal"
    elif upper_pps is None or limited:
        remark = "the tester could not offer more over these ports: a lower bound"
    return Conclusion(
        goal.name,
        float(through) if through else None,
        lower_pps,
        None if limited else upper_pps,
        not remark,
        remark,
        lower_bound=not cut and lower_pps is not None and (upper_pps is None or limited),
    )


def search(
    measure: Measure,
    goals: Sequence[Goal],
    most_pps: float,
    mrr_pps: float,
    longest_s: float = 1200.0,
) -> tuple[Conclusion, ...]:
    """Search for the highest rates that meet the goals, all at once.

    most_pps: what the tester can offer; mrr_pps: what came through under more than the device
    can take, or another guess: the search begins there, and finds its way where it was wrong.
    """
    config = Config()
    config.goals = [_goal(goal) for goal in goals]
    config.min_load, config.max_load = LEAST_PPS, max(most_pps, 2 * LEAST_PPS)
    config.search_duration_max = longest_s
    config.warmup_duration = None
    measurer = _Measurer(measure, config.max_load, mrr_pps)
    engine = MultipleLossRatioSearch(config)
    began = time.monotonic()
    cut = ""
    try:
        _run(engine, measurer, config.goals)
    except _DisturbedError:
        cut = "the machine was too busy to go on"
    except RuntimeError:
        # Its only way to say that time is over; what it knows by then is in its database.
        if time.monotonic() - began < longest_s:
            raise
        cut = "the search ran out of time"
    if measurer.guesses:
        _forget_the_guess(engine)
    results = []
    for goal, theirs in zip(goals, config.goals, strict=True):
        result = _result(engine, theirs)
        narrow = (
            result.relevant_lower_bound
            and result.relevant_upper_bound
            and float(result.relevant_upper_bound)
            <= float(result.relevant_lower_bound) * (1 + 1.5 * goal.width)
        )
        results.append(
            _conclude(goal, result, measurer.load_not_reached_pps, "" if narrow else cut)
        )
    return tuple(results)

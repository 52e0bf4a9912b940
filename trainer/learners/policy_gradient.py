"""Policy gradients: every scored episode of a complete group is learnt from once, by what its tokens were worth.

Which episodes those are is a function of the judgements in their order and of the trainer's version, so a trainer that was
killed learns from the same ones: members of groups that are not complete yet stand in its state.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

import msgspec
import numpy as np
import structlog

from schemas.ids import EpisodeId, PolicyVersion
from schemas.messages import Judgement, RecordRef
from schemas.objective_config import ObjectiveConfig
from trainer.episodes.consumption import BatchPlan, staleness
from trainer.episodes.episode_steps import EpisodeSteps
from trainer.episodes.groups import Group, Groups, Intended, Member, Refilled, intend
from trainer.episodes.intake import IsLast, Judged, sized
from trainer.episodes.success_replay import SuccessReplay
from trainer.estimators import num_members, traits_of
from trainer.items import Item, targets_of
from trainer.learners.parts import LearningRules, Parts
from trainer.losses import loss_part, needs_proximal
from trainer.objective.aggregation import token_weights
from trainer.objective.credit import Credit, Episode, credit, episodes_of
from trainer.objective.step_shares import StepShares
from trainer.readings import AnchorReader, Anchors, ByStep
from trainer.samples import Sample
from trainer.scores import score
from trainer.training_metrics import PhaseClock
from trainer.updates import OptimizerStep
from trainer.versions.checkpoints import TrainerState

_log = structlog.get_logger()


class PolicyGradient:
    """A `Learner`."""

    def __init__(self, parts: Parts, state: TrainerState, *, objective: ObjectiveConfig, rules: LearningRules) -> None:
        self._parts = parts
        self._objective, self._traits = objective, traits_of(objective)
        self._rules = rules
        self._plays_for = state.guard.plays_for
        self._every_token_pulls = bool(
            objective.entropy_coeff or objective.kl_loss_coef or not loss_part(objective).traits.skips_zero_advantage
        )
        """Tokens whose advantage is 0 have a gradient too."""
        self._anchors = AnchorReader(parts.readings, parts.engine, rules.truncation, proximal=needs_proximal(objective))
        self._groups = Groups(num_members(objective), state.carried)
        self._successes = SuccessReplay(objective.success_replay, state.successes, plays_for=self._plays_for)
        self._complete: list[Group] = []
        self._steps: dict[EpisodeId, EpisodeSteps] = {}
        self._episodes: list[Episode] = []

    def wants(self, judgement: Judgement) -> bool:
        return score(judgement) is not None and not judgement.trajectory.task.greedy

    def begin(self) -> IsLast:
        fixed = sized(self._rules.batch_size)
        refilled = Refilled(self._rules.batch_size, self._objective) if self._objective.dynamic_sampling == "refill" else None

        def is_last(judgement: Judgement) -> bool:
            completed = self._groups.arrive(Member.of(judgement))
            if completed is not None:
                self._complete.append(completed)
            return refilled.is_last(completed) if refilled is not None else fixed(judgement)

        return is_last

    async def take_in(
        self, batch: Sequence[Judged], plan: BatchPlan, version: PolicyVersion, *, ends_pass: bool
    ) -> dict[str, float]:
        """Fetches the steps of the groups that are complete."""
        if ends_pass:
            self._complete += self._groups.close()
        complete, self._complete = self._complete, []
        await self._forget_spent(complete)
        intended = intend(
            self._successes.completed(complete),
            self._objective,
            version=version,
            bound=self._rules.staleness_bound,
            plays_for=self._plays_for,
        )
        for item in batch:
            await item.ready.wait()
            self._steps[item.judgement.episode] = item.steps
        steps = {member.episode: await self._steps_of(member) for member in intended.trained}
        waiting = {member.episode for member in self._groups.carried}
        self._steps = {episode: found for episode, found in self._steps.items() if episode in waiting}
        self._episodes = episodes_of(intended.groups, steps)
        metrics = _metrics(intended, self._episodes, steps) | self._ages(intended, version)
        return metrics | {"groups": float(len(complete)), "groups_carried_members": float(len(waiting))}

    def _ages(self, intended: Intended, version: PolicyVersion) -> dict[str, float]:
        """Without a bound on staleness the members' versions are another run's, and say nothing of it."""
        if self._rules.staleness_bound is None:
            return {}
        ages = Counter(staleness(member, version) for member in intended.trained)
        return {f"trained_staleness_{age}": float(count) for age, count in sorted(ages.items())}

    async def _forget_spent(self, groups: Sequence[Group]) -> None:
        """Of the successes that these groups would be given, those without a step that can be trained on, as when all have
        aged out: they would only make failures worth less."""
        for group in groups:
            earlier = self._successes.earlier(group)
            if earlier is None:
                continue
            self._steps[earlier.episode] = await self._steps_of(earlier)
            if not self._steps[earlier.episode].usable:
                self._successes.forget(earlier)

    async def _steps_of(self, member: Member) -> EpisodeSteps:
        """As fetched when its judgement arrived, or, carried over through a restart, now."""
        return self._steps.get(member.episode) or await self._parts.store.episode(member)

    async def train(self, version: PolicyVersion, clock: PhaseClock) -> dict[str, float]:
        objective, engine, readings = self._objective, self._parts.engine, self._parts.readings
        early = [ref for episode in self._episodes for ref in episode.steps]
        anchors = await self._anchors.of(early if objective.kl_reward_coef else ())
        clock.end("proximal")
        reference = await readings.of(early, engine.reference_logprobs) if objective.kl_reward_coef else {}
        clock.end("reference")
        values = await readings.of(early, engine.values) if self._traits.critic else {}
        clock.end("values")
        needed = [anchors.proximal, reference] * (objective.kl_reward_coef > 0) + [values] * self._traits.critic
        episodes = [_still_there(episode, needed) for episode in self._episodes]
        found = credit(
            episodes,
            objective,
            proximal=anchors.proximal,
            reference=reference,
            values=values,
            max_new_tokens=self._rules.max_new_tokens,
        )
        clock.end("advantages")
        critic = await self._train_critic(found, values, version)
        clock.end("critic")
        trained = [] if self._warms_up(version) else list(found.advantages)
        idle = set[RecordRef]() if self._every_token_pulls else {*trained}.difference(found.instructive)
        vary, updates = self._parts.augmentation, self._parts.updates
        if not objective.kl_reward_coef:
            computed = [ref for ref in trained if ref not in idle]
            anchors = await self._anchors.of(computed, varied=vary is not None)
            clock.end("proximal")
            reference = await readings.of(computed, engine.reference_logprobs) if objective.needs_reference else {}
            clock.end("reference")
        if len(idle) == len(trained) and not self._warms_up(version):
            _log.warning("nothing_to_train_on", version=version, groups=len({episode.group for episode in self._episodes}))
        shares = StepShares(episodes, objective, idle)
        varied: list[ByStep] = []
        if vary is not None and needs_proximal(objective):
            varied = await updates.read(trained, engine.completion_logprobs, version, idle=idle, vary=vary)
            clock.end("proximal")
        metrics = await updates.run(
            trained,
            lambda step: _items(
                step.samples, shares.of(step.refs), found, anchors, varied[step.epoch] if varied else {}, reference, version
            ),
            version,
            idle=idle,
            vary=vary,
        )
        clock.end("train")
        self._episodes = []
        return metrics.means() | critic | _credit_metrics(found, len(trained))

    def remember(self, state: TrainerState) -> TrainerState:
        return msgspec.structs.replace(state, carried=self._groups.carried, successes=self._successes.kept)

    def _warms_up(self, version: PolicyVersion) -> bool:
        return self._traits.critic and version < self._objective.critic.warmup_iterations

    async def _train_critic(self, found: Credit, values: ByStep, version: PolicyVersion) -> dict[str, float]:
        if not self._traits.critic:
            return {}

        def items(step: OptimizerStep) -> list[Item]:
            towards = [found.returns[sample.ref] for sample in step.samples]
            weights = token_weights([~np.isnan(returns) for returns in towards])
            return [
                Item(sample, targets_of(sample, weights=share, values=values[sample.ref], returns=np.nan_to_num(returns)))
                for sample, share, returns in zip(step.samples, weights, towards, strict=True)
            ]

        metrics = await self._parts.updates.run(list(found.returns), items, version, self._parts.engine.train_critic)
        return {f"critic_{name}": value for name, value in metrics.means().items()}


def _items(
    samples: Sequence[Sample],
    shares: ByStep,
    found: Credit,
    anchors: Anchors,
    varied: ByStep,
    reference: ByStep,
    version: PolicyVersion,
) -> list[Item]:
    """One optimizer step."""
    return [
        Item(
            sample,
            targets_of(
                sample,
                weights=shares[sample.ref],
                advantages=found.advantages[sample.ref],
                **anchors.targets(sample, version, varied=varied.get(sample.ref)),
                **({"reference": reference[sample.ref]} if sample.ref in reference else {}),
            ),
        )
        for sample in samples
    ]


def _still_there(episode: Episode, needed: Sequence[ByStep]) -> Episode:
    """Without the steps whose records have aged out since they were fetched."""
    kept = {ref: length for ref, length in episode.steps.items() if all(ref in arrays for arrays in needed)}
    return replace(episode, steps=kept)


def _metrics(intended: Intended, episodes: Sequence[Episode], steps: Mapping[EpisodeId, EpisodeSteps]) -> dict[str, float]:
    rewards = [member.reward for member in intended.trained if member.reward is not None]
    left_out: Counter[str] = Counter()
    for found in steps.values():
        left_out.update({reason.value: count for reason, count in found.left_out.items()})
    num_episodes = max(1, len(intended.trained))
    metrics = {
        "groups_trained": float(len(intended.groups)),
        "groups_dropped": float(intended.num_dropped),
        "groups_unusable": float(intended.num_unusable),
        "groups_short": float(intended.num_short),
        "members_unscored": float(intended.num_unscored),
        "members_stale": float(intended.num_stale),
        "members_collapsed": float(intended.num_collapsed),
        "members_replayed": float(sum(member.replayed for member in intended.trained)),
        "episodes": float(len(intended.trained)),
        "reward_mean": float(np.mean(rewards)) if rewards else 0.0,
        "reward_std": float(np.std(rewards)) if rewards else 0.0,
        "trained_steps_per_episode": sum(len(episode.steps) for episode in episodes) / num_episodes,
        "trained_tokens_per_episode": sum(sum(episode.steps.values()) for episode in episodes) / num_episodes,
    }
    return metrics | {f"left_out_{reason}": float(count) for reason, count in left_out.items() if count}


def _credit_metrics(found: Credit, num_chosen: int) -> dict[str, float]:
    tokens = np.concatenate([np.zeros(0), *found.advantages.values()])
    return {
        "advantage_magnitude": float(np.abs(tokens).mean()) if len(tokens) else 0.0,
        "steps_without_advantage": float(len(found.advantages) - len(found.instructive)),
        "fresh_samples": float(num_chosen),
    }

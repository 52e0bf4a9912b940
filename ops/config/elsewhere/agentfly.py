"""AgentFly's own keys; the others it has from verl."""

from ops.config.elsewhere import measures as count
from ops.config.elsewhere.conversions import as_text, as_truth, as_whole
from ops.config.elsewhere.row import Program, Row, extended, instead, nothing, ours, same, under
from ops.config.elsewhere.verl import VERL

_G = "agent.run_config."
_PROMPT = "write vanilla or complete for model_config.prompt_version, or module:name of a prompt of your own"
_ACTIONS = "write standard or extended for context_config.actions, or module:name of your own: tools are a browser's actions"
_JUDGE = "write ./file.py:name for judge_config.judge, or environment_v1, which is the page's own reward (docs/judges.md)"


def _agent(group: str) -> tuple[Row, ...]:
    """Of the agent itself; older scripts leave `init_config` out."""
    return (
        *nothing(group + "agent_type", "the agent is one of the web: it sees screenshots and answers with actions"),
        ours(group + "model_name_or_path", "policy_config.base_model", "a folder, or a name of the hub", as_text),
        *nothing(group + "template", "the model's own chat template is used"),
        *instead(group + "system_prompt", _PROMPT),
        *instead(group + "tools", _ACTIONS),
        *nothing(group + "tool_parser_name", "answers are parsed by context_config.actions"),
        *instead(group + "reward_name", _JUDGE),
        same(
            group + "backend",
            ("async_verl", "async_vllm", "vllm"),
            "policy workers hold vLLM",
            "write openai for policy_config.engine, with policy_config.base_url, for an endpoint",
        ),
        ours(group + "max_model_len", count.LENGTH, "prompt and answer", count.length),
    )


_OWN: tuple[Row, ...] = (
    same("agent.use_agent", True, "the policy is always an agent", "leave it out: the policy is always an agent"),
    *_agent("agent.init_config."),
    *_agent("agent."),
    *(
        row
        for group in ("agent.", _G)
        for row in (
            ours(group + "max_turns", count.CAPS, "for each difficulty, in training and evaluation", count.all_caps),
            ours(group + "num_chains", "objective_config.group_size", "episodes of a task", count.group),
            ours(group + "generation_config.max_tokens", "policy_config.max_new_tokens", "of one step's answer", as_whole),
            ours(group + "generation_config.temperature", "policy_config.temperature"),
            ours(group + "generation_config.top_p", "policy_config.top_p"),
            ours(group + "max_concurrent_chains", "feeder_config.max_concurrent", "training episodes at once", as_whole),
            *nothing(group + "generation_config.*", "policy_config says how answers are sampled"),
        )
    ),
    ours("agent.train_on_last_turn", "objective_config.train_on_last_turn", "", as_truth),
    *nothing(
        under(_G[:-1], "context_config.resource_backend context_config.*"),
        "browser workers are started on any node: docs/launching.md",
    ),
)
AGENTFLY = extended(Program("AgentFly", "agentfly", _OWN, VERL.settings), VERL, {count.SEVERAL: True})

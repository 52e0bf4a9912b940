"""Says how a judge asked its models, for the judgement."""

from judges.prompt_files import Prompts
from judges.rubric.asking import JudgeSession
from schemas.messages import JudgeProtocol


def protocols_of(judge: str, prompts: Prompts, session: JudgeSession) -> tuple[JudgeProtocol, ...]:
    """None where no question was answered with a verdict."""
    if not (answered := session.answered):
        return ()
    return (JudgeProtocol(judge=judge, prompts=prompts.version, digest=prompts.digest, questions=answered),)

"""Every answer of a judge's endpoint at every stage: the judgement, or the error, that becomes of it.

Through the real client, a real nats-server and the judge worker as it is composed for a run.
"""

import hashlib
import json
import re
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import anyio
import msgspec
import pytest

from bus import chain
from bus.jetstream import connect, create_topology
from bus.ports import Bus
from bus.presence import Status
from bus.server import nats_server
from bus.subjects import Subjects
from bus.topology import shared_queues, streams
from judges.episode import JudgedEpisode
from judges.judge import Judge, Ruling
from judges.worker import JudgeWorker
from ops.judging import open_judge
from ops.roles import Post
from ops.run_folder import RunFolder
from schemas.config import BusConfig, Config, EnvConfig, JudgeConfig, OpenAIConfig, QuestionConfig
from schemas.ids import WorkerId
from schemas.messages import Fact, JudgeCall, Judgement, Outcome, Role, Task, Verdict
from tests.asked_judge import answered
from tests.builders import RUN, task
from tests.endpoint_replies import Reply
from tests.endpoint_requests import Asked
from tests.judge_answers import CASES, MAX_ANSWERS, PAGE, UNHAPPY, WORDS, Asking, Case, Expected, cells, markdown
from tests.scripted_endpoint import ScriptedEndpoint, scripted_endpoint

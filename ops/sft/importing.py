"""Reads other people's conversations into a run's streams: looked at whole first, and all that is bad told at once."""

from dataclasses import dataclass
from pathlib import Path

from anyio.to_thread import run_sync
from msgspec.structs import replace

from agents.action_space import ActionSpace
from agents.tokens import PromptTokenizer
from ops.archive.episodes import StoredJudgement
from ops.archive.importer import Imported, Importer
from ops.archive.progress import progress_line
from ops.console.terminal import Console
from ops.run.base_models import starting_model
from ops.run.folder import NEEDED_BYTES, RunFolder
from ops.run.joining import join, subjects_of
from ops.run.served import served
from ops.sft.episodes import EpisodeMaker
from ops.sft.findings import Findings
from ops.sft.formats import ReadingOptions, reader_of
from ops.sft.import_mark import ImportMark, begin_import, finish_import, prompts_digest, refuse_other_import
from ops.sft.rendering import Renderer
from ops.sft.run_contents import RunContents
from ops.sft.source import ConversationSource, Examined
from schemas.config import Config
from schemas.errors import ConfigurationError


@dataclass(frozen=True, kw_only=True)
class ConversationRequest:
    """What is to be read, and how."""

    path: Path
    form: str
    """One of `ops.sft.formats.FORMATS`."""
    options: ReadingOptions = ReadingOptions()
    num_screenshots: int | None = None
    """Latest screenshots that a prompt keeps; None: all."""
    skip_bad: bool = False


_MIB = 2**20


async def import_conversations(request: ConversationRequest, run: RunFolder, config: Config) -> Imported:
    """Nothing is written before everything was looked at; then a folder without a run becomes one.

    Args:
        config: what `ops.sft.agreement.agreed` gives.

    Raises:
        ConfigurationError: a record is bad, and bad ones are not to be skipped; there is none that is good; the disk is too
            small; or they do not go with what the run holds.
    """
    console = Console()
    mark = await run_sync(_mark_of, request, config)
    refuse_other_import(run, mark)
    source = await run_sync(source_of, request, config)
    examined = await _examined(source, run, config)
    for line in examined.findings.told():
        console.print(line, soft_wrap=True, highlight=False, markup=False)
    refuse_bad(examined.findings, request)
    if not examined.num_conversations:
        raise ConfigurationError(f"{request.path} has no record that can be read, so nothing was imported")
    absent = f"{examined.num_absent} of {examined.num_conversations} conversations are to be written"
    console.print(f"{absent}: {examined.num_bytes / _MIB:.1f} MiB", soft_wrap=True, highlight=False, markup=False)
    _make_room(examined, run, config)
    mark = replace(mark, num_conversations=examined.num_conversations)
    begin_import(run, mark)
    done = await _written(source, examined, run, config)
    if done.num_episodes != examined.num_conversations:
        raise ConfigurationError(
            f"{request.path} was changed while it was imported: {mark.command(run)}, once it is whole again"
        )
    finish_import(run, mark)
    console.print(_farewell(examined, done, config), soft_wrap=True, highlight=False, markup=False)
    return done


async def _examined(source: ConversationSource, run: RunFolder, config: Config) -> Examined:
    """Beside what the run holds already, where there is one."""
    with progress_line() as show:

        def progress(so_far: Examined) -> None:
            show(f"looking at records: {so_far.num_conversations} can be read")

        if not run.config.exists():
            return await source.examine(progress)
        async with served(run, config), join(run, config, role="replayer", name="import") as bus:
            return await source.examine(progress, RunContents(bus, subjects_of(config)).holds)


def _make_room(examined: Examined, run: RunFolder, config: Config) -> None:
    """Creates the run where there is none. Raises `ConfigurationError` where it cannot take so many conversations any more."""
    here = 0 if config.bus_config.url else examined.num_bytes
    if not run.config.exists():
        run.create(config, needed_bytes=NEEDED_BYTES + here)
        return
    begun = run.load().feeder_config.num_stored
    if begun and examined.num_absent:
        raise ConfigurationError(
            f"{run.path} trains on {begun} conversations already, and {examined.num_absent} of these are not among them: its "
            "epochs would mix two data sets; import all of them into a run of its own. Nothing was imported"
        )
    run.require_space(here)


def _mark_of(request: ConversationRequest, config: Config) -> ImportMark:
    return ImportMark(
        source=str(request.path),
        form=request.form,
        dataset=request.options.dataset,
        skip_bad=request.skip_bad,
        num_screenshots=request.num_screenshots,
        prompts=prompts_digest(starting_model(config.policy_config)),
    )


async def _written(source: ConversationSource, examined: Examined, run: RunFolder, config: Config) -> Imported:
    """All episodes and then all judgements, which training goes by."""
    judgements: list[StoredJudgement] = []
    with progress_line() as show:
        async with served(run, config), join(run, config, role="replayer", name="import") as bus:
            importer = Importer(bus=bus, subjects=subjects_of(config))
            async for episode in source.episodes(examined):
                await importer.episode(episode)
                judgements += episode.judgements
                show(f"{importer.done.num_episodes} of {examined.num_conversations} conversations written")
            for judgement in judgements:
                await importer.judgement(judgement)
    return importer.done


def source_of(request: ConversationRequest, config: Config) -> ConversationSource:
    """Raises `ConfigurationError` where the run's model cannot be had, which the conversations are rendered for."""
    return ConversationSource(
        path=request.path,
        read=reader_of(request.form),
        options=request.options,
        renderer=Renderer(
            tokenizer=PromptTokenizer(starting_model(config.policy_config)), num_screenshots=request.num_screenshots
        ),
        maker=EpisodeMaker(
            run=config.bus_config.run,
            rubric=config.bus_config.trained_rubric,
            space=ActionSpace.of(config.context_config),
            max_calls=config.context_config.max_calls,
        ),
        cutoff_len=config.algorithm_config.cutoff_len,
        max_bytes=0 if config.bus_config.url else config.bus_config.max_payload_bytes,
    )


def refuse_bad(findings: Findings, request: ConversationRequest) -> None:
    """Raises `ConfigurationError` where there are bad records, and they are not to be skipped."""
    count = len(findings.problems)
    if count and not request.skip_bad:
        raise ConfigurationError(
            f"{count} {'record' if count == 1 else 'records'} of {request.path} cannot be read (listed above): mend them, or "
            "leave them out with --skip-bad; nothing was imported"
        )


def _farewell(examined: Examined, done: Imported, config: Config) -> str:
    skipped = len(examined.findings.problems)
    return (
        f"{examined.num_conversations} conversations with {examined.num_answers} answers ({examined.num_tokens} tokens to "
        f"learn) are in run {config.bus_config.run}: {done.num_records} records written, {done.num_known} were there already"
        + (f", {skipped} bad records skipped" if skipped else "")
    )

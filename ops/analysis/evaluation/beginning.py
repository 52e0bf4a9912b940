"""Makes the folder of an evaluation, or finds it to be this very evaluation's, which goes on."""

from ops.analysis.evaluation.identity import write_identity
from ops.analysis.evaluation.plan import Evaluation, Plan
from ops.archive.durable import write_whole
from ops.console.output_folder import make_output
from ops.run.folder import RunFolder
from schemas.errors import ConfigurationError


def begin_all(evaluation: Evaluation) -> None:
    """Every seed's. Raises `ConfigurationError` as `begin`."""
    if len(evaluation.seeds) > 1 and RunFolder(evaluation.folder).config.exists():
        raise ConfigurationError(f"{evaluation.folder} holds a run: choose another --out")
    for plan in evaluation.plans:
        begin(plan)


def begin(plan: Plan) -> None:
    """Raises:
    ConfigurationError: the folder holds something else, or cannot be written.
    """
    folder, wanted = plan.folder, plan.fingerprint.encode() + b"\n"
    stated = folder.path / "fingerprint"
    try:
        known = stated.read_bytes() if stated.exists() else None
        if known not in (None, wanted):
            raise ConfigurationError(
                f"{folder.path} holds another evaluation (of another model, or with other settings): choose another --out"
            )
        if known is None and folder.config.exists():
            raise ConfigurationError(f"{folder.path} holds a run that is no evaluation: choose another --out")
        # First of all: a folder with a configuration and without this is no evaluation's.
        write_whole(make_output(folder.path) / stated.name, wanted)
        write_identity(folder.path, plan.identity)
        if plan.own_tasks:
            write_whole(make_output(folder.tasks) / plan.tasks_file.name, plan.own_tasks)
    except OSError as error:
        raise ConfigurationError(f"{folder.path} cannot be written ({error.strerror}): choose another --out") from error
    folder.create(plan.config)

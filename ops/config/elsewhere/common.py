"""What every program has that is configured by Hydra: the composition itself."""

from ops.config.elsewhere.conversions import as_text
from ops.config.elsewhere.row import Kind, Row, Said, instead, nothing
from ops.config.elsewhere.written import Written, listed

_WHOLE = "print the whole configuration there (`--cfg job`) and import that"


def _not_read(value: object, written: Written) -> object:
    names = [as_text(each, written) if not isinstance(each, dict) else " ".join(map(str, each)) for each in listed(value)]
    if not names:
        return Said(Kind.SAME, "the files that it names were read along")
    return Said(Kind.INSTEAD, f"{_WHOLE}, or put the files beside it: {', '.join(names)} not read")


COMMON: tuple[Row, ...] = (
    Row("defaults", Kind.INSTEAD, (), f"files beside it are read along; where they are not there, {_WHOLE}", _not_read),
    *nothing("hydra.run.dir hydra.output_subdir hydra.*", "the run's folder has configuration and logs (save_path)"),
    *nothing("hydra.searchpath", "`defaults` names committed recipes and files beside it"),
    *nothing("**._target_", "no class is named by a configuration"),
    *instead("--config-name --config-path --config-dir", _WHOLE),
)

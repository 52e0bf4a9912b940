"""Finds a run's server and the key of a role: in the run's folder, or as its configuration says."""

from pathlib import Path

from bus.access import Access
from bus.address import ServerAddress, inbox_of
from bus.address_file import Whereabouts, address_file, read_whereabouts
from bus.server.embedded import address_of
from bus.server.keys import read_seed
from schemas.bus_config import BusConfig
from schemas.errors import ConfigurationError
from schemas.private_file import require_private


def address_for(server: Path, bus: BusConfig, role: str) -> ServerAddress:
    """`server` is the folder of the run's own server, which counts where no URL is given.

    Raises:
        ConfigurationError: the role's key is not here, or the address cannot be used.
        BusUnavailable: a server that may be on any machine has not said yet on which one it is.
    """
    access = Access.named(role)
    if not bus.url:
        return address_of(server, role=access, run=bus.run)
    credentials = Path(bus.credentials_file).expanduser() if bus.credentials_file else None
    if credentials is not None:
        require_private(credentials)
    file = address_file(bus.url)
    if file is not None and not bus.ca_file:
        raise ConfigurationError(
            f"bus_config.url is {bus.url}, and whoever writes that file names the server: write in bus_config.ca_file the "
            "certificates that vouch for yours"
        )
    where = read_whereabouts(file) if file is not None else Whereabouts(bus.url, server_name="")
    return ServerAddress(
        where.url,
        server_name=where.server_name,
        file=file,
        nkey_seed=read_seed(Path(bus.keys).expanduser(), access) if bus.keys else "",
        credentials_file=credentials,
        ca_file=Path(bus.ca_file).expanduser() if bus.ca_file else None,
        inbox_prefix=inbox_of(access),
    )

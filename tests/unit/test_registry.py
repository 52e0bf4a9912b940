"""A person's own judges: what their functions may say, where they are found, and what is refused."""

import sys
import threading
from collections.abc import Awaitable, Callable
from importlib.metadata import EntryPoint, EntryPoints
from pathlib import Path

import anyio
import pytest

from judges import registry
from judges.episode import JudgedEpisode
from judges.function_judge import Found, FunctionJudge
from judges.judge import Ruling, scored
from judges.registry import find, judge
from schemas.errors import ConfigurationError, JudgeError, NoVerdict
from schemas.messages import StageVerdict, Verdict
from tests import builders
from tests.deadlines import HANGS_S

EPISODE = builders.judged_episode(builders.trajectory(builders.task("t7")))
DETAILED = scored(passed=True, stages=(StageVerdict("price", True, "12.90"),))
MODULE = """
from judges.registry import judge

@judge({name!r})
def own(episode):
    return {value}
"""


def write(path: Path, name: str, value: str = "True", more: str = "") -> str:
    path.write_text(MODULE.format(name=name, value=value) + more)
    return str(path)


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("found", "verdict", "reward"),
    [
        (True, Verdict.SUCCESS, 1.0),
        (False, Verdict.FAILURE, 0.0),
        (1.0, Verdict.SUCCESS, 1.0),
        (1, Verdict.SUCCESS, 1.0),
        (0.99, Verdict.FAILURE, 0.99),
        (0, Verdict.FAILURE, 0.0),
    ],
)
async def test_what_a_function_says_is_a_ruling(found: Found, verdict: Verdict, reward: float) -> None:
    @judge("own_v1")
    def plain(episode: JudgedEpisode) -> Found:
        return found

    @judge("own_v1")
    async def waiting(episode: JudgedEpisode) -> Found:
        return found

    assert plain.name == "own_v1"
    for own in (plain, waiting):
        ruling = await own.judge(EPISODE)
        assert (ruling.verdict, ruling.reward) == (verdict, reward)


@pytest.mark.anyio
async def test_a_function_sees_the_episode_and_may_say_everything() -> None:
    async def late() -> Ruling:
        return DETAILED

    @judge("own_v1")
    def own(episode: JudgedEpisode) -> Ruling:
        assert episode is EPISODE
        assert threading.current_thread() is not threading.main_thread()
        return DETAILED

    @judge("own_v1")
    def later(episode: JudgedEpisode) -> Awaitable[Ruling]:
        return late()

    assert await own.judge(EPISODE) is DETAILED
    assert await later.judge(EPISODE) is DETAILED


@pytest.mark.anyio
@pytest.mark.parametrize("value", [None, "yes", 1.01, -0.5, float("nan"), float("inf"), (True,)])
async def test_what_a_function_may_not_say_is_no_verdict(value: object) -> None:
    def own(episode: JudgedEpisode) -> object:
        return value

    with pytest.raises(NoVerdict, match=r"own_v1 returned .*: return True or False, a reward from 0 to 1, or a Ruling"):
        await judge("own_v1")(own).judge(EPISODE)  # type: ignore[arg-type]


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("raised", "expected", "says"),
    [
        (KeyError("price"), KeyError, "price"),
        (NoVerdict("there is none"), NoVerdict, "there is none"),
    ],
)
async def test_what_a_function_raises_goes_on(raised: Exception, expected: type[Exception], says: str) -> None:
    @judge("own_v1")
    def own(episode: JudgedEpisode) -> bool:
        raise raised

    with pytest.raises(expected, match=says) as caught:
        await own.judge(EPISODE)
    assert type(caught.value) is expected


@pytest.mark.anyio
@pytest.mark.parametrize("is_async", [True, False])
async def test_a_function_without_an_end_is_not_waited_for(is_async: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("judges.function_judge._LIMIT_S", 0.05)
    ends = threading.Event()

    async def waits(_: JudgedEpisode) -> bool:
        await anyio.sleep_forever()
        return True

    endless = FunctionJudge("endless_v1", waits if is_async else lambda _: ends.wait(20))
    with anyio.fail_after(HANGS_S), pytest.raises(JudgeError, match=r"endless_v1 came to no end within 0.05 s"):
        await endless.judge(EPISODE)
    ends.set()


def test_a_name_that_no_subject_holds_is_refused() -> None:
    with pytest.raises(ConfigurationError, match=r"the judge's name 'own.v1' cannot name"):
        judge("own.v1")(lambda episode: True)


@pytest.mark.anyio
async def test_judges_are_found_in_files_and_modules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = write(tmp_path / "prices.py", "prices_v1", more="\nloaded = []\n")
    write(tmp_path / "my_package_of_judges.py", "named_v1", "0.5")
    monkeypatch.syspath_prepend(tmp_path)
    modules = (file, "my_package_of_judges", file)
    prices, named = find("prices_v1", modules), find("named_v1", modules)
    assert ((await prices.judge(EPISODE)).reward, (await named.judge(EPISODE)).reward) == (1.0, 0.5)
    assert find("prices_v1", (str(tmp_path / "." / "prices.py"),)) is prices


def test_a_module_is_loaded_once_and_a_failed_one_again(tmp_path: Path) -> None:
    path = tmp_path / "own.py"
    file = write(path, "own_v1", more="\nraise RuntimeError('not yet')\n")
    with pytest.raises(ConfigurationError, match=r"own\.py cannot be imported: RuntimeError: not yet"):
        find("own_v1", (file,))
    write(path, "own_v1")
    found = find("own_v1", (file,))
    path.unlink()
    path.touch()
    assert find("own_v1", (file,)) is found


def test_judges_of_a_class_and_imported_ones_are_found_once(tmp_path: Path) -> None:
    shared = "\nfrom judges.programmatic.environment import EnvironmentJudge\n"
    file = write(
        tmp_path / "own.py",
        "own_v1",
        more=shared + "class Own(EnvironmentJudge):\n    name = 'class_v1'\n\nof_class = Own()\nagain = own\n",
    )
    assert find("class_v1", (file,), taken=("environment_v1",)).name == "class_v1"
    assert find("own_v1", (file,)).name == "own_v1"
    with pytest.raises(ConfigurationError, match="no judge environment_v1"):
        find("environment_v1", (file,))


@pytest.mark.parametrize(
    ("module", "says"),
    [
        ("no_such_module_anywhere", "ModuleNotFoundError: No module named 'no_such_module_anywhere'"),
        ("/nowhere/judges.py", r"/nowhere/judges.py cannot be imported: FileNotFoundError"),
    ],
)
def test_a_module_that_is_not_there_is_named(module: str, says: str) -> None:
    with pytest.raises(ConfigurationError, match=says):
        find("own_v1", (module,))


def test_an_unknown_name_gets_the_nearest(tmp_path: Path) -> None:
    file = write(tmp_path / "own.py", "right_price_v1")
    with pytest.raises(ConfigurationError) as caught:
        find("right_prize_v1", (file,), taken=("environment_v1",))
    assert str(caught.value) == (
        "judge_config.judge: there is no judge right_prize_v1; did you mean right_price_v1? "
        "Write one of environment_v1, right_price_v1; judge_config.modules names the modules of your own"
    )
    with pytest.raises(ConfigurationError, match=r"^judge_config.judge: there is no judge xyz. Write one of your own;"):
        find("xyz", ())


def test_no_name_stands_for_two_judges(tmp_path: Path) -> None:
    one, two = write(tmp_path / "one.py", "own_v1"), write(tmp_path / "two.py", "own_v1")
    with pytest.raises(ConfigurationError, match=r"one\.py and .*two\.py both have a judge own_v1: rename one"):
        find("own_v1", (one, two))
    more = "\nother = judge('both_v1')(print)\nanother = judge('both_v1')(print)\n"
    with pytest.raises(ConfigurationError, match=r"three\.py has two judges both_v1: rename one"):
        find("own_v1", (write(tmp_path / "three.py", "own_v1", more=more),))
    with pytest.raises(ConfigurationError, match=r"one\.py has a judge own_v1, as there is one already"):
        find("other_v1", (one,), taken=("own_v1",))


Offer = Callable[..., None]


@pytest.fixture
def offer(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Offer:
    """Installs packages: entry points' names and values."""
    write(tmp_path / "offered_judges.py", "offered_v1", more="\nnumber = 5\n")
    (tmp_path / "offered_broken.py").write_text("raise RuntimeError('broken')\n")
    monkeypatch.syspath_prepend(tmp_path)
    for module in ("offered_judges", "offered_broken"):
        monkeypatch.delitem(sys.modules, module, raising=False)

    def install(*offered: tuple[str, str]) -> None:
        points = EntryPoints(EntryPoint(name, value, registry.ENTRY_POINTS) for name, value in offered)
        monkeypatch.setattr(registry, "entry_points", lambda *, group: points.select(group=group))

    return install


@pytest.mark.anyio
async def test_installed_packages_offer_judges(offer: Offer) -> None:
    offer(("offered_v1", "offered_judges:own"), ("offered_v1", "offered_judges:own"), ("broken_v1", "offered_broken:own"))
    assert (await find("offered_v1", ()).judge(EPISODE)).verdict is Verdict.SUCCESS
    with pytest.raises(ConfigurationError, match=r"broken_v1 = offered_broken:own .* cannot be loaded: RuntimeError: broken"):
        find("broken_v1", ())


@pytest.mark.parametrize(
    ("offered", "says"),
    [
        ([("offered_v1", "offered_judges:number")], r"is no judge but 5: decorate it with @judge\('offered_v1'\)"),
        ([("offered_v1", "offered_judges:gone")], "cannot be loaded: AttributeError"),
        ([("offered_v2", "offered_judges:own")], "is the judge offered_v1: both names must be equal"),
        ([("a_v1", "a:own"), ("a_v1", "b:own")], r"two installed packages have a judge a_v1 \(a:own and b:own\)"),
        ([("own_v1", "offered_judges:own")], r"own\.py and an installed package both have a judge own_v1"),
        ([("environment_v1", "offered_judges:own")], "an installed package has a judge environment_v1, as there is one"),
    ],
)
def test_what_a_package_offers_wrongly_is_refused(
    offer: Offer, tmp_path: Path, offered: list[tuple[str, str]], says: str
) -> None:
    offer(*offered)
    own = write(tmp_path / "own.py", "own_v1")
    with pytest.raises(ConfigurationError, match=says):
        find(offered[0][0], (own,), taken=("environment_v1",))

"""Accessibility trees as text, by value."""

from browser_workers.observation.accessibility_text import AccessibleNode, accessibility_text

Nodes = dict[str, AccessibleNode]


def node(role: str, name: str = "", *children: str, **others: object) -> AccessibleNode:
    return AccessibleNode(role, name, children, **others)  # type: ignore[arg-type]


def text(nodes: Nodes, *, rich: bool = False) -> list[str]:
    return accessibility_text(nodes, "root", rich=rich).split("\n")


def test_structure_is_folded_away() -> None:
    nodes = {
        "root": node("RootWebArea", "Shop", "skipped", "list"),
        "skipped": node("none", "", "wrapper", ignored=True),
        "wrapper": node("generic", "", "heading", "image"),
        "heading": node("heading", "Tents", "said again"),
        "said again": node("StaticText", "Tents", "box"),
        "box": node("InlineTextBox", "Tents"),
        "image": node("image"),
        "list": node("list", "", "item", "empty"),
        "item": node("listitem", "", "link"),
        "empty": node("listitem", "", "bullet"),
        "bullet": node("ListMarker", "•"),
        "link": node("link", "Open  \n it"),
    }
    assert text(nodes) == ['document "Shop"', '  heading "Tents"', "  list", "    listitem", '      link "Open it"']


def test_texts_of_one_paragraph_are_one() -> None:
    nodes = {
        "root": node("RootWebArea", "", "paragraph"),
        "paragraph": node("paragraph", "", "a", "bold", "c"),
        "a": node("StaticText", "all"),
        "bold": node("strong", "", "b"),
        "b": node("StaticText", "in one"),
        "c": node("StaticText", "line"),
    }
    assert text(nodes) == ["document", '  text "all in one line"']


def test_of_a_long_name_the_beginning_is_compared() -> None:
    nodes = {
        "root": node("RootWebArea", "", "card"),
        "card": node("group", "words " * 200_000 + "end", "repeated", "own"),
        "repeated": node("StaticText", "words words"),
        "own": node("StaticText", "end"),
    }
    assert text(nodes) == ["document", f'  group "{("words " * 40)[:199]}…"', '    text "end"']


def test_the_rich_form_says_more() -> None:
    nodes = {
        "root": node("RootWebArea", "Form", "field", "link", "card", "plain"),
        "field": node(
            "textbox", "Mail", "typed", states=("required",), value="a@b", description="Work", mark=1, box=(1, 2, 3, 4)
        ),
        "typed": node("StaticText", "a@b"),
        "link": node("link", "Next", url="/next"),
        "card": node("generic", "", "inside", mark=2),
        "inside": node("StaticText", "Card"),
        "plain": node("generic", "", "unmarked"),
        "unmarked": node("StaticText", "Text"),
    }
    assert text(nodes, rich=True) == [
        'document "Form"',
        '  [1] textbox "Mail" required value="a@b" description="Work" box=[1, 2, 3, 4]',
        '  link "Next" url=/next',
        "  [2] generic",
        '    text "Card"',
        '  text "Text"',
    ]
    assert text(nodes) == [
        'document "Form"',
        '  textbox "Mail"',
        '    text "a@b"',
        '  link "Next"',
        '  text "Card"',
        '  text "Text"',
    ]


def test_it_is_bounded_and_says_so() -> None:
    names = [f"n{number}" for number in range(100)]
    nodes = {"root": node("RootWebArea", "", *names), **{name: node("link", name) for name in names}}
    lines = accessibility_text(nodes, "root", rich=False, max_lines=10).split("\n")
    assert len(lines) == 11
    assert lines[-1] == "(91 more lines were left out)"
    short = accessibility_text(nodes, "root", rich=False, max_characters=100)
    assert len(short) < 140
    assert short.endswith("more lines were left out)")
    assert accessibility_text({"root": node("link", "x" * 500)}, "root", rich=False) == f'link "{"x" * 199}…"'


def test_trees_as_deep_as_they_like_and_in_circles() -> None:
    deep = {str(level): node("group", f"g{level}", str(level + 1)) for level in range(5000)}
    lines = accessibility_text({"root": node("RootWebArea", "", "0"), **deep}, "root", rich=False, max_lines=6000).split("\n")
    assert lines[2] == '    group "g1"'
    assert max(len(line) - len(line.lstrip()) for line in lines) == 40
    circle = {"root": node("RootWebArea", "a", "b"), "b": node("group", "b", "root")}
    assert text(circle) == ['document "a"', '  group "b"']
    assert accessibility_text({}, "root", rich=True) == ""

"""Names and notes that would act as code where a table is opened: they only show."""

import csv
import io
import re
import shutil
import subprocess
from dataclasses import replace
from itertools import chain

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from ace_bench.report.escaping import csv_of
from ace_bench.report.figures.style import new_figure, save, styled
from ace_bench.report.records import find_runs
from ace_bench.report.tables.formats import Page, markdown, page_of, printed_grid
from ace_bench.report.tables.formats import csv as table_csv
from ace_bench.report.tables.grids import Grid
from ace_bench.report.tables.latex import latex
from ace_bench.report.tables.own_tables import Layout as Shape
from ace_bench.report.tables.own_tables import own_tables
from ace_bench.report.tables.table import Continuing, Heading
from benchmarks.measuring import Grid as Measurements
from benchmarks.measuring import markdown as benchmark_markdown
from tests.report.paper.test_pivot import ACE, BASE, make

EVIL = (
    "m\n\\input{/etc/passwd}", "\r\\immediate\\write18{id}", "\\\\]", "^^5cinput{x}", "a%\nb", "}\\end{table}", "[x]",
    "*", "$\\frac$", "=cmd|' /C calc'!A0", "+1+cmd|x", "-2+3", "@SUM(A1)", "\t=1", "\r=1", "x;=1", "=", "-3.5", "+4",
    "-1,234.5", "<script>alert(1)</script>", "<http://e.vil>", "![i](http://e.vil/x)", "[a](javascript:b)", "\\[a](b)",
    "[a]: http://e.vil\n", "[a]", "a|b\\|c", "```\n# x", "&lt;b&gt;", "a\u2028\\input x", "\u202eltr", "\x1b[31m", "",
)  # fmt: skip
NAMES = st.lists(st.sampled_from(EVIL) | st.text(max_size=12), max_size=3).map("".join)
ACTIVE = {"html_block", "html_inline", "link_open", "image"}
INERT = re.compile(
    r"\\[&%$#_{}]|\\text(?:backslash|asciitilde|asciicircum)\{\}|\\dag\{\}|\$(?:[<>-]|\\geq|\\leq|\\neq|\\infty|\\(?:up|down)arrow)\$|\\d?dag\{\}|\\S\{\}|\\ace(?:yes|no)\{\}"
)
LAYOUT = re.compile(
    r"\\(?:begin|end)\{(?:table\*?|tabular\*?|threeparttable|tablenotes)\}(?:\[(?:tp|para,flushleft)\])?(?:\{\\linewidth\})?"
    r"(?:\{@\{\}[^\n]*@\{\}\})?|\\caption(?=\{\\textbf\{)|\\textbf(?=\{)|\\label\{[\w:-]*\}|\\item\b"
    r"|\\(?:centering|footnotesize|scriptsize|bfseries|toprule|midrule|bottomrule)\b|\\setlength\{\\tabcolsep\}\{3pt\}"
    r"|\\sisetup\{[\w=, {}-]*\}|\\resizebox\{\\linewidth\}\{!\}\{%|\\shortstack(?:\[l\])?(?=\{)| \\\\(?:\[2pt\])?"
    r"|\\(?:acebounds|tnote|ace(?:better|worse|same))(?=\{)|\\providecommand[^\n]*"
)


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    """A table of a user's own runs."""
    results = tmp_path_factory.mktemp("results")
    make(results, "base", BASE)
    make(results, "ace", ACE)
    return own_tables(find_runs(results).runs, Shape())[0]


def named(table, name):
    """The table with one name in all places that a model, a setting or a user fills."""
    rows = {key: Heading(texts=(name,), fields={**row.fields, "method": name}) for key, row in table.rows.items()}
    columns = {key: Heading(texts=(name,), fields={**one.fields, "task": name}) for key, one in table.columns.items()}
    return replace(table, title=name, rows=rows, columns=columns, names=(name,), base_title=name, notes=(name,))


def page(name):
    grid = Grid(title=f"Results {name}", header=(name, "n"), rows=((name, "-1.5"), ("a", name)))
    return Page(
        title=name,
        label="x",
        grids=(grid,),
        notes=(name, f"as {name}"),
        continuing=Continuing(missing=1, begun=0, commands=(name,)),
    )


def printed_page(table, name):
    """The page of a table as ``latex`` prints it."""
    shown = named(table, name)
    return replace(page_of(shown), grids=(printed_grid(shown),))


@settings(max_examples=40, deadline=None)
@given(name=NAMES)
def test_latex_holds_no_control_sequence_but_the_tables_own(name, table):
    for text in (latex([page(name)]), latex([printed_page(table, name)])):
        body, notes = [], []
        for line in re.split(r"[\n\r]", text):
            (notes if line.startswith("%") else body).append(line)
        assert len(notes) >= 2
        left = INERT.sub("", LAYOUT.sub("", "\n".join(body)))
        assert not re.search(r"[\\%#~^&](?<! & )(?<! &)", left.replace(" & ", " ")), left
        assert "\\\\\n[" not in text
        assert "\\\\\n*" not in text


@settings(max_examples=40, deadline=None)
@given(name=NAMES)
def test_csv_holds_no_formula_and_the_same_numbers(name, table):
    for text, delimiters in ((csv_of([{name: name, "b": name}]), ",;\t"), (table_csv([named(table, name)]), ",")):
        for delimiter in delimiters:
            for cell in chain.from_iterable(csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)):
                word = cell.strip().strip('"')
                assert word[:1] not in tuple("=+-@") or not word.strip("+- ") or number(re.split(r"[,\s]", word)[0]), (
                    cell
                )
    assert "-1.5" in csv_of([{"a": name, "b": -1.5, "c": "-1.5"}]).splitlines()[-1].split(",")[-2:]


def number(word):
    try:
        float(word.replace(",", ""))
    except ValueError:
        return False
    return True


@settings(max_examples=40, deadline=None)
@given(name=NAMES)
@example(name="#")
@example(name="- ## a")
def test_markdown_holds_no_html_link_image_or_further_cell(name, table):
    pages = (
        markdown(page(name)),
        markdown(page_of(named(table, name))),
        benchmark_markdown([Measurements(title=name, headings=(name, "b"), rows=((name, name),), notes=(name,))]),
    )
    for text in pages:
        tokens = MarkdownIt("commonmark").enable("table").parse(text)
        found = {token.type for outer in tokens for token in (outer, *(outer.children or ()))}
        assert not found & ACTIVE, text
        assert sum(token.type == "heading_open" for token in tokens) <= 3
    tokens = MarkdownIt("commonmark").enable("table").parse(pages[0])
    assert sum(token.type in ("td_open", "th_open") for token in tokens) == 6


def test_numbers_of_a_table_stay_numbers(table):
    rows = list(csv.DictReader(io.StringIO(table_csv([table]))))
    assert {float(row["value"]) for row in rows} == {25.0, 70.0}
    assert csv_of([{"a": "-3.5", "b": "-", "c": "=1"}]) == "a,b,c\n-3.5,-,'=1\n"


@pytest.mark.slow
def test_a_name_that_looks_like_a_formula_of_matplotlib_is_drawn_as_it_is(tmp_path):
    with styled():
        figure, (axis,) = new_figure("", height=2.0)
        axis.set_title("costs $\\frac$ and $5")
        assert [file.stat().st_size > 0 for file in save(figure, tmp_path / "f")] == [True, True]


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("pdflatex") is None, reason="pdflatex is not installed")
def test_latex_compiles(table, tmp_path):
    pages = [made for name in (*EVIL, "中文 Ǆ →") if name for made in (printed_page(table, name), page(name))]
    (tmp_path / "t.tex").write_text(latex(pages[::2] + pages[1:16:2], standalone=True))
    command = ["pdflatex", "-halt-on-error", "-interaction=nonstopmode", "t.tex"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-2000:]

"""Figures of `versus` as lines, as a Markdown section and as a chart (SVG that reads on light and dark pages)."""
import os
import re
import sys
from html import escape

MARKS = "<!-- figures: written by tests/bench/versus --from ... --docs -->", "<!-- end of figures -->"


def write(path, text):
    with open(path, "w", encoding="utf-8") as f:
        f.write(text)


def fill(page, marks, body):
    """Put `body` between two lines of a page."""
    with open(page, encoding="utf-8") as f:
        text = f.read()
    begin, end = marks
    if begin not in text or end not in text:
        sys.exit(f"{page} has no lines '{begin}' and '{end}'")
    write(page, text[:text.index(begin) + len(begin)] + "\n\n" + body + "\n" + text[text.index(end):])


def test_name(row):
    parts = [f"pp{row['n_prompt']}"] if row["n_prompt"] else []
    parts += [f"tg{row['n_gen']}"] if row["n_gen"] else []
    return "+".join(parts) + (f" @ {row['depth']}" if row["depth"] else "")


def model_name(file):
    return re.sub(r"\.gguf$", "", file)


def best_peer(row, best=max):
    """The best of the peers' figures, or None. Columns of ours begin with our name."""
    values = [v for k, v in row["best"].items() if not k.startswith("quern")]
    return best(values) if values else None


def ratio(row):
    peer = best_peer(row)
    return row["best"]["quern"] / peer if peer and "quern" in row["best"] else None


def load_ratio(row):
    """How many times faster than the fastest peer."""
    peer = best_peer(row, min)
    return peer / row["best"]["quern"] if peer and "quern" in row["best"] else None


def cell(row, label, form="{:.1f}"):
    if label in row["best"]:
        return form.format(row["best"][label])
    return {None: "-", "has no such test": "n/a"}.get(row["failed"].get(label), "died")


def times(x):
    return f"{x:.2f}" if x else "-"


# ---- while it runs: columns of one width ----

def columns(first, second, values, last):
    return f"{first:36.36s} {second:14s}" + "".join(f" {v:>18.18s}" for v in values) + f" {last:>7s}"


def labels_of(run):
    return [p["label"] for p in run["programs"]]


def heading(run):
    programs = "\n".join(f"  {p['label']}: {p['kind']} {p['version']}" + (f", {' '.join(p['options'])}" if p["options"] else "")
                         for p in run["programs"])
    return f"{run['title']}; best of {run['rounds']} rounds, tokens a second\n{programs}\n\n" + columns("model", "test", labels_of(run), "ratio")


def line(row, labels):
    return columns(model_name(row["model"]), test_name(row), [cell(row, x) for x in labels], times(ratio(row)))


def load_heading(run):
    return "\n" + columns("model", "page cache", [f"{x}, s" for x in labels_of(run)], "ratio")


def load_line(row, labels):
    return columns(model_name(row["model"]), row["page_cache"], [cell(row, x, "{:.3f}") for x in labels], times(load_ratio(row)))


# ---- for a page ----

def table(head, right, rows):
    """A Markdown table; `right`: the first column that is aligned to the right."""
    marks = ["---:" if i >= right else "---" for i in range(len(head))]
    return "\n".join("| " + " | ".join(r) + " |" for r in [head, marks, *rows])


def once(values):
    """Each value where it differs from the one above."""
    last = None
    for v in values:
        yield "" if v == last else v
        last = v


def speed_table(run):
    labels = labels_of(run)
    names = once(model_name(r["model"]) for r in run["rows"])
    rows = [[name, test_name(r), *(cell(r, x) for x in labels), f"**{times(ratio(r))}**"] for name, r in zip(names, run["rows"])]
    return table(["model", "test", *labels, "ratio"], 2, rows)


def load_table(run):
    labels = labels_of(run)
    rows = []
    for name, r in zip(once(model_name(r["model"]) for r in run["load"]), run["load"]):
        quern = r["best"].get("quern")
        rate = f"{r['file_bytes'] / quern / 1e9:.2f}" if quern else "-"
        rows.append([name, r["page_cache"], *(cell(r, x, "{:.3f}") for x in labels), f"**{times(load_ratio(r))}**", rate,
                     *(f"{r['peak_bytes'][x] / 1e6:.0f}" if x in r["peak_bytes"] else "-" for x in labels)])
    return table(["model", "page cache", *(f"{x}, s" for x in labels), "ratio", "quern, GB/s", *(f"{x}, MB" for x in labels)], 2, rows)


def failures(run):
    out = []
    for r in run["rows"] + run["load"]:
        for label, why in r["failed"].items():
            if why != "has no such test":
                what = test_name(r) if "n_prompt" in r else f"loading, page cache {r['page_cache']}"
                out.append(f"- {label} failed at {model_name(r['model'])}, {what}: {why}")
    return "\n".join(out)


def markdown(run, chart=None, figures=None):
    """A section: title, chart, table, how it was measured."""
    m = run["machine"]
    parts = [f"### {run['title']}"]
    if chart:
        parts.append(f"![Bars of the table below, relative to the best peer]({chart})")
    if run["rows"]:
        parts.append("Tokens a second, best of {} rounds; the ratio is to the best peer of the row.".format(run["rounds"]))
        parts.append(speed_table(run))
    if run["load"]:
        parts.append("From the start of the program to its end after one token, and the most memory it had resident:")
        parts.append(load_table(run))
    if failures(run):
        parts.append(failures(run))
    programs = "; ".join(f"{p['label']}: {p['version']}" + (f" with `{' '.join(p['options'])}`" if p["options"] else "") for p in run["programs"])
    parts.append(f"{m['cpu']}, {m['processors']} processors, {m['threads']} threads on cores {', '.join(map(str, m['cores']))}, {m['system']}, "
                 f"{m['date']}; level {run['level']}. {programs}.")
    parts.append(f"```sh\n{run['command']}\n```")
    if figures:
        parts.append(f"All samples: [{os.path.basename(figures)}]({figures}).")
    return "\n\n".join(parts) + "\n"


def beside(page, path):
    """How a page refers to a file."""
    return os.path.relpath(path, os.path.dirname(os.path.abspath(page)))


def write_docs(page, runs):
    """Put sections between the marks of a page, and the charts beside the figures. `runs`: (path of the figures or "", figures)."""
    sections = []
    for path, run in runs:
        chart = figures = None
        if path:
            chart = re.sub(r"\.json$", "", path) + ".svg"
            write(chart, svg(run))
            chart, figures = beside(page, chart), beside(page, path)
        sections.append(markdown(run, chart, figures))
    fill(page, MARKS, "\n".join(sections))


# ---- chart ----

STYLE = """
text { font: 12px system-ui, sans-serif; fill: #1f2328 }
.back { fill: #ffffff } .small, .ratio { paint-order: stroke; stroke: #ffffff; stroke-width: 3px }
.title { font-size: 15px; font-weight: 600 } .model { font-weight: 600 } .ratio { font-weight: 700 } .small { fill: #59636e }
.grid { stroke: #59636e; stroke-opacity: .25 } .one { stroke: #59636e; stroke-opacity: .8 }
.c0 { fill: #1f6feb } .c1 { fill: #8c959f } .c2 { fill: #bf8700 } .c3 { fill: #2da44e } .c4 { fill: #8250df } .c5 { fill: #cf222e }
@media (prefers-color-scheme: dark) {
.back { fill: #0d1117 } .small, .ratio { stroke: #0d1117 }
text { fill: #e6edf3 } .small { fill: #9198a1 } .grid, .one { stroke: #9198a1 }
.c0 { fill: #58a6ff } .c1 { fill: #6e7681 } .c2 { fill: #d29922 } .c3 { fill: #3fb950 } .c4 { fill: #bc8cff } .c5 { fill: #ff7b72 }
}
"""
WIDTH, LEFT, RIGHT, BAR, GAP = 860, 130, 150, 13, 9


class Canvas:
    """Elements of an SVG, from top to bottom."""

    def __init__(self):
        self.parts, self.y = [], 0.0

    def text(self, x, s, kind="", anchor="start", y=None):
        self.parts.append(f'<text x="{x:.1f}" y="{self.y if y is None else y:.1f}" class="{kind}" text-anchor="{anchor}">{escape(s)}</text>')

    def bar(self, width, kind):
        self.parts.append(f'<rect x="{LEFT}" y="{self.y:.1f}" width="{max(width, 1):.1f}" height="{BAR - 2}" rx="2" class="{kind}"/>')

    def line(self, x, top, kind):
        self.parts.append(f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{top:.1f}" y2="{self.y:.1f}" class="{kind}"/>')


def sheet(title, height, parts):
    """The whole file."""
    return (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height:.0f}" width="{WIDTH}" height="{height:.0f}" role="img" '
            f'aria-label="{escape(title, quote=True)}">\n<style>{STYLE}</style>\n<rect width="{WIDTH}" height="{height:.0f}" class="back"/>\n'
            + "\n".join(parts) + "\n</svg>\n")


def legend(c, labels):
    x = float(LEFT)
    for i, label in enumerate(labels):
        c.parts.append(f'<rect x="{x:.1f}" y="{c.y - 10:.1f}" width="11" height="11" rx="2" class="c{i % 6}"/>')
        c.text(x + 16, label)
        x += 32 + 7 * len(label)


def group(c, row, labels, unit):
    """The bars of one test; a bar's length is the figure over the best peer's."""
    peer = best_peer(row) or row["best"].get("quern", 1)
    shown = [(i, x) for i, x in enumerate(labels) if x in row["best"] or row["failed"].get(x) != "has no such test"]
    c.text(LEFT - 10, test_name(row), anchor="end", y=c.y + BAR * len(shown) / 2 + 3)
    for i, label in shown:
        if label in row["best"]:
            width = unit * row["best"][label] / peer
            c.bar(width, f"c{i % 6}")
            told = f"{row['best'][label]:.0f}" if row["best"][label] >= 100 else f"{row['best'][label]:.1f}"
            c.text(LEFT + width + 5, told, "small", y=c.y + BAR - 3)
            if label == "quern" and ratio(row):
                c.text(LEFT + width + 12 + 7 * len(told), f"{ratio(row):.2f} \u00d7", "ratio", y=c.y + BAR - 3)
        else:
            c.text(LEFT + 5, f"{label} died", "small", y=c.y + BAR - 3)
        c.y += BAR
    c.y += GAP


def rows_of(c, run, unit):
    """All bars, under the names of their models."""
    last = None
    for row in run["rows"]:
        if row["model"] != last:
            c.y += 14
            c.text(12, model_name(row["model"]), "model")
            c.y += 8
            last = row["model"]
        group(c, row, labels_of(run), unit)


def svg(run):
    c, bars = Canvas(), Canvas()
    most = max([ratio(r) or 1 for r in run["rows"]] + [1.0])
    unit = (WIDTH - LEFT - RIGHT) / most  # pixels of the best peer's bar
    c.y = 24
    c.text(12, run["title"], "title")
    c.y += 20
    c.text(12, f"tokens a second, best of {run['rounds']}; bars relative to the best peer of the test", "small")
    c.y += 24
    legend(c, labels_of(run))
    bars.y = top = c.y + 18
    rows_of(bars, run, unit)
    c.y = bars.y
    for k in range(1, int(most) + 1, int(most) // 8 + 1):  # under the bars
        c.line(LEFT + unit * k, top, "one" if k == 1 else "grid")
        c.text(LEFT + unit * k, f"{k} \u00d7", "small", "middle", c.y + 14)
    return sheet(run["title"], c.y + 26, c.parts + bars.parts)

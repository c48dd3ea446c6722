"""Figures of `quality` as lines, as a Markdown section and as a chart."""
import math
import re

from report import LEFT, WIDTH, Canvas, beside, fill, once, sheet, table, write

MARKS = "<!-- quality: written by tests/bench/quality --docs -->", "<!-- end of quality -->"
HOW = {"plain": "", "imatrix": "importance data", "gptq": "GPTQ"}
SERIES = (("plain", "c0"), ("imatrix", "c3"), ("gptq", "c4"))
PEER = (("plain", "c1"), ("imatrix", "c2"))


def peer_row(run, row):
    """The peer's figures of the same type, made with the same data or, GPTQ, with as much; None where it has none or takes fewer bytes."""
    for p in (run.get("peer") or {}).get("rows", []):
        if p["type"] == row["type"] and p["imatrix"] == (row["how"] != "plain"):
            return p
    return None


def change(row, peer):
    return f"{100 * (row['kl_mean'] / peer['kl_mean'] - 1):+.0f} %" if peer else ""


def falls_short(run):
    """A sentence for each row that loses more than the peer's, or takes more bytes."""
    out = []
    for row in run["rows"]:
        peer = peer_row(run, row)
        name = row["type"] + (f" with {HOW[row['how']]}" if HOW[row["how"]] else "")
        if peer and row["kl_mean"] > peer["kl_mean"]:
            out.append(f"{name}: KL {row['kl_mean']:.6f}, {run['peer']['name']} {peer['kl_mean']:.6f}")
        if peer and row["file_bytes"] > peer["file_bytes"]:
            out.append(f"{name}: {row['file_bytes']} bytes, {run['peer']['name']} {peer['file_bytes']}")
    return out


# ---- while it runs ----

def line(row, peer):
    other = f"{peer['kl_mean']:10.6f} {change(row, peer):>7s}" if peer else ""
    return (f"{row['type']:8s} {HOW[row['how']]:16s} {row['file_bytes']:>12d} {row['quantize_seconds']:8.2f} s  KL {row['kl_mean']:.6f} "
            f"+- {row['kl_mean_error']:.6f} {other}")


# ---- for a page ----

def number(x, form="{:.4f}"):
    return form.format(x) if x is not None else ""


def rows_sorted(run):
    """By size, then as they are made."""
    order = list(HOW)
    size = {}
    for r in run["rows"]:
        size[r["type"]] = min(size.get(r["type"], r["file_bytes"]), r["file_bytes"])
    return sorted(run["rows"], key=lambda r: (-size[r["type"]], r["type"], order.index(r["how"])))


def loss_table(run):
    name = run["peer"]["name"] if run.get("peer") else None
    head = ["type", "with", "bytes", "bits a weight", "KL, nats", "99 %", "same top", "perplexity"]
    head += [f"{name}: bytes", "KL", "perplexity", "our KL"] if name else []
    rows = []
    ordered = rows_sorted(run)
    for kind, r in zip(once(r["type"] for r in ordered), ordered):
        cells = [kind, HOW[r["how"]], f"{r['file_bytes']:,}", f"{r['bits_per_weight']:.2f}", f"{r['kl_mean']:.4f} ± {r['kl_mean_error']:.4f}",
                 number(r["kl_p99"], "{:.3f}"), f"{r['top1_agreement_percent']:.1f} %", f"{r['perplexity']:.2f}"]
        p = peer_row(run, r)
        if name:
            cells += [f"{p['file_bytes']:,}", f"{p['kl_mean']:.4f} ± {p['kl_mean_error']:.4f}", f"{p['perplexity']:.2f}", f"**{change(r, p)}**"] if p else [""] * 4
        rows.append(cells)
    return table(head, 2, rows)


def speed_table(run):
    ordered = [r for r in rows_sorted(run) if r["how"] == "plain" and "pp" in r]
    if not ordered:
        return ""
    source = {"pp": 0, "tg": 0, **run["source"]}
    rows = [[run["model"]["name"], f"{source['file_bytes'] / 1e6:.0f}", "", "", f"{source['pp']:.0f}", f"{source['tg']:.0f}"]]
    rows += [[r["type"], f"{r['file_bytes'] / 1e6:.0f}", f"{r['quantize_seconds']:.2f}", f"{r['quantize_peak_bytes'] / 1e6:.0f}",
              f"{r['pp']:.0f}", f"{r['tg']:.0f}"] for r in ordered]
    return table(["type", "MB", "quantised in, s", "with memory, MB", "prompt, tokens/s", "tokens/s"], 1, rows)


def markdown(run, chart=None, figures=None):
    m = run["machine"]
    text = f"`{run['text']['name']}`" + (f"; importance data and GPTQ from `{run['calibration']['name']}`" if run.get("calibration") else "")
    parts = [f"![KL divergence by size, and speed]({chart})"] if chart else []
    parts += [f"{run['model']['name']}, {run['text']['bytes']:,} bytes of {text}. Perplexity of the model itself: {run['source']['perplexity']:.2f} "
              f"± {run['source']['perplexity_error']:.2f}.", loss_table(run)]
    speed = speed_table(run)
    if speed:
        parts += [f"{m['cpu']}, {m['threads']} threads, level {m['level']}, {m['date']}:", speed]
    commands = "\n".join(run["command"])
    parts.append(f"```sh\n{commands}\n```")
    if figures:
        parts.append(f"All figures: [{figures.rsplit('/', 1)[-1]}]({figures}).")
    return "\n\n".join(parts) + "\n"


def write_docs(page, path, run):
    chart = re.sub(r"\.json$", "", path) + ".svg"
    write(chart, svg(run))
    fill(page, MARKS, markdown(run, beside(page, chart), beside(page, path)))


# ---- chart: size against divergence, and bars of the speed ----

RIGHT, PLOT = 30, 380


class Axes:
    """Pixels of megabytes and of a logarithm of divergence."""

    def __init__(self, points, top):
        sizes, losses = [p[0] for p in points], [p[1] for p in points]
        margin = max(0.04 * (max(sizes) - min(sizes)), 1e-3 * max(sizes))
        self.lo, self.hi = min(sizes) - margin, max(sizes) + margin
        self.low, self.high = math.log10(min(losses)) - 0.1, math.log10(max(losses)) + 0.1
        self.top = top

    def x(self, size):
        return LEFT + (WIDTH - LEFT - RIGHT) * (size - self.lo) / (self.hi - self.lo)

    def y(self, loss):
        return self.top + PLOT * (self.high - math.log10(loss)) / (self.high - self.low)


def step_of(span):
    """A round step that makes five to ten of a span."""
    power = 10 ** math.floor(math.log10(span / 5))
    return next(k * power for k in (1, 2, 5, 10) if k * power >= span / 8)


def grid(c, axes):
    step = step_of(axes.hi - axes.lo)
    c.y = axes.top + PLOT
    for k in range(math.ceil(axes.lo / step), math.floor(axes.hi / step) + 1):
        c.line(axes.x(k * step), axes.top, "grid")
        c.text(axes.x(k * step), f"{k * step:g}", "small", "middle", c.y + 16)
    c.text((LEFT + WIDTH - RIGHT) / 2, "file, MB", "small", "middle", c.y + 34)
    for power in range(math.floor(axes.low), math.ceil(axes.high) + 1):
        for digit in (1, 2, 5):
            loss = digit * 10.0 ** power
            if not axes.low <= math.log10(loss) <= axes.high:
                continue
            y = axes.y(loss)
            c.parts.append(f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}" class="grid"/>')
            c.text(LEFT - 8, f"{loss:g}", "small", "end", y + 4)


def points_of(run):
    """(MB, divergence, name, class) of every row, the peer's first, so that ours lie above."""
    rows = (run.get("peer") or {}).get("rows", [])
    out = [(r["file_bytes"] / 1e6, r["kl_mean"], "", dict(PEER)["imatrix" if r["imatrix"] else "plain"]) for r in rows]
    named = set()
    for r in sorted(run["rows"], key=lambda r: r["kl_mean"]):  # the best of a type bears the name
        out.append((r["file_bytes"] / 1e6, r["kl_mean"], "" if r["type"] in named else r["type"], dict(SERIES)[r["how"]]))
        named.add(r["type"])
    return out


def scatter(c, run):
    points = points_of(run)
    axes = Axes(points, c.y)
    grid(c, axes)
    for size, loss, _, kind in points:
        c.parts.append(f'<circle cx="{axes.x(size):.1f}" cy="{axes.y(loss):.1f}" r="4.5" class="{kind}"/>')
    taken = []
    for size, loss, name, _ in points:
        x, y = axes.x(size), axes.y(loss)
        if not name:
            continue
        shown = y + 4
        while any(abs(x - a) < 64 and abs(shown - b) < 12 for a, b in taken):
            shown += 4
        taken.append((x, shown))
        right = x > WIDTH - RIGHT - 70
        c.text(x - 8 if right else x + 8, name, "ratio", "end" if right else "start", shown)
    c.y = axes.top + PLOT + 50


def key(c, run):
    x = float(LEFT)
    labels = [("quern" + (f", {HOW[how]}" if HOW[how] else ""), kind) for how, kind in SERIES if any(r["how"] == how for r in run["rows"])]
    if run.get("peer"):
        labels += [(run["peer"]["name"] + (f", {HOW[how]}" if HOW[how] else ""), kind) for how, kind in PEER]
    for label, kind in labels:
        c.parts.append(f'<circle cx="{x + 5:.1f}" cy="{c.y - 4:.1f}" r="4.5" class="{kind}"/>')
        c.text(x + 15, label)
        x += 34 + 6.6 * len(label)


def bars(c, run):
    """Speed of each type, one bar for prompts and one for tokens, over the source's."""
    rows = [r for r in rows_sorted(run) if r["how"] == "plain" and "pp" in r]
    if not rows:
        return
    c.text(12, "Speed, relative to the model that it was made of", "title")
    c.y += 24
    for i, (name, kind) in enumerate((("prompt", "c0"), ("token by token", "c3"))):
        c.parts.append(f'<rect x="{LEFT + 90 * i}" y="{c.y - 10:.1f}" width="11" height="11" rx="2" class="{kind}"/>')
        c.text(LEFT + 90 * i + 16, name)
    c.y += 16
    source, most = run["source"], max(max(r["pp"] / run["source"]["pp"], r["tg"] / run["source"]["tg"]) for r in rows)
    unit = (WIDTH - LEFT - RIGHT - 100) / most
    for r in rows:
        c.text(LEFT - 10, r["type"], anchor="end", y=c.y + 16)
        for what, kind in (("pp", "c0"), ("tg", "c3")):
            width = unit * r[what] / source[what]
            c.bar(width, kind)
            c.text(LEFT + width + 5, f"{r[what]:.0f} tokens/s, {r[what] / source[what]:.2f} ×", "small", y=c.y + 10)
            c.y += 13
        c.y += 7


def svg(run):
    c = Canvas()
    c.y = 24
    c.text(12, f"{run['model']['name']}: KL divergence in nats, by size", "title")
    c.y += 24
    key(c, run)
    c.y += 18
    scatter(c, run)
    c.y += 10
    bars(c, run)
    return sheet(f"{run['model']['name']}: size, divergence, speed", c.y + 16, c.parts)

"""Results and the two ways to show them: aligned text, a line per figure; and Markdown, a column per variant."""
import statistics
from dataclasses import dataclass


@dataclass
class Result:
    row: str
    title: str
    group: str
    variant: str
    column: str     # the variant's title
    unit: str
    value: float    # median
    ratio: float    # to the base of the same round, median of the rounds; None: has none
    low: float      # quartiles of the ratios, or of the values where there is no ratio; None: a single round
    high: float
    target: float   # None: has none
    absolute: bool

    def judged(self):
        return self.value if self.absolute else self.ratio

    def verdict(self):
        if self.target is None or self.judged() is None:
            return ""
        return "met" if self.judged() <= self.target else "missed"


def quartiles(values):
    if len(values) < 2:
        return None, None
    cut = statistics.quantiles(values, n=4, method="inclusive")
    return cut[0], cut[2]


def make(row, variant, samples, base_samples, metric="", title=None, unit=None, target=None, absolute=None):
    values = [sample[metric] for sample in samples if metric in sample]
    absolute = row.absolute if absolute is None else absolute
    value, ratio = statistics.median(values), None
    if base_samples is None or absolute:
        low, high = quartiles(values)
    else:
        ratios = [sample[metric] / base[metric] for sample, base in zip(samples, base_samples)]
        ratio = statistics.median(ratios)
        low, high = quartiles(ratios)
    return Result(row.name, title or row.title, row.group, variant.name, variant.title, unit or row.unit, value, ratio, low,
                  high, target, absolute)


def number(value):
    size = abs(value)
    return f"{value:.2f}" if size < 10 else f"{value:.1f}" if size < 100 else f"{value:,.0f}"


def spread_of(r, between):
    return "" if r.low is None else f"{number(r.low)}{between}{number(r.high)}"


def aligned(results):
    head = ["what", "variant", "median", "ratio", "quartiles", "target", ""]
    lines, last = [head], None
    for r in results:
        if r.ratio is None and not r.absolute:
            spread, ratio = "", "1"
        else:
            spread = spread_of(r, "..")
            ratio = "" if r.ratio is None else number(r.ratio)
        target = "" if r.target is None else f"<= {r.target:g}" + (f" {r.unit}" if r.absolute else "")
        lines.append([r.title if r.title != last else "", r.column, f"{number(r.value)} {r.unit}", ratio, spread, target,
                      r.verdict()])
        last = r.title
    widths = [max(len(line[i]) for line in lines) for i in range(len(head))]
    right = {2, 3, 4}
    return "\n".join("  ".join(cell.rjust(w) if i in right else cell.ljust(w)
                               for i, (cell, w) in enumerate(zip(line, widths))).rstrip() for line in lines)


def cell(r):
    text = f"{number(r.value)} {r.unit}" if r.absolute or r.ratio is None else number(r.ratio)
    if (r.absolute or r.ratio is not None) and r.low is not None:
        text += f" ({spread_of(r, '–')})"
    return f"**{text}**" if r.verdict() == "missed" else text


def markdown(results, skipped):
    """One table per shape: figures that stand for themselves, then ratios. Missed targets are bold."""
    parts = []
    absolute = [r for r in results if r.absolute]
    if absolute:
        parts.append("| what | under | median (quartiles) | target | |\n| --- | --- | ---: | --- | --- |\n" + "\n".join(
            f"| {r.title} | {r.column if r.variant != 'bare' else '—'} | {cell(r)} | "
            f"{'' if r.target is None else f'≤ {r.target:g} {r.unit}'} | {r.verdict()} |" for r in absolute))
    for group in dict.fromkeys(r.group for r in results if not r.absolute):
        mine = [r for r in results if not r.absolute and r.group == group]
        columns = dict.fromkeys(r.variant for r in mine)
        titles = {r.variant: r.column for r in mine}
        lines = ["| what | target | " + " | ".join(titles[c] for c in columns) + " |",
                 "| --- | --- |" + " ---: |" * len(columns)]
        for name in dict.fromkeys((r.row, r.title) for r in mine):
            here = {r.variant: r for r in mine if (r.row, r.title) == name}
            target = next((f"≤ {r.target:g} ×" for r in here.values() if r.target is not None), "")
            cells = [cell(here[c]) if c in here else skipped.get((name[0], c), "") for c in columns]
            lines.append(f"| {name[1]} | {target} | " + " | ".join(cells) + " |")
        parts.append("\n".join(lines))
    return "\n\n".join(parts) + "\n"

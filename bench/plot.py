#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""Draws a result of the bench: plot.py RESULT.json writes RESULT.png and RESULT.svg."""

import json
import math
import pathlib
import sys
import textwrap

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
from matplotlib import ticker

# The host is grey and ring3 blue in every figure, other stacks have the other colours; told
# apart by people who see no red or green, and by shape where there is no colour.
HOST = ["#444444", "#8c8c8c", "#bdbdbd", "#6b6b6b"]
RING3 = ["#0072b2", "#56b4e9", "#003f63", "#8fd0f5", "#2b8cbe"]
PEERS = {"UML 6.1": "#d55e00", "UML 6.12": "#7a3b00", "gVisor": "#e69f00", "lwIP": "#009e73",
         "smoltcp": "#cc79a7", "pasta": "#e69f00", "slirp4netns": "#009e73"}
OTHERS = ["#b8ad1d", "#5e3c99"]
MARKERS = ["s", "o", "^", "D", "v", "P", "X", "*"]


def colours(names):
    """One for each series, by whose it is."""
    left = {"host": list(HOST), "ring3": list(RING3), "": list(OTHERS)}
    found = []
    for name in names:
        if name in PEERS:
            found.append(PEERS[name])
            continue
        kind = next((k for k in ("host", "ring3") if name.startswith(k)), "")
        found.append(left[kind].pop(0))
        left[kind].append(found[-1])
    return found


def spread(point, series, key):
    figures = point["series"].get(series, {}).get(key)
    return figures["spread"] if figures else None


def number(value):
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def tick(value, _place=None):
    """An axis's number: plain, with k and M where it is long."""
    for unit, name in ((1e9, " G"), (1e6, " M"), (1e4, None), (1e3, " k")):
        if abs(value) >= unit:
            return f"{value / 1e3:g} k" if name is None else f"{value / unit:g}{name}"
    return f"{value:g}"


def unit(text):
    return "µs" + text[2:] if text == "us" or text.startswith("us ") else text


def label(axes, x, s):
    """The median, above its bar and in front of the quartiles' line."""
    axes.annotate(number(s["median"]), (x, s["median"]), ha="center", va="bottom", fontsize=7,
                  xytext=(0, 2), textcoords="offset points", zorder=5,
                  bbox={"boxstyle": "square,pad=0.1", "fc": "white", "ec": "none", "alpha": 0.8})


def nothing(axes, x, colour="#a00000"):
    axes.annotate("not measured", (x, 0.02), xycoords=("data", "axes fraction"), rotation=90,
                  ha="center", va="bottom", fontsize=7, color=colour)


def is_number(text):
    try:
        float(text)
    except ValueError:
        return False
    return True


def draw_lines(axes, result, key):
    numeric = all(is_number(p["x"]) for p in result["points"])
    colour = colours(result["series"])
    for at, series in enumerate(result["series"]):
        xs, ys, low, high = [], [], [], []
        for place, point in enumerate(result["points"]):
            s = spread(point, series, key)
            xs.append(float(point["x"]) if numeric else place)
            if s is None:
                # A gap: a line across it would be a measurement.
                for of in (ys, low, high):
                    of.append(math.nan)
                nothing(axes, xs[-1], colour[at])
                continue
            ys.append(s["median"])
            low.append(s["median"] - s["quartiles"][0])
            high.append(s["quartiles"][1] - s["median"])
        axes.errorbar(xs, ys, yerr=[low, high], label=series, capsize=2,
                      color=colour[at], marker=MARKERS[at % len(MARKERS)],
                      markersize=4, linewidth=1.2)
    axes.set_xlabel(result["x"])
    if result["plot"]["log_x"]:
        axes.set_xscale("log", base=2 if numeric else 10)
    if numeric and len(result["points"]) > 24:
        return  # a course of time: matplotlib's ticks
    if numeric:
        places = [float(p["x"]) for p in result["points"]]
        axes.set_xticks(places)
    else:
        places = range(len(result["points"]))
        axes.set_xticks(list(places))
    axes.set_xticklabels([p["x"] for p in result["points"]], rotation=45, fontsize=8)
    axes.minorticks_off()


def errors(s):
    return [[s["median"] - s["quartiles"][0]], [s["quartiles"][1] - s["median"]]]


def draw_single(axes, result, key):
    """One x only: the bars are named."""
    colour = colours(result["series"])
    for at, series in enumerate(result["series"]):
        s = spread(result["points"][0], series, key)
        if s is None:
            nothing(axes, at)
            continue
        axes.bar(at, s["median"], 0.75, yerr=errors(s), capsize=2, color=colour[at])
        label(axes, at, s)
    axes.set_xticks(range(len(result["series"])))
    axes.set_xticklabels(result["series"], rotation=35, ha="right", fontsize=8)
    axes.set_xlim(-0.6, len(result["series"]) - 0.4)
    axes.margins(y=0.12)


def draw_bars(axes, result, key):
    count = len(result["series"])
    colour = colours(result["series"])
    width = 0.8 / count
    for at, series in enumerate(result["series"]):
        named = False
        for place, point in enumerate(result["points"]):
            s = spread(point, series, key)
            x = place + (at - (count - 1) / 2) * width
            if s is None:
                nothing(axes, x)
                continue
            axes.bar(x, s["median"], width * 0.92, yerr=errors(s), capsize=2,
                     color=colour[at], label=None if named else series)
            named = True
            label(axes, x, s)
    axes.set_xticks(range(len(result["points"])))
    names = [p["x"] for p in result["points"]]
    crowded = sum(map(len, names)) > 32
    axes.set_xticklabels(names, fontsize=8, rotation=25 if crowded else 0,
                         ha="right" if crowded else "center")
    axes.set_xlabel(result["x"])
    axes.set_xlim(-0.55, len(result["points"]) - 0.45)
    axes.margins(y=0.12)


def draw_stacked(axes, result, keys):
    """Measures of one unit on top of each other; a bar for each series at each x."""
    shades = plt.get_cmap("tab20").colors
    places, ticks = [], []
    at = 0.0
    named = set()
    for point in result["points"]:
        for series in result["series"]:
            bottom = 0.0
            for place, (key, name) in enumerate(keys):
                s = spread(point, series, key)
                if s is None:
                    continue
                axes.bar(at, s["median"], 0.75, bottom=bottom, color=shades[place],
                         edgecolor="white", linewidth=0.4, label=None if name in named else name)
                named.add(name)
                if s["median"] > 0:
                    bottom += s["median"]
            axes.annotate(number(bottom), (at, bottom), ha="center", va="bottom", fontsize=7)
            places.append(at)
            ticks.append(f"{series}\n{point['x']}")
            at += 1
        at += 0.5
    axes.set_xticks(places)
    axes.set_xticklabels(ticks, fontsize=8)
    axes.margins(y=0.12)


def scale(axes, log):
    """Numbers a person reads; on a log axis between powers of ten too, where there are few."""
    if not log:
        # With room above the highest: margins are of the span, which may be short.
        axes.set_ylim(0, max(axes.get_ylim()[1], axes.dataLim.y1 * 1.08))
        axes.yaxis.set_major_formatter(ticker.FuncFormatter(tick))
        return
    axes.set_yscale("log")
    low, high = axes.get_ylim()
    short = high / low < 100
    axes.yaxis.set_major_locator(ticker.LogLocator(10, subs=(1, 2, 5) if short else (1,)))
    axes.yaxis.set_major_formatter(ticker.FuncFormatter(tick))
    axes.yaxis.set_minor_formatter(ticker.NullFormatter())


def stacked(path, result, shown):
    figure, axes = plt.subplots(figsize=(9.2, 4.6))
    draw_stacked(axes, result, [(m["key"], m["name"]) for m in shown])
    axes.set_ylabel(unit(shown[0]["unit"]))
    axes.set_xlabel(result["x"])
    scale(axes, False)
    axes.spines[["top", "right"]].set_visible(False)
    handles, labels = axes.get_legend_handles_labels()
    axes.legend(handles[::-1], labels[::-1], loc="center left", bbox_to_anchor=(1.0, 0.5),
                fontsize=8, frameon=False)
    finish(path, result, figure, 130, (0, 0, 1, 1))


def finish(path, result, figure, room, inside):
    paper = f" (paper {result['paper']})" if result["paper"] else ""
    figure.suptitle("\n".join(textwrap.wrap(result["title"] + paper, room)), fontsize=10)
    figure.tight_layout(rect=inside)
    for kind in ("png", "svg"):
        figure.savefig(path.with_suffix("." + kind), dpi=110)


def main():
    path = pathlib.Path(sys.argv[1])
    result = json.loads(path.read_text())
    wanted = result["plot"]["measures"]
    shown = [m for m in result["measures"] if (m["key"] in wanted if wanted else not m["plain"])]
    single = len(result["points"]) == 1
    bars = result["plot"]["kind"] == "bars"
    # So that the numbers above bars have room beside each other.
    drawn = len(result["series"]) * (len(result["points"]) if bars else 1)
    width = min(8.0, max(4.6, 0.36 * drawn + 1.0))
    if result["plot"]["kind"] == "stacked":
        return stacked(path, result, shown)
    figure, all_axes = plt.subplots(1, len(shown), squeeze=False,
                                    figsize=(max(6.4, width * len(shown)), 4.2))
    draw = draw_single if single else draw_bars if bars else draw_lines
    for axes, measure in zip(all_axes[0], shown):
        draw(axes, result, measure["key"])
        axes.set_ylabel(f"{measure['name']}, {unit(measure['unit'])}")
        better = "less" if measure["less_is_better"] else "more"
        axes.set_title(f"{better} is better", fontsize=8, color="#555555", loc="right")
        scale(axes, result["plot"]["log_y"])
        axes.grid(axis="y", alpha=0.3)
        axes.spines[["top", "right"]].set_visible(False)
    rows = 0
    named = {}
    for axes in all_axes[0]:
        for handle, name in zip(*axes.get_legend_handles_labels()):
            named.setdefault(name, handle)
    if named and not single:
        labels = sorted(named, key=result["series"].index)
        handles = [named[name] for name in labels]
        columns = min(3 if len(labels) < 5 else 4, len(labels))
        rows = -(-len(labels) // columns)
        figure.legend(handles, labels, loc="lower center", ncol=columns, fontsize=8, frameon=False)
    room = int(15 * max(6.4, width * len(shown))) - 20
    finish(path, result, figure, room, (0, 0.02 + 0.05 * rows, 1, 1))


if __name__ == "__main__":
    main()

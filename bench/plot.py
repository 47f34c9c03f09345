#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""Draws a result of the bench: plot.py RESULT.json writes RESULT.png and RESULT.svg."""

import json
import pathlib
import sys
import textwrap

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt

# Told apart by people who see no red or green, and by shape where there is no colour.
COLOURS = ["#444444", "#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00"]
MARKERS = ["s", "o", "^", "D", "v", "P"]


def spread(point, series, key):
    figures = point["series"].get(series, {}).get(key)
    return figures["spread"] if figures else None


def number(value):
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def is_number(text):
    try:
        float(text)
    except ValueError:
        return False
    return True


def draw_lines(axes, result, key):
    numeric = all(is_number(p["x"]) for p in result["points"])
    for at, series in enumerate(result["series"]):
        xs, ys, low, high = [], [], [], []
        for place, point in enumerate(result["points"]):
            s = spread(point, series, key)
            if s is None:
                continue
            xs.append(float(point["x"]) if numeric else place)
            ys.append(s["median"])
            low.append(s["median"] - s["quartiles"][0])
            high.append(s["quartiles"][1] - s["median"])
        axes.errorbar(xs, ys, yerr=[low, high], label=series, capsize=2,
                      color=COLOURS[at % len(COLOURS)], marker=MARKERS[at % len(MARKERS)],
                      markersize=4, linewidth=1.2)
    axes.set_xlabel(result["x"])
    if result["plot"]["log_x"]:
        axes.set_xscale("log", base=2 if numeric else 10)
    if numeric:
        places = [float(p["x"]) for p in result["points"]]
        axes.set_xticks(places)
    else:
        places = range(len(result["points"]))
        axes.set_xticks(list(places))
    axes.set_xticklabels([p["x"] for p in result["points"]], rotation=45, fontsize=8)
    axes.minorticks_off()


def draw_single(axes, result, key):
    """One x only: the bars are named, the host's are grey."""
    for at, series in enumerate(result["series"]):
        s = spread(result["points"][0], series, key)
        if s is None:
            continue
        errors = [[s["median"] - s["quartiles"][0]], [s["quartiles"][1] - s["median"]]]
        axes.bar(at, s["median"], 0.75, yerr=errors, capsize=2,
                 color=COLOURS[0 if series.startswith("host") else 1])
        axes.annotate(number(s["median"]), (at, s["quartiles"][1]), ha="center", va="bottom",
                      fontsize=7, xytext=(0, 2), textcoords="offset points")
    axes.set_xticks(range(len(result["series"])))
    axes.set_xticklabels(result["series"], rotation=35, ha="right", fontsize=8)
    axes.margins(y=0.12)


def draw_bars(axes, result, key):
    count = len(result["series"])
    width = 0.8 / count
    for at, series in enumerate(result["series"]):
        for place, point in enumerate(result["points"]):
            s = spread(point, series, key)
            if s is None:
                continue
            x = place + (at - (count - 1) / 2) * width
            errors = [[s["median"] - s["quartiles"][0]], [s["quartiles"][1] - s["median"]]]
            axes.bar(x, s["median"], width * 0.92, yerr=errors, capsize=2,
                     color=COLOURS[at % len(COLOURS)], label=series if place == 0 else None)
            axes.annotate(number(s["median"]), (x, s["quartiles"][1]), ha="center",
                          va="bottom", fontsize=7, xytext=(0, 2), textcoords="offset points")
    axes.set_xticks(range(len(result["points"])))
    names = [p["x"] for p in result["points"]]
    crowded = sum(map(len, names)) > 32
    axes.set_xticklabels(names, fontsize=8, rotation=25 if crowded else 0,
                         ha="right" if crowded else "center")
    axes.set_xlabel(result["x"])
    axes.margins(y=0.12)


def main():
    path = pathlib.Path(sys.argv[1])
    result = json.loads(path.read_text())
    wanted = result["plot"]["measures"]
    shown = [m for m in result["measures"] if (m["key"] in wanted if wanted else not m["plain"])]
    figure, all_axes = plt.subplots(1, len(shown), squeeze=False,
                                    figsize=(max(6.4, 4.6 * len(shown)), 4.2))
    single = len(result["points"]) == 1
    bars = result["plot"]["kind"] == "bars"
    draw = draw_single if single else draw_bars if bars else draw_lines
    for axes, measure in zip(all_axes[0], shown):
        draw(axes, result, measure["key"])
        axes.set_ylabel(f"{measure['name']}, {measure['unit']}")
        better = "less" if measure["less_is_better"] else "more"
        axes.set_title(f"{better} is better", fontsize=8, color="#555555", loc="right")
        if result["plot"]["log_y"]:
            axes.set_yscale("log")
        else:
            axes.set_ylim(bottom=0)
        axes.grid(axis="y", alpha=0.3)
        axes.spines[["top", "right"]].set_visible(False)
    rows = 0
    if not single:
        handles, labels = all_axes[0][0].get_legend_handles_labels()
        columns = min(3, len(labels))
        rows = -(-len(labels) // columns)
        figure.legend(handles, labels, loc="lower center", ncol=columns, fontsize=8, frameon=False)
    paper = f" (paper {result['paper']})" if result["paper"] else ""
    figure.suptitle("\n".join(textwrap.wrap(result["title"] + paper, 70 * len(shown))), fontsize=10)
    figure.tight_layout(rect=(0, 0.02 + 0.05 * rows, 1, 1))
    for kind in ("png", "svg"):
        figure.savefig(path.with_suffix("." + kind), dpi=110)


if __name__ == "__main__":
    main()

# SPDX-License-Identifier: GPL-2.0
"""Fenced blocks of the project's pages."""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
#: What an ordinary user of Debian has: nothing from the folders for root. A page that needs these has to say so.
ORDINARY_PATH = "/usr/local/bin:/usr/bin:/bin"
_FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.M | re.S)


def blocks(page, language):
    """Blocks of a language, each with the heading that it stands below."""
    text = (ROOT / page).read_text()
    found = []
    for match in _FENCE.finditer(text):
        headings = re.findall(r"^#+ (.*)$", re.sub(r"(?ms)^```.*?^```$", "", text[: match.start()]), re.M)
        if match[1] == language:
            found.append((headings[-1] if headings else "", match[2]))
    return found


def block(page, language, heading):
    """The one block of a language below a heading."""
    (found,) = [text for under, text in blocks(page, language) if under == heading]
    return found


def preparation(page):
    """What a page's head tells the reader to type first, in the source folder."""
    found = re.findall(r"`(export PATH=[^`]*)`", (ROOT / page).read_text())
    return found[0] if found else ""


#: How a block is run, where that is not by an ordinary user who pastes it; test_shell_pages.py says what each means.
_MARK = re.compile(r"<!-- (network|perf|ssh|seeds|root|root, until it is ended|run by [^>]*?|not run: [^>]*?) -->\n+$")


def shell_blocks(page):
    """Blocks to be pasted into a shell: heading, text, and what the comment in front of them says."""
    text = (ROOT / page).read_text()
    for match in _FENCE.finditer(text):
        if match[1] == "sh":
            before = text[: match.start()]
            heading = (re.findall(r"^#+ (.*)$", re.sub(r"(?ms)^```.*?^```$", "", before), re.M) or [""])[-1]
            mark = _MARK.search(before)
            assert mark or not before.rstrip().endswith("-->"), f"{page}: {before[-100:]}: a mark that is not known"
            yield heading, match[2], mark[1] if mark else ""

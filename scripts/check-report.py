#!/usr/bin/env python3
"""Checks the folder that `resnet-cifar compare --report` wrote: whole, sound, and in need of nobody.

    check-report.py DIR
"""

import json
import re
import sys
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

CHARTS = ("tradeoff.svg", "memory.svg", "resident.svg", "waits.svg")
# Elements of HTML that have no end.
VOID = {"meta", "br", "hr", "img", "link", "input"}
SVG = "{http://www.w3.org/2000/svg}"


class Page(HTMLParser):
    """Notes elements that are left open, and whatever would ask somebody else."""

    def __init__(self):
        super().__init__()
        self.open, self.faults = [], []

    def handle_starttag(self, tag, attrs):
        if tag not in VOID:
            self.open.append(tag)
        foreign = [name for name, _ in attrs if name in ("src", "href", "srcset", "action")]
        if foreign or tag in ("script", "link", "iframe"):
            self.faults.append(f"<{tag}> with {foreign} asks for something else")

    def handle_endtag(self, tag):
        if not self.open or self.open.pop() != tag:
            self.faults.append(f"</{tag}> ends nothing")


def chart_faults(path):
    try:
        root = ElementTree.parse(path).getroot()
    except ElementTree.ParseError as error:
        return [f"{path.name} is no XML: {error}"]
    faults = []
    if root.tag != f"{SVG}svg":
        faults.append(f"{path.name} begins with {root.tag}")
    if root.find(f"{SVG}title") is None:
        faults.append(f"{path.name} has no title")
    numbers = [value for element in root.iter() for value in element.attrib.values()]
    if any(re.search(r"NaN|inf", value) for value in numbers):
        faults.append(f"{path.name} has a place that is no number")
    return faults


def check(folder):
    """All faults, one line each."""
    wanted = {"index.html", "report.md", "rows.json", *CHARTS}
    found = {path.name for path in folder.iterdir()}
    if found != wanted:
        return [f"holds {sorted(found)}, wanted {sorted(wanted)}"]
    names = [row["name"] for row in json.loads((folder / "rows.json").read_text())]
    page, faults = Page(), []
    text = (folder / "index.html").read_text()
    page.feed(text)
    page.close()
    faults += [f"index.html: {fault}" for fault in page.faults]
    if page.open:
        faults.append(f"index.html leaves {page.open} open")
    if "://" in text:
        faults.append("index.html names an address")
    markdown = (folder / "report.md").read_text()
    for name in names:
        if name not in text or name not in markdown:
            faults.append(f"{name} is not in index.html and report.md")
    return faults + [fault for chart in CHARTS for fault in chart_faults(folder / chart)]


def main():
    folder = Path(sys.argv[1])
    faults = check(folder)
    print("\n".join(faults) if faults else f"{folder.name} holds a whole report")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())

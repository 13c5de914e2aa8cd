"""A directive that draws a step of a recording: what the host did, what ran on the device, who owns each instant."""

from collections.abc import Iterable
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import ClassVar

import numpy as np
from docutils import nodes
from docutils.parsers.rst import directives
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective
from sphinx.util.typing import ExtensionMetadata

from traceaudit.ingest import read
from traceaudit.model import intervals
from traceaudit.model.activity import Activity, ThreadActivity
from traceaudit.model.deviceview import DeviceView, device_views
from traceaudit.model.occupancy import Owner
from traceaudit.model.options import Selection, StepOptions
from traceaudit.model.pieces import cut
from traceaudit.model.schema import I64, Kind

ROOT = Path(__file__).parents[2]
WIDTH, LEFT, STRIP, GAP = 960, 88, 26, 10
LEAST_PX = 0.15

DEVICE = {"compute": "#3b78b5", "comm": "#8457b2", "copies": "#2f9e8f"}
ACCOUNTS = {
    "compute": "#3b78b5",
    "exposed comm": "#8457b2",
    "exposed copy": "#2f9e8f",
    "idle graph": "#b9c4d0",
    "launch call": "#f2b134",
    "delivery": "#f5d590",
    "turnaround": "#ddd5bd",
    "idle host": "#d1495b",
    "unknown": "#444444",
}
HOST = {
    "schedule": "#8c1c3f",
    "framework": "#e08e79",
    "launch_api": "#f2b134",
    "sync": "#6c8ead",
    "python": "#c9ada1",
    "annotation": "#a44a3f",
    "other_api": "#9a8c98",
    "profiler": "#222222",
    "unrecorded": "#e9e4df",
}


@dataclass(frozen=True)
class Strip:
    """Stretches of one row of the picture, by the name of their colour."""

    title: str
    colours: dict[str, str]
    stretches: list[tuple[int, int, str]]


class StepPicture(SphinxDirective):
    """Draw one step of a recording in `traces/` as an SVG."""

    required_arguments = 1
    option_spec: ClassVar = {"step": directives.nonnegative_int, "caption": directives.unchanged}

    def run(self) -> list[nodes.Node]:
        path = ROOT / "traces" / self.arguments[0]
        self.env.note_dependency(str(path))
        view = next(device_views(read(str(path)), StepOptions(), Selection()))
        picture = draw(view, self.options.get("step", 1))
        caption = self.options.get("caption", self.arguments[0])
        return [nodes.raw("", f"<figure>{picture}<figcaption>{escape(caption)}</figcaption></figure>", format="html")]


def draw(view: DeviceView, step: int) -> str:
    """Return the SVG of a step's window."""
    begin, end = (int(edge) for edge in view.windows.edge_ns[step : step + 2])
    strips = [_host(view, begin, end), _device(view, begin, end), _owners(view, step)]
    body = [_strip(strip, GAP + i * (STRIP + GAP), begin, end) for i, strip in enumerate(strips)]
    used = {name: colour for strip in strips for name, colour in strip.colours.items() if _holds(strip, name)}
    body.append(_axis(GAP + len(strips) * (STRIP + GAP), (end - begin) / 1e6))
    legend, lines = _legend(used, GAP + len(strips) * (STRIP + GAP) + 38)
    body.append(legend)
    height = GAP + len(strips) * (STRIP + GAP) + 26 + 20 * lines
    return (
        f'<svg viewBox="0 0 {WIDTH} {height}" role="img" style="width:100%;background:#fff" font-family="sans-serif" '
        f'font-size="12">{"".join(body)}</svg>'
    )


def _holds(strip: Strip, name: str) -> bool:
    return any(kind == name for _, _, kind in strip.stretches)


def _host(view: DeviceView, begin: int, end: int) -> Strip:
    activity = ThreadActivity(view, StepOptions())
    parts = activity.cut(np.array([activity.main_thread]), np.array([begin]), np.array([end]))
    names = [activity.value if activity.value in HOST else "python" for activity in Activity]
    rows = zip(parts.start_ns.tolist(), parts.end_ns.tolist(), (names[i] for i in parts.activity), strict=True)
    return Strip("host", HOST, sorted(rows))


def _device(view: DeviceView, begin: int, end: int) -> Strip:
    kinds = ((Kind.MEMCPY, "copies"), (Kind.MEMSET, "copies"), (Kind.COMM, "comm"), (Kind.COMPUTE, "compute"))
    stretches: list[tuple[int, int, str]] = []
    for kind, name in kinds:
        mine = view.ops.kind == kind
        inside = intervals.clip(intervals.union(view.ops.start_ns[mine], view.ops.end_ns[mine]), begin, end)
        stretches += _triples(inside.start, inside.end, [name] * len(inside.start))
    return Strip("device", DEVICE, stretches)


def _owners(view: DeviceView, step: int) -> Strip:
    pieces = cut(view.occupancy, view.windows.edge_ns[step : step + 2])
    names = list(ACCOUNTS)
    order = [Owner.COMPUTE, Owner.EXPOSED_COMM, Owner.EXPOSED_COPY, Owner.IDLE_GRAPH, Owner.LAUNCH_CALL]
    order += [Owner.DELIVERY, Owner.TURNAROUND, Owner.IDLE_HOST, Owner.IDLE_UNKNOWN]
    of_owner = {int(owner): name for owner, name in zip(order, names, strict=True)}
    owners = (of_owner[owner] for owner in pieces.owner.tolist())
    return Strip("account", ACCOUNTS, _triples(pieces.start_ns, pieces.end_ns, owners))


def _triples(start: I64, end: I64, names: Iterable[str]) -> list[tuple[int, int, str]]:
    return list(zip(start.tolist(), end.tolist(), names, strict=True))


def _strip(strip: Strip, top: int, begin: int, end: int) -> str:
    scale = (WIDTH - LEFT - GAP) / max(end - begin, 1)
    boxes = [
        f'<rect x="{LEFT + (a - begin) * scale:.2f}" y="{top}" width="{max((b - a) * scale, LEAST_PX):.2f}" '
        f'height="{STRIP}" fill="{strip.colours[name]}"/>'
        for a, b, name in strip.stretches
    ]
    title = f'<text x="{LEFT - 8}" y="{top + STRIP / 2 + 4}" text-anchor="end" fill="#222">{strip.title}</text>'
    return title + "".join(boxes)


def _axis(top: int, length_ms: float) -> str:
    right = WIDTH - GAP
    return (
        f'<line x1="{LEFT}" y1="{top}" x2="{right}" y2="{top}" stroke="#888"/>'
        f'<text x="{LEFT}" y="{top + 15}" fill="#444">0</text>'
        f'<text x="{right}" y="{top + 15}" text-anchor="end" fill="#444">{length_ms:.3f} ms</text>'
    )


def _legend(colours: dict[str, str], baseline: int) -> tuple[str, int]:
    """Return the legend and how many lines it takes."""
    parts, x, line = [], LEFT, 0
    for name, colour in colours.items():
        text = name.replace("_", " ")
        width = 26 + 7 * len(text)
        if x + width > WIDTH:
            x, line = LEFT, line + 1
        y = baseline + 20 * line
        parts.append(f'<rect x="{x}" y="{y - 10}" width="11" height="11" fill="{colour}"/>')
        parts.append(f'<text x="{x + 15}" y="{y}" fill="#222">{escape(text)}</text>')
        x += width
    return "".join(parts), line + 1


def setup(app: Sphinx) -> ExtensionMetadata:
    """Register the directive."""
    app.add_directive("step-picture", StepPicture)
    return {"parallel_read_safe": True, "parallel_write_safe": True}

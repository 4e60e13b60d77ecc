"""``/statusz``: one page for people. No script, nothing from elsewhere; JSON for those who ask for it."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from html import escape
from typing import Any

from kubeloop.manager.http import Handler, Reply, Request

_STYLE = """
:root { color-scheme: light dark; --line: #8884; --dim: #777; --card: #8881; --good: #1a7f37; --bad: #c62828;
  --wait: #b26a00 }
@media (prefers-color-scheme: dark) { :root { --dim: #999; --good: #4cc46c; --bad: #ff7b72;
  --wait: #e3a03c } }
* { box-sizing: border-box }
body { font: 15px/1.45 system-ui, sans-serif; margin: 0 auto; padding: 1.2rem; max-width: 72rem }
h1 { font-size: 1.35rem; margin: 0 } h2 { font-size: 1.05rem; margin: 1.8rem 0 .5rem }
h3 { font-size: .95rem; margin: 1.2rem 0 .4rem }
p { margin: .2rem 0 } .dim { color: var(--dim) } .good { color: var(--good) } .bad { color: var(--bad) }
.wait { color: var(--wait) }
.cards { display: flex; flex-wrap: wrap; gap: .6rem }
.card { background: var(--card); border-radius: .5rem; padding: .5rem .9rem; min-width: 6.5rem }
.card b { display: block; font-size: 1.3rem; font-variant-numeric: tabular-nums }
.wide { overflow-x: auto }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums }
th, td { text-align: left; padding: .3rem .8rem .3rem 0; border-bottom: 1px solid var(--line);
  vertical-align: top; overflow-wrap: break-word; max-width: 24rem }
td:last-child { overflow-wrap: anywhere; max-width: none }
th { font-weight: 600; color: var(--dim); font-size: .85rem; white-space: nowrap }
td.n, th.n { text-align: right; white-space: nowrap; padding-right: 1.4rem }
svg { width: 100%; height: auto; display: block } svg text { font-size: 11px; fill: var(--dim) }
svg circle { r: 2.6px } svg line { stroke: var(--line) }
.done { fill: var(--good) } .failed { fill: var(--bad) }
.blocked, .terminal { fill: var(--wait) } .gone { fill: var(--dim) }
@media (max-width: 34rem) { svg text { font-size: 20px } svg circle { r: 3.4px }
  body { padding: .8rem; font-size: 14px } th, td { padding-right: .5rem }
  table.stack thead { display: none } table.stack td { display: block; border: 0; padding: .05rem 0;
  text-align: left } table.stack tr { display: block; border-bottom: 1px solid var(--line); padding: .4rem 0 }
  table.stack td[data-h]::before { content: attr(data-h) " "; color: var(--dim) } table.stack td:empty {
  display: none } }
"""

_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'",
    "Referrer-Policy": "no-referrer",
    "Vary": "Accept",
}

Row = Sequence[tuple[str, str]]
"""Cells as (class, HTML)."""


def statusz(read: Callable[[], Mapping[str, Any]]) -> Handler:
    """The handler; `read` gives the state (see `kubeloop.manager.state`)."""

    def answer(request: Request) -> Reply:
        state = read()
        accept = request.headers.get("accept", "")
        if "json" in accept and "html" not in accept:
            body = json.dumps(state, ensure_ascii=False, indent=2).encode("utf-8", "replace")
            return Reply(body + b"\n", "application/json", headers=_HEADERS)
        return Reply(page(state).encode("utf-8", "replace"), "text/html; charset=utf-8", headers=_HEADERS)

    return answer


def page(state: Mapping[str, Any]) -> str:
    """The page as HTML."""
    about: Mapping[str, str] = state["about"]
    name = about.get("name", "operator")
    rest = " · ".join(escape(value) for key, value in about.items() if key != "name")
    leader = state["leader"]
    colour = "good" if leader["leads"] else "wait"
    parts = [
        "<!doctype html><html lang=en><head><meta charset=utf-8>",
        '<meta name=viewport content="width=device-width, initial-scale=1">',
        '<meta http-equiv=refresh content=15><link rel=icon href="data:,">',
        f"<title>{escape(name)}</title><style>{_STYLE}</style></head><body>",
        f"<h1>{escape(name)}</h1><p class=dim>{rest} · up {_ago(state['uptimeSeconds'])}</p>",
        f"<p class={colour}>{escape(leader['text'])}</p>",
        "<p class=bad>stopping</p>" if state["stopping"] else "",
        "<h2>Informers</h2>",
        _table(
            ("Kind", "Namespace", "State", "#Objects", "#Last news", "Trouble"),
            (_informer(row) for row in state["informers"]),
        ),
    ]
    for controller in state["controllers"]:
        parts += _controller(controller)
    parts.append("</body></html>\n")
    return "".join(parts)


def _informer(row: Mapping[str, Any]) -> Row:
    good = row["synced"] and row["alive"] and not row["error"]
    phase = row["phase"] if row["alive"] else "dead"
    trouble = row["error"] or ""
    if row["undecodable"]:
        trouble = f"{trouble} {row['undecodable']} unreadable".strip()
    silence = row["silenceSeconds"]
    return (
        ("", escape(row["kind"])),
        ("", escape(row["namespace"] or "all")),
        ("good" if good else "bad", escape(phase if row["synced"] else f"not synced, {phase}")),
        ("n", str(row["objects"])),
        ("n", "never" if silence is None else f"{_ago(silence)} ago"),
        ("bad", escape(trouble)),
    )


def _controller(controller: Mapping[str, Any]) -> Iterable[str]:
    queue = controller["queue"]
    cards = [
        ("waiting", queue["ready"], ""),
        ("delayed", queue["delayed"], ""),
        ("in work", f"{len(controller['busy'])} / {controller['workers']}", ""),
        ("failing", controller["failingInAll"], "bad" if controller["failingInAll"] else ""),
        ("stuck", controller["stuck"], "bad" if controller["stuck"] else ""),
    ]
    yield f"<h2>Controller {escape(controller['name'])}</h2><div class=cards>"
    for label, value, colour in cards:
        yield f"<div class=card><b class='{colour}'>{value}</b><span class=dim>{label}</span></div>"
    yield "</div><h3>Recent reconciles</h3>"
    yield latency_plot(controller["recent"])
    if controller["failing"]:
        more = controller["failingInAll"] - len(controller["failing"])
        yield "<h3>Failing</h3>"
        yield _table(
            ("Object", "How", "#Times", "Since", "Last error"),
            (
                (
                    ("", escape(row["object"])),
                    ("bad" if row["end"] == "failed" else "wait", escape(row["end"])),
                    ("n", str(row["times"])),
                    ("", escape(row["since"])),
                    ("", escape(row["error"])),
                )
                for row in controller["failing"]
            ),
        )
        yield f"<p class=dim>and {more} more</p>" if more > 0 else ""
    if controller["busy"]:
        yield "<h3>In work</h3>"
        yield _table(
            ("Object", "#For"),
            (
                (("", escape(row["object"])), ("n", _duration(row["seconds"])))
                for row in controller["busy"][:10]
            ),
        )
    if controller["slowest"]:
        yield f"<h3>Slowest of the last {len(controller['recent'])}</h3>"
        yield _table(
            ("Object", "#Took", "#Writes", "How", "#When"),
            (
                (
                    ("", escape(row["object"])),
                    ("n", _duration(row["seconds"])),
                    ("n", str(row["writes"])),
                    ("", escape(row["end"])),
                    ("n", f"{_ago(row['secondsAgo'])} ago"),
                )
                for row in controller["slowest"]
            ),
        )


def latency_plot(recent: Sequence[Mapping[str, Any]]) -> str:
    """How long the newest reconciles took, oldest at the left, on a logarithmic scale, as SVG."""
    if not recent:
        return "<p class=dim>none yet</p>"
    width, height, left, bottom = 720, 190, 84, 24
    lowest = math.floor(math.log10(max(min(r["seconds"] for r in recent), 1e-5)))
    highest = max(math.ceil(math.log10(max(max(r["seconds"] for r in recent), 1e-5))), lowest + 1)

    def y(seconds: float) -> float:
        share = (math.log10(max(seconds, 10.0**lowest)) - lowest) / (highest - lowest)
        return height - bottom - share * (height - bottom - 10)

    step = (width - left - 10) / max(len(recent) - 1, 1)
    parts = [f'<svg viewBox="0 0 {width} {height}" role=img aria-label="time taken by recent reconciles">']
    for exponent in range(lowest, highest + 1):
        at = y(10.0**exponent)
        parts.append(f"<line x1={left} x2={width} y1={at:.1f} y2={at:.1f} />")
        parts.append(f"<text x={left - 6} y={at + 4:.1f} text-anchor=end>{_duration(10.0**exponent)}</text>")
    for number, row in enumerate(recent):
        title = escape(f"{row['object']}: {row['end']}, {_duration(row['seconds'])}", quote=True)
        parts.append(
            f"<circle class={row['end']} cx={left + 5 + number * step:.1f} cy={y(row['seconds']):.1f}>"
            f"<title>{title}</title></circle>"
        )
    first, last = recent[0]["secondsAgo"], recent[-1]["secondsAgo"]
    parts.append(f"<text x={left} y={height - 6}>{_ago(first)} ago</text>")
    if len(recent) > 1:
        parts.append(f"<text x={width} y={height - 6} text-anchor=end>{_ago(last)} ago</text>")
    return "".join([*parts, "</svg>"])


def _table(header: Sequence[str], rows: Iterable[Row]) -> str:
    """A heading that begins with # is of numbers."""
    names = [name.lstrip("#") for name in header]
    numeric = [" class=n" if name.startswith("#") else "" for name in header]
    head = "".join(f"<th{css}>{escape(name)}</th>" for css, name in zip(numeric, names, strict=True))
    body = "".join(
        "<tr>"
        + "".join(
            f"<td class='{css}'{f' data-h={chr(34)}{names[n]}{chr(34)}' if n else ''}>{html}</td>"
            for n, (css, html) in enumerate(row)
        )
        + "</tr>"
        for row in rows
    )
    table = f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody>"
    return f"<div class=wide><table class=stack>{table}</table></div>"


def _duration(seconds: float) -> str:
    if seconds < 0.001:
        return f"{seconds * 1e6:.0f} µs"
    if seconds < 1:
        return f"{seconds * 1e3:.3g} ms"
    return f"{seconds:.3g} s" if seconds < 120 else _ago(seconds)


def _ago(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:.0f} s"
    if seconds < 7200:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.0f} h" if seconds < 172_800 else f"{seconds / 86_400:.0f} d"

#!/usr/bin/env python3
"""Opens every page of the site (target/site, `make docs`) in a browser: 400 and 1400 pixels wide, light and dark.

Rejects pages that scroll horizontally, messages of errors on the console, requests that fail or leave the site,
pictures that do not load, and text whose contrast with its background is below 4.5 (3 for large text, WCAG 2.1 AA).
Writes screenshots with --screenshots.

    scripts/check-site.py [--browser FILE] [--screenshots FOLDER] [PAGE ...]

Needs the package playwright and Chromium (Debian: chromium).
"""

import argparse
import contextlib
import functools
import http.server
import shutil
import sys
import threading
from pathlib import Path

from playwright.sync_api import Browser, sync_playwright

ROOT = Path(__file__).resolve().parent.parent
SITE = ROOT / "target" / "site"
WIDTHS = (400, 1400)
#: How the site stores a reader's choice of colours.
SCHEMES = {"light": (0, "default"), "dark": (1, "slate")}
#: Elements wider than the window, unless something around them scrolls or hides them; and pictures that are missing.
INSPECT = """() => {
    const wide = document.documentElement.clientWidth, found = [];
    if (document.documentElement.scrollWidth > wide)
        found.push(`scrolls horizontally: ${document.documentElement.scrollWidth} px of ${wide}`);
    for (const image of document.images)
        if (image.checkVisibility() && !(image.complete && image.naturalWidth > 0))
            found.push(`no picture: ${image.src}`);
    const clips = (element) => {
        for (let one = element.parentElement; one; one = one.parentElement)
            if (getComputedStyle(one).overflowX != "visible") return true;
        return false;
    };
    for (const element of document.querySelectorAll("article *"))
        if (element.getBoundingClientRect().right > wide + 1 && !clips(element)) {
            found.push(`too wide: <${element.tagName.toLowerCase()}> ${element.textContent.trim().slice(0, 40)}`);
            break;
        }
    const numbers = (text) => (text.match(/[\\d.]+/g) || []).map(Number);
    const over = (front, back) => {
        const alpha = front[3] ?? 1;
        return [0, 1, 2].map((i) => front[i] * alpha + back[i] * (1 - alpha));
    };
    const background = (element) => {
        const layers = [];
        for (let one = element; one; one = one.parentElement)
            layers.push(numbers(getComputedStyle(one).backgroundColor));
        return layers.reverse().reduce((back, front) => over(front, back), [255, 255, 255]);
    };
    const light = (colour) => colour.slice(0, 3).map((v) => v / 255)
        .map((v) => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
        .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
    const pale = new Map();
    for (const element of document.querySelectorAll("article *, nav a")) {
        const own = [...element.childNodes].some((node) => node.nodeType == 3 && node.textContent.trim());
        if (!own || !element.checkVisibility({opacityProperty: true, visibilityProperty: true})) continue;
        if (element.closest(".headerlink, button, .md-clipboard, svg")) continue;
        const style = getComputedStyle(element), back = background(element);
        const front = over(numbers(style.color), back);
        const [dark, bright] = [light(front), light(back)].sort((a, b) => a - b);
        const ratio = (bright + 0.05) / (dark + 0.05), size = parseFloat(style.fontSize);
        const large = size >= 24 || size >= 18.66 && style.fontWeight >= 700;
        if (ratio < (large ? 2.995 : 4.495))
            pale.set(`contrast ${ratio.toFixed(2)}: ${style.color} on ${back.map(Math.round)}`,
                     element.textContent.trim().slice(0, 30));
    }
    for (const [what, text] of pale) found.push(`${what}: "${text}"`);
    return found;
}"""


@contextlib.contextmanager
def served():
    """The site over HTTP on loopback; yields its address."""
    handler = functools.partial(type("Quiet", (http.server.SimpleHTTPRequestHandler,),
                                     {"log_message": lambda *_: None}), directory=SITE)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()


def check(browser: Browser, address: str, pages: list[str], width: int, scheme: str, folder: Path | None):
    """(page, complaint) of all pages at this width, in these colours."""
    context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)
    index, name = SCHEMES[scheme]
    context.add_init_script("localStorage.setItem('/.__palette', "
                            f"JSON.stringify({{index: {index}, color: {{scheme: '{name}'}}}}))")
    complaints: list[str] = []

    def route(route):
        if route.request.url.startswith((address, "data:", "blob:")):
            route.continue_()
        else:
            complaints.append(f"asks another site: {route.request.url}")
            route.fulfill(status=204)

    context.route("**/*", route)
    tab = context.new_page()
    tab.on("console", lambda message: message.type in ("error", "warning") and complaints.append(message.text))
    tab.on("pageerror", lambda error: complaints.append(str(error)))
    tab.on("requestfailed", lambda request: complaints.append(f"failed: {request.url}"))
    for page in pages:
        tab.goto(address + page, wait_until="load")
        background = tab.evaluate("getComputedStyle(document.body).backgroundColor")
        if (background == "rgb(255, 255, 255)") != (scheme == "light"):
            complaints.append(f"is not {scheme}: {background}")
        complaints += tab.evaluate(INSPECT)
        if folder:
            name = page.strip("/").replace("/", "-") or "index"
            tab.screenshot(path=folder / f"{name}-{width}-{scheme}.png", full_page=False)
        yield from ((page, one) for one in complaints)
        complaints.clear()
    context.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--browser", default=shutil.which("chromium"), help="the browser's program")
    parser.add_argument("--screenshots", type=Path, help="folder for screenshots")
    parser.add_argument("pages", nargs="*", metavar="PAGE", help="such as install/; all by default")
    args = parser.parse_args()
    pages = args.pages or sorted(file.parent.relative_to(SITE).as_posix().removeprefix(".") + "/"
                                 for file in SITE.rglob("index.html"))
    pages = [page.removeprefix("/") for page in pages]
    if args.screenshots:
        args.screenshots.mkdir(parents=True, exist_ok=True)
    bad = 0
    with served() as address, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=args.browser, args=["--no-sandbox"])
        for width in WIDTHS:
            for scheme in SCHEMES:
                for page, complaint in check(browser, address, pages, width, scheme, args.screenshots):
                    bad += 1
                    print(f"{page or 'index'} ({width} px, {scheme}): {complaint}", flush=True)
        browser.close()
    print(f"{len(pages)} pages, {len(WIDTHS)} widths, {len(SCHEMES)} schemes: {bad} complaints")
    sys.exit(bool(bad))


if __name__ == "__main__":
    main()

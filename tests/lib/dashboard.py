"""The dashboard in Debian's Chromium, headless, driven by playwright.

    with Dashboard(url, scheme="dark", width=400) as page: page.sign_in(token); page.text("link")
"""

import contextlib
import tempfile

from tests.lib.build import patience
from tests.lib.pinned import pinned_import
from tests.lib.waiting import wait_until

CHROMIUM = "/usr/bin/chromium"
QUIET = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
         "--disable-component-update", "--disable-sync"]


class Dashboard:
    def __init__(self, url, scheme="light", width=1280, height=1100):
        pinned_import()
        from playwright.sync_api import sync_playwright  # pylint: disable=import-outside-toplevel
        self._errors = []
        with contextlib.ExitStack() as stack:
            profile = stack.enter_context(tempfile.TemporaryDirectory(prefix="cssl-chromium-"))
            browsers = stack.enter_context(sync_playwright()).chromium
            browser = browsers.launch_persistent_context(
                profile, executable_path=CHROMIUM, headless=True, args=QUIET, ignore_https_errors=True, color_scheme=scheme,
                viewport={"width": width, "height": height})
            stack.callback(browser.close)
            self._page = browser.pages[0]
            self._page.on("console", lambda line: self._errors.append(line.text) if line.type == "error" else None)
            self._page.on("pageerror", lambda error: self._errors.append(str(error)))
            self._page.set_default_timeout(patience(15) * 1000)
            self._page.goto(url)
            self._stack = stack.pop_all()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._stack.close()

    def find(self, selector):
        return self._page.locator(selector)

    def text(self, identity):
        return self.find(f"#{identity}").inner_text()

    def sign_in(self, token):
        self.find("#token").fill(token)
        self.find("#token-dialog button.strong").click()
        self.wait_text("link", "live")

    def sign_in_by_keyboard(self, token):
        self.find("#token-dialog[open]").wait_for()
        self.type_text(token)
        self.press("Enter")
        self.wait_text("link", "live")

    def press(self, key):
        self._page.keyboard.press(key)

    def type_text(self, text):
        self._page.keyboard.type(text)

    def tab_to(self, label, at_most=60):
        """Presses Tab until the control with that accessible name has the focus."""
        for _ in range(at_most):
            self.press("Tab")
            if self._page.evaluate("document.activeElement.getAttribute('aria-label') || document.activeElement.innerText") == label:
                return
        raise AssertionError(f"no way to '{label}' by keyboard")

    def focus_is_visible(self):
        return self._page.evaluate("getComputedStyle(document.activeElement).outlineStyle") != "none"

    def wait_text(self, identity, wanted):
        wait_until(lambda: wanted in self.text(identity), patience(15), f"'{wanted}' in #{identity}")

    def errors(self):
        return self._errors

    def background(self):
        return self._page.evaluate("getComputedStyle(document.documentElement).backgroundColor "
                                   "+ getComputedStyle(document.body).backgroundColor")

    def overflows(self):
        """Is the page wider than the window?"""
        return self._page.evaluate("document.documentElement.scrollWidth > document.documentElement.clientWidth")

    def screenshot(self, path):
        self._page.screenshot(path=str(path))

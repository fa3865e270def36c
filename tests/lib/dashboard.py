"""The dashboard in headless Chromium, driven by Debian's chromium-driver."""

from selenium import webdriver
from selenium.webdriver.common.by import By

from tests.lib.build import patience
from tests.lib.waiting import wait_until


class Dashboard:
    """with Dashboard(url, scheme="dark", width=400) as page: page.sign_in(token); page.text("link")"""

    def __init__(self, url, scheme="light", width=1280):
        options = webdriver.ChromeOptions()
        for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--ignore-certificate-errors",
                         f"--window-size={width},1100"):
            options.add_argument(argument)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
        self._driver = webdriver.Chrome(options=options)
        self._driver.execute_cdp_cmd("Emulation.setEmulatedMedia",
                                     {"features": [{"name": "prefers-color-scheme", "value": scheme}]})
        self._driver.get(url)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._driver.quit()

    def find(self, selector):
        return self._driver.find_element(By.CSS_SELECTOR, selector)

    def text(self, identity):
        return self.find(f"#{identity}").text

    def sign_in(self, token):
        wait_until(lambda: self.find("#token-dialog").get_attribute("open"), patience(10), "the question for a token")
        self.find("#token").send_keys(token)
        self.find("#token-dialog button.strong").click()

    def wait_text(self, identity, wanted):
        wait_until(lambda: wanted in self.text(identity), patience(15), f"'{wanted}' in #{identity}")

    def errors(self):
        return [line["message"] for line in self._driver.get_log("browser") if line["level"] == "SEVERE"]

    def overflows(self):
        """Does the page need to be scrolled sideways?"""
        return self._driver.execute_script("return document.documentElement.scrollWidth > document.documentElement.clientWidth")

    def screenshot(self, path):
        self._driver.save_screenshot(str(path))

"""A headless Chromium, spoken to through the pipe of its own debugging protocol: no driver, no port, no network."""

import base64
import fcntl
import json
import os
import selectors
import subprocess
import tempfile
import time

FLAGS = [
    "--headless",
    "--no-sandbox",  # which a root user's Chromium cannot have; it shows our own pages only
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--hide-scrollbars",
    "--host-resolver-rules=MAP * ~NOTFOUND",  # the network is cut
    "--remote-debugging-pipe",
]


class Chromium:
    """A browser with one tab; close it, or use it in a `with`."""

    def __init__(self, binary):
        self._profile = tempfile.TemporaryDirectory(prefix="onestep-chromium-", ignore_cleanup_errors=True)
        self._buffer, self._count, self._session, self.events = b"", 0, None, []
        commands, self._out = os.pipe()
        self._in, answers = os.pipe()
        # The protocol's pipes are the browser's file descriptors 3 and 4; meanwhile ours must be others.
        ends = [fcntl.fcntl(end, fcntl.F_DUPFD, 10) for end in (commands, answers)]
        self._process = subprocess.Popen(
            [binary, *FLAGS, f"--user-data-dir={self._profile.name}", "about:blank"],
            preexec_fn=lambda: [os.dup2(end, number) for end, number in zip(ends, (3, 4), strict=True)],
            pass_fds=(3, 4),
            stderr=subprocess.DEVNULL,
        )
        for end in (commands, answers, *ends):
            os.close(end)
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._in, selectors.EVENT_READ)
        try:
            target = self.call("Target.createTarget", url="about:blank")["targetId"]
            self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
            for domain in ("Page", "Runtime", "Network", "Log"):
                self.call(f"{domain}.enable")
        except BaseException:
            self.close()
            raise

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        """End the browser and remove its profile."""
        os.close(self._out)  # at the end of its input the browser leaves
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        os.close(self._in)
        self._selector.close()
        self._profile.cleanup()

    def call(self, method, **parameters):
        """The result of one command; what happens meanwhile is added to `events`. Raises RuntimeError if it fails."""
        self._count += 1
        message = {"id": self._count, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._out, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._receive(60)
            if answer.get("id") == self._count:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']['message']}")
                return answer["result"]

    def wait(self, event, seconds=30):
        """Wait for an event of this name, or one that came since `events` was last emptied."""
        deadline = time.monotonic() + seconds
        while not any(seen["method"] == event for seen in self.events):
            self._receive(deadline - time.monotonic())

    def open(self, url):
        """Load a page and wait until it is complete; `events` then holds what happened on the way."""
        self.events.clear()
        self.call("Page.navigate", url=url)
        self.wait("Page.loadEventFired")

    def size(self, width, height=900, phone=False):
        """Show pages on a screen of this size."""
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=phone)

    def scheme(self, name):
        """Prefer "light" or "dark" colours."""
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": name}])

    def run(self, script):
        """The value of a JavaScript expression, a promise's once it is kept. Raises RuntimeError for an exception."""
        done = self.call("Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True)
        if "exceptionDetails" in done:
            details = done["exceptionDetails"]
            raise RuntimeError(details.get("exception", {}).get("description", details["text"]))
        return done["result"].get("value")

    def pdf(self, url, path):
        """Write a page to a PDF file, once its formulas are set."""
        self.open(url)
        self.run("window.MathJax?.startup?.promise.then(() => true)")
        printed = self.call("Page.printToPDF", preferCSSPageSize=True, displayHeaderFooter=False)
        path.write_bytes(base64.b64decode(printed["data"]))

    def click(self, x, y):
        """Press and release the left button of the mouse."""
        for kind in ("mousePressed", "mouseReleased"):
            self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    def type(self, text):
        """Type text and press the enter key."""
        self.call("Input.insertText", text=text)
        enter = {"key": "Enter", "code": "Enter", "windowsVirtualKeyCode": 13, "text": "\r"}
        for kind in ("keyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, **enter)

    def _receive(self, seconds):
        deadline = time.monotonic() + seconds
        while b"\0" not in self._buffer:
            if not self._selector.select(max(0, deadline - time.monotonic())):
                raise RuntimeError("the browser does not answer")
            piece = os.read(self._in, 1 << 16)
            if not piece:
                raise RuntimeError("the browser has ended")
            self._buffer += piece
        text, self._buffer = self._buffer.split(b"\0", 1)
        message = json.loads(text)
        if "method" in message:
            self.events.append(message)
        return message

"""Build the site into build/site, of what is committed: nothing is executed."""

import shutil
import subprocess
import sys
from pathlib import Path

from . import tools
from .chromium import Chromium
from .sources import Sources

SOURCE, SITE = Path("build/site-source"), Path("build/site")


def main():
    python = tools.python()
    for folder in (SOURCE, SITE):  # afresh: what an earlier build left would stay in menus
        shutil.rmtree(folder, ignore_errors=True)
    local = tools.mathjax(SOURCE / "static/mathjax")
    Sources(".").write(SOURCE, mathjax=local)
    sphinx = [python, "-m", "sphinx", "-q", "-b", "html", "-d", str(SOURCE / ".doctrees")]
    subprocess.run([*sphinx, str(SOURCE), str(SITE)], check=True)
    if binary := tools.chromium():
        with Chromium(binary) as browser:
            browser.pdf((SITE / "theory.html").absolute().as_uri(), SITE / "theory.pdf")
    print(f"the site is ready: open {SITE}/index.html")


if __name__ == "__main__":
    try:
        main()
    except subprocess.CalledProcessError as error:
        sys.exit(f"error: {error.cmd[0]} failed; the lines above say why")
    except ValueError as error:
        sys.exit(f"error: {error}")

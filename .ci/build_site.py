"""Build the committed notebooks into build/site: pages that need no network, MathJax included where npm is at hand."""

import shutil
import subprocess
import sys
from pathlib import Path

SITE = Path("build/site")
SOURCE = Path("build/site-source")
TOOLS = Path("build/site-venv")
LOCK = Path(".ci/site.txt")

CONF = """
project = "onestep"
html_title = "One gradient step"
copyright = "the onestep maintainers"
extensions = ["myst_nb"]
myst_enable_extensions = ["amsmath", "dollarmath"]
nb_execution_mode = "off"
html_theme = "sphinx_book_theme"
html_static_path = ["_static"]
html_show_copyright = False
suppress_warnings = ["myst.header", "myst.xref_missing"]
"""
MATHJAX = """
mathjax_path = "mathjax/tex-chtml.js"
mathjax_options = {"defer": "defer"}
"""
INDEX = """
```{include} README.md
```

```{toctree}
:hidden:
:glob:
notebooks/*
figures/README
```
"""


def main():
    python = tools()
    shutil.rmtree(SOURCE, ignore_errors=True)
    for folder in ("notebooks", "figures"):
        shutil.copytree(folder, SOURCE / folder)
    shutil.copy("README.md", SOURCE)
    (SOURCE / "_static").mkdir()
    (SOURCE / "index.md").write_text(INDEX, encoding="utf-8")
    (SOURCE / "conf.py").write_text(CONF + MATHJAX * mathjax(SOURCE / "_static/mathjax"), encoding="utf-8")
    build = [python, "-m", "sphinx", "-q", "-b", "html", "-D", "exclude_patterns=README.md", str(SOURCE), str(SITE)]
    subprocess.run(build, check=True)
    print(f"the site is ready: open {SITE}/index.html")


def tools():
    """The site's own virtual environment, kept apart because its many packages serve nothing else."""
    python, stamp = TOOLS / "bin/python", TOOLS / "stamp"
    if not stamp.exists() or stamp.read_text() != LOCK.read_text():
        subprocess.run([sys.executable, "-m", "venv", "--clear", str(TOOLS)], check=True)
        subprocess.run(
            [python, "-m", "pip", "install", "-qq", "--disable-pip-version-check", "-r", str(LOCK)], check=True
        )
        stamp.write_text(LOCK.read_text())
    return str(python)


def mathjax(target):
    """Copy MathJax's bundle for TeX to `target`; False where npm cannot provide it, and the network has to."""
    package = Path("build/npm/node_modules/mathjax/es5")
    if not package.exists() and shutil.which("npm"):
        install = ["npm", "install", "--silent", "--no-fund", "--no-audit", "--prefix", "build/npm", "mathjax@3.2.2"]
        subprocess.run(install, check=False)
    if not package.exists():
        print("npm is not at hand: the pages will load MathJax from the network")
        return False
    target.mkdir()
    shutil.copy(package / "tex-chtml.js", target)
    shutil.copytree(package / "output/chtml/fonts", target / "output/chtml/fonts")
    return True


if __name__ == "__main__":
    try:
        main()
    except subprocess.CalledProcessError as error:
        sys.exit(f"error: {error.cmd[0]} failed; the lines above say why")

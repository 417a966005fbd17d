"""What the site needs beyond the project, installed once and kept apart in `build`."""

import os
import shutil
import site
import subprocess
import sys
from pathlib import Path

LOCK = Path(".ci/site.txt")
VENV = Path("build/site-venv")
NPM = Path("build/npm")
MATHJAX = "mathjax@4.1.3"  # from 4 on it breaks long equations where the screen ends


def python():
    """The interpreter of the virtual environment that holds Sphinx, and after its packages those of the project."""
    interpreter, stamp = VENV / "bin/python", VENV / "stamp"
    if not stamp.exists() or stamp.read_text() != LOCK.read_text():
        subprocess.run([sys.executable, "-m", "venv", "--clear", str(VENV)], check=True)
        install = [interpreter, "-m", "pip", "install", "-qq", "--disable-pip-version-check", "-r", str(LOCK)]
        subprocess.run(install, check=True)
        inner = next(VENV.glob("lib/python*/site-packages"))
        (inner / "project.pth").write_text("\n".join([*site.getsitepackages(), os.path.abspath("lib")]))
        stamp.write_text(LOCK.read_text())
    return str(interpreter)


def npm():
    """The folder of packages from npm, or None where npm cannot provide them."""
    stamp = NPM / "stamp"
    if not stamp.exists() or stamp.read_text() != MATHJAX:
        if not shutil.which("npm"):
            return None
        install = ["npm", "install", "--silent", "--no-fund", "--no-audit", "--prefix", str(NPM), MATHJAX]
        if subprocess.run(install, check=False).returncode:
            return None
        stamp.write_text(MATHJAX)
    return NPM / "node_modules"


def mathjax(target):
    """Copy to `target` what pages need of MathJax; False where npm is not at hand, and pages will use the network."""
    packages = npm()
    if packages is None:
        print("npm is not at hand: the pages will load MathJax from the network", file=sys.stderr)
        return False
    font = "mathjax-newcm-font/chtml"
    shutil.copytree(packages / "@mathjax" / font, target / font)
    for file in ("tex-chtml.js", "a11y/assistive-mml.js"):
        (target / file).parent.mkdir(exist_ok=True)
        shutil.copy2(packages / "mathjax" / file, target / file)
    return True


def chromium():
    """The path of Chromium or Chrome, or None."""
    return shutil.which(os.environ.get("CHROMIUM", "chromium")) or shutil.which("google-chrome")

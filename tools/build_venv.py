"""Build .venv in this folder: one builder at a time, the stamp last, so that an interrupted build begins afresh."""

import fcntl
import platform
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path


def main(wanted):
    stamp = Path(".venv/stamp")
    text = f"{wanted} Python {platform.python_version()}\n"
    with open(".venv.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if stamp.exists() and stamp.read_text() == text:
            return  # another builder finished while this one waited
        print(f"building .venv with Python {platform.python_version()}, once; this takes about a minute", flush=True)
        shutil.rmtree(".venv", ignore_errors=True)
        subprocess.run([sys.executable, "-m", "venv", ".venv"], check=True)
        # Modules are compiled as they are first imported: all 7,000 would take 16 s, those that are used 4 s.
        install = [".venv/bin/python", "-m", "pip", "install", "-qq", "--no-compile", "--disable-pip-version-check"]
        subprocess.run(install + requirements(wanted), check=True)
        # The library is used where it lies; the path is relative, so that the folder may be moved.
        packages = next(Path(".venv/lib").glob("python3*/site-packages"))
        packages.joinpath("onestep.pth").write_text("../../../../lib\n")
        stamp.write_text(text)


def requirements(wanted):
    if not wanted.endswith("newest"):
        return ["-r", "requirements.txt"]
    project = tomllib.loads(Path("pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = [line for lines in project["optional-dependencies"].values() for line in lines]
    return ["--upgrade", *project["dependencies"], *extras]


if __name__ == "__main__":
    try:
        main(sys.argv[1])
    except subprocess.CalledProcessError:
        sys.exit("error: .venv could not be built; the lines above say why. Run again to retry.")
    except KeyboardInterrupt:
        sys.exit("interrupted; the next run begins the set-up afresh")

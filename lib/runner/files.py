"""Files written so that a reader, or an interruption, meets the old file or the new one and nothing between."""


def write_if_changed(path, text):
    """Write text, unless the file holds it already."""
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        write_atomically(path, text.encode())


def write_atomically(path, data):
    """Write bytes beside the file, then put them in its place.

    Raises
    ------
    OSError
        The folder cannot be written or the disk is full; the old file stays as it is.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.tmp")
    try:
        temporary.write_bytes(data)
        temporary.replace(path)
    except OSError:
        temporary.unlink(missing_ok=True)
        raise

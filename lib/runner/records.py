"""What long runs found, notebook by notebook: kept beside the results, as the runs themselves are not repeated.

A record has the digest of the code and parameters that it is of, and the date, so that a notebook that has changed
since is told apart.
"""

import json

from .project import write_atomically


def read(path):
    """{notebook: record}; empty if there is no such file yet."""
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}


def update(path, found, same):
    """Keep each record in `found` that differs from the one kept in any of the parts `same`; return all."""
    kept = read(path)
    for name, now in found.items():
        if name not in kept or any(now[part] != kept[name][part] for part in same):
            kept[name] = now
    write_atomically(path, (json.dumps(kept, indent=1, sort_keys=True, ensure_ascii=False) + "\n").encode())
    return kept


def state(record, code):
    """When the record was made, and whether the code is another now; "not yet" for no record."""
    if not record:
        return "not yet"
    return record["date"] if record["code"] == code else f"{record['date']}; changed since"

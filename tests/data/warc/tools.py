"""Reads an archive with the tools people use. Prints JSON, one value per run.

tools.py check FILE          digests, by warcio and by FastWARC
tools.py records FILE        what warcio finds
tools.py fast FILE           what FastWARC finds, digests verified
tools.py index FILE          the CDXJ lines of cdxj-indexer, sorted
tools.py replay DIR PATH...  what pywb answers, given DIR/archive and DIR/index as they are
"""

import contextlib
import hashlib
import io
import json
import signal
import sys

SECONDS_MAX = 120


def check(path):
    from warcio.cli import main

    output = io.StringIO()
    with contextlib.redirect_stdout(output):
        status = 0
        try:
            status = main(["check", "-v", path]) or 0
        except SystemExit as end:
            status = end.code or 0
    return {"status": status, "output": output.getvalue()}


def records(path):
    from warcio.archiveiterator import ArchiveIterator

    found = []
    with open(path, "rb") as file:
        for record in ArchiveIterator(file, check_digests="raise"):
            http = record.http_headers
            raw = record.raw_stream.read()
            found.append({
                "type": record.rec_type,
                "url": record.rec_headers.get_header("WARC-Target-URI"),
                "status": http.get_statuscode() if http and record.rec_type != "request" else None,
                "sha1": hashlib.sha1(raw).hexdigest(),
            })
    return found


def fast(path):
    from fastwarc.warc import ArchiveIterator

    found = []
    with open(path, "rb") as file:
        for record in ArchiveIterator(file, parse_http=True, verify_digests=True):
            is_http = record.is_http and record.headers["WARC-Type"] != "request"
            kind = record.headers["WARC-Type"]
            status = record.http_headers.status_code if is_http else None
            found.append({
                "type": kind,
                "url": record.headers.get("WARC-Target-URI"),
                "status": None if status is None else str(status),
                "sha1": hashlib.sha1(record.reader.read()).hexdigest(),
            })
    return found


def index(path):
    from cdxj_indexer.main import CDXJIndexer

    output = io.StringIO()
    with contextlib.redirect_stdout(output):
        CDXJIndexer("-", [path], sort=True).process_all()
    return output.getvalue()


def replay(folder, *paths):
    from gevent.monkey import patch_all

    patch_all()
    import logging

    logging.disable(logging.CRITICAL)
    from pywb.apps.frontendapp import FrontEndApp
    from werkzeug.test import Client

    where = {"index_paths": folder + "/index/", "archive_paths": folder + "/archive/"}
    app = FrontEndApp(config_file=None, custom_config={"collections": {"crawl": where}})
    found = []
    for path in paths:
        answer = Client(app).get("/crawl/" + path)
        found.append({
            "status": answer.status_code,
            "type": answer.headers.get("Content-Type"),
            "location": answer.headers.get("Location"),
            "sha1": hashlib.sha1(answer.get_data()).hexdigest(),
        })
    return found


if __name__ == "__main__":
    if hasattr(signal, "alarm"):
        signal.alarm(SECONDS_MAX)
    name, *arguments = sys.argv[1:]
    tools = {"check": check, "records": records, "fast": fast, "index": index, "replay": replay}
    # What the tools print on the way is not the answer.
    with contextlib.redirect_stdout(sys.stderr):
        answer = tools[name](*arguments)
    json.dump(answer, sys.stdout)

"""A receiver of Switchboard's webhooks with FastAPI.

    pip install fastapi uvicorn        (Debian: apt-get install python3-fastapi python3-uvicorn)
    WEBHOOK_SECRET=whsec_... PORT=8080 python3 receiver.py

A parameter with a Pydantic model would parse the body before anything is verified: the route takes
the request itself, and reads the bytes.
"""

import hashlib
import hmac
import json
import os
import re
import sys
import tempfile
import time

import uvicorn
from fastapi import FastAPI, Request, Response
from fastapi.concurrency import run_in_threadpool

SECRET = os.environ.get("WEBHOOK_SECRET", "").encode()
FOLDER = os.environ.get("EVENTS_FOLDER", "events")
TOLERANCE_SECONDS = 300
MAX_BODY_BYTES = 5 * 1024 * 1024

# The prefix alone would be a secret that everybody knows.
if not re.fullmatch(rb"whsec_\S+", SECRET):
    sys.exit("Set WEBHOOK_SECRET to the secret of the webhook.")
os.makedirs(FOLDER, exist_ok=True)

app = FastAPI(openapi_url=None)


def is_genuine(timestamp, signature, raw_body, now):
    """timestamp and signature are the header values, raw_body the bytes as they came."""
    if not re.fullmatch(r"[0-9]{1,12}", timestamp or ""):
        return False
    if abs(now - int(timestamp)) > TOLERANCE_SECONDS:
        return False
    signed = timestamp.encode() + b"." + raw_body
    expected = "sha256=" + hmac.new(SECRET, signed, hashlib.sha256).hexdigest()
    # As bytes: compare_digest refuses text that is not ASCII, which anybody may send.
    return hmac.compare_digest(expected.encode(), (signature or "").encode())


def store(delivery_id, raw_body):
    """Stores an event unless it is stored already; says whether it is new."""
    handle, temporary = tempfile.mkstemp(dir=FOLDER, suffix=".tmp")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(raw_body)
            file.flush()
            os.fsync(file.fileno())
        # Made whole or not at all, and never over a file that is there.
        os.link(temporary, os.path.join(FOLDER, delivery_id + ".json"))
        return True
    except FileExistsError:
        return False
    finally:
        os.unlink(temporary)


async def read_body(request):
    """The bytes as they came, or None where they are too many."""
    raw_body = bytearray()
    async for chunk in request.stream():
        raw_body += chunk
        if len(raw_body) > MAX_BODY_BYTES:
            return None
    return bytes(raw_body)


@app.post("/hooks")
async def receive(request: Request) -> Response:
    raw_body = await read_body(request)
    if raw_body is None:
        return Response(status_code=413)
    timestamp = request.headers.get("X-Service-Timestamp")
    signature = request.headers.get("X-Service-Signature")
    if not is_genuine(timestamp, signature, raw_body, time.time()):
        return Response(status_code=401)
    # From the signed body, not from the header, which is not signed.
    envelope = json.loads(raw_body)
    delivery_id, event = envelope["id"], envelope["event"]
    if not re.fullmatch(r"[0-9a-f-]{36}", delivery_id):
        return Response(status_code=400)
    # In a thread: a disk that is slow must not hold up other requests. What cannot be stored is
    # FastAPI's 500, which asks for the next try.
    is_new = await run_in_threadpool(store, delivery_id, raw_body)
    outcome = "stored" if is_new else "seen before"
    # In one piece: `print` writes its parts one by one, among those of other threads.
    sys.stdout.write(f"{outcome} {event} {delivery_id}\n")
    sys.stdout.flush()
    return Response(status_code=204)


if __name__ == "__main__":
    uvicorn.run(
        app, host="127.0.0.1", port=int(os.environ.get("PORT", "8080")), log_level="warning"
    )

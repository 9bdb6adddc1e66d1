"""A receiver of Switchboard's webhooks with Flask (2 or later).

    pip install flask        (Debian: apt-get install python3-flask)
    WEBHOOK_SECRET=whsec_... PORT=8080 python3 receiver.py

`request.get_data()` gives the bytes as they came. Call it before `request.form` or `request.json`:
what those have read is not there to be read again.
"""

import hashlib
import hmac
import json
import os
import re
import sys
import tempfile
import time

from flask import Flask, request

SECRET = os.environ.get("WEBHOOK_SECRET", "").encode()
FOLDER = os.environ.get("EVENTS_FOLDER", "events")
TOLERANCE_SECONDS = 300
MAX_BODY_BYTES = 5 * 1024 * 1024

# The prefix alone would be a secret that everybody knows.
if not re.fullmatch(rb"whsec_\S+", SECRET):
    sys.exit("Set WEBHOOK_SECRET to the secret of the webhook.")
os.makedirs(FOLDER, exist_ok=True)

app = Flask(__name__)
# Flask answers 413 to more.
app.config["MAX_CONTENT_LENGTH"] = MAX_BODY_BYTES


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


@app.post("/hooks")
def receive():
    raw_body = request.get_data()
    timestamp = request.headers.get("X-Service-Timestamp")
    signature = request.headers.get("X-Service-Signature")
    if not is_genuine(timestamp, signature, raw_body, time.time()):
        return "", 401
    # From the signed body, not from the header, which is not signed.
    envelope = json.loads(raw_body)
    delivery_id, event = envelope["id"], envelope["event"]
    if not re.fullmatch(r"[0-9a-f-]{36}", delivery_id):
        return "", 400
    # What cannot be stored is Flask's 500, which asks for the next try.
    is_new = store(delivery_id, raw_body)
    outcome = "stored" if is_new else "seen before"
    # In one piece: `print` writes its parts one by one, among those of other threads.
    sys.stdout.write(f"{outcome} {event} {delivery_id}\n")
    sys.stdout.flush()
    return "", 204


if __name__ == "__main__":
    app.run(host="127.0.0.1", port=int(os.environ.get("PORT", "8080")))

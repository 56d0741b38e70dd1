"""A receiver on FastAPI."""

import asyncio
import contextlib
import datetime
import gc
import os

import uvicorn
from fastapi import FastAPI, Request, Response

from delivery import Checks, Memory
from publisher import Publisher

MAX_BODY = 1 << 20
PREFIX = os.environ["HEADER_PREFIX"].encode()
SIGNATURE, TIMESTAMP = PREFIX + b"-signature", PREFIX + b"-timestamp"
WEBHOOK_ID, DELIVERY_ID = PREFIX + b"-webhook-id", PREFIX + b"-delivery-id"

checks = Checks(os.environ["SECRET"].encode(), int(os.environ["TOLERANCE_S"]))
memory = Memory()
publisher: Publisher


async def forget_regularly() -> None:
    while True:
        await asyncio.sleep(60)
        memory.forget()


@contextlib.asynccontextmanager
async def lifespan(_: FastAPI):
    global publisher
    publisher = Publisher(os.environ["BOOTSTRAP"], os.environ["TOPIC"])
    forgetting = asyncio.create_task(forget_regularly())
    # The garbage collector need not visit the objects that exist now, and requests leave few cycles.
    gc.collect()
    gc.freeze()
    gc.set_threshold(50000, 20, 100)
    yield
    forgetting.cancel()


def answer(status: int, text: bytes) -> Response:
    return Response(text, status, media_type="application/json")


def refusal(status: int, code: str) -> Response:
    return answer(status, b'{"ok":false,"error":{"code":"%s"}}' % code.encode())


# Responses are created once; sending one does not change it.
OK = answer(200, b'{"ok":true}')
BAD_REQUEST = refusal(400, "BAD_REQUEST")
TOO_LARGE = refusal(413, "PAYLOAD_TOO_LARGE")
INVALID_SIGNATURE = refusal(401, "INVALID_SIGNATURE")
STALE_TIMESTAMP = refusal(401, "STALE_TIMESTAMP")
UNAVAILABLE = refusal(503, "UNAVAILABLE")


async def read(request: Request, declared: bytes) -> bytes | None:
    """Return the whole body, or None if it is too large."""
    if declared.isdigit() and int(declared) > MAX_BODY:
        return None
    chunks, length = [], 0
    async for chunk in request.stream():
        length += len(chunk)
        if length > MAX_BODY:
            return None
        chunks.append(chunk)
    return b"".join(chunks)


def received() -> str:
    return datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.%f")[:-3] + "Z"


async def receive(request: Request) -> Response:
    headers = dict(request.scope["headers"])
    body = await read(request, headers.get(b"content-length", b""))
    if body is None:
        return TOO_LARGE
    signature, timestamp = headers.get(SIGNATURE, b""), headers.get(TIMESTAMP, b"")
    webhook_id, delivery_id = headers.get(WEBHOOK_ID), headers.get(DELIVERY_ID)
    if not webhook_id or not delivery_id:
        return BAD_REQUEST
    if not checks.is_genuine(signature, timestamp, body):
        return INVALID_SIGNATURE
    if not checks.is_fresh(timestamp):
        return STALE_TIMESTAMP
    if delivery_id in memory:
        return OK
    error = await publisher.publish(delivery_id, body, [
        ("gatepost-source", b"invoicing"), ("gatepost-webhook-id", webhook_id), ("gatepost-timestamp", timestamp),
        ("gatepost-signature", signature), ("gatepost-received", received()), ("gatepost-instance", b"bench")])
    if error is not None:
        return UNAVAILABLE
    memory.add(delivery_id)
    return OK


app = FastAPI(lifespan=lifespan, openapi_url=None)
# A plain route avoids resolving parameters and converting the answer.
app.add_route(os.environ["WEBHOOK_PATH"], receive, methods=["POST"])

if __name__ == "__main__":
    uvicorn.run(app, host="127.0.0.1", port=int(os.environ["PORT"]), loop="uvloop", http="httptools", ws="none",
                access_log=False, log_level="warning", server_header=False, date_header=False, backlog=4096,
                timeout_keep_alive=60)

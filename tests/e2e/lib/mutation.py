"""Messages at the limits of the grammar, mutated by a seeded random generator."""

import random

BYTES = [bytes([byte]) for byte in b"\r\n\t \0:;,=\"\\/?#@%*.+-_09aAfFxX\x0b\x0c\x1f\x7f\x80\x85\xa0\xff"]
TOKENS = [
    b"\r\n", b"\r\n\r\n", b"\n\n", b"\r\n ", b"0\r\n\r\n", b"5\r\nhello\r\n", b"0;a=b\r\n", b"1 ;a\r\nx\r\n", b"\r\n0\r\n",
    b"Content-Length: 5\r\n", b"Content-Length:\t0\r\n", b"Content-Length: 10\r\n", b"Transfer-Encoding: chunked\r\n",
    b"Transfer-Encoding:\tchunked\r\n", b"Transfer-Encoding: gzip\r\n", b"Host: b\r\n", b"Host:\r\n", b"Connection: close\r\n",
    b"Connection: upgrade\r\nUpgrade: h2c\r\n", b"Expect: 100-continue\r\n", b"Trailer: a\r\n", b"a: b\r\n", b"a:\tb\t c\r\n",
    b"GET ", b"HEAD ", b"POST ", b"OPTIONS * ", b"http://b", b"//b", b"/c?d", b"%2f", b" HTTP/1.1", b" HTTP/1.0",
    b"chunked", b", ", b";a", b"=\"b\\\"\"", b"hello",
]


def _cut(rng, data):
    start = rng.randrange(len(data) + 1)
    return start, min(len(data), start + rng.choice([1, 1, 2, 4, 16, 64]))


def _mutated(rng, data, others):
    start, end = _cut(rng, data)
    match rng.randrange(8):
        case 0:
            return data[:start] + rng.choice(BYTES) + data[start:]
        case 1:
            return data[:start] + rng.choice(BYTES) + data[start + 1:]
        case 2:
            return data[:start] + rng.choice(TOKENS) + data[start:]
        case 3:
            return data[:start] + data[end:]
        case 4:
            return data[:end] + data[start:]  # twice
        case 5:
            return data[:start] + data[start:end].swapcase() + data[end:]
        case 6:
            lines = data.split(b"\r\n")
            lines.insert(rng.randrange(len(lines) + 1), rng.choice(TOKENS).removesuffix(b"\r\n"))
            return b"\r\n".join(lines)
        case _:
            other = rng.choice(others)
            return data[:start] + other[_cut(rng, other)[0]:]


def mutants(seed, originals, others, n, most=4):
    """n messages, each an original with a limited number of changes, some taken from other originals."""
    rng = random.Random(seed)
    for _ in range(n):
        data = rng.choice(originals)
        for _ in range(rng.randint(1, most)):
            data = _mutated(rng, data, others)
        yield data

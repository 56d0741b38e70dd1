"""Every message that framing accepts is read identically by Python's h11, as a server, or rejected; and evhttp reads
it identically, too."""

import dataclasses

import h11
import pytest

import framing
import mutation

N_MUTANTS = 20000
N_ON_SOCKETS = 2000


def read_by_h11(data):
    """The message that h11 reads from exactly these bytes; None if it rejects them; a description if it reads something
    else."""
    connection = h11.Connection(h11.SERVER)
    request, body = None, b""
    try:
        connection.receive_data(data)
        while True:
            match connection.next_event():
                case h11.Request() as request:
                    pass
                case h11.Data(data=piece):
                    body += piece
                case h11.EndOfMessage():
                    break
                case event:
                    return f"{event} instead of the message's end"
    except h11.RemoteProtocolError:
        return None
    if connection.trailing_data[0]:
        return f"another message begins with {connection.trailing_data[0]}"
    return framing.Message(request.method, request.target, [(bytes(name), bytes(value)) for name, value in
                                                            request.headers], bytes(body))


def as_h11_says(message):
    """h11 writes the name of the transfer coding in lower case."""
    headers = [(name, value.lower() if name == b"transfer-encoding" else value) for name, value in message.headers]
    return dataclasses.replace(message, headers=headers)


def compare(inputs):
    """The differences, and the number of messages read identically."""
    differences, n_alike = [], 0
    for data, verdict in zip(inputs, framing.verdicts(inputs), strict=True):
        for start, end, message in verdict.messages:
            message, other = as_h11_says(message), read_by_h11(data[start:end])
            if other not in (None, message):
                differences.append((data[start:end], message, other))
            n_alike += other == message
    return differences, n_alike


def test_h11_agrees_with_or_rejects_every_case():
    cases = framing.cases()
    differences, n_alike = compare([case.data for case in cases])
    assert differences == []
    assert n_alike > 0.9 * sum(case.n_messages for case in cases)


def mutants(seed, n):
    cases = [case for case in framing.cases() if len(case.data) < 300]
    return list(mutation.mutants(seed, [case.data for case in cases if not case.status],
                                 [case.data for case in cases], n))


@pytest.mark.parametrize("seed", range(5))
def test_h11_agrees_with_or_rejects_mutated_messages(seed):
    differences, n_alike = compare(mutants(seed, N_MUTANTS))
    assert differences[:10] == []
    assert n_alike > N_MUTANTS / 10  # otherwise the generator is useless


@pytest.mark.parametrize("step", [None, 1, 5], ids=["whole", "byte by byte", "five by five"])
def test_evhttp_agrees_on_mutated_messages_that_pass_framing(echo, step):
    inputs, faults = mutants(step or 0, N_ON_SOCKETS), []
    for data, verdict in zip(inputs, framing.verdicts(inputs), strict=True):
        fault = framing.fault_on_socket(echo, data, verdict, step)
        if fault:
            faults.append((data, verdict, fault))
    assert faults[:10] == []

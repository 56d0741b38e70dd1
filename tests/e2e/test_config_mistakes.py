"""Wrong and doubtful configurations: what gatepost check and gatepostd -t say about each, and on which line."""

import base64
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import tempfile
from random import Random

import pytest

import waiting
from daemon import ENVIRONMENT, assert_no_sanitizer_report
from installation import BUILD

EX_OSERR, EX_CONFIG = 71, 78
GOOD = {
    "gatepost": [],
    "receiver": ["listen = 127.0.0.1:0"],
    "router": [],
    "source invoicing": ["path = /webhooks/invoicing", "header_prefix = x-invoicing", "secret = 7d8f0c1b2a3e4f5061728394a5b6c7d8"],
    "topics": ["prefix = t"],
    "kafka": ["bootstrap.servers = kafka1:9092"],
    "admin": ["listen = off"],
}
SASL = "security.protocol = SASL_SSL"
SCRAM = f"{SASL}|sasl.mechanism = SCRAM-SHA-512"

# section, lines that are added or replace the options of their names, words of the error
ERRORS = [
    # lines that are misread
    ("gatepost", "instance: gw1", "not option: value"),
    ("gatepost", "include /etc/gatepost/conf.d/*.conf", "there is no include"),
    ("gatepost", "include = /etc/gatepost/local.conf", "no option 'include'"),
    ("gatepost", "log_level", "expected [section] or option = value"),
    ("gatepost", "log_level = debug # for now", "line of its own"),
    ("gatepost", "log_level = debug ; for now", "line of its own"),
    ("gatepost", "log_level = 'debug'", "use double quotes"),
    ("gatepost", 'log_level = "debug', "no closing quote"),
    ("gatepost", "loglevel = debug", "did you mean log_level?"),
    ("gatepost", "threads = 2", "it belongs in [receiver]"),
    ("service", "tolerence = 3s", "did you mean tolerance in [source]?"),
    ("gatepost", "log_level = verbose", "debug, info, notice, warning and error"),
    ("gatepost", "log_level = WARN", "did you mean warning?"),
    ("gatepost", "log_level => debug", "with one ="),
    ("gatepost", "log_level == debug", "with one ="),
    ("gatepost", "log_level debug;", "expected [section] or option = value"),
    ("gatepost", "logLevel = debug", "did you mean log_level?"),
    ("gatepost", "roles: [receiver, router]", "not option: value"),
    ("gatepost", "roles = [receiver, router]", "did you mean receiver?"),
    ("gatepost", "roles = both", "receiver and router"),
    ("gatepost", "roles = receiver router", "separated by commas"),
    ("gatepost", "instance = gateway one", "letters, digits"),
    ("source:other", "path = /other", "did you mean [source other]?"),
    ("source", "path = /other", "a source needs a name"),
    ("sources", "path = /other", "did you mean [source]?"),
    ("reciever", "threads = 2", "did you mean [receiver]?"),
    # addresses
    ("receiver", "listen = 127.0.0.1:80800", "the port 80800 is above 65535"),
    ("receiver", "listen = 127.0.0.1:http", "the port 'http' is not a number"),
    ("receiver", "listen = 127.0.0.1", "has no port"),
    ("receiver", "listen = 127.0.0.1:8080 # where", "line of its own"),
    ("receiver", "listen = localhost:8080", "has no numeric address; write 127.0.0.1:8080"),
    ("receiver", "listen = http://127.0.0.1:8080", "is a URL"),
    ("receiver", "listen = 127.0.0.1:8080, 127.0.0.1:8081", "takes one address and may be repeated"),
    ("receiver", "listen = unix:gatepost.sock", "begins with a slash"),
    ("receiver", "listen = 0.0.0.0:8080|listen=127.0.0.1:8080", "duplicate 127.0.0.1:8080, because of 0.0.0.0:8080"),
    ("receiver", "listen = [::ffff:127.0.0.1]:8080", "has no numeric address"),
    ("admin", "listen = 127.0.0.1:9464|[receiver]|listen=*:9464", "the admin endpoint needs another port"),
    ("receiver", "trusted_proxy = nginx", "not an address"),
    ("receiver", "trusted_proxy = 10.0.0.1/8", "write 10.0.0.0/8"),
    ("receiver", "proxy_protocol = required", "needs a trusted_proxy"),
    ("receiver", "listen = [fe80::1]:8080", "link-local"),
    ("receiver", "listen = 224.0.0.1:8080", "is a multicast or broadcast address"),
    ("receiver", "listen = 255.255.255.255:8080", "is a multicast or broadcast address"),
    ("receiver", "listen = [ff02::1]:8080", "is a multicast or broadcast address"),
    ("receiver", "listen = unix:/nonexistent/gatepost.sock", "/nonexistent: No such file or directory"),
    ("receiver", "listen = unix:/etc/passwd/gatepost.sock", "/etc/passwd is not a directory"),
    ("receiver", "listen = unix:/etc/passwd", "exists and is not a socket"),
    ("receiver", "listen = unix:/run/gatepost/", "does not end with a slash"),
    ("receiver", "listen = unix:/tmp/gatepost.sock|listen=unix:/tmp/../tmp/gatepost.sock", "duplicate"),
    ("admin", "listen = unix:/tmp/./a.sock|[receiver]|listen=unix:/tmp/a.sock", "the admin endpoint needs another"),
    ("receiver", "spool = spool", "'spool' is not an absolute path; it begins with a slash, such as /var/lib/gatepost/spool"),
    ("receiver", "spool = ~/spool", "is not an absolute path"),
    ("receiver", "spool = /nonexistent/spool", "/nonexistent: No such file or directory; create it"),
    ("receiver", "spool = /etc/passwd", "/etc/passwd is not a directory; name another one"),
    ("receiver", "spool = /etc/passwd/spool", "/etc/passwd is not a directory"),
    ("router", "state = state", "'state' is not an absolute path; it begins with a slash, such as /var/lib/gatepost/state"),
    ("router", "state = /nonexistent/state", "/nonexistent: No such file or directory; create it"),
    ("router", "state = /etc/passwd", "/etc/passwd is not a directory; name another one"),
    ("router", "state = /var/tmp/gatepost-spool|[receiver]|spool = /var/tmp/gatepost-spool", "is the spool; use a directory of its own"),
    ("router", "state_dir = /var/lib/gatepost/state", "no option 'state_dir'"),
    ("receiver", "spool = /var/tmp/gatepost-spool|spool_max = 10GB", "did you mean 10GiB?"),
    ("receiver", "spool = /var/tmp/gatepost-spool|spool_max = 100KiB", "not between 1MiB and 1024GiB"),
    ("receiver", "spool_dir = /var/lib/gatepost/spool", "no option 'spool_dir'"),
    ("admin", "listen = unix:/nonexistent/admin.sock", "/nonexistent: No such file or directory"),
    ("admin", "listen = 0.0.0.0:9464", "has no authentication"),
    ("admin", "listen = 9464", "has no address; write 127.0.0.1:8080"),
    ("receiver", "listen = :8080", "has no address; write 127.0.0.1:8080"),
    ("receiver", "listen = /run/gatepost/receiver.sock", "write unix:/run/gatepost/receiver.sock"),
    ("receiver", "listen = 127.0.0.1:8080 ssl", "is not a number"),
    ("admin", "listen = false", "did you mean off?"),
    ("admin", "allow_remote = true", "did you mean on?"),
    # sizes and times
    ("receiver", "max_body = 10MB", "did you mean 10MiB?"),
    ("receiver", "max_body = 10 MiB", "did you mean 10MiB?"),
    ("receiver", "max_body = 10", "needs a unit: one of B, KiB, MiB, GiB"),
    ("receiver", "max_body = 1048576", "needs a unit: one of B, KiB, MiB, GiB"),
    ("receiver", "max_body = 1m", "did you mean 1MiB?"),
    ("receiver", "max_body = unlimited", "not a number with a unit"),
    ("receiver", "ack_timeout = 8000", "needs a unit: one of ms, s, min, h, d"),
    ("receiver", "ack_timeout = 8sec", "did you mean 8s?"),
    ("receiver", "max_connections = 4k", "not a whole number"),
    ("receiver", "max_body = 128MiB", "not between 1KiB and 64MiB"),
    ("receiver", "max_in_flight = 100KiB", "max_in_flight"),
    ("receiver", "ack_timeout = 8", "needs a unit: one of ms, s, min, h, d"),
    ("receiver", "ack_timeout = 8 seconds", "did you mean 8s?"),
    ("receiver", "ack_timeout = 1m", "the units are ms, s, min, h, d"),
    ("receiver", "threads = auto", "not a whole number"),
    ("router", "dedup_window = 3 days", "did you mean 3d?"),
    ("router", "dedup_window = 1min", "shorter than twice the tolerance"),
    ("router", "max_batch = 10k", "not a whole number"),
    # sources
    ("source invoicing", "secret = 7d8f0c1b2a3e4f5061728394a5b6c7d8 # mine", "line of its own"),
    ("source invoicing", "secret = ${WEBHOOK_SECRET}", "variables are not replaced"),
    ("source invoicing", "secret = $WEBHOOK_SECRET", "variables are not replaced"),
    ("source invoicing", "secret = short", "shorter than 16 bytes"),
    ("source invoicing", "secret_file = /nonexistent/secret", "No such file"),
    ("source invoicing", "path = webhooks/invoicing", "begins with a slash"),
    ("source invoicing", "path = /webhooks/*", "paths have no patterns"),
    ("source invoicing", "path = https://gateway.example/webhooks", "write its path only"),
    ("source invoicing", "header_prefix = X-Invoicing", "lowercase"),
    ("source invoicing", "header_prefix = x-invoicing-signature", "its prefix is x-invoicing"),
    ("source invoicing", "webhook_id = not/an/id", "letters, digits and hyphens"),
    ("source invoicing", "replay_guard = yes", "neither on nor off; did you mean on?"),
    ("source invoicing", "replay_guard = Disabled", "did you mean off?"),
    ("source invoicing", "path = /webhooks/:id", "paths have no patterns"),
    ("source invoicing", "path = /webhooks/[a-z]+", "paths have no patterns"),
    ("source invoicing", "path = /webhooks/{id}", "paths have no patterns"),
    ("source invoicing", "tolerance = 5m", "did you mean 5min or 5ms?"),
    ("source invoicing", "webhook_id = *", "letters, digits and hyphens"),
    ("source invoicing", "kind = event", "begins with a slash"),
    ("source invoicing", "key = invoiceId", "such as /invoiceId"),
    ("source invoicing", "key = $.invoiceId", "such as /invoiceId"),
    ("source invoicing", "key = delivery_id", "such as /invoiceId"),
    # topics
    ("topics", "prefix = invoicing.*", "is not a name"),
    ("events", "invoice.* = in voices", "not a topic name"),
    ("events", "invoice.*.x = invoices", "a pattern is the first words of a kind and .*, such as invoice.*; there is none for all kinds"),
    ("events", "invoice.accepted, invoice.rejected = invoices", "write one line for each kind"),
    ("events", "invoice.* = t.deliveries", "one of Gatepost's own topics"),
    ("events", '"invoice.accepted" = t.invoices', "no quotes"),
    ("events", "'invoice.accepted' = t.invoices", "no quotes"),
    ("events", '"invoice.*" = t.invoices', "no quotes"),
    ("events", "invoice.* = __consumer_offsets", "Kafka's own"),
    # the service
    ("service", "base_url = api.example/v1", "not an https URL"),
    ("service", "base_url = http://api.example/v1", "unencrypted"),
    ("service", "base_url = https://api.example/v1/webhooks", "write it without /webhooks"),
    ("service", "api_key_file = /nonexistent/key", "cannot open /nonexistent/key"),
    ("service", "api_key = Bearer 7d8f0c1b2a3e4f50", "begins with the word Bearer, which the service would take for a part of it"),
    ("service", "api_key = bearer  7d8f0c1b2a3e4f50", "leave only the key"),
    ("service", "api_key = x-api-key: 7d8f0c1b2a3e4f50", "not allowed in a header"),
    ("service", "ca_file = /nonexistent/ca.pem", "cannot open /nonexistent/ca.pem"),
    ("service", "ca_file = /etc/ssl/certs", "ca_file: /etc/ssl/certs is not a regular file"),
    ("service", "ca_file = /etc/passwd", "ca_file: /etc/passwd contains no certificate in PEM"),
    # Kafka
    ("kafka", "bootstrap.servers = http://kafka1:9092", "write HOST:PORT"),
    ("kafka", "bootstrap.servers = SASL_SSL://kafka1:9092", "security.protocol says"),
    ("kafka", "bootstrap.servers = kafka1:9092;kafka2:9092", "separated by commas"),
    ("kafka", "bootstrap.servers = kafka1:9092 kafka2:9092", "separated by commas"),
    ("kafka", "bootstrap.servers = kafka1:90920", "between 1 and 65535"),
    ("kafka", "bootstrap.servers = ::1:9092", "in brackets"),
    ("kafka", "bootstrap.servers = kafka1:9092,", "empty entry"),
    ("kafka", "bootstrap.servers = [kafka1:9092]", "only an IPv6 address is in brackets"),
    ("kafka", "bootstrap.servers = [kafka1:9092,kafka2:9092]", "write HOST:PORT"),
    ("kafka", "bootstrap.servers = Embedded", "did you mean embedded?"),
    ("kafka", "bootstrap.servers = embedded,kafka1:9092", "did you mean embedded?"),
    ("kafka", "bootstrap.servers = user:7d8f0c1b@kafka1:9092", "write HOST:PORT"),
    ("kafka", "bootstrap.servers = user:7d8f,0c1b@kafka1:9092", "between 1 and 65535"),
    ("kafka", 'client.id = CORP\\gatepost', "must not contain a quote"),
    ("kafka", "bootstrap.servers = kafka\\1:9092,kafka2:9092", "write HOST:PORT"),
    ("kafka", 'client.id = "a"b"', "must not contain a quote"),
    ("kafka", "client.id = a\tb", "must not contain a quote"),
    ("kafka", "bootstrap.servers = embedded|[gatepost]|roles = receiver", "set roles = receiver, router"),
    ("kafka", "bootstrap.servers = embedded|[gatepost]|roles = router", "set roles = receiver, router"),
    ("kafka", "bootstrap.servers = embedded|security.protocol = SSL", "speaks PLAINTEXT only"),
    ("kafka", f"{SASL}|sasl.mechanism = PLAIN|sasl.username = u|sasl.password: p", "not option: value"),
    ("kafka", "acks = 1", "may not be set"),
    ("kafka", f"{SASL}|sasl.mechanism = PLAIN|sasl.username = u|sasl.password = $PASSWORD", "variables are not replaced"),
    ("kafka", "bootstrap_servers = kafka1:9092", "did you mean bootstrap.servers?"),
    ("kafka", "linger.ms = 5ms", "linger.ms: '5ms' is not possible; expected 0 .. 900000"),
    ("kafka", "session.timeout.ms = 30s", "'30s' is not possible"),
    ("kafka", "compression.type = on", "expected none, gzip, snappy, lz4, zstd"),
    ("kafka", "linger.ms = fast", "linger.ms: 'fast' is not possible; expected 0 .. 900000"),
    ("kafka", "linger.ms = 20000", "ack_timeout, 8s"),
    ("kafka", "linger.ms = 8000", "ack_timeout, 8s"),
    ("kafka", "bootstrap.servers = :9092", "the host is missing"),
    ("kafka", "client.id = foo # bar", "line of its own"),
    ("kafka", "security.protocol = TLS", "expected plaintext, ssl, sasl_plaintext, sasl_ssl"),
    ("kafka", SCRAM, "SCRAM-SHA-512 needs sasl.username and sasl.password_file"),
    ("kafka", f"{SCRAM}|sasl.username = gatepost", "needs sasl.password_file"),
    ("kafka", f"{SASL}|sasl.username = gatepost|sasl.password = p", "defaults to GSSAPI, which takes no user name"),
    ("kafka", f"{SASL}|sasl.mechanism = OAUTHBEARER", "no source of tokens"),
    ("kafka", f"{SASL}|sasl.mechanism = scram-sha-512|sasl.username = u|sasl.password = p", "did you mean SCRAM-SHA-512?"),
    ("kafka", f"{SASL}|sasl.mechanism = AWS_MSK_IAM", "'AWS_MSK_IAM' is not a mechanism of Kafka"),
    ("kafka", "max.poll.interval.ms = 10000", "must be >= `session.timeout.ms`"),
    ("kafka", "socket.timeout.ms = 300000", "must be set <= `transaction.timeout.ms`"),
    ("kafka", "fetch.max.bytes = 10", "must be >= `message.max.bytes`"),
    ("kafka", "security.protocol = SSL|ssl.cipher.suites = RC4", "ssl.cipher.suites failed"),
    ("kafka", "sasl.username = gatepost|sasl.password = p", "no effect without security.protocol = SASL_SSL"),
    ("kafka", "security.protocol = SSL|sasl.mechanism = PLAIN", "no effect without security.protocol = SASL_SSL"),
    ("kafka", "transaction.timeout.ms = 1000", "at least 5000"),
    ("kafka", "heartbeat.interval.ms = 15000", "a third of session.timeout.ms"),
    ("kafka", "ssl.truststore.location = /etc/trust.jks", "use `ssl.ca.location`"),
    ("kafka", "ssl.ca.location = /nonexistent/ca.pem", "cannot open /nonexistent/ca.pem"),
]
# These pass: only the warning says that they are probably not intended.
WARNINGS = [
    ("receiver", "listen = 0.0.0.0:8080", "without TLS"),
    ("receiver", "listen=0.0.0.0:8081", "without TLS"),  # a second one
    ("admin", "listen = 0.0.0.0:9464|allow_remote = on", "neither TLS nor authentication"),
    ("source invoicing", "secret = at least sixteen bytes that nobody can guess", "placeholder"),
    ("source invoicing", "secret = xxxxxxxxxxxxxxxxxxxxxxxx", "placeholder"),
    ("source invoicing", 'secret = " 7d8f0c1b2a3e4f5061728394a5b6c7d8"', "begins or ends with a blank"),
    ("source invoicing", 'secret = "7d8f0c1b2a3e4f5061728394a5b6c7d8 "', "begins or ends with a blank"),
    ("source invoicing", "secret = secret=7d8f0c1b2a3e4f5061728394a5b6c7d8", "begins with a name and =, which belong to it; leave only the value"),
    ("source invoicing", 'secret = WEBHOOK_SECRET_2="7d8f0c1b2a3e4f5061728394a5b6c7d8"', "begins with a name and ="),
    ("source invoicing", "secret = export SECRET=7d8f0c1b2a3e4f5061728394a5b6c7d8", "begins with a name and ="),
    ("source invoicing", 'secret = {"secret": "7d8f0c1b2a3e4f5061728394a5b6c7d8"}', "as JSON, which belong to it; leave only the value"),
    ("source invoicing", "secret = -----BEGIN PRIVATE KEY-----7d8f0c1b2a3e4f50", "is in PEM, as a private key"),
    ("service", "api_key = API_KEY=7d8f0c1b2a3e4f50", "the API key begins with a name and ="),
    ("service", 'api_key = {"key":"7d8f0c1b2a3e4f50"}', "the API key is in braces or brackets, as JSON"),
    ("service", "api_key = changeme", "the API key is a placeholder; use one that the service has issued"),
    ("source invoicing", "secret = 7d8f0c1b2a3e4f5061728394a5b6c7d8\\n", "ends with a backslash and the letter n"),
    ("source invoicing", "header_prefix = invoicing", "begin with x-"),
    ("source invoicing", "key = /lines/00/x", "key: '/lines/00/x': an index with a leading zero is that of no element"),
    ("source invoicing", "key = //invoiceId", "it ends with a slash or has two in a row"),
    ("source invoicing", "subject = /invoiceId/", "subject: '/invoiceId/': it ends with a slash or has two in a row"),
    ("source invoicing", "subject = /*/id", "has no wildcards"),
    ("source invoicing", "kind = /events/-/kind", "kind: '/events/-/kind': - stands for the place behind the last element"),
    ("receiver", "listen = 127.0.0.1:8080|listen=192.0.2.55:8081|trusted_proxy = 192.0.2.1", "no interface of this machine"),
    ("receiver", "listen = unix:/run/gatepost-nonexistent/r.sock", "must exist before gatepostd starts"),
    ("receiver", "trusted_proxy = 0.0.0.0/0", "every client is trusted"),
    ("receiver", "listen = 127.0.0.1:8443|trusted_proxy = 10.9.9.9|proxy_protocol = required", "accepts no connection: proxy_protocol = required, and no trusted_proxy"),
    ("receiver", "listen = [::1]:8443|trusted_proxy = 127.0.0.1|proxy_protocol = required", "can reach it; add trusted_proxy = ::1"),
    ("receiver", "listen = unix:/run/r.sock|trusted_proxy = 127.0.0.1|proxy_protocol = required", "add trusted_proxy = unix"),
    ("receiver", "listen = 0.0.0.0:8443|trusted_proxy = unix|proxy_protocol = required", "add trusted_proxy = ADDRESS, that of the proxy"),
    ("receiver", "listen = unix:/run/gatepost-r.sock|trusted_proxy = 127.0.0.1", "unix:/run/gatepost-r.sock: no trusted_proxy can reach it, so the address of each client is that of its proxy; add trusted_proxy = unix"),
    ("receiver", "listen = 127.0.0.1:8080|trusted_proxy = unix", "no trusted_proxy can reach it, so the address of each client is that of its proxy; add trusted_proxy = 127.0.0.1"),
    ("receiver", "listen = [::1]:8080|trusted_proxy = 127.0.0.1", "add trusted_proxy = ::1"),
    ("source invoicing", "tolerance = 5s", "when the clocks differ"),
    ("source invoicing", "tolerance = 30h", "send it again as another event for 30h"),
    ("source invoicing", "tolerance = 1h|replay_guard = off", "because replay_guard is off"),
    ("router", "dedup_window = 10min", "signed anew"),
    ("receiver", "spool_max = 1GiB", "no effect without spool; set spool = /var/lib/gatepost/spool"),
    ("receiver", "spool = /dev/shm/gatepost-spool|spool_max = 1MiB", "a reboot loses deliveries that were answered 200; use"),
    ("receiver", "spool = /var/tmp/gatepost-spool|spool_max = 1MiB|max_body = 2MiB", "the largest deliveries can never be spooled"),
    ("receiver", "spool = /var/tmp/gatepost-spool|spool_max = 1MiB|[gatepost]|roles = router", "stores nothing in the spool"),
    ("receiver", "spool = /var/tmp/gatepost-spool|spool_max = 1MiB|[router]|dedup_window = 90min", "for more than 45min go to quarantine"),
    ("source second", "path = /second|secret = 7d8f0c1b2a3e4f5061728394a5b6c7d8", "have a secret in common"),
    ("events", "invoice.* = t.i|held_unmapped_decision = t.h|reporting_batch.* = t.b|Invoice.accepted = t.a", "'Invoice.accepted': the service documents no such kind, and kinds are case-sensitive; did you mean invoice.accepted?"),
    ("events", "invoice.acepted = t.a|invoice.* = t.i|held_unmapped_decision = t.h|reporting_batch.* = t.b", "'invoice.acepted': the service documents no such kind, and kinds are case-sensitive; did you mean invoice.accepted?"),
    ("events", "invoice.* = t.i|held_unmaped_decision = t.h|reporting_batch.* = t.b", "did you mean held_unmapped_decision?"),
    ("events", "invoice.* = t.i|held_unmapped_decision = t.h|reporting_batches.* = t.b", "did you mean reporting_batch.*?"),
    ("events", "invoice.* = t.i|held_unmapped_decision = t.h|reporting_batch.* = t.b|reporting_batch = t.x", "did you mean reporting_batch.*?"),
    ("events", "INVOICE.* = t.i|held_unmapped_decision = t.h|reporting_batch.* = t.b", "did you mean invoice.*?"),
    ("events", "invoice.* = t.i|Held_unmapped_decision = t.h|reporting_batch.* = t.b", "did you mean held_unmapped_decision?"),
    ("events", "invoice.* = t.i|held_unmapped_decision = t.h|reporting_Batch.overdue = t.b", "did you mean reporting_batch.overdue?"),
    ("events", "invoice.* = t.i|held_unmapped_decision = t.h|reporting_batch.* = t.b|Reporting_batch.x = t.x|reporting_batch.x = t.b", "did you mean reporting_batch.x?"),
    ("kafka", "bootstrap.servers = embedded", "for experiments"),
    ("kafka", "security.protocol = SSL|enable.ssl.certificate.verification = false", "not verified"),
    ("kafka", "security.protocol = SSL|enable.ssl.certificate.verification = 0", "not verified"),
    ("kafka", "security.protocol = SSL|ssl.endpoint.identification.algorithm = none", "can act as a broker"),
    ("kafka", "security.protocol = SSL|ssl.endpoint.identification.algorithm = NONE", "can act as a broker"),
    ("kafka", "ssl.key.password = p", "no effect without security.protocol = SSL"),
    ("kafka", "security.protocol = SASL_PLAINTEXT|sasl.mechanism = PLAIN|sasl.username = u|sasl.password = p", "does not encrypt"),
    ("kafka", "security.protocol = SASL_SSL|sasl.mechanism = PLAIN|sasl.username = User:gatepost|sasl.password = p", "leave out User:"),
    ("kafka", f"{SASL}|sasl.mechanism = GSSAPI", "Kerberos ticket"),
    ("kafka", "linger.ms = 2000", "waits for 2000 ms"),
    ("kafka", "fetch.min.bytes = 1000000|fetch.wait.max.ms = 30000", "events may be 30000 ms late: brokers wait that long, fetch.wait.max.ms, for 1000000 bytes"),
    ("kafka", "fetch.wait.max.ms = 1001|fetch.min.bytes = 2000", "events may be 1001 ms late"),
    ("kafka", "heartbeat.interval.ms = 6000", "more than a third"),
    ("kafka", "session.timeout.ms = 5000|heartbeat.interval.ms = 1000", "group.min.session.timeout.ms"),
    ("kafka", "session.timeout.ms = 2000000|max.poll.interval.ms = 2000000", "group.max.session.timeout.ms"),
    ("kafka", "transaction.timeout.ms = 1000000", "transaction.max.timeout.ms"),
    ("kafka", "debug = all", "a great deal"),
]


# These pass without a warning, although they are close to one.
FINE = [
    ("source invoicing", "key = /lines/0/00x|subject = /lines/10/a*-|kind = /~1/0"),
    ("receiver", "listen = 0.0.0.0:8080|trusted_proxy = 192.0.2.1"),
    ("receiver", "trusted_proxy = 127.0.0.0/8|proxy_protocol = required"),
    ("receiver", "listen = [::1]:8443|trusted_proxy = ::/64|proxy_protocol = required"),
    ("receiver", "spool = /var/tmp/gatepost-spool|spool_max = 1MiB"),
    ("receiver", "spool = /var/tmp/gatepost-spool|spool_max = 1MiB|[router]|dedup_window = 2h"),
    ("kafka", f"{SASL}|sasl.mechanism = OAUTHBEARER|enable.sasl.oauthbearer.unsecure.jwt = T"),
    ("kafka", "bootstrap.servers = kafka1, kafka2:9093 ,[::1]:9092"),
    ("kafka", "linger.ms = 100|session.timeout.ms = 30000|heartbeat.interval.ms = 10000|transaction.timeout.ms = 60000"),
    ("gatepost", "roles = receiver|[kafka]|heartbeat.interval.ms = 60000|transaction.timeout.ms = 1000"),
    ("gatepost", "roles = router|[kafka]|linger.ms = 2000"),
    ("kafka", "fetch.min.bytes = 1000000"),
    ("kafka", "fetch.min.bytes = 1000000|fetch.wait.max.ms = 1000"),
    ("kafka", "fetch.wait.max.ms = 30000"),
    ("gatepost", "roles = receiver|[kafka]|fetch.min.bytes = 1000000|fetch.wait.max.ms = 30000"),
    ("source invoicing", "secret = 7d8f0c1b#2a3e4f50;61728394a5b6c7d8"),
    ("source invoicing", "secret = d8f0c1bsecret=2a3e\\n4f506172'8394a5b6c7d8'"),
    ("source invoicing", 'secret = "7d8f0c1b # 2a3e4f50 ; 61728394a5b6c7d8" # a comment'),
    ("source invoicing", "secret = kdjfhgnvbcxzytreDJFHGNVBCXZ=="),
    ("source invoicing", "secret = Ab=7d8f0c1b2a3e4f50"),
    ("service", "api_key = sk_live.7d8f0c1b-2a3e/4f50+6172=="),
    ("events", "invoice.* = t.invoices|Invoice.accepted = t.invoices|[gatepost]|roles = receiver"),
    ("events", "invoice.* = t.i|held_unmapped_decision = t.h|reporting_batch.* = t.b|Invoice = t.x|invoice.Paid = t.x|reporting_batch.overdue.* = t.x"),
    ("topics", "prefix = a-b_c.d"),
    ("kafka", "max.poll.interval.ms = 20000"),
    ("source invoicing", "path = /hook/http://x"),
    ("receiver", "listen = 0.0.0.0:8080|trusted_proxy = 192.0.2.1|listen=[::]:8080"),
]


def startable(text, directory):
    """The same configuration on free ports, and with the spool in this directory."""
    text = re.sub(r"(?m)^(listen ?= ?\S+):(?:80|94)\d\d$", r"\1:0", text)
    return re.sub(r"/(?:var/tmp|dev/shm)/gatepost-spool", f"{directory}/spool", text)


def written(section, added):
    """The text of a good configuration with these lines."""
    sections = {name: list(lines) for name, lines in GOOD.items()}
    lines = sections.setdefault(section, [])
    for line in added.split("|"):
        name = line.partition(" =")[0]
        same = [i for i, each in enumerate(lines) if each.startswith(f"{name} =")]
        lines[same[0] if same else len(lines):same[0] + 1 if same else len(lines)] = [line]
    text = "".join(f"[{name}]\n" + "".join(f"{line}\n" for line in lines) for name, lines in sections.items())
    return text


@pytest.fixture
def check(tmp_path):
    """Have the daemon and the command line check a text; both must say the same. Returns the exit status and the problems."""
    def run(text, directory=tmp_path, mode=0o600):
        path = directory / "gatepost.conf"
        path.write_text(text)
        path.chmod(mode)
        outcomes = []
        for command in ([BUILD / "gatepostd", "-t", "-c", path], [BUILD / "gatepost", "-c", path, "check"]):
            done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60, env=ENVIRONMENT)
            assert_no_sanitizer_report(done.stderr)
            problems = [line for line in done.stderr.replace(str(path), "FILE").splitlines() if line.startswith("FILE")]
            outcomes.append((done.returncode, problems))
        assert outcomes[0] == outcomes[1]
        return outcomes[0]
    return run


def lines_with(text, section, added):
    """The possible lines of a problem: of the section's header, and of each added option."""
    return [number for number, line in enumerate(text.splitlines(), 1) if line in (f"[{section}]", *added)]


def test_good_configuration_passes_without_a_warning(check):
    assert check(written("gatepost", "log_level = info")) == (0, [])


@pytest.mark.parametrize("section, added, words", ERRORS)
def test_mistake_is_refused_on_its_line(check, section, added, words):
    text = written(section, added)
    status, problems = check(text)
    errors = "\n".join(problems)
    found = re.findall(r"^FILE:(\d+): (?!warning: )(.*)$", errors, re.M)
    assert status == EX_CONFIG and len(found) == 1, errors
    assert words in found[0][1], errors
    assert int(found[0][0]) in lines_with(text, section, added.split("|")), (text, errors)
    assert "7d8f" not in errors


@pytest.mark.parametrize("section, added", FINE)
def test_unusual_configuration_passes_without_a_warning(check, section, added):
    assert check(written(section, added)) == (0, [])


@pytest.mark.parametrize("section, added, words", WARNINGS)
def test_doubtful_configuration_passes_with_a_warning(check, section, added, words):
    text = written(section, added)
    status, problems = check(text)
    errors = "\n".join(problems)
    found = re.findall(r"^FILE:(\d+): warning: (.*)$", errors, re.M)
    assert status == 0 and len(found) == 1, errors
    assert words in found[0][1], errors
    assert int(found[0][0]) in lines_with(text, section, added.split("|")), (text, errors)
    assert "7d8f" not in errors


@pytest.mark.parametrize("section, option, value, instead", [
    ("receiver", "spool", "/var/tmp/gatepost-spool", "/var/lib/gatepost/spool"),
    ("receiver", "spool", "//tmp/gatepost-spool", "/var/lib/gatepost/spool"),
    ("receiver", "spool", "/var/lib/../tmp/./gatepost-spool", "/var/lib/gatepost/spool"),
    ("router", "state", "/tmp/gatepost-state", "/var/lib/gatepost/state"),
    ("receiver", "listen", "unix:/tmp/x.sock", "unix:/run/gatepost/receiver.sock"),
    ("admin", "listen", "unix:/var/tmp/x.sock", "unix:/run/gatepost/admin.sock"),
])
def test_path_that_the_units_have_for_themselves(check, section, option, value, instead):
    """A file in /tmp is of an experiment, which no unit reads."""
    text = written(section, f"{option} = {value}" + "|spool_max = 1MiB" * (option == "spool"))
    with tempfile.TemporaryDirectory(dir="/dev/shm") as outside:
        status, problems = check(text, pathlib.Path(outside))
    (problem,) = problems
    level = "" if option == "spool" else "warning: "
    assert status == (EX_CONFIG if option == "spool" else 0)
    assert f": {level}{option}: {value}: the systemd units have a /tmp and a /var/tmp of their own, " in problem
    assert problem.endswith(f"; use {instead}") and int(problem.split(":")[1]) in lines_with(text, section, [f"{option} = {value}"])
    assert check(text) == (0, [])


# What a file holds instead of a secret or of an API key, and what check says about either; an error if it begins with !.
FILES = [
    ('"7d8f0c1b2a3e4f5061728394a5b6c7d8"', "is in quotes, which belong to it", "is in quotes, which belong to it"),
    ("'7d8f0c1b2a3e4f5061728394a5b6c7d8'", "is in quotes, which belong to it", "is in quotes, which belong to it"),
    ("SECRET=7d8f0c1b2a3e4f5061728394a5b6c7d8", "begins with a name and =", "begins with a name and ="),
    ('webhook_secret="7d8f0c1b2a3e4f5061728394a5b6c7d8"', "begins with a name and =", "begins with a name and ="),
    ('{"secret":"7d8f0c1b2a3e4f5061728394a5b6c7d8"}', "as JSON", "as JSON"),
    ('{"secret": "7d8f0c1b2a3e4f5061728394a5b6c7d8"}', "as JSON", "!not allowed in a header"),
    ("-----BEGIN PRIVATE KEY-----\n7d8f0c1b2a3e4f50\n-----END PRIVATE KEY-----", "!is in PEM", "!not allowed in a header"),
    ("SECRET=7d8f0c1b2a3e4f5061728394a5b6c7d8\nOTHER=x", "!has more than one line", "!not allowed in a header"),
    ("Bearer 7d8f0c1b2a3e4f5061728394a5b6c7d8", None, "!begins with the word Bearer"),
    ("7d8f0c1b2a3e4f5061728394a5b6c7d8==", None, None),
    ("x-api-key:7d8f0c1b2a3e4f5061728394a5b6c7d8", "begins with a name and a colon", "begins with a name and a colon"),
    ("Secret: 7d8f0c1b2a3e4f5061728394a5b6c7d8", "begins with a name and a colon", "!not allowed in a header"),
    ("invoicing.secret=7d8f0c1b2a3e4f5061728394a5b6c7d8", "begins with a name and =", "begins with a name and ="),
    ("webhook_secret : 7d8f0c1b2a3e4f5061728394a5b6c7d8", "begins with a name and a colon", "!not allowed in a header"),
    ("signing-secret=7d8f0c1b2a3e4f5061728394a5b6c7d8", "begins with a name and =", "begins with a name and ="),
    ("secret = 7d8f0c1b2a3e4f5061728394a5b6c7d8", "begins with a name and =", "!not allowed in a header"),
    ("7d8f0c1b2a3e4f5061728394a5b6c7d8,", "ends with a comma", "ends with a comma"),
    ('"7d8f0c1b2a3e4f5061728394a5b6c7d8",', "ends with a comma", "ends with a comma"),
    ("`7d8f0c1b2a3e4f5061728394a5b6c7d8`", "is in quotes", "is in quotes"),
    ("<7d8f0c1b2a3e4f5061728394a5b6c7d8>", "is in angle brackets", "is in angle brackets"),
    ("${WEBHOOK_SECRET_7d8f}", "is a variable or a command", "is a variable or a command"),
    ("$WEBHOOK_SECRET_7d8f", "is a variable or a command", "is a variable or a command"),
    ("$(cat /run/secrets/7d8f)", "is a variable or a command", "!not allowed in a header"),
    ("7d8f0c1b2a3e4f5061728394a5b6c7d8 # of the sandbox", "ends with a comment", "!not allowed in a header"),
    ("7d8f0c1b2a3e4f5061728394a5b6c7d8 #old", "ends with a comment", "!not allowed in a header"),
    ("YourSigningSecret7d8f", "is a placeholder", "is a placeholder"),
    ("put-your-7d8f-secret-here", "is a placeholder", "is a placeholder"),
    ("****************", "is a placeholder", "is a placeholder"),
    ("\u2022" * 16, "is a placeholder", "!not allowed in a header"),
    ("\u25cf" * 15 + "*", "is a placeholder", "!not allowed in a header"),
    (os.path.realpath(__file__), "is the path of a file, not its content", "is the path of a file, not its content"),
    ("/7d8f0c1b2a3e4f5061728394a5b6c7d8", None, None),
    ("7d8f:0c1b2a3e4f5061728394a5b6c7d8", None, None),
    ("$2b$10$7d8f0c1b2a3e4f50617283", None, None),
    ("your secret is not 7d8f", "is a placeholder", "!not allowed in a header"),
    ("7d8f0c1b2a3e #4f5061728394a5b6c7d8", None, "!not allowed in a header"),
]


@pytest.mark.parametrize("content, of_secret, of_key", FILES)
def test_file_that_holds_more_than_a_secret(check, tmp_path, content, of_secret, of_key):
    path = tmp_path / "secret"
    path.write_text(f"{content}\n")
    path.chmod(0o600)
    for text, words, what in ((written("source second", f"path = /second|secret_file = {path}"), of_secret, "secret"),
                              (written("service", f"api_key_file = {path}"), of_key, "API key")):
        status, problems = check(text)
        if words is None:
            assert (status, problems) == (0, [])
        elif words.startswith("!"):
            assert status == EX_CONFIG and len(problems) == 1 and words[1:] in problems[0], problems
        else:
            assert status == 0 and len(problems) == 1 and f": warning: the {what} in the file " in problems[0] and words in problems[0], problems
        assert "7d8f" not in "".join(problems)


@pytest.mark.parametrize("content, words", [(content, None if words is None or "placeholder" in words else words.lstrip("!"))
                                            for content, words, _ in FILES] + [("\ufeff7d8f0c1b", "begins with a byte order mark"), (" 7d8f0c1b", "blank"),
                                            ("7d8f0c1b\nkey=2", "more than one line"), ("p4ss", None),
                                            ("sasl.password = 7d8f", "a name and ="),
                                            ('org.apache.kafka.common.security.scram.ScramLoginModule required username="a" password="7d8f";', "Java"),
                                            ("Endpoint=sb://ns.servicebus.windows.net/;SharedAccessKeyName=a;SharedAccessKey=7d8f0c1b=", None)])
def test_file_that_holds_more_than_a_password(check, tmp_path, content, words):
    """A broker says of it only that it is wrong."""
    path = tmp_path / "password"
    path.write_text(f"{content}\n")
    path.chmod(0o600)
    status, problems = check(written("kafka", f"{SCRAM}|sasl.username = gatepost|sasl.password_file = {path}"))
    assert status == 0 and len(problems) == (words is not None) and "7d8f" not in "".join(problems), problems
    if words is not None:
        assert ": warning: the value of sasl.password " in problems[0] and words in problems[0]


def test_random_secrets_pass_without_a_warning(check, tmp_path):
    """In the usual forms, with and without padding; enough of them that any character of theirs is the first or the last one."""
    random = Random(20)
    forms = (lambda data: base64.b64encode(data).decode(), lambda data: base64.urlsafe_b64encode(data).decode(),
             lambda data: base64.urlsafe_b64encode(data).decode().rstrip("="), bytes.hex, lambda data: data.hex().upper(),
             lambda data: "whsec_" + base64.b64encode(data).decode(), lambda data: "sk-live-" + base64.urlsafe_b64encode(data).decode())
    secrets = [form(random.randbytes(length)) for form in forms for length in (24, 32, 40) for _ in range(50)]
    text = written("gatepost", "log_level = info")
    for i, secret in enumerate(secrets):
        (tmp_path / f"secret-{i}").write_text(secret)
        (tmp_path / f"secret-{i}").chmod(0o600)
        text = text.replace("header_prefix = x-invoicing\n", f"header_prefix = x-invoicing\nsecret_file = {tmp_path}/secret-{i}\n")
    assert check(text) == (0, [])
    for secret in secrets[::10]:
        assert check(written("service", f"api_key = {secret}")) == (0, [])


@pytest.mark.parametrize("key", [None, "ssl.key.location", "ssl.key.pem_file", "ssl.keystore.location"])
def test_certificate_for_the_brokers_needs_its_key(check, tmp_path, authority, monkeypatch, key):
    """Without it, librdkafka presents no certificate and does not say so."""
    certificate, path = authority.issue("gatepost")
    added = f"security.protocol = SSL|ssl.certificate.location = {certificate}"
    if key == "ssl.keystore.location":
        monkeypatch.setitem(ENVIRONMENT, "ASAN_OPTIONS", f"{ENVIRONMENT.get('ASAN_OPTIONS', '')}:detect_leaks=0")  # librdkafka leaks its certificates
        store = tmp_path / "store"
        subprocess.run(["openssl", "pkcs12", "-export", "-in", certificate, "-inkey", path, "-passout", "pass:p", "-out", store], check=True)
        path = store
        added += "|ssl.keystore.password = p"
    path.chmod(0o600)
    if key:
        assert check(written("kafka", f"{added}|{key} = {path}")) == (0, [])
        return
    status, (problem,) = check(written("kafka", added))
    assert status == 0 and ": warning: ssl.certificate.location has no effect without its key: " in problem


def test_directory_of_authorities_needs_names_of_openssl_rehash(check, tmp_path, authority):
    directory = tmp_path / "authorities"
    directory.mkdir()
    text = written("kafka", f"security.protocol = SSL|ssl.ca.location = {directory}")
    certificate = authority.certificate.read_text()
    for name in ("ca.pem", "0a1b2c3d", "0a1b2c3d.", "0a1b2c3d.r0", "0a1b2c3.0", "0A1B2C3D.0", ".0"):
        (directory / name).write_text(certificate)
    status, (problem,) = check(text)
    assert status == 0 and ": warning: ssl.ca.location: no broker is trusted" in problem and "openssl rehash" in problem
    subprocess.run(["openssl", "rehash", directory], check=True, capture_output=True)
    assert check(text) == (0, [])


def test_strict_check_fails_on_a_warning(check, tmp_path):
    check(written("kafka", "debug = conf"))
    strict = [BUILD / "gatepost", "-c", tmp_path / "gatepost.conf", "check", "--strict"]
    assert subprocess.run(strict, stdin=subprocess.DEVNULL, capture_output=True, timeout=60, env=ENVIRONMENT).returncode == EX_CONFIG
    check(written("gatepost", "log_level = info"))
    assert subprocess.run(strict, stdin=subprocess.DEVNULL, capture_output=True, timeout=60, env=ENVIRONMENT).returncode == 0


def test_sources_with_several_secrets_in_common_are_reported_once(check):
    secret = "secret = 7d8f another one of both sources"
    text = written("source second", f"path = /second|secret = 7d8f0c1b2a3e4f5061728394a5b6c7d8|{secret.replace(' =', '=')}")
    status, problems = check(text.replace("header_prefix = x-invoicing\n", f"header_prefix = x-invoicing\n{secret}\n"))
    assert status == 0 and len(problems) == 1 and "have a secret in common" in problems[0], problems


def test_refused_property_does_not_hide_other_errors_of_kafka(check):
    status, problems = check(written("kafka", "acks = 1|client.id = a\tb|linger.ms = 20000"))
    assert status == EX_CONFIG and len(problems) == 3, problems


def test_embedded_broker_and_others_exclude_each_other(check):
    text = written("kafka", "bootstrap.servers = embedded").replace("[kafka]\n", "[kafka]\nmetadata.broker.list = kafka1:9092\n")
    status, problems = check(text)
    assert status == EX_CONFIG and "already set by its other name" in problems[0], problems


@pytest.fixture
def check_json(tmp_path):
    """Check a text with --json and with these options. Returns the exit status and the document."""
    def run(text, *options):
        path = tmp_path / "gatepost.conf"
        path.write_text(text)
        path.chmod(0o600)
        done = subprocess.run([BUILD / "gatepost", "-c", path, "check", "--json", *options], stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, timeout=60, env=ENVIRONMENT)
        assert done.stderr == ""
        document = json.loads(done.stdout)
        assert document.pop("file") == str(path)
        return done.returncode, document
    return run


def test_json_has_every_problem_with_its_line_and_option(check_json):
    text = written("receiver", "listen = 0.0.0.0:8080")
    assert check_json(written("receiver", "threads = 2")) == (0, {"ok": True, "errors": 0, "warnings": 0, "problems": []})
    status, document = check_json(text)
    (problem,) = document.pop("problems")
    assert (status, document) == (0, {"ok": True, "errors": 0, "warnings": 1})
    assert "without TLS" in problem.pop("message")
    assert problem == {"line": 3, "level": "warning", "section": "receiver", "option": "listen"}
    status, document = check_json(text, "--strict")
    assert (status, document["ok"], document["errors"], document["warnings"]) == (EX_CONFIG, False, 0, 1)
    status, document = check_json("stray\n[source invoicing]\npath = x\nacks\n[kafka]\nacks = 1\n")
    assert (status, document["ok"], document["errors"]) == (EX_CONFIG, False, len(document["problems"]))
    found = {(each["line"], each["section"], each["option"], each["level"]) for each in document["problems"]}
    assert {(1, None, None, "error"), (3, "source invoicing", "path", "error"), (4, "source invoicing", None, "error"),
            (6, "kafka", "acks", "error")} <= found


def test_json_tells_of_a_file_that_cannot_be_read(check_json, tmp_path):
    (tmp_path / "gatepost.conf").mkdir()
    done = subprocess.run([BUILD / "gatepost", "-c", tmp_path / "gatepost.conf", "check", "--json"], capture_output=True, text=True, timeout=60)
    (problem,) = json.loads(done.stdout)["problems"]
    assert (done.returncode, problem["line"], problem["section"], problem["message"]) == (EX_CONFIG, None, None, "is not a regular file")


def test_check_ends_with_a_summary(check, tmp_path):
    def last_line(text, *options):
        check(text)
        done = subprocess.run([BUILD / "gatepost", "-c", tmp_path / "gatepost.conf", "check", *options], capture_output=True, text=True, timeout=60)
        return (done.stdout or done.stderr).replace(str(tmp_path / "gatepost.conf"), "FILE").splitlines()[-1]
    doubtful = written("kafka", "debug = conf")
    assert last_line(written("receiver", "threads = 2")) == "FILE: ok, 1 source, 9 event topics"
    assert last_line(doubtful) == "FILE: ok, 1 source, 9 event topics, 1 warning"
    assert last_line(written("events", "invoice.accepted = t.accepted")) == (
        "FILE: ok, 1 source, 1 event topic (none for 8 documented kinds, whose deliveries go to quarantine)")
    assert last_line(written("events", "invoice.* = t.invoices|reporting_batch.* = t.batches")) == (
        "FILE: ok, 1 source, 2 event topics (none for 1 documented kind, whose deliveries go to quarantine)")
    assert last_line(written("events", "invoice.accepted = t.accepted").replace("[gatepost]", "[gatepost]\nroles = receiver")) == "FILE: ok, 1 source, 1 event topic"
    assert last_line(doubtful, "--strict") == "gatepost check: FILE is refused because of --strict: 1 warning"
    assert last_line(written("kafka", "acks = 1")) == "gatepost check: FILE is refused: 1 error, 0 warnings"


def test_directory_of_the_spool_that_is_not_its_own_gets_a_warning(check, tmp_path):
    spool = tmp_path / "spool"
    spool.mkdir(0o700)
    text = written("receiver", f"spool = {spool}|spool_max = 1MiB")
    for name in ("lock", "0000000000000001.spool", "0000000000000001.spool.damaged", ".hidden"):
        (spool / name).touch()
    assert check(text) == (0, [])
    spool.chmod(0o750)
    status, problems = check(text)
    assert status == 0 and len(problems) == 1, problems
    assert f"FILE:4: warning: spool: others can open {spool} (mode 0750), which holds bodies; chmod 700 {spool}" in problems
    spool.chmod(0o700)
    (spool / "dump.rdb").touch()
    status, problems = check(text)
    assert status == 0 and len(problems) == 1, problems
    assert f"{spool} has other files (1); use a directory of its own, but not before gatepostd has drained the deliveries" in problems[0]
    (spool / "0000000000000001.spool").unlink()
    status, (problem,) = check(text)
    assert status == 0 and problem.endswith(f"{spool} has other files (1); use a directory of its own"), problem
    (spool / "0000000000000001.spool.damaged").unlink()
    spool.chmod(0o755)  # as that of /var/lib, which stays as it is
    status, (problem,) = check(text)
    assert status == 0 and problem.endswith(f": spool: {spool} has other files; use a directory of its own, such as /var/lib/gatepost/spool"), problem
    (spool / "dump.rdb").unlink()
    (spool / "lost+found").mkdir()
    spool.chmod(0o700)
    assert check(text) == (0, [])


def test_spool_larger_than_its_file_system_gets_a_warning(check):
    status, problems = check(written("receiver", "spool = /dev/shm/gatepost-spool|spool_max = 1024GiB"))
    assert status == 0 and len(problems) == 2 and "is in memory" in problems[0], problems
    assert re.match(r"FILE:5: warning: spool_max: it is larger than the file system of /dev/shm, which has \d+ MiB; ", problems[1]), problems


# The start

# These addresses depend on the machine: check warns, and gatepostd starts when it has them.
NOT_HERE = ("192.0.2.55", "gatepost-nonexistent")


@pytest.mark.parametrize("section, added", [*FINE, *(row[:2] for row in WARNINGS if not any(each in row[1] for each in NOT_HERE))])
def test_what_check_accepts_starts(tmp_path, section, added):
    path, log = tmp_path / "gatepost.conf", tmp_path / "log"
    path.write_text(startable(written(section, added), tmp_path))
    path.chmod(0o600)
    with open(log, "wb") as out:
        daemon = subprocess.Popen([BUILD / "gatepostd", "-c", path], stdin=subprocess.DEVNULL, stdout=out, stderr=out, env=ENVIRONMENT)
    try:
        waiting.until(lambda: "waiting for it" in log.read_text() or " ready" in log.read_text() or daemon.poll() is not None, 60, "the start")
        assert daemon.poll() is None, log.read_text()
        daemon.send_signal(signal.SIGTERM)
        assert daemon.wait(60) == 0, log.read_text()
    finally:
        daemon.kill()
        daemon.wait()
    assert_no_sanitizer_report(log.read_text())


UNPRIVILEGED = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--inh-caps=-all"] if os.getuid() == 0 else []


@pytest.mark.parametrize("file, directory, told", [
    (0o600, 0o700, []), (0o666, 0o777, ["FILE", "DIRECTORY", "secrets"]), (0o622, 0o1777, ["FILE"]), (0o600, 0o773, ["DIRECTORY", "secrets"])])
def test_files_and_directories_that_others_may_write_get_a_warning(check, tmp_path, file, directory, told):
    """Such as after chmod -R 777, once the secret itself is correct: who writes them decides what is accepted. One line each."""
    secrets = tmp_path / "secrets"
    secrets.mkdir()
    for name in ("a", "b"):
        (secrets / name).write_text(f"7d8f0c1b2a3e4f5061728394a5b6c7d{name}")
        (secrets / name).chmod(0o600)
    text = written("gatepost", "log_level = info").replace("secret = 7d8f0c1b2a3e4f5061728394a5b6c7d8", f"secret_file = {secrets}/a\nsecret_file = {secrets}/b")
    for each in (tmp_path, secrets):
        each.chmod(directory)
    status, problems = check(text, mode=file)
    paths = {"FILE": "FILE", "DIRECTORY": str(tmp_path), "secrets": str(secrets)}
    found = re.findall(r"warning: others can write (\S+) \(mode \d{4}\), and so decide what is accepted; correct it: chmod o-w \1$", "\n".join(problems), re.M)
    assert status == 0 and len(problems) == len(found) and sorted(found) == sorted(paths[each] for each in told), problems


@pytest.fixture
def unprivileged(tmp_path):
    """Run a program with a text as a user without privileges. Returns the exit status and what it printed."""
    def run(text, program, *arguments):
        with tempfile.TemporaryDirectory() as directory:
            path = pathlib.Path(directory) / "gatepost.conf"
            path.write_text(text.replace("DIRECTORY", directory))
            path.chmod(0o600)
            if UNPRIVILEGED:
                os.chown(path, 65534, 65534)
                os.chmod(directory, 0o755)
            else:
                os.chmod(directory, 0o555)
            done = subprocess.run([*UNPRIVILEGED, BUILD / program, "-c", path, *arguments], stdin=subprocess.DEVNULL,
                                  capture_output=True, text=True, timeout=60, env=ENVIRONMENT)
            os.chmod(directory, 0o755)
        return done.returncode, done.stderr.replace(str(path), "FILE")
    return run


@pytest.mark.skipif(int(pathlib.Path("/proc/sys/net/ipv4/ip_unprivileged_port_start").read_text()) <= 443, reason="every user may bind port 443")
@pytest.mark.parametrize("section", ["receiver", "admin"])
def test_port_that_needs_a_privilege_is_a_warning_and_not_a_restart_loop(unprivileged, section):
    text = written(section, "listen = 127.0.0.1:443")
    status, errors = unprivileged(text, "gatepost", "check")
    assert status == 0 and re.search(r"^FILE:\d+: warning: listen: 127.0.0.1:443: port 443 needs a privilege .*gatepostd.socket", errors, re.M)
    status, log = unprivileged(text, "gatepostd")
    assert status == EX_CONFIG and f"[{section}] listen = 127.0.0.1:443: port 443 needs a privilege" in log


def test_directory_that_is_not_writable_is_a_warning_and_not_a_restart_loop(unprivileged):
    text = written("receiver", "listen = unix:DIRECTORY/r.sock")
    status, errors = unprivileged(text, "gatepost", "check")
    assert status == 0 and re.search(r"^FILE:3: warning: listen: .* is not writable for gatepostd", errors, re.M), errors
    status, log = unprivileged(text, "gatepostd")
    assert status == EX_CONFIG and "is not writable for gatepostd" in log


@pytest.mark.skipif(not UNPRIVILEGED, reason="root owns the file")
def test_certificates_of_the_brokers_that_gatepostd_may_not_read(unprivileged, authority, tmp_path):
    with tempfile.TemporaryDirectory() as directory:
        os.chmod(directory, 0o755)
        path = pathlib.Path(shutil.copy(authority.certificate, directory))
        path.chmod(0o600)
        status, errors = unprivileged(written("kafka", f"security.protocol = SSL|ssl.ca.location = {path}"), "gatepost", "check")
        assert status == EX_CONFIG and re.search(rf"^FILE:\d+: ssl.ca.location: cannot open {path}: Permission denied$", errors, re.M), errors
        path.chmod(0o644)
        assert unprivileged(written("kafka", f"security.protocol = SSL|ssl.ca.location = {path}"), "gatepost", "check")[0] == 0


def test_spool_that_cannot_be_created_gets_a_warning(unprivileged):
    status, errors = unprivileged(written("receiver", "spool = DIRECTORY/spool|spool_max = 1MiB"), "gatepost", "check")
    assert status == 0 and re.search(r"^FILE:4: warning: spool: \S+ is not writable for gatepostd, which is to create it there; if it is on a disk of its own, mount that, or create it: install -d -o nobody -m 0700 ", errors, re.M), errors


@pytest.mark.skipif(not UNPRIVILEGED, reason="root may enter every directory of the test's user")
@pytest.mark.parametrize("section, option", [("receiver", "spool"), ("router", "state")])
@pytest.mark.parametrize("exists", [True, False, "linked"], ids=["exists", "missing", "linked"])
def test_directory_below_one_that_gatepostd_may_not_enter_gets_a_warning(unprivileged, section, option, exists):
    with tempfile.TemporaryDirectory() as closed, tempfile.TemporaryDirectory() as above:  # have the mode 0700
        if exists:
            os.mkdir(f"{closed}/{option}", 0o700)
            os.chown(f"{closed}/{option}", 65534, 65534)
        os.chmod(above, 0o755)
        os.symlink(f"{closed}/{option}", f"{above}/{option}")
        check_closed(unprivileged, section, option, closed, above if exists == "linked" else closed)


def check_closed(unprivileged, section, option, closed, place):
    text = written(section, f"{option} = {place}/{option}" + ("|spool_max = 1MiB" if option == "spool" else ""))
    status, errors = unprivileged(text, "gatepost", "check")
    expected = rf"^FILE:\d+: warning: {option}: gatepostd may not enter {closed}, which is above it; let its user enter it: chgrp nogroup {closed} && chmod g\+x {closed}$"
    assert status == 0 and re.search(expected, errors, re.M), errors
    if option == "state":
        return  # its router waits for Kafka first
    status, log = unprivileged(text, "gatepostd")
    assert status == EX_OSERR and f"Permission denied; its user may not enter {closed}" in log, log


@pytest.mark.parametrize("section, option", [("receiver", "spool"), ("router", "state")])
def test_link_to_a_directory_that_is_missing_gets_a_warning(check, tmp_path, section, option):
    (tmp_path / "link").symlink_to("/mnt/disk-that-is-not-there/gatepost")
    status, problems = check(written(section, f"{option} = {tmp_path}/link" + ("|spool_max = 1MiB" if option == "spool" else "")))
    assert status == 0 and len(problems) == 1 and problems[0].endswith(
        f": warning: {option}: {tmp_path}/link is a symbolic link to something that is missing; mount its disk, or create the directory"), problems
    status, below = check(written(section, f"{option} = {tmp_path}/link/{option}" + ("|spool_max = 1MiB" if option == "spool" else "")))
    assert (status, below) == (0, problems)


@pytest.mark.skipif(not UNPRIVILEGED, reason="root owns the directory")
def test_spool_that_is_of_another_user_is_not_closed_to_gatepostd(unprivileged):
    status, errors = unprivileged(written("receiver", "spool = DIRECTORY|spool_max = 1MiB"), "gatepost", "check")
    assert status == 0 and re.search(r"has other files; use a directory of its own, such as /var/lib/gatepost/spool$", errors, re.M) and "chown" not in errors, errors
    with tempfile.TemporaryDirectory() as above:
        os.chmod(above, 0o755)
        os.mkdir(f"{above}/spool", 0o755)
        status, errors = unprivileged(written("receiver", f"spool = {above}/spool|spool_max = 1MiB"), "gatepost", "check")
    assert status == 0 and "(mode 0755), which holds bodies; chown it to the user of gatepostd and chmod 700; or, if it is empty, " in errors, errors
    assert re.search(r"is not writable for gatepostd; mount it if it is on a disk of its own, or give it to the user of gatepostd \(chown -R\)$", errors, re.M), errors


@pytest.mark.skipif(not UNPRIVILEGED, reason="only root leaves such files")
@pytest.mark.parametrize("section, option, name", [("receiver", "spool", "0000000000000001.spool"), ("router", "state", "key")])
@pytest.mark.parametrize("owner", [0, 65534])
def test_file_of_root_in_a_directory_of_gatepostd_gets_a_warning(unprivileged, section, option, name, owner):
    with tempfile.TemporaryDirectory() as above:
        os.chmod(above, 0o755)
        directory = pathlib.Path(above, option)
        directory.mkdir(0o700)
        for each in (directory / name, directory / "aquota.user"):
            each.touch(0o600)
        for each in (directory, directory / name):
            os.chown(each, 65534 if each == directory else owner, 65534)
        status, errors = unprivileged(written(section, f"{option} = {directory}" + ("|spool_max = 1MiB" if option == "spool" else "")), "gatepost", "check")
    expected = rf"^FILE:\d+: warning: {option}: gatepostd may not open {directory}/{name}, which is in it; give all that is in it to the user of gatepostd \(chown -R\)$"
    assert status == 0 and bool(re.search(expected, errors, re.M)) == (owner == 0), errors


def test_certificates_for_the_service_that_gatepostd_may_not_read(check, unprivileged, authority):
    """Only the command line needs them. A private key in their place is found by those who may read it."""
    certificate, key = authority.issue("service")
    assert check(written("service", f"ca_file = {certificate}")) == (0, [])
    text = written("service", f"ca_file = {key}")
    status, (problem,) = check(text)
    assert status == EX_CONFIG and f"ca_file: {key} contains no certificate in PEM" in problem
    key.chmod(0)
    assert unprivileged(text, "gatepostd", "-t")[0] == 0


def test_missing_directory_of_a_socket_ends_the_start_with_78(unprivileged):
    status, log = unprivileged(written("receiver", "listen = unix:/run/gatepost-nonexistent/r.sock"), "gatepostd")
    assert status == EX_CONFIG and "/run/gatepost-nonexistent: No such file or directory" in log


def test_address_that_may_come_later_ends_the_start_with_a_status_for_a_restart(unprivileged):
    status, log = unprivileged(written("receiver", "listen = 192.0.2.55:8080"), "gatepostd")
    assert status == EX_OSERR and "Cannot assign requested address" in log


@pytest.mark.parametrize("name, roles, words", [
    ("router-gw1.conf", None, "that of a router, but its `roles` is not set, which makes it a receiver and a router; set roles = router in [gatepost]"),
    ("receiver-gw1.conf", None, "set roles = receiver in [gatepost]"), ("receiver-gw1.conf", "router", "but its `roles` is router; set roles = receiver"),
    ("router-gw1.conf", "receiver, router", "but its `roles` is receiver, router; "),
    ("router-gw1.conf", "router", None), ("receiver-a-1.conf", "receiver", None), ("router.conf", None, None), ("routers-1.conf", None, None)])
def test_roles_are_those_of_the_unit_that_takes_the_file(offline, name, roles, words):
    config = offline.config()
    config["gatepost"]["roles"] = roles or []
    done = offline.gatepost("check", config=config.write(name))
    assert done.returncode == 0
    assert (f"{words}" in done.stderr) if words else "the name of this file" not in done.stderr, done.stderr


@pytest.mark.parametrize("roles", [None, "receiver, router"])
def test_router_without_its_role_is_not_only_told_to_listen(offline, roles):
    config = offline.config()
    del config["receiver"]["listen"]
    config["gatepost"]["roles"] = roles or []
    done = offline.gatepost("check", config=config)
    assert done.returncode == EX_CONFIG and "a receiver needs a `listen` in [receiver], such as" in done.stderr
    assert ("if this is to be a router only, set roles = router in [gatepost]" in done.stderr) is (roles is None)

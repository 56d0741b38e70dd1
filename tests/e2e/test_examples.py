"""The examples for deployments in etc/examples: each is started with the real programs, a genuine delivery passes, and a forged
one is refused."""

import contextlib
import functools
import os
import re
import signal
import types

import kubernetes_validate
import pytest
import yaml
from cluster import Cluster

import examples
import http_client
import ports
import waiting
from accounts import Accounts
from authority import Authority
from confluent_kafka.admin import AclBinding
from examples import BROKERS, ORDERLY_END, PATH, SECONDS, SECURED_BROKERS, adapt, admin_of, assert_guarded, running
from installation import Installation
from signing import SECRET, Delivery, event_body

GUIDE = (examples.DIRECTORY.parents[1] / "man" / "gatepost-guide.7").read_text()
MAX_BODY = 1 << 20
ACCOUNTS = ("gatepost", "gatepost-receiver", "gatepost-router")
ADMIN = {"listen = 127.0.0.1:9464": "listen = 127.0.0.1:0"}
FREE_PORTS = ADMIN | {"listen = 127.0.0.1:8080": "listen = 127.0.0.1:0"}


@pytest.fixture(scope="module")
def authority(tmp_path_factory):
    return Authority(tmp_path_factory.mktemp("authority"))


def one_file(certificate, key):
    both = certificate.with_name("both.pem")
    both.write_text(certificate.read_text() + key.read_text())
    return both


def post_by(client):
    return lambda delivery: client.request("POST", PATH, delivery.headers(), delivery.body)


@pytest.fixture
def connect(authority):
    """A function that connects to a port of a proxy, by TLS, from an address of its own. The connection stays open."""
    clients = []

    def connection(port, source="127.0.0.9"):
        client = http_client.Client(f"127.0.0.1:{port}", tls=authority.client())
        client.connect = functools.partial(setattr, client, "sock", None)
        client.sock = http_client.connect(client.address, SECONDS, client.tls, source)
        clients.append(client)
        return client
    yield connection
    for client in clients:
        client.close()


def wait_for_refusal_of(daemon, client):
    """The log names the client of the refusal, not the proxy."""
    line = daemon.wait_for_log("outcome=forged")
    assert f"client={client}" in line


def test_guide_lists_every_example_for_deployments():
    listed = GUIDE.partition(".Sh FILES")[2].partition("\n.Sh ")[0]
    named = {name for line in re.findall(r"^\.It Pa (.+)", listed, re.M) for name in line.split(" , ")}
    files = {path.name for path in examples.DIRECTORY.iterdir()}
    assert {name for name in files if re.search(r"\.(conf|cfg|ya?ml)$", name)} <= named <= files


def configurations():
    """Each configuration of Gatepost: its name and text."""
    named = re.findall(r"^\.It Pa (.+)", GUIDE.partition(".Sh FILES")[2], re.M)
    files = {name for line in named for name in line.split(" , ") if name.endswith(".conf")} - {"nginx.conf"}
    return {name: examples.read(name) for name in sorted(files)} | of_kind("ConfigMap")[0]["data"]


def test_every_configuration_passes_the_check(offline, authority):
    """With the addresses as they are. A comment explains each warning."""
    secret = offline.config().secret_file("checked", SECRET)
    certificate, key = authority.issue("checked", days=90)
    files = {"secret_file": secret, "sasl.password_file": secret, "api_key_file": offline.config().secret_file("key", b"the-api-key-of-the-tests"),
             "tls_certificate_file": certificate, "tls_key_file": key, "ssl.ca.location": authority.certificate}
    found = {}
    for name, text in configurations().items():
        for option, file in files.items():
            text = re.sub(rf"^{re.escape(option)} = .*", f"{option} = {file}", text, flags=re.M)
        path = offline.directory / name
        path.write_text(text)
        path.chmod(0o600)
        done = offline.gatepost("check", config=path)
        assert done.returncode == 0, done.stderr
        found[name] = sorted(re.findall(r": warning: (\S+?:\d+)", done.stderr))
    assert {name: warnings for name, warnings in found.items() if warnings} == {
        "compose.conf": ["0.0.0.0:9464"], "receiver.conf": ["0.0.0.0:9464"], "router.conf": ["0.0.0.0:9464"]}


@pytest.mark.parametrize("role", ["receiver", "router"])
def test_files_for_one_role_have_the_names_that_the_units_expect(role):
    unit = (examples.DIRECTORY.parents[1] / "systemd" / f"gatepost-{role}@.service.in").read_text()
    assert f"-c @sysconfdir@/gatepost/{role}-%i.conf" in unit
    assert f"gatepost-{role}@gw1" in examples.read(f"{role}-gw1.conf")


# Managed Kafka

MANAGED = GUIDE.partition(".Sh MANAGED KAFKA\n")[2].partition("\n.Sh ")[0]


def test_every_managed_kafka_has_sources():
    table, *sections = re.split(r"^\.Ss ", MANAGED, flags=re.M)
    services = [line.split(" Ta ") for line in re.findall(r"^\.It (.* Ta .*)", table, re.M)]
    assert {len(cells) for cells in services} == {7}
    for name in (cells[0].split()[0] for cells in services[1:]):
        (section,) = [each for each in sections if name in each.partition("\n")[0]]
        assert len(re.findall(r"^\.Lk https://", section, re.M)) >= 3, name


def test_settings_for_event_hubs_are_accepted(offline):
    """The guide shows them as gatepost.conf spells them."""
    section = MANAGED.partition(".Ss Azure Event Hubs")[2].partition(".Ss ")[0].replace("\\(dq", '"')
    settings = dict(re.findall(r"([a-z.]+) = (\S+)", section))
    assert {"request.timeout.ms", "metadata.max.age.ms", "socket.keepalive.enable", "sasl.username"} == set(settings)
    config = offline.config()
    config["receiver"]["max_body"] = re.search(r"to (\S+) or less", section)[1]
    connection = config.secret_file("connection", b"Endpoint=sb://name/;SharedAccessKey=x")
    config["kafka"].update(settings | {"bootstrap.servers": "name.servicebus.windows.net:9093", "security.protocol": "SASL_SSL",
                                       "sasl.mechanism": "PLAIN", "sasl.password_file": connection})
    done = offline.gatepost("check", config=config)
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    assert '"$ConnectionString"' in offline.gatepost("config", config=config).stdout


# A Kafka that requires accounts

@pytest.fixture(scope="module")
def secured(authority):
    certificate, key = authority.issue("broker")
    with Cluster(secured=one_file(certificate, key), passwords={name: Accounts.password(name) for name in ACCOUNTS}) as cluster:
        yield cluster


@pytest.fixture
def site(secured, authority, tmp_path):
    """An installation whose accounts have the permissions of the guide; `gatepost` has the permissions of both roles."""
    each = Installation(tmp_path, secured.bootstrap)
    each.accounts = Accounts(secured, authority, tmp_path, each.prefix)
    for name in ACCOUNTS:
        each.accounts.set_password(name, Accounts.password(name))
    for granted in each.accounts.grant_all():
        if granted.principal in ("User:gatepost-receiver", "User:gatepost-router"):
            each.accounts.grant(AclBinding(granted.restype, granted.name, granted.resource_pattern_type, "User:gatepost",
                                           granted.host, granted.operation, granted.permission_type))
    each.create_topics()
    yield each
    each.clean_up()


def with_account(site, account, file, ca_file="/etc/gatepost/tls/kafka-ca.pem"):
    """The changes of an example that uses this account, whose password it has in this file."""
    password = site.directory / account
    password.write_text(Accounts.password(account) + "\n")
    password.chmod(0o600)
    return {SECURED_BROKERS: site.accounts.cluster.secured_bootstrap, file: password,
            ca_file: site.accounts.authority.certificate}


def test_receiver_and_router_apart(site, new_library):
    receiver = examples.start(site, "receiver-gw1", examples.read("receiver-gw1.conf"), FREE_PORTS | with_account(
        site, "gatepost-receiver", "/etc/gatepost/secrets/kafka-receiver"), new_library)
    router = examples.start(site, "router-gw1", examples.read("router-gw1.conf"), {
        "listen = 127.0.0.1:9465": "listen = 127.0.0.1:0"} | with_account(
            site, "gatepost-router", "/etc/gatepost/secrets/kafka-router"), new_library)
    assert_guarded(site, receiver.post)
    assert b"router" not in receiver.admin("/readyz").body and b"receiver" not in router.admin("/readyz").body
    assert site.kafka.members() == {"router-gw1": 3}


@pytest.mark.parametrize("mechanism", ["SCRAM-SHA-512", "PLAIN"])
def test_sasl_over_tls(site, new_library, mechanism):
    """By SCRAM with a new librdkafka, and as the comment says with an old one."""
    text = examples.read("scram.conf")
    if mechanism == "PLAIN":
        text = adapt(text, {"\nsasl.mechanism = SCRAM-SHA-512": "", "\n;sasl.mechanism = PLAIN": "\nsasl.mechanism = PLAIN"})
    daemon = examples.start(site, "gw1", text, FREE_PORTS | with_account(site, "gatepost", "/etc/gatepost/secrets/kafka"),
                            new_library if mechanism.startswith("SCRAM") else None)
    assert_guarded(site, daemon.post)


# Kubernetes

MANIFEST = list(yaml.safe_load_all(examples.read("kubernetes.yaml")))
# The name of a pod: of a StatefulSet always the same, of a Deployment another one each time.
PODS = {"receiver": "gatepost-receiver-6d4cf56db6-x7k2p", "router": "gatepost-router-0"}


def of_kind(*kinds):
    return [each for each in MANIFEST if each["kind"] in kinds]


def workload(role):
    (found,) = [each for each in of_kind("Deployment", "StatefulSet") if each["metadata"]["labels"]["role"] == role]
    return found


def pod_of(role):
    """Its specification and its only container."""
    spec = workload(role)["spec"]["template"]["spec"]
    (container,) = spec["containers"]
    return spec, container


@pytest.mark.parametrize("version", ["1.27", "1.37"])
def test_kubernetes_manifest_fits_the_schemas(version):
    for each in MANIFEST:
        kubernetes_validate.validate(each, version, strict=True)


def test_kubernetes_manifest_names_what_it_has():
    labels = [workload(role)["spec"]["template"]["metadata"]["labels"] for role in PODS]
    ports = {port["name"] for role in PODS for port in pod_of(role)[1]["ports"]}
    for each in of_kind("Deployment", "StatefulSet", "PodDisruptionBudget", "Service", "NetworkPolicy"):
        selector = each["spec"].get("selector") or each["spec"]["podSelector"]
        wanted = selector.get("matchLabels", selector)
        assert any(wanted.items() <= each.items() for each in labels), each["metadata"]
    for each in of_kind("Service"):
        assert {port["targetPort"] for port in each["spec"]["ports"]} <= ports
    (ingress,), (policy,) = of_kind("Ingress"), of_kind("NetworkPolicy")
    assert {port["port"] for rule in policy["spec"]["ingress"] for port in rule["ports"]} == ports
    backend = ingress["spec"]["rules"][0]["http"]["paths"][0]["backend"]["service"]
    services = {each["metadata"]["name"]: each["spec"]["ports"] for each in of_kind("Service")}
    assert backend["port"]["name"] in [port["name"] for port in services[backend["name"]]]
    assert workload("router")["kind"] == "StatefulSet" and workload("router")["spec"]["serviceName"] in services


@pytest.mark.parametrize("role", PODS)
def test_kubernetes_pods_are_confined_and_end_in_order(role):
    spec, container = pod_of(role)
    assert spec["terminationGracePeriodSeconds"] > ORDERLY_END + 5  # for preStop
    user = spec["securityContext"]
    assert user["runAsNonRoot"] and user["runAsUser"] and user["runAsGroup"] == user["fsGroup"]
    assert container["securityContext"] == {"allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True,
                                            "capabilities": {"drop": ["ALL"]}}


def mount(spec, container, config_map, secrets, directory):
    """Lay out the volumes of a pod as the kubelet does: each file a link to one in a directory of its own, with the mode of
    the volume. Returns the changes of the paths."""
    changes = {}
    for volume in spec["volumes"]:
        (path,) = [each["mountPath"] for each in container["volumeMounts"] if each["name"] == volume["name"]]
        held = config_map if "configMap" in volume else secrets
        source = volume.get("configMap") or volume["secret"]
        data = directory / volume["name"] / "..data"
        data.mkdir(parents=True)
        for item in source.get("items", [{"key": "ca.pem", "path": "ca.pem"}]):
            (data / item["path"]).write_text(held[item["key"]])
            (data / item["path"]).chmod(source.get("defaultMode", 0o644))
            (data.parent / item["path"]).symlink_to(f"..data/{item['path']}")
            changes[f"{path}/{item['path']}"] = data.parent / item["path"]
    return changes


@pytest.mark.parametrize("role", PODS)
def test_kubernetes_configuration_is_started(site, role, tmp_path):
    spec, container = pod_of(role)
    config_map = of_kind("ConfigMap")[0]["data"] | {"ca.pem": site.accounts.authority.certificate.read_text()}
    secrets = {"invoicing": SECRET.decode(), f"kafka-{role}": Accounts.password(f"gatepost-{role}")}
    paths = mount(spec, container, config_map, secrets, tmp_path / "volumes")
    option, path = container["args"]
    text = paths.pop(path).read_text()
    listen = {"listen = 0.0.0.0:8080": "listen = 127.0.0.1:0"} if role == "receiver" else {}
    # In a namespace whose host name is that of the pod.
    wrapper = ["unshare", *(["--uts"] if os.geteuid() == 0 else ["--map-root-user", "--uts"]), "sh", "-c",
               'hostname "$0" && exec "$@"', PODS[role]]
    daemon = examples.start(site, role, text, listen | paths | {
        "listen = 0.0.0.0:9464": "listen = 127.0.0.1:0",
        SECURED_BROKERS: site.accounts.cluster.secured_bootstrap}, wrapper=wrapper)
    assert option == "-c" and daemon.admin("/status").json["instance"] == PODS[role]
    for probe in (container["livenessProbe"], container["readinessProbe"]):
        assert daemon.admin(probe["httpGet"]["path"]).status == 200
    if role == "router":
        assert site.kafka.members() == {PODS[role]: 3}
        delivery = Delivery()
        site.kafka.append([delivery])
        site.kafka.wait_until_routed()
        assert [record.delivery_id for record in site.kafka.read()] == [delivery.delivery_id]
    else:
        genuine = daemon.accept()
        assert daemon.post(Delivery(secret=b"a secret of somebody else")).status == 401
        assert [record.value for record in site.kafka.read(site.kafka.deliveries)] == [genuine.body]


# Proxies and certificates

@pytest.fixture
def nginx(installation, authority, tmp_path):
    """nginx.conf with nothing around it but what Debian's nginx.conf has, too; and the daemon behind it."""
    installation.create_topics()
    certificate, key = authority.issue("nginx")
    path = f"{tmp_path}/receiver.sock"
    daemon = examples.start(installation, "gw1", examples.read("behind-nginx.conf"), ADMIN | {
        "/run/gatepost/receiver.sock": path, BROKERS: installation.bootstrap})
    with ports.reserved() as port:
        site = tmp_path / "site"
        site.write_text(adapt(examples.read("nginx.conf"), {
            "unix:/run/gatepost/receiver.sock": f"unix:{path}", "listen 443 ssl": f"listen 127.0.0.1:{port} ssl",
            "    listen [::]:443 ssl;\n": "", "/etc/letsencrypt/live/webhooks.example.com/fullchain.pem": certificate,
            "/etc/letsencrypt/live/webhooks.example.com/privkey.pem": key}))
        whole = tmp_path / "nginx.conf"
        user = "user root;\n" if os.geteuid() == 0 else ""
        whole.write_text(f"{user}daemon off;\npid {tmp_path}/nginx.pid;\nerror_log stderr info;\nevents {{}}\nhttp {{\n"
                         "access_log off;\n" + "".join(f"{each}_temp_path {tmp_path}/{each};\n" for each in (
                             "client_body", "proxy", "fastcgi", "uwsgi", "scgi")) + f"include {site};\n}}\n")
        command = ["/usr/sbin/nginx", "-c", whole, "-e", "stderr", "-p", tmp_path]
        assert "warn" not in examples.run(*command, "-t")
        with running(tmp_path, command, port, signal.SIGQUIT) as log:
            yield types.SimpleNamespace(port=port, daemon=daemon, log=log, kafka=installation.kafka)


def test_behind_nginx(installation, nginx, connect):
    client = connect(nginx.port)

    def post(delivery):
        return client.request("POST", PATH, delivery.headers() | {"X-Forwarded-For": "192.0.2.1"}, delivery.body)
    assert_guarded(installation, post)
    wait_for_refusal_of(nginx.daemon, "127.0.0.9")
    assert client.request("GET", "/status").status == 404
    for chunked in (False, True):
        whole = event_body(text="")
        largest = Delivery(event_body(text="x" * (MAX_BODY - len(whole) - 1)))
        assert MAX_BODY - 2 <= len(largest.body) <= MAX_BODY
        assert client.request("POST", PATH, largest.headers(), largest.body, chunked).status == 200
    larger = Delivery(b"x" * (MAX_BODY + 1))
    assert client.request("POST", PATH, larger.headers(), larger.body).status == 413
    assert "temporary file" not in nginx.log()


def test_nginx_reuses_connections_and_survives_a_restart(nginx, connect):
    post = post_by(connect(nginx.port))
    for _ in range(20):
        assert post(Delivery()).status == 200
    assert nginx.daemon.metric("gatepost_connections_accepted_total") <= 2
    nginx.daemon.stop()
    assert connect(nginx.port).request("POST", PATH).status == 502
    nginx.daemon.restart()
    assert post_by(connect(nginx.port))(Delivery()).status == 200


@contextlib.contextmanager
def haproxy_before(daemon, authority, directory):
    """HAProxy by its example, in front of this daemon."""
    certificate = one_file(*authority.issue("haproxy"))
    with ports.reserved() as port:
        text = adapt(examples.read("haproxy.cfg"), {
            "bind :443": f"bind 127.0.0.1:{port}", "/etc/haproxy/certs/webhooks.example.com.pem": certificate,
            "check port 9464 inter 2s": f"check port {admin_of(daemon).rpartition(':')[2]} inter 200ms",
            "server gw1 127.0.0.1:8080": f"server gw1 {daemon.address}"})
        path = directory / "haproxy.cfg"
        path.write_text("global\n    log stdout format raw local0\n\n" + text)
        assert "WARNING" not in examples.run("/usr/sbin/haproxy", "-c", "-f", path)
        with running(directory, ["/usr/sbin/haproxy", "-db", "-f", path], port) as log:
            yield types.SimpleNamespace(port=port, daemon=daemon, log=log)


@pytest.fixture
def haproxy(installation, authority, tmp_path):
    installation.create_topics()
    daemon = examples.start(installation, "gw1", examples.read("behind-haproxy.conf"),
                            FREE_PORTS | {BROKERS: installation.bootstrap})
    with haproxy_before(daemon, authority, tmp_path) as proxy:
        yield proxy


def test_behind_haproxy(installation, haproxy, connect):
    client = connect(haproxy.port)

    def post(delivery):
        return client.request("POST", PATH, delivery.headers() | {"X-Forwarded-For": "192.0.2.1"}, delivery.body)
    assert_guarded(installation, post)
    wait_for_refusal_of(haproxy.daemon, "127.0.0.9")
    assert client.request("GET", "/status").status == 404
    # Connections that lack the header of the PROXY protocol are closed.
    with pytest.raises((ConnectionError, http_client.http.client.RemoteDisconnected)):
        haproxy.daemon.post()


def test_haproxy_removes_a_receiver_that_is_not_ready(haproxy, connect):
    post = post_by(connect(haproxy.port))
    assert post(Delivery()).status == 200
    haproxy.daemon.process.send_signal(signal.SIGSTOP)
    try:
        waiting.until(lambda: "Server receivers/gw1 is DOWN" in haproxy.log(), SECONDS, haproxy.log)
        assert post_by(connect(haproxy.port))(Delivery()).status == 503
    finally:
        haproxy.daemon.process.send_signal(signal.SIGCONT)
    waiting.until(lambda: "Server receivers/gw1 is UP" in haproxy.log(), SECONDS, haproxy.log)
    assert post_by(connect(haproxy.port))(Delivery()).status == 200


def test_haproxy_keeps_a_receiver_that_spools_although_its_router_is_not_ready(offline, authority, connect, tmp_path):
    spool = f"[receiver]\nspool = {tmp_path}/spool"
    daemon = examples.start(offline, "gw1", examples.read("behind-haproxy.conf"),
                            FREE_PORTS | {BROKERS: offline.bootstrap, "[receiver]": spool}, is_ready=False)
    with haproxy_before(daemon, authority, tmp_path) as proxy:
        # The server counts as up before the first check; so it has passed checks when it was back.
        daemon.process.send_signal(signal.SIGSTOP)
        try:
            waiting.until(lambda: "Server receivers/gw1 is DOWN" in proxy.log(), SECONDS, proxy.log)
        finally:
            daemon.process.send_signal(signal.SIGCONT)
        waiting.until(lambda: "Server receivers/gw1 is UP" in proxy.log(), SECONDS, proxy.log)
        assert post_by(connect(proxy.port))(Delivery()).status == 200
        assert not daemon.ready() and daemon.metric("gatepost_spool_written_total") == 1


def test_tls_at_the_door_and_a_renewed_certificate(installation, authority, tmp_path):
    lineage, directory = tmp_path / "lineage", tmp_path / "tls"
    lineage.mkdir()
    directory.mkdir()

    def renew(name):
        """What certbot does, before it runs the hook."""
        certificate, key = authority.issue(name)
        (lineage / "fullchain.pem").write_text(certificate.read_text())
        (lineage / "privkey.pem").write_text(key.read_text())
        return name

    def run_hook(reload):
        hook = tmp_path / "hook"
        hook.write_text(adapt(examples.read("renewal-hook"), {
            "=/etc/gatepost/tls": f"={directory}", "systemctl reload gatepostd": reload}))
        hook.chmod(0o755)
        examples.run(hook, env=os.environ | {"RENEWED_LINEAGE": str(lineage)})

    def served():
        with http_client.connect(daemon.address, tls=authority.client()) as connection:
            return dict(pair for (pair,) in connection.getpeercert()["subject"])["commonName"]

    renew("first")
    run_hook("true")
    assert (directory / "key.pem").stat().st_mode & 0o7777 == 0o640
    installation.create_topics()
    daemon = examples.start(installation, "gw1", examples.read("tls.conf"), ADMIN | {
        "listen = 0.0.0.0:8443": "listen = 127.0.0.1:0", "listen = [::]:8443": "listen = [::1]:0", "/etc/gatepost/tls": directory,
        BROKERS: installation.bootstrap})
    client = http_client.Client(daemon.address, tls=authority.client())
    assert_guarded(installation, post_by(client))
    assert served() == "first"
    renew("second")
    run_hook(f"kill -HUP {daemon.process.pid}")
    daemon.wait_for_log("configuration reloaded")
    assert served() == "second"
    assert post_by(client)(Delivery()).status == 200  # over the connection that was open
    client.close()


# Prometheus

def test_prometheus_scrapes_and_evaluates_the_alerts(installation, tmp_path):
    installation.create_topics()
    daemon = installation.start()
    assert_guarded(installation, daemon.post)
    path = tmp_path / "prometheus.yml"
    path.write_text(adapt(examples.read("prometheus.yml"), {
        "/usr/share/gatepost/alerts.yml": examples.DIRECTORY.parent / "alerts.yml", "'127.0.0.1:9464'": f"'{admin_of(daemon)}'",
        "scrape_interval: 15s": "scrape_interval: 500ms", "evaluation_interval: 15s": "evaluation_interval: 500ms",
        "'127.0.0.1:9093'": "'127.0.0.1:9'"}))
    assert "SUCCESS" in examples.run("promtool", "check", "config", path)
    with ports.reserved() as port:
        def get(path):
            return http_client.request(f"127.0.0.1:{port}", "GET", path)

        def ask(query):
            return get(query).json["data"]

        def is_scraped():
            series = ask("/api/v1/query?query=gatepost_events_total%7Bjob%3D%22gatepost%22%7D%3E0")["result"]
            return series and series[0]["metric"]["kind"] == "invoice.accepted" and series[0]["value"][1] == "1"

        def rules():
            return [rule for group in ask("/api/v1/rules")["groups"] for rule in group["rules"]]
        with running(tmp_path, ["prometheus", f"--config.file={path}", f"--storage.tsdb.path={tmp_path}/data",
                                f"--web.listen-address=127.0.0.1:{port}"], port):
            waiting.until(lambda: get("/-/ready").status == 200, SECONDS, "Prometheus to be ready")
            waiting.until(is_scraped, SECONDS, "the event in Prometheus")
            waiting.until(lambda: rules() and all(rule["health"] == "ok" for rule in rules()), SECONDS, rules)
            (target,) = ask("/api/v1/targets")["activeTargets"]
            assert (target["health"], target["lastError"]) == ("up", "")

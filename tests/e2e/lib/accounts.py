"""Accounts of a Kafka that requires passwords and enforces ACLs."""

import concurrent.futures
import pathlib
import shlex

import confluent_kafka
import tools
from confluent_kafka.admin import (AclBinding, AclBindingFilter, AclOperation, AclPermissionType, AdminClient,
                                   ResourcePatternType, ResourceType, ScramCredentialInfo, ScramMechanism,
                                   UserScramCredentialDeletion, UserScramCredentialUpsertion)

import waiting

GUIDE = pathlib.Path(__file__).parents[3] / "man" / "gatepost-guide.7"
TIMEOUT = 30
TOOLS_AT_ONCE = 3


def literals(page):
    """The literal blocks of a man page, each as text."""
    return [block.partition("\n")[2].partition("\n.Ed")[0].replace("\\e", "\\").replace("\\&", "") + "\n"
            for block in page.split("\n.Bd -literal")[1:]]


def guide_commands(tool):
    """The commands of the guide that call this tool, each as a list of words."""
    text = "".join(literals(GUIDE.read_text())).replace("\\\n", " ")
    return [shlex.split(line) for line in text.splitlines() if line.startswith(tool + " ")]


def bindings_of(command):
    """The permissions that a call of kafka-acls.sh grants."""
    kinds = {"--topic": ResourceType.TOPIC, "--group": ResourceType.GROUP,
             "--transactional-id": ResourceType.TRANSACTIONAL_ID}
    operations = {"Read": AclOperation.READ, "Write": AclOperation.WRITE, "Create": AclOperation.CREATE,
                  "Describe": AclOperation.DESCRIBE, "DescribeConfigs": AclOperation.DESCRIBE_CONFIGS,
                  "AlterConfigs": AclOperation.ALTER_CONFIGS}
    given = [pair for pair in zip(command[1:], command[2:]) if pair[0].startswith("--")]
    (principal,) = [value for name, value in given if name == "--allow-principal"]
    pattern = ResourcePatternType.PREFIXED if ("--resource-pattern-type", "prefixed") in given else ResourcePatternType.LITERAL
    return [AclBinding(kinds[name], resource, pattern, principal, "*", operations[operation], AclPermissionType.ALLOW)
            for name, resource in given if name in kinds
            for option, operation in given if option == "--operation"]


class Accounts:
    def __init__(self, cluster, authority, directory, prefix):
        self.cluster = cluster
        self.authority = authority
        self.directory = directory
        self.prefix = prefix
        self.admin = AdminClient({"bootstrap.servers": cluster.bootstrap, "log_level": 3})

    # Passwords

    def set_password(self, name, password):
        self._alter(UserScramCredentialUpsertion(name, ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, 4096),
                                                 password.encode()))

    def remove_password(self, name):
        self._alter(UserScramCredentialDeletion(name, ScramMechanism.SCRAM_SHA_512))

    def _alter(self, alteration):
        for future in self.admin.alter_user_scram_credentials([alteration]).values():
            future.result(TIMEOUT)

    @staticmethod
    def password(name):
        return f"the password of {name}"

    # Permissions

    def translate(self, command, prefix=None):
        """A command of the guide, for this cluster and this prefix."""
        super_file = self.directory / "super.properties"
        super_file.touch()
        words = {"BROKER": self.cluster.bootstrap, "SUPER": str(super_file)}
        return [words.get(word, (prefix or self.prefix) + word[len("gatepost"):] if word.startswith("gatepost.") else word)
                for word in command]

    def run_all(self, commands, prefix):
        """Run commands of the guide, several at a time: each starts its own Java."""
        with concurrent.futures.ThreadPoolExecutor(TOOLS_AT_ONCE) as pool:
            return list(pool.map(lambda each: tools.run(*self.translate(each, prefix)), commands))

    def bindings(self, prefix=None):
        """The permissions that the guide's commands grant, as AclBindings."""
        return [binding for command in guide_commands("kafka-acls.sh")
                for binding in bindings_of(self.translate(command, prefix))]

    def grant_all(self):
        """Grant the permissions of the guide, faster than by its commands. Returns them."""
        bindings = self.bindings()
        for future in self.admin.create_acls(bindings).values():
            future.result(TIMEOUT)
        waiting.until(lambda: set(bindings) <= set(self.granted()), TIMEOUT, "the permissions")
        return bindings

    @staticmethod
    def everything():
        return AclBindingFilter(ResourceType.ANY, None, ResourcePatternType.ANY, None, None, AclOperation.ANY,
                                AclPermissionType.ANY)

    def granted(self):
        """All current permissions, as AclBindings."""
        return self.admin.describe_acls(self.everything()).result(TIMEOUT)

    def grant(self, binding):
        for future in self.admin.create_acls([binding]).values():
            future.result(TIMEOUT)
        waiting.until(lambda: binding in self.granted(), TIMEOUT, f"{binding} to be granted")

    def revoke(self, binding):
        wanted = AclBindingFilter(binding.restype, binding.name, binding.resource_pattern_type, binding.principal,
                                  binding.host, binding.operation, binding.permission_type)
        for future in self.admin.delete_acls([wanted]).values():
            assert future.result(TIMEOUT) == [binding]
        waiting.until(lambda: binding not in self.granted(), TIMEOUT, f"{binding} to be revoked")

    # Clients

    def client(self, name, **properties):
        """The properties of an independent client of this account."""
        return {"bootstrap.servers": self.cluster.secured_bootstrap, "security.protocol": "SASL_SSL", "log_level": 3,
                "sasl.mechanism": "SCRAM-SHA-512", "sasl.username": name, "sasl.password": self.password(name),
                "ssl.ca.location": str(self.authority.certificate), "error_cb": lambda error: None} | properties

    def use(self, config, name, mechanism="SCRAM-SHA-512"):
        """Make a configuration use this account as shown in the guide."""
        shown = next(block for block in literals(GUIDE.read_text()) if block.startswith("[kafka]\n"))
        options = dict(line.split(" = ", 1) for line in shown.splitlines()[1:])
        config.sections["kafka"] = options | {
            "bootstrap.servers": self.cluster.secured_bootstrap, "ssl.ca.location": str(self.authority.certificate),
            "sasl.mechanism": mechanism, "sasl.username": name, "sasl.password_file": str(config.secret_file("password", self.password(name).encode()))}
        return config


def error_of(future):
    """The name of the error that ended a request, or None."""
    try:
        future.result(TIMEOUT)
    except confluent_kafka.KafkaException as error:
        return error.args[0].name()
    return None

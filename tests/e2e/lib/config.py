"""Configuration files for the daemon under test."""

import pathlib

from signing import SECRET


class Config:
    """Sections of options, each with a value or a list of values; written in the format of gatepost.conf."""

    def __init__(self, directory, sections):
        self.directory = pathlib.Path(directory)
        self.sections = {name: dict(options) for name, options in sections.items()}

    @classmethod
    def usual(cls, directory, bootstrap, prefix, instance):
        """Both roles, one source `invoicing` with the default secret, and free ports."""
        config = cls(directory, {
            "gatepost": {"roles": "receiver, router", "instance": instance},
            "receiver": {"listen": "127.0.0.1:0"},
            "router": {},
            "source invoicing": {"path": "/webhooks/invoicing", "header_prefix": "x-invoicing"},
            "topics": {"prefix": prefix},
            "kafka": {"bootstrap.servers": bootstrap},
            "admin": {"listen": "127.0.0.1:0"},
        })
        config["source invoicing"]["secret_file"] = config.secret_file("secret", SECRET)
        return config

    def __getitem__(self, section):
        return self.sections.setdefault(section, {})

    def source(self, name, secret=SECRET, **options):
        """Add a source whose path and header prefix contain its name."""
        self[f"source {name}"].update({"path": f"/webhooks/{name}", "header_prefix": f"x-{name}",
                                       "secret_file": self.secret_file(f"secret-{name}", secret)} | options)
        return self

    def tls(self, certificate, key):
        """Enable TLS with these files."""
        self["receiver"].update({"tls_certificate_file": certificate, "tls_key_file": key})
        return self

    def roles(self, roles):
        self["gatepost"]["roles"] = roles
        return self

    def get(self, section, option):
        """The values of an option as a list."""
        value = self.sections.get(section, {}).get(option, [])
        return value if isinstance(value, list) else [value]

    def secret_file(self, name, secret, mode=0o600):
        path = self.directory / name
        path.write_bytes(secret + b"\n")
        path.chmod(mode)
        return path

    @property
    def text(self):
        lines = []
        for section, options in self.sections.items():
            lines.append(f"[{section}]")
            lines += [f"{option} = {value}" for option in options for value in self.get(section, option)]
        return "\n".join(lines) + "\n"

    def write(self, name="gatepost.conf"):
        path = self.directory / name
        path.write_text(self.text)
        path.chmod(0o600)
        return path

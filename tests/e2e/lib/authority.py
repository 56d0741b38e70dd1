"""Test certificates, created by the openssl program."""

import ssl
import subprocess

EC = ("ec", "-pkeyopt", "ec_paramgen_curve:P-256")
RSA = ("rsa:2048",)


class Authority:
    """A certificate authority that issues certificates with keys."""

    def __init__(self, directory, days=2):
        self.directory = directory
        self.certificate = directory / "ca.pem"
        self._key = directory / "ca.key"
        self._run("req", "-x509", "-newkey", *EC, "-nodes", "-days", days, "-subj", "/CN=authority of the tests",
                  "-keyout", self._key, "-out", self.certificate)

    @staticmethod
    def _run(*arguments):
        subprocess.run(["openssl", *map(str, arguments)], check=True, capture_output=True)

    def issue(self, name, names="DNS:localhost,IP:127.0.0.1", begin=None, end=None, days=1, algorithm=EC, subject=None,
              usage=None):
        """Issue a certificate for these names, with the common name subject, or name, and an extended key usage, if given.
        Returns the paths of certificate and key. It is valid from begin to end (YYYYMMDDHHMMSSZ) if given, otherwise for some
        days from now."""
        certificate, key, request = (self.directory / f"{name}.{ending}" for ending in ("pem", "key", "csr"))
        self._run("req", "-newkey", *algorithm, "-nodes", "-subj", f"/CN={subject or name}", "-keyout", key, "-out", request)
        (self.directory / "index").write_text("")
        (self.directory / "serial").write_text("01")
        (self.directory / "ca.cnf").write_text(
            f"[ca]\ndefault_ca=c\n[c]\ndatabase={self.directory}/index\nserial={self.directory}/serial\n"
            f"new_certs_dir={self.directory}\ndefault_md=sha256\npolicy=p\nx509_extensions=e\nunique_subject=no\n"
            f"[p]\ncommonName=supplied\n[e]\nbasicConstraints=CA:FALSE\n" + (f"subjectAltName={names}\n" if names else "") +
            (f"extendedKeyUsage={usage}\n" if usage else ""))
        validity = ["-startdate", begin, "-enddate", end] if begin else ["-days", days]
        self._run("ca", "-batch", "-config", self.directory / "ca.cnf", "-cert", self.certificate, "-keyfile", self._key,
                  "-in", request, "-out", certificate, *validity)
        return certificate, key

    def issue_joined(self, name, **options):
        """Issue a certificate. Returns the path of a file with the key and the certificate."""
        certificate, key = self.issue(name, **options)
        joined = self.directory / f"{name}-joined.pem"
        joined.write_text(key.read_text() + certificate.read_text())
        return joined

    def client(self, certificate=None, key=None, version=None):
        """The TLS context of a client that trusts this authority, with or without a certificate, for any version or a single
        one."""
        context = ssl.create_default_context(cafile=self.certificate)
        if certificate:
            context.load_cert_chain(certificate, key)
        if version:
            context.minimum_version = context.maximum_version = version
        return context

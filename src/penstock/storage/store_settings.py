"""Settings of object stores from the environment, and texts of errors without the secrets among them.

In: variables by name, as the tools of each cloud read them. Out: arguments for the clients of `obstore`,
which reads most variables itself. Secrets are passed to it alone.
"""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote, urlsplit

from penstock.errors import StoreError

EMULATOR_NAME: Final = "STORAGE_EMULATOR_HOST"
"""Variable by which the tools of Google find an emulator."""

CREDENTIALS: Final = {
    "s3": "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY",
    "gs": "GOOGLE_APPLICATION_CREDENTIALS",
    "az": "AZURE_STORAGE_ACCOUNT_NAME and AZURE_STORAGE_ACCOUNT_KEY",
}
"""The usual variables for credentials, by protocol."""

DEBUG_TEXT: Final = "\n\nDebug source:"
"""What precedes the settings of a client in the texts of its errors."""

_MAX_SHOWN: Final = 300  # characters of the text of an error

# Names of variables whose values must not be shown.
_SECRET_NAME = re.compile(r"(AWS|AMAZON|AZURE|GOOGLE|GCP|GCS)\w*", re.IGNORECASE)
_PUBLIC_NAME = re.compile(
    r".*(REGION|ENDPOINT|URL|PROFILE|ALLOW_HTTP|BUCKET|ACCOUNT_NAME|PUT)", re.IGNORECASE
)
_QUERY = re.compile(r"\?[^\s\"'<>)]+")
_KEYS = re.compile(
    r"<(AWSAccessKeyId|AccessKeyId|StringToSign|SignatureProvided|CanonicalRequest)>.*?</\1>", re.DOTALL
)
_TAGGED = re.compile(r"(Signature|Credential|AccessKeyId|sig|token)=[^\s&,\"']+", re.IGNORECASE)
_USER = re.compile(r"(?<=://)[^/?#\s\"'<>]*@")
_MIN_SECRET = 4

_GOOGLE_ACCOUNTS: Final = (
    "GOOGLE_APPLICATION_CREDENTIALS",
    "GOOGLE_SERVICE_ACCOUNT",
    "GOOGLE_SERVICE_ACCOUNT_PATH",
    "GOOGLE_SERVICE_ACCOUNT_KEY",
)
"""Variables that name an account; without one, requests to an emulator are not signed."""

# Names that the Azure command line reads, and those that the client reads.
_AZURE_NAMES: Final = {
    "AZURE_STORAGE_ACCOUNT": "account_name",
    "AZURE_STORAGE_KEY": "account_key",
    "AZURE_STORAGE_SAS_TOKEN": "sas_key",
}
_CONNECTION_PARTS: Final = {
    "AccountName": "account_name",
    "AccountKey": "account_key",
    "SharedAccessSignature": "sas_key",
    "BlobEndpoint": "endpoint",
}
_CONNECTION_NAME: Final = "AZURE_STORAGE_CONNECTION_STRING"


def clean_text(text: str) -> str:
    """Return the text of an error without credentials, in one short line."""
    text = text.partition(DEBUG_TEXT)[0]
    for value in os.environ.values():  # endpoints and proxies
        if match := _USER.search(value):
            password = match[0][:-1].partition(":")[2]
            for part in (match[0], password, unquote(password)):
                text = text.replace(part, "…") if len(part) >= _MIN_SECRET else text
    text = _USER.sub("", text)
    text = _TAGGED.sub(r"\1=…", _QUERY.sub("?…", _KEYS.sub(r"<\1>…</\1>", text)))
    for name, value in os.environ.items():
        if _SECRET_NAME.match(name) and not _PUBLIC_NAME.match(name):
            # A connection string has several values.
            for part in (value, *(each.partition("=")[2] for each in value.split(";"))):
                text = text.replace(part, "…") if len(part) >= _MIN_SECRET else text
    line = " ".join(text.split())
    return line if len(line) <= _MAX_SHOWN else f"{line[:_MAX_SHOWN]}…"


def check_endpoint(endpoint: str) -> str:
    """Return the address of a server."""
    try:
        parts = urlsplit(endpoint)
        is_valid = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        is_valid = False
    if not is_valid or not endpoint.isascii() or any(each.isspace() for each in endpoint):
        raise StoreError(
            "the endpoint of the store is not a valid URL",
            expected="http://HOST:PORT or https://HOST",
            advice="Check AWS_ENDPOINT_URL in the environment.",
        )
    return endpoint


def read_google_settings(names: dict[str, str]) -> tuple[dict[str, Any], bool]:
    """Return the arguments of a client of Google Cloud Storage, and whether it may use plain HTTP.

    `GOOGLE_APPLICATION_CREDENTIALS`, the credentials of `gcloud` and the role of the machine are found by the
    client.
    """
    host = names.get(EMULATOR_NAME)
    if not host:
        return {}, False
    url = host if "://" in host else f"http://{host}"
    settings: dict[str, Any] = {"base_url": url.rstrip("/")}
    if not any(name in names for name in _GOOGLE_ACCOUNTS):
        account = {"disable_oauth": True, "gcs_base_url": url.rstrip("/")}  # requests are not signed
        account |= dict.fromkeys(("client_email", "private_key", "private_key_id"), "")
        settings["service_account_key"] = json.dumps(account)
    return settings, url.startswith("http://")


def read_azure_settings(names: dict[str, str]) -> tuple[dict[str, Any], bool]:
    """Return the arguments of a client of Azure, and whether it may use plain HTTP."""
    found: dict[str, Any] = {}
    connection = names.get(_CONNECTION_NAME)
    if connection:
        parts = dict(part.partition("=")[::2] for part in connection.split(";") if part.strip())
        found = {_CONNECTION_PARTS[name]: value for name, value in parts.items() if name in _CONNECTION_PARTS}
        if "account_name" not in found:
            raise StoreError(
                f"{_CONNECTION_NAME} has no AccountName",
                advice="Copy the connection string of the storage account from the Azure portal.",
            )
    has_own_name = any(name.startswith("AZURE_STORAGE_ACCOUNT_") for name in names)
    for name, argument in _AZURE_NAMES.items():
        if names.get(name) and argument not in found and not has_own_name:
            found[argument] = names[name]
    endpoint = (
        found.get("endpoint") or names.get("AZURE_STORAGE_ENDPOINT") or names.get("AZURE_ENDPOINT") or ""
    )
    return found, endpoint.startswith("http://")


def find_aws_profile(names: dict[str, str]) -> Any:
    """Return the credentials of a profile, read by boto3; None if `obstore` finds them in the environment."""
    if "AWS_ACCESS_KEY_ID" in names or names.get("AWS_SKIP_SIGNATURE"):
        return None
    file = Path(names.get("AWS_SHARED_CREDENTIALS_FILE", "~/.aws/credentials")).expanduser()
    if "AWS_PROFILE" not in names and not file.is_file():
        return None
    try:
        from obstore.auth.boto3 import Boto3CredentialProvider  # noqa: PLC0415 - boto3, if it is installed

        return Boto3CredentialProvider()
    except (ImportError, ValueError) as error:
        raise StoreError(
            f"the profile in {file} cannot be read ({clean_text(str(error))})",
            advice="Run: pip install boto3; or set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY.",
        ) from None

"""`gs://` and `az://` against a stand-in on loopback: paths, credentials, conditional writes, errors."""

from __future__ import annotations

import base64
import json
from urllib.parse import unquote

import numpy as np
import pytest

import penstock as ps
from cloud_server import ACCOUNT, CloudServer
from penstock.errors import BusyError, NoSuchPathError, PathError, StoreError

pytest.importorskip("obstore")

KEY = base64.b64encode(b"secret key of the tests" * 2).decode()
SECRETS = (KEY, "sv=2024&sig=secretsignature")


def table(seed: int = 0) -> dict[str, object]:
    rng = np.random.default_rng(seed)
    return {"height": rng.normal(size=300).round(3), "sold": rng.integers(0, 2, 300)}


def convert(out, seed: int = 0, **options: object):
    return ps.convert(table(seed), out, target="sold", num_shards=2, num_threads=1, **options)


def hashes(dataset) -> list[str]:
    return [shard.sha256 for shard in dataset.manifest.shards()]


@pytest.fixture
def cloud(monkeypatch):
    server = CloudServer()
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("STORAGE_EMULATOR_HOST", server.url)
    monkeypatch.setenv("AZURE_STORAGE_ACCOUNT_NAME", ACCOUNT)
    monkeypatch.setenv("AZURE_STORAGE_ACCOUNT_KEY", KEY)
    monkeypatch.setenv("AZURE_STORAGE_ENDPOINT", f"{server.url}/{ACCOUNT}")
    yield server
    server.close()


both = pytest.mark.parametrize("scheme", ["gs", "az"])


@both
def test_convert_open_and_verify(cloud, tmp_path, scheme):
    out = f"{scheme}://animals/some folder/pets"
    remote = convert(out)
    near = convert(tmp_path / "pets")
    assert hashes(remote) == hashes(near)
    again = ps.open(out)
    assert list(again["train"]) == list(near["train"])
    first, second = (
        [b[0]["height"].tolist() for b in each["train"].loader(batch_size=32)] for each in (again, near)
    )
    assert first == second
    assert ps.open(f"{out}/{remote.manifest.folder}/*.tfrecord").splits


@both
def test_raw_data_is_read(cloud, tmp_path, scheme):
    text = "height,sold\n" + "".join(f"{row * 0.5},{row % 2}\n" for row in range(100))
    for part in ("a", "b ä"):
        cloud.put("animals", f"raw/{part}.csv", text.encode())
        (tmp_path / f"{part}.csv").write_text(text)
    remote = ps.convert(f"{scheme}://animals/raw/*.csv", tmp_path / "remote", target="sold")
    near = ps.convert(str(tmp_path / "*.csv"), tmp_path / "near", target="sold")
    assert hashes(remote) == hashes(near)
    with pytest.raises(NoSuchPathError) as caught:
        ps.convert(f"{scheme}://animals/raw/none.csv", tmp_path / "none")
    assert caught.value.path == f"{scheme}://animals/raw/none.csv"


@both
def test_the_manifest_is_written_only_if_absent_or_unchanged(cloud, scheme):
    out = f"{scheme}://animals/pets"
    first = hashes(convert(out))
    with pytest.raises(PathError):
        convert(out, seed=1)
    second = hashes(convert(out, seed=1, overwrite=True))
    assert hashes(ps.open(out)) == second != first
    puts = [
        headers
        for method, path, headers in cloud.requests
        if method == "PUT" and unquote(path).endswith("/penstock.json")
    ]
    condition = {"gs": "x-goog-if-generation-match", "az": "if-none-match"}[scheme]
    assert puts[0][condition] in ("0", "*")
    assert "x-goog-if-generation-match" in puts[-1] if scheme == "gs" else "if-match" in puts[-1]


@both
@pytest.mark.parametrize("overwrite", [False, True])
def test_of_two_writers_one_wins(cloud, monkeypatch, scheme, overwrite):
    from penstock.storage.stored import Stored  # noqa: PLC0415 - with obstore

    out = f"{scheme}://animals/pets"
    if overwrite:
        convert(out, seed=5)
    write = Stored.write
    won = []

    def late(file, data, *, over=None, **options):
        if over is not None:
            monkeypatch.setattr(Stored, "write", write)
            won.append(hashes(convert(out, seed=1, overwrite=overwrite)))
        return write(file, data, over=over, **options)

    monkeypatch.setattr(Stored, "write", late)
    with pytest.raises(BusyError):
        convert(out, seed=2, overwrite=overwrite)
    assert hashes(ps.open(out)) == won[0]


@both
def test_shards_of_an_earlier_run_are_copied_inside_the_store(cloud, scheme):
    out = f"{scheme}://animals/some folder/pets"
    first = hashes(convert(out))
    convert(out, 1, overwrite=True)
    cloud.requests.clear()
    again = convert(out, overwrite=True, resume=True)
    assert hashes(again) == first
    puts = [
        headers
        for method, path, headers in cloud.requests
        if method == "PUT" and unquote(path).partition("?")[0].endswith(".tfrecord")
    ]
    assert len(puts) == len(first)
    assert all("x-goog-copy-source" in each or "x-ms-copy-source" in each for each in puts)
    assert len(list(ps.open(out)["train"])) == len(again["train"])


@both
def test_leftovers_are_removed(cloud, scheme):
    out = f"{scheme}://animals/pets"
    convert(out)
    kept = convert(out, seed=1, overwrite=True, clean=True).manifest.folder
    assert {key.split("/")[1] for _, key in cloud.objects if "/.shards-" in key} == {kept}


@both
def test_refusals_name_the_path_and_no_secret(cloud, scheme):
    cloud.refuses = True
    with pytest.raises(StoreError) as caught:
        ps.open(f"{scheme}://animals/pets")
    error = caught.value
    assert error.path is not None
    assert error.path.startswith(f"{scheme}://animals/pets")
    assert not any(secret in f"{error} {vars(error)}" for secret in SECRETS)


@pytest.mark.parametrize(
    "variables",
    [
        {"AZURE_STORAGE_ACCOUNT_NAME": ACCOUNT, "AZURE_STORAGE_ACCOUNT_KEY": KEY},
        {"AZURE_STORAGE_ACCOUNT": ACCOUNT, "AZURE_STORAGE_KEY": KEY},
        {"AZURE_STORAGE_CONNECTION_STRING": "CONNECTION"},
        {"AZURE_STORAGE_ACCOUNT": ACCOUNT, "AZURE_STORAGE_SAS_TOKEN": SECRETS[1]},
    ],
    ids=["of the client", "of the command line", "connection string", "signature"],
)
def test_azure_credentials_come_from_the_environment(cloud, monkeypatch, variables):
    for name in ("AZURE_STORAGE_ACCOUNT_NAME", "AZURE_STORAGE_ACCOUNT_KEY"):
        monkeypatch.delenv(name)
    connection = f"AccountName={ACCOUNT};AccountKey={KEY};BlobEndpoint={cloud.url}/{ACCOUNT}"
    for name, value in variables.items():
        monkeypatch.setenv(name, connection if value == "CONNECTION" else value)
    convert("az://animals/pets")
    for _, path, headers in cloud.requests:
        is_signed = headers.get("authorization", "").startswith(f"SharedKey {ACCOUNT}:")
        assert is_signed or "sig=secretsignature" in path
    contents = b"".join(each.data for each in cloud.objects.values())
    assert not any(secret.encode() in contents for secret in SECRETS)
    cloud.refuses = True
    with pytest.raises(StoreError) as caught:
        ps.open("az://animals/pets")
    assert not any(secret in f"{caught.value} {vars(caught.value)}" for secret in SECRETS)


def test_a_connection_string_without_an_account_is_refused(cloud, monkeypatch):
    monkeypatch.setenv("AZURE_STORAGE_CONNECTION_STRING", f"AccountKey={KEY}")
    with pytest.raises(StoreError) as caught:
        ps.open("az://animals/pets")
    assert "AccountName" in caught.value.what
    assert KEY not in str(caught.value)


def test_google_credentials_come_from_the_file_of_the_environment(cloud, monkeypatch, tmp_path):
    rsa = pytest.importorskip("cryptography.hazmat.primitives.asymmetric.rsa")
    from cryptography.hazmat.primitives import serialization  # noqa: PLC0415 - with the line above

    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    text = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    ).decode()
    account = {
        "type": "service_account",
        "client_email": "tests@penstock.invalid",
        "private_key": text,
        "private_key_id": "1",
    }
    (tmp_path / "account.json").write_text(json.dumps(account))
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(tmp_path / "account.json"))
    cloud.put("animals", "raw/a.csv", b"a,b\n1,2\n2,3\n")
    ps.convert("gs://animals/raw/a.csv", tmp_path / "out")
    token = cloud.requests[0][2]["authorization"].removeprefix("Bearer ")
    claims = json.loads(base64.urlsafe_b64decode(token.split(".")[1] + "=="))
    assert claims["iss"] == "tests@penstock.invalid"

"""Strings that look like secrets."""

from __future__ import annotations

import time

import pytest

from det_native.capture.secrets import environment_reads, find_secrets, is_key_file, looks_secret, name_is_secret


@pytest.mark.parametrize(
    "name", ["API_KEY", "apikey", "db_password", "client_secret", "hf_token", "authToken", "credentials"]
)
def test_names_of_secrets(name: str) -> None:
    assert name_is_secret(name)


@pytest.mark.parametrize(
    "name", ["tokenizer", "pad_token", "token_ids", "max_tokens", "keys", "eosToken", "key", "passed"]
)
def test_names_that_only_resemble_them(name: str) -> None:
    assert not name_is_secret(name)


@pytest.mark.parametrize(
    "text",
    [
        "AKIA" + "IOSFODNN7EXAMPLE",
        "ghp_" + "a1" * 18,
        "sk-" + "abc123" * 5,
        "xoxb-" + "1234567890-abc",
        "hf_" + "Ab" * 12,
        "-----BEGIN RSA " + "PRIVATE KEY-----\nabc",
        "postgres://me:" + "swordfish@host/db",
    ],
)
def test_forms_of_secrets(text: str) -> None:
    assert looks_secret(text)
    assert looks_secret(f"prefix {text} suffix")


@pytest.mark.parametrize("text", ["accuracy", "https://example.com/a", "sk-learn", "data/train.csv", "a" * 64])
def test_ordinary_strings(text: str) -> None:
    assert not looks_secret(text)


def test_places_in_source() -> None:
    source = (
        "x = 1\nAPI_KEY = 'abc12345'\nconnect(password='hunter22')\ncfg = {'secret': 's3cr3t!'}\n"
        "os.environ['MY_TOKEN'] = 'abc12345'\ndef f(api_key='abc12345'):\n    pass\nurl = 'AKIA" + "IOSFODNN7EXAMPLE'"
    )
    assert [(secret.line, secret.name) for secret in sorted(find_secrets(source), key=lambda s: s.line)] == [
        (2, "API_KEY"),
        (3, "password"),
        (4, "secret"),
        (5, "MY_TOKEN"),
        (6, "api_key"),
        (8, "url"),
    ]


@pytest.mark.parametrize(
    "source",
    [
        "API_KEY = os.environ['API_KEY']",
        "password = ''",
        "token = '<your token>'",
        "secret = None",
        "eos_token = '</s>'",
    ],
)
def test_sources_without_secrets(source: str) -> None:
    assert list(find_secrets(source)) == []


@pytest.mark.parametrize(
    "source",
    [
        "password = 'correct horse battery'",
        "db_passwd = 'horse battery staple 42'",
        "connect(passphrase='one two three four five six')",
        "cfg = {'client_secret': 'a few plain words'}",
    ],
)
def test_a_phrase_by_the_name_of_a_password_is_a_secret(source: str) -> None:
    assert [secret.kind for secret in find_secrets(source)] == ["by its name"]


@pytest.mark.parametrize(
    "source",
    [
        "password_help = 'Type your password here'",
        "labels = {'password': 'Type your password here'}",
        "secret_message = 'the quick brown fox'",
        "password = 'it was a long text of more words than anybody types'",
        "token = 'the quick brown fox'",
    ],
)
def test_prose_is_no_secret(source: str) -> None:
    assert list(find_secrets(source)) == []


def test_environment_variables_that_are_read() -> None:
    source = (
        "a = os.environ['API_KEY']\nb = os.getenv('HF_TOKEN', '')\nc = os.environ.get('HOME')\nos.environ['SECRET'] = x"
    )
    assert sorted(environment_reads(source)) == ["API_KEY", "HF_TOKEN"]


@pytest.mark.parametrize(
    "name",
    [
        "server.pem",
        "PRIVATE.PEM",
        "id_rsa",
        "id_ed25519",
        "signing.key",
        "store.p12",
        "cert.pfx",
        "credentials.json",
        "aws_credentials.csv",
        "client_secret_123.json",
        "service-account.json",
        "my-project-service_account.json",
        "credentials",
        "secrets.toml",
        ".netrc",
        ".pgpass",
        ".git-credentials",
        ".pypirc",
        "kaggle.json",
        "prod.env",
        "client_secrets.json",
    ],
)
def test_files_that_look_like_keys(name: str) -> None:
    assert is_key_file(name)


@pytest.mark.parametrize(
    "name",
    [
        "id_rsa.pub",
        "keys.py",
        "keyboard.csv",
        "train.py",
        "secrets.py",
        "credentials.py",
        "tokenizer.json",
        "token_ids.npy",
        "monkey.json",
        "id_map.csv",
        "environment.yml",
        "data.json",
        "keypoints.json",
        "pem.txt",
        "service_accounts_churn.parquet",
    ],
)
def test_files_that_only_resemble_keys(name: str) -> None:
    assert not is_key_file(name)


@pytest.mark.parametrize(
    "text", ["a." * 300_000, "eyJ-" * 200_000, "a://" * 200_000, "-----BEGIN " * 80_000, "://a:" * 200_000]
)
def test_a_long_text_is_looked_through_once(text: str) -> None:
    begun = time.process_time()
    assert not looks_secret(text)
    assert time.process_time() - begun < 10  # minutes, if it were from every place in it


def test_a_secret_as_bytes_is_found() -> None:
    assert [secret.name for secret in find_secrets("key = b'AKIA" + "IOSFODNN7EXAMPLE'")] == ["key"]
    assert list(find_secrets("key = b'\\x89PNG'")) == []

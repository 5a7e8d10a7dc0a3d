"""Forty secrets, and a run in which each of them is planted somewhere, as engines and people leave them."""

import base64
import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from tests.report.cases import incident
from tests.report.stored_run import answers, store

from culpa.model import Launch, RootEvidence


@dataclass(frozen=True)
class Planted:
    """A secret: its name, what must not be left of it, and a line in which it stands."""

    name: str
    secret: str
    line: str


_RAW = (
    ("openai", "sk-proj-Xq7Lm2Vt9Rb4Wz1Ks6Yd3Hf8Gc5Np0J", "using {} for the judge"),
    ("openai legacy", "sk-T3BlbkFJq8ZsXw2Vb7Nm4Lk1Jh9Gf6Ds3Aq5W", "OPENAI_API_KEY={}"),
    ("anthropic", "sk-ant-api03-Zk4Xc8Vb2Nm6Lq1Wd9Es5Rf3Tg7Yh0Uj", "'anthropic_api_key': '{}'"),
    ("hugging face", "hf_QwErTyUiOpAsDfGhJkLzXcVbNm13572468", "HF_TOKEN={}"),
    ("hugging face org", "api_org_LkJhGfDsAzXcVbNmQwErTyUiOp90817263", "login with {} failed"),
    ("aws id", "AKIAQ7X3M5P9R2T8V4W6", "aws_access_key_id = {}"),
    ("aws secret", "wJ4lrXUtnFEMI/K7MDENG/bPxRfiCYq8Zs2Vt6Lm", "aws_secret_access_key = {}"),
    ("aws session", "FwoGZXIvYXdzEBYaDHqa0Zk3Xw7Vb9Nm2Lq4Rt6Yp8", "AWS_SESSION_TOKEN={}"),
    ("gcp key", "AIzaSyQ7x3M5p9R2t8V4w6Z1k0L2j4H6g8F5d3S", "https://maps.googleapis.com/x?key={}"),
    ("gcp token", "ya29.a0AfB_byQ7x3M5p9R2t8V4w6Z1k0L2j4H6", "token {} expired"),
    (
        "azure storage",
        "Eby8vdQ7x3M5p9R2t8V4w6Z1k0L2j4H6g8F5d3SqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq==",
        "DefaultEndpointsProtocol=https;AccountName=blob;AccountKey={};EndpointSuffix=core.windows.net",
    ),
    ("azure client", "q7X8Q~Zk3Xw7Vb9Nm2Lq4Rt6Yp8Sd1Fg5Hj0Kl3", "AZURE_CLIENT_SECRET={}"),
    (
        "azure sas",
        "pQ7x3M5p9R2t8V4w6Z1k0L2j4H6g8F5d3SqFlqUwJPLl",
        "https://blob.core.windows.net/c/m?sv=2024&sig={}&se=2027",
    ),
    ("github classic", "ghp_Zk3Xw7Vb9Nm2Lq4Rt6Yp8Sd1Fg5Hj0Kl3Wq7", "git clone with {}"),
    ("github fine", "github_pat_11AQ7X3M5P9R2T8V4W6_Zk3Xw7Vb9Nm2Lq4Rt6Yp8", "GH_TOKEN={}"),
    ("gitlab", "glpat-Zk3Xw7Vb9Nm2Lq4Rt6Yp", "PRIVATE-TOKEN: {}"),
    ("slack bot", "xoxb-482910573612-Zk3Xw7Vb9Nm2Lq4R", "alert sent with {}"),
    ("slack hook", "T7X3M5P9R/B2T8V4W6Z/Zk3Xw7Vb9Nm2Lq4Rt6Yp8Sd1", "https://hooks.slack.com/services/{}"),
    (
        "discord hook",
        "918273645546372819/Zk3Xw7Vb9Nm2Lq4Rt6Yp8Sd1Fg5Hj0",
        "https://discord.com/api/webhooks/{}",
    ),
    (
        "telegram",
        "8273645519:AAZk3Xw7Vb9Nm2Lq4Rt6Yp8Sd1Fg5Hj0Kl3",
        "https://api.telegram.org/bot{}/sendMessage",
    ),
    ("nvidia", "nvapi-Zk3Xw7Vb9Nm2Lq4Rt6Yp8Sd1Fg5Hj0", "NGC_API_KEY={}"),
    ("replicate", "r8_Zk3Xw7Vb9Nm2Lq4Rt6Yp8Sd1", "REPLICATE_API_TOKEN={}"),
    ("groq", "gsk_Zk3Xw7Vb9Nm2Lq4Rt6Yp8Sd1Fg5", "fallback {}"),
    ("wandb", "7f3a9c2e5b8d1f4a6c9e2b5d8f1a4c7e0b3d6f9a", "WANDB_API_KEY={}"),
    ("pypi", "pypi-AgEIcHlwaS5vcmcCJDZk3Xw7Vb9Nm2Lq4Rt6Yp8Sd1Fg5Hj0", "pip --password {}"),
    ("npm", "npm_Zk3Xw7Vb9Nm2Lq4Rt6Yp8Sd1Fg5Hj0Kl3Wq7", "//registry.npmjs.org/:_authToken={}"),
    (
        "jwt",
        "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiI4MjczNjQ1NTE5In0.Zk3Xw7Vb9Nm2Lq4Rt6Yp8Sd1Fg5Hj0Kl3Wq7",
        "session {}",
    ),
    ("bearer", "Zk3Xw7Vb9Nm2Lq4Rt6", "curl -H 'Authorization: Bearer {}' localhost"),
    ("basic", "bWFyaWE6WmszWHc3VmI5Tm0=", "Proxy-Authorization: Basic {}"),
    ("cookie", "a8f5f167f44f4964e6c998dee827110c", "Cookie: theme=dark; sessionid={}; lang=en"),
    ("set-cookie", "c4ca4238a0b923820dcc509a6f75849b", "Set-Cookie: sid={}; HttpOnly"),
    ("url password", "tr0ub4dor-Zk3Xw7", "redis://cache:{}@127.0.0.1:6379/0"),
    ("url user token", "Zk3Xw7Vb9Nm2Lq4Rt6Yp8Sd1", "https://{}@huggingface.co/x/y"),
    ("flag", "Lantern-4711-zebra", "vllm serve m --api-key {} --port 8000"),
    ("variable password", "c0rrect-h0rse-battery", "DB_PASSWORD={}"),
    ("mapping", "Sommer2026!Regen", '{{"user": "svc", "password": "{}"}}'),
    ("manifest", "Winter-9182-Schnee", "name: MODEL_STORE_SECRET\n  value: {}"),
    ("stripe", "sk_" + "live_Zk3Xw7Vb9Nm2Lq4Rt6Yp8Sd1", "billing {}"),
    ("sendgrid", "SG.Zk3Xw7Vb9Nm2Lq4Rt6Yp8S.d1Fg5Hj0Kl3Wq7Er5Ty9Ui2Op6", "mail key {}"),
    (
        "pem",
        "MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC7VJTUt9Us8cKj",
        "-----BEGIN PRIVATE KEY-----\n{}\n-----END PRIVATE KEY-----",
    ),
)

SECRETS = tuple(Planted(name, secret, line.format(secret)) for name, secret, line in _RAW)
# People and places that are no secrets of a machine, but nobody's business either.
PRIVATE = {
    "user": ("marisol", "files in /home/marisol/models and /Users/marisol/x"),
    "windows user": ("Katharina", "C:\\Users\\Katharina\\models"),
    "address": ("10.47.11.23", "bound to 10.47.11.23:8000"),
    "address 172": ("172.20.33.44", "peer 172.20.33.44 gone"),
    "address v6": ("fd12:3456:789a::47", "listening on [fd12:3456:789a::47]:8000"),
    "host": ("gpu-node-47.corp", "connect to gpu-node-47.corp.internal failed"),
    "url host": ("inference.acme-labs.io", "http://inference.acme-labs.io:8000/v1"),
    "mail": ("rosa.keller@acme-labs.io", "contact rosa.keller@acme-labs.io"),
    "mac": ("02:42:ac:4f:11:7e", "ether 02:42:ac:4f:11:7e"),
    "prompt": ("merger of Borealis", "prompt: 'Summarise the merger of Borealis and Austral', params: x"),
}


def variants(planted: Planted) -> Mapping[str, str]:
    """The line as it is, coloured in the middle of the secret, broken within it, hidden in it, and quoted again."""
    secret, line = planted.secret, planted.line
    half = len(secret) // 2
    coloured = f"{secret[:half]}\x1b[31m{secret[half:]}\x1b[0m"
    return {
        "plain": line,
        "coloured": line.replace(secret, coloured),
        "zero width": line.replace(secret, f"{secret[:half]}\u200b{secret[half:]}"),
        "json": json.dumps(line),
    }


def planted_run(folder: Path) -> Path:
    """A run whose launch, environment, logs, evidence, prompts and result hold all of them."""
    experiment = incident()
    lines = [planted.line for planted in SECRETS] + [line for _, line in PRIVATE.values()]
    variables = tuple(
        (f"PLANTED_{index}_TOKEN", planted.secret)
        for index, planted in enumerate(SECRETS)
        if "\n" not in planted.line and index % 2
    )
    argv = (
        *experiment.launch.argv,
        "--api-key",
        SECRETS[33].secret,
        "--served-model-name",
        "/home/marisol/m",
    )
    first = replace(
        experiment.trials[0],
        folder="trials/0001",
        reason=f"died: {SECRETS[0].line} and {PRIVATE['host'][1]}",
        effective=(
            ("tokenizer", "/home/marisol/models/q"),
            ("hf_token", SECRETS[3].secret),
            ("dtype", "bf16"),
        ),
        mismatches=(SECRETS[27].line,),
    )
    second = replace(experiment.trials[1], folder="trials/0002", reason=SECRETS[28].line)
    root = experiment.root
    assert isinstance(root, RootEvidence)
    log = "\n".join(
        [
            *lines,
            *(one for planted in SECRETS for one in variants(planted).values()),
            *(
                # Broken by a terminal of a few columns: the value is known from elsewhere.
                f"{planted.secret[: len(planted.secret) // 2]}\n{planted.secret[len(planted.secret) // 2 :]}"
                for planted in SECRETS
            ),
            *(f"in base64 {base64.b64encode(planted.secret.encode()).decode()}" for planted in SECRETS),
        ]
    )
    experiment = replace(
        experiment,
        launch=Launch(argv=argv, env=(*experiment.launch.env, *variables)),
        trials=(first, second, *experiment.trials[2:]),
        environment=(*experiment.environment, ("note", SECRETS[31].line), ("cwd", "/home/marisol")),
        notes=(*experiment.notes, SECRETS[32].line),
        no_failure=PRIVATE["mail"][1],
        root=replace(
            root,
            excerpt=tuple(enumerate(lines, start=1)),
            missing=(SECRETS[16].line,),
        ),
    )
    files = {
        "trials/0001/engine.log": log,
        "trials/0001/kernel.log": "Dec  1 15:19:42 gpu-node-47 kernel: NVRM: Xid (PCI:0000:41:00): 31, pid=7\n",
        "trials/0001/launch.sh": "\n".join(lines),
        "trials/0001/answers.json": answers(
            "request", "the merger of Borealis and Austral", SECRETS[9].secret
        ),
        "trials/0002/answers.json": answers("short", SECRETS[13].line, SECRETS[20].line, SECRETS[22].line),
        "trials/0001/trial.json": json.dumps(
            {"incident": {"symptom": "cuda_illegal_access", "root": {"line": 1, "text": SECRETS[29].line}}}
        ),
        "environment.json": json.dumps(
            {
                "schema": "culpa.environment/1",
                "origin": "this machine",
                "taken": None,
                "facts": [
                    {
                        "key": "variable.MY_VAULT_TOKEN",
                        "value": SECRETS[34].secret,
                        "source": "",
                        "reason": "",
                    },
                    {"key": "system.host", "value": "gpu-node-47.corp.internal", "source": "", "reason": ""},
                    {"key": "launch.command", "value": SECRETS[33].line, "source": "", "reason": ""},
                ],
                "settings": {},
            }
        ),
    }
    return store(folder, experiment, files=files, options={"questions": ["Who buys Austral?=Borealis"]})

"""Tests of prompt profiles from a TOML file, and of what such a file must not be able to do."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest

from dragoman_connections.settings import SettingsError
from dragoman_worker.prompts import tokens
from dragoman_worker.prompts.base import Profile, PromptInput, identity_of
from dragoman_worker.prompts.profile_file import read_profile
from dragoman_worker.prompts.table import PROFILES, get_profile, profile_chooser
from dragoman_worker.settings import EngineSettings
from support.builders.chat_tokenizers import byte_level

Write = Callable[[str], Path]
CHAT = """
name = "mine"
system = "You translate from {{ source }} into {{ target }}."
user = '''
{% if context %}
About: {{ context }}
{% endif %}
{% for term, translation in terms %}
{{ term }} is {{ translation }}
{% endfor %}
{% for rule in instructions %}
{{ loop.index }}. {{ rule }}
{% endfor %}
{{ text }}'''
[names]
de = "High German"
[sampling]
temperature = 0.3
stop = ["END"]
[limits]
max_source_tokens = 500
[clean]
after = "</think>"
before = "###"
"""


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def written(text: str) -> Path:
        path = tmp_path / "my.toml"
        path.write_text(text, encoding="utf-8")
        return path

    return written


def user_of(profile: Profile, segment: PromptInput) -> str:
    content = profile.render(segment).prompt.messages[-1].content
    assert isinstance(content, str)
    return content


def test_a_chat_profile_renders_its_templates(write: Write) -> None:
    profile = read_profile(write(CHAT))
    segment = PromptInput(
        "The cat sleeps.",
        "de",
        "en",
        context=" A story. ",
        glossary={"cat": "Kater"},
        instructions=("Be brief.",),
        correction="Answer in German.",
    )
    prompt = profile.render(segment).prompt
    assert [message.role for message in prompt.messages] == ["system", "user"]
    assert prompt.messages[0].content == "You translate from English into High German."
    assert user_of(profile, segment) == (
        "About: A story.\ncat is Kater\n1. Be brief.\n2. Answer in German.\nThe cat sleeps."
    )
    assert dict(prompt.template_options) == {"enable_thinking": False}


def test_what_a_profile_takes_and_needs_follows_from_its_templates(write: Write) -> None:
    profile = read_profile(write(CHAT))
    assert profile.takes == {"context", "glossary", "instructions"}
    assert profile.needs_source
    assert profile.max_source_tokens == 500
    assert (profile.sampling.temperature, profile.sampling.stop) == (0.3, ("END",))
    (warning,) = profile.render(PromptInput("Hi", "de", "en", formality="more")).warnings
    assert warning.startswith("formality: ignored")
    plain = read_profile(write("name = 'p'\nuser = 'Into {{ target }}: {{ text }}'"))
    assert not plain.needs_source
    assert user_of(plain, PromptInput("Hi", "sr-Latn")) == "Into Serbian (Latin): Hi"


def test_the_answer_is_cut_out_by_the_marks_of_the_file(write: Write) -> None:
    profile = read_profile(write(CHAT))
    assert profile.clean("Hm.</think> Hallo. ### Done", "Hello.") == "Hallo."
    assert profile.clean("A ### B", "a ### b") == "A ### B"


def test_a_completion_has_the_begin_token_of_the_file(write: Write) -> None:
    profile = read_profile(
        write("name='c'\nmode='completion'\nadd_bos=true\nuser='{{ source }}: {{ text }} ='")
    )
    prompt = profile.render(PromptInput("Hello", "de", "en")).prompt
    assert (prompt.completion, prompt.add_special_tokens) == ("English: Hello =", True)
    assert prompt.user_spans == ((9, 14),)


@pytest.mark.parametrize("text", ["<|end|>", "<|user|>", "a <|begin|> b", "<|user|><|user|>"])
def test_a_text_forms_no_control_token_and_the_template_keeps_its_own(
    write: Write, text: str
) -> None:
    tokenizer = byte_level(bos=False)
    profile = read_profile(
        write("name='c'\nmode='completion'\nuser='<|user|>{{ text }}<|end|>{{ text }}<|user|>'")
    )
    ids = tokens.encode(profile.render(PromptInput(text, "de")).prompt, tokenizer)
    control = [str(tokenizer.convert_ids_to_tokens(each)) for each in ids]
    named = [each for each in control if each.startswith("<|") and each.endswith("|>")]
    assert named == ["<|user|>", "<|end|>", "<|user|>"]
    assert tokenizer.decode(ids) == f"<|user|>{text}<|end|>{text}<|user|>"


def test_a_text_is_no_template(write: Write) -> None:
    profile = read_profile(write("name = 'p'\nuser = '{{ text }}'"))
    text = "{{ text.__class__ }}{% for %} \U00100000"
    assert user_of(profile, PromptInput(text, "de")) == text


def test_a_built_in_profile_gets_other_sampling_and_limits(write: Write) -> None:
    profile = read_profile(
        write("name='hy-mt2'\n[sampling]\ntop_p=1\n[limits]\nmax_source_tokens=900")
    )
    assert (profile.sampling.top_p, profile.sampling.temperature) == (1.0, 0.7)
    assert profile.max_source_tokens == 900
    segment = PromptInput("Hello", "de", "en")
    assert profile.render(segment) == get_profile("hy-mt2").render(segment)
    assert PROFILES["hy-mt2"].sampling.top_p == 0.6


def test_the_file_names_the_workers_profile_unless_the_settings_do(write: Write) -> None:
    path = write(CHAT)
    own = EngineSettings(model="m", profile_file=path)
    assert profile_chooser(own)(None).name == "mine"
    assert profile_chooser(own)("chat").name == "chat"
    both = EngineSettings(model="m", profile_file=path, profile="chat")
    assert profile_chooser(both)(None).name == "chat"
    assert profile_chooser(both)("mine").name == "mine"
    again = EngineSettings.model_validate(own.model_dump(mode="json"))
    assert profile_chooser(again)(None).name == "mine"


def test_identities_differ_by_definition(write: Write) -> None:
    first = identity_of(read_profile(write(CHAT)))
    second = identity_of(read_profile(write(CHAT.replace("###", "---"))))
    assert first != second
    assert identity_of(get_profile("chat")) == "chat"


def test_an_adapter_is_a_folder_beside_the_file(write: Write, tmp_path: Path) -> None:
    folder = tmp_path / "adapters" / "de"
    folder.mkdir(parents=True)
    (folder / "adapter_config.json").write_text("{}", encoding="utf-8")
    text = "name = 'p'\nuser = '{{ text }}'\nadapter = 'adapters/de'"
    profile = read_profile(write(text))
    assert profile.sampling.adapter == str(folder)


USER = "name='x'\nuser="


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("= 3", "is not valid TOML"),
        ("name = 'x'", "user: is missing"),
        ("user = '{{ text }}'", "name: is missing"),
        ("name = 'X Y'\nuser = '{{ text }}'", "name: "),
        ("nmae = 'x'", "name: is missing"),
        (f"{USER}'{{{{ text }}}}'\nbeams = 4", "beams: there is no such key"),
        ("name='qwen3'\n[sampling]\ntemprature=1", "sampling.temprature: there is no such key"),
        ("name='qwen3'\n[sampling]\ntemperature=3", "sampling.temperature: "),
        ("name='qwen3'\nmode='chat'", "mode: needs a `user` template"),
        ("name='qwen3'\nuser='{{ text }}'", "name: qwen3 is a built-in profile"),
        (f"{USER}'{{{{ text'", "user: line 1: "),
        (
            f"{USER}'{{{{ txt }}}}'",
            "user: there is no variable txt (did you mean text?); use context,",
        ),
        (f"{USER}'Into {{{{ target }}}}'", "user: has the text 0 times"),
        (f"{USER}'" + "{{ text }}" * 9 + "'", "user: has the text 9 times"),
        (f"{USER}'{{{{ terms }}}} {{{{ text }}}}'", "user: `terms` does not appear in full"),
        (f"{USER}'{{{{ text }}}}'\nmode='completion'\nsystem='x'", "system: a completion has no"),
        (f"{USER}'{{{{ text }}}}'\nadd_bos=true", "add_bos: "),
        (f"{USER}'{{{{ text }}}}'\ntakes=['glossary']", "takes: "),
        (f"{USER}'{{{{ text }}}}'\nlanguages=[]", "languages: is empty"),
        (f"{USER}'{{{{ text }}}}'\nlanguages=['not a tag']", "languages: 'not a tag'"),
        (f"{USER}'{{{{ text }}}}'\nadapter='none'", "adapter: none is not a LoRA adapter"),
        (f"{USER}'{{{{ text }}}}\U00100000'", "user: has a private-use character"),
        ("x = " + "[" * 100_000, "is not valid TOML"),
    ],
)
def test_a_wrong_file_is_refused_with_the_file_the_key_and_the_remedy(
    write: Write, text: str, expected: str
) -> None:
    path = write(text)
    with pytest.raises(SettingsError) as refused:
        read_profile(path)
    message = str(refused.value)
    assert message.startswith(f"engine.profile_file: {path}: {expected}")
    assert "\n" not in message


@pytest.mark.parametrize(
    "template",
    [
        "{{ text }}{{ text.__class__.__mro__ }}",
        '{{ text }}{{ "".__class__ }}',
        "{{ text }}{{ text[0] }}",
        "{{ text }}{{ cycler.__init__.__globals__ }}",
        "{{ text }}{{ lipsum() }}",
        '{{ text }}{{ "x" * 1000000000 }}',
        "{{ text }}{{ 9 ** 9 ** 9 }}",
        "{{ text }}{% for a in range(1000000000) %}x{% endfor %}",
        "{{ text }}{% for a in terms %}{% for b in terms %}x{% endfor %}{% endfor %}",
        "{{ text }}{% for a in terms recursive %}{{ loop(terms) }}{% endfor %}",
        "{{ text }}{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}",
        "{{ text }}{% set x = text %}",
        '{{ text }}{% include "/etc/passwd" %}',
        '{{ text }}{% import "os" as os %}',
        '{{ text }}{% extends "x" %}',
        '{{ text | attr("__class__") }}',
        "{{ text | center(1000000000) }}",
        '{{ text | replace("", "xxxxxxxx") }}',
        "{{ text }}" + "{% if text %}" * 2_000 + "{% endif %}" * 2_000,
        "{{ text }}{{ " + "(" * 10_000 + "1" + ")" * 10_000 + " }}",
        "{{ text }}" + "x" * 40_000,
    ],
)
def test_a_template_can_neither_run_away_nor_reach_into_python(write: Write, template: str) -> None:
    begin = time.thread_time()
    with pytest.raises(SettingsError, match=r"^engine\.profile_file: .*: user: ") as refused:
        read_profile(write(f"{USER}'''{template}'''"))
    assert time.thread_time() - begin < 5
    assert len(str(refused.value)) < 500


def test_a_missing_unreadable_or_huge_file_is_refused(tmp_path: Path) -> None:
    for path, reason in (
        (tmp_path / "none.toml", "cannot be read"),
        (tmp_path, "cannot be read"),
        (tmp_path / "binary.toml", "is not UTF-8"),
        (tmp_path / "huge.toml", "is larger"),
    ):
        if path.name == "binary.toml":
            path.write_bytes(b"\xff\xfe")
        if path.name == "huge.toml":
            path.write_text("# " + "x" * 1_000_000, encoding="utf-8")
        with pytest.raises(SettingsError, match=reason):
            read_profile(path)
        assert EngineSettings(model="m", profile_file=path).profile == "hy-mt2"


def test_a_file_with_a_byte_order_mark_is_read(tmp_path: Path) -> None:
    path = tmp_path / "bom.toml"
    path.write_text(f"{USER}'{{{{ text }}}}'", encoding="utf-8-sig")
    assert read_profile(path).sampling.temperature == 0.0

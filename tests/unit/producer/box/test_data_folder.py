"""A data folder belongs to one live box, and the sockets of a box to its user alone."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from dragoman_producer.box import data_folder, machine
from dragoman_producer.box.data_folder import DataFolder
from dragoman_producer.box.failures import BoxFailed, BoxUnusable
from dragoman_producer.box.gateway_part import own_key


def test_one_box_holds_a_folder_and_the_next_one_takes_it_afterwards(tmp_path: Path) -> None:
    first, second = DataFolder.open(tmp_path / "d"), DataFolder.open(tmp_path / "d")
    assert first.take()
    first.write_state({"pid": 1})
    assert not second.take()
    assert second.state() == {"pid": 1}
    first.close()
    assert second.take()
    second.close()


@pytest.mark.parametrize("text", ["", "[]", "{", "\x00"])
def test_a_broken_state_is_none(tmp_path: Path, text: str) -> None:
    folder = DataFolder.open(tmp_path)
    (tmp_path / "box.json").write_text(text)
    assert folder.state() == {}
    folder.close()


def test_a_file_in_the_way_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(BoxUnusable, match="give a folder that this user can make"):
        DataFolder.open(tmp_path / "file" / "data")


def test_the_runtime_folder_is_private_and_that_of_a_killed_box_is_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(data_folder, "runtime_parent", lambda: tmp_path)
    monkeypatch.setattr(data_folder, "socket_fits", lambda _: True)
    folder = DataFolder.open(tmp_path / "d")
    old = folder.make_runtime()
    assert stat.S_IMODE(old.stat().st_mode) == 0o700
    folder.write_state({"runtime": str(old)})
    new = folder.make_runtime()
    assert (old.exists(), new.is_dir()) == (False, True)
    folder.close()


@pytest.mark.parametrize("mode", [0o755, 0o770])
def test_a_runtime_folder_that_others_enter_is_not_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: int
) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    tmp_path.chmod(mode)
    assert machine.runtime_parent() is None
    tmp_path.chmod(0o700)
    assert machine.runtime_parent() == tmp_path


def test_the_path_of_a_socket_has_room_in_a_short_folder_alone() -> None:
    longest = Path("/" + "x" * (107 - len("/dragoman-12345678/redis.sock") - 1))
    assert machine.socket_fits(longest)
    assert not machine.socket_fits(longest / "x")


def test_a_full_disk_is_one_sentence_with_the_file(tmp_path: Path) -> None:
    full = Path("/dev/full")
    if not full.exists():
        pytest.skip("this system has no /dev/full")
    folder = DataFolder.open(tmp_path)
    (tmp_path / "box.new").symlink_to(full)
    (tmp_path / "gateway.key").mkdir()
    with pytest.raises(BoxFailed, match=r"box\.json: No space left on device; make room there"):
        folder.write_state({"pid": 1})
    with pytest.raises(BoxFailed, match=r"gateway\.key: .*give another --data"):
        own_key(tmp_path)
    folder.close()


def test_a_user_without_a_home_is_told_to_name_a_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    def none() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.delenv("XDG_DATA_HOME", raising=False)
    monkeypatch.setattr(Path, "home", none)
    with pytest.raises(BoxUnusable, match="give --data DIR"):
        machine.default_data_folder()

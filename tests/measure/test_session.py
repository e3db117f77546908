"""A session on a CPU: quick record, saved and loaded; errors recorded; interrupted and resumed."""
# ruff: noqa: E402

from collections import Counter

import pytest

torch = pytest.importorskip("torch")

from roofline.errors import InputError, UnknownNameError
from roofline.hardware.measurement import CopyRow, load_measurement, read_measurement, to_json
from roofline.measure.case import Case, Level
from roofline.measure.device import describe_unknown, doubts_before, find_target
from roofline.measure.session import SWEEPS, Session, measure, new_record


@pytest.fixture(scope="module")
def cpu():
    return find_target("cpu")


def row(size, median_s=1e-3):
    return CopyRow(op="copy", buffer_bytes=size, moved_bytes=2 * size, median_s=median_s)


@pytest.fixture
def one_thread():
    """Two threads wait for each other where other programs hold the cores."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def test_quick_cpu_record_saves_and_loads(cpu, tmp_path, monkeypatch, one_thread):
    smallest = SWEEPS["copy"](cpu, Level.QUICK)[-1:]
    monkeypatch.setitem(SWEEPS, "copy", lambda target, level: smallest)
    record, path = measure(
        cpu, Level.QUICK, sections=("launch", "copy"), folder=tmp_path, command="roofline measure"
    )
    assert read_measurement(path) == record
    assert path.parent.name == cpu.device.record_id
    assert record.finished
    assert record.complete_sections == ("copy", "launch")
    assert record.errors == {}
    ops = Counter(r.op for r in record.copy_rows)
    assert set(ops) == {"copy", "read", "write", "add", "triad"}  # a CPU has no copy engine
    assert all(r.bytes_per_s > 0 for r in record.copy_rows)
    assert record.copy_rows[0].flags  # 256 KiB lie in the cache, and the row says so


def test_a_record_holds_nothing_private(cpu, tmp_path):
    import getpass
    import socket

    record, _ = measure(
        cpu, Level.QUICK, sections=("launch",), command=f"roofline measure --output-dir {tmp_path}"
    )
    text = to_json(record)
    assert socket.gethostname() not in text
    assert str(tmp_path) not in text
    if len(getpass.getuser()) > 4:
        assert getpass.getuser() not in text


def cases(fail_at=None, raised=KeyboardInterrupt):
    ran = []

    def one(size):
        def run():
            ran.append(size)
            if size == fail_at:
                raise raised
            yield row(size)

        return run

    return ran, [Case("copy", f"copy {size}", 1.0, one(size)) for size in (8, 16, 32)]


def test_interrupted_sessions_resume(cpu, tmp_path, monkeypatch):
    ran, list_of_cases = cases(fail_at=16)
    monkeypatch.setitem(SWEEPS, "copy", lambda target, level: list_of_cases)
    with pytest.raises(KeyboardInterrupt):
        measure(cpu, Level.QUICK, sections=("copy",), folder=tmp_path)
    (path,) = tmp_path.rglob("*.json")
    assert not read_measurement(path).finished
    assert ran == [8, 16]
    again, list_of_cases = cases()
    record, same = measure(cpu, Level.QUICK, sections=("copy",), folder=tmp_path, resume=True)
    assert again == [16, 32]
    assert same == path
    assert record.finished
    assert [r.buffer_bytes for r in record.copy_rows] == [8, 16, 32]
    with pytest.raises(InputError, match="no unfinished quick record"):
        measure(cpu, Level.QUICK, sections=("copy",), folder=tmp_path, resume=True)


def test_a_failing_case_does_not_lose_the_others(cpu, tmp_path):
    _, list_of_cases = cases(fail_at=16, raised=RuntimeError("no kernel at /opt/secret/x.so"))
    record = Session(new_record(cpu, "full", ""), tmp_path).run(list_of_cases)
    assert [r.buffer_bytes for r in record.copy_rows] == [8, 32]
    assert "no kernel" in record.errors["copy 16"]
    assert "/opt" not in record.errors["copy 16"]
    assert record.finished


def test_a_time_limit_leaves_an_unfinished_record(cpu, tmp_path):
    _, list_of_cases = cases()
    record = Session(new_record(cpu, "full", ""), tmp_path, limit_s=-1).run(list_of_cases)
    assert not record.finished
    assert record.complete_sections == ()
    assert record.full_sections == ()


def test_progress_says_what_runs_and_how_long_is_left(cpu):
    seen = []
    Session(
        new_record(cpu, "full", ""), report=lambda what, share, left: seen.append((what, share))
    ).run(cases()[1])
    assert [what for what, _ in seen] == ["copy 8", "copy 16", "copy 32", "done"]
    assert [share for _, share in seen] == pytest.approx([0, 1 / 3, 2 / 3, 1])


def test_unknown_sections_and_devices(cpu):
    with pytest.raises(InputError, match="no sweep 'copi'"):
        measure(cpu, Level.QUICK, sections=("copi",))
    with pytest.raises(InputError, match="can measure cuda and cpu"):
        find_target("tpu")
    with pytest.raises(UnknownNameError):
        find_target("cpu", "h2OO")


def test_unknown_devices_are_described(cpu):
    text = describe_unknown(cpu.device)
    assert "--spec" in text
    assert str(cpu.device.memory_bytes) in text


def test_a_busy_device_is_flagged():
    from roofline.hardware.measurement import Conditions

    state = Conditions(utilisation=0.5, other_processes=2, throttle=("hardware slowdown",))
    flags = doubts_before(state)
    assert any("busy" in flag for flag in flags)
    assert any("other processes on the device: 2" in flag for flag in flags)
    assert any("throttled" in flag for flag in flags)
    assert doubts_before(Conditions(throttle=("power limit",))) == ()


def test_throttling_during_a_run_is_flagged(cpu, monkeypatch):
    from roofline.hardware.measurement import Conditions
    from roofline.measure import session

    hot = Conditions(throttle=("hardware thermal slowdown",))
    monkeypatch.setattr(session, "conditions", lambda target: hot)
    record = Session(new_record(cpu, "quick", ""), target=cpu).run(cases()[1])
    assert record.flags == ("clocks throttled: hardware thermal slowdown",)


def test_a_record_given_by_path_is_that_record(cpu, tmp_path):
    _, list_of_cases = cases()
    session = Session(new_record(cpu, "quick", ""), tmp_path)
    session.run(list_of_cases)
    assert load_measurement(session.path) == session.record

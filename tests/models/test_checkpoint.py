"""Exact bytes of weight files, against the formats' own libraries; hostile headers."""

import json
import struct

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from roofline.errors import RooflineError, SpecError, UnsupportedError
from roofline.models.checkpoint import read_checkpoint
from roofline.models.config import load_model
from roofline.models.safetensors import parse_header, read_tensors


def write_safetensors(path, tensors):
    """Write a file by hand: {name: (dtype, shape, bytes)}."""
    header, place = {}, 0
    for name, (dtype, shape, size) in tensors.items():
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [place, place + size]}
        place += size
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + bytes(place))
    return path


def test_one_file(tmp_path):
    """6 bf16 and 4 fp8 values, 2 fp32: 12 + 4 + 8 bytes."""
    file = write_safetensors(
        tmp_path / "model.safetensors",
        {"a": ("BF16", [2, 3], 12), "b": ("F8_E4M3", [4], 4), "c": ("F32", [2], 8)},
    )
    total = read_checkpoint(file)
    assert total.by_dtype == {"bf16": 12, "fp32": 8, "fp8": 4}
    assert (total.total_bytes, total.parameters, total.n_tensors) == (24, 12, 3)


def test_the_formats_own_library(tmp_path):
    """A file that safetensors itself writes, counted from numpy's arrays."""
    numpy = pytest.importorskip("numpy")
    library = pytest.importorskip("safetensors.numpy")
    arrays = {
        "w": numpy.zeros((7, 5), numpy.float16), "b": numpy.zeros(5, numpy.float32),
        "i": numpy.zeros((3, 2, 2), numpy.int8), "empty": numpy.zeros((0, 4), numpy.float32),
    }  # fmt: skip
    library.save_file(arrays, tmp_path / "x.safetensors", metadata={"format": "pt"})
    total = read_checkpoint(tmp_path)
    assert total.total_bytes == sum(array.nbytes for array in arrays.values())
    assert total.parameters == sum(array.size for array in arrays.values())


def indexed(folder, names, stated=None):
    folder.joinpath("model.safetensors.index.json").write_text(
        json.dumps({"metadata": {"total_size": stated}, "weight_map": names})
    )


def test_several_files(tmp_path):
    write_safetensors(tmp_path / "model-00001-of-00002.safetensors", {"a": ("BF16", [4], 8)})
    write_safetensors(tmp_path / "model-00002-of-00002.safetensors", {"b": ("BF16", [2], 4)})
    names = {"a": "model-00001-of-00002.safetensors", "b": "model-00002-of-00002.safetensors"}
    indexed(tmp_path, names, stated=12)
    total = read_checkpoint(tmp_path)
    assert (total.total_bytes, total.assumptions) == (12, ())
    indexed(tmp_path, names, stated=13)
    assert "states 13 bytes, the files hold 12" in read_checkpoint(tmp_path).assumptions[0]


def test_missing_parts(tmp_path):
    write_safetensors(tmp_path / "model-00001-of-00002.safetensors", {"a": ("BF16", [4], 8)})
    with pytest.raises(SpecError, match="is one of 2; files are missing"):
        read_checkpoint(tmp_path)
    indexed(tmp_path, {"a": "model-00001-of-00002.safetensors", "b": "gone.safetensors"})
    with pytest.raises(SpecError, match=r"1 of 2 files missing.*gone\.safetensors"):
        read_checkpoint(tmp_path)


@pytest.mark.parametrize("name", ["../x.safetensors", "/etc/passwd", "", "a/b.safetensors"])
def test_an_index_stays_in_its_folder(tmp_path, name):
    indexed(tmp_path, {"a": name})
    with pytest.raises(SpecError, match="a file beside the index is expected"):
        read_checkpoint(tmp_path)


def test_folders_without_weights(tmp_path):
    with pytest.raises(SpecError, match=r"no \.safetensors or \.gguf file"):
        read_checkpoint(tmp_path)
    with pytest.raises(SpecError, match="no such file"):
        read_checkpoint(tmp_path / "nothing")


GOOD = {"a": {"dtype": "BF16", "shape": [2], "data_offsets": [0, 4]}}


@pytest.mark.parametrize(
    ("header", "words"),
    [
        (b"", "no JSON"),
        (b"\xff", "no JSON"),
        (b"[]", "no mapping"),
        (b'{"a": 1}', "needs a mapping"),
        (b'{"a": {}}', "has type None"),
        (b'{"a": {"dtype": "Q9"}}', "has type 'Q9'"),
        (b'{"a": {"dtype": "BF16", "shape": [-1]}}', "has shape"),
        (b'{"a": {"dtype": "BF16", "shape": [true], "data_offsets": [0, 2]}}', "has shape"),
        (b'{"a": {"dtype": "BF16", "shape": [2], "data_offsets": [0]}}', "has data_offsets"),
        (b'{"a": {"dtype": "BF16", "shape": [2], "data_offsets": [4, 0]}}', "has data_offsets"),
        (b'{"a": {"dtype": "BF16", "shape": [3], "data_offsets": [0, 4]}}', "is not 4 bytes"),
        (b'{"a": {"dtype": "BF16", "shape": [2], "data_offsets": [2, 6]}}', "begins at 2"),
        (json.dumps({**GOOD, "b": GOOD["a"]}).encode(), "begins at 0, 4 was expected"),
        (b'{"a": 1, "a": 2}', "names 'a' twice"),
        (json.dumps(GOOD).encode(), "tensors take 4 bytes"),
        (b"[" * 100_000, "no JSON"),
    ],
)
def test_headers_that_cannot_be(header, words):
    with pytest.raises(SpecError, match=words):
        parse_header(header, 100, "x")


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"abc",
        struct.pack("<Q", 2**63),
        struct.pack("<Q", 10**8),
        struct.pack("<Q", 100) + b"{}",
    ],
)
def test_lengths_that_cannot_be(tmp_path, content):
    file = tmp_path / "x.safetensors"
    file.write_bytes(content)
    with pytest.raises(SpecError):
        read_tensors(file)


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=200))
def test_any_bytes(data):
    try:
        parse_header(data, len(data), "x")
    except RooflineError as error:
        assert "\n" not in str(error)  # noqa: PT017 - the message is what is judged


gguf = pytest.importorskip("gguf")


def write_gguf(path, *, kind="llama", layers=2, tied=False, experts=0, block=None):
    """Write a small model with llama.cpp's own library."""
    numpy = pytest.importorskip("numpy")
    writer = gguf.GGUFWriter(str(path), kind)
    writer.add_block_count(layers)
    writer.add_embedding_length(64)
    writer.add_feed_forward_length(128)
    writer.add_head_count(4)
    writer.add_head_count_kv(2)
    writer.add_context_length(512)
    writer.add_token_list([str(i) for i in range(5000)])
    if experts:
        writer.add_expert_count(experts)
        writer.add_expert_used_count(2)

    def put(name, *shape, dtype=numpy.float16):
        data = numpy.zeros(shape, dtype)
        if block is not None and len(shape) > 1 and "norm" not in name:
            raw = gguf.quants.quantize(data.astype(numpy.float32), block)
            writer.add_tensor(name, raw, raw_dtype=block)
        else:
            writer.add_tensor(name, data)

    put("token_embd.weight", 96, 64)
    put("output_norm.weight", 64, dtype=numpy.float32)
    if not tied:
        put("output.weight", 96, 64)
    for i in range(layers):
        for name, rows in (("attn_q", 64), ("attn_k", 32), ("attn_v", 32), ("attn_output", 64)):
            put(f"blk.{i}.{name}.weight", rows, 64)
        for name in ("attn_norm", "ffn_norm"):
            put(f"blk.{i}.{name}.weight", 64, dtype=numpy.float32)
        if experts:
            put(f"blk.{i}.ffn_gate_inp.weight", experts, 64)
            put(f"blk.{i}.ffn_gate_exps.weight", experts, 128, 64)
            put(f"blk.{i}.ffn_up_exps.weight", experts, 128, 64)
            put(f"blk.{i}.ffn_down_exps.weight", experts, 64, 128)
        else:
            put(f"blk.{i}.ffn_gate.weight", 128, 64)
            put(f"blk.{i}.ffn_up.weight", 128, 64)
            put(f"blk.{i}.ffn_down.weight", 64, 128)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


@pytest.mark.parametrize("experts", [0, 4])
@pytest.mark.parametrize("tied", [False, True])
def test_gguf_against_its_library(tmp_path, experts, tied):
    """The library's reader gives the same bytes; the architecture has the file's values."""
    file = write_gguf(tmp_path / "m.gguf", experts=experts, tied=tied)
    total = read_checkpoint(file)
    reader = gguf.GGUFReader(str(file))
    assert total.total_bytes == sum(int(tensor.n_bytes) for tensor in reader.tensors)
    assert total.parameters == sum(int(tensor.n_elements) for tensor in reader.tensors)
    model = load_model(file)
    assert model.parameters == total.parameters
    assert model.tied is tied
    assert model.max_context_tokens == 512
    assert model.name == "m"


def test_gguf_block_types(tmp_path):
    """q8_0: 34 bytes for 32 values, in the matrices and not in the norms."""
    file = write_gguf(tmp_path / "m.gguf", block=gguf.GGMLQuantizationType.Q8_0)
    total = read_checkpoint(file)
    norms = (2 * 2 + 1) * 64
    assert total.by_dtype == {
        "q8_0": (total.parameters - norms) // 32 * 34,
        "fp32": 4 * norms,
    }
    model = load_model(tmp_path)  # a folder with one GGUF file
    assert {linear.dtype.name for group in model.layers for linear in group.linears} == {"q8_0"}
    assert model.lm_head.dtype.name == "q8_0"
    assert any("token table is stored in q8_0" in line for line in model.assumptions)


def test_gguf_of_unknown_kind(tmp_path):
    file = write_gguf(tmp_path / "m.gguf", kind="rwkv7")
    with pytest.raises(UnsupportedError, match="'rwkv7' is not modelled"):
        load_model(file)


@pytest.mark.parametrize("cut", [0, 3, 4, 10, 24, 60, 300, 1000])
def test_cut_gguf(tmp_path, cut):
    file = write_gguf(tmp_path / "m.gguf")
    file.write_bytes(file.read_bytes()[:cut])
    with pytest.raises(SpecError):
        read_checkpoint(file)


@settings(max_examples=150, deadline=None)
@given(data=st.data())
def test_damaged_gguf(tmp_path_factory, data):
    folder = tmp_path_factory.mktemp("gguf")
    file = write_gguf(folder / "m.gguf", layers=1)
    content = bytearray(file.read_bytes())
    for _ in range(data.draw(st.integers(1, 6))):
        content[data.draw(st.integers(0, 900))] = data.draw(st.integers(0, 255))
    file.write_bytes(content)
    try:
        read_checkpoint(file)
        load_model(file)
    except RooflineError as error:
        assert "\n" not in str(error)  # noqa: PT017 - the message is what is judged

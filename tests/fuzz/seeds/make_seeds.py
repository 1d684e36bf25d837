#!/usr/bin/env python3
"""Writes the binary seeds of this folder: the smallest files that hold one of everything."""
import json, pathlib, struct, subprocess, tempfile

here = pathlib.Path(__file__).parent


def text(s):
    b = s.encode()
    return struct.pack("<Q", len(b)) + b


def gguf():
    u32, f32, boolean, string, array, u64 = 4, 6, 7, 8, 9, 10
    pieces = [bytes([c]).decode("latin-1") for c in range(33, 127)] + ["Ġ", "ab", "<|im_start|>"]
    pairs = [
        ("general.architecture", string, text("llama")),
        ("general.alignment", u32, struct.pack("<I", 32)),
        ("llama.block_count", u32, struct.pack("<I", 1)),
        ("llama.context_length", u32, struct.pack("<I", 64)),
        ("llama.embedding_length", u32, struct.pack("<I", 32)),
        ("llama.feed_forward_length", u32, struct.pack("<I", 32)),
        ("llama.attention.head_count", u32, struct.pack("<I", 2)),
        ("llama.attention.head_count_kv", u32, struct.pack("<I", 1)),
        ("llama.attention.layer_norm_rms_epsilon", f32, struct.pack("<f", 1e-5)),
        ("llama.rope.freq_base", f32, struct.pack("<f", 1e4)),
        ("llama.vocab_size", u32, struct.pack("<I", len(pieces))),
        ("tokenizer.ggml.model", string, text("gpt2")),
        ("tokenizer.ggml.pre", string, text("smollm")),
        ("tokenizer.ggml.tokens", array,
         struct.pack("<IQ", string, len(pieces)) + b"".join(map(text, pieces))),
        ("tokenizer.ggml.token_type", array,
         struct.pack("<IQ", 5, len(pieces)) + struct.pack(f"<{len(pieces)}i", *[1] * (len(pieces) - 1), 3)),
        ("tokenizer.ggml.merges", array, struct.pack("<IQ", string, 1) + text("a b")),
        ("tokenizer.ggml.eos_token_id", u32, struct.pack("<I", 0)),
        ("tokenizer.ggml.add_bos_token", boolean, b"\0"),
        ("test.number", u64, struct.pack("<Q", 7)),
    ]
    # name, dimensions, type, bytes
    tensors = [("token_embd.weight", (32,), 0, 128), ("output_norm.weight", (32,), 2, 18),
               ("blk.0.attn_norm.weight", (32,), 8, 34), ("blk.0.attn_q.bias", (256,), 14, 210)]
    head = struct.pack("<4sIQQ", b"GGUF", 3, len(tensors), len(pairs))
    for name, kind, value in pairs:
        head += text(name) + struct.pack("<I", kind) + value
    data = b""
    for name, dims, kind, size in tensors:
        head += text(name) + struct.pack("<I", len(dims)) + struct.pack(f"<{len(dims)}Q", *dims)
        head += struct.pack("<IQ", kind, len(data))
        data += bytes(i % 251 for i in range(size)) + bytes(-size % 32)
    return head + bytes(-len(head) % 32) + data


def safetensors():
    header = json.dumps({
        "__metadata__": {"format": "pt"},
        "a.weight": {"dtype": "F32", "shape": [2, 2], "data_offsets": [0, 16]},
        "b.weight": {"dtype": "BF16", "shape": [3], "data_offsets": [16, 22]},
    }).encode()
    header += b" " * (-len(header) % 8)
    return struct.pack("<Q", len(header)) + header + bytes(range(22))


def kernel():
    """A small library with one function, as the elf parser meets them."""
    with tempfile.TemporaryDirectory() as folder:
        source, library = f"{folder}/k.c", f"{folder}/k.so"
        pathlib.Path(source).write_text("int twice(int x) { return 2 * x; }\n")
        subprocess.run(["gcc", "-Os", "-shared", "-nostdlib", "-Wl,--build-id=none", "-Wl,-z,noseparate-code",
                        "-Wl,-z,max-page-size=64", "-fno-asynchronous-unwind-tables", "-o", library, source],
                       check=True)
        return pathlib.Path(library).read_bytes()


def element_arguments():
    """A call's arguments as elements; byte 1 stands for the control token of the tags."""
    def element(name, value):
        return b"\1<" + name + b">" + value + b"\1</" + name + b">"
    tags = element(b"item", b"x") + element(b"item", b"")
    who = element(b"name", b"n") + element(b"age", b"1.5")
    return (element(b"path", b"p") + element(b"n", b"12") + element(b"mode", b"a")
            + element(b"tags", tags) + element(b"who", who) + element(b"any", b'{"a":[1]}'))


(here / "tiny.gguf").write_bytes(gguf())
(here / "tiny.safetensors").write_bytes(safetensors())
(here / "kernel.so").write_bytes(kernel())
(here / "edit.bin").write_bytes(b"  return a;\xff  return b;\xffint f() {\r\n\treturn a;\r\n}\r\n")
(here / "elements.bin").write_bytes(element_arguments())
(here / "element_reply.bin").write_bytes(
    b'\2so\3Look.\1<tool_call>\n\1<invoke name="write">' + element_arguments()
    + b"\1</invoke>\n\1</tool_call>")

"""quern from Python, over ctypes and the shared library: no packages are needed.

    from quern import Model
    with Model("model.gguf") as model:
        for piece in model.stream([{"role": "user", "content": "Why is the sky blue?"}], max_tokens=100):
            print(piece, end="", flush=True)

The library is found as QUERN_LIBRARY says, else as the system finds libquern.so.0.
"""
import ctypes
import ctypes.util
import json
import os
import sys
import time
from ctypes import (CFUNCTYPE, POINTER, Structure, byref, c_bool, c_char, c_char_p, c_double, c_float, c_int, c_int32, c_int64, c_size_t,
                    c_uint64, c_void_p)

LENGTH, CANCELLED = 1, 2  # how an answer ended; 0 is by itself


class Error(Exception):
    """What the library says in its one sentence."""


class _Err(Structure):
    _fields_ = [("status", c_int), ("text", c_char * 500)]


class _Str(Structure):
    _fields_ = [("ptr", c_char_p), ("len", c_size_t)]


class _Prompt(Structure):
    _fields_ = [("text", c_void_p), ("len", c_size_t), ("plain", c_void_p), ("n_plain", c_size_t)]


class _EngineOpts(Structure):  # of the first version: later fields are the library's defaults
    _fields_ = [("size", c_size_t), ("n_threads", c_int32), ("n_ctx", c_int32), ("n_chunk", c_int32), ("cpu", c_char_p), ("exact", c_bool),
                ("profile", c_bool), ("act_bits", c_int32), ("n_sessions", c_int32), ("kv_memory", c_uint64)]


class _SampleOpts(Structure):
    _fields_ = [("size", c_size_t), ("seed", c_uint64), ("temperature", c_float), ("dyn_temp_range", c_float), ("dyn_temp_exponent", c_float),
                ("top_k", c_int32), ("top_p", c_float), ("min_p", c_float)]


_OnText = CFUNCTYPE(c_bool, c_void_p, c_int32, POINTER(c_char), c_size_t)


class _RequestOpts(Structure):
    _fields_ = [("size", c_size_t), ("prompt", POINTER(c_int32)), ("n_prompt", c_int32), ("sampling", POINTER(_SampleOpts)), ("max_tokens", c_int32),
                ("stop", POINTER(c_char_p)), ("n_stop", c_int32), ("ignore_end", c_bool), ("special", c_bool), ("n_choices", c_int32),
                ("priority", c_int32)]


class Result(Structure):
    """What an answer cost: n_prompt, n_cached, n_generated, first_token_seconds ..."""
    _fields_ = [("finish", c_int), ("n_prompt", c_int32), ("n_cached", c_int32), ("n_generated", c_int32), ("prompt_seconds", c_double),
                ("generate_seconds", c_double), ("first_token_seconds", c_double), ("stop_index", c_int32), ("n_drafted", c_int32),
                ("n_accepted", c_int32), ("queue_seconds", c_double), ("n_preempted", c_int32), ("slowest_seconds", c_double),
                ("draft_gain", c_double), ("n_draft_steps", c_int32), ("reserved", c_uint64 * 2)]


class _Event(Structure):
    _fields_ = [("i_choice", c_int32), ("text", c_void_p), ("len", c_size_t), ("ended", c_bool), ("result", Result), ("err", _Err)]


def _load():
    lib = ctypes.CDLL(os.environ.get("QUERN_LIBRARY") or ctypes.util.find_library("quern") or "libquern.so.0")
    lib.qn_version.restype = c_char_p
    for name in ("qn_engine_close", "qn_model_close", "qn_template_close", "qn_prompt_free", "qn_request_close", "qn_request_cancel"):
        getattr(lib, name).restype = None
    lib.qn_request_next.argtypes = [c_void_p, c_double, POINTER(_Event)]
    lib.qn_request_next.restype = c_bool
    lib.qn_request_cancel.argtypes = [c_void_p]
    lib.qn_tokenize.argtypes = [c_void_p, _Str, c_int, c_void_p, c_size_t, POINTER(c_int32), c_size_t, POINTER(c_size_t), POINTER(_Err)]
    lib.qn_template_render.argtypes = [c_void_p, _Str, c_int64, POINTER(_Prompt), POINTER(_Err)]
    lib.qn_token_id.argtypes = [c_void_p, c_char_p]
    lib.qn_token_id.restype = c_int32
    return lib


_lib = _load()


def version():
    return _lib.qn_version().decode()


def _call(name, *args):
    err = _Err()
    if getattr(_lib, name)(*args, byref(err)) != 0:
        raise Error(err.text.decode("utf-8", "replace"))


def _text(s):
    raw = s.encode()
    return _Str(raw, len(raw))


class Model:
    """A model and an engine on it; any number of threads may stream answers at the same time, `parallel` of them run side by side."""

    def __init__(self, path, threads=0, context=0, parallel=1):
        self._model, self._engine, self._form = c_void_p(), c_void_p(), c_void_p()
        _call("qn_model_open", byref(self._model), os.fsencode(path), None)
        try:
            opts = _EngineOpts(ctypes.sizeof(_EngineOpts), threads, context, n_sessions=parallel)
            _call("qn_engine_open", byref(self._engine), self._model, byref(opts))
            _call("qn_template_of_model", byref(self._form), self._model)
        except Error:
            self.close()
            raise

    def close(self):
        _lib.qn_template_close(byref(self._form))
        _lib.qn_engine_close(byref(self._engine))
        _lib.qn_model_close(byref(self._model))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def tokenize(self, text, special=True, parse=False, _plain=None, _n_plain=0):
        """Token ids of a text. `special`: those that the model wants around it; `parse`: "<|im_end|>" and the like become tokens."""
        raw, n, room = _text(text), c_size_t(), len(text.encode()) + 8
        ids = (c_int32 * room)()
        _call("qn_tokenize", self._model, raw, special | parse << 1, _plain, _n_plain, ids, room, byref(n))
        return ids[:n.value]

    def prompt(self, messages):
        """Token ids of a conversation, a list of {"role", "content"}, in the model's chat template."""
        context = {"messages": messages, "add_generation_prompt": True, "tools": None, "documents": None}
        out = _Prompt()
        _call("qn_template_render", self._form, _text(json.dumps(context)), int(time.time()), byref(out))
        try:
            text = ctypes.string_at(out.text, out.len).decode()
            return self.tokenize(text, special=False, parse=True, _plain=out.plain, _n_plain=out.n_plain)
        finally:
            _lib.qn_prompt_free(byref(out))

    def stream(self, prompt, max_tokens=0, temperature=0.8, top_k=40, top_p=0.95, min_p=0.05, seed=None, stop=()):
        """Generate the pieces of an answer as they come. `prompt` is a text to continue, token ids, or a conversation. Leaving the loop stops the
        answer. The generator's value (`result = yield from ...`) is its Result."""
        if isinstance(prompt, str):
            prompt = self.tokenize(prompt, parse=True)
        elif prompt and isinstance(prompt[0], dict):
            prompt = self.prompt(prompt)
        sampling = _SampleOpts(ctypes.sizeof(_SampleOpts), 2**64 - 1 if seed is None else seed, temperature, 0, 0, top_k, top_p, min_p)
        stops = (c_char_p * len(stop))(*[s.encode() for s in stop])
        opts = _RequestOpts(ctypes.sizeof(_RequestOpts), (c_int32 * len(prompt))(*prompt), len(prompt), ctypes.pointer(sampling), max_tokens, stops,
                            len(stop))
        request, event = c_void_p(), _Event()
        _call("qn_engine_submit", self._engine, byref(opts), byref(request))
        try:
            while _lib.qn_request_next(request, -1.0, byref(event)):
                if event.len:
                    yield ctypes.string_at(event.text, event.len).decode()
                if event.ended and event.result.finish == 3:
                    raise Error(event.err.text.decode("utf-8", "replace"))
                if event.ended:
                    return Result.from_buffer_copy(event.result)
        finally:
            _lib.qn_request_close(byref(request))

    def answer(self, prompt, **options):
        """The whole answer at once: (text, Result)."""
        pieces, gen = [], self.stream(prompt, **options)
        while True:
            try:
                pieces.append(next(gen))
            except StopIteration as end:
                return "".join(pieces), end.value


if __name__ == "__main__":
    with Model(sys.argv[1]) as m:
        for piece in m.stream([{"role": "user", "content": " ".join(sys.argv[2:])}]):
            print(piece, end="", flush=True)
        print()

"""Calls functions of a library that tunec built, with checked arguments.

    from tilefarm_kernel import Function

    relu = Function("mm_relu.so", "mm_relu")
    print(relu)                          # names, types, shapes, threads
    c = relu.empty(2)                    # memory for the parameter C
    relu(a, b, c)                        # a, b: NumPy arrays, array.array, ...

Arguments are objects with the buffer protocol. Type, shape, size, contiguity and
alignment are compared with what the library says of itself; a wrong one is a
TypeError or ValueError that names the parameter, before anything runs. Copy this
file: it needs the standard library alone, and uses NumPy where it is installed.
For functions of this machine's libraries; those of GPUs take device pointers, too.
"""
import array
import ctypes
import math
import os

try:
    import numpy
except ImportError:
    numpy = None

# ONNX's TensorProto.DataType: our name, struct's format, bytes. bfloat16 has no
# format of its own: it is passed as uint16.
_TYPES = {
    1: ("float32", "f", 4), 2: ("uint8", "B", 1), 3: ("int8", "b", 1),
    4: ("uint16", "H", 2), 5: ("int16", "h", 2), 6: ("int32", "i", 4),
    7: ("int64", "q", 8), 9: ("bool", "?", 1), 10: ("float16", "e", 2),
    11: ("float64", "d", 8), 12: ("uint32", "I", 4), 13: ("uint64", "Q", 8),
    16: ("bfloat16", "H", 2)}


class _Parameter(ctypes.Structure):  # tf_parameter_info of the header
    _fields_ = [("name", ctypes.c_char_p), ("dtype", ctypes.c_int32),
                ("rank", ctypes.c_int32),
                ("shape", ctypes.POINTER(ctypes.c_int64)),
                ("strides", ctypes.POINTER(ctypes.c_int64)),
                ("offset", ctypes.c_int64), ("bytes", ctypes.c_int64),
                ("packed_bytes", ctypes.c_int64), ("written", ctypes.c_int32),
                ("alignment", ctypes.c_int32)]


class _Info(ctypes.Structure):  # tf_function_info
    _fields_ = [("size", ctypes.c_size_t), ("name", ctypes.c_char_p),
                ("target", ctypes.c_char_p), ("threads", ctypes.c_int32),
                ("parameter_count", ctypes.c_int32),
                ("parameters", ctypes.POINTER(_Parameter))]


class _PyBuffer(ctypes.Structure):  # the head of Python's Py_buffer
    _fields_ = [("buf", ctypes.c_void_p), ("obj", ctypes.py_object),
                ("rest", ctypes.c_char * 256)]


def _address(view):
    """Of the memoryview's memory, which may be read-only."""
    buffer = _PyBuffer()
    simple = 0  # PyBUF_SIMPLE
    ctypes.pythonapi.PyObject_GetBuffer(
        ctypes.py_object(view), ctypes.byref(buffer), simple)
    address = buffer.buf or 0
    ctypes.pythonapi.PyBuffer_Release(ctypes.byref(buffer))
    return address


class Parameter:
    """A parameter: name, dtype, shape, strides, offset, bytes, written."""

    def __init__(self, number, info):
        if info.dtype not in _TYPES:
            raise ValueError(f"a parameter of the unknown type {info.dtype}")
        self.number = number
        self.name = info.name.decode()
        self.dtype, self.format, self.itemsize = _TYPES[info.dtype]
        self.shape = tuple(info.shape[i] for i in range(info.rank))
        self.strides = tuple(info.strides[i] for i in range(info.rank))
        self.offset = info.offset
        self.bytes = info.bytes
        self.packed_bytes = info.packed_bytes
        self.written = bool(info.written)
        self.alignment = info.alignment
        dense = [math.prod(self.shape[i + 1:]) for i in range(info.rank)]
        self.dense = self.offset == 0 and list(self.strides) == dense

    def __str__(self):
        layout = ("row-major" if self.dense else
                  f"strides {list(self.strides)}, offset {self.offset}")
        return (f"{self.number}: {self.name}, {self.dtype} {list(self.shape)}, "
                f"{layout}, {self.bytes} bytes"
                f"{', written' if self.written else ''}")

    def _view(self, buffer, packed=False):
        """The checked memory of an argument: (memoryview, address)."""
        what = f"parameter {self}"
        try:
            view = memoryview(buffer)
        except TypeError:
            raise TypeError(f"{what}: {type(buffer).__name__} has no buffer; "
                            "use a NumPy array, array.array, bytes, ...") from None
        if not view.c_contiguous:
            raise ValueError(f"{what}: the argument is not contiguous")
        if self.written and view.readonly:
            raise ValueError(f"{what}: the argument is read-only")
        raw = packed or view.format in ("B", "c", "<B")
        if not raw and self.format not in _formats(view):
            raise TypeError(f"{what}: the argument has elements of format "
                            f"'{view.format}', not '{self.format}'")
        needed = self.packed_bytes if packed else self.bytes
        shaped = self.dense and not packed and view.ndim > 1
        if shaped and view.shape != self.shape:
            raise ValueError(f"{what}: the argument has shape {view.shape}")
        if view.nbytes != needed:
            raise ValueError(f"{what}: the argument has {view.nbytes} bytes, "
                             f"not {needed}")
        address = _address(view)
        if address % self.alignment != 0:
            raise ValueError(f"{what}: the argument is not aligned to "
                             f"{self.alignment} bytes")
        return view, address


def _formats(view):
    """The formats that a view's own is the same as on this machine."""
    text = view.format.lstrip("@=<") if view.format else "B"
    same = {text}
    if text in "lL" and view.itemsize == 8:  # C's long
        same.add("q" if text == "l" else "Q")
    if text in "lL" and view.itemsize == 4:
        same.add("i" if text == "l" else "I")
    return same


class Function:
    """A function of a library. Keeps the library loaded."""

    def __init__(self, path, name):
        # A path without a slash would be looked for among the system's libraries.
        self._library = ctypes.CDLL(os.path.abspath(path))
        try:
            get_info = getattr(self._library, f"{name}_info")
            self._call = getattr(self._library, name)
        except AttributeError:
            raise ValueError(f"{path} has no function {name}") from None
        get_info.restype = ctypes.POINTER(_Info)
        info = get_info().contents
        if info.size < ctypes.sizeof(_Info):
            raise ValueError(f"{path} was built by an incompatible release")
        self.name = name
        self.target = info.target.decode()
        self.threads = info.threads
        self.parameters = [Parameter(i, info.parameters[i])
                           for i in range(info.parameter_count)]

    def __str__(self):
        lines = "".join(f"\n  {one}" for one in self.parameters)
        return (f"{self.name} for {self.target}, up to {self.threads} "
                f"thread{'s' if self.threads > 1 else ''}{lines}")

    def empty(self, number):
        """Zeroed memory for a parameter: a NumPy array where there is NumPy."""
        one = self.parameters[number]
        if numpy is not None and one.dense and one.dtype != "bfloat16":
            return numpy.zeros(one.shape, one.dtype)
        memory = memoryview(bytearray(one.bytes))
        if not one.dense or one.dtype in ("bfloat16", "float16"):
            return memory
        return memory.cast(one.format, one.shape) if one.shape else memory

    def __call__(self, *buffers):
        """Runs the function. `buffers`: one for each parameter, in order."""
        self._run(self._call, buffers, packed=())

    def pack(self, number, buffer):
        """Lays a constant parameter out ahead of time, for `packed`."""
        one = self.parameters[number]
        if one.packed_bytes == 0:
            raise ValueError(f"parameter {one} has no packed form")
        _, source = one._view(buffer)
        packed = array.array("Q", bytes(one.packed_bytes))
        failed = getattr(self._library, f"{self.name}_pack")(
            number, ctypes.c_void_p(source),
            ctypes.c_void_p(_address(memoryview(packed))))
        if failed:
            raise MemoryError(f"{self.name}_pack failed with {failed}")
        return packed

    def packed(self, *buffers):
        """Runs the function; constant parameters are given as `pack` made them."""
        constants = [one.number for one in self.parameters if one.packed_bytes]
        if not constants:
            raise ValueError(f"{self.name} has no packed form")
        self._run(getattr(self._library, f"{self.name}_packed"), buffers,
                  constants)

    def _run(self, function, buffers, packed):
        if len(buffers) != len(self.parameters):
            raise TypeError(f"{self.name} has {len(self.parameters)} parameters, "
                            f"not {len(buffers)}")
        views = [one._view(buffer, one.number in packed)
                 for one, buffer in zip(self.parameters, buffers)]
        for one, (view, at) in zip(self.parameters, views):
            for other, (rest, there) in zip(self.parameters, views):
                if (one.written and other is not one and
                        at < there + rest.nbytes and there < at + view.nbytes):
                    raise ValueError(f"parameters {one.name} and {other.name} "
                                     "overlap, and one of them is written")
        failed = function(*(ctypes.c_void_p(at) for _, at in views))
        if failed:
            raise MemoryError(f"{self.name} failed with {failed}")

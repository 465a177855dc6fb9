#!/usr/bin/env python3
# Part of novac, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Traces a PyTorch training step into a graph file that novac compiles.

The step is what a training loop does between two batches: the forward pass, the loss,
the backward pass, clipping, and the optimizer's update; one functional graph of ATen
operations. It is traced on fake tensors: no GPU is needed, and a model built under
`torch.device("meta")` needs no memory for weights either. As a library:

    from export_torch import export_step
    step = export_step(model, loss_fn, optimizer, (tokens, labels), name="gpt2")
    step.write("gpt2.json")                  # for novac compile
    step.write_data("gpt2.data.safetensors") # for novac verify --data: inputs and results

As a command, of a Python file with a function that returns the first four arguments:

    export_torch.py train.py:step -o gpt2.json

Inputs of the graph have the names of what they are: parameters and buffers those of
named_parameters() and named_buffers(), optimizer states `PARAMETER.exp_avg` and so on,
`batch.0` or `batch.KEY`; and the scalars `lr`, `weight_decay` (`lr.1`, ... where there are
several parameter groups), `step` (1 at the first), `loss_scale`, `seed`.
"""
import argparse
import contextlib
import importlib.util
import linecache
import sys
import traceback
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

try:
    import torch
except ImportError:
    sys.exit("export_torch: no PyTorch here; scripts/install_torch.py makes a folder with one for the CPU")
from torch._subclasses import FakeTensor, FakeTensorMode
from torch.fx.experimental.proxy_tensor import make_fx
from torch.nn.utils.stateless import _reparametrize_module
from torch.utils import _pytree as pytree

from torch_step import graph_json, optimizers, random_numbers, reference
from torch_step.graph_json import GraphError

MODES = ("step", "gradients")


class ExportError(Exception):
    """A step that cannot be traced. The message names the user's line."""


class ExportedStep:
    """A traced step. `graph` is the nova.graph as a dictionary, `module` what computes it in PyTorch."""

    def __init__(self, graph, files, module, values):
        self.graph, self.files, self.module, self.values = graph, files, module, values

    def write(self, path):
        """Writes the graph, and beside it a file of its large constants if it has any."""
        path = Path(path)
        if self.files:
            from safetensors.torch import save_file
            file = path.with_suffix(".constants.safetensors")
            for constant in self.graph["constants"]:
                if "file" in constant:
                    constant["file"] = file.name
            save_file(self.files, str(file))
        path.write_text(graph_json.text(self.graph))

    def inputs(self, seed=0):
        """Values of all inputs, by name: the model's and the batch's own, the optimizer's states as
        they are, or where it has none random ones, so that an update moves every element."""
        return reference.input_values(self.graph, self.values, seed)

    def run(self, inputs):
        """The outputs for such inputs, computed by PyTorch on the CPU."""
        return reference.run(self.module, self.graph, inputs)

    def write_data(self, path, seed=0):
        """Writes inputs and the results that PyTorch has for them, for `novac verify --data`."""
        from safetensors.torch import save_file
        inputs = self.inputs(seed)
        outputs = self.run(inputs)
        save_file({**{f"in/{name}": value.contiguous().clone() for name, value in inputs.items()},
                   **{f"out/{index}": value.contiguous().clone() for index, value in enumerate(outputs)}}, str(path))


def export_step(model, loss_fn, optimizer, example_batch, *, name="step", mode="step", accumulate=1, clip_norm=None,
                clip_value=None, autocast=None, loss_scale=False, decompose=False, device="cpu"):
    """Traces one step.

    model          a torch.nn.Module, in the mode (train or eval) that it shall have
    loss_fn        called as loss_fn(model, *batch), or **batch for a dictionary; returns the loss (one element), or
                   it and tensors that become outputs. None: model(**batch).loss, as transformers' models give it
    optimizer      a torch.optim.Optimizer over the model's parameters; None for mode "gradients"
    example_batch  a tensor, or a tuple or dictionary of tensors; of those only dtype and shape matter
    mode           "step", or "gradients": loss and gradients only
    accumulate     each tensor of the batch is split into this many parts along dimension 0; the loss is their mean
    clip_norm      as torch.nn.utils.clip_grad_norm_; clip_value as clip_grad_value_
    autocast       a dtype: the forward pass runs under torch.autocast
    loss_scale     the loss is multiplied by the scalar input `loss_scale` and the gradients divided by it; where one of
                   them is not finite nothing is updated, and the output `found_inf` is 1 (torch.amp.GradScaler)
    decompose      after PyTorch's core-ATen decompositions
    device         "cuda" traces what PyTorch would run on a GPU; needs one
    """
    if mode not in MODES:
        raise ExportError(f"mode: got {mode!r}, expected one of {', '.join(map(repr, MODES))}")
    if (optimizer is None) != (mode == "gradients"):
        raise ExportError(f"optimizer: got {optimizer!r} in mode {mode!r}; mode 'step' needs one, 'gradients' has none")
    return Exporter(model, loss_fn, optimizer, example_batch, name, mode, accumulate, clip_norm, clip_value, autocast,
                    loss_scale, decompose, device).export()


class Exporter:
    def __init__(self, model, loss_fn, optimizer, batch, name, mode, accumulate, clip_norm, clip_value, autocast,
                 loss_scale, decompose, device):
        self.model, self.loss_fn, self.optimizer, self.name, self.mode = model, loss_fn, optimizer, name, mode
        self.accumulate, self.clip_norm, self.clip_value = accumulate, clip_norm, clip_value
        self.autocast, self.loss_scale, self.decompose, self.device = autocast, loss_scale, decompose, device
        self.batch = batch if isinstance(batch, (tuple, list, dict)) else (batch,)
        self.scalars = optimizers.Scalars()
        self.streams = random_numbers.Streams()
        self.mode_of_fakes = FakeTensorMode(allow_non_fake_inputs=True)
        parameters = dict(model.named_parameters())
        self.trained = {n: p for n, p in parameters.items() if p.requires_grad}
        self.fixed = {n: p for n, p in parameters.items() if not p.requires_grad} | dict(model.named_buffers())
        if not self.trained:
            raise ExportError(f"model: {type(model).__name__} has no parameter that requires a gradient")
        if optimizer is not None:
            self.check_optimizer()
            by_id = {id(p): n for n, p in self.trained.items()}
            self.functional = optimizers.functional(optimizer, by_id, self.scalars)
        if loss_scale:
            self.scalars.declare("loss_scale", 65536.0)

    def check_optimizer(self):
        own = {id(p) for p in self.model.parameters()}
        for index, group in enumerate(self.optimizer.param_groups):
            for position, p in enumerate(group["params"]):
                if id(p) not in own:
                    raise ExportError(f"optimizer: parameter {position} of group {index}, of shape {tuple(p.shape)}, is "
                                      "not one of the model's; make the optimizer after the model is in its final place")

    def fake(self, value):
        if not torch.is_tensor(value):
            return value
        return torch.empty_strided(value.shape, value.stride(), dtype=value.dtype, device=self.device)

    # The step, as a function of dictionaries of tensors.
    def step(self, parameters, states, scalars, fixed, seed, batch):
        self.streams.seed = seed
        self.streams.count = 0
        leaves = {n: p.detach().requires_grad_() for n, p in parameters.items()}
        before = dict(fixed)
        parts = self.parts_of(batch)
        loss, extra, gradients = None, [], None
        for part in parts:
            part_loss, part_extra, part_gradients = self.backward(leaves, fixed, part, scalars)
            loss = part_loss if loss is None else loss + part_loss
            extra.append(part_extra)
            gradients = part_gradients if gradients is None else [
                b if a is None else a if b is None else a + b for a, b in zip(gradients, part_gradients)]
        if len(parts) > 1:
            loss = loss / len(parts)
            extra = [[torch.stack(values) for values in zip(*extra)]]
        gradients = dict(zip(leaves, gradients))
        with torch.no_grad():
            return self.finish(loss, extra[0], gradients, parameters, states, scalars, fixed, before)

    def parts_of(self, batch):
        if self.accumulate == 1:
            return [batch]
        flat, spec = pytree.tree_flatten(batch)
        for value in flat:
            if torch.is_tensor(value) and (value.dim() == 0 or value.shape[0] % self.accumulate):
                raise ExportError(f"accumulate: got {self.accumulate}, and a tensor of the batch of shape "
                                  f"{tuple(value.shape)}; expected a divisor of its first dimension")
        split = [value.chunk(self.accumulate) if torch.is_tensor(value) else [value] * self.accumulate for value in flat]
        return [pytree.tree_unflatten([values[i] for values in split], spec) for i in range(self.accumulate)]

    def backward(self, leaves, fixed, batch, scalars):
        context = (torch.autocast(torch.device(self.device).type, dtype=self.autocast) if self.autocast is not None
                   else contextlib.nullcontext())
        with _reparametrize_module(self.model, {**leaves, **fixed}, tie_weights=True), context:
            if self.loss_fn is None:
                result = self.model(**batch).loss if isinstance(batch, dict) else self.model(*batch).loss
            elif isinstance(batch, dict):
                result = self.loss_fn(self.model, **batch)
            else:
                result = self.loss_fn(self.model, *batch)
        loss, *extra = result if isinstance(result, (tuple, list)) else (result,)
        if not torch.is_tensor(loss) or loss.numel() != 1:
            got = f"a tensor of shape {tuple(loss.shape)}" if torch.is_tensor(loss) else type(loss).__name__
            raise ExportError(f"loss_fn: returned {got}, expected a tensor of one element, first")
        loss = loss.reshape(())
        scaled = loss if len(leaves) == 0 else loss / self.accumulate if self.accumulate > 1 else loss
        if self.loss_scale:
            scaled = scaled * scalars["loss_scale"]
        gradients = torch.autograd.grad(scaled, list(leaves.values()), allow_unused=True)
        return loss.detach(), [value.detach() for value in extra], list(gradients)

    def finish(self, loss, extra, gradients, parameters, states, scalars, fixed, before):
        outputs, entries = [loss], [{"role": "loss"}]

        def output(value, **entry):
            outputs.append(value)
            entries.append(entry)

        for value in extra:
            output(value, role="output")
        alive = {n: g for n, g in gradients.items() if g is not None}
        finite = None
        if self.loss_scale:
            inverse = 1 / scalars["loss_scale"]
            alive = {n: g * inverse for n, g in alive.items()}
            finite = torch.stack([torch.isfinite(g).all() for g in alive.values()]).all()
            output(1 - finite.to(torch.float32), role="output")
        if self.clip_value is not None:
            alive = {n: g.clamp(-self.clip_value, self.clip_value) for n, g in alive.items()}
        if self.clip_norm is not None:
            # Of sums of squares: PyTorch's vector_norm of large tensors is off by 1e-5 on CPUs.
            squares = torch.stack([g.to(torch.float32).square().sum() for g in alive.values()])
            factor = torch.clamp(self.clip_norm / (squares.sum().sqrt() + 1e-6), max=1.0)
            alive = {n: g * factor.to(g.dtype) for n, g in alive.items()}
        if self.mode == "gradients":
            for n, gradient in alive.items():
                output(gradient, role="gradient")
        else:
            new_parameters, new_states = self.functional.step(parameters, alive, states, scalars)
            keep = lambda new, old: new if finite is None else torch.where(finite, new, old)
            for n, value in new_parameters.items():
                output(keep(value, parameters[n]), role="update", updates=n)
                for slot, state in new_states[n].items():
                    output(keep(state, states[n][slot]), role="update", updates=f"{n}.{slot}")
        for n, value in fixed.items():
            output(value, role="update", updates=n)
        self.entries = entries
        return outputs

    def export(self):
        with self.mode_of_fakes:
            parameters = {n: self.fake(p) for n, p in self.trained.items()}
            fixed = {n: self.fake(p) for n, p in self.fixed.items()}
            states = {}
            if self.optimizer is not None:
                in_optimizer = {n for group in self.functional.groups for n in group["names"]}
                slots = self.functional.states({n: parameters[n] for n in parameters if n in in_optimizer})
                states = {n: {slot: self.fake(like) for slot, like in entry.items()} for n, entry in slots.items()}
            scalars = {n: torch.empty((), device=self.device) for n in self.scalars.values}
            seed = torch.empty((), dtype=torch.int64, device=self.device)
            flat, spec = pytree.tree_flatten(self.batch)
            tensors = [self.fake(value) for value in flat if torch.is_tensor(value)]
            arguments = (parameters, states, scalars, fixed, seed, tensors)

            def step(parameters, states, scalars, fixed, seed, tensors):
                rest = iter(tensors)
                values = [next(rest) if torch.is_tensor(value) else value for value in flat]
                return self.step(parameters, states, scalars, dict(fixed), seed, pytree.tree_unflatten(values, spec))

            with self.explained(), random_seed_kept():
                module = make_fx(step, decomposition_table=self.streams.table())(*arguments)
            module.graph.set_codegen(torch.fx.graph.CodeGen())  # flat arguments
            module.recompile()
            leaves = pytree.tree_leaves(arguments)
            table = decompositions(module, self.decompose)
            # A decomposition may bring operations in place, and those others to decompose.
            for _ in range(4):
                if not table and not any(is_mutable(node) for node in module.graph.nodes):
                    break
                module = functional_module(module, leaves, table)
                table = decompositions(module, False)
        module.graph.eliminate_dead_code(lambda node: node.op in ("placeholder", "output"))
        module.recompile()
        inputs, values = self.describe(states, flat, spec)
        return self.write(module, inputs, values)

    def describe(self, states, flat, spec):
        """Fields of the inputs in the order of the placeholders, and the values that are known."""
        inputs, values = [], {}

        def add(name, role, value=None, **fields):
            inputs.append({"name": name, "role": role, "path": name, **fields})
            if value is not None:
                values[name] = value

        for n, p in self.trained.items():
            add(n, "parameter", p)
        for n, entry in states.items():
            for slot in entry:
                own = self.optimizer.state.get(self.trained[n], {})
                add(f"{n}.{slot}", "state", own.get(slot))
        for n, (initial, advance) in self.scalars.values.items():
            add(n, "scalar", torch.tensor(initial), **({"advance": advance} if advance else {}))
        for n, b in self.fixed.items():
            add(n, "buffer", b)
        add("seed", "scalar", torch.tensor(0), advance=1)
        paths = pytree.tree_flatten_with_path(self.batch)[0]
        for path, value in paths:
            if torch.is_tensor(value):
                keys = [str(getattr(key, "key", getattr(key, "idx", key))) for key in path]
                add("batch." + ".".join(keys), "input", value)
        return inputs, values

    def write(self, module, inputs, values):
        placeholders = [node for node in module.graph.nodes if node.op == "placeholder"]
        result = next(node for node in module.graph.nodes if node.op == "output").args[0]
        # A buffer that the step leaves alone is not updated; a seed that nothing draws from is no input.
        entries = [None if entry["role"] == "update" and node in placeholders else entry
                   for node, entry in zip(result, self.entries, strict=True)]
        seed = next(i for i, entry in enumerate(inputs) if entry["name"] == "seed" and entry["role"] == "scalar")
        if not placeholders[seed].users:
            values.pop("seed")
            module.graph.erase_node(placeholders[seed])
            del inputs[seed]
        kept = [(node, entry) for node, entry in zip(result, entries) if entry is not None]
        output = next(node for node in module.graph.nodes if node.op == "output")
        output.args = ([node for node, _ in kept],)
        module.recompile()
        producer = {"torch": torch.__version__, "decomposed": self.decompose, "device": self.device,
                    "scalars": {n: value for n, (value, _) in self.scalars.values.items()}}
        if "transformers" in sys.modules:
            producer["transformers"] = sys.modules["transformers"].__version__
        try:
            graph, files = graph_json.convert(module, inputs, [entry for _, entry in kept], self.name, producer)
        except GraphError as error:
            raise ExportError(str(error)) from error
        return ExportedStep(graph, files, module, values)

    @contextlib.contextmanager
    def explained(self):
        try:
            yield
        except ExportError:
            raise
        except Exception as error:
            raise ExportError(explanation(error)) from error


@contextlib.contextmanager
def random_seed_kept():
    state = torch.random.get_rng_state()
    try:
        yield
    finally:
        torch.random.set_rng_state(state)


def is_mutable(node):
    return isinstance(node.target, torch._ops.OpOverload) and node.target._schema.is_mutable


def vocabulary():
    """The operations that novac has; a test compares the file with `novac ops`."""
    return set((Path(__file__).resolve().parent / "torch_step" / "operations.txt").read_text().split())


# PyTorch's decomposition gives the probabilities in place of the log-sum-exp, which its backward needs.
WRONG = {torch.ops.aten._scaled_dot_product_flash_attention_for_cpu.default}


def as_strided(x, size, stride, offset=None):
    """Some decompositions end in one where a reshape is meant."""
    wanted = 1
    for extent in size:
        wanted *= extent
    if not x.is_contiguous() or offset or wanted != x.numel() or not graph_json.contiguous(list(size), list(stride)):
        raise ExportError(f"as_strided: got sizes {list(size)}, strides {list(stride)} of a tensor of shape "
                          f"{tuple(x.shape)}; only a reshape is supported: memory layouts are the compiler's to choose")
    return x.reshape(size)


def decompositions(module, core):
    """PyTorch's decompositions, of all operations that are not core ATen if asked, and of those in the
    module that novac does not have."""
    table = torch._decomp.core_aten_decompositions() if core else {}
    known = vocabulary()
    for node in module.graph.nodes:
        target = node.target
        if isinstance(target, torch._ops.OpOverload) and str(target) not in known and not target._schema.is_mutable:
            found = (as_strided if target is torch.ops.aten.as_strided.default
                     else torch._decomp.decomposition_table.get(target))
            if found is not None:
                table[target] = found
    return {target: function for target, function in table.items() if target not in WRONG}


class Replay(torch.fx.Interpreter):
    """Runs a flat graph again. A decomposition may lay its result out differently, so that what was
    a view of it needs a copy."""

    def call_function(self, target, args, kwargs):
        if target is torch.ops.aten.view.default:
            return torch.reshape(*args, **kwargs)
        return super().call_function(target, args, kwargs)


def functional_module(module, flat, table):
    """The same without in-place operations, and with operations replaced as the table says."""
    replay = Replay(module).run if table else module
    function = torch.func.functionalize(lambda *values: replay(*values), remove="mutations")
    return make_fx(function, decomposition_table=table or None)(*flat)


# What PyTorch's exceptions mean to somebody who wants to trace a step.
REASONS = (
    (("DataDependentOutput", "GuardOnDataDependent", "get value out of a tracing tensor", "aten._local_scalar_dense",
      "aten.equal"),
     "the value of a tensor decides what happens here, and a graph has one course of events",
     "use torch.where or a mask, or decide it outside of the step"),
    (("DynamicOutputShape", "aten.nonzero", "aten.masked_select", "unique"),
     "the shape of a result depends on the values of a tensor, and shapes of a graph are static",
     "use a mask (torch.where, ignore_index) in place of a selection"),
)


def explanation(error):
    frames = traceback.extract_tb(error.__traceback__)
    torch_folder, here = str(Path(torch.__file__).parent), str(Path(__file__).resolve().parent)
    library = str(Path(contextlib.__file__).parent)
    own = [frame for frame in frames if not frame.filename.startswith((torch_folder, here, "<"))
           and not (frame.filename.startswith(library) and "site-packages" not in frame.filename)]
    users = [frame for frame in own if "site-packages" not in frame.filename]
    text = f"{type(error).__name__}: {error}".strip()
    reason, advice = text.splitlines()[0], None
    for signs, meaning, what_to_do in REASONS:
        if any(sign in text for sign in signs):
            reason, advice = meaning, what_to_do
            break
    if not own:
        return reason
    lines = [f"cannot trace {place(users[-1] if users else own[-1])}", f"  {reason}"]
    if users and own[-1] is not users[-1]:
        lines.append(f"  it happens in {place(own[-1])}")
    if advice:
        lines += [f"  {advice}", f"  (PyTorch says: {text.splitlines()[0][:200]})"]
    return "\n".join(lines)


def place(frame):
    code = (frame.line or linecache.getline(frame.filename, frame.lineno)).strip()
    return f"{frame.filename}:{frame.lineno}, in {frame.name}: {code}"


def load(source):
    """The function that `FILE.py:NAME` names."""
    file, _, function = source.partition(":")
    function = function or "step"
    if not Path(file).is_file():
        raise ExportError(f"'{file}': no such file; expected FILE.py:FUNCTION")
    spec = importlib.util.spec_from_file_location("exported_program", file)
    program = importlib.util.module_from_spec(spec)
    sys.path.insert(0, str(Path(file).resolve().parent))
    spec.loader.exec_module(program)
    if not hasattr(program, function):
        raise ExportError(f"'{file}' has no function '{function}'; expected one that returns "
                          "(model, loss_fn, optimizer, example_batch)")
    return getattr(program, function)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("source", metavar="FILE.py:FUNCTION",
                        help="a function (default: step) that returns (model, loss_fn, optimizer, example_batch), and "
                             "after them, if it likes, a dictionary of export_step's options")
    parser.add_argument("-o", "--output", type=Path, required=True, metavar="GRAPH.json")
    parser.add_argument("--data", action="store_true",
                        help="also write GRAPH.data.safetensors: inputs, and PyTorch's results for them")
    parser.add_argument("--seed", type=int, default=0, help="of weights and data (default %(default)s)")
    parser.add_argument("--mode", choices=MODES)
    parser.add_argument("--accumulate", type=int, metavar="N")
    parser.add_argument("--clip-norm", type=float, metavar="X")
    parser.add_argument("--clip-value", type=float, metavar="X")
    parser.add_argument("--autocast", choices=("bfloat16", "float16"))
    parser.add_argument("--loss-scale", action="store_true", default=None)
    parser.add_argument("--decompose", action="store_true", default=None)
    parser.add_argument("--device", choices=("cpu", "cuda"))
    arguments = parser.parse_args()
    try:
        function = load(arguments.source)
        torch.manual_seed(arguments.seed)
        # Weights are made only where somebody will read them.
        with contextlib.nullcontext() if arguments.data else torch.device("meta"):
            model, loss_fn, optimizer, batch, *options = function()
        options = dict(options[0]) if options else {}
        for key in ("mode", "accumulate", "clip_norm", "clip_value", "autocast", "loss_scale", "decompose", "device"):
            if getattr(arguments, key) is not None:
                options[key] = getattr(arguments, key)
        if isinstance(options.get("autocast"), str):
            options["autocast"] = getattr(torch, options["autocast"])
        if options.get("mode") == "gradients":
            optimizer = None
        options.setdefault("name", arguments.output.stem)
        step = export_step(model, loss_fn, optimizer, batch, **options)
        step.write(arguments.output)
        if arguments.data:
            step.write_data(arguments.output.with_suffix(".data.safetensors"), arguments.seed)
    except ExportError as error:
        print(f"export_torch: error: {error}", file=sys.stderr)
        return 1
    print(f"export_torch: {arguments.output}: {len(step.graph['nodes'])} nodes, {len(step.graph['inputs'])} inputs, "
          f"{len(step.graph['outputs'])} outputs")
    return 0


if __name__ == "__main__":
    sys.exit(main())

# Part of novac, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What an optimizer's step computes, as a function of tensors.

SGD, Adam and AdamW are written out, because torch.optim branches on the values of
learning rate and weight decay, which are run-time inputs here. The formulas are those
of torch/optim/{sgd,adam,adamw}.py. Any other optimizer's own step() is traced; of
its hyperparameters only the learning rate is an input then.
"""
import contextlib
import copy

import torch


class Scalars:
    """The run-time scalars of a step, by the names they have as inputs; made when asked for."""

    def __init__(self):
        self.values = {}  # name -> (initial value, advance)

    def declare(self, name, value, advance=0):
        self.values.setdefault(name, (float(value), advance))
        return name


def group_name(name, index, count):
    return name if count == 1 else f"{name}.{index}"


class Written:
    """SGD, Adam and AdamW, per parameter group."""

    def __init__(self, optimizer, names, scalars):
        self.groups = []
        count = len(optimizer.param_groups)
        self.adam = isinstance(optimizer, torch.optim.Adam)
        for index, group in enumerate(optimizer.param_groups):
            entry = dict(group)
            entry["names"] = [names[id(p)] for p in group["params"] if id(p) in names]
            entry["lr_name"] = scalars.declare(group_name("lr", index, count), group["lr"])
            entry["decay_name"] = None
            if group["weight_decay"] != 0:
                entry["decay_name"] = scalars.declare(group_name("weight_decay", index, count), group["weight_decay"])
            if self.adam:
                entry["decoupled"] = isinstance(optimizer, torch.optim.AdamW) or group.get("decoupled_weight_decay", False)
            if self.adam or (group["momentum"] != 0 and group["dampening"] != 0):
                scalars.declare("step", 1, advance=1)
            self.groups.append(entry)

    def slots(self, group):
        if self.adam:
            return ["exp_avg", "exp_avg_sq"] + (["max_exp_avg_sq"] if group["amsgrad"] else [])
        return ["momentum_buffer"] if group["momentum"] != 0 else []

    def states(self, parameters):
        """name -> {slot: (shape like, dtype)} of what a step reads and writes."""
        return {name: {slot: parameters[name] for slot in self.slots(group)}
                for group in self.groups for name in group["names"]}

    def step(self, parameters, gradients, states, scalars):
        """New parameters and states, for those that have a gradient."""
        new_parameters, new_states = {}, {}
        for group in self.groups:
            update = self.adam_update(group, scalars) if self.adam else self.sgd_update(group, scalars)
            for name in group["names"]:
                if gradients.get(name) is None:
                    continue
                gradient = -gradients[name] if group["maximize"] else gradients[name]
                new_parameters[name], new_states[name] = update(parameters[name], gradient, states[name])
        return new_parameters, new_states

    # Scalars are combined in float64, as torch.optim does in Python: 1 - 0.999 ** 1 has three
    # digits less in float32. A 0-d tensor does not promote the tensors it is combined with.
    def adam_update(self, group, scalars):
        beta1, beta2 = group["betas"]
        lr, step = scalars[group["lr_name"]].double(), scalars["step"].double()
        decay = None if group["decay_name"] is None else scalars[group["decay_name"]].double()
        step_size = (lr / (1 - beta1 ** step)).float()
        correction = (1 - beta2 ** step).sqrt().float()
        keep = None
        if decay is not None:
            keep = (1 - lr * decay).float() if group["decoupled"] else decay.float()

        def update(parameter, gradient, state):
            if keep is not None:
                if group["decoupled"]:
                    parameter = parameter * keep
                else:
                    gradient = gradient + parameter * keep
            average = torch.lerp(state["exp_avg"], gradient, 1 - beta1)
            square = state["exp_avg_sq"] * beta2 + gradient * gradient * (1 - beta2)
            new = {"exp_avg": average, "exp_avg_sq": square}
            if group["amsgrad"]:
                new["max_exp_avg_sq"] = torch.maximum(state["max_exp_avg_sq"], square)
            root = new.get("max_exp_avg_sq", square).sqrt() / correction
            return parameter - step_size * (average / (root + group["eps"])), new
        return update

    def sgd_update(self, group, scalars):
        lr = scalars[group["lr_name"]]
        momentum, dampening = group["momentum"], group["dampening"]

        def update(parameter, gradient, state):
            if group["decay_name"] is not None:
                gradient = gradient + parameter * scalars[group["decay_name"]]
            new = {}
            if momentum != 0:
                buffer = state["momentum_buffer"] * momentum
                if dampening != 0:
                    # The first step's buffer is its gradient, undampened.
                    buffer = torch.where(scalars["step"] <= 1, gradient, buffer + gradient * (1 - dampening))
                else:
                    buffer = buffer + gradient
                new["momentum_buffer"] = buffer
                gradient = gradient + buffer * momentum if group["nesterov"] else buffer
            return parameter - gradient * lr, new
        return update


class Traced:
    """Any other optimizer: its own step() runs on tensors that are being traced."""

    def __init__(self, optimizer, names, scalars):
        self.optimizer = optimizer
        self.groups = []
        count = len(optimizer.param_groups)
        for index, group in enumerate(optimizer.param_groups):
            self.groups.append({
                "names": [names[id(p)] for p in group["params"] if id(p) in names],
                "lr_name": scalars.declare(group_name("lr", index, count), group["lr"])})
        scalars.declare("step", 1, advance=1)
        self.counted, self.others = set(), {}

    def remade(self, parameters, lr):
        """The optimizer over other parameters, without states."""
        made = copy.copy(self.optimizer)
        made.state = type(self.optimizer.state)(dict)
        made.param_groups = []
        for mine, group in zip(self.groups, self.optimizer.param_groups):
            entry = {**group, "params": [parameters[name] for name in mine["names"]], "lr": lr(mine, group)}
            for key, value in (("foreach", False), ("fused", False), ("capturable", True)):
                if key in entry:
                    entry[key] = value
            made.param_groups.append(entry)
        return made

    def states(self, parameters):
        """The states that a first step makes, or that the optimizer has already."""
        fresh = {name: p.detach().clone() for name, p in parameters.items()}
        for p in fresh.values():
            p.grad = torch.zeros_like(p)
        made = self.remade(fresh, lambda mine, group: torch.tensor(float(group["lr"])))
        originals = {name: p for mine, group in zip(self.groups, self.optimizer.param_groups)
                     for name, p in zip(mine["names"], group["params"])}
        for name, p in fresh.items():
            own = self.optimizer.state.get(originals[name])
            if own:
                made.state[p] = {slot: torch.empty_like(value, device=p.device) if torch.is_tensor(value) else value
                                 for slot, value in own.items()}
        with stepping():
            made.step()
        found = {}
        for name, p in fresh.items():
            slots = {slot: value for slot, value in made.state.get(p, {}).items() if torch.is_tensor(value)}
            found[name] = {slot: value for slot, value in slots.items() if slot != "step"}
            self.others[name] = {slot: value for slot, value in made.state.get(p, {}).items() if slot not in slots}
        self.counted = {name for name, p in fresh.items() if torch.is_tensor(made.state.get(p, {}).get("step"))}
        return found

    def step(self, parameters, gradients, states, scalars):
        fresh = {name: p.clone() for name, p in parameters.items()}
        made = self.remade(fresh, lambda mine, group: scalars[mine["lr_name"]])
        for name, p in fresh.items():
            p.grad = gradients.get(name)
            if name in states:
                made.state[p] = self.others[name] | {slot: value.clone() for slot, value in states[name].items()}
                if name in self.counted:
                    made.state[p]["step"] = scalars["step"] - 1
        with stepping():
            made.step()
        alive = [name for name in fresh if gradients.get(name) is not None]
        return ({name: fresh[name] for name in alive},
                {name: {slot: made.state[fresh[name]][slot] for slot in states.get(name, {})} for name in alive})


class TensorFactors(torch.overrides.TorchFunctionMode):
    """Factors of in-place sums, x.add_(y, alpha=a) and its like, may be tensors here: PyTorch would
    ask for their values."""

    FACTORS = {"add_": ("alpha", lambda y: y), "sub_": ("alpha", lambda y: -y),
               "addcmul_": ("value", lambda y, z: y * z), "addcdiv_": ("value", lambda y, z: y / z)}

    def __torch_function__(self, function, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        known = self.FACTORS.get(getattr(function, "__name__", ""))
        if known and torch.is_tensor(kwargs.get(known[0])):
            return args[0].add_(known[1](*args[1:]) * kwargs[known[0]])
        return function(*args, **kwargs)


@contextlib.contextmanager
def stepping():
    with compiling(), TensorFactors(), torch.no_grad():
        yield


@contextlib.contextmanager
def compiling():
    """torch.optim keeps step counts in tensors where it believes that it is compiled."""
    before = torch.compiler.is_compiling
    torch.compiler.is_compiling = lambda: True
    try:
        yield
    finally:
        torch.compiler.is_compiling = before


def functional(optimizer, names, scalars):
    """The step of `optimizer`, whose parameters `names` names by id."""
    written = (torch.optim.SGD, torch.optim.Adam, torch.optim.AdamW)
    kind = Written if type(optimizer) in written else Traced
    return kind(optimizer, names, scalars)

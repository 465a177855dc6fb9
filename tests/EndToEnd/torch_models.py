# Part of novac, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Training steps of small models, as their users would write them: what
export_models.py exports. Every function returns (model, loss_fn, optimizer, batch, options).
"""
import torch
from torch import nn
from torch.nn import functional as F

VOCABULARY = 97


def tokens(*shape, high=VOCABULARY):
    return torch.randint(0, high, shape)


def next_token_loss(model, ids, labels):
    return F.cross_entropy(model(input_ids=ids, use_cache=False).logits.flatten(0, 1), labels.flatten())


def gpt2(**changes):
    from transformers import GPT2Config, GPT2LMHeadModel
    config = {"vocab_size": VOCABULARY, "n_positions": 32, "n_embd": 32, "n_layer": 2, "n_head": 4,
              "resid_pdrop": 0.0, "embd_pdrop": 0.0, "attn_pdrop": 0.0, "bos_token_id": 0, "eos_token_id": 0}
    return GPT2LMHeadModel(GPT2Config(**{**config, **changes})).train()


def gpt2_adamw():
    """The reference graphs' gpt2_tiny, in other sizes."""
    model = gpt2()
    optimizer = torch.optim.AdamW(model.parameters(), lr=6e-4, betas=(0.9, 0.95), weight_decay=0.1)
    return model, next_token_loss, optimizer, (tokens(3, 20), tokens(3, 20)), {"clip_norm": 1.0}


def gpt2_dropout():
    model = gpt2(resid_pdrop=0.1, embd_pdrop=0.1, attn_pdrop=0.1)
    optimizer = torch.optim.AdamW(model.parameters(), lr=6e-4)
    return model, next_token_loss, optimizer, (tokens(3, 20), tokens(3, 20)), {}


def gpt2_bf16():
    model = gpt2()
    optimizer = torch.optim.AdamW(model.parameters(), lr=6e-4)
    return model, next_token_loss, optimizer, (tokens(3, 20), tokens(3, 20)), {"autocast": torch.bfloat16}


def llama_gqa():
    """Grouped-query attention; two parameter groups, three micro-batches."""
    from transformers import LlamaConfig, LlamaForCausalLM
    model = LlamaForCausalLM(LlamaConfig(
        vocab_size=VOCABULARY, hidden_size=32, intermediate_size=56, num_hidden_layers=2, num_attention_heads=4,
        num_key_value_heads=2, max_position_embeddings=32))
    model.train()
    matrices = [p for p in model.parameters() if p.dim() > 1]
    vectors = [p for p in model.parameters() if p.dim() <= 1]
    optimizer = torch.optim.AdamW([{"params": matrices, "weight_decay": 0.1}, {"params": vectors, "weight_decay": 0.0}],
                                  lr=3e-4)
    return model, next_token_loss, optimizer, (tokens(6, 17), tokens(6, 17)), {"accumulate": 3, "clip_norm": 1.0}


def qwen3():
    from transformers import Qwen3Config, Qwen3ForCausalLM
    model = Qwen3ForCausalLM(Qwen3Config(
        vocab_size=VOCABULARY, hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=4,
        num_key_value_heads=2, head_dim=16, max_position_embeddings=32))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3, amsgrad=True, weight_decay=0.01)
    return model.train(), next_token_loss, optimizer, (tokens(2, 24), tokens(2, 24)), {}


def mistral_window():
    """A sliding window shorter than the sequence."""
    from transformers import MistralConfig, MistralForCausalLM
    model = MistralForCausalLM(MistralConfig(
        vocab_size=VOCABULARY, hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=4,
        num_key_value_heads=2, sliding_window=6, max_position_embeddings=32))
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-2, momentum=0.9, nesterov=True, weight_decay=1e-4)
    return model.train(), next_token_loss, optimizer, (tokens(2, 20), tokens(2, 20)), {}


def bert_padding():
    """Masked tokens: a padding mask, and labels that are ignored."""
    from transformers import BertConfig, BertForMaskedLM
    model = BertForMaskedLM(BertConfig(
        vocab_size=VOCABULARY, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=64,
        max_position_embeddings=32, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)).train()
    labels = tokens(3, 19)
    labels[torch.rand(3, 19) < 0.7] = -100
    mask = torch.ones(3, 19, dtype=torch.int64)
    mask[0, 12:] = 0
    mask[2, 7:] = 0
    batch = {"input_ids": tokens(3, 19), "attention_mask": mask, "labels": labels}
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    return model, None, optimizer, batch, {"clip_norm": 0.5}


def distilbert_dropout():
    from transformers import DistilBertConfig, DistilBertForSequenceClassification
    model = DistilBertForSequenceClassification(DistilBertConfig(
        vocab_size=VOCABULARY, dim=32, n_layers=2, n_heads=4, hidden_dim=64, max_position_embeddings=32, num_labels=5)).train()
    batch = {"input_ids": tokens(4, 15), "attention_mask": torch.ones(4, 15, dtype=torch.int64), "labels": tokens(4, high=5)}
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-2, momentum=0.9, dampening=0.1)
    return model, None, optimizer, batch, {}


def t5():
    """Encoder and decoder, relative positions, cross attention, ignored labels."""
    from transformers import T5Config, T5ForConditionalGeneration
    model = T5ForConditionalGeneration(T5Config(
        vocab_size=VOCABULARY, d_model=32, d_kv=8, d_ff=64, num_layers=2, num_heads=4, dropout_rate=0.0,
        decoder_start_token_id=0, use_cache=False)).train()
    labels = tokens(2, 11)
    labels[1, 8:] = -100
    batch = {"input_ids": tokens(2, 16), "labels": labels}
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    return model, None, optimizer, batch, {}


def vit_smoothing():
    from transformers import ViTConfig, ViTForImageClassification
    model = ViTForImageClassification(ViTConfig(
        hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=64, image_size=24, patch_size=8,
        num_labels=10, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)).train()
    loss = lambda model, images, labels: F.cross_entropy(model(images).logits, labels, label_smoothing=0.1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    return model, loss, optimizer, (torch.randn(3, 3, 24, 24), tokens(3, high=10)), {}


def neox_loss_scale():
    from transformers import GPTNeoXConfig, GPTNeoXForCausalLM
    model = GPTNeoXForCausalLM(GPTNeoXConfig(
        vocab_size=VOCABULARY, hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=4,
        max_position_embeddings=32, hidden_dropout=0.0, attention_dropout=0.0, bos_token_id=0, eos_token_id=0)).train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    return model, next_token_loss, optimizer, (tokens(2, 18), tokens(2, 18)), {"loss_scale": True, "clip_norm": 1.0}


def opt_layerdrop():
    """Draws a number to decide, in Python, whether a layer is left out: no graph."""
    from transformers import OPTConfig, OPTForCausalLM
    model = OPTForCausalLM(OPTConfig(
        vocab_size=VOCABULARY, hidden_size=32, ffn_dim=64, num_hidden_layers=2, num_attention_heads=4,
        max_position_embeddings=32, word_embed_proj_dim=32, dropout=0.0, bos_token_id=0, eos_token_id=0)).train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    return model, next_token_loss, optimizer, (tokens(2, 18), tokens(2, 18)), {}


def roberta_bf16():
    from transformers import RobertaConfig, RobertaForMaskedLM
    model = RobertaForMaskedLM(RobertaConfig(
        vocab_size=VOCABULARY, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=64,
        max_position_embeddings=40, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0, pad_token_id=1)).train()
    batch = {"input_ids": tokens(3, 16), "labels": tokens(3, 16)}
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    return model, None, optimizer, batch, {"autocast": torch.bfloat16}


def gradients_only():
    model = gpt2(n_layer=1)
    return model, next_token_loss, None, (tokens(2, 12), tokens(2, 12)), {"mode": "gradients"}


def core_decomposed():
    model = gpt2(n_layer=1)
    optimizer = torch.optim.AdamW(model.parameters(), lr=6e-4)
    return model, next_token_loss, optimizer, (tokens(2, 12), tokens(2, 12)), {"decompose": True}


class Mlp(nn.Module):
    def __init__(self, *widths):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(a, b) for a, b in zip(widths, widths[1:]))
        self.dropout = nn.Dropout(0.25)

    def forward(self, x):
        for layer in self.layers[:-1]:
            x = self.dropout(F.silu(layer(x)))
        return self.layers[-1](x)


def mlp_regression(optimizer):
    model = Mlp(13, 24, 24, 3)
    loss = lambda model, x, y: F.mse_loss(model(x), y)
    return model, loss, optimizer(model.parameters()), (torch.randn(10, 13), torch.randn(10, 3)), {}


def mlp_sgd():
    return mlp_regression(lambda parameters: torch.optim.SGD(parameters, lr=0.1))


def mlp_rmsprop():
    return mlp_regression(lambda parameters: torch.optim.RMSprop(parameters, lr=1e-3, momentum=0.9))


def mlp_adagrad():
    return mlp_regression(lambda parameters: torch.optim.Adagrad(parameters, lr=1e-2))


def mlp_nadam():
    return mlp_regression(lambda parameters: torch.optim.NAdam(parameters, lr=1e-3))


class Zoo(nn.Module):
    """Functions that PyTorch decomposes for the exporter."""

    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(12, 12) for _ in range(7))
        self.group = nn.GroupNorm(3, 12)
        self.prelu = nn.PReLU()
        self.rms = nn.RMSNorm(12)

    def forward(self, x):
        functions = (F.elu, F.softplus, F.leaky_relu, F.hardswish, F.mish, F.logsigmoid, self.prelu)
        for layer, function in zip(self.layers, functions):
            x = x + function(layer(x))
        return F.normalize(self.rms(self.group(x)), dim=1), F.glu(x)


def zoo():
    def loss(model, x, y):
        a, b = model(x)
        return (F.huber_loss(a, y) + F.smooth_l1_loss(b, y[:, :6]) + F.binary_cross_entropy_with_logits(a, (y > 0).float())
                + F.kl_div(F.log_softmax(a, 1), F.softmax(y, 1), reduction="batchmean") + F.l1_loss(a, y)
                + torch.logsumexp(b, 1).mean() + b.std() + F.cosine_similarity(a, y).sum(), a)
    model = Zoo().train()
    return model, loss, torch.optim.SGD(model.parameters(), lr=1e-2), (torch.randn(9, 12), torch.randn(9, 12)), {}


class Cnn(nn.Module):
    """A residual block, batch norm with running statistics, pooling."""

    def __init__(self):
        super().__init__()
        self.stem = nn.Conv2d(3, 8, 3, stride=2, padding=1, bias=False)
        self.norm = nn.BatchNorm2d(8)
        self.conv = nn.Conv2d(8, 8, 3, padding=1, bias=False)
        self.norm2 = nn.BatchNorm2d(8)
        self.head = nn.Linear(8, 5)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.norm(self.stem(x))), 3, stride=2, padding=1)
        x = F.relu(x + self.norm2(self.conv(x)))
        return self.head(F.adaptive_avg_pool2d(x, 1).flatten(1))


def cnn():
    model = Cnn().train()
    loss = lambda model, x, y: F.cross_entropy(model(x), y)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    return model, loss, optimizer, (torch.randn(4, 3, 16, 16), tokens(4, high=5)), {}


MODELS = [gpt2_adamw, gpt2_dropout, gpt2_bf16, llama_gqa, qwen3, mistral_window, bert_padding, distilbert_dropout, t5,
          vit_smoothing, neox_loss_scale, roberta_bf16, gradients_only, core_decomposed, mlp_sgd, mlp_rmsprop,
          mlp_adagrad, mlp_nadam, zoo, cnn]
# What cannot be traced, and what the message must say of it.
REFUSED = [(opt_layerdrop, ("torch_models.py", "in next_token_loss", "modeling_opt.py", "layerdrop",
                            "the value of a tensor decides"))]

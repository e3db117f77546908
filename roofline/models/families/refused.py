"""Refused: model types whose parts are not modelled; each with the reason in words.

A guess for these would be wrong without a sign of it: an encoder read as a decoder, a memory
counted as matrices. ``load_model`` refuses them by name.
"""

ENCODER = "it encodes text and does not generate it token by token"
PAIR = "it is an encoder with a decoder that attends to it"
MEMORY = "its layers mix several streams or memories that are not modelled"
AUDIO = "its depth decoder and codebooks are not modelled"

REFUSED: dict[str, str] = {
    **dict.fromkeys(
        ("bert", "bert-generation", "big_bird", "camembert", "data2vec-text", "electra", "ernie",
         "megatron-bert", "modernbert", "modernbert-decoder", "rembert", "roberta",
         "roberta-prelayernorm", "roc_bert", "roformer", "xlm", "xlm-roberta", "xlm-roberta-xl",
         "xlnet", "xmod", "distilbert", "albert", "deberta", "deberta-v2", "mpnet", "nomic_bert",
         "convbert", "funnel", "longformer", "nystromformer", "reformer", "blip_text_model"),
        ENCODER,
    ),
    **dict.fromkeys(
        ("bart", "bigbird_pegasus", "blenderbot", "blenderbot-small", "led", "m2m_100", "marian",
         "mbart", "mt5", "mvp", "nllb-moe", "pegasus", "pegasus_x", "plbart", "prophetnet", "t5",
         "t5gemma", "t5gemma2", "t5gemma2_decoder", "switch_transformers", "trocr", "udop", "umt5",
         "whisper", "pix2struct", "pix2struct_text_model", "florence2", "vision-encoder-decoder",
         "pp_formulanet", "moonshine", "speech_to_text", "encoder-decoder"),
        PAIR,
    ),
    **dict.fromkeys(("moshi", "musicgen", "musicgen_melody", "csm", "dia"), AUDIO),
    **dict.fromkeys(
        ("axk2", "blt", "cpmant", "dory", "dots3_note", "dots3_note_text", "ernie4_5_vl_moe_text",
         "git", "glm5_next", "glm5_next_text", "hrm_text", "hy_v4", "hy_v4_vl_text", "idefics",
         "inkling_text", "inkling2_text", "inkling2_loop_text", "mistral_large4_text",
         "muse_spark_text", "qwen4_exp", "qwen4_exp_text", "unlimited_ocr_text", "zaya"),
        MEMORY,
    ),
    **dict.fromkeys(
        ("deci", "nemotron-nas", "openelm", "arctic", "plamo", "plamo2", "grok-1", "skywork_moe"),
        "its layers differ in ways that its config does not say in the usual words",
    ),
    **dict.fromkeys(
        ("rwkv5", "rwkv6", "rwkv7", "rwkv_world", "retnet", "stripedhyena", "hyena"),
        "its state is not modelled",
    ),
    "clip": "it is an encoder of images and text",
    "siglip": "it is an encoder of images and text",
    "vit": "it is an encoder of images",
}  # fmt: skip

"""plan: requests longer than the model was made for."""

from roofline import Slo, Traffic, plan


def test_requests_past_the_models_context_are_warned_of():
    """Llama 3.1: 128 Ki tokens (config.json, max_position_embeddings 131072)."""

    def warned(prompt):
        traffic = Traffic(requests_per_s=0.01, prompt_tokens=prompt, output_tokens=72)
        found = plan("llama-3.1-8b", traffic, Slo(), ["h200-sxm-141gb"], tp=1, requests=50)
        return [line for line in found.warnings if "was made for 131,072" in line]

    assert not warned(131_000)
    assert warned(131_001)

"""Options: what a plan proposes, one deployment each, with its numbers in base units.

Units    second, token, request per second, USD, watt; USD per million tokens where it says so.
"""

from dataclasses import dataclass
from typing import Any

from roofline.economics.cost import TokenPrices
from roofline.economics.power import Power
from roofline.planning.candidate import Candidate
from roofline.serving.simulation_result import Simulation
from roofline.units import HOURS_PER_MONTH, show


@dataclass(frozen=True)
class Money:
    """What an option costs.

    Args:
        usd_per_hour: all instances that are paid for.
        paid_accelerators: accelerators in them: whole nodes.
        basis: the offer in words.
        full_load: USD per million tokens when every replica runs at its capacity.
        at_utilisation: the same at the traffic's mean load.
        api_break_even_share: share of full load above which this is cheaper than the API price
            that was given; above 1: never.
        buy_after_months: months after which buying the accelerators has cost less than this rent;
            infinite: never; None: no purchase price is known.
    """

    usd_per_hour: float
    paid_accelerators: int
    basis: str
    full_load: TokenPrices
    at_utilisation: TokenPrices
    api_break_even_share: float | None = None
    buy_after_months: float | None = None

    @property
    def usd_per_month(self) -> float:
        """A month of 730 hours."""
        return self.usd_per_hour * HOURS_PER_MONTH


@dataclass(frozen=True)
class Option:
    """One deployment that carries the traffic within its targets.

    Args:
        candidate: accelerator, plan, formats and engine of a replica.
        replicas: replicas, the spare ones included.
        spare_replicas: of these, how many may fail.
        capacity_per_s: requests per second that one replica carries within the targets.
        limited_by: the target or limit that its capacity ends at.
        requests_per_s: load that is planned for.
        mean_per_s: mean load.
        latencies_s: ``p50_ttft_s`` … of the planned load.
        tokens_per_s_per_user: 1 / median TPOT.
        output_tokens_per_s: of all replicas at the planned load.
        output_tokens_per_s_at_capacity: of all replicas at their capacity.
        max_batch: most sequences of one replica at once.
        goodput_per_s: requests per second of all replicas that meet every target at the planned
            load; None when it was not simulated.
        knee_per_s: the replica's rate with the largest rate / latency.
        simulated: whether latencies and capacity come from the simulation.
        money: None where no price is known.
        power: draw and racks; None without a TDP.
        launch: the line that starts a replica.
        assumptions, warnings: in words.
    """

    candidate: Candidate
    replicas: int
    spare_replicas: int
    capacity_per_s: float
    limited_by: str
    requests_per_s: float
    mean_per_s: float
    latencies_s: dict[str, float]
    tokens_per_s_per_user: float | None
    output_tokens_per_s: float
    output_tokens_per_s_at_capacity: float
    max_batch: int
    goodput_per_s: float | None
    knee_per_s: float
    simulated: bool
    money: Money | None
    power: Power | None
    launch: str
    assumptions: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    run: Simulation | None = None

    @property
    def accelerator(self) -> str:
        """Spec id of the accelerator."""
        return self.candidate.deployment.accelerator.id

    @property
    def accelerators(self) -> int:
        """Accelerators of all replicas."""
        return self.replicas * self.candidate.parallel.accelerators

    @property
    def plan(self) -> str:
        """The numbers as a person says them: "5 replicas × TP8".

        One replica on one accelerator is "1 replica × one accelerator".
        """
        word = "replica" if self.replicas == 1 else "replicas"
        return f"{self.replicas:,} {word} × {self.candidate.parallel}"

    @property
    def counted(self) -> str:
        """Its accelerators as a person says them: "40 accelerators"."""
        return f"{self.accelerators:,} accelerator" + ("s" if self.accelerators != 1 else "")

    @property
    def utilisation(self) -> float:
        """Mean load over the capacity of all replicas, spare ones included."""
        return self.mean_per_s / (self.capacity_per_s * self.replicas)

    @property
    def gpu_hours_per_month(self) -> float:
        """Accelerator-hours of a month, used or not."""
        return self.accelerators * HOURS_PER_MONTH

    @property
    def gpu_hours_per_million_output_tokens(self) -> float:
        """Accelerator-hours of a million output tokens at full load."""
        return self.accelerators / (self.output_tokens_per_s_at_capacity * 3600) * 1e6

    @property
    def tokens_per_s_per_accelerator(self) -> float:
        """Output tokens per second and accelerator at capacity."""
        return self.output_tokens_per_s_at_capacity / self.accelerators

    def __str__(self) -> str:
        cost = "no price" if self.money is None else f"{self.money.usd_per_hour:,.2f} USD/h"
        return (
            f"{self.accelerator}: {self.plan} = {self.counted}, {cost}, "
            f"TTFT {show(self.latencies_s.get('ttft_s'), 's')}"
        )

    def to_dict(self) -> dict[str, Any]:
        """Every number, in base units with the unit in the key."""
        deployment, parallel = self.candidate.deployment, self.candidate.parallel
        money = self.money
        return {
            "accelerator": self.accelerator,
            "plan": self.plan,
            "replicas": self.replicas,
            "spare_replicas": self.spare_replicas,
            "tp": parallel.tp,
            "pp": parallel.pp,
            "dp": parallel.dp,
            "ep": parallel.ep,
            "accelerators": self.accelerators,
            "weights_format": deployment.weights_dtype.name,
            "kv_format": deployment.formats.kv.name,
            "engine": deployment.engine.name,
            "capacity_requests_per_s_per_replica": self.capacity_per_s,
            "limited_by": self.limited_by,
            "requests_per_s": self.requests_per_s,
            "utilisation": self.utilisation,
            "max_batch_per_replica": self.max_batch,
            "goodput_requests_per_s": self.goodput_per_s,
            "knee_requests_per_s_per_replica": self.knee_per_s,
            "simulated": self.simulated,
            **self.latencies_s,
            "tokens_per_s_per_user": self.tokens_per_s_per_user,
            "output_tokens_per_s": self.output_tokens_per_s,
            "output_tokens_per_s_at_capacity": self.output_tokens_per_s_at_capacity,
            "output_tokens_per_s_per_accelerator": self.tokens_per_s_per_accelerator,
            "gpu_hours_per_month": self.gpu_hours_per_month,
            "gpu_hours_per_million_output_tokens": self.gpu_hours_per_million_output_tokens,
            "usd_per_hour": None if money is None else money.usd_per_hour,
            "usd_per_month": None if money is None else money.usd_per_month,
            "paid_accelerators": None if money is None else money.paid_accelerators,
            "price_basis": None if money is None else money.basis,
            **_prices("full_load", None if money is None else money.full_load),
            **_prices("at_utilisation", None if money is None else money.at_utilisation),
            "api_break_even_share": None if money is None else money.api_break_even_share,
            "buy_after_months": None if money is None else money.buy_after_months,
            "power": None if self.power is None else self.power.to_dict(),
            "launch": self.launch,
        }


def _prices(when: str, prices: TokenPrices | None) -> dict[str, float | None]:
    return {
        f"usd_per_million_input_tokens_{when}": None if prices is None else prices.input_usd,
        f"usd_per_million_output_tokens_{when}": None if prices is None else prices.output_usd,
        f"usd_per_million_tokens_{when}": None if prices is None else prices.blended_usd,
        f"usd_per_million_output_tokens_paying_all_{when}": (
            None if prices is None else prices.all_on_output_usd
        ),
    }

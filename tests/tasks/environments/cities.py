"""A small taskset of verifiers on capitals; its settings choose what a user's environment may do."""

import time

import verifiers.v1 as vf

from tests.tasks.environments.capitals import CITIES


class CityData(vf.TaskData):
    answer: str


class CityState(vf.State):
    looked_up: int = 0


class CityConfig(vf.TaskConfig):
    tool: str = "none"
    reward: str = "exact"


class AtlasConfig(vf.ToolsetConfig):
    kind: str = "works"


class Atlas(vf.Toolset[AtlasConfig, CityState]):
    TOOL_PREFIX = None

    @vf.tool
    def atlas(self, land: str) -> str:
        """Look up the capital of a country."""
        if self.config.kind == "hangs":
            time.sleep(3)
        if self.config.kind == "raises":
            raise RuntimeError("the atlas burnt down")
        self.state.looked_up += 1
        return CITIES[land]


class CityTask(vf.Task[CityData, CityState, CityConfig]):
    @classmethod
    def toolsets(cls, config):
        return [] if config.tool == "none" else [Atlas(AtlasConfig(kind=config.tool))]

    @vf.reward(weight=0.75)
    async def right(self, trace: vf.Trace) -> float:
        if self.config.reward == "raises":
            raise KeyError("no such column")
        if self.config.reward == "judge":
            judge = vf.Judge()
            judge.prompt = "Is there a reply? Options: {answer}, no."
            said = await judge.evaluate(trace=trace, answer=self.data.answer)
            return float(bool(said.text))
        return float(self.data.answer in trace.last_reply)

    @vf.reward(weight=0.25)
    async def used_the_tool(self, trace: vf.Trace) -> float:
        return 1.0 if self.config.tool == "none" else float(trace.state.looked_up > 0)


class CitiesConfig(vf.TasksetConfig):
    task: CityConfig = CityConfig()
    lands: int = 10


class Cities(vf.Taskset[CityTask, CitiesConfig]):
    def load(self):
        for land, city in list(CITIES.items())[: self.config.lands]:
            options = f" Options: {city}, Springfield." if self.config.task.tool == "none" else ""
            prompt = f"Which city is the capital of {land}?{options}"
            data = CityData(prompt=prompt, answer=city, system_prompt="You answer questions on geography.")
            yield CityTask(data, self.config.task)


__all__ = ["Cities"]

"""Every tool and rule of the package keeps the contract that those of others must keep."""

from __future__ import annotations

import pytest

from optiml_magic.findings import TOOLS, Tool
from optiml_magic.proposers.rewrites import REWRITES
from optiml_magic.proposers.rewrites.base import Rewrite
from optiml_magic.testing.plugin_contracts import RuleContract, ToolContract
from tests.present import sampled


class TestTools(ToolContract):
    @pytest.fixture(params=sampled(TOOLS), ids=lambda tool: tool.name)
    def tool(self, request: pytest.FixtureRequest) -> Tool:
        return request.param  # type: ignore[no-any-return]


class TestRules(RuleContract):
    @pytest.fixture(params=sampled(REWRITES), ids=lambda rule: rule.name)
    def rule(self, request: pytest.FixtureRequest) -> Rewrite:
        return request.param  # type: ignore[no-any-return]

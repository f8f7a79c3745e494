"""Plants every import that the contracts forbid into a copy of the package, and prints what they say to it.

A process of its own, since the copy must be found under the package's name: python planted_imports.py FOLDER
PYPROJECT, where FOLDER holds the copy.
"""

import copy
import json
import sys
from itertools import permutations, product
from pathlib import Path
from typing import Any

import grimp
from importlinter.api import read_configuration
from importlinter.application.use_cases import _register_contract_types, read_user_options
from importlinter.contracts.layers import LayerField
from importlinter.domain.contract import registry

ROOT = "postroom"


def forbidden_pairs(contracts: list[dict[str, Any]]) -> list[tuple[str, str]]:
    """Of each, the first may not import the second."""
    pairs: list[tuple[str, str]] = []
    for contract in contracts:
        if contract["type"] == "layers":
            above: list[str] = []
            for line in contract["layers"]:
                layer = LayerField().parse(line)
                names = sorted(f"{ROOT}.{tail.name}" for tail in layer.module_tails)
                pairs += product(names, above)
                pairs += permutations(names, 2) if layer.is_independent else ()
                above += names
        elif contract["type"] == "forbidden":
            pairs += product(contract["source_modules"], contract["forbidden_modules"])
        elif contract["type"] == "acyclic_siblings":
            # The engine stands on the session.
            pairs.append((f"{ROOT}.kernel.session", f"{ROOT}.kernel.engine"))
    # The package itself gives out the runtime's names.
    pairs += [(f"{ROOT}.kernel", ROOT), (f"{ROOT}.stores", ROOT)]
    return list(dict.fromkeys(pairs))


def plant(folder: Path, source: str, target: str) -> str:
    """The import, hidden in a function as those of cycles are; the module that has it now."""
    statement = f"\n\ndef hide() -> None:\n    import {target}\n"
    module = (folder / source.replace(".", "/")).with_suffix(".py")
    if not module.exists():
        source += ".planted"
        module = module.with_suffix("") / "planted.py"
    module.parent.mkdir(exist_ok=True)
    with module.open("a") as file:
        file.write(statement)
    (module.parent / "__init__.py").touch()
    return source


def main(folder: Path, config: str) -> None:
    options = read_configuration(config)
    _register_contract_types(read_user_options(config))
    contracts = [
        registry.get_contract_class(each["type"])(
            name=each["name"], session_options=options["session_options"], contract_options=each
        )
        for each in options["contracts_options"]
    ]

    def broken(graph: grimp.ImportGraph) -> list[str]:
        checks = {each.name: each.check(copy.deepcopy(graph), verbose=False) for each in contracts}
        return [name for name, check in checks.items() if not check.kept]

    def build() -> grimp.ImportGraph:
        return grimp.build_graph(ROOT, cache_dir=None)

    pairs = forbidden_pairs(options["contracts_options"])
    clean = build()
    found: dict[str, Any] = {"clean": broken(clean)}
    planted = {pair: plant(folder, *pair) for pair in pairs}
    full = build()
    found["pairs"] = []
    for (source, target), importer in planted.items():
        one = copy.deepcopy(clean)
        for module in (source, importer, target):
            one.add_module(module)
        if full.direct_import_exists(importer=importer, imported=target):
            one.add_import(importer=importer, imported=target)
        found["pairs"].append([source, target, broken(one)])
    newcomer = copy.deepcopy(clean)
    newcomer.add_module(f"{ROOT}.newcomer")
    found["newcomer"] = broken(newcomer)
    print(json.dumps(found))


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])

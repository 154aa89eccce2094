# Configuration of the FileCheck tests. `cargo test --test lit` sets the variables.
import os

import lit.formats

config.name = "tc"
config.test_format = lit.formats.ShTest(execute_external=False)
config.suffixes = [".axon", ".hlo", ".mlir", ".tc", ".tml"]
config.excludes = ["Inputs"]
config.test_source_root = os.path.dirname(__file__)
config.test_exec_root = os.environ["TC_LIT_OUTPUT"]

llvm_tools = os.path.join(os.environ.get("MLIR_SYS_220_PREFIX", "/usr/lib/llvm-22"), "bin")
config.environment["PATH"] = os.pathsep.join(
    [os.environ["TC_TOOLS_DIR"], llvm_tools, config.environment.get("PATH", "")]
)
config.environment["TC_CACHE"] = "off"
# ./bootstrap installs ptxas there.
config.environment["PYTHONPATH"] = os.path.join(config.test_source_root, "../../target/python")
config.substitutions.append(("%tools", os.environ["TC_TOOLS_DIR"]))
config.substitutions.append(("%examples", os.path.join(config.test_source_root, "../../examples")))
config.substitutions.append(("%conformance", os.path.join(config.test_source_root, "../conformance")))

"""Integer models of examples/tiny on an emulated Cortex-M4, and on a Cortex-M55: multiply-accumulates for each instruction of a step.

    python bench/mcu.py [--json] [--cases resnet8]

qemu counts a nanosecond per instruction (-icount shift=0) and the program reads its timer, so the figure is the same
every time. Beside it: RAM (working memory, inputs, outputs and the stack that was used) and flash, code and all. The
notes say what the program takes without its recipes.
"""

import json
import pathlib
import re
import shutil
import sys
import tempfile

import emitted
import rows

TINY = rows.REPO / "examples/tiny"
sys.path[:0] = [str(rows.REPO / "python/src"), str(rows.REPO / "examples"), str(TINY)]

BARS = {"mcu resnet8_i8": 0.63, "mcu ds_cnn_i8": 0.52, "mcu ds_cnn_i8 flash": 48 * 1024}
NAMES = ("resnet8_i8", "ds_cnn_i8", "autoencoder_i8")


class Measured:
    """A verified program: what a step takes, and what the linker wrote."""

    def __init__(self, folder, name, device, *more):
        import tiny_oinf

        package, keep = folder / f"{name}.oinf", folder / name
        tiny_oinf.write(name, str(package))
        rows.program(emitted.OPENINFER, "verify", TINY / f"{name}.oi", "--model", package, "--set", "x=random:7:-128:127",
                     "--target", device, "--steps", 2, "--keep", keep, *more)  # fmt: skip
        log = (keep / "run.log").read_text()
        self.plan = json.loads((keep / "plan.json").read_text())
        self.instructions = int(re.search(r"step: (\d+)", log)[1])
        self.stack = int(re.search(r"stack: (\d+)", log)[1])
        self.macs = self.plan["graphs"][0]["cost"]["macs"]
        text, data, bss = map(int, rows.program("arm-none-eabi-size", keep / f"{name}.elf").split()[6:9])
        self.flash, self.ram = text + data, data + bss + self.stack
        shutil.rmtree(keep)


def measure(o):
    for tool in ("arm-none-eabi-gcc", "qemu-system-arm"):
        if not shutil.which(tool):
            yield rows.left_out("mcu", tool, "not installed")
            return
    with tempfile.TemporaryDirectory() as folder:
        for name in NAMES:
            if not o.wants(f"mcu {name}"):
                continue
            ours = Measured(pathlib.Path(folder), name, "cortex_m4")
            plain = Measured(pathlib.Path(folder), name, "cortex_m4", "--without", "recipes")
            vectors = Measured(pathlib.Path(folder), name, "cortex_m55")
            case = f"mcu {name}"
            rate, slow, fast = (m.macs / m.instructions for m in (ours, plain, vectors))
            for what, unit, value, other in (("", "MAC/instruction", rate, f"{slow:.3f}"),
                                             (" RAM", "bytes", ours.ram, plain.ram),
                                             (" flash", "bytes", ours.flash, plain.flash)):  # fmt: skip
                yield rows.row(case + what, unit, value, bar=BARS.get(case + what), note=f"{other} without recipes")
            yield rows.row(f"{case} Helium", "MAC/instruction", fast, note=f"a Cortex-M55; {rate:.3f} on the Cortex-M4")


if __name__ == "__main__":
    sys.exit(rows.main(measure, __doc__))

"""Puts the shared library into the package, so that a wheel carries it: the one of $OPENINFER_BUILD or of the checkout's
build/, else one that CMake builds. json-c, which it needs, goes with it. Without sources and library the package is made
without one; openinfer.oinf works all the same."""

import os
import pathlib
import re
import shutil
import subprocess
import sysconfig

from setuptools import Distribution, setup
from setuptools.command.build_py import build_py

try:
    from setuptools.command.bdist_wheel import bdist_wheel
except ImportError:  # setuptools before 70
    from wheel.bdist_wheel import bdist_wheel

HERE = pathlib.Path(__file__).resolve().parent


def built_library(temporary):
    folder = pathlib.Path(os.environ.get("OPENINFER_BUILD") or HERE.parent / "build")
    if not (folder / "libopeninfer.so").exists() and (HERE.parent / "CMakeLists.txt").exists():
        folder = pathlib.Path(temporary).resolve()
        subprocess.run(["cmake", "-S", HERE.parent, "-B", folder, "-DCMAKE_BUILD_TYPE=Release", "-DOI_TESTS=OFF"], check=True)
        subprocess.run(["cmake", "--build", folder, "--parallel", str(os.cpu_count())], check=True)
    return folder / "libopeninfer.so"


class BuildWithLibrary(build_py):
    def run(self):
        super().run()
        library = built_library(self.get_finalized_command("build").build_temp)
        if not library.exists():
            print("openinfer: no libopeninfer.so here and nothing to build it from: the package comes without it")
            return
        to = pathlib.Path(self.build_lib) / "openinfer"
        shutil.copyfile(library.resolve(), to / "libopeninfer.so")
        if shutil.which("strip"):
            subprocess.run(["strip", "--strip-unneeded", to / "libopeninfer.so"], check=True)
        needs = subprocess.run(["ldd", library], capture_output=True, text=True, check=True).stdout
        for path in re.findall(r"=> (\S*/libjson-c\S*)", needs):
            shutil.copyfile(path, to / pathlib.Path(path).name)


class PlatformWheel(bdist_wheel):
    """For any Python 3 of this platform: the library knows nothing of Python."""

    def get_tag(self):
        return "py3", "none", re.sub(r"[-.]", "_", sysconfig.get_platform())


class WithLibrary(Distribution):
    def has_ext_modules(self):
        return True


setup(cmdclass={"build_py": BuildWithLibrary, "bdist_wheel": PlatformWheel}, distclass=WithLibrary)

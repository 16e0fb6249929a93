"""What plugin writers import is all there, in one place."""

from alnair.scheduler import framework
from alnair.scheduler.framework import extension_points


def test_the_package_has_all_of_the_contract_and_no_name_by_accident() -> None:
    assert list(framework.__all__) == sorted(framework.__all__)
    plugins = {name for name in vars(extension_points) if name.endswith("Plugin")}
    assert plugins <= set(framework.__all__)
    assert all(hasattr(framework, name) for name in framework.__all__)
